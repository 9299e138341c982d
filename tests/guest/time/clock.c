// build: static
// Clocks: they tick, agree with each other and with the other calls, and refuse what they must.
#include "../check.h"
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>

static long raw_get(clockid_t c, struct timespec *t) { return syscall(SYS_clock_gettime, c, t); }
static long raw_res(clockid_t c, struct timespec *t) { return syscall(SYS_clock_getres, c, t); }
static long long ns(struct timespec t) { return t.tv_sec * 1000000000ll + t.tv_nsec; }
static long long get(clockid_t c) {
    struct timespec t;
    CHECK_OK(raw_get(c, &t));
    return ns(t);
}
#define MS 1000000ll

static const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID,
                                   CLOCK_MONOTONIC_RAW, CLOCK_REALTIME_COARSE, CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME,
                                   CLOCK_TAI};
enum { CLOCKS = sizeof clocks / sizeof *clocks };

CASE(all_clocks_answer) {
    for (int i = 0; i < CLOCKS; i++) {
        struct timespec t = {-1, -1}, r = {-1, -1};
        CHECK_OK(raw_get(clocks[i], &t));
        CHECK_GE(t.tv_sec, 0);
        CHECK(t.tv_nsec >= 0 && t.tv_nsec < 1000000000);
        CHECK_OK(raw_res(clocks[i], &r));
        CHECK_EQ(r.tv_sec, 0);
        CHECK(r.tv_nsec >= 1 && r.tv_nsec <= 20 * MS);
        CHECK_OK(raw_res(clocks[i], NULL));
    }
    struct timespec r;
    CHECK_OK(raw_res(CLOCK_MONOTONIC, &r));
    CHECK_EQ(r.tv_nsec, 1);
    CHECK_OK(raw_res(CLOCK_MONOTONIC_COARSE, &r));
    CHECK_GE(r.tv_nsec, MS);
}

CASE(bad_clocks) {
    static const clockid_t bad[] = {10, 12, 16, 17, 99, 1000, INT_MAX};
    struct timespec t = {1, 0};
    for (int i = 0; i < 7; i++) {
        CHECK_ERRNO(raw_get(bad[i], &t), EINVAL);
        CHECK_ERRNO(raw_res(bad[i], &t), EINVAL);
        CHECK_ERRNO(syscall(SYS_clock_settime, bad[i], &t), EINVAL);
        CHECK_ERRNO(syscall(SYS_clock_nanosleep, bad[i], 0, &t, NULL), EINVAL);
    }
    CHECK_ERRNO(raw_get(CLOCK_REALTIME, (void *)8), EFAULT);
    CHECK_ERRNO(raw_get(CLOCK_BOOTTIME, NULL), EFAULT);
    CHECK_ERRNO(raw_res(CLOCK_BOOTTIME, (void *)8), EFAULT);
}

CASE(vdso_and_call_agree) {
    // libc's clock_gettime uses the vDSO; between two calls it must lie between them.
    static const clockid_t both[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_TAI, CLOCK_MONOTONIC_RAW};
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < 200; k++) {
            struct timespec t;
            long long a = get(both[i]);
            CHECK_OK(clock_gettime(both[i], &t));
            long long b = get(both[i]);
            CHECK_LE(a, ns(t));
            CHECK_LE(ns(t), b);
        }
}

CASE(monotone) {
    static const clockid_t never_back[] = {CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_BOOTTIME, CLOCK_MONOTONIC_COARSE,
                                           CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID};
    for (int i = 0; i < 6; i++) {
        long long last = 0;
        for (int k = 0; k < 1000; k++) {
            long long t = get(never_back[i]);
            CHECK_GE(t, last);
            last = t;
        }
    }
}

CASE(clocks_run_at_one_speed) {
    struct timespec nap = {0, 100000000};
    long long a[CLOCKS], b[CLOCKS];
    for (int i = 0; i < CLOCKS; i++) a[i] = get(clocks[i]);
    CHECK_OK(nanosleep(&nap, NULL));
    for (int i = 0; i < CLOCKS; i++) b[i] = get(clocks[i]);
    for (int i = 0; i < CLOCKS; i++) {
        if (clocks[i] == CLOCK_PROCESS_CPUTIME_ID || clocks[i] == CLOCK_THREAD_CPUTIME_ID) {
            CHECK_LT(b[i] - a[i], 60 * MS);  // asleep
            continue;
        }
        CHECK_GE(b[i] - a[i], 85 * MS);  // coarse clocks may be a tick behind
        CHECK_LT(b[i] - a[i], 3000 * MS);
    }
}

CASE(coarse_clocks_follow) {
    for (int i = 0; i < 100; i++) {
        long long coarse = get(CLOCK_MONOTONIC_COARSE), fine = get(CLOCK_MONOTONIC);
        CHECK_LE(coarse, fine);
        CHECK_LT(fine - coarse, 1000 * MS);
        CHECK_LE(get(CLOCK_REALTIME_COARSE), get(CLOCK_REALTIME));
    }
}

