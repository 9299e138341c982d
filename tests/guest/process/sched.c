// build: static -pthread
// Affinity, priorities and scheduling policies as a program sees them.
#include "clone.h"
#include <pthread.h>
#include <sys/resource.h>

static long raw_getaffinity(pid_t p, size_t size, void *set) { return syscall(SYS_sched_getaffinity, p, size, set); }
static long raw_setaffinity(pid_t p, size_t size, void *set) { return syscall(SYS_sched_setaffinity, p, size, set); }

CASE(affinity_get) {
    unsigned long set[128] = {0};
    long n = CHECK_OK(raw_getaffinity(0, sizeof set, set));
    CHECK_GT(n, 0);
    CHECK_EQ(n % 8, 0);
    int cpus = 0;
    for (int i = 0; i < n / 8; i++) cpus += __builtin_popcountl(set[i]);
    CHECK_GE(cpus, 1);
    CHECK_LE(cpus, sysconf(_SC_NPROCESSORS_CONF));
    CHECK_ERRNO(raw_getaffinity(0, 7, set), EINVAL);
    CHECK_ERRNO(raw_getaffinity(0, 12, set), EINVAL);
    CHECK_ERRNO(raw_getaffinity(0, 0, set), EINVAL);
    CHECK_ERRNO(raw_getaffinity(0x3fffffff, sizeof set, set), ESRCH);
    CHECK_ERRNO(raw_getaffinity(-1, sizeof set, set), ESRCH);
}

static volatile int moving_tid;
static volatile int moving_cpu = -1;

static void *moving(void *unused)
{
    (void)unused;
    moving_tid = syscall(SYS_gettid);
    for (;;) {
        unsigned cpu, node;
        syscall(SYS_getcpu, &cpu, &node, NULL);
        moving_cpu = cpu;
    }
}

CASE(affinity_of_another_thread) {
    unsigned long set[128] = {0}, one[128];
    long n = CHECK_OK(raw_getaffinity(0, sizeof set, set));
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, moving, NULL), 0);
    while (!moving_tid) sched_yield();
    for (int round = 0; round < 2; round++)
        for (int cpu = 0; cpu < n * 8; cpu++) {
            if (!(set[cpu / 64] >> cpu % 64 & 1)) continue;
            memset(one, 0, sizeof one);
            one[cpu / 64] = 1ul << cpu % 64;
            CHECK_OK(raw_setaffinity(moving_tid, n, one));
            while (moving_cpu != cpu) sched_yield();
            for (int look = 0; look < 500; look++) {
                CHECK_EQ(moving_cpu, cpu);
                sched_yield();
            }
        }
}

CASE(affinity_set_and_inherit) {
    unsigned long set[128] = {0}, one[128] = {0}, got[128] = {0};
    long n = CHECK_OK(raw_getaffinity(0, sizeof set, set));
    int first = 0;
    while (!(set[first / 64] >> first % 64 & 1)) first++;
    one[first / 64] = 1ul << first % 64;
    CHECK_OK(raw_setaffinity(0, n, one));
    CHECK_EQ(raw_getaffinity(pid(), sizeof got, got), n);
    CHECK_EQ(memcmp(one, got, n), 0);
    unsigned cpu = 99, node = 99;
    CHECK_OK(syscall(SYS_getcpu, &cpu, &node, NULL));
    CHECK_EQ(cpu, first);
    IN_CHILD({
        unsigned long c[128] = {0};
        CHECK_EQ(raw_getaffinity(0, sizeof c, c), n);
        CHECK_EQ(memcmp(one, c, n), 0);
    });
    // CPUs that are not there are masked away; none left is an error.
    memset(got, 0xff, sizeof got);
    CHECK_OK(raw_setaffinity(0, sizeof got, got));
    CHECK_EQ(raw_getaffinity(0, sizeof got, got), n);
    CHECK_EQ(memcmp(set, got, n), 0);
    memset(got, 0, sizeof got);
    CHECK_ERRNO(raw_setaffinity(0, sizeof got, got), EINVAL);
    CHECK_ERRNO(raw_setaffinity(0, sizeof got, (void *)8), EFAULT);
    CHECK_ERRNO(raw_setaffinity(0x3fffffff, n, one), ESRCH);
    if (foreign_init()) CHECK_ERRNO(raw_setaffinity(1, n, one), EPERM);
}

