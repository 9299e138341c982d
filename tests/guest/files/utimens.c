// build: static
// utimensat and its elders: UTIME_NOW, UTIME_OMIT, permissions, symlinks, argument checks.
#include "tree.h"
#include <sys/time.h>
#include <utime.h>

static long set(int at, const char *path, const struct timespec *t, int flags) {
    return syscall(SYS_utimensat, at, path, t, flags);
}

CASE(both_times) {
    enter();
    make("f", "");
    struct timespec t[2] = {{100, 1}, {200, 999999999}};
    CHECK_OK(set(AT_FDCWD, "f", t, 0));
    struct stat st = look("f");
    CHECK_EQ(st.st_atim.tv_sec, 100);
    CHECK_EQ(st.st_atim.tv_nsec, 1);
    CHECK_EQ(st.st_mtim.tv_sec, 200);
    CHECK_EQ(st.st_mtim.tv_nsec, 999999999);
    CHECK_LE(labs(time(NULL) - st.st_ctim.tv_sec), 60);  // the change itself is dated now
}

CASE(now_and_omit) {
    enter();
    make("f", "");
    struct timespec old[2] = {{100, 5}, {200, 6}};
    struct timespec t[2] = {{77, UTIME_OMIT}, {77, UTIME_NOW}};  // the seconds mean nothing here
    CHECK_OK(set(AT_FDCWD, "f", old, 0));
    CHECK_OK(set(AT_FDCWD, "f", t, 0));
    struct stat st = look("f");
    CHECK_EQ(st.st_atim.tv_sec, 100);
    CHECK_EQ(st.st_atim.tv_nsec, 5);
    CHECK_LE(labs(time(NULL) - st.st_mtim.tv_sec), 60);
    CHECK_OK(set(AT_FDCWD, "f", old, 0));
    struct timespec both[2] = {{0, UTIME_OMIT}, {0, UTIME_OMIT}};
    st = look("f");
    CHECK_OK(set(AT_FDCWD, "f", both, 0));
    CHECK_EQ(look("f").st_ctim.tv_nsec, st.st_ctim.tv_nsec);
    CHECK_OK(set(AT_FDCWD, "none", both, 0));  // nothing to do: not even looked up
    CHECK_OK(set(AT_FDCWD, "f", NULL, 0));
    CHECK_LE(labs(time(NULL) - look("f").st_atim.tv_sec), 60);
}

CASE(links_and_descriptors) {
    enter();
    int fd = make("f", "");
    CHECK_OK(symlink("f", "l"));
    struct timespec a[2] = {{100, 0}, {100, 0}}, b[2] = {{300, 0}, {300, 0}};
    CHECK_OK(set(AT_FDCWD, "l", a, 0));
    CHECK_EQ(look("f").st_mtim.tv_sec, 100);
    CHECK_OK(set(AT_FDCWD, "l", b, AT_SYMLINK_NOFOLLOW));
    CHECK_EQ(look("l").st_mtim.tv_sec, 300);
    CHECK_EQ(look("f").st_mtim.tv_sec, 100);
    CHECK_OK(set(fd, NULL, b, 0));
    CHECK_EQ(look("f").st_mtim.tv_sec, 300);
    int p = CHECK_OK(open("f", O_PATH));
    CHECK_ERRNO(set(p, NULL, a, 0), EBADF);
    CHECK_OK(set(p, "", a, AT_EMPTY_PATH));
    CHECK_EQ(look("f").st_mtim.tv_sec, 100);
    int d = CHECK_OK(open(".", O_PATH));
    CHECK_OK(set(d, "f", b, 0));
    CHECK_EQ(look("f").st_mtim.tv_sec, 300);
}

CASE(arguments) {
    enter();
    int fd = make("f", "");
    struct timespec good[2] = {{1, 1}, {1, 1}}, bad[2] = {{1, 1000000000}, {1, 1}}, neg[2] = {{1, 1}, {1, -1}};
    CHECK_ERRNO(set(AT_FDCWD, "f", bad, 0), EINVAL);
    CHECK_ERRNO(set(AT_FDCWD, "f", neg, 0), EINVAL);
    CHECK_ERRNO(set(AT_FDCWD, "none", good, 0), ENOENT);
    CHECK_ERRNO(set(AT_FDCWD, "", good, 0), ENOENT);
    CHECK_ERRNO(set(AT_FDCWD, NULL, good, 0), EFAULT);
    CHECK_ERRNO(set(AT_FDCWD, "f", nowhere, 0), EFAULT);
    CHECK_ERRNO(set(AT_FDCWD, nowhere, good, 0), EFAULT);
    CHECK_ERRNO(set(AT_FDCWD, "f", good, 0x8000), EINVAL);
    CHECK_ERRNO(set(fd, NULL, good, AT_SYMLINK_NOFOLLOW), EINVAL);
    CHECK_ERRNO(set(999, NULL, good, 0), EBADF);
    CHECK_ERRNO(set(999, "f", good, 0), EBADF);
    CHECK_ERRNO(set(AT_FDCWD, "f/x", good, 0), ENOTDIR);
}