CASE(time_and_gettimeofday) {
    for (int i = 0; i < 200; i++) {
        struct timeval v = {0, -1}, w;
        long long a = get(CLOCK_REALTIME);
        CHECK_OK(gettimeofday(&v, NULL));
        CHECK_OK(syscall(SYS_gettimeofday, &w, NULL));
        long long b = get(CLOCK_REALTIME);
        CHECK(v.tv_usec >= 0 && v.tv_usec < 1000000);
        CHECK_LE(a / 1000, v.tv_sec * 1000000ll + v.tv_usec);
        CHECK_LE(v.tv_sec * 1000000ll + v.tv_usec, w.tv_sec * 1000000ll + w.tv_usec);
        CHECK_LE(w.tv_sec * 1000000ll + w.tv_usec, b / 1000);
    }
    // time() reads the coarse clock: it may be a tick behind.
    long long before = get(CLOCK_REALTIME_COARSE) / 1000000000;
    time_t t = time(NULL), s = 0;
    CHECK_EQ(syscall(SYS_time, &s), s);
    CHECK_LE(before, t);
    CHECK_LE(t, s);
    CHECK_LE(s, get(CLOCK_REALTIME) / 1000000000);
    CHECK_ERRNO(syscall(SYS_time, 8), EFAULT);
    struct timezone tz = {77, 77};
    CHECK_OK(syscall(SYS_gettimeofday, NULL, &tz));
    CHECK_NE(tz.tz_minuteswest, 77);
    CHECK_OK(syscall(SYS_gettimeofday, NULL, NULL));
}

CASE(realtime_is_plausible) {
    CHECK_GT(time(NULL), 1700000000);
    long long before = get(CLOCK_MONOTONIC); // not in one expression: we may be preempted between the two
    CHECK_GE(get(CLOCK_BOOTTIME), before - MS);
    int fd = CHECK_OK(open(TMP("f"), O_RDWR | O_CREAT, 0600));
    struct stat st;
    CHECK_OK(fstat(fd, &st));
    long long d = ns(st.st_mtim) - get(CLOCK_REALTIME);
    CHECK(d < 1000 * MS && d > -5000 * MS);
}

CASE(cpu_clocks_count_work) {
    long long wall = get(CLOCK_MONOTONIC), p = get(CLOCK_PROCESS_CPUTIME_ID), t = get(CLOCK_THREAD_CPUTIME_ID);
    while (get(CLOCK_PROCESS_CPUTIME_ID) - p < 50 * MS) CHECK_LT(get(CLOCK_MONOTONIC) - wall, 15000 * MS);
    CHECK_GE(get(CLOCK_THREAD_CPUTIME_ID) - t, 40 * MS);
    p = get(CLOCK_PROCESS_CPUTIME_ID) - p;
    CHECK_LE(p, get(CLOCK_MONOTONIC) - wall + 20 * MS);  // one thread works no faster than time passes
    IN_CHILD(CHECK_LT(get(CLOCK_PROCESS_CPUTIME_ID), 20 * MS));  // starts from zero
    clock_t c = clock();
    CHECK_GE(c, 40000);
}

CASE(cpu_clock_of_another_process) {
    int fds[2];
    CHECK_OK(pipe(fds));
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        while (get(CLOCK_PROCESS_CPUTIME_ID) < 30 * MS) {}
        CHECK_EQ(write(fds[1], "x", 1), 1);
        for (;;) pause();
    }
    clockid_t c;
    char byte;
    CHECK_EQ(read(fds[0], &byte, 1), 1);
    CHECK_EQ(clock_getcpuclockid(p, &c), 0);
    CHECK_GE(get(c), 30 * MS);
    CHECK_LT(get(c), 1000 * MS);
    CHECK_EQ(clock_getcpuclockid(getpid(), &c), 0);
    CHECK_GE(get(c), 0);
    CHECK_OK(kill(p, SIGKILL));
    CHECK_KILLED(p, SIGKILL);
    CHECK_EQ(clock_getcpuclockid(p, &c), ESRCH);
}

CASE(setting_clocks) {
    struct timespec t = {1, 0};
    struct timeval v = {1, 0};
    CHECK_ERRNO(syscall(SYS_clock_settime, CLOCK_MONOTONIC, &t), EINVAL);
    CHECK_ERRNO(syscall(SYS_clock_settime, CLOCK_BOOTTIME, &t), EINVAL);
    CHECK_ERRNO(syscall(SYS_clock_settime, CLOCK_PROCESS_CPUTIME_ID, &t), EINVAL);
    CHECK_ERRNO(syscall(SYS_clock_settime, CLOCK_REALTIME, (void *)8), EFAULT);
    t.tv_nsec = 1000000000;
    CHECK_ERRNO(syscall(SYS_clock_settime, CLOCK_REALTIME, &t), EINVAL);
    if (geteuid() == 0) return;  // the host's clock is not for us to move
    t.tv_nsec = 0;
    CHECK_ERRNO(syscall(SYS_clock_settime, CLOCK_REALTIME, &t), EPERM);
    CHECK_ERRNO(settimeofday(&v, NULL), EPERM);
    struct timex x = {.modes = ADJ_FREQUENCY};
    CHECK_ERRNO(adjtimex(&x), EPERM);
}

CASE(adjtimex_reads) {
    struct timex x = {0};
    long r = adjtimex(&x);
    if (r == -1 && (errno == ENOSYS || errno == EPERM)) SKIP("no adjtimex");
    CHECK_GE(r, 0);
    CHECK_GT(x.tick, 8000);
    CHECK_ERRNO(syscall(SYS_adjtimex, 8), EFAULT);
}

CASE(forks_and_execs_see_the_same_time) {
    long long before = get(CLOCK_MONOTONIC);
    volatile long long *shared = CHECK_MAP(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    IN_CHILD(*shared = get(CLOCK_MONOTONIC));
    CHECK_LE(before, *shared);
    CHECK_LE(*shared, get(CLOCK_MONOTONIC));
}

MAIN