CASE(affinity_of_a_child) {
    unsigned long set[128] = {0}, got[128] = {0};
    long n = CHECK_OK(raw_getaffinity(0, sizeof set, set));
    pid_t p = CHECK_OK(fork());
    if (p == 0)
        for (;;) pause();
    unsigned long one[128] = {0};
    for (int i = 0; i < n / 8; i++)
        if (set[i]) {
            one[i] = set[i] & -set[i];
            break;
        }
    CHECK_OK(raw_setaffinity(p, n, one));
    CHECK_EQ(raw_getaffinity(p, sizeof got, got), n);
    CHECK_EQ(memcmp(one, got, n), 0);
    CHECK_OK(kill(p, SIGKILL));
    CHECK_KILLED(p, SIGKILL);
    CHECK_ERRNO(raw_getaffinity(p, sizeof got, got), ESRCH);
}

static volatile int spinner_tid, spinner_cpu, spinner_stop;
static void *spin(void *unused) {
    spinner_tid = tid();
    while (!spinner_stop) {
        unsigned cpu = 0;
        syscall(SYS_getcpu, &cpu, NULL, NULL);
        spinner_cpu = cpu;
    }
    return unused;
}

CASE(affinity_moves_another_thread_that_runs) {
    unsigned long set[128] = {0}, one[128];
    long n = CHECK_OK(raw_getaffinity(0, sizeof set, set));
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, spin, NULL), 0);
    while (!spinner_tid) sched_yield();
    for (int cpu = 0; cpu < n * 8; cpu++) {
        if (!(set[cpu / 64] >> cpu % 64 & 1)) continue;
        memset(one, 0, sizeof one);
        one[cpu / 64] = 1ul << cpu % 64;
        CHECK_OK(raw_setaffinity(spinner_tid, n, one));
        // Soon, however busy the machine is: the case's own time limit is the bound.
        while (spinner_cpu != cpu) sleep_ms(1);
    }
    spinner_stop = 1;
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

CASE(getcpu_is_within_the_set) {
    unsigned long set[128] = {0};
    CHECK_OK(raw_getaffinity(0, sizeof set, set));
    for (int i = 0; i < 50; i++) {
        unsigned cpu = 9999;
        CHECK_OK(syscall(SYS_getcpu, &cpu, NULL, NULL));
        CHECK(set[cpu / 64] >> cpu % 64 & 1);
        CHECK_GE(sched_getcpu(), 0);
        sched_yield();
    }
    CHECK_OK(syscall(SYS_getcpu, NULL, NULL, NULL));
    CHECK_ERRNO(syscall(SYS_getcpu, 8, NULL, NULL), EFAULT);
}

CASE(getcpu_where_it_may_not_write) {
    unsigned cpu = 7777, node = 7777;
    CHECK_OK(syscall(SYS_getcpu, NULL, NULL, NULL));
    CHECK_OK(syscall(SYS_getcpu, NULL, &node, NULL));
    CHECK_NE(node, 7777);
    // Each is tried, whatever becomes of the other.
    CHECK_ERRNO(syscall(SYS_getcpu, 1L, &node, NULL), EFAULT);
    node = 7777;
    CHECK_ERRNO(syscall(SYS_getcpu, -4096L, &node, NULL), EFAULT);
    CHECK_NE(node, 7777);
    CHECK_ERRNO(syscall(SYS_getcpu, &cpu, 1L, NULL), EFAULT);
    CHECK_NE(cpu, 7777);
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK_MAP(pages);
    CHECK_OK(munmap(pages + 4096, 4096));
    CHECK_ERRNO(syscall(SYS_getcpu, pages + 4094, NULL, NULL), EFAULT);
    CHECK_OK(mprotect(pages, 4096, PROT_READ));
    CHECK_ERRNO(syscall(SYS_getcpu, pages, NULL, NULL), EFAULT);
    CHECK_ERRNO(syscall(SYS_getcpu, NULL, pages, NULL), EFAULT);
}

