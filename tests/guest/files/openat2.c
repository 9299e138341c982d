// build: static
// openat2: the size rules of struct open_how, the checks that open does not make, and every RESOLVE_ flag.
#include "tree.h"
#include <linux/openat2.h>

static int open2(int at, const char *path, uint64_t flags, uint64_t mode, uint64_t resolve) {
    struct open_how how = {flags, mode, resolve};
    return syscall(SYS_openat2, at, path, &how, sizeof how);
}

static void prepare(void) {
    enter();
    CHECK_OK(mkdir("d", 0755));
    CHECK_OK(mkdir("d/sub", 0755));
    CHECK_OK(close(make("f", "out")));
    CHECK_OK(close(make("d/f", "in")));
    CHECK_OK(symlink("f", "d/same"));
    CHECK_OK(symlink("../f", "d/up"));
    CHECK_OK(symlink("/etc/passwd", "d/abs"));
    CHECK_OK(symlink("/f", "d/rooted"));
    CHECK_OK(symlink("/proc/self/exe", "d/magic"));
    CHECK_OK(symlink("sub", "d/dirlink"));
}

static void expect_text(int fd, const char *text) {
    char buf[16] = {0};
    CHECK_GE(fd, 0);
    CHECK_OK(read(fd, buf, 15));
    CHECK_STR(buf, text);
    CHECK_OK(close(fd));
}

CASE(works_as_openat) {
    prepare();
    int d = CHECK_OK(open("d", O_PATH));
    expect_text(open2(d, "f", O_RDONLY, 0, 0), "in");
    expect_text(open2(AT_FDCWD, "f", O_RDONLY, 0, 0), "out");
    expect_text(open2(d, "up", O_RDONLY, 0, 0), "out");
    int fd = CHECK_OK(open2(d, "new", O_CREAT | O_EXCL | O_WRONLY, 0640, 0));
    CHECK_EQ(flook(fd).st_mode, S_IFREG | 0640);
    CHECK_ERRNO(open2(d, "new", O_CREAT | O_EXCL | O_WRONLY, 0640, 0), EEXIST);
    CHECK_ERRNO(open2(999, "f", O_RDONLY, 0, 0), EBADF);
    CHECK_ERRNO(open2(AT_FDCWD, "", O_RDONLY, 0, 0), ENOENT);
    fd = CHECK_OK(open2(d, "f", O_RDONLY | O_CLOEXEC, 0, 0));
    CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
    CHECK_EQ(fcntl(fd, F_GETFL), 0100000);
}

CASE(size_rules) {
    prepare();
    struct {
        struct open_how how;
        uint64_t more[600];
    } big = {.how = {O_RDONLY, 0, 0}};
    CHECK_ERRNO(syscall(SYS_openat2, AT_FDCWD, "f", &big, 0), EINVAL);
    CHECK_ERRNO(syscall(SYS_openat2, AT_FDCWD, "f", &big, 23), EINVAL);
    CHECK_OK(syscall(SYS_openat2, AT_FDCWD, "f", &big, 24));
    CHECK_OK(syscall(SYS_openat2, AT_FDCWD, "f", &big, 25));
    CHECK_OK(syscall(SYS_openat2, AT_FDCWD, "f", &big, 4096));
    CHECK_ERRNO(syscall(SYS_openat2, AT_FDCWD, "f", &big, 4097), E2BIG);
    big.more[3] = 1;  // what a newer caller might mean must be nothing
    CHECK_ERRNO(syscall(SYS_openat2, AT_FDCWD, "f", &big, 4096), E2BIG);
    CHECK_OK(syscall(SYS_openat2, AT_FDCWD, "f", &big, 48));
    CHECK_ERRNO(syscall(SYS_openat2, AT_FDCWD, "f", NULL, 24), EFAULT);
    CHECK_ERRNO(syscall(SYS_openat2, AT_FDCWD, NULL, &big, 24), EFAULT);
    CHECK_ERRNO(syscall(SYS_openat2, AT_FDCWD, "f", NULL, 5), EINVAL);
}

