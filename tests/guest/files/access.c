// build: static
// access, faccessat, faccessat2: real against effective ids, flags, root's exceptions.
#include "tree.h"

static long access2(int at, const char *path, int mode, int flags) { return syscall(SYS_faccessat2, at, path, mode, flags); }

CASE(modes) {
    enter_as_user();
    make("f", "");
    for (int bits = 0; bits < 8; bits++) {
        CHECK_OK(chmod("f", bits << 6));
        for (int want = 0; want < 8; want++) {
            if ((bits & want) == want)
                CHECK_OK(access("f", want));
            else
                CHECK_ERRNO(access("f", want), EACCES);
        }
    }
    CHECK_OK(chmod("f", 0077));
    CHECK_ERRNO(access("f", R_OK), EACCES);
    CHECK_OK(access("f", F_OK));
    CHECK_ERRNO(access("f", 8), EINVAL);
    CHECK_ERRNO(access("none", 8), EINVAL);
    CHECK_ERRNO(access("none", F_OK), ENOENT);
    CHECK_ERRNO(access("f/x", F_OK), ENOTDIR);
    CHECK_ERRNO(access(nowhere, F_OK), EFAULT);
    CHECK_OK(access("/etc/passwd", R_OK));
    CHECK_ERRNO(access("/etc/passwd", W_OK), EACCES);
    CHECK_OK(access("/usr/bin/env", X_OK));
    CHECK_ERRNO(access("/etc/passwd", X_OK), EACCES);
    CHECK_OK(access("/dev/null", R_OK | W_OK));
}

CASE(root) {
    NEED_ROOT();
    enter();
    make("f", "");
    CHECK_OK(chmod("f", 0));
    CHECK_OK(access("f", R_OK | W_OK));
    CHECK_ERRNO(access("f", X_OK), EACCES);  // execution needs a bit, anyone's
    CHECK_OK(chmod("f", 0001));
    CHECK_OK(access("f", X_OK));
    CHECK_OK(mkdir("d", 0));
    CHECK_OK(access("d", R_OK | W_OK | X_OK));
    CHECK_OK(close(CHECK_OK(open("d/f", O_CREAT | O_RDWR, 0))));
    CHECK_OK(access("d/f", R_OK));
    CHECK_OK(open("f", O_RDWR));
}

CASE(real_and_effective) {
    NEED_ROOT();
    enter();
    make("f", "");
    CHECK_OK(chmod("f", 0600));
    CHECK_OK(mkdir("d", 0700));
    CHECK_OK(close(make("d/g", "")));
    CHECK_OK(setresuid(65534, 0, 0));  // as a set-user-id program of root has it
    CHECK_ERRNO(access("f", R_OK), EACCES);
    CHECK_ERRNO(access2(AT_FDCWD, "f", R_OK, 0), EACCES);
    CHECK_OK(access2(AT_FDCWD, "f", R_OK | W_OK, AT_EACCESS));
    CHECK_ERRNO(access("d/g", F_OK), EACCES);  // the walk itself is the real user's
    CHECK_OK(access2(AT_FDCWD, "d/g", F_OK, AT_EACCESS));
    CHECK_OK(open("f", O_RDWR));
    CHECK_EQ(geteuid(), 0);
    // The other way about: real root, effective nobody.
    CHECK_OK(setresuid(0, 65534, 0));
    CHECK_OK(access("f", R_OK));
    CHECK_ERRNO(access2(AT_FDCWD, "f", R_OK, AT_EACCESS), EACCES);
    CHECK_ERRNO(open("f", O_RDONLY), EACCES);
}

CASE(flags_and_descriptors) {
    enter();
    int fd = make("f", "");
    CHECK_OK(symlink("none", "dangling"));
    CHECK_OK(symlink("f", "l"));
    CHECK_ERRNO(access("dangling", F_OK), ENOENT);
    CHECK_OK(access2(AT_FDCWD, "dangling", F_OK, AT_SYMLINK_NOFOLLOW));
    CHECK_OK(access("l", R_OK));
    CHECK_OK(access2(fd, "", R_OK, AT_EMPTY_PATH));
    CHECK_ERRNO(access2(fd, "", R_OK, 0), ENOENT);
    CHECK_ERRNO(access2(AT_FDCWD, "f", R_OK, 0x8000), EINVAL);
    CHECK_ERRNO(access2(999, "f", R_OK, 0), EBADF);
    CHECK_ERRNO(access2(fd, "x", R_OK, 0), ENOTDIR);
    // The old call takes no flags: the fourth register means nothing.
    CHECK_OK(syscall(SYS_faccessat, AT_FDCWD, "l", R_OK, 0x8000));
    int d = CHECK_OK(open(".", O_PATH));
    CHECK_OK(syscall(SYS_faccessat, d, "f", F_OK));
}

CASE(supplementary_groups) {
    NEED_ROOT();
    enter();
    make("f", "");
    CHECK_OK(chown("f", 0, 4242));
    CHECK_OK(chmod("f", 0640));
    gid_t groups[2] = {1, 4242};
    CHECK_OK(setgroups(2, groups));
    CHECK_OK(setresgid(65534, 65534, 65534));
    CHECK_OK(setresuid(65534, 65534, 65534));
    CHECK_OK(access("f", R_OK));
    CHECK_ERRNO(access("f", W_OK), EACCES);
}

CASE(xattrs_are_consistent) {
    enter();
    int fd = make("f", "");
    char buf[64];
    long n = syscall(SYS_fsetxattr, fd, "user.test", "value", 5, 0);
    if (n == -1) {
        CHECK(errno == ENOTSUP || errno == ENOSYS);
        CHECK(syscall(SYS_fgetxattr, fd, "user.test", buf, 64) == -1);
        SKIP("no user attributes here");
    }
    CHECK_EQ(syscall(SYS_fgetxattr, fd, "user.test", buf, 64), 5);
    CHECK_EQ(memcmp(buf, "value", 5), 0);
    CHECK_ERRNO(syscall(SYS_fgetxattr, fd, "user.none", buf, 64), ENODATA);
    CHECK_ERRNO(syscall(SYS_fgetxattr, fd, "user.test", buf, 2), ERANGE);
    CHECK_EQ(syscall(SYS_fgetxattr, fd, "user.test", NULL, 0), 5);
    CHECK_OK(syscall(SYS_fremovexattr, fd, "user.test"));
    CHECK_ERRNO(syscall(SYS_fgetxattr, fd, "user.test", buf, 64), ENODATA);
}

MAIN
