// build: static
// epoll: creation, the errno table of epoll_ctl, level triggering, masks, time-outs, fairness, many descriptors.
#include "waits.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

static int add(int ep, int fd, uint32_t events, uint64_t data) {
    struct epoll_event e = {events, {.u64 = data}};
    return epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e);
}
static int mod(int ep, int fd, uint32_t events, uint64_t data) {
    struct epoll_event e = {events, {.u64 = data}};
    return epoll_ctl(ep, EPOLL_CTL_MOD, fd, &e);
}
static int del(int ep, int fd) { return epoll_ctl(ep, EPOLL_CTL_DEL, fd, NULL); }

CASE(creation) {
    int ep = CHECK_OK(epoll_create1(EPOLL_CLOEXEC));
    CHECK_EQ(fcntl(ep, F_GETFD), FD_CLOEXEC);
    CHECK_EQ(fcntl(ep, F_GETFL), O_RDWR);
    ep = CHECK_OK(epoll_create1(0));
    CHECK_EQ(fcntl(ep, F_GETFD), 0);
    CHECK_OK(syscall(SYS_epoll_create, 1));
    CHECK_ERRNO(syscall(SYS_epoll_create, 0), EINVAL);
    CHECK_ERRNO(syscall(SYS_epoll_create, -1), EINVAL);
    CHECK_ERRNO(epoll_create1(1), EINVAL);
    char c;
    CHECK_ERRNO(read(ep, &c, 1), EINVAL);
    CHECK_ERRNO(write(ep, &c, 1), EINVAL);
}

CASE(ctl_errors) {
    int ep = CHECK_OK(epoll_create1(0)), p[2], file = CHECK_OK(open("/etc/passwd", O_RDONLY));
    CHECK_OK(pipe(p));
    struct epoll_event e = {EPOLLIN, {.u64 = 1}};
    CHECK_ERRNO(epoll_ctl(999, EPOLL_CTL_ADD, p[0], &e), EBADF);
    CHECK_ERRNO(epoll_ctl(ep, EPOLL_CTL_ADD, 999, &e), EBADF);
    CHECK_ERRNO(epoll_ctl(ep, EPOLL_CTL_ADD, -1, &e), EBADF);
    CHECK_ERRNO(epoll_ctl(ep, EPOLL_CTL_ADD, file, &e), EPERM);  // what cannot be polled
    CHECK_ERRNO(epoll_ctl(ep, EPOLL_CTL_ADD, CHECK_OK(open("/", O_RDONLY)), &e), EPERM);
    CHECK_ERRNO(epoll_ctl(ep, EPOLL_CTL_ADD, ep, &e), EINVAL);
    CHECK_ERRNO(epoll_ctl(p[0], EPOLL_CTL_ADD, p[1], &e), EINVAL);
    CHECK_ERRNO(epoll_ctl(file, EPOLL_CTL_ADD, p[1], &e), EINVAL);
    CHECK_ERRNO(epoll_ctl(ep, 77, p[0], &e), EINVAL);
    CHECK_ERRNO(epoll_ctl(ep, EPOLL_CTL_ADD, p[0], NULL), EFAULT);
    CHECK_ERRNO(epoll_ctl(ep, EPOLL_CTL_ADD, p[0], nowhere), EFAULT);
    CHECK_ERRNO(epoll_ctl(ep, EPOLL_CTL_MOD, p[0], &e), ENOENT);
    CHECK_ERRNO(del(ep, p[0]), ENOENT);
    CHECK_OK(add(ep, p[0], EPOLLIN, 1));
    CHECK_ERRNO(add(ep, p[0], EPOLLOUT, 1), EEXIST);
    CHECK_OK(del(ep, p[0]));
    CHECK_ERRNO(del(ep, p[0]), ENOENT);
    CHECK_ERRNO(epoll_ctl(999, 77, 999, nowhere), EFAULT);  // the event is read first
    int path = CHECK_OK(open("/dev/null", O_PATH));
    CHECK_ERRNO(epoll_ctl(ep, EPOLL_CTL_ADD, path, &e), EBADF);
}

CASE(wait_errors) {
    int ep = CHECK_OK(epoll_create1(0)), p[2];
    CHECK_OK(pipe(p));
    struct epoll_event e;
    CHECK_ERRNO(syscall(SYS_epoll_wait, ep, &e, 0, 0), EINVAL);
    CHECK_ERRNO(syscall(SYS_epoll_wait, ep, &e, -1, 0), EINVAL);
    CHECK_ERRNO(syscall(SYS_epoll_wait, ep, &e, INT_MAX, 0), EINVAL);
    CHECK_ERRNO(syscall(SYS_epoll_wait, 999, &e, 1, 0), EBADF);
    CHECK_ERRNO(syscall(SYS_epoll_wait, p[0], &e, 1, 0), EINVAL);
    CHECK_OK(add(ep, p[1], EPOLLOUT, 1));
    CHECK_ERRNO(syscall(SYS_epoll_wait, ep, nowhere, 1, 0), EFAULT);
    CHECK_EQ(epoll_wait(ep, &e, 1, 0), 1);  // the event is not lost by that
}

