// build: dynamic -pthread
// Threads by libpthread: many of them, TLS, what they share, names in /proc, cancellation, tgkill.
#include "clone.h"
#include <pthread.h>
#include <semaphore.h>

static __thread int tls = 5;
static __thread char tls_block[3000];
static int shared;

static void *use_tls(void *arg) {
    CHECK_EQ(tls, 5);
    CHECK_EQ(tls_block[2999], 0);
    tls = (long)arg;
    tls_block[2999] = (long)arg;
    for (int i = 0; i < 20; i++) {
        sched_yield();
        CHECK_EQ(tls, (long)arg);
        CHECK_EQ(tls_block[2999], (char)(long)arg);
    }
    __atomic_add_fetch(&shared, tls, __ATOMIC_RELAXED);
    return (void *)((long)arg * 2);
}

CASE(two_hundred_threads) {
    static pthread_t t[200];
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 65536);
    for (long i = 0; i < 200; i++) CHECK_EQ(pthread_create(&t[i], &attr, use_tls, (void *)i), 0);
    for (long i = 0; i < 200; i++) {
        void *r;
        CHECK_EQ(pthread_join(t[i], &r), 0);
        CHECK_EQ((long)r, i * 2);
    }
    CHECK_EQ(shared, 199 * 200 / 2);
    CHECK_EQ(tls, 5);
}

static pthread_barrier_t barrier;
static pid_t tids[200];
static void *at_barrier(void *arg) {
    tids[(long)arg] = tid();
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return NULL;
}

CASE(threads_alive_together) {
    static pthread_t t[200];
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 65536);
    pthread_barrier_init(&barrier, NULL, 201);
    for (long i = 0; i < 200; i++) CHECK_EQ(pthread_create(&t[i], &attr, at_barrier, (void *)i), 0);
    pthread_barrier_wait(&barrier);
    // All have ids of their own, and /proc shows them all.
    for (int i = 0; i < 200; i++) {
        CHECK_NE(tids[i], pid());
        for (int j = 0; j < i; j++) CHECK_NE(tids[i], tids[j]);
    }
    CHECK_EQ(stat_field(pid(), 20), 201);
    int n = 0;
    DIR *d = opendir("/proc/self/task");
    CHECK(d != NULL);
    for (struct dirent *e; (e = readdir(d));) n += e->d_name[0] != '.';
    closedir(d);
    CHECK_EQ(n, 201);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 200; i++) CHECK_EQ(pthread_join(t[i], NULL), 0);
    // A joined thread may still be on its way out of the table.
    for (int i = 0; i < 500 && stat_field(pid(), 20) != 1; i++) sleep_ms(2);
    CHECK_EQ(stat_field(pid(), 20), 1);
    CHECK_ERRNO(syscall(SYS_tgkill, pid(), tids[0], 0), ESRCH);
}

static void *nothing(void *arg) { return arg; }

CASE(threads_one_after_another) {
    for (long i = 0; i < 1000; i++) {
        pthread_t t;
        void *r;
        CHECK_EQ(pthread_create(&t, NULL, nothing, (void *)i), 0);
        CHECK_EQ(pthread_join(t, &r), 0);
        CHECK_EQ((long)r, i);
    }
}

static sem_t sem;
static void *detached(void *arg) {
    sem_post(&sem);
    return arg;
}

CASE(detached_threads) {
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sem_init(&sem, 0, 0);
    for (int i = 0; i < 100; i++) {
        pthread_t t;
        CHECK_EQ(pthread_create(&t, &attr, detached, NULL), 0);
    }
    for (int i = 0; i < 100; i++) CHECK_OK(sem_wait(&sem));
}

static void *change_things(void *arg) {
    int *fds = arg;
    CHECK_OK(chdir("/proc"));
    umask(0111);
    CHECK_OK(close(fds[0]));
    CHECK_EQ(dup2(fds[1], 77), 77);
    signal(SIGUSR1, SIG_IGN);
    return NULL;
}

CASE(shared_by_threads) {
    int fds[2];
    char text[100];
    CHECK_OK(pipe(fds));
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, change_things, fds), 0);
    CHECK_EQ(pthread_join(t, NULL), 0);
    CHECK_STR(getcwd(text, sizeof text), "/proc");
    CHECK_EQ(umask(0), 0111);
    CHECK_ERRNO(fcntl(fds[0], F_GETFD), EBADF);
    CHECK_OK(fcntl(77, F_GETFD));
    struct sigaction act;
    CHECK_OK(sigaction(SIGUSR1, NULL, &act));
    CHECK(act.sa_handler == SIG_IGN);
}

static void *block_usr2(void *arg) {
    sigset_t set;
    sigprocmask(SIG_BLOCK, NULL, &set);
    CHECK_EQ(sigismember(&set, SIGUSR1), 1);  // inherited from the creator
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_SETMASK, &set, NULL);
    return arg;
}

