// build: static
// getdents64: record layout, buffer sizes, offsets and seeking, large directories, changes while reading.
#include "tree.h"

struct record {
    uint64_t ino;
    int64_t off;
    uint16_t reclen;
    uint8_t type;
    char name[];
};

#define EACH(r, buf, n)                                                                        \
    for (struct record *r = (struct record *)(buf); (char *)r < (char *)(buf) + (n); \
         r = (struct record *)((char *)r + r->reclen))

static long dents(int fd, void *buf, unsigned size) { return syscall(SYS_getdents64, fd, buf, size); }

static void numbered(int count) {
    char name[32];
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "d/file-number-%05d", i);
        CHECK_OK(close(CHECK_OK(open(name, O_WRONLY | O_CREAT | O_EXCL, 0600))));
    }
}

// Reads to the end with this buffer size; each numbered file's count goes to `seen`; the total is returned.
static int read_all(int fd, unsigned size, unsigned char *seen) {
    static char buf[70000] __attribute__((aligned(8)));
    int total = 0, number;
    long n;
    while ((n = CHECK_OK(dents(fd, buf, size))) > 0) {
        EACH(r, buf, n) {
            total++;
            if (sscanf(r->name, "file-number-%d", &number) == 1 && seen) seen[number]++;
        }
    }
    return total;
}

CASE(records) {
    enter();
    CHECK_OK(mkdir("d", 0755));
    CHECK_OK(close(make("d/regular", "")));
    CHECK_OK(mkdir("d/directory", 0755));
    CHECK_OK(symlink("x", "d/symlink"));
    CHECK_OK(mkfifo("d/fifo", 0600));
    char name[256], buf[4096] __attribute__((aligned(8)));
    memset(name, 'n', 255);
    name[255] = 0;
    int d = CHECK_OK(open("d", O_RDONLY | O_DIRECTORY));
    CHECK_OK(close(CHECK_OK(openat(d, name, O_WRONLY | O_CREAT, 0600))));
    long n = CHECK_OK(dents(d, buf, sizeof buf));
    int count = 0, types = 0;
    EACH(r, buf, n) {
        CHECK_EQ(r->reclen % 8, 0);
        CHECK_EQ(r->reclen, (19 + strlen(r->name) + 1 + 7) & ~7ul);
        struct stat st;
        CHECK_OK(fstatat(d, r->name, &st, AT_SYMLINK_NOFOLLOW));
        if (strcmp(r->name, "..")) CHECK_EQ(st.st_ino, r->ino);
        if (r->type != DT_UNKNOWN) {
            CHECK_EQ(r->type, (st.st_mode & S_IFMT) >> 12);
            types++;
        }
        count++;
    }
    CHECK_EQ(count, 7);
    CHECK_EQ(types, 7);
    CHECK_EQ(dents(d, buf, sizeof buf), 0);
    CHECK_EQ(dents(d, buf, sizeof buf), 0);
}

CASE(dot_and_dotdot_in_a_fresh_directory) {
    enter();
    CHECK_OK(mkdir("d", 0755));
    int d = CHECK_OK(open("d", O_RDONLY)), count = 0;
    char buf[512] __attribute__((aligned(8)));
    long n = CHECK_OK(dents(d, buf, sizeof buf));
    EACH(r, buf, n) {
        count++;
        if (!strcmp(r->name, ".")) CHECK_EQ(r->ino, flook(d).st_ino);
        if (!strcmp(r->name, "..")) CHECK_EQ(r->ino, look(".").st_ino);
        CHECK_EQ(r->type, DT_DIR);
    }
    CHECK_EQ(count, 2);
}

