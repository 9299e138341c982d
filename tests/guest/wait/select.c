// build: static
// select and pselect6: sets in and out, limits, time left, the signal mask.
#include "waits.h"
#include <sys/resource.h>
#include <sys/select.h>

static fd_set set_of(int a, int b) {
    fd_set s;
    FD_ZERO(&s);
    if (a >= 0) FD_SET(a, &s);
    if (b >= 0) FD_SET(b, &s);
    return s;
}

static long raw(int n, fd_set *r, fd_set *w, fd_set *e, struct timeval *t) { return syscall(SYS_select, n, r, w, e, t); }

CASE(sets_are_reduced) {
    int p[2], q[2];
    CHECK_OK(pipe(p));
    CHECK_OK(pipe(q));
    CHECK_EQ(write(p[1], "x", 1), 1);
    fd_set r = set_of(p[0], q[0]), w = set_of(p[1], q[1]), e = set_of(p[0], p[1]);
    struct timeval zero = {0, 0};
    CHECK_EQ(raw(q[1] + 1, &r, &w, &e, &zero), 3);  // bits, not descriptors
    CHECK(FD_ISSET(p[0], &r) && !FD_ISSET(q[0], &r));
    CHECK(FD_ISSET(p[1], &w) && FD_ISSET(q[1], &w));
    CHECK(!FD_ISSET(p[0], &e) && !FD_ISSET(p[1], &e));
    r = set_of(q[0], -1);
    CHECK_EQ(raw(q[1] + 1, &r, NULL, NULL, &zero), 0);
    CHECK(!FD_ISSET(q[0], &r));
}

CASE(end_and_error_are_readable_and_writable) {
    int p[2], q[2];
    CHECK_OK(pipe(p));
    CHECK_OK(pipe(q));
    CHECK_OK(close(p[1]));
    CHECK_OK(close(q[0]));
    fd_set r = set_of(p[0], -1), w = set_of(q[1], -1);
    CHECK_EQ(raw(q[1] + 1, &r, &w, NULL, NULL), 2);
}

CASE(only_below_n) {
    int p[2];
    CHECK_OK(pipe(p));
    CHECK_EQ(write(p[1], "x", 1), 1);
    fd_set r = set_of(p[0], -1);
    struct timeval zero = {0, 0};
    CHECK_EQ(raw(p[0], &r, NULL, NULL, &zero), 0);
    r = set_of(p[0], 900);  // 900 is not open, but it is not asked for either
    CHECK_EQ(raw(p[0] + 1, &r, NULL, NULL, &zero), 1);
}

CASE(bad_descriptors) {
    int p[2];
    CHECK_OK(pipe(p));
    struct timeval zero = {0, 0};
    CHECK_OK(dup2(p[0], 120));
    fd_set r = set_of(p[0], 100);
    CHECK_ERRNO(raw(101, &r, NULL, NULL, &zero), EBADF);
    CHECK(FD_ISSET(100, &r) && FD_ISSET(p[0], &r));  // the sets stay as they were
    CHECK_ERRNO(raw(101, NULL, NULL, &r, &zero), EBADF);
    CHECK_ERRNO(raw(-1, &r, NULL, NULL, &zero), EINVAL);
    CHECK_ERRNO(raw(64, nowhere, NULL, NULL, &zero), EFAULT);
    CHECK_ERRNO(raw(0, NULL, NULL, NULL, nowhere), EFAULT);
    // n above the table's size is cut to it.
    fd_set none = set_of(-1, -1);
    CHECK_EQ(raw(1 << 20, &none, NULL, NULL, &zero), 0);
}