CASE(masks_are_per_thread) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, block_usr2, NULL), 0);
    CHECK_EQ(pthread_join(t, NULL), 0);
    sigprocmask(SIG_BLOCK, NULL, &set);
    CHECK_EQ(sigismember(&set, SIGUSR2), 0);
}

static __thread volatile int hits;
static volatile int total;
static void on_usr1(int sig CHECK_USED) {
    hits++;
    __atomic_add_fetch(&total, 1, __ATOMIC_RELAXED);
}
static volatile int stop;
static volatile pid_t target;
static void *receiver(void *arg) {
    target = tid();
    while (!stop) sleep_ms(1);
    CHECK_EQ(hits, 20);
    return arg;
}

CASE(tgkill_hits_the_thread) {
    signal(SIGUSR1, on_usr1);
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, receiver, NULL), 0);
    while (!target) sleep_ms(1);
    for (int i = 0; i < 20; i++) {
        CHECK_OK(syscall(SYS_tgkill, pid(), target, SIGUSR1));
        while (total != i + 1) sched_yield();
    }
    stop = 1;
    CHECK_EQ(pthread_join(t, NULL), 0);
    CHECK_EQ(hits, 0);
    CHECK_ERRNO(syscall(SYS_tgkill, pid() + 1, target, 0), ESRCH);
    CHECK_ERRNO(syscall(SYS_tgkill, -1, target, 0), EINVAL);
    CHECK_ERRNO(syscall(SYS_tgkill, pid(), 0, 0), EINVAL);
    CHECK_ERRNO(syscall(SYS_tgkill, pid(), pid(), 65), EINVAL);
    CHECK_ERRNO(syscall(SYS_tkill, 0, 0), EINVAL);
    CHECK_ERRNO(syscall(SYS_tkill, 0x3fffffff, 0), ESRCH);
}

static void *sleep_forever(void *arg) {
    for (;;) pause();
    return arg;
}

CASE(cancellation) {
    pthread_t t;
    void *r;
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(pthread_create(&t, NULL, sleep_forever, NULL), 0);
        if (i & 1) sleep_ms(2);
        CHECK_EQ(pthread_cancel(t), 0);
        CHECK_EQ(pthread_join(t, &r), 0);
        CHECK(r == PTHREAD_CANCELED);
    }
}

static pthread_key_t key;
static int destroyed;
static void destroy(void *v) { __atomic_add_fetch(&destroyed, (int)(long)v, __ATOMIC_RELAXED); }
static void *set_key(void *arg) {
    pthread_setspecific(key, arg);
    return NULL;
}

CASE(key_destructors) {
    pthread_t t[10];
    CHECK_EQ(pthread_key_create(&key, destroy), 0);
    for (long i = 0; i < 10; i++) CHECK_EQ(pthread_create(&t[i], NULL, set_key, (void *)(i + 1)), 0);
    for (int i = 0; i < 10; i++) CHECK_EQ(pthread_join(t[i], NULL), 0);
    CHECK_EQ(destroyed, 55);
}

static void *fault(void *arg) {
    *(volatile int *)arg = 1;
    return NULL;
}

CASE(a_fault_in_a_thread_kills_the_process) {
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        pthread_t t;
        pthread_create(&t, NULL, fault, (void *)16);
        for (;;) pause();
    }
    CHECK_KILLED(p, SIGSEGV);
}

static void *in_float(void *arg) {
    // Each thread's floating-point control is its own and kept over switches.
    volatile double third = 1.0, three = 3.0, sum = 0;
    unsigned csr = 0x1f80 | ((long)arg & 3) << 13;  // rounding mode
    __builtin_ia32_ldmxcsr(csr);
    for (int i = 0; i < 20000; i++) {
        sum += third / three;
        if (i % 500 == 0) sched_yield();
    }
    CHECK_EQ(__builtin_ia32_stmxcsr() & 0x6000, ((long)arg & 3) << 13);
    return NULL;
}

CASE(floating_point_state_is_per_thread) {
    pthread_t t[8];
    for (long i = 0; i < 8; i++) CHECK_EQ(pthread_create(&t[i], NULL, in_float, (void *)i), 0);
    for (int i = 0; i < 8; i++) CHECK_EQ(pthread_join(t[i], NULL), 0);
    CHECK_EQ(__builtin_ia32_stmxcsr() & 0x6000, 0);
}

static void *block_in_read(void *arg) {
    char c;
    return (void *)read(*(int *)arg, &c, 1);
}

CASE(a_blocked_thread_blocks_nobody_else) {
    int fds[2];
    CHECK_OK(pipe(fds));
    pthread_t t[10];
    for (int i = 0; i < 10; i++) CHECK_EQ(pthread_create(&t[i], NULL, block_in_read, &fds[0]), 0);
    sleep_ms(20);
    IN_CHILD();
    for (int i = 0; i < 10; i++) CHECK_EQ(write(fds[1], "x", 1), 1);
    for (int i = 0; i < 10; i++) {
        void *r;
        CHECK_EQ(pthread_join(t[i], &r), 0);
        CHECK_EQ((long)r, 1);
    }
}

MAIN