CASE(invalid_arguments) {
    prepare();
    CHECK_ERRNO(open2(AT_FDCWD, "f", 1ull << 40, 0, 0), EINVAL);
    CHECK_ERRNO(open2(AT_FDCWD, "f", 0x80000000ull, 0, 0), EINVAL);
    CHECK_ERRNO(open2(AT_FDCWD, "f", 04, 0, 0), EINVAL);
    CHECK_ERRNO(open2(AT_FDCWD, "f", O_RDONLY, 0644, 0), EINVAL);  // a mode without anything to create
    CHECK_ERRNO(open2(AT_FDCWD, "n", O_CREAT | O_WRONLY, 010000, 0), EINVAL);
    CHECK_ERRNO(open2(AT_FDCWD, "n", O_CREAT | O_WRONLY, 1ull << 32, 0), EINVAL);
    CHECK_ERRNO(open2(AT_FDCWD, "f", O_RDONLY, 0, 0x40), EINVAL);
    CHECK_ERRNO(open2(AT_FDCWD, "f", O_RDONLY, 0, 1ull << 63), EINVAL);
    CHECK_ERRNO(open2(AT_FDCWD, "d", O_RDONLY, 0, RESOLVE_BENEATH | RESOLVE_IN_ROOT), EINVAL);
    // O_PATH with what it would silently ignore in open.
    CHECK_ERRNO(open2(AT_FDCWD, "f", O_PATH | O_RDWR, 0, 0), EINVAL);
    CHECK_ERRNO(open2(AT_FDCWD, "f", O_PATH | O_NONBLOCK, 0, 0), EINVAL);
    CHECK_ERRNO(open2(AT_FDCWD, "f", O_PATH | O_CREAT, 0644, 0), EINVAL);
    CHECK_OK(open2(AT_FDCWD, "f", O_PATH | O_NOFOLLOW | O_CLOEXEC, 0, 0));
    CHECK_OK(open2(AT_FDCWD, "d", O_PATH | O_DIRECTORY, 0, 0));
    CHECK_ERRNO(open2(AT_FDCWD, "n", O_CREAT | O_DIRECTORY, 0644, 0), EINVAL);
    CHECK_ERRNO(open2(AT_FDCWD, ".", O_TMPFILE | O_RDONLY, 0600, 0), EINVAL);
    CHECK_ERRNO(open2(AT_FDCWD, ".", (O_TMPFILE & ~O_DIRECTORY) | O_RDWR, 0600, 0), EINVAL);
    CHECK_ERRNO(access("n", F_OK), ENOENT);
    int fd = open2(AT_FDCWD, ".", O_TMPFILE | O_RDWR, 0600, 0);
    CHECK(fd >= 0 || errno == EOPNOTSUPP);
}

CASE(no_symlinks) {
    prepare();
    CHECK_ERRNO(open2(AT_FDCWD, "d/same", O_RDONLY, 0, RESOLVE_NO_SYMLINKS), ELOOP);
    CHECK_ERRNO(open2(AT_FDCWD, "d/dirlink/.", O_RDONLY, 0, RESOLVE_NO_SYMLINKS), ELOOP);
    CHECK_OK(open2(AT_FDCWD, "d/f", O_RDONLY, 0, RESOLVE_NO_SYMLINKS));
    CHECK_OK(open2(AT_FDCWD, "d/sub/../f", O_RDONLY, 0, RESOLVE_NO_SYMLINKS));
    // The link itself may still be held.
    CHECK_OK(open2(AT_FDCWD, "d/same", O_PATH | O_NOFOLLOW, 0, RESOLVE_NO_SYMLINKS));
    CHECK_ERRNO(open2(AT_FDCWD, "/proc/self/fd/0", O_RDONLY, 0, RESOLVE_NO_SYMLINKS), ELOOP);
}

