// build: static
// stat, lstat, fstat, newfstatat and statx: fields, identity, link counts, times, argument checks.
#include "tree.h"
#include <linux/stat.h>
#include <sys/sysmacros.h>

CASE(regular_file) {
    enter();
    int fd = make("f", "hello");
    CHECK_OK(fchmod(fd, 0641));
    struct stat st = look("f"), parent = look(".");
    CHECK_EQ(st.st_mode, S_IFREG | 0641);
    CHECK_EQ(st.st_nlink, 1);
    CHECK_EQ(st.st_size, 5);
    CHECK_EQ(st.st_uid, geteuid());
    CHECK_EQ(st.st_gid, getegid());
    CHECK_EQ(st.st_dev, parent.st_dev);
    CHECK_GT(st.st_blksize, 0);
    CHECK_NE(st.st_ino, 0);
    // By whichever way, the same answer.
    struct stat a, b, c = flook(fd);
    CHECK_OK(stat("f", &a));
    CHECK_OK(syscall(SYS_newfstatat, AT_FDCWD, "f", &b, 0));
    CHECK_EQ(memcmp(&a, &b, sizeof a), 0);
    CHECK_EQ(memcmp(&a, &c, sizeof a), 0);
    CHECK_EQ(memcmp(&a, &st, sizeof a), 0);
}

CASE(blocks_follow_data) {
    enter();
    int fd = make("f", "");
    CHECK_EQ(flook(fd).st_blocks, 0);
    static char page[65536];
    memset(page, 1, sizeof page);
    CHECK_EQ(write(fd, page, sizeof page), sizeof page);
    CHECK_OK(fsync(fd));
    CHECK_GE(flook(fd).st_blocks, 128);
    CHECK_OK(ftruncate(fd, 1 << 30));
    CHECK_LT(flook(fd).st_blocks, 1000);
    CHECK_OK(ftruncate(fd, 0));
    CHECK_EQ(flook(fd).st_blocks, 0);
}

CASE(types) {
    enter();
    CHECK_OK(mkdir("d", 0755));
    CHECK_OK(symlink("target text", "l"));
    CHECK_OK(mkfifo("p", 0644));
    CHECK(S_ISDIR(look("d").st_mode));
    struct stat st = look("l");
    CHECK_EQ(st.st_mode, S_IFLNK | 0777);
    CHECK_EQ(st.st_size, strlen("target text"));
    CHECK_EQ(look("p").st_mode, S_IFIFO | 0644);
    CHECK(S_ISCHR(look("/dev/null").st_mode));
    CHECK_EQ(look("/dev/null").st_rdev, makedev(1, 3));
    CHECK_EQ(look("/dev/zero").st_rdev, makedev(1, 5));
    CHECK_EQ(look("/dev/full").st_rdev, makedev(1, 7));
    CHECK_EQ(look("/dev/random").st_rdev, makedev(1, 8));
    CHECK_EQ(look("/dev/urandom").st_rdev, makedev(1, 9));
    CHECK_EQ(look("/dev/tty").st_rdev, makedev(5, 0));
    CHECK_EQ(look("/dev/null").st_mode & 0777, 0666);
}

CASE(inode_numbers) {
    enter();
    ino_t seen[64];
    char name[16];
    for (int i = 0; i < 64; i++) {
        snprintf(name, sizeof name, "f%d", i);
        CHECK_OK(close(make(name, "")));
        seen[i] = look(name).st_ino;
        for (int k = 0; k < i; k++) CHECK_NE(seen[k], seen[i]);
    }
    // Stable over rename, link, chmod, writing and time.
    CHECK_OK(rename("f0", "moved"));
    CHECK_EQ(look("moved").st_ino, seen[0]);
    CHECK_OK(link("f1", "linked"));
    CHECK_EQ(look("linked").st_ino, seen[1]);
    CHECK_OK(truncate("f2", 100000));
    CHECK_OK(chmod("f2", 0600));
    CHECK_EQ(look("f2").st_ino, seen[2]);
    int fd = CHECK_OK(open("f3", O_RDWR));
    CHECK_OK(unlink("f3"));
    CHECK_EQ(flook(fd).st_ino, seen[3]);
    CHECK_OK(close(make("f3", "")));
    CHECK_NE(look("f3").st_ino, seen[3]);  // still held, so not reused
}

