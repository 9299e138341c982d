// build: static
// sigsuspend, pause, ppoll, pselect and epoll_pwait with masks: the switch of the mask and the wait are one step.
#include "sig.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>

CASE(sigsuspend_takes_a_pending_signal) {
    handle(SIGUSR1, count_hit, 0);
    block(SET(SIGUSR1));
    raise(SIGUSR1);
    CHECK_ERRNO(sigsuspend(SET(SIGUSR2)), EINTR);
    CHECK_EQ(hits, 1);
    CHECK_EQ(blocked(SIGUSR1), 1);  // the old mask is back
    CHECK_EQ(blocked(SIGUSR2), 0);
}

static int mask_inside;
static void look(int sig CHECK_USED) {
    mask_inside = blocked(SIGUSR2) * 2 + blocked(SIGTERM);
    hits++;
}

CASE(mask_in_a_handler_during_sigsuspend) {
    // The handler runs under the temporary mask, and its own signal's.
    handle(SIGUSR1, look, 0);
    block(SET(SIGUSR1, SIGTERM));
    raise(SIGUSR1);
    CHECK_ERRNO(sigsuspend(SET(SIGUSR2)), EINTR);
    CHECK_EQ(mask_inside, 2);
    CHECK_EQ(blocked(SIGTERM), 1);
}

CASE(sigsuspend_waits) {
    handle(SIGUSR1, count_hit, 0);
    handle(SIGUSR2, count_hit, 0);
    block(SET(SIGUSR1, SIGUSR2));
    raise(SIGUSR2);  // blocked in the temporary mask too: not taken
    pid_t p = later_asleep(50, SIGUSR1);
    long t = now_ms();
    CHECK_ERRNO(sigsuspend(SET(SIGUSR2)), EINTR);
    CHECK_GE(now_ms() - t, 40);
    CHECK_EQ(hits, 1);
    CHECK_EQ(pending(SIGUSR2), 1);
    CHECK_EXIT(p, 0);
}

CASE(ping_pong_by_sigsuspend) {
    // No signal may be lost between the test and the wait.
    handle(SIGUSR1, count_hit, 0);
    block(SET(SIGUSR1));
    sigset_t none;
    sigemptyset(&none);
    pid_t me = getpid(), p = CHECK_OK(fork());
    for (int i = 0; i < 500; i++) {
        if (p != 0) CHECK_OK(kill(p, SIGUSR1));
        while (hits <= i) sigsuspend(&none);
        if (p == 0) CHECK_OK(kill(me, SIGUSR1));
    }
    if (p == 0) _exit(0);
    CHECK_EQ(hits, 500);
    CHECK_EXIT(p, 0);
}

CASE(pause_returns_after_a_handler_only) {
    handle(SIGUSR1, count_hit, SA_RESTART);
    signal(SIGUSR2, SIG_IGN);
    pid_t me = getpid(), p = CHECK_OK(fork());
    if (p == 0) {
        sleep_ms(30);
        kill(me, SIGUSR2);
        kill(me, SIGWINCH);
        sleep_ms(30);
        _exit(kill(me, SIGUSR1));
    }
    long t = now_ms();
    CHECK_ERRNO(pause(), EINTR);
    CHECK_GE(now_ms() - t, 50);
    CHECK_EQ(hits, 1);
    CHECK_EXIT(p, 0);
}

CASE(ppoll_with_a_mask) {
    handle(SIGUSR1, count_hit, 0);
    block(SET(SIGUSR1));
    sigset_t none;
    sigemptyset(&none);
    raise(SIGUSR1);
    CHECK_EQ(ppoll(NULL, 0, &(struct timespec){0, 1000}, NULL), 0);
    CHECK_EQ(hits, 0);
    CHECK_ERRNO(ppoll(NULL, 0, &(struct timespec){5, 0}, &none), EINTR);
    CHECK_EQ(hits, 1);
    CHECK_EQ(blocked(SIGUSR1), 1);
    // An event that is already there wins over the signal... and the signal stays pending.
    int fds[2];
    CHECK_OK(pipe(fds));
    CHECK_EQ(write(fds[1], "x", 1), 1);
    raise(SIGUSR1);
    CHECK_EQ(ppoll(&(struct pollfd){fds[0], POLLIN, 0}, 1, NULL, &none), 1);
    CHECK_EQ(blocked(SIGUSR1), 1);
    CHECK_EQ(hits + pending(SIGUSR1), 2);
    CHECK_ERRNO(syscall(SYS_ppoll, NULL, 0, NULL, &none, 4), EINVAL);
}

CASE(pselect_with_a_mask) {
    handle(SIGUSR1, count_hit, 0);
    block(SET(SIGUSR1));
    sigset_t none;
    sigemptyset(&none);
    raise(SIGUSR1);
    CHECK_ERRNO(pselect(0, NULL, NULL, NULL, &(struct timespec){5, 0}, &none), EINTR);
    CHECK_EQ(hits, 1);
    CHECK_EQ(blocked(SIGUSR1), 1);
    pid_t p = later_asleep(30, SIGUSR1);
    CHECK_ERRNO(pselect(0, NULL, NULL, NULL, NULL, &none), EINTR);
    CHECK_EXIT(p, 0);
}

CASE(epoll_pwait_with_a_mask) {
    handle(SIGUSR1, count_hit, 0);
    block(SET(SIGUSR1));
    int ep = CHECK_OK(epoll_create1(0));
    struct epoll_event e;
    sigset_t none;
    sigemptyset(&none);
    raise(SIGUSR1);
    CHECK_ERRNO(epoll_pwait(ep, &e, 1, 5000, &none), EINTR);
    CHECK_EQ(hits, 1);
    CHECK_EQ(blocked(SIGUSR1), 1);
    CHECK_EQ(epoll_pwait(ep, &e, 1, 10, NULL), 0);
}

CASE(self_pipe) {
    // The classic: a handler that writes to a pipe that poll watches.
    static int fds[2];
    extern void poke(int);
    extern int *poke_fds;
    CHECK_OK(pipe(fds));
    poke_fds = fds;
    handle(SIGCHLD, poke, SA_RESTART);
    for (int i = 0; i < 20; i++) {
        pid_t p = CHECK_OK(fork());
        if (p == 0) _exit(i);
        struct pollfd pfd = {fds[0], POLLIN, 0};
        int n;
        while ((n = poll(&pfd, 1, 5000)) == -1 && errno == EINTR) {}
        CHECK_EQ(n, 1);
        char c;
        CHECK_EQ(read(fds[0], &c, 1), 1);
        CHECK_EXIT(p, i);
    }
}
int *poke_fds;
void poke(int sig CHECK_USED) {
    int e = errno;
    write(poke_fds[1], "!", 1);
    errno = e;
}

MAIN