CASE(no_magiclinks) {
    prepare();
    int f = CHECK_OK(open("f", O_RDONLY));
    CHECK_ERRNO(open2(AT_FDCWD, proc_fd(f), O_RDONLY, 0, RESOLVE_NO_MAGICLINKS), ELOOP);
    CHECK_ERRNO(open2(AT_FDCWD, "d/magic", O_RDONLY, 0, RESOLVE_NO_MAGICLINKS), ELOOP);
    CHECK_ERRNO(open2(AT_FDCWD, "/proc/self/cwd/f", O_RDONLY, 0, RESOLVE_NO_MAGICLINKS), ELOOP);
    // /proc/self is an ordinary symlink.
    CHECK_OK(open2(AT_FDCWD, "/proc/self/stat", O_RDONLY, 0, RESOLVE_NO_MAGICLINKS));
    CHECK_OK(open2(AT_FDCWD, "d/same", O_RDONLY, 0, RESOLVE_NO_MAGICLINKS));
    CHECK_OK(open2(AT_FDCWD, proc_fd(f), O_PATH | O_NOFOLLOW, 0, RESOLVE_NO_MAGICLINKS));
}

CASE(beneath) {
    prepare();
    int d = CHECK_OK(open("d", O_PATH));
    expect_text(open2(d, "f", O_RDONLY, 0, RESOLVE_BENEATH), "in");
    expect_text(open2(d, "same", O_RDONLY, 0, RESOLVE_BENEATH), "in");
    expect_text(open2(d, "sub/../f", O_RDONLY, 0, RESOLVE_BENEATH), "in");
    expect_text(open2(d, "dirlink/../f", O_RDONLY, 0, RESOLVE_BENEATH), "in");
    CHECK_ERRNO(open2(d, "..", O_RDONLY, 0, RESOLVE_BENEATH), EXDEV);
    CHECK_ERRNO(open2(d, "../d/f", O_RDONLY, 0, RESOLVE_BENEATH), EXDEV);
    CHECK_ERRNO(open2(d, "sub/../../d/f", O_RDONLY, 0, RESOLVE_BENEATH), EXDEV);
    CHECK_ERRNO(open2(d, "up", O_RDONLY, 0, RESOLVE_BENEATH), EXDEV);
    CHECK_ERRNO(open2(d, "abs", O_RDONLY, 0, RESOLVE_BENEATH), EXDEV);
    CHECK_ERRNO(open2(d, "/", O_RDONLY, 0, RESOLVE_BENEATH), EXDEV);
    CHECK_ERRNO(open2(d, "/etc/passwd", O_RDONLY, 0, RESOLVE_BENEATH), EXDEV);
    CHECK_ERRNO(open2(AT_FDCWD, "../x", O_RDONLY, 0, RESOLVE_BENEATH), EXDEV);
    CHECK_ERRNO(open2(d, "none", O_RDONLY, 0, RESOLVE_BENEATH), ENOENT);
    CHECK_OK(open2(d, "sub/new", O_RDWR | O_CREAT, 0600, RESOLVE_BENEATH));
    CHECK_ERRNO(open2(d, "../new", O_RDWR | O_CREAT, 0600, RESOLVE_BENEATH), EXDEV);
    CHECK_ERRNO(access("new", F_OK), ENOENT);
    int root = CHECK_OK(open("/", O_PATH));
    CHECK_ERRNO(open2(root, "proc/self/cwd/f", O_RDONLY, 0, RESOLVE_BENEATH), EXDEV);
    CHECK_ERRNO(open2(root, "..", O_RDONLY, 0, RESOLVE_BENEATH), EXDEV);
}

