// sig.h: what the signal programs share: handlers that count, signals that come later, kernel-size masks.
#ifndef SIG_H
#define SIG_H
#include "../check.h"
#include <ucontext.h>

static volatile sig_atomic_t hits;         // how often count_hit ran
static volatile siginfo_t last;            // what keep_info saw last
static volatile sig_atomic_t order[128];   // signal numbers in order of delivery
CHECK_USED static void count_hit(int sig CHECK_USED) { hits++; }
CHECK_USED static void keep_info(int sig CHECK_USED, siginfo_t *info, void *context CHECK_USED) {
    if (hits < 128) order[hits] = sig;
    hits++;
    last = *info;
}
CHECK_USED static void handle(int sig, void (*fn)(int), int flags) {
    struct sigaction act = {.sa_handler = fn, .sa_flags = flags};
    CHECK_OK(sigaction(sig, &act, NULL));
}
CHECK_USED static void handle_info(int sig, void (*fn)(int, siginfo_t *, void *), int flags) {
    struct sigaction act = {.sa_sigaction = fn, .sa_flags = flags | SA_SIGINFO};
    CHECK_OK(sigaction(sig, &act, NULL));
}

#define SET(...) set_of((int[]){__VA_ARGS__, 0})
CHECK_USED static sigset_t *set_of(const int *sigs) {
    static sigset_t sets[8];
    static unsigned at;
    sigset_t *set = &sets[at++ % 8];
    sigemptyset(set);
    for (; *sigs; sigs++) sigaddset(set, *sigs);
    return set;
}
CHECK_USED static void block(sigset_t *set) { CHECK_OK(sigprocmask(SIG_BLOCK, set, NULL)); }
CHECK_USED static void unblock(sigset_t *set) { CHECK_OK(sigprocmask(SIG_UNBLOCK, set, NULL)); }
CHECK_USED static int pending(int sig) {
    sigset_t set;
    CHECK_OK(sigpending(&set));
    return sigismember(&set, sig);
}
CHECK_USED static int blocked(int sig) {
    sigset_t set;
    CHECK_OK(sigprocmask(SIG_BLOCK, NULL, &set));
    return sigismember(&set, sig);
}

CHECK_USED static void sleep_ms(long ms) {
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&t, &t) == -1 && errno == EINTR) {}
}
CHECK_USED static long now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

// Wait (2 s at most) until the process sleeps, that is, has entered the call under test; then a little longer.
CHECK_USED static void wait_asleep(pid_t p) {
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", p);
    for (int i = 0; i < 1000; i++) {
        int fd = open(path, O_RDONLY);
        ssize_t n = fd == -1 ? -1 : read(fd, text, sizeof text - 1);
        if (fd != -1) close(fd);
        if (n > 0) text[n] = 0;
        char *at = n > 0 ? strrchr(text, ')') : NULL;
        if (!at || at[2] == 'S') break;
        sleep_ms(2);
    }
    sleep_ms(5);
}

// A child that sends us `sig` after `ms`, then exits with 0.
CHECK_USED static pid_t later(long ms, int sig) {
    pid_t me = getpid(), p = CHECK_OK(fork());
    if (p == 0) {
        sleep_ms(ms);
        _exit(kill(me, sig) == -1);
    }
    return p;
}
// The same, once we are asleep.
CHECK_USED static pid_t later_asleep(long ms, int sig) {
    pid_t me = getpid(), p = CHECK_OK(fork());
    if (p == 0) {
        sleep_ms(ms);
        wait_asleep(me);
        _exit(kill(me, sig) == -1);
    }
    return p;
}
#endif
