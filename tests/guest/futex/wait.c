// build: static -pthread
// FUTEX_WAIT, WAKE and their BITSET forms: values, timeouts on both clocks, errors, sharing by fork and by file.
#include "futex.h"

static volatile unsigned word;

CASE(value_differs) {
    word = 5;
    CHECK_ERRNO(futex(&word, FUTEX_WAIT, 4, NULL, NULL, 0), EAGAIN);
    CHECK_ERRNO(futex(&word, FUTEX_WAIT_PRIVATE, 4, NULL, NULL, 0), EAGAIN);
    CHECK_ERRNO(futex(&word, FUTEX_WAIT_BITSET, 4, NULL, NULL, 1), EAGAIN);
    // The value is compared before the time runs out.
    CHECK_ERRNO(futex(&word, FUTEX_WAIT, 4, &(struct timespec){0, 0}, NULL, 0), EAGAIN);
}

CASE(wake_with_nobody_there) {
    CHECK_EQ(futex(&word, FUTEX_WAKE, 1, NULL, NULL, 0), 0);
    CHECK_EQ(futex(&word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0), 0);
    CHECK_EQ(futex(&word, FUTEX_WAKE_PRIVATE, 0, NULL, NULL, 0), 0);
}

CASE(relative_timeouts) {
    static const int ops[] = {FUTEX_WAIT, FUTEX_WAIT_PRIVATE};
    for (int i = 0; i < 2; i++) {
        long t = now_ms();
        CHECK_ERRNO(futex(&word, ops[i], 0, &(struct timespec){0, 60000000}, NULL, 0), ETIMEDOUT);
        CHECK_GE(now_ms() - t, 59);
        CHECK_LT(now_ms() - t, 3000);
        CHECK_ERRNO(futex(&word, ops[i], 0, &(struct timespec){0, 0}, NULL, 0), ETIMEDOUT);
    }
}

CASE(absolute_timeouts) {
    static const struct { int op; clockid_t clock; } t[] = {
        {FUTEX_WAIT_BITSET, CLOCK_MONOTONIC},
        {FUTEX_WAIT_BITSET_PRIVATE, CLOCK_MONOTONIC},
        {FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, CLOCK_REALTIME},
        {FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME, CLOCK_REALTIME}};
    for (int i = 0; i < 4; i++) {
        struct timespec until = in_ms(t[i].clock, 50), now;
        CHECK_ERRNO(futex(&word, t[i].op, 0, &until, NULL, ~0u), ETIMEDOUT);
        clock_gettime(t[i].clock, &now);
        CHECK(now.tv_sec > until.tv_sec || (now.tv_sec == until.tv_sec && now.tv_nsec >= until.tv_nsec));
        // Long past.
        CHECK_ERRNO(futex(&word, t[i].op, 0, &(struct timespec){1, 0}, NULL, ~0u), ETIMEDOUT);
    }
    // Relative waits are on the monotonic clock only.
    CHECK_ERRNO(futex(&word, FUTEX_WAIT | FUTEX_CLOCK_REALTIME, 0, &(struct timespec){0, 30000000}, NULL, 0), ENOSYS);
}

