// build: static
// open and openat: what each flag does, which errno wins, and what the new descriptor carries.
#include "tree.h"

CASE(creat_excl) {
    enter();
    int fd = CHECK_OK(open("f", O_RDWR | O_CREAT | O_EXCL, 0600));
    CHECK_ERRNO(open("f", O_RDWR | O_CREAT | O_EXCL, 0600), EEXIST);
    CHECK_OK(symlink("nowhere", "dangling"));
    CHECK_ERRNO(open("dangling", O_RDWR | O_CREAT | O_EXCL, 0600), EEXIST);
    CHECK_ERRNO(access("nowhere", F_OK), ENOENT);
    CHECK_OK(mkdir("d", 0755));
    CHECK_ERRNO(open("d", O_RDONLY | O_CREAT | O_EXCL, 0600), EEXIST);
    CHECK_OK(close(fd));
}

CASE(creat_through_dangling_symlink) {
    enter();
    CHECK_OK(symlink("target", "link"));
    CHECK_ERRNO(open("link", O_RDONLY), ENOENT);
    int fd = CHECK_OK(open("link", O_WRONLY | O_CREAT, 0644));
    struct stat a, b;
    CHECK_OK(fstat(fd, &a));
    CHECK_OK(lstat("target", &b));
    CHECK_EQ(a.st_ino, b.st_ino);
    CHECK(S_ISREG(b.st_mode));
    CHECK_OK(symlink("no/such/dir", "deep"));
    CHECK_ERRNO(open("deep", O_WRONLY | O_CREAT, 0644), ENOENT);
}

CASE(creat_mode_and_umask) {
    enter();
    struct stat st;
    umask(027);
    int fd = CHECK_OK(open("a", O_WRONLY | O_CREAT, 0777));
    CHECK_OK(fstat(fd, &st));
    CHECK_EQ(st.st_mode, S_IFREG | 0750);
    umask(0);
    fd = CHECK_OK(open("b", O_WRONLY | O_CREAT, 07777));
    CHECK_OK(fstat(fd, &st));
    CHECK_EQ(st.st_mode & 01777, 01777);
    // The mode speaks of later opens: this one may write.
    fd = CHECK_OK(open("c", O_RDWR | O_CREAT, 0));
    CHECK_EQ(write(fd, "x", 1), 1);
    CHECK_OK(fstat(fd, &st));
    CHECK_EQ(st.st_mode, S_IFREG);
    if (geteuid() != 0) CHECK_ERRNO(open("c", O_RDONLY), EACCES);
    // An existing file keeps its mode.
    CHECK_OK(close(CHECK_OK(open("a", O_WRONLY | O_CREAT, 0777))));
    CHECK_OK(stat("a", &st));
    CHECK_EQ(st.st_mode & 07777, 0750);
}

CASE(trunc) {
    enter();
    int fd = make("f", "hello");
    CHECK_EQ(look("f").st_size, 5);
    int w = CHECK_OK(open("f", O_WRONLY | O_TRUNC));
    CHECK_EQ(look("f").st_size, 0);
    // Another descriptor's offset stays; a write there makes a hole.
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), 5);
    CHECK_EQ(write(fd, "!", 1), 1);
    char buf[8];
    CHECK_EQ(pread(fd, buf, 8, 0), 6);
    CHECK_EQ(memcmp(buf, "\0\0\0\0\0!", 6), 0);
    CHECK_OK(close(w));
    struct stat st;
    CHECK_OK(chmod("f", 0444));
    if (geteuid() != 0) {
        CHECK_ERRNO(open("f", O_WRONLY | O_TRUNC), EACCES);
        CHECK_ERRNO(open("f", O_RDONLY | O_TRUNC), EACCES);
        CHECK_OK(stat("f", &st));
        CHECK_EQ(st.st_size, 6);
    }
}