CASE(level_triggered) {
    int ep = CHECK_OK(epoll_create1(0)), p[2];
    CHECK_OK(pipe(p));
    struct epoll_event e[4];
    CHECK_OK(add(ep, p[0], EPOLLIN, 0x1122334455667788));
    CHECK_EQ(epoll_wait(ep, e, 4, 0), 0);
    CHECK_EQ(write(p[1], "ab", 2), 2);
    char c;
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < 3; k++) {
            CHECK_EQ(epoll_wait(ep, e, 4, 0), 1);
            CHECK_EQ(e[0].events, EPOLLIN);
            CHECK_EQ(e[0].data.u64, 0x1122334455667788);
        }
        CHECK_EQ(read(p[0], &c, 1), 1);
    }
    CHECK_EQ(epoll_wait(ep, e, 4, 0), 0);
    CHECK_OK(close(p[1]));
    CHECK_EQ(epoll_wait(ep, e, 4, 0), 1);
    CHECK_EQ(e[0].events, EPOLLHUP);  // not asked for, told all the same
}

CASE(modify) {
    int ep = CHECK_OK(epoll_create1(0)), s[2];
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    struct epoll_event e;
    CHECK_OK(add(ep, s[0], EPOLLIN, 1));
    CHECK_EQ(epoll_wait(ep, &e, 1, 0), 0);
    CHECK_OK(mod(ep, s[0], EPOLLIN | EPOLLOUT, 2));  // looks at once at what is ready now
    CHECK_EQ(epoll_wait(ep, &e, 1, 0), 1);
    CHECK_EQ(e.events, EPOLLOUT);
    CHECK_EQ(e.data.u64, 2);
    CHECK_OK(mod(ep, s[0], 0, 3));
    CHECK_EQ(epoll_wait(ep, &e, 1, 0), 0);
    CHECK_OK(close(s[1]));
    CHECK_EQ(epoll_wait(ep, &e, 1, 0), 1);
    CHECK_EQ(e.events, EPOLLHUP);
    CHECK_EQ(e.data.u64, 3);
    CHECK_OK(mod(ep, s[0], EPOLLIN | EPOLLRDHUP, 4));
    CHECK_EQ(epoll_wait(ep, &e, 1, 0), 1);
    CHECK_EQ(e.events, EPOLLIN | EPOLLRDHUP | EPOLLHUP);
}

CASE(half_closed_sockets) {
    int ep = CHECK_OK(epoll_create1(0)), s[2];
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    CHECK_OK(add(ep, s[0], EPOLLIN | EPOLLRDHUP, 1));
    CHECK_OK(shutdown(s[1], SHUT_WR));
    struct epoll_event e;
    CHECK_EQ(epoll_wait(ep, &e, 1, 1000), 1);
    CHECK_EQ(e.events, EPOLLIN | EPOLLRDHUP);
}

CASE(several_events_and_limits) {
    int ep = CHECK_OK(epoll_create1(0)), fds[10];
    struct epoll_event e[20];
    for (int i = 0; i < 10; i++) {
        fds[i] = CHECK_OK(eventfd(1, 0));
        CHECK_OK(add(ep, fds[i], EPOLLIN, i));
    }
    CHECK_EQ(epoll_wait(ep, e, 20, 0), 10);
    unsigned seen = 0;
    for (int i = 0; i < 10; i++) seen |= 1u << e[i].data.u64;
    CHECK_EQ(seen, 0x3ff);
    // With little room all get their turn.
    seen = 0;
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(epoll_wait(ep, e, 3, 0), 3);
        for (int k = 0; k < 3; k++) seen |= 1u << e[k].data.u64;
    }
    CHECK_EQ(seen, 0x3ff);
}

