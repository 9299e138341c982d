// build: static
// nanosleep and clock_nanosleep: lengths, absolute times, remainders, errors; timeouts of the waiting calls.
#include "../check.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/time.h>

static long long now(clockid_t c) {
    struct timespec t;
    clock_gettime(c, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}
static long clock_sleep(clockid_t c, int flags, struct timespec *t, struct timespec *rest) {
    return syscall(SYS_clock_nanosleep, c, flags, t, rest);
}
#define MS 1000000ll
// The expression takes at least (and not absurdly much more than) this many milliseconds.
#define TAKES(LEAST, ...)                               \
    do {                                                \
        long long t_ = now(CLOCK_MONOTONIC);            \
        __VA_ARGS__;                                    \
        t_ = now(CLOCK_MONOTONIC) - t_;                 \
        CHECK_GE(t_, (LEAST) * MS);                     \
        CHECK_LT(t_, (LEAST) * MS + 3000 * MS);         \
    } while (0)

CASE(nanosleep_lengths) {
    static const long lengths[] = {0, 1, 1000, 100000, 1000000, 20000000, 60000000};
    for (int i = 0; i < 7; i++) {
        struct timespec t = {0, lengths[i]}, rest = {77, 77};
        long long start = now(CLOCK_MONOTONIC);
        CHECK_OK(syscall(SYS_nanosleep, &t, &rest));
        CHECK_GE(now(CLOCK_MONOTONIC) - start, lengths[i]);
        CHECK_EQ(rest.tv_sec, 77);  // written only when interrupted
    }
    TAKES(1050, CHECK_OK(nanosleep(&(struct timespec){1, 50000000}, NULL)));
}

CASE(nanosleep_errors) {
    struct timespec bad[] = {{0, -1}, {0, 1000000000}, {-1, 0}, {-1, -1}, {0, LONG_MAX}, {0, LONG_MIN}};
    for (int i = 0; i < 6; i++) {
        CHECK_ERRNO(syscall(SYS_nanosleep, &bad[i], NULL), EINVAL);
        CHECK_ERRNO(clock_sleep(CLOCK_MONOTONIC, 0, &bad[i], NULL), EINVAL);
        CHECK_ERRNO(clock_sleep(CLOCK_REALTIME, TIMER_ABSTIME, &bad[i], NULL), EINVAL);
    }
    CHECK_ERRNO(syscall(SYS_nanosleep, 8, NULL), EFAULT);
    CHECK_ERRNO(syscall(SYS_nanosleep, NULL, NULL), EFAULT);
    struct timespec t = {0, 1};
    CHECK_ERRNO(clock_sleep(CLOCK_THREAD_CPUTIME_ID, 0, &t, NULL), EOPNOTSUPP);  // libc makes EINVAL of it
    CHECK_ERRNO(clock_sleep(CLOCK_MONOTONIC_RAW, 0, &t, NULL), EOPNOTSUPP);
    CHECK_ERRNO(clock_sleep(CLOCK_REALTIME_COARSE, 0, &t, NULL), EOPNOTSUPP);
    // Bits other than TIMER_ABSTIME are ignored.
    CHECK_OK(clock_sleep(CLOCK_MONOTONIC, 2, &t, NULL));
}

CASE(relative_on_each_clock) {
    static const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_TAI};
    for (int i = 0; i < 4; i++) TAKES(30, CHECK_OK(clock_sleep(clocks[i], 0, &(struct timespec){0, 30000000}, NULL)));
}

CASE(absolute_on_each_clock) {
    static const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_TAI};
    for (int i = 0; i < 4; i++) {
        long long until = now(clocks[i]) + 40 * MS;
        struct timespec t = {until / 1000000000, until % 1000000000};
        CHECK_OK(clock_sleep(clocks[i], TIMER_ABSTIME, &t, NULL));
        CHECK_GE(now(clocks[i]), until);
        CHECK_LT(now(clocks[i]), until + 3000 * MS);
        // In the past: at once.
        CHECK_OK(clock_sleep(clocks[i], TIMER_ABSTIME, &(struct timespec){1, 0}, NULL));
        CHECK_OK(clock_sleep(clocks[i], TIMER_ABSTIME, &(struct timespec){0, 0}, NULL));
    }
}

static volatile int hits;
static void hit(int sig CHECK_USED) { hits++; }
static void alarm_in(long us) {
    signal(SIGALRM, hit);
    CHECK_OK(setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, us}}, NULL));
}