CASE(append) {
    enter();
    int fd = make("f", "abc");
    int a = CHECK_OK(open("f", O_RDWR | O_APPEND));
    CHECK_EQ(lseek(a, 0, SEEK_CUR), 0);
    CHECK_EQ(write(a, "d", 1), 1);
    CHECK_EQ(lseek(a, 0, SEEK_CUR), 4);
    CHECK_EQ(lseek(a, 1, SEEK_SET), 1);
    CHECK_EQ(write(a, "e", 1), 1);
    CHECK_EQ(lseek(a, 0, SEEK_CUR), 5);
    // Linux: pwrite appends too on an O_APPEND description, and leaves the offset.
    CHECK_EQ(pwrite(a, "f", 1, 0), 1);
    CHECK_EQ(lseek(a, 0, SEEK_CUR), 5);
    char buf[8] = {0};
    CHECK_EQ(pread(fd, buf, 8, 0), 6);
    CHECK_STR(buf, "abcdef");
    CHECK_EQ(fcntl(a, F_GETFL) & (O_APPEND | O_ACCMODE), O_APPEND | O_RDWR);
}

CASE(access_modes) {
    enter();
    make("f", "abc");
    char c;
    int r = CHECK_OK(open("f", O_RDONLY)), w = CHECK_OK(open("f", O_WRONLY)), none = CHECK_OK(open("f", 3));
    CHECK_ERRNO(write(r, "x", 1), EBADF);
    CHECK_ERRNO(pwrite(r, "x", 1, 0), EBADF);
    CHECK_ERRNO(ftruncate(r, 0), EINVAL);
    CHECK_ERRNO(fallocate(r, 0, 0, 10), EBADF);
    CHECK_ERRNO(read(w, &c, 1), EBADF);
    CHECK_ERRNO(pread(w, &c, 1, 0), EBADF);
    // Access mode 3 wants read and write permission and gives neither: for ioctl only.
    CHECK_ERRNO(read(none, &c, 1), EBADF);
    CHECK_ERRNO(write(none, "x", 1), EBADF);
    CHECK_EQ(fcntl(none, F_GETFL) & O_ACCMODE, 3);
    CHECK_EQ(fcntl(r, F_GETFL), 0100000);  // O_LARGEFILE is always there on 64 bit
    CHECK_EQ(fcntl(w, F_GETFL), 0100001);
}

CASE(directory_flag) {
    enter();
    make("f", "");
    CHECK_OK(mkdir("d", 0755));
    CHECK_OK(symlink("d", "l"));
    CHECK_ERRNO(open("f", O_RDONLY | O_DIRECTORY), ENOTDIR);
    CHECK_OK(open("d", O_RDONLY | O_DIRECTORY));
    CHECK_OK(open("l", O_RDONLY | O_DIRECTORY));
    CHECK_ERRNO(open("l", O_RDONLY | O_DIRECTORY | O_NOFOLLOW), ENOTDIR);
    CHECK_ERRNO(open("none", O_RDONLY | O_DIRECTORY), ENOENT);
    // O_CREAT with O_DIRECTORY is refused, and creates nothing (since 6.4).
    CHECK_ERRNO(open("new", O_RDONLY | O_CREAT | O_DIRECTORY, 0644), EINVAL);
    CHECK_ERRNO(access("new", F_OK), ENOENT);
    CHECK_ERRNO(open("d", O_WRONLY), EISDIR);
    CHECK_ERRNO(open("d", O_RDWR), EISDIR);
    CHECK_ERRNO(open("d", O_RDONLY | O_CREAT, 0644), EISDIR);
    CHECK_ERRNO(open("d", O_RDONLY | O_TRUNC), EISDIR);
    char c;
    int d = CHECK_OK(open("d", O_RDONLY));
    CHECK_ERRNO(read(d, &c, 1), EISDIR);
    CHECK_ERRNO(pread(d, &c, 1, 0), EISDIR);
    CHECK_ERRNO(write(d, &c, 1), EBADF);
}

CASE(nofollow) {
    enter();
    make("f", "");
    CHECK_OK(mkdir("d", 0755));
    CHECK_OK(symlink("f", "l"));
    CHECK_OK(symlink("d", "ld"));
    CHECK_OK(symlink("none", "dangling"));
    CHECK_ERRNO(open("l", O_RDONLY | O_NOFOLLOW), ELOOP);
    CHECK_ERRNO(open("dangling", O_RDONLY | O_NOFOLLOW), ELOOP);
    CHECK_ERRNO(open("dangling", O_WRONLY | O_CREAT | O_NOFOLLOW, 0644), ELOOP);
    CHECK_OK(open("f", O_RDONLY | O_NOFOLLOW));
    // Only the last component counts; a trailing slash makes the link no longer last.
    make("d/x", "");
    CHECK_OK(open("ld/x", O_RDONLY | O_NOFOLLOW));
    CHECK_OK(open("ld/", O_RDONLY | O_NOFOLLOW));
    CHECK_OK(open("ld/.", O_RDONLY | O_NOFOLLOW));
}