CASE(errors) {
    enter();
    CHECK_OK(mkdir("d", 0755));
    int f = make("f", ""), d = CHECK_OK(open("d", O_RDONLY));
    char buf[512] __attribute__((aligned(8)));
    CHECK_ERRNO(dents(f, buf, sizeof buf), ENOTDIR);
    CHECK_ERRNO(dents(999, buf, sizeof buf), EBADF);
    CHECK_ERRNO(dents(d, buf, 0), EINVAL);
    CHECK_ERRNO(dents(d, buf, 20), EINVAL);
    CHECK_ERRNO(dents(d, buf, 23), EINVAL);
    CHECK_EQ(dents(d, buf, 24), 24);
    CHECK_EQ(dents(d, buf, 24), 24);
    CHECK_EQ(dents(d, buf, 24), 0);
    CHECK_EQ(lseek(d, 0, SEEK_SET), 0);
    CHECK_ERRNO(dents(d, NULL, 4096), EFAULT);
    CHECK_ERRNO(dents(d, (void *)1, 4096), EFAULT);
    int pipes[2];
    CHECK_OK(pipe(pipes));
    CHECK_ERRNO(dents(pipes[0], buf, sizeof buf), ENOTDIR);
}

CASE(deleted_directory) {
    enter();
    CHECK_OK(mkdir("d", 0755));
    int d = CHECK_OK(open("d", O_RDONLY));
    CHECK_OK(rmdir("d"));
    char buf[512] __attribute__((aligned(8)));
    CHECK_ERRNO(dents(d, buf, sizeof buf), ENOENT);
    CHECK_EQ(flook(d).st_nlink, 0);
}

CASE(old_getdents) {
    enter();
    CHECK_OK(mkdir("d", 0755));
    CHECK_OK(close(make("d/name", "")));
    struct old {
        unsigned long ino, off;
        unsigned short reclen;
        char name[];
    };
    char buf[512] __attribute__((aligned(8)));
    int d = CHECK_OK(open("d", O_RDONLY)), found = 0;
    long n = CHECK_OK(syscall(SYS_getdents, d, buf, sizeof buf));
    for (long at = 0; at < n;) {
        struct old *r = (struct old *)(buf + at);
        CHECK_EQ(r->reclen, (18 + strlen(r->name) + 2 + 7) & ~7ul);
        if (!strcmp(r->name, "name")) {
            found++;
            CHECK_EQ(((char *)r)[r->reclen - 1], DT_REG);  // the type is the last byte
            CHECK_EQ(r->ino, look("d/name").st_ino);
        }
        at += r->reclen;
    }
    CHECK_EQ(found, 1);
    CHECK_EQ(lseek(d, 0, SEEK_SET), 0);
    CHECK_ERRNO(syscall(SYS_getdents, d, buf, 8), EINVAL);
}

CASE(five_thousand_entries) {
    enter();
    CHECK_OK(mkdir("d", 0755));
    static unsigned char seen[5000];
    numbered(5000);
    unsigned sizes[] = {64, 1000, 4096, 32768, 65536};
    for (int i = 0; i < 5; i++) {
        int d = CHECK_OK(open("d", O_RDONLY));
        memset(seen, 0, sizeof seen);
        CHECK_EQ(read_all(d, sizes[i], seen), 5002);
        for (int k = 0; k < 5000; k++) CHECK_EQ(seen[k], 1);
        CHECK_OK(close(d));
    }
}

CASE(offsets_resume) {
    enter();
    CHECK_OK(mkdir("d", 0755));
    numbered(200);
    int d = CHECK_OK(open("d", O_RDONLY));
    char buf[16384] __attribute__((aligned(8))), one[512] __attribute__((aligned(8)));
    long n = CHECK_OK(dents(d, buf, sizeof buf));
    // From the offset of any record the reading goes on with the next one.
    EACH(r, buf, n) {
        struct record *next = (struct record *)((char *)r + r->reclen);
        CHECK_EQ(lseek(d, r->off, SEEK_SET), r->off);
        long m = CHECK_OK(dents(d, one, sizeof one));
        if ((char *)next < buf + n) {
            CHECK_GT(m, 0);
            CHECK_STR(((struct record *)one)->name, next->name);
        }
    }
    // The position equals the last record's offset.
    CHECK_EQ(lseek(d, 0, SEEK_SET), 0);
    n = CHECK_OK(dents(d, buf, 400));
    int64_t last = 0;
    EACH(r, buf, n) last = r->off;
    CHECK_EQ(lseek(d, 0, SEEK_CUR), last);
}

