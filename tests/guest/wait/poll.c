// build: static
// poll and ppoll: every event, timeouts, limits, the signal mask.
#include "waits.h"
#include <sys/resource.h>
#include <sys/socket.h>

CASE(pipe_events) {
    int p[2];
    CHECK_OK(pipe(p));
    CHECK_EQ(events_of(p[0], POLLIN), 0);
    CHECK_EQ(events_of(p[1], POLLOUT | POLLIN), POLLOUT);
    CHECK_EQ(events_of(p[1], POLLOUT | POLLWRNORM), POLLOUT | POLLWRNORM);
    CHECK_EQ(write(p[1], "x", 1), 1);
    CHECK_EQ(events_of(p[0], POLLIN | POLLRDNORM | POLLPRI), POLLIN | POLLRDNORM);
    CHECK_EQ(events_of(p[0], POLLRDNORM), POLLRDNORM);
    CHECK_EQ(events_of(p[0], 0), 0);
    CHECK_OK(close(p[1]));
    CHECK_EQ(events_of(p[0], 0), POLLHUP);  // never masked
}

CASE(bad_and_negative_descriptors) {
    struct pollfd p[3] = {{999, POLLIN, 0x7f}, {-1, POLLIN, 0x7f}, {-999, POLLIN, 0x7f}};
    CHECK_EQ(poll(p, 3, 1000), 1);  // a bad one is an event, no error and no wait
    CHECK_EQ(p[0].revents, POLLNVAL);
    CHECK_EQ(p[1].revents, 0);
    CHECK_EQ(p[2].revents, 0);
    CHECK_EQ(poll(p + 1, 2, 1), 0);
}

CASE(files_are_always_ready) {
    int fd = CHECK_OK(open("/etc/passwd", O_RDONLY)), d = CHECK_OK(open("/", O_RDONLY));
    CHECK_EQ(events_of(fd, POLLIN | POLLOUT | POLLPRI), POLLIN | POLLOUT);
    CHECK_EQ(events_of(d, POLLIN | POLLOUT), POLLIN | POLLOUT);
    CHECK_EQ(lseek(fd, 0, SEEK_END), lseek(fd, 0, SEEK_CUR));
    CHECK_EQ(events_of(fd, POLLIN), POLLIN);  // the end of a file is ready too
    CHECK_EQ(events_of(fd, 0), 0);
}

CASE(counts_and_duplicates) {
    int p[2];
    CHECK_OK(pipe(p));
    CHECK_EQ(write(p[1], "x", 1), 1);
    struct pollfd v[4] = {{p[0], POLLIN, 0}, {p[0], POLLIN, 0}, {p[1], POLLIN, 0}, {p[1], POLLOUT, 0}};
    CHECK_EQ(poll(v, 4, -1), 3);
    CHECK_EQ(v[0].revents, POLLIN);
    CHECK_EQ(v[1].revents, POLLIN);
    CHECK_EQ(v[2].revents, 0);
    CHECK_EQ(v[3].revents, POLLOUT);
}

CASE(timeouts) {
    int p[2];
    CHECK_OK(pipe(p));
    struct pollfd v = {p[0], POLLIN, 0x55};
    long start = now_ms();
    CHECK_EQ(poll(&v, 1, 30), 0);
    CHECK_EQ(v.revents, 0);
    CHECK_GE(now_ms() - start, 29);
    start = now_ms();
    CHECK_EQ(poll(NULL, 0, 20), 0);
    CHECK_GE(now_ms() - start, 19);
    CHECK_EQ(poll(&v, 1, 0), 0);
    // Any negative timeout means for ever.
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        usleep(20000);
        CHECK_EQ(write(p[1], "x", 1), 1);
        _exit(0);
    }
    CHECK_EQ(poll(&v, 1, -5), 1);
    CHECK_EXIT(pid, 0);
}

CASE(woken_by_each_kind) {
    int p[2], s[2];
    CHECK_OK(pipe(p));
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    for (int kind = 0; kind < 4; kind++) {
        pid_t pid = CHECK_OK(fork());
        if (pid == 0) {
            usleep(15000);
            if (kind == 0) CHECK_EQ(write(p[1], "x", 1), 1);
            if (kind == 1) CHECK_EQ(write(s[1], "x", 1), 1);
            if (kind == 2) CHECK_OK(shutdown(s[1], SHUT_WR));
            _exit(0);
        }
        if (kind == 3) CHECK_OK(close(p[1]));
        struct pollfd v[2] = {{p[0], POLLIN, 0}, {s[0], POLLIN | POLLRDHUP, 0}};
        CHECK_EQ(poll(v, 2, 3000), 1);
        CHECK_EQ(v[0].revents, kind == 0 ? POLLIN : kind == 3 ? POLLHUP : 0);
        if (kind == 1) CHECK_EQ(v[1].revents, POLLIN);
        if (kind == 2) CHECK_EQ(v[1].revents, POLLIN | POLLRDHUP);
        char c;
        if (kind == 0) CHECK_EQ(read(p[0], &c, 1), 1);
        if (kind == 1) CHECK_EQ(read(s[0], &c, 1), 1);
        if (kind == 2) CHECK_OK(close(s[0])), s[0] = -1;
        CHECK_EXIT(pid, 0);
    }
}

