// build: static
// File mappings: coherence with read and write, private copies, SIGBUS beyond the end, access modes, offsets.
#include "maps.h"
#include <sys/ioctl.h>

#define RW (PROT_READ | PROT_WRITE)

static char *map(int fd, int pages, int prot, int flags, off_t offset) {
    return CHECK_MAP(raw_mmap(NULL, pages * PAGE, prot, flags, fd, offset));
}

CASE(content_and_offset) {
    int fd = file_of_pages(5);
    char *p = map(fd, 5, PROT_READ, MAP_PRIVATE, 0), *q = map(fd, 2, PROT_READ, MAP_SHARED, 3 * PAGE);
    for (int i = 0; i < 5; i++) CHECK_EQ(p[i * PAGE + 17], 'a' + i);
    CHECK_EQ(q[0], 'd');
    CHECK_EQ(q[2 * PAGE - 1], 'e');
    CHECK_ERRNO(raw_mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 100), EINVAL);
    // The mapping outlives the descriptor.
    CHECK_OK(close(fd));
    CHECK_EQ(p[4 * PAGE], 'e');
}

CASE(shared_is_coherent_with_write_and_read) {
    int fd = file_of_pages(4);
    char *p = map(fd, 4, RW, MAP_SHARED, 0), c;
    CHECK_EQ(p[0], 'a');
    CHECK_EQ(pwrite(fd, "Z", 1, 5), 1);
    CHECK_EQ(p[5], 'Z');
    p[2 * PAGE + 7] = 'Y';
    CHECK_EQ(pread(fd, &c, 1, 2 * PAGE + 7), 1);
    CHECK_EQ(c, 'Y');
    for (int i = 0; i < 500; i++) {
        p[i] = i;
        CHECK_EQ(pread(fd, &c, 1, i), 1);
        CHECK_EQ((unsigned char)c, i & 255);
        c = ~i;
        CHECK_EQ(pwrite(fd, &c, 1, i), 1);
        CHECK_EQ((unsigned char)p[i], ~i & 255);
    }
}

CASE(two_mappings_and_two_descriptors_agree) {
    const char *path = TMP("f");
    int a = CHECK_OK(open(path, O_RDWR | O_CREAT, 0600)), b = CHECK_OK(open(path, O_RDONLY));
    CHECK_OK(ftruncate(a, 2 * PAGE));
    char *p = map(a, 2, RW, MAP_SHARED, 0), *q = map(b, 2, PROT_READ, MAP_SHARED, 0), *r = map(a, 1, RW, MAP_SHARED, PAGE);
    p[10] = 1;
    CHECK_EQ(q[10], 1);
    r[10] = 2;
    CHECK_EQ(p[PAGE + 10], 2);
    CHECK_EQ(q[PAGE + 10], 2);
    char c = 0;
    CHECK_EQ(pread(b, &c, 1, PAGE + 10), 1);
    CHECK_EQ(c, 2);
    IN_CHILD({ p[11] = 3; });
    CHECK_EQ(q[11], 3);
}

CASE(private_is_copy_on_write) {
    int fd = file_of_pages(3);
    char *p = map(fd, 3, RW, MAP_PRIVATE, 0), c = 0;
    CHECK_EQ(p[0], 'a');
    p[0] = 'P';
    CHECK_EQ(pread(fd, &c, 1, 0), 1);
    CHECK_EQ(c, 'a');
    // A page already copied does not see later writes; one not yet copied does.
    CHECK_EQ(pwrite(fd, "W", 1, 1), 1);
    CHECK_EQ(p[1], 'a');
    CHECK_EQ(pwrite(fd, "W", 1, PAGE), 1);
    CHECK_EQ(p[PAGE], 'W');
    // The child's copies are its own.
    IN_CHILD({
        CHECK_EQ(p[0], 'P');
        p[0] = 'C';
        p[2 * PAGE] = 'C';
    });
    CHECK_EQ(p[0], 'P');
    CHECK_EQ(p[2 * PAGE], 'c');
}

CASE(private_writable_of_read_only_descriptor) {
    const char *path = TMP("f");
    int fd = CHECK_OK(open(path, O_RDWR | O_CREAT, 0600));
    CHECK_EQ(write(fd, "hello", 5), 5);
    close(fd);
    fd = CHECK_OK(open(path, O_RDONLY));
    char *p = map(fd, 1, RW, MAP_PRIVATE, 0);
    p[0] = 'J';
    CHECK_EQ(memcmp(p, "Jello", 5), 0);
    char text[5];
    CHECK_EQ(pread(fd, text, 5, 0), 5);
    CHECK_EQ(memcmp(text, "hello", 5), 0);
}