CASE(errno_table) {
    char *p = CHECK_MAP(mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    char *r = CHECK_MAP(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    CHECK_ERRNO(futex((char *)&word + 1, FUTEX_WAIT, 0, NULL, NULL, 0), EINVAL);
    CHECK_ERRNO(futex((char *)&word + 2, FUTEX_WAKE, 1, NULL, NULL, 0), EINVAL);
    CHECK_ERRNO(futex(p, FUTEX_WAIT, 0, NULL, NULL, 0), EFAULT);
    CHECK_ERRNO(futex(p, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0), EFAULT);
    CHECK_ERRNO(futex(p, FUTEX_WAKE, 1, NULL, NULL, 0), EFAULT);
    CHECK_EQ(futex(p, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0), 0);  // a private key needs no memory
    CHECK_ERRNO(futex(NULL, FUTEX_WAIT, 0, NULL, NULL, 0), EFAULT);
    CHECK_ERRNO(futex((void *)0xffff800000000000, FUTEX_WAIT, 0, NULL, NULL, 0), EFAULT);
    CHECK_ERRNO(futex((void *)0xffff800000000000, FUTEX_WAKE_PRIVATE, 0, NULL, NULL, 0), EFAULT);
    // Read-only memory will do for a private key; a shared one on anonymous memory wants it writable.
    CHECK_ERRNO(futex(r, FUTEX_WAIT_PRIVATE, 0, &(struct timespec){0, 1000}, NULL, 0), ETIMEDOUT);
    CHECK_ERRNO(futex(r, FUTEX_WAIT, 0, &(struct timespec){0, 1000}, NULL, 0), EFAULT);
    CHECK_ERRNO(futex(&word, FUTEX_WAIT, 0, (void *)8, NULL, 0), EFAULT);
    CHECK_ERRNO(futex(&word, FUTEX_WAIT, 0, &(struct timespec){0, 1000000000}, NULL, 0), EINVAL);
    CHECK_ERRNO(futex(&word, FUTEX_WAIT, 0, &(struct timespec){0, -1}, NULL, 0), EINVAL);
    CHECK_ERRNO(futex(&word, FUTEX_WAIT, 0, &(struct timespec){-1, 0}, NULL, 0), EINVAL);
    CHECK_ERRNO(futex(&word, FUTEX_WAIT_BITSET, 0, NULL, NULL, 0), EINVAL);  // no bits
    CHECK_ERRNO(futex(&word, FUTEX_WAKE_BITSET, 1, NULL, NULL, 0), EINVAL);
    CHECK_ERRNO(futex(&word, 99, 0, NULL, NULL, 0), ENOSYS);
    CHECK_ERRNO(futex(&word, FUTEX_FD, 0, NULL, NULL, 0), ENOSYS);
    CHECK_ERRNO(futex(&word, FUTEX_WAKE | FUTEX_CLOCK_REALTIME, 0, NULL, NULL, 0), ENOSYS);
    CHECK_ERRNO(futex(&word, FUTEX_REQUEUE | FUTEX_CLOCK_REALTIME, 0, NULL, &word, 0), ENOSYS);
}

static volatile int woken, order;
struct waiter { volatile unsigned *word; int op; unsigned bits; int place; pthread_t thread; };
static void *waiting(void *arg) {
    struct waiter *w = arg;
    CHECK_EQ(futex(w->word, w->op, 0, NULL, NULL, w->bits), 0);
    w->place = __atomic_add_fetch(&order, 1, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&woken, 1, __ATOMIC_SEQ_CST);
    return NULL;
}
static int asleep;
static void start(struct waiter *w, int op, unsigned bits) {
    *w = (struct waiter){.word = &word, .op = op, .bits = bits};
    CHECK_EQ(pthread_create(&w->thread, NULL, waiting, w), 0);
    wait_for_waiters(&word, ++asleep, op & FUTEX_PRIVATE_FLAG);  // behind those before it
}
static void wait_woken(int n) {
    for (long t = now_ms(); woken < n && now_ms() - t < 5000;) sched_yield();
    CHECK_EQ(woken, n);
}

CASE(wake_counts_and_order) {
    struct waiter w[5];
    for (int i = 0; i < 5; i++) start(&w[i], FUTEX_WAIT, 0);
    CHECK_EQ(futex(&word, FUTEX_WAKE, 1, NULL, NULL, 0), 1);
    wait_woken(1);
    CHECK_EQ(w[0].place, 1);  // first come, first served
    CHECK_EQ(futex(&word, FUTEX_WAKE, 2, NULL, NULL, 0), 2);
    wait_woken(3);
    CHECK_EQ(futex(&word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0), 2);
    wait_woken(5);
    CHECK_EQ(futex(&word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0), 0);
    for (int i = 0; i < 5; i++) pthread_join(w[i].thread, NULL);
}

CASE(private_and_shared_keys_of_private_memory) {
    // On private memory a shared wake does not find a private waiter: different keys.
    struct waiter w;
    start(&w, FUTEX_WAIT_PRIVATE, 0);
    CHECK_EQ(futex(&word, FUTEX_WAKE, 1, NULL, NULL, 0) + futex(&word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0), 1);
    pthread_join(w.thread, NULL);
}

CASE(bitsets_select) {
    struct waiter w[3];
    start(&w[0], FUTEX_WAIT_BITSET, 1);
    start(&w[1], FUTEX_WAIT_BITSET, 2);
    start(&w[2], FUTEX_WAIT_BITSET, 6);
    CHECK_EQ(futex(&word, FUTEX_WAKE_BITSET, 9, NULL, NULL, 8), 0);
    CHECK_EQ(futex(&word, FUTEX_WAKE_BITSET, 9, NULL, NULL, 4), 1);
    wait_woken(1);
    CHECK_EQ(w[2].place, 1);
    CHECK_EQ(futex(&word, FUTEX_WAKE_BITSET, 9, NULL, NULL, 2), 1);
    wait_woken(2);
    CHECK_EQ(w[1].place, 2);
    CHECK_EQ(futex(&word, FUTEX_WAKE, 9, NULL, NULL, 0), 1);  // a plain wake matches all bits
    for (int i = 0; i < 3; i++) pthread_join(w[i].thread, NULL);
}

CASE(shared_across_fork) {
    volatile unsigned *s = shared_words();
    for (int i = 0; i < 20; i++) {
        pid_t p = CHECK_OK(fork());
        if (p == 0) _exit(futex(s, FUTEX_WAIT, 0, &(struct timespec){10, 0}, NULL, 0) == 0 ? 0 : errno);
        wake_exactly(s, FUTEX_WAKE, 1);
        CHECK_EXIT(p, 0);
    }
}

CASE(shared_by_two_mappings_of_a_file) {
    int fd = CHECK_OK(open(TMP("f"), O_RDWR | O_CREAT, 0600));
    CHECK_OK(ftruncate(fd, 8192));
    volatile unsigned *a = CHECK_MAP(mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    volatile unsigned *b = CHECK_MAP(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 4096));
    pid_t p = CHECK_OK(fork());
    if (p == 0) _exit(futex(a + 1024 + 5, FUTEX_WAIT, 0, &(struct timespec){10, 0}, NULL, 0) == 0 ? 0 : errno);
    CHECK_EQ(futex(b + 4, FUTEX_WAKE, 1, NULL, NULL, 0), 0);
    wake_exactly(b + 5, FUTEX_WAKE, 1);
    CHECK_EXIT(p, 0);
}

CASE(shared_by_unrelated_descriptors_and_memfd) {
    const char *path = TMP("g");
    close(CHECK_OK(open(path, O_RDWR | O_CREAT, 0600)));
    CHECK_OK(truncate(path, 4096));
    for (int round = 0; round < 2; round++) {
        int m = CHECK_OK(syscall(SYS_memfd_create, "m", 0));
        CHECK_OK(ftruncate(m, 4096));
        pid_t p = CHECK_OK(fork());
        int fd = round ? m : CHECK_OK(open(path, O_RDWR));
        volatile unsigned *w = CHECK_MAP(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
        if (p == 0) _exit(futex(w, FUTEX_WAIT, 0, &(struct timespec){10, 0}, NULL, 0) == 0 ? 0 : errno);
        wake_exactly(w, FUTEX_WAKE, 1);
        CHECK_EXIT(p, 0);
    }
}

CASE(private_after_fork_is_private) {
    // The same address in parent and child, private memory: not the same futex.
    word = 0;
    pid_t p = CHECK_OK(fork());
    if (p == 0) _exit(futex(&word, FUTEX_WAIT, 0, &(struct timespec){0, 120000000}, NULL, 0) == -1 ? errno : 0);
    sleep_ms(40);
    CHECK_EQ(futex(&word, FUTEX_WAKE, 1, NULL, NULL, 0), 0);
    CHECK_EQ(futex(&word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0), 0);
    CHECK_EXIT(p, ETIMEDOUT);
}

CASE(a_killed_waiter_leaves_the_queue) {
    volatile unsigned *s = shared_words();
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        futex(s, FUTEX_WAIT, 0, NULL, NULL, 0);
        _exit(0);
    }
    wait_for_waiters(s, 1, 0);
    kill(p, SIGKILL);
    CHECK_KILLED(p, SIGKILL);
    CHECK_EQ(futex(s, FUTEX_WAKE, 10, NULL, NULL, 0), 0);
}

static volatile int hits;
static void hit(int sig CHECK_USED) { hits++; }

CASE(a_signal_interrupts) {
    struct sigaction act = {.sa_handler = hit};
    sigaction(SIGALRM, &act, NULL);
    ualarm(30000, 0);
    CHECK_ERRNO(futex(&word, FUTEX_WAIT, 0, NULL, NULL, 0), EINTR);
    ualarm(30000, 0);
    CHECK_ERRNO(futex(&word, FUTEX_WAIT_PRIVATE, 0, &(struct timespec){5, 0}, NULL, 0), EINTR);
    CHECK_EQ(hits, 2);
}

CASE(many_waiters_of_many_words) {
    volatile unsigned *s = shared_words();
    pid_t p[40];
    for (int i = 0; i < 40; i++) {
        p[i] = CHECK_OK(fork());
        if (p[i] == 0) _exit(futex(s + i % 8, FUTEX_WAIT, 0, &(struct timespec){15, 0}, NULL, 0) == 0 ? 0 : errno);
    }
    for (int i = 0; i < 8; i++) wake_exactly(s + i, FUTEX_WAKE, 5);
    for (int i = 0; i < 40; i++) CHECK_EXIT(p[i], 0);
}

MAIN