CASE(arguments) {
    struct pollfd v = {0, POLLIN, 0};
    struct rlimit limit;
    CHECK_OK(getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = 300;
    CHECK_OK(setrlimit(RLIMIT_NOFILE, &limit));
    static struct pollfd many[301];
    for (int i = 0; i < 301; i++) many[i].fd = -1;
    CHECK_EQ(poll(many, 300, 0), 0);
    CHECK_ERRNO(poll(many, 301, 0), EINVAL);
    CHECK_ERRNO(syscall(SYS_poll, &v, 0xffffffffu, 0), EINVAL);
    CHECK_ERRNO(poll(nowhere, 1, 0), EFAULT);
    CHECK_EQ(poll(nowhere, 0, 0), 0);
}

CASE(many_descriptors) {
    int p[2];
    CHECK_OK(pipe(p));
    static struct pollfd v[800];
    for (int i = 0; i < 800; i++) v[i] = (struct pollfd){p[0], POLLIN, 0};
    CHECK_EQ(poll(v, 800, 0), 0);
    v[799] = (struct pollfd){p[1], POLLOUT, 0};
    CHECK_EQ(poll(v, 800, -1), 1);
    CHECK_EQ(v[799].revents, POLLOUT);
    CHECK_EQ(write(p[1], "x", 1), 1);
    CHECK_EQ(poll(v, 800, -1), 800);
}

CASE(interrupted) {
    int p[2];
    CHECK_OK(pipe(p));
    struct pollfd v = {p[0], POLLIN, 0};
    struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    CHECK_OK(sigaction(SIGUSR1, &act, NULL));
    pid_t pid = signal_later(SIGUSR1, 20);
    CHECK_ERRNO(poll(&v, 1, 5000), EINTR);  // SA_RESTART or not
    CHECK_EXIT(pid, 0);
    // An ignored signal, and stop and continue, go unnoticed.
    signal(SIGUSR1, SIG_IGN);
    pid = signal_later(SIGUSR1, 10);
    CHECK_EQ(poll(&v, 1, 50), 0);
    CHECK_EXIT(pid, 0);
}

CASE(ppoll_mask_is_atomic) {
    int p[2];
    CHECK_OK(pipe(p));
    sigset_t block, none, old;
    sigemptyset(&none);
    sigemptyset(&block);
    sigaddset(&block, SIGUSR1);
    CHECK_OK(sigprocmask(SIG_BLOCK, &block, NULL));
    catch_signal(SIGUSR1);
    CHECK_OK(kill(getpid(), SIGUSR1));
    CHECK_EQ(caught, 0);
    struct pollfd v = {p[0], POLLIN, 0};
    struct timespec t = {3, 0};
    CHECK_ERRNO(ppoll(&v, 1, &t, &none), EINTR);  // pending at entry: delivered at once
    CHECK_EQ(caught, SIGUSR1);
    CHECK_OK(sigprocmask(SIG_BLOCK, NULL, &old));
    CHECK_EQ(sigismember(&old, SIGUSR1), 1);
    // When something is ready, the signal waits for the old mask.
    caught = 0;
    CHECK_OK(kill(getpid(), SIGUSR1));
    CHECK_EQ(write(p[1], "x", 1), 1);
    CHECK_EQ(ppoll(&v, 1, &t, &none), 1);
    CHECK_EQ(caught, 0);
    sigset_t pending;
    CHECK_OK(sigpending(&pending));
    CHECK_EQ(sigismember(&pending, SIGUSR1), 1);
}

CASE(ppoll_arguments) {
    int p[2];
    CHECK_OK(pipe(p));
    struct pollfd v = {p[0], POLLIN, 0};
    struct timespec bad = {0, 1000000000}, neg = {-1, 0}, t = {0, 30000000};
    sigset_t none;
    sigemptyset(&none);
    CHECK_ERRNO(syscall(SYS_ppoll, &v, 1, &bad, NULL, 8), EINVAL);
    CHECK_ERRNO(syscall(SYS_ppoll, &v, 1, &neg, NULL, 8), EINVAL);
    CHECK_ERRNO(syscall(SYS_ppoll, &v, 1, &t, &none, 16), EINVAL);
    CHECK_ERRNO(syscall(SYS_ppoll, &v, 1, nowhere, NULL, 8), EFAULT);
    CHECK_EQ(syscall(SYS_ppoll, &v, 1, &t, NULL, 77), 0);
    CHECK_EQ(t.tv_sec | t.tv_nsec, 0);  // the raw call says how much was left
    t = (struct timespec){5, 0};
    CHECK_EQ(write(p[1], "x", 1), 1);
    CHECK_EQ(syscall(SYS_ppoll, &v, 1, &t, NULL, 8), 1);
    CHECK_EQ(t.tv_sec, 4);
    CHECK_EQ(ppoll(&v, 1, NULL, NULL), 1);
}

MAIN