CASE(nice_values) {
    errno = 0;
    // The raw call returns 20 - nice; libc turns it round.
    CHECK_EQ(syscall(SYS_getpriority, PRIO_PROCESS, 0), 20 - getpriority(PRIO_PROCESS, 0));
    int was = getpriority(PRIO_PROCESS, 0);
    CHECK_OK(setpriority(PRIO_PROCESS, 0, was + 3));
    CHECK_EQ(getpriority(PRIO_PROCESS, pid()), was + 3);
    CHECK_EQ(stat_field(pid(), 19), was + 3);
    CHECK_EQ(stat_field(pid(), 18), 20 + was + 3);
    IN_CHILD(CHECK_EQ(getpriority(PRIO_PROCESS, 0), was + 3));
    CHECK_OK(setpriority(PRIO_PROCESS, 0, 100));  // cut to 19
    CHECK_EQ(getpriority(PRIO_PROCESS, 0), 19);
    CHECK_ERRNO(syscall(SYS_setpriority, 3, 0, 0), EINVAL);
    CHECK_ERRNO(syscall(SYS_getpriority, -1, 0), EINVAL);
    CHECK_ERRNO(setpriority(PRIO_PROCESS, 0x3fffffff, 0), ESRCH);
    CHECK_ERRNO(syscall(SYS_getpriority, PRIO_PROCESS, 0x3fffffff), ESRCH);
    if (geteuid() != 0) {
        CHECK_ERRNO(setpriority(PRIO_PROCESS, 0, -5), EACCES);
        if (foreign_init()) CHECK_ERRNO(setpriority(PRIO_PROCESS, 1, 5), EPERM);
    } else {
        CHECK_OK(setpriority(PRIO_PROCESS, 0, -5));
        CHECK_EQ(getpriority(PRIO_PROCESS, 0), -5);
        CHECK_EQ(syscall(SYS_getpriority, PRIO_PROCESS, 0), 25);
    }
}

CASE(nice_of_groups_and_users) {
    pid_t p = CHECK_OK(fork());
    if (p == 0)
        for (;;) pause();
    CHECK_OK(setpriority(PRIO_PGRP, 0, 7));
    CHECK_EQ(getpriority(PRIO_PROCESS, p), 7);
    CHECK_EQ(getpriority(PRIO_PROCESS, 0), 7);
    CHECK_OK(setpriority(PRIO_PROCESS, p, 9));
    CHECK_EQ(getpriority(PRIO_PGRP, getpgrp()), 7);  // the most favourable one
    CHECK_LE(getpriority(PRIO_USER, 0), 7);
    CHECK_OK(kill(p, SIGKILL));
    CHECK_KILLED(p, SIGKILL);
}

static void *nice_thread(void *arg) {
    CHECK_OK(setpriority(PRIO_PROCESS, 0, 11));
    CHECK_EQ(getpriority(PRIO_PROCESS, 0), 11);
    return arg;
}

CASE(nice_is_per_thread) {
    int was = getpriority(PRIO_PROCESS, 0);
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, nice_thread, NULL), 0);
    CHECK_EQ(pthread_join(t, NULL), 0);
    CHECK_EQ(getpriority(PRIO_PROCESS, 0), was);
}