CASE(time_left) {
    int p[2];
    CHECK_OK(pipe(p));
    fd_set r = set_of(p[0], -1);
    struct timeval t = {0, 30000};
    long start = now_ms();
    CHECK_EQ(raw(p[0] + 1, &r, NULL, NULL, &t), 0);
    CHECK_GE(now_ms() - start, 29);
    CHECK_EQ(t.tv_sec | t.tv_usec, 0);  // Linux stores what is left
    CHECK_EQ(write(p[1], "x", 1), 1);
    r = set_of(p[0], -1);
    t = (struct timeval){10, 0};
    CHECK_EQ(raw(p[0] + 1, &r, NULL, NULL, &t), 1);
    CHECK(t.tv_sec == 9 || (t.tv_sec == 10 && t.tv_usec == 0));
    t = (struct timeval){0, 1500000};  // more than a second of microseconds is carried over
    r = set_of(p[0], -1);
    CHECK_EQ(raw(p[0] + 1, &r, NULL, NULL, &t), 1);
    CHECK_EQ(t.tv_sec, 1);
    t = (struct timeval){-1, 0};
    CHECK_ERRNO(raw(0, NULL, NULL, NULL, &t), EINVAL);
    t = (struct timeval){0, 20000};
    start = now_ms();
    CHECK_EQ(raw(0, NULL, NULL, NULL, &t), 0);
    CHECK_GE(now_ms() - start, 19);
}

CASE(wakes) {
    int p[2];
    CHECK_OK(pipe(p));
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        usleep(20000);
        CHECK_EQ(write(p[1], "x", 1), 1);
        _exit(0);
    }
    fd_set r = set_of(p[0], -1);
    CHECK_EQ(raw(p[0] + 1, &r, NULL, NULL, NULL), 1);
    CHECK_EXIT(pid, 0);
}

CASE(interrupted) {
    int p[2];
    CHECK_OK(pipe(p));
    struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    CHECK_OK(sigaction(SIGUSR1, &act, NULL));
    pid_t pid = signal_later(SIGUSR1, 20);
    fd_set r = set_of(p[0], -1);
    struct timeval t = {5, 0};
    CHECK_ERRNO(raw(p[0] + 1, &r, NULL, NULL, &t), EINTR);
    CHECK_EQ(t.tv_sec, 4);
    CHECK(FD_ISSET(p[0], &r));
    CHECK_EXIT(pid, 0);
}

CASE(descriptors_above_1024) {
    struct rlimit limit;
    CHECK_OK(getrlimit(RLIMIT_NOFILE, &limit));
    if (limit.rlim_max < 2001) SKIP("hard limit of descriptors below 2001");
    limit.rlim_cur = limit.rlim_max;
    CHECK_OK(setrlimit(RLIMIT_NOFILE, &limit));
    int p[2];
    CHECK_OK(pipe(p));
    CHECK_OK(dup2(p[0], 2000));
    CHECK_EQ(write(p[1], "x", 1), 1);
    unsigned long big[40] = {0};  // the kernel knows no FD_SETSIZE
    big[2000 / 64] |= 1ul << 2000 % 64;
    struct timeval zero = {0, 0};
    CHECK_EQ(raw(2001, (fd_set *)big, NULL, NULL, &zero), 1);
    CHECK_EQ(big[2000 / 64], 1ul << 2000 % 64);
}

CASE(pselect_mask_and_arguments) {
    int p[2];
    CHECK_OK(pipe(p));
    sigset_t block, none;
    sigemptyset(&none);
    sigemptyset(&block);
    sigaddset(&block, SIGUSR1);
    CHECK_OK(sigprocmask(SIG_BLOCK, &block, NULL));
    catch_signal(SIGUSR1);
    CHECK_OK(kill(getpid(), SIGUSR1));
    fd_set r = set_of(p[0], -1);
    struct timespec t = {3, 0};
    struct { const void *set; size_t size; } mask = {&none, 8}, bad = {&none, 4}, null = {NULL, 0};
    CHECK_ERRNO(syscall(SYS_pselect6, p[0] + 1, &r, NULL, NULL, &t, &mask), EINTR);
    CHECK_EQ(caught, SIGUSR1);
    CHECK_ERRNO(syscall(SYS_pselect6, p[0] + 1, &r, NULL, NULL, &t, &bad), EINVAL);
    CHECK_ERRNO(syscall(SYS_pselect6, p[0] + 1, &r, NULL, NULL, &t, nowhere), EFAULT);
    struct timespec wrong = {0, -1};
    CHECK_ERRNO(syscall(SYS_pselect6, p[0] + 1, &r, NULL, NULL, &wrong, NULL), EINVAL);
    CHECK_EQ(write(p[1], "x", 1), 1);
    t = (struct timespec){10, 0};
    CHECK_EQ(syscall(SYS_pselect6, p[0] + 1, &r, NULL, NULL, &t, &null), 1);
    CHECK_EQ(t.tv_sec, 9);
}

MAIN