CASE(identity_of_system_files) {
    // What lies below layers keeps one identity, for tools that compare (find, tar, cp, git).
    const char *names[] = {"/etc/passwd", "/etc", "/usr/bin", "/usr/bin/env", "/", "/proc", "/dev", "/tmp"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        struct stat a, b;
        CHECK_OK(stat(names[i], &a));
        int fd = CHECK_OK(open(names[i], O_PATH));
        CHECK_OK(fstat(fd, &b));
        CHECK_EQ(a.st_dev, b.st_dev);
        CHECK_EQ(a.st_ino, b.st_ino);
        CHECK_EQ(a.st_mode, b.st_mode);
        CHECK_NE(a.st_ino, 0);
        for (unsigned k = 0; k < i; k++) {
            CHECK_OK(stat(names[k], &b));
            CHECK(a.st_dev != b.st_dev || a.st_ino != b.st_ino);
        }
        CHECK_OK(close(fd));
    }
    CHECK_EQ(look("/etc/..").st_ino, look("/").st_ino);
    CHECK_NE(look("/proc").st_dev, look("/").st_dev);
    CHECK_NE(look("/dev").st_dev, look("/proc").st_dev);
}

CASE(link_counts) {
    enter();
    int fd = make("f", "");
    CHECK_OK(link("f", "g"));
    CHECK_EQ(flook(fd).st_nlink, 2);
    CHECK_OK(unlink("f"));
    CHECK_EQ(flook(fd).st_nlink, 1);
    CHECK_OK(close(make("h", "")));
    CHECK_OK(rename("h", "g"));
    CHECK_EQ(flook(fd).st_nlink, 0);
    CHECK_OK(mkdir("d", 0755));
    long before = look("d").st_nlink;
    CHECK_OK(mkdir("d/e", 0755));
    if (before == 2) {  // some file systems do not count sub-directories
        CHECK_EQ(look("d").st_nlink, 3);
        CHECK_OK(rmdir("d/e"));
        CHECK_EQ(look("d").st_nlink, 2);
    } else {
        CHECK_EQ(before, 1);
    }
}

static int later(struct timespec a, struct timespec b) {
    return a.tv_sec > b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec > b.tv_nsec);
}

static void pass_time(void) {
    struct timespec t = {0, 12000000};  // file times have the tick's grain at worst
    nanosleep(&t, NULL);
}

CASE(times_follow_actions) {
    enter();
    struct timespec now;
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    int fd = make("f", "text");
    struct stat a = flook(fd), b;
    CHECK(!later(now, a.st_mtim));
    clock_gettime(CLOCK_REALTIME, &now);
    CHECK(!later(a.st_mtim, now));
    pass_time();
    CHECK_EQ(write(fd, "x", 1), 1);
    b = flook(fd);
    CHECK(later(b.st_mtim, a.st_mtim) && later(b.st_ctim, a.st_ctim) && !later(b.st_atim, a.st_atim));
    pass_time();
    CHECK_OK(fchmod(fd, 0600));
    a = flook(fd);
    CHECK(later(a.st_ctim, b.st_ctim));
    CHECK(!later(a.st_mtim, b.st_mtim));
    pass_time();
    CHECK_OK(link("f", "g"));
    b = flook(fd);
    CHECK(later(b.st_ctim, a.st_ctim) && !later(b.st_mtim, a.st_mtim));
    pass_time();
    CHECK_OK(rename("g", "h"));
    a = flook(fd);
    CHECK(later(a.st_ctim, b.st_ctim) && !later(a.st_mtim, b.st_mtim));
    pass_time();
    CHECK_OK(ftruncate(fd, 5));  // even to the same size
    b = flook(fd);
    CHECK(later(b.st_mtim, a.st_mtim) && later(b.st_ctim, a.st_ctim));
    pass_time();
    CHECK_EQ(write(fd, "", 0), 0);
    a = flook(fd);
    CHECK(!later(a.st_mtim, b.st_mtim));
}

CASE(times_of_directories) {
    enter();
    CHECK_OK(mkdir("d", 0755));
    struct stat a = look("d"), b;
    pass_time();
    int fd = make("d/f", "");
    b = look("d");
    CHECK(later(b.st_mtim, a.st_mtim) && later(b.st_ctim, a.st_ctim));
    pass_time();
    CHECK_EQ(write(fd, "x", 1), 1);
    CHECK_OK(chmod("d/f", 0600));
    a = look("d");
    CHECK(!later(a.st_mtim, b.st_mtim));  // content of members is not the directory's
    pass_time();
    CHECK_OK(rename("d/f", "d/g"));
    b = look("d");
    CHECK(later(b.st_mtim, a.st_mtim));
    pass_time();
    CHECK_OK(unlink("d/g"));
    a = look("d");
    CHECK(later(a.st_mtim, b.st_mtim));
}