CASE(access_modes) {
    const char *path = TMP("f");
    int rw = CHECK_OK(open(path, O_RDWR | O_CREAT, 0600)), r = CHECK_OK(open(path, O_RDONLY));
    int w = CHECK_OK(open(path, O_WRONLY)), o = CHECK_OK(open(path, O_PATH)), dir = CHECK_OK(open("/", O_RDONLY));
    int ap = CHECK_OK(open(path, O_RDWR | O_APPEND)), fds[2];
    CHECK_OK(pipe(fds));
    CHECK_OK(ftruncate(rw, PAGE));
    CHECK_ERRNO(raw_mmap(NULL, PAGE, RW, MAP_SHARED, r, 0), EACCES);
    CHECK_ERRNO(raw_mmap(NULL, PAGE, PROT_WRITE, MAP_SHARED, r, 0), EACCES);
    CHECK_ERRNO(raw_mmap(NULL, PAGE, PROT_READ, MAP_SHARED, w, 0), EACCES);
    CHECK_ERRNO(raw_mmap(NULL, PAGE, PROT_WRITE, MAP_SHARED, w, 0), EACCES);
    CHECK_ERRNO(raw_mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, w, 0), EACCES);
    CHECK_ERRNO(raw_mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE, w, 0), EACCES);
    CHECK_ERRNO(raw_mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, o, 0), EBADF);
    CHECK_ERRNO(raw_mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, dir, 0), ENODEV);
    CHECK_ERRNO(raw_mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fds[0], 0), ENODEV);
    CHECK_ERRNO(raw_mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_GROWSDOWN, rw, 0), EINVAL);
    CHECK_ERRNO(raw_mmap(NULL, PAGE, PROT_READ, MAP_SHARED_VALIDATE | 0x200000, rw, 0), EOPNOTSUPP);
    CHECK_ERRNO(raw_mmap(NULL, PAGE, PROT_READ, 0, rw, 0), EINVAL);
    CHECK_ERRNO(raw_mmap(NULL, 0, PROT_READ, MAP_SHARED, rw, 0), EINVAL);
    CHECK_ERRNO(raw_mmap(NULL, 3 * PAGE, PROT_READ, MAP_SHARED, rw, 0x7ffffffffffff000), EOVERFLOW);
    CHECK_MAP(raw_mmap(NULL, PAGE, RW, MAP_SHARED_VALIDATE, rw, 0));
    CHECK_MAP(raw_mmap(NULL, PAGE, RW, MAP_SHARED, ap, 0));
    // mprotect cannot add what the descriptor did not allow; a private mapping may become writable.
    char *p = map(r, 1, PROT_READ, MAP_SHARED, 0);
    CHECK_ERRNO(mprotect(p, PAGE, RW), EACCES);
    CHECK_READS(p);
    CHECK_FAULT(p, 1, SIGSEGV, SEGV_ACCERR);
    CHECK_OK(mprotect(map(r, 1, PROT_READ, MAP_PRIVATE, 0), PAGE, RW));
    CHECK_OK(mprotect(map(rw, 1, PROT_READ, MAP_SHARED, 0), PAGE, RW));
}

CASE(sigbus_beyond_the_end) {
    int fd = file_of_pages(1);
    CHECK_OK(ftruncate(fd, PAGE + 100));
    char *p = map(fd, 4, RW, MAP_SHARED, 0), *q = map(fd, 4, RW, MAP_PRIVATE, 0);
    // The rest of the last page reads as zero, and what is written there is not the file's.
    CHECK_EQ(p[PAGE + 100], 0);
    CHECK_EQ(p[2 * PAGE - 1], 0);
    p[PAGE + 200] = 'x';
    struct stat st;
    CHECK_OK(fstat(fd, &st));
    CHECK_EQ(st.st_size, PAGE + 100);
    CHECK_FAULT(p + 2 * PAGE + 3, 0, SIGBUS, BUS_ADRERR);
    CHECK_FAULT(p + 3 * PAGE, 1, SIGBUS, BUS_ADRERR);
    CHECK_FAULT(q + 2 * PAGE, 0, SIGBUS, BUS_ADRERR);
    CHECK_FAULT(q + 2 * PAGE, 1, SIGBUS, BUS_ADRERR);
    // Growing makes them valid, shrinking takes them away, private copies included.
    CHECK_OK(ftruncate(fd, 4 * PAGE));
    CHECK_READS(p + 3 * PAGE);
    CHECK_WRITES(q + 3 * PAGE);
    CHECK_OK(ftruncate(fd, PAGE));
    CHECK_FAULT(p + 3 * PAGE, 0, SIGBUS, BUS_ADRERR);
    CHECK_FAULT(q + 3 * PAGE, 0, SIGBUS, BUS_ADRERR);
    CHECK_FAULT(p + PAGE, 0, SIGBUS, BUS_ADRERR);
    CHECK_EQ(p[0], 'a');
}

CASE(sigbus_kills_by_default) {
    int fd = file_of_pages(1);
    char *p = map(fd, 2, RW, MAP_SHARED, 0);
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        p[PAGE] = 1;
        _exit(0);
    }
    CHECK_KILLED(pid, SIGBUS);
}

CASE(mapping_an_empty_file) {
    int fd = CHECK_OK(open(TMP("empty"), O_RDWR | O_CREAT, 0600));
    char *p = map(fd, 1, RW, MAP_SHARED, 0);
    CHECK_FAULT(p, 0, SIGBUS, BUS_ADRERR);
    CHECK_EQ(write(fd, "now", 3), 3);
    CHECK_EQ(memcmp(p, "now", 4), 0);
}