CASE(remainders) {
    struct timespec rest = {0, 0};
    alarm_in(50000);
    CHECK_ERRNO(syscall(SYS_nanosleep, &(struct timespec){2, 0}, &rest), EINTR);
    long long left = rest.tv_sec * 1000000000ll + rest.tv_nsec;
    CHECK_GT(left, 500 * MS);
    CHECK_LE(left, 1960 * MS);
    alarm_in(50000);
    CHECK_ERRNO(clock_sleep(CLOCK_MONOTONIC, 0, &(struct timespec){2, 0}, &rest), EINTR);
    CHECK_EQ(rest.tv_sec, 1);
    alarm_in(20000);
    CHECK_ERRNO(syscall(SYS_nanosleep, &(struct timespec){2, 0}, NULL), EINTR);
    alarm_in(20000);
    CHECK_ERRNO(syscall(SYS_nanosleep, &(struct timespec){2, 0}, 8), EFAULT);  // the remainder cannot be stored
    // Absolute: none is written, so that the call can simply be made again.
    long long until = now(CLOCK_MONOTONIC) + 100 * MS;
    struct timespec t = {until / 1000000000, until % 1000000000};
    rest.tv_sec = 77;
    alarm_in(30000);
    CHECK_ERRNO(clock_sleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, &rest), EINTR);
    CHECK_EQ(rest.tv_sec, 77);
    CHECK_OK(clock_sleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, &rest));
    CHECK_GE(now(CLOCK_MONOTONIC), until);
    CHECK_EQ(hits, 5);
}

CASE(sleep_through_many_signals) {
    // The usual loop with the remainder adds up to the whole, not to less.
    signal(SIGALRM, hit);
    CHECK_OK(setitimer(ITIMER_REAL, &(struct itimerval){{0, 5000}, {0, 5000}}, NULL));
    struct timespec t = {0, 100000000};
    TAKES(100, while (nanosleep(&t, &t) == -1) CHECK_EQ(errno, EINTR));
    CHECK_GE(hits, 3);
}

CASE(cpu_clock_sleep) {
    // Sleeping on the process's CPU clock needs somebody else in it to work; here only an expired time is possible.
    CHECK_OK(clock_sleep(CLOCK_PROCESS_CPUTIME_ID, TIMER_ABSTIME, &(struct timespec){0, 1}, NULL));
}

CASE(timeouts_of_waiting_calls) {
    int fds[2];
    CHECK_OK(pipe(fds));
    struct pollfd p = {fds[0], POLLIN, 0};
    TAKES(40, CHECK_EQ(poll(&p, 1, 40), 0));
    TAKES(0, CHECK_EQ(poll(&p, 1, 0), 0));
    TAKES(40, CHECK_EQ(poll(NULL, 0, 40), 0));
    TAKES(40, CHECK_EQ(ppoll(&p, 1, &(struct timespec){0, 40000000}, NULL), 0));
    struct timeval v = {0, 40000};
    TAKES(40, CHECK_EQ(syscall(SYS_select, 0, NULL, NULL, NULL, &v), 0));
    CHECK_EQ(v.tv_sec + v.tv_usec, 0);  // select stores what is left
    int ep = CHECK_OK(epoll_create1(0));
    struct epoll_event e;
    TAKES(40, CHECK_EQ(epoll_wait(ep, &e, 1, 40), 0));
    TAKES(0, CHECK_EQ(epoll_wait(ep, &e, 1, 0), 0));
    // What is left when something comes first.
    CHECK_EQ(write(fds[1], "x", 1), 1);
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fds[0], &set);
    v = (struct timeval){5, 0};
    CHECK_EQ(syscall(SYS_select, fds[0] + 1, &set, NULL, NULL, &v), 1);
    CHECK(v.tv_sec == 4 || (v.tv_sec == 5 && v.tv_usec == 0));
    struct timespec t = {5, 0};
    CHECK_EQ(syscall(SYS_ppoll, &p, 1, &t, NULL, 8), 1);
    CHECK(t.tv_sec == 4 || (t.tv_sec == 5 && t.tv_nsec == 0));
    // Errors in the time.
    CHECK_ERRNO(ppoll(&p, 1, &(struct timespec){0, 1000000000}, NULL), EINVAL);
    CHECK_ERRNO(ppoll(&p, 1, &(struct timespec){-1, 0}, NULL), EINVAL);
    v = (struct timeval){-1, 0};
    CHECK_ERRNO(syscall(SYS_select, 0, NULL, NULL, NULL, &v), EINVAL);
    v = (struct timeval){0, 1100000};  // select adds whole seconds up
    TAKES(1100, CHECK_EQ(syscall(SYS_select, 0, NULL, NULL, NULL, &v), 0));
}

CASE(yield_and_short_sleeps) {
    for (int i = 0; i < 200; i++) {
        CHECK_OK(syscall(SYS_sched_yield));
        CHECK_OK(nanosleep(&(struct timespec){0, 50000}, NULL));
    }
}

CASE(many_sleepers_wake_in_order) {
    int fds[2];
    CHECK_OK(pipe(fds));
    long long base = now(CLOCK_MONOTONIC) + 60 * MS;
    for (int i = 0; i < 10; i++) {
        pid_t p = CHECK_OK(fork());
        if (p == 0) {
            long long until = base + (9 - i) * 20 * MS;
            struct timespec t = {until / 1000000000, until % 1000000000};
            while (clock_sleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL)) {}
            CHECK_GE(now(CLOCK_MONOTONIC), until);
            char c = i;
            CHECK_EQ(write(fds[1], &c, 1), 1);
            _exit(0);
        }
    }
    int in_order = 0;
    for (int i = 0; i < 10; i++) {
        char c;
        CHECK_EQ(read(fds[0], &c, 1), 1);
        in_order += c == 9 - i;
    }
    CHECK_GE(in_order, 6);  // neighbours may change places on a loaded machine
    while (wait(NULL) > 0) {}
}

MAIN
