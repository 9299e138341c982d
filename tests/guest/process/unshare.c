// build: static -pthread
// unshare without namespaces, and calls that a kernel may refuse, but only with the right error.
#include "clone.h"
#include <pthread.h>

static int unshare_(unsigned long flags) { return syscall(SYS_unshare, flags); }

static void *unshares_files(void *arg) {
    int fd = *(int *)arg;
    CHECK_OK(unshare_(CLONE_FILES));
    CHECK_OK(close(fd));
    CHECK_ERRNO(fcntl(fd, F_GETFD), EBADF);
    return NULL;
}

CASE(files) {
    int fd = CHECK_OK(open("/", O_RDONLY));
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, unshares_files, &fd), 0);
    CHECK_EQ(pthread_join(t, NULL), 0);
    CHECK_OK(fcntl(fd, F_GETFD));
    CHECK_OK(unshare_(CLONE_FILES));  // alone: no effect
    CHECK_OK(fcntl(fd, F_GETFD));
}

static void *unshares_fs(void *arg) {
    CHECK_OK(unshare_(CLONE_FS));
    CHECK_OK(chdir("/proc"));
    umask(0111);
    return arg;
}

CASE(fs) {
    char text[100];
    CHECK_OK(chdir("/"));
    umask(022);
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, unshares_fs, NULL), 0);
    CHECK_EQ(pthread_join(t, NULL), 0);
    CHECK_STR(getcwd(text, sizeof text), "/");
    CHECK_EQ(umask(0), 022);
}

static void *refused_in_threads(void *arg) {
    CHECK_ERRNO(unshare_(CLONE_THREAD), EINVAL);
    CHECK_ERRNO(unshare_(CLONE_SIGHAND), EINVAL);
    CHECK_ERRNO(unshare_(CLONE_VM), EINVAL);
    return arg;
}

CASE(flags) {
    CHECK_OK(unshare_(0));
    CHECK_OK(unshare_(CLONE_SYSVSEM));
    CHECK_OK(unshare_(CLONE_THREAD | CLONE_SIGHAND | CLONE_VM));  // alone in the process
    CHECK_ERRNO(unshare_(CLONE_SETTLS), EINVAL);
    CHECK_ERRNO(unshare_(CLONE_PARENT), EINVAL);
    CHECK_ERRNO(unshare_(SIGCHLD), EINVAL);
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, refused_in_threads, NULL), 0);
    CHECK_EQ(pthread_join(t, NULL), 0);
    if (geteuid() != 0) CHECK_ERRNO(unshare_(CLONE_NEWNS), EPERM);
}

static void *close_range_unshares(void *arg) {
    int fd = *(int *)arg;
    CHECK_OK(syscall(SYS_close_range, fd, fd, 2 /* CLOSE_RANGE_UNSHARE */));
    CHECK_ERRNO(fcntl(fd, F_GETFD), EBADF);
    return NULL;
}

CASE(close_range) {
    int fd = CHECK_OK(open("/", O_RDONLY));
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, close_range_unshares, &fd), 0);
    CHECK_EQ(pthread_join(t, NULL), 0);
    CHECK_OK(fcntl(fd, F_GETFD));
}

#define MAY_FAIL(EXPR, ...)                                                                        \
    do {                                                                                           \
        long r_ = (EXPR);                                                                          \
        int ok_ = r_ != -1, wanted_[] = {ENOSYS, __VA_ARGS__};                                     \
        for (unsigned i_ = 0; i_ < sizeof wanted_ / sizeof *wanted_; i_++) ok_ |= errno == wanted_[i_]; \
        if (!ok_) FAIL("%s: %s", #EXPR, check_errno_name(errno));                                  \
    } while (0)

CASE(refused_with_the_right_error) {
    static char area[4096] __attribute__((aligned(32)));
    IN_CHILD({
        MAY_FAIL(syscall(SYS_rseq, area, 32, 0, 0x53053053), EINVAL, EBUSY);  // libc may have registered already
        MAY_FAIL(syscall(SYS_pkey_alloc, 0, 0), ENOSPC, EINVAL);
        MAY_FAIL(syscall(SYS_userfaultfd, 0), EPERM);
        MAY_FAIL(syscall(SYS_io_uring_setup, 0, area), EPERM, EINVAL);
        MAY_FAIL(syscall(SYS_membarrier, 0, 0, 0), EPERM);
        MAY_FAIL(syscall(SYS_modify_ldt, 0, area, sizeof area), EPERM);
        MAY_FAIL(syscall(SYS_bpf, 0, area, 0), EPERM, EINVAL);
        MAY_FAIL(syscall(SYS_perf_event_open, area, 0, -1, -1, 0), EPERM, EACCES, EINVAL, E2BIG, EFAULT, ENOENT);
    });
}

CASE(other_ways_into_the_kernel) {
    // The 32-bit gate: an old getpid, ENOSYS, or a fault; but nothing else happens.
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        long r;
        __asm__ volatile("int $0x80" : "=a"(r) : "a"(20) : "memory", "r8", "r9", "r10", "r11");
        _exit((int)r == getpid() || (int)r == -ENOSYS ? 0 : 1);
    }
    int status;
    CHECK_EQ(waitpid(p, &status, 0), p);
    CHECK(status == 0 || (WIFSIGNALED(status) && (WTERMSIG(status) == SIGSEGV || WTERMSIG(status) == SIGSYS)));
}

MAIN