CASE(thousand_descriptors) {
    struct rlimit limit;
    CHECK_OK(getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = limit.rlim_max;
    CHECK_OK(setrlimit(RLIMIT_NOFILE, &limit));
    if (limit.rlim_max < 1300) SKIP("hard limit of descriptors below 1300");
    int ep = CHECK_OK(epoll_create1(0)), ep2 = CHECK_OK(epoll_create1(0));
    static int fds[1000];
    static struct epoll_event e[1000];
    for (int i = 0; i < 1000; i++) {
        fds[i] = CHECK_OK(eventfd(0, EFD_NONBLOCK));
        CHECK_OK(add(ep, fds[i], EPOLLIN, i));
        CHECK_OK(add(ep2, fds[i], EPOLLIN, 5000 + i));
    }
    CHECK_EQ(epoll_wait(ep, e, 1000, 0), 0);
    uint64_t one = 1;
    for (int i = 0; i < 1000; i += 3) CHECK_EQ(write(fds[i], &one, 8), 8);
    CHECK_EQ(epoll_wait(ep, e, 1000, 0), 334);
    for (int i = 0; i < 334; i++) CHECK_EQ(e[i].data.u64 % 3, 0);
    CHECK_EQ(epoll_wait(ep2, e, 1000, 0), 334);
    for (int i = 0; i < 1000; i += 3) CHECK_EQ(read(fds[i], &one, 8), 8);
    CHECK_EQ(epoll_wait(ep, e, 1000, 0), 0);
    for (int i = 0; i < 1000; i++) CHECK_OK(close(fds[i]));
    CHECK_EQ(epoll_wait(ep, e, 1000, 0), 0);
}

CASE(timeouts) {
    int ep = CHECK_OK(epoll_create1(0)), p[2];
    CHECK_OK(pipe(p));
    CHECK_OK(add(ep, p[0], EPOLLIN, 1));
    struct epoll_event e;
    long start = now_ms();
    CHECK_EQ(epoll_wait(ep, &e, 1, 30), 0);
    CHECK_GE(now_ms() - start, 29);
    struct timespec t = {0, 20000000}, bad = {0, 1000000000}, zero = {0, 0};
    start = now_ms();
    CHECK_EQ(syscall(SYS_epoll_pwait2, ep, &e, 1, &t, NULL, 8), 0);
    CHECK_GE(now_ms() - start, 19);
    CHECK_EQ(t.tv_nsec, 20000000);  // unlike ppoll it stores nothing back
    CHECK_EQ(syscall(SYS_epoll_pwait2, ep, &e, 1, &zero, NULL, 8), 0);
    CHECK_ERRNO(syscall(SYS_epoll_pwait2, ep, &e, 1, &bad, NULL, 8), EINVAL);
    CHECK_ERRNO(syscall(SYS_epoll_pwait2, ep, &e, 1, nowhere, NULL, 8), EFAULT);
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        usleep(20000);
        CHECK_EQ(write(p[1], "x", 1), 1);
        _exit(0);
    }
    CHECK_EQ(epoll_wait(ep, &e, 1, -1), 1);
    CHECK_EXIT(pid, 0);
    CHECK_EQ(syscall(SYS_epoll_pwait2, ep, &e, 1, NULL, NULL, 8), 1);
}

CASE(signals_and_masks) {
    int ep = CHECK_OK(epoll_create1(0)), p[2];
    CHECK_OK(pipe(p));
    CHECK_OK(add(ep, p[0], EPOLLIN, 1));
    struct epoll_event e;
    sigset_t block, none, now;
    sigemptyset(&none);
    sigemptyset(&block);
    sigaddset(&block, SIGUSR1);
    struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    CHECK_OK(sigaction(SIGUSR1, &act, NULL));
    pid_t pid = signal_later(SIGUSR1, 20);
    CHECK_ERRNO(epoll_wait(ep, &e, 1, 5000), EINTR);
    CHECK_EXIT(pid, 0);
    CHECK_OK(sigprocmask(SIG_BLOCK, &block, NULL));
    caught = 0;
    CHECK_OK(kill(getpid(), SIGUSR1));
    CHECK_EQ(epoll_wait(ep, &e, 1, 10), 0);
    CHECK_ERRNO(epoll_pwait(ep, &e, 1, 5000, &none), EINTR);
    CHECK_EQ(caught, SIGUSR1);
    CHECK_OK(sigprocmask(SIG_BLOCK, NULL, &now));
    CHECK_EQ(sigismember(&now, SIGUSR1), 1);
    CHECK_ERRNO(syscall(SYS_epoll_pwait, ep, &e, 1, 0, &none, 4), EINVAL);
    CHECK_ERRNO(syscall(SYS_epoll_pwait, ep, &e, 1, 0, nowhere, 8), EFAULT);
}

CASE(kinds_of_descriptors) {
    int ep = CHECK_OK(epoll_create1(0)), s[2], d[2];
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    CHECK_OK(socketpair(AF_UNIX, SOCK_DGRAM, 0, d));
    CHECK_OK(add(ep, s[0], EPOLLIN, 1));
    CHECK_OK(add(ep, d[0], EPOLLIN, 2));
    CHECK_OK(add(ep, CHECK_OK(eventfd(0, 0)), EPOLLIN, 3));
    int ptm = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    if (ptm >= 0) CHECK_OK(add(ep, ptm, EPOLLIN, 4));
    CHECK_ERRNO(add(ep, CHECK_OK(open("/dev/zero", O_RDONLY)), 0, 5), EPERM);
    struct epoll_event e[4];
    CHECK_EQ(epoll_wait(ep, e, 4, 0), 0);
    CHECK_EQ(send(s[1], "a", 1, 0), 1);
    CHECK_EQ(send(d[1], "b", 1, 0), 1);
    CHECK_EQ(epoll_wait(ep, e, 4, 0), 2);
    CHECK_EQ(e[0].data.u64, 1);  // in the order in which they became ready
    CHECK_EQ(e[1].data.u64, 2);
}

MAIN