CASE(syscalls_on_sigbus_pages_are_efault) {
    int fd = file_of_pages(1), fds[2];
    char *p = map(fd, 2, RW, MAP_SHARED, 0);
    CHECK_OK(pipe(fds));
    CHECK_ERRNO(write(fds[1], p + PAGE, 10), EFAULT);
    CHECK_EQ(write(fds[1], "x", 1), 1);
    CHECK_ERRNO(read(fds[0], p + PAGE, 1), EFAULT);
    char c;
    CHECK_EQ(read(fds[0], &c, 1), 1);  // not lost
    CHECK_EQ(c, 'x');
    CHECK_ERRNO(fstat(fd, (struct stat *)(p + PAGE)), EFAULT);
}

CASE(truncate_then_extend_zeroes_the_tail) {
    int fd = file_of_pages(1);
    char *p = map(fd, 1, RW, MAP_SHARED, 0);
    CHECK_OK(ftruncate(fd, 100));
    CHECK_OK(ftruncate(fd, PAGE));
    CHECK_EQ(p[99], 'a');
    CHECK_EQ(p[100], 0);
    CHECK_EQ(p[PAGE - 1], 0);
}

CASE(unlinked_file_stays) {
    const char *path = TMP("gone");
    int fd = CHECK_OK(open(path, O_RDWR | O_CREAT, 0600));
    CHECK_OK(ftruncate(fd, PAGE));
    char *p = map(fd, 1, RW, MAP_SHARED, 0);
    close(fd);
    CHECK_OK(unlink(path));
    p[1] = 9;
    IN_CHILD(CHECK_EQ(p[1], 9));
    struct maps_entry m;
    CHECK(maps_find(p, &m));
    CHECK_STR(m.perms, "rw-s");
    CHECK(strstr(m.name, "/gone (deleted)") != NULL);
}

CASE(maps_shows_file_offset_and_inode) {
    int fd = file_of_pages(4);
    struct stat st;
    CHECK_OK(fstat(fd, &st));
    char *p = map(fd, 2, PROT_READ | PROT_EXEC, MAP_PRIVATE, 2 * PAGE);
    struct maps_entry m;
    CHECK(maps_find(p, &m));
    CHECK_EQ(m.start, (unsigned long)p);
    CHECK_EQ(m.end, (unsigned long)p + 2 * PAGE);
    CHECK_EQ(m.offset, 2 * PAGE);
    CHECK_EQ(m.ino, st.st_ino);
    CHECK_STR(m.perms, "r-xp");
    CHECK(strstr(m.name, "/pages (deleted)") != NULL);
}

CASE(executing_from_a_file_mapping) {
    int fd = CHECK_OK(open(TMP("code"), O_RDWR | O_CREAT, 0700));
    CHECK_EQ(write(fd, "\xb8\x07\0\0\0\xc3", 6), 6);  // mov $7,%eax; ret
    CHECK_EQ(((int (*)(void))map(fd, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE, 0))(), 7);
    CHECK_EQ(((int (*)(void))map(fd, 1, PROT_READ | PROT_EXEC, MAP_SHARED, 0))(), 7);
}

CASE(memfd_and_dev_zero) {
    int fd = CHECK_OK(syscall(SYS_memfd_create, "m", MFD_CLOEXEC));
    CHECK_OK(ftruncate(fd, 2 * PAGE));
    char *p = map(fd, 2, RW, MAP_SHARED, 0), c;
    p[PAGE] = 3;
    CHECK_EQ(pread(fd, &c, 1, PAGE), 1);
    CHECK_EQ(c, 3);
    int zero = CHECK_OK(open("/dev/zero", O_RDWR));
    char *a = map(zero, 2, RW, MAP_PRIVATE, 0), *b = map(zero, 2, RW, MAP_SHARED, 0), *d = map(zero, 2, RW, MAP_SHARED, 0);
    CHECK_EQ(a[5] | b[5], 0);
    a[5] = b[5] = 1;
    CHECK_EQ(d[5], 0);  // each shared mapping of /dev/zero is an object of its own
    IN_CHILD(b[6] = 2);
    CHECK_EQ(b[6], 2);
    CHECK_ERRNO(raw_mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, CHECK_OK(open("/dev/null", O_RDWR)), 0), ENODEV);
}

CASE(msync_and_reopened_content) {
    const char *path = TMP("sync");
    int fd = CHECK_OK(open(path, O_RDWR | O_CREAT, 0600));
    CHECK_OK(ftruncate(fd, 3 * PAGE));
    char *p = map(fd, 3, RW, MAP_SHARED, 0), c;
    p[PAGE] = 's';
    CHECK_OK(msync(p, 3 * PAGE, MS_SYNC));
    CHECK_OK(munmap(p, 3 * PAGE));
    close(fd);
    fd = CHECK_OK(open(path, O_RDONLY));
    CHECK_EQ(pread(fd, &c, 1, PAGE), 1);
    CHECK_EQ(c, 's');
}

MAIN