CASE(nanoseconds) {
    enter();
    make("f", "");
    struct timespec t[2] = {{1000000000, 123456789}, {-5, 987654321}};
    CHECK_OK(utimensat(AT_FDCWD, "f", t, 0));
    struct stat st = look("f");
    CHECK_EQ(st.st_atim.tv_sec, 1000000000);
    CHECK_EQ(st.st_atim.tv_nsec, 123456789);
    CHECK_EQ(st.st_mtim.tv_sec, -5);
    CHECK_EQ(st.st_mtim.tv_nsec, 987654321);
}

CASE(fstatat_flags) {
    enter();
    int fd = make("f", "abc");
    CHECK_OK(symlink("f", "l"));
    struct stat st, want = flook(fd);
    CHECK_OK(fstatat(AT_FDCWD, "l", &st, 0));
    CHECK_EQ(st.st_ino, want.st_ino);
    CHECK_OK(fstatat(AT_FDCWD, "l", &st, AT_SYMLINK_NOFOLLOW));
    CHECK_NE(st.st_ino, want.st_ino);
    CHECK_OK(fstatat(fd, "", &st, AT_EMPTY_PATH));
    CHECK_EQ(st.st_ino, want.st_ino);
    CHECK_OK(fstatat(AT_FDCWD, "", &st, AT_EMPTY_PATH));
    CHECK_EQ(st.st_ino, look(".").st_ino);
    CHECK_OK(fstatat(AT_FDCWD, "f", &st, AT_NO_AUTOMOUNT | AT_EMPTY_PATH));
    CHECK_ERRNO(fstatat(fd, "", &st, 0), ENOENT);
    CHECK_ERRNO(fstatat(fd, "x", &st, 0), ENOTDIR);
    CHECK_ERRNO(fstatat(999, "x", &st, 0), EBADF);
    CHECK_ERRNO(fstatat(999, "", &st, AT_EMPTY_PATH), EBADF);
    CHECK_ERRNO(syscall(SYS_newfstatat, AT_FDCWD, "f", &st, 0x8000000), EINVAL);
    CHECK_ERRNO(syscall(SYS_newfstatat, AT_FDCWD, "f", &st, AT_SYMLINK_FOLLOW), EINVAL);
    CHECK_ERRNO(syscall(SYS_newfstatat, AT_FDCWD, "f", 1, 0), EFAULT);
    CHECK_ERRNO(syscall(SYS_fstat, fd, NULL), EFAULT);
    CHECK_ERRNO(syscall(SYS_fstat, 999, NULL), EBADF);
}

CASE(statx_fields) {
    enter();
    int fd = make("f", "12345678");
    CHECK_OK(symlink("f", "l"));
    struct statx x;
    struct stat st = flook(fd);
    memset(&x, 0x5a, sizeof x);
    CHECK_OK(syscall(SYS_statx, AT_FDCWD, "f", 0, STATX_BASIC_STATS, &x));
    CHECK_EQ(x.stx_mask & STATX_BASIC_STATS, STATX_BASIC_STATS);
    CHECK_EQ(x.stx_mode, st.st_mode);
    CHECK_EQ(x.stx_nlink, 1);
    CHECK_EQ(x.stx_size, 8);
    CHECK_EQ(x.stx_ino, st.st_ino);
    CHECK_EQ(x.stx_uid, st.st_uid);
    CHECK_EQ(x.stx_gid, st.st_gid);
    CHECK_EQ(x.stx_blocks, st.st_blocks);
    CHECK_EQ(x.stx_blksize, st.st_blksize);
    CHECK_EQ(makedev(x.stx_dev_major, x.stx_dev_minor), st.st_dev);
    CHECK_EQ(x.stx_mtime.tv_sec, st.st_mtim.tv_sec);
    CHECK_EQ(x.stx_mtime.tv_nsec, st.st_mtim.tv_nsec);
    CHECK_EQ(x.stx_atime.tv_nsec, st.st_atim.tv_nsec);
    CHECK_EQ(x.stx_ctime.tv_nsec, st.st_ctim.tv_nsec);
    CHECK_EQ(x.stx_rdev_major | x.stx_rdev_minor, 0);
    CHECK_EQ(x.stx_attributes & ~x.stx_attributes_mask, 0);
    CHECK_OK(syscall(SYS_statx, AT_FDCWD, "l", AT_SYMLINK_NOFOLLOW, STATX_TYPE, &x));
    CHECK(S_ISLNK(x.stx_mode));
    CHECK_OK(syscall(SYS_statx, fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_INO, &x));
    CHECK_EQ(x.stx_ino, st.st_ino);
    CHECK_OK(syscall(SYS_statx, AT_FDCWD, "/dev/null", AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &x));
    CHECK_EQ(x.stx_rdev_major, 1);
    CHECK_EQ(x.stx_rdev_minor, 3);
    // Nothing asked: answers may come all the same, and the call works.
    CHECK_OK(syscall(SYS_statx, AT_FDCWD, "f", 0, 0, &x));
}

