// build: static -lrt
// alarm, setitimer and POSIX timers: when they fire, what they send, overruns, and who inherits them.
#include "sig.h"
#include <sys/time.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif
static int timer_make(clockid_t clock, int sig, void *value) {
    struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = sig, .sigev_value.sival_ptr = value};
    int id = -1;
    CHECK_OK(syscall(SYS_timer_create, clock, &ev, &id));
    return id;
}
static void timer_set(int id, long first_ms, long every_ms) {
    struct itimerspec t = {{every_ms / 1000, every_ms % 1000 * 1000000}, {first_ms / 1000, first_ms % 1000 * 1000000}};
    CHECK_OK(syscall(SYS_timer_settime, id, 0, &t, NULL));
}
static void wait_hits(int n) {
    long t = now_ms();
    while (hits < n && now_ms() - t < 5000) sleep_ms(1);
    CHECK_GE(hits, n);
}
static void burn(long ms) {
    struct timespec t, s;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &s);
    do clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    while ((t.tv_sec - s.tv_sec) * 1000 + (t.tv_nsec - s.tv_nsec) / 1000000 < ms);
}

CASE(alarm_in_seconds) {
    handle_info(SIGALRM, keep_info, 0);
    CHECK_EQ(alarm(100), 0);
    CHECK_EQ(alarm(50), 100);  // rounded up
    CHECK_EQ(alarm(1), 50);
    long t = now_ms();
    CHECK_ERRNO(pause(), EINTR);
    CHECK_GE(now_ms() - t, 990);
    CHECK_EQ(hits, 1);
    CHECK_EQ(last.si_code, SI_KERNEL);
    CHECK_EQ(last.si_pid, 0);
    CHECK_EQ(alarm(0), 0);
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        signal(SIGALRM, SIG_DFL);
        ualarm(10000, 0);
        for (;;) pause();
    }
    CHECK_KILLED(p, SIGALRM);
}

CASE(alarm_and_itimer_are_one) {
    struct itimerval v;
    handle(SIGALRM, count_hit, 0);
    alarm(100);
    CHECK_OK(getitimer(ITIMER_REAL, &v));
    CHECK_GE(v.it_value.tv_sec, 99);
    CHECK_EQ(v.it_interval.tv_sec + v.it_interval.tv_usec, 0);
    v = (struct itimerval){{0, 0}, {77, 0}};
    CHECK_OK(setitimer(ITIMER_REAL, &v, NULL));
    CHECK_EQ(alarm(0), 77);
    CHECK_OK(getitimer(ITIMER_REAL, &v));
    CHECK_EQ(v.it_value.tv_sec + v.it_value.tv_usec, 0);
}

CASE(itimer_real_repeats) {
    handle(SIGALRM, count_hit, 0);
    struct itimerval v = {{0, 10000}, {0, 20000}}, old;
    long t = now_ms();
    CHECK_OK(setitimer(ITIMER_REAL, &v, NULL));
    wait_hits(5);
    CHECK_GE(now_ms() - t, 55);
    CHECK_OK(setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, &old));
    CHECK_EQ(old.it_interval.tv_usec, 10000);
    CHECK_LE(old.it_value.tv_usec, 10000);
    int n = hits;
    sleep_ms(40);
    CHECK_EQ(hits, n);
}

CASE(itimer_errors) {
    struct itimerval v = {{0, 0}, {0, 1000000}};
    CHECK_ERRNO(setitimer(ITIMER_REAL, &v, NULL), EINVAL);
    v.it_value.tv_usec = -1;
    CHECK_ERRNO(setitimer(ITIMER_REAL, &v, NULL), EINVAL);
    v = (struct itimerval){{-1, 0}, {0, 0}};
    CHECK_ERRNO(setitimer(ITIMER_REAL, &v, NULL), EINVAL);
    v = (struct itimerval){{0, 0}, {0, 0}};
    CHECK_ERRNO(syscall(SYS_setitimer, 3, &v, NULL), EINVAL);
    CHECK_ERRNO(syscall(SYS_getitimer, -1, &v), EINVAL);
    CHECK_ERRNO(syscall(SYS_getitimer, 0, 8), EFAULT);
    CHECK_ERRNO(syscall(SYS_setitimer, 0, 8, NULL), EFAULT);
}

CASE(cpu_itimers) {
    handle(SIGVTALRM, count_hit, 0);
    handle(SIGPROF, count_hit, 0);
    CHECK_OK(setitimer(ITIMER_VIRTUAL, &(struct itimerval){{0, 0}, {0, 30000}}, NULL));
    sleep_ms(80);
    CHECK_EQ(hits, 0);  // does not run while we sleep
    long t = now_ms();
    while (hits == 0 && now_ms() - t < 5000) {}
    CHECK_EQ(hits, 1);
    CHECK_OK(setitimer(ITIMER_PROF, &(struct itimerval){{0, 10000}, {0, 10000}}, NULL));
    t = now_ms();
    while (hits < 4 && now_ms() - t < 5000) {}
    CHECK_GE(hits, 4);
    CHECK_OK(setitimer(ITIMER_PROF, &(struct itimerval){{0, 0}, {0, 0}}, NULL));
}