CASE(rewind_sees_changes) {
    enter();
    CHECK_OK(mkdir("d", 0755));
    int d = CHECK_OK(open("d", O_RDONLY));
    CHECK_EQ(read_all(d, 4096, NULL), 2);
    numbered(3);
    CHECK_EQ(lseek(d, 0, SEEK_SET), 0);
    CHECK_EQ(read_all(d, 4096, NULL), 5);
    CHECK_OK(unlink("d/file-number-00001"));
    CHECK_EQ(lseek(d, 0, SEEK_SET), 0);
    CHECK_EQ(read_all(d, 4096, NULL), 4);
    CHECK_ERRNO(lseek(d, -1, SEEK_SET), EINVAL);
}

CASE(deletion_during_reading) {
    enter();
    CHECK_OK(mkdir("d", 0755));
    numbered(1000);
    int d = CHECK_OK(open("d", O_RDONLY)), removed = 0;
    char buf[1024] __attribute__((aligned(8)));
    long n;
    // As rm -r does: each batch goes before the next is read; none may be missed.
    while ((n = CHECK_OK(dents(d, buf, sizeof buf))) > 0) {
        EACH(r, buf, n) {
            if (r->name[0] == '.') continue;
            CHECK_OK(unlinkat(d, r->name, 0));
            removed++;
        }
    }
    CHECK_EQ(removed, 1000);
    CHECK_OK(rmdir("d"));
}

CASE(survivors_are_seen_once) {
    enter();
    CHECK_OK(mkdir("d", 0755));
    numbered(600);
    static unsigned char seen[600];
    int d = CHECK_OK(open("d", O_RDONLY)), number, extra = 0;
    char buf[512] __attribute__((aligned(8))), name[32];
    long n;
    // Remove an unread file and add a new one between the reads.
    for (int step = 0; (n = CHECK_OK(dents(d, buf, sizeof buf))) > 0; step++) {
        EACH(r, buf, n) if (sscanf(r->name, "file-number-%d", &number) == 1) seen[number]++;
        snprintf(name, sizeof name, "d/file-number-%05d", 599 - step);
        CHECK_OK(unlink(name));
        seen[599 - step] |= 0x80;
        snprintf(name, sizeof name, "d/new-%d", extra++);
        if (extra < 50) CHECK_OK(close(make(name, "")));
    }
    for (int i = 0; i < 600; i++)
        if (!(seen[i] & 0x80)) CHECK_EQ(seen[i], 1);
}

CASE(two_descriptions) {
    enter();
    CHECK_OK(mkdir("d", 0755));
    numbered(100);
    int a = CHECK_OK(open("d", O_RDONLY)), b = CHECK_OK(open("d", O_RDONLY)), c = dup(a);
    char buf[1024] __attribute__((aligned(8)));
    CHECK_GT(dents(a, buf, sizeof buf), 0);
    CHECK_EQ(lseek(b, 0, SEEK_CUR), 0);
    CHECK_EQ(lseek(c, 0, SEEK_CUR), lseek(a, 0, SEEK_CUR));
    int rest = read_all(c, 1024, NULL);
    CHECK_LT(rest, 102);
    CHECK_EQ(read_all(a, 1024, NULL), 0);
    CHECK_EQ(read_all(b, 1024, NULL), 102);
}

CASE(system_directories) {
    const char *dirs[] = {"/", "/etc", "/usr/bin", "/dev", "/proc"};
    for (int i = 0; i < 5; i++) {
        DIR *dir = opendir(dirs[i]);
        CHECK(dir != NULL);
        int dots = 0, count = 0;
        for (struct dirent *e; (e = readdir(dir)); count++) {
            dots += !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..");
            struct stat st;
            int r = fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW);
            if (r == -1) CHECK(errno == ENOENT && i == 4);  // processes may end meanwhile
            if (r == 0 && e->d_type != DT_UNKNOWN) CHECK_EQ(e->d_type, (st.st_mode & S_IFMT) >> 12);
        }
        CHECK_EQ(dots, 2);
        CHECK_GT(count, 5);
        closedir(dir);
    }
}

MAIN