CASE(statx_birth_time) {
    enter();
    int fd = make("f", "x");
    struct statx x;
    CHECK_OK(syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_BTIME, &x));
    if (!(x.stx_mask & STATX_BTIME)) SKIP("no birth times here");
    long long sec = x.stx_btime.tv_sec, nsec = x.stx_btime.tv_nsec;
    CHECK_LE(sec, flook(fd).st_mtim.tv_sec);
    pass_time();
    CHECK_EQ(write(fd, "x", 1), 1);
    CHECK_OK(syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_BTIME, &x));
    CHECK_EQ(x.stx_btime.tv_sec, sec);
    CHECK_EQ(x.stx_btime.tv_nsec, nsec);
}

CASE(statx_mount) {
    struct statx a, b;
    CHECK_OK(syscall(SYS_statx, AT_FDCWD, "/", 0, 0x1000 /* STATX_MNT_ID */, &a));
    CHECK_OK(syscall(SYS_statx, AT_FDCWD, "/proc", 0, 0x1000, &b));
    CHECK_EQ(a.stx_mask & 0x1000, 0x1000);
    CHECK_EQ(a.stx_attributes & a.stx_attributes_mask & 0x2000, 0x2000);  // STATX_ATTR_MOUNT_ROOT
    CHECK_EQ(b.stx_attributes & b.stx_attributes_mask & 0x2000, 0x2000);
    CHECK_OK(syscall(SYS_statx, AT_FDCWD, "/etc/passwd", 0, 0x1000, &a));
    CHECK_EQ(a.stx_attributes_mask & 0x2000, 0x2000);
    CHECK_EQ(a.stx_attributes & 0x2000, 0);
}

CASE(statx_errors) {
    enter();
    int fd = make("f", "");
    struct statx x;
    CHECK_ERRNO(syscall(SYS_statx, AT_FDCWD, "f", 0, 0x80000000u, &x), EINVAL);  // STATX__RESERVED
    CHECK_ERRNO(syscall(SYS_statx, AT_FDCWD, "f", 0x6000, STATX_TYPE, &x), EINVAL);
    CHECK_ERRNO(syscall(SYS_statx, AT_FDCWD, "f", 0x8000000, STATX_TYPE, &x), EINVAL);
    CHECK_ERRNO(syscall(SYS_statx, AT_FDCWD, "f", AT_SYMLINK_FOLLOW, STATX_TYPE, &x), EINVAL);
    CHECK_ERRNO(syscall(SYS_statx, AT_FDCWD, "none", 0, STATX_TYPE, &x), ENOENT);
    CHECK_ERRNO(syscall(SYS_statx, fd, "", 0, STATX_TYPE, &x), ENOENT);
    CHECK_ERRNO(syscall(SYS_statx, 999, "", AT_EMPTY_PATH, STATX_TYPE, &x), EBADF);
    CHECK_ERRNO(syscall(SYS_statx, AT_FDCWD, "f", 0, STATX_TYPE, NULL), EFAULT);
    CHECK_ERRNO(syscall(SYS_statx, AT_FDCWD, (void *)1, 0, STATX_TYPE, &x), EFAULT);
    // A null path with AT_EMPTY_PATH is the descriptor (since 6.11).
    CHECK_OK(syscall(SYS_statx, fd, NULL, AT_EMPTY_PATH, STATX_TYPE, &x));
    CHECK(S_ISREG(x.stx_mode));
}

MAIN