CASE(posix_timer_and_its_siginfo) {
    static int object;
    handle_info(SIGRTMIN, keep_info, 0);
    int id = timer_make(CLOCK_MONOTONIC, SIGRTMIN, &object);
    long t = now_ms();
    timer_set(id, 40, 0);
    struct itimerspec left;
    CHECK_OK(syscall(SYS_timer_gettime, id, &left));
    CHECK_GT(left.it_value.tv_nsec, 0);
    CHECK_LE(left.it_value.tv_nsec, 40000000);
    wait_hits(1);
    CHECK_GE(now_ms() - t, 39);
    CHECK_EQ(last.si_code, SI_TIMER);
    CHECK_EQ((long)last.si_value.sival_ptr, (long)&object);
    CHECK_EQ(last.si_timerid, id);
    CHECK_EQ(last.si_overrun, 0);
    CHECK_OK(syscall(SYS_timer_gettime, id, &left));
    CHECK_EQ(left.it_value.tv_sec + left.it_value.tv_nsec, 0);
    sleep_ms(50);
    CHECK_EQ(hits, 1);
    CHECK_OK(syscall(SYS_timer_delete, id));
    CHECK_ERRNO(syscall(SYS_timer_delete, id), EINVAL);
    CHECK_ERRNO(syscall(SYS_timer_gettime, id, &left), EINVAL);
}

// The greatest overrun count seen: on a busy machine another expiry follows before the first is looked at.
static volatile int most;
static void keep_most(int sig, siginfo_t *info, void *context) {
    keep_info(sig, info, context);
    if (info->si_overrun > most) most = info->si_overrun;
}

CASE(overruns_are_counted) {
    handle_info(SIGRTMIN, keep_most, 0);
    block(SET(SIGRTMIN));
    int id = timer_make(CLOCK_MONOTONIC, SIGRTMIN, NULL);
    timer_set(id, 5, 5);
    sleep_ms(60);
    CHECK_EQ(pending(SIGRTMIN), 1);
    timer_set(id, 0, 0);
    CHECK_GE(syscall(SYS_timer_getoverrun, id), 0);
    timer_set(id, 5, 5);
    sleep_ms(60);
    unblock(SET(SIGRTMIN));
    CHECK_GE(hits, 1);
    CHECK_GE(last.si_overrun, 0);
    block(SET(SIGRTMIN));
    most = 0;
    int first = hits;
    sleep_ms(60);
    CHECK_EQ(hits, first);
    unblock(SET(SIGRTMIN));
    // Queued once however often it fired; the rest is the overrun count.
    CHECK_GE(hits, first + 1);
    CHECK_GE(most, 5);
    block(SET(SIGRTMIN));
    CHECK_EQ(syscall(SYS_timer_getoverrun, id), last.si_overrun);
    CHECK_OK(syscall(SYS_timer_delete, id));
}

CASE(default_event_is_sigalrm_with_the_id) {
    handle_info(SIGALRM, keep_info, 0);
    int id = -1;
    CHECK_OK(syscall(SYS_timer_create, CLOCK_REALTIME, NULL, &id));
    timer_set(id, 10, 0);
    wait_hits(1);
    CHECK_EQ(last.si_code, SI_TIMER);
    CHECK_EQ(last.si_value.sival_int, id);
    // Many timers, ids of their own.
    int ids[50];
    for (int i = 0; i < 50; i++) {
        CHECK_OK(syscall(SYS_timer_create, CLOCK_MONOTONIC, NULL, &ids[i]));
        for (int j = 0; j < i; j++) CHECK_NE(ids[i], ids[j]);
    }
    for (int i = 0; i < 50; i++) CHECK_OK(syscall(SYS_timer_delete, ids[i]));
}

CASE(absolute_timers) {
    handle_info(SIGRTMIN, keep_info, 0);
    static const clockid_t clocks[] = {CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_BOOTTIME};
    for (int i = 0; i < 3; i++) {
        struct itimerspec t = {{0, 0}, {0, 0}};
        hits = 0;
        int id = timer_make(clocks[i], SIGRTMIN, NULL);
        CHECK_OK(clock_gettime(clocks[i], &t.it_value));
        struct timespec until = t.it_value, now;
        until.tv_nsec += 30000000;
        if (until.tv_nsec >= 1000000000) until.tv_nsec -= 1000000000, until.tv_sec++;
        t.it_value = until;
        CHECK_OK(syscall(SYS_timer_settime, id, TIMER_ABSTIME, &t, NULL));
        wait_hits(1);
        clock_gettime(clocks[i], &now);
        CHECK(now.tv_sec > until.tv_sec || (now.tv_sec == until.tv_sec && now.tv_nsec >= until.tv_nsec));
        // A time in the past fires at once.
        t.it_value = (struct timespec){1, 0};
        CHECK_OK(syscall(SYS_timer_settime, id, TIMER_ABSTIME, &t, NULL));
        wait_hits(2);
    }
}