CASE(elder_calls) {
    enter();
    make("f", "");
    struct timeval tv[2] = {{10, 500000}, {20, 250000}};
    CHECK_OK(syscall(SYS_utimes, "f", tv));
    CHECK_EQ(look("f").st_atim.tv_nsec, 500000000);
    CHECK_EQ(look("f").st_mtim.tv_sec, 20);
    CHECK_EQ(look("f").st_mtim.tv_nsec, 250000000);
    tv[0].tv_usec = 1000000;
    CHECK_ERRNO(syscall(SYS_utimes, "f", tv), EINVAL);
    tv[0].tv_usec = -1;
    CHECK_ERRNO(syscall(SYS_utimes, "f", tv), EINVAL);
    struct utimbuf ub = {1234, 5678};
    CHECK_OK(syscall(SYS_utime, "f", &ub));
    CHECK_EQ(look("f").st_atim.tv_sec, 1234);
    CHECK_EQ(look("f").st_mtim.tv_sec, 5678);
    CHECK_EQ(look("f").st_mtim.tv_nsec, 0);
    CHECK_OK(syscall(SYS_utime, "f", NULL));
    CHECK_GT(look("f").st_mtim.tv_sec, 5678);
    tv[0].tv_usec = 1;
    CHECK_OK(syscall(SYS_futimesat, AT_FDCWD, "f", tv));
    CHECK_EQ(look("f").st_mtim.tv_sec, 20);
    CHECK_ERRNO(syscall(SYS_utime, "none", &ub), ENOENT);
}

CASE(permissions) {
    NEED_ROOT();
    enter();
    int fd = make("f", "");
    CHECK_OK(chmod("f", 0666));
    CHECK_OK(close(make("g", "")));
    CHECK_OK(close(make("own", "")));
    CHECK_OK(chown("own", 65534, 65534));
    CHECK_OK(chmod("own", 0));
    be_user();
    struct timespec t[2] = {{1, 1}, {1, 1}}, now[2] = {{0, UTIME_NOW}, {0, UTIME_NOW}};
    struct timespec mix[2] = {{0, UTIME_NOW}, {0, UTIME_OMIT}}, none[2] = {{0, UTIME_OMIT}, {0, UTIME_OMIT}};
    // Write permission allows "now" for both; any other value is the owner's.
    CHECK_OK(set(AT_FDCWD, "f", NULL, 0));
    CHECK_OK(set(AT_FDCWD, "f", now, 0));
    CHECK_ERRNO(set(AT_FDCWD, "f", t, 0), EPERM);
    CHECK_ERRNO(set(AT_FDCWD, "f", mix, 0), EPERM);
    CHECK_ERRNO(set(fd, NULL, t, 0), EPERM);
    CHECK_ERRNO(set(AT_FDCWD, "g", NULL, 0), EACCES);
    CHECK_ERRNO(set(AT_FDCWD, "g", now, 0), EACCES);
    CHECK_ERRNO(set(AT_FDCWD, "g", t, 0), EPERM);
    CHECK_OK(set(AT_FDCWD, "g", none, 0));
    CHECK_OK(set(AT_FDCWD, "own", t, 0));
    CHECK_OK(set(AT_FDCWD, "own", NULL, 0));
}

CASE(extremes) {
    enter();
    make("f", "");
    struct timespec t[2] = {{0, 0}, {INT32_MAX, 0}};
    CHECK_OK(set(AT_FDCWD, "f", t, 0));
    CHECK_EQ(look("f").st_mtim.tv_sec, INT32_MAX);
    CHECK_EQ(look("f").st_atim.tv_sec, 0);
    t[0].tv_sec = -1000000000, t[1].tv_sec = 10000000000;  // before 1970 and after 2038
    CHECK_OK(set(AT_FDCWD, "f", t, 0));
    CHECK_EQ(look("f").st_atim.tv_sec, -1000000000);
    CHECK_EQ(look("f").st_mtim.tv_sec, 10000000000);
    // Survives writing by others and rename.
    CHECK_OK(rename("f", "g"));
    CHECK_EQ(look("g").st_mtim.tv_sec, 10000000000);
}

MAIN