CASE(cloexec) {
    enter();
    make("f", "");
    int a = CHECK_OK(open("f", O_RDONLY)), b = CHECK_OK(open("f", O_RDONLY | O_CLOEXEC));
    CHECK_EQ(fcntl(a, F_GETFD), 0);
    CHECK_EQ(fcntl(b, F_GETFD), FD_CLOEXEC);
    CHECK_EQ(fcntl(b, F_GETFL) & O_CLOEXEC, 0);
    char sa[12], sb[12];
    snprintf(sa, sizeof sa, "%d", a);
    snprintf(sb, sizeof sb, "%d", b);
    IN_CHILD({
        execl(check_self, check_self, "@held", sa, sb, NULL);
        FAIL("exec");
    });
}

HELPER(held) {
    CHECK_EQ(argc, 4);
    CHECK_OK(fcntl(atoi(argv[2]), F_GETFD));
    CHECK_ERRNO(fcntl(atoi(argv[3]), F_GETFD), EBADF);
}

CASE(tmpfile) {
    enter();
    int fd = open(".", O_TMPFILE | O_RDWR, 0640);
    if (fd == -1 && errno == EOPNOTSUPP) SKIP("no O_TMPFILE here");
    CHECK_GE(fd, 0);
    struct stat st, named;
    CHECK_OK(fstat(fd, &st));
    CHECK_EQ(st.st_mode, S_IFREG | 0640);
    CHECK_EQ(st.st_nlink, 0);
    CHECK_EQ(write(fd, "data", 4), 4);
    CHECK_ERRNO(open(".", O_TMPFILE | O_RDONLY, 0600), EINVAL);
    CHECK_OK(mkdir("d", 0755));
    CHECK_OK(close(CHECK_OK(open("d", O_TMPFILE | O_WRONLY, 0600))));
    CHECK_OK(rmdir("d"));
    make("f", "");
    CHECK_ERRNO(open("f", O_TMPFILE | O_RDWR, 0600), ENOTDIR);
    CHECK_ERRNO(open("none", O_TMPFILE | O_RDWR, 0600), ENOENT);
    // A name by way of /proc/self/fd; AT_EMPTY_PATH is for the privileged (or one's own, since 6.10).
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    CHECK_OK(linkat(AT_FDCWD, path, AT_FDCWD, "named", AT_SYMLINK_FOLLOW));
    CHECK_OK(stat("named", &named));
    CHECK_EQ(named.st_ino, st.st_ino);
    CHECK_EQ(named.st_dev, st.st_dev);
    CHECK_EQ(named.st_nlink, 1);
    CHECK_EQ(named.st_size, 4);
    CHECK_ERRNO(linkat(AT_FDCWD, path, AT_FDCWD, "named", AT_SYMLINK_FOLLOW), EEXIST);
    if (geteuid() == 0) {
        CHECK_OK(linkat(fd, "", AT_FDCWD, "second", AT_EMPTY_PATH));
        CHECK_OK(stat("second", &named));
        CHECK_EQ(named.st_nlink, 2);
    }
    // With O_EXCL it can never get a name.
    fd = CHECK_OK(open(".", O_TMPFILE | O_RDWR | O_EXCL, 0600));
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    CHECK_ERRNO(linkat(AT_FDCWD, path, AT_FDCWD, "never", AT_SYMLINK_FOLLOW), ENOENT);
}

CASE(openat_dirfd) {
    enter();
    CHECK_OK(mkdir("d", 0755));
    int f = make("d/f", "in d");
    int d = CHECK_OK(open("d", O_RDONLY | O_DIRECTORY));
    CHECK_OK(openat(d, "f", O_RDONLY));
    CHECK_ERRNO(openat(d, "../none", O_RDONLY), ENOENT);
    CHECK_OK(openat(d, "../d/f", O_RDONLY));
    CHECK_ERRNO(openat(f, "x", O_RDONLY), ENOTDIR);
    CHECK_ERRNO(openat(999, "x", O_RDONLY), EBADF);
    CHECK_ERRNO(openat(999, "", O_RDONLY), ENOENT);
    CHECK_ERRNO(openat(-1, "x", O_RDONLY), EBADF);
    CHECK_OK(openat(-1, "/", O_RDONLY));  // absolute: the descriptor is not looked at
    CHECK_OK(rename("d", "moved"));       // a descriptor follows its directory
    CHECK_OK(openat(d, "f", O_RDONLY));
    CHECK_OK(unlink("moved/f"));
    CHECK_OK(rmdir("moved"));
    CHECK_ERRNO(openat(d, "f", O_RDONLY), ENOENT);
    CHECK_ERRNO(openat(d, "new", O_WRONLY | O_CREAT, 0644), ENOENT);
    CHECK_OK(openat(d, ".", O_RDONLY));
    CHECK_ERRNO(openat(d, "f", O_RDONLY | O_PATH), ENOENT);
}