CASE(cpu_clock_timers) {
    handle_info(SIGRTMIN, keep_info, 0);
    int id = timer_make(CLOCK_PROCESS_CPUTIME_ID, SIGRTMIN, NULL);
    timer_set(id, 40, 0);
    sleep_ms(80);
    CHECK_EQ(hits, 0);
    burn(80);
    CHECK_EQ(hits, 1);
    CHECK_EQ(last.si_code, SI_TIMER);
}

CASE(sigev_none_and_thread_id) {
    struct sigevent ev = {.sigev_notify = SIGEV_NONE};
    int id;
    CHECK_OK(syscall(SYS_timer_create, CLOCK_MONOTONIC, &ev, &id));
    timer_set(id, 50, 0);
    struct itimerspec left;
    CHECK_OK(syscall(SYS_timer_gettime, id, &left));
    CHECK_GT(left.it_value.tv_nsec, 0);
    sleep_ms(60);
    CHECK_OK(syscall(SYS_timer_gettime, id, &left));
    CHECK_EQ(left.it_value.tv_nsec, 0);
    handle_info(SIGRTMIN, keep_info, 0);
    ev = (struct sigevent){.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN, .sigev_value.sival_int = 5};
    ev.sigev_notify_thread_id = syscall(SYS_gettid);
    CHECK_OK(syscall(SYS_timer_create, CLOCK_MONOTONIC, &ev, &id));
    timer_set(id, 5, 0);
    wait_hits(1);
    CHECK_EQ(last.si_value.sival_int, 5);
    ev.sigev_notify_thread_id = 1;  // not of this process
    CHECK_ERRNO(syscall(SYS_timer_create, CLOCK_MONOTONIC, &ev, &id), EINVAL);
}

CASE(timer_errors) {
    struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = 65};
    struct itimerspec t = {{0, 0}, {0, 1000000000}};
    int id;
    CHECK_ERRNO(syscall(SYS_timer_create, CLOCK_MONOTONIC, &ev, &id), EINVAL);
    ev = (struct sigevent){.sigev_notify = 99, .sigev_signo = SIGALRM};
    CHECK_ERRNO(syscall(SYS_timer_create, CLOCK_MONOTONIC, &ev, &id), EINVAL);
    CHECK_ERRNO(syscall(SYS_timer_create, 99, NULL, &id), EINVAL);
    CHECK_ERRNO(syscall(SYS_timer_create, CLOCK_MONOTONIC_RAW, NULL, &id), ENOTSUP);
    CHECK_ERRNO(syscall(SYS_timer_create, CLOCK_MONOTONIC, 8, &id), EFAULT);
    CHECK_ERRNO(syscall(SYS_timer_create, CLOCK_MONOTONIC, NULL, 8), EFAULT);
    CHECK_ERRNO(syscall(SYS_timer_settime, 9999, 0, &t, NULL), EINVAL);
    CHECK_ERRNO(syscall(SYS_timer_getoverrun, 9999), EINVAL);
    CHECK_OK(syscall(SYS_timer_create, CLOCK_MONOTONIC, NULL, &id));
    CHECK_ERRNO(syscall(SYS_timer_settime, id, 0, &t, NULL), EINVAL);
    CHECK_ERRNO(syscall(SYS_timer_settime, id, 0, NULL, NULL), EINVAL);
    t.it_value.tv_nsec = -1;
    CHECK_ERRNO(syscall(SYS_timer_settime, id, 0, &t, NULL), EINVAL);
}

CASE(timers_and_fork) {
    handle_info(SIGRTMIN, keep_info, 0);
    handle(SIGALRM, count_hit, 0);
    int id = timer_make(CLOCK_MONOTONIC, SIGRTMIN, NULL);
    timer_set(id, 20, 0);
    CHECK_OK(setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 20000}}, NULL));
    IN_CHILD({
        struct itimerspec t;
        struct itimerval v;
        CHECK_ERRNO(syscall(SYS_timer_gettime, id, &t), EINVAL);
        CHECK_OK(getitimer(ITIMER_REAL, &v));
        CHECK_EQ(v.it_value.tv_usec, 0);
        sleep_ms(50);
        CHECK_EQ(hits, 0);
    });
    CHECK_EQ(hits, 2);
}

HELPER(after_exec) {
    // Interval timers survive an exec, POSIX timers do not.
    struct itimerspec t;
    struct itimerval v;
    CHECK_OK(getitimer(ITIMER_REAL, &v));
    CHECK_GT(v.it_value.tv_sec, 10);
    CHECK_ERRNO(syscall(SYS_timer_gettime, atoi(argv[2]), &t), EINVAL);
    CHECK_GT(alarm(0), 10);
}

CASE(timers_and_exec) {
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        char text[16];
        int id = timer_make(CLOCK_MONOTONIC, SIGRTMIN, NULL);
        timer_set(id, 10000, 0);
        alarm(100);
        snprintf(text, sizeof text, "%d", id);
        execl(check_self, "x", "@after_exec", text, NULL);
        FAIL("exec");
    }
    CHECK_EXIT(p, 0);
}

MAIN