CASE(in_root) {
    prepare();
    int d = CHECK_OK(open("d", O_PATH));
    expect_text(open2(d, "/f", O_RDONLY, 0, RESOLVE_IN_ROOT), "in");
    expect_text(open2(d, "rooted", O_RDONLY, 0, RESOLVE_IN_ROOT), "in");
    expect_text(open2(d, "up", O_RDONLY, 0, RESOLVE_IN_ROOT), "in");
    expect_text(open2(d, "../../../f", O_RDONLY, 0, RESOLVE_IN_ROOT), "in");
    expect_text(open2(d, "/sub/../../f", O_RDONLY, 0, RESOLVE_IN_ROOT), "in");
    CHECK_ERRNO(open2(d, "abs", O_RDONLY, 0, RESOLVE_IN_ROOT), ENOENT);
    CHECK_ERRNO(open2(d, "/etc/passwd", O_RDONLY, 0, RESOLVE_IN_ROOT), ENOENT);
    int a = CHECK_OK(open2(d, "..", O_PATH, 0, RESOLVE_IN_ROOT)), b = CHECK_OK(open2(d, "/", O_PATH, 0, RESOLVE_IN_ROOT));
    CHECK_EQ(flook(a).st_ino, flook(d).st_ino);
    CHECK_EQ(flook(b).st_ino, flook(d).st_ino);
    // Magic links would leave the root.
    int root = CHECK_OK(open("/", O_PATH));
    CHECK_ERRNO(open2(root, "/proc/self/cwd/f", O_RDONLY, 0, RESOLVE_IN_ROOT), EXDEV);
    CHECK_OK(open2(root, "/proc/self/stat", O_RDONLY, 0, RESOLVE_IN_ROOT));
    CHECK_OK(open2(d, "/made", O_RDWR | O_CREAT, 0600, RESOLVE_IN_ROOT));
    CHECK_OK(access("d/made", F_OK));
}

CASE(no_xdev) {
    prepare();
    int root = CHECK_OK(open("/", O_PATH));
    CHECK_ERRNO(open2(root, "proc", O_RDONLY, 0, RESOLVE_NO_XDEV), EXDEV);
    CHECK_ERRNO(open2(root, "proc/stat", O_RDONLY, 0, RESOLVE_NO_XDEV), EXDEV);
    CHECK_ERRNO(open2(AT_FDCWD, "/proc/stat", O_RDONLY, 0, RESOLVE_NO_XDEV), EXDEV);
    CHECK_OK(open2(root, "etc", O_RDONLY, 0, RESOLVE_NO_XDEV));
    CHECK_OK(open2(AT_FDCWD, "d/sub/../f", O_RDONLY, 0, RESOLVE_NO_XDEV));
    int proc = CHECK_OK(open("/proc", O_PATH));
    CHECK_OK(open2(proc, "stat", O_RDONLY, 0, RESOLVE_NO_XDEV));
    CHECK_ERRNO(open2(proc, "..", O_RDONLY, 0, RESOLVE_NO_XDEV), EXDEV);
    CHECK_ERRNO(open2(proc, "self/cwd", O_RDONLY, 0, RESOLVE_NO_XDEV), EXDEV);
}

CASE(cached_may_refuse_but_not_lie) {
    prepare();
    int fd = open2(AT_FDCWD, "d/f", O_RDONLY, 0, RESOLVE_CACHED);
    if (fd == -1)
        CHECK_EQ(errno, EAGAIN);
    else
        expect_text(fd, "in");
    fd = open2(AT_FDCWD, "d/none", O_RDONLY, 0, RESOLVE_CACHED);
    CHECK(fd == -1 && (errno == EAGAIN || errno == ENOENT));
    // What must do more than look is refused outright.
    CHECK_ERRNO(open2(AT_FDCWD, "d/f", O_RDWR | O_TRUNC, 0, RESOLVE_CACHED), EAGAIN);
    CHECK_ERRNO(open2(AT_FDCWD, "d/n", O_RDWR | O_CREAT, 0600, RESOLVE_CACHED), EAGAIN);
    CHECK_STR(content("d/f"), "in");
}

MAIN