CASE(policies) {
    struct sched_param param = {5};
    CHECK_EQ(sched_getscheduler(0), SCHED_OTHER);
    CHECK_OK(sched_getparam(0, &param));
    CHECK_EQ(param.sched_priority, 0);
    CHECK_OK(sched_setscheduler(0, SCHED_BATCH, &param));
    CHECK_EQ(sched_getscheduler(pid()), SCHED_BATCH);
    IN_CHILD(CHECK_EQ(sched_getscheduler(0), SCHED_BATCH));
    IN_CHILD({
        CHECK_OK(sched_setscheduler(0, SCHED_IDLE, &param));
        CHECK_EQ(sched_getscheduler(0), SCHED_IDLE);
        // There is no way back for who may not raise priorities.
        struct rlimit nice;
        CHECK_OK(getrlimit(RLIMIT_NICE, &nice));
        if (geteuid() != 0 && nice.rlim_cur == 0) CHECK_ERRNO(sched_setscheduler(0, SCHED_OTHER, &param), EPERM);
    });
    CHECK_OK(sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &param));
    CHECK_EQ(sched_getscheduler(0), SCHED_OTHER | SCHED_RESET_ON_FORK);
    IN_CHILD(CHECK_EQ(sched_getscheduler(0), SCHED_OTHER));
    param.sched_priority = 1;
    CHECK_ERRNO(sched_setscheduler(0, SCHED_OTHER, &param), EINVAL);
    CHECK_ERRNO(sched_setscheduler(0, 99, &param), EINVAL);
    CHECK_ERRNO(sched_setscheduler(0, -1, &param), EINVAL);
    CHECK_ERRNO(sched_setscheduler(0, SCHED_OTHER, NULL), EINVAL);
    CHECK_ERRNO(sched_getscheduler(-1), EINVAL);
    CHECK_ERRNO(sched_getscheduler(0x3fffffff), ESRCH);
    CHECK_ERRNO(sched_getparam(0, NULL), EINVAL);
    param.sched_priority = 100;
    CHECK_ERRNO(sched_setscheduler(0, SCHED_FIFO, &param), EINVAL);
    param.sched_priority = 0;
    CHECK_ERRNO(sched_setscheduler(0, SCHED_FIFO, &param), EINVAL);
    param.sched_priority = 5;
    if (geteuid() != 0) CHECK_ERRNO(sched_setscheduler(0, SCHED_FIFO, &param), EPERM);
}

CASE(priority_ranges) {
    CHECK_EQ(sched_get_priority_min(SCHED_OTHER), 0);
    CHECK_EQ(sched_get_priority_max(SCHED_OTHER), 0);
    CHECK_EQ(sched_get_priority_min(SCHED_FIFO), 1);
    CHECK_EQ(sched_get_priority_max(SCHED_FIFO), 99);
    CHECK_EQ(sched_get_priority_max(SCHED_RR), 99);
    CHECK_EQ(sched_get_priority_max(SCHED_BATCH), 0);
    CHECK_ERRNO(sched_get_priority_max(77), EINVAL);
    CHECK_ERRNO(sched_get_priority_min(-1), EINVAL);
    struct timespec t = {9, 9};
    CHECK_OK(sched_rr_get_interval(0, &t));
    CHECK_EQ(t.tv_sec, 0);
    CHECK_ERRNO(sched_rr_get_interval(-1, &t), EINVAL);
    CHECK_ERRNO(sched_rr_get_interval(0x3fffffff, &t), ESRCH);
}

struct attr { uint32_t size, policy; uint64_t flags; int32_t nice; uint32_t priority; uint64_t runtime, deadline, period; uint32_t lo, hi; };

CASE(sched_attr) {
    struct attr a;
    memset(&a, 0xff, sizeof a);
    CHECK_OK(setpriority(PRIO_PROCESS, 0, 4));
    CHECK_OK(syscall(SYS_sched_getattr, 0, &a, sizeof a, 0));
    CHECK_GE(a.size, 48);
    CHECK_EQ(a.policy, SCHED_OTHER);
    CHECK_EQ(a.nice, 4);
    CHECK_EQ(a.priority, 0);
    a = (struct attr){.size = 48, .policy = SCHED_BATCH, .nice = 6};
    CHECK_OK(syscall(SYS_sched_setattr, 0, &a, 0));
    CHECK_EQ(getpriority(PRIO_PROCESS, 0), 6);
    CHECK_EQ(sched_getscheduler(0), SCHED_BATCH);
    CHECK_ERRNO(syscall(SYS_sched_getattr, 0, &a, 47, 0), EINVAL);
    CHECK_ERRNO(syscall(SYS_sched_getattr, 0, &a, 48, 1), EINVAL);
    CHECK_ERRNO(syscall(SYS_sched_getattr, 0, NULL, 48, 0), EINVAL);
    CHECK_ERRNO(syscall(SYS_sched_setattr, 0, &a, 1), EINVAL);
    CHECK_ERRNO(syscall(SYS_sched_setattr, -1, &a, 0), EINVAL);
    a.size = 20;
    CHECK_ERRNO(syscall(SYS_sched_setattr, 0, &a, 0), E2BIG);
    CHECK_GE(a.size, 48);  // what would have been right
}

MAIN