CASE(permissions) {
    enter_as_user();
    make("f", "x");
    CHECK_OK(mkdir("d", 0755));
    make("d/g", "x");
    CHECK_OK(chmod("f", 0200));
    CHECK_ERRNO(open("f", O_RDONLY), EACCES);
    CHECK_ERRNO(open("f", O_RDWR), EACCES);
    CHECK_ERRNO(open("f", 3), EACCES);
    CHECK_OK(open("f", O_WRONLY));
    CHECK_OK(chmod("f", 0077));  // the owner's bits alone count for the owner
    CHECK_ERRNO(open("f", O_RDONLY), EACCES);
    CHECK_OK(chmod("d", 0555));
    CHECK_ERRNO(open("d/new", O_WRONLY | O_CREAT, 0644), EACCES);
    CHECK_OK(open("d/g", O_WRONLY | O_CREAT, 0644));
    CHECK_ERRNO(open("d", O_TMPFILE | O_RDWR, 0600), EACCES);
    CHECK_OK(chmod("d", 0333));
    CHECK_ERRNO(open("d", O_RDONLY), EACCES);
    CHECK_OK(open("d/g", O_RDONLY));
    CHECK_OK(chmod("d", 0666));
    CHECK_ERRNO(open("d/g", O_RDONLY), EACCES);
    CHECK_ERRNO(open("d/none", O_RDONLY), EACCES);
    CHECK_OK(open("d", O_RDONLY));
    CHECK_OK(chmod("d", 0755));
}

CASE(noatime_is_the_owners) {
    enter();
    make("f", "x");
    CHECK_OK(open("f", O_RDONLY | O_NOATIME));
    if (geteuid() != 0) CHECK_ERRNO(open("/etc/passwd", O_RDONLY | O_NOATIME), EPERM);
}

CASE(raw_flags) {
    enter();
    make("f", "x");
    // open ignores flags that it does not know; creat is open with three flags.
    CHECK_OK(syscall(SYS_open, "f", O_RDONLY | 0x8000000, 0));
    int fd = CHECK_OK(syscall(SYS_creat, "f", 0600));
    CHECK_EQ(look("f").st_size, 0);
    CHECK_EQ(fcntl(fd, F_GETFL) & O_ACCMODE, O_WRONLY);
    CHECK_ERRNO(syscall(SYS_open, NULL, O_RDONLY, 0), EFAULT);
    CHECK_ERRNO(syscall(SYS_open, (void *)-4096L, O_RDONLY, 0), EFAULT);
    CHECK_ERRNO(open("", O_RDONLY), ENOENT);
    CHECK_ERRNO(open("", O_RDONLY | O_CREAT, 0644), ENOENT);
}

CASE(status_flags_after_open) {
    enter();
    make("f", "x");
    int fd = CHECK_OK(open("f", O_RDWR | O_NONBLOCK | O_APPEND | O_SYNC));
    CHECK_EQ(fcntl(fd, F_GETFL), O_RDWR | O_NONBLOCK | O_APPEND | O_SYNC | 0100000);
    fd = CHECK_OK(open("f", O_RDWR | O_DSYNC | O_NOFOLLOW));
    CHECK_EQ(fcntl(fd, F_GETFL) & (O_DSYNC | O_NOFOLLOW), O_DSYNC | O_NOFOLLOW);
    // The flags of creation are gone.
    fd = CHECK_OK(open("g", O_RDWR | O_CREAT | O_EXCL | O_TRUNC | O_NOCTTY, 0644));
    CHECK_EQ(fcntl(fd, F_GETFL), O_RDWR | 0100000);
}

MAIN
