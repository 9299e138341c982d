// build: static -pthread
// FUTEX_REQUEUE, CMP_REQUEUE, WAKE_OP, and futex_waitv.
#include "futex.h"

static volatile unsigned a, b;
static volatile int woken;

static void *wait_on_a(void *arg) {
    CHECK_EQ(futex(&a, FUTEX_WAIT | (arg ? FUTEX_PRIVATE_FLAG : 0), 0, &(struct timespec){10, 0}, NULL, 0), 0);
    __atomic_add_fetch(&woken, 1, __ATOMIC_SEQ_CST);
    return NULL;
}
static pthread_t threads[8];
static void waiters(int n, int private) {
    for (int i = 0; i < n; i++) CHECK_EQ(pthread_create(&threads[i], NULL, wait_on_a, (void *)(long)private), 0);
    wait_for_waiters(&a, n, private ? FUTEX_PRIVATE_FLAG : 0);
}
static void join(int n) {
    for (int i = 0; i < n; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
}
// The fourth argument is a number here, not a time.
static long requeue(int op, int wake, long move, unsigned value) { return futex(&a, op, wake, (void *)move, &b, value); }

CASE(requeue_moves_waiters) {
    waiters(6, 0);
    CHECK_EQ(requeue(FUTEX_REQUEUE, 1, 3, 0), 4);  // since 3.x: woken and moved together
    CHECK_EQ(futex(&b, FUTEX_WAKE, 10, NULL, NULL, 0), 3);
    CHECK_EQ(futex(&a, FUTEX_WAKE, 10, NULL, NULL, 0), 2);
    join(6);
}

CASE(cmp_requeue_compares) {
    waiters(4, 1);
    a = 7;
    CHECK_ERRNO(requeue(FUTEX_CMP_REQUEUE_PRIVATE, 1, 10, 8), EAGAIN);
    CHECK_EQ(woken, 0);
    CHECK_EQ(requeue(FUTEX_CMP_REQUEUE_PRIVATE, 1, INT_MAX, 7), 4);
    CHECK_EQ(futex(&a, FUTEX_WAKE_PRIVATE, 10, NULL, NULL, 0), 0);
    CHECK_EQ(futex(&b, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0), 1);
    CHECK_EQ(futex(&b, FUTEX_WAKE_PRIVATE, 10, NULL, NULL, 0), 2);
    join(4);
}

CASE(requeue_to_itself) {
    waiters(2, 0);
    CHECK_EQ(futex(&a, FUTEX_REQUEUE, 0, (void *)5l, &a, 0), 2);
    CHECK_EQ(futex(&a, FUTEX_WAKE, 10, NULL, NULL, 0), 2);
    join(2);
}

CASE(requeue_errors) {
    CHECK_ERRNO(requeue(FUTEX_REQUEUE, -1, 1, 0), EINVAL);
    CHECK_ERRNO(requeue(FUTEX_REQUEUE, 1, -1, 0), EINVAL);
    CHECK_ERRNO(futex(&a, FUTEX_REQUEUE, 1, (void *)1, NULL, 0), EFAULT);
    CHECK_ERRNO(futex(&a, FUTEX_REQUEUE, 1, (void *)1, (char *)&b + 1, 0), EINVAL);
    CHECK_ERRNO(futex((void *)16, FUTEX_CMP_REQUEUE, 1, (void *)1, &b, 0), EFAULT);
    CHECK_EQ(requeue(FUTEX_CMP_REQUEUE, 1, 1, 0), 0);
}

CASE(requeue_across_processes) {
    volatile unsigned *s = shared_words();
    pid_t p[3];
    for (int i = 0; i < 3; i++) {
        p[i] = CHECK_OK(fork());
        if (p[i] == 0) _exit(futex(s, FUTEX_WAIT, 0, &(struct timespec){10, 0}, NULL, 0) == 0 ? 0 : errno);
    }
    wait_for_waiters(s, 3, 0);
    CHECK_EQ(futex(s, FUTEX_CMP_REQUEUE, 0, (void *)10l, s + 100, 0), 3);
    CHECK_EQ(futex(s, FUTEX_WAKE, 10, NULL, NULL, 0), 0);
    CHECK_EQ(futex(s + 100, FUTEX_WAKE, 10, NULL, NULL, 0), 3);
    for (int i = 0; i < 3; i++) CHECK_EXIT(p[i], 0);
}

CASE(a_requeued_waiter_times_out_at_its_new_place) {
    volatile unsigned *s = shared_words();
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        _exit(futex(s, FUTEX_WAIT, 0, &(struct timespec){0, 300000000}, NULL, 0) == -1 ? errno : 0);
    }
    wait_for_waiters(s, 1, 0);
    CHECK_EQ(futex(s, FUTEX_REQUEUE, 0, (void *)1l, s + 9, 0), 1);
    CHECK_EXIT(p, ETIMEDOUT);
    CHECK_EQ(futex(s + 9, FUTEX_WAKE, 1, NULL, NULL, 0), 0);
}

static long wake_op(int wake, long wake2, unsigned op) { return futex(&a, FUTEX_WAKE_OP, wake, (void *)wake2, &b, op); }

CASE(wake_op_changes_the_word) {
    static const struct { int op, arg; unsigned before, after; } t[] = {
        {FUTEX_OP_SET, 7, 3, 7},           {FUTEX_OP_ADD, 7, 3, 10},
        {FUTEX_OP_OR, 5, 2, 7},            {FUTEX_OP_ANDN, 3, 7, 4},
        {FUTEX_OP_XOR, 6, 3, 5},           {FUTEX_OP_ADD, 0xfff, 5, 4},  // the argument is signed, 12 bits
        {FUTEX_OP_OR | FUTEX_OP_OPARG_SHIFT, 5, 1, 33}};
    for (int i = 0; i < 7; i++) {
        b = t[i].before;
        CHECK_EQ(wake_op(1, 1, FUTEX_OP(t[i].op, t[i].arg, FUTEX_OP_CMP_EQ, 99)), 0);
        CHECK_EQ(b, t[i].after);
    }
}

CASE(wake_op_wakes_both) {
    // The second word's waiters only if its old value compares.
    static const struct { int cmp, arg, wakes; } t[] = {
        {FUTEX_OP_CMP_EQ, 0, 1}, {FUTEX_OP_CMP_NE, 0, 0}, {FUTEX_OP_CMP_LT, 1, 1},
        {FUTEX_OP_CMP_LE, 0, 1}, {FUTEX_OP_CMP_GT, 0, 0}, {FUTEX_OP_CMP_GE, 0, 1}};
    volatile unsigned *s = shared_words();
    for (int i = 0; i < 6; i++) {
        pid_t p[2];
        for (int k = 0; k < 2; k++) {
            p[k] = CHECK_OK(fork());
            if (p[k] == 0) _exit(futex(s + 10 + k, FUTEX_WAIT, 0, &(struct timespec){10, 0}, NULL, 0) == 0 ? 0 : errno);
        }
        wait_for_waiters(s + 10, 1, 0);
        wait_for_waiters(s + 11, 1, 0);
        CHECK_EQ(futex(s + 10, FUTEX_WAKE_OP, 1, (void *)1l, s + 11, FUTEX_OP(FUTEX_OP_ADD, 1, t[i].cmp, t[i].arg)), 1 + t[i].wakes);
        CHECK_EQ(s[11], 1);
        CHECK_EXIT(p[0], 0);
        if (!t[i].wakes) CHECK_EQ(futex(s + 11, FUTEX_WAKE, 1, NULL, NULL, 0), 1);
        CHECK_EXIT(p[1], 0);
        s[11] = 0;
    }
}

CASE(wake_op_errors) {
    CHECK_ERRNO(wake_op(1, 1, FUTEX_OP(7, 0, 0, 0)), ENOSYS);
    CHECK_ERRNO(wake_op(1, 1, FUTEX_OP(0, 0, 9, 0)), ENOSYS);
    CHECK_ERRNO(futex(&a, FUTEX_WAKE_OP, 1, (void *)1, (void *)16, 0), EFAULT);
    char *r = CHECK_MAP(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    CHECK_ERRNO(futex(&a, FUTEX_WAKE_OP, 1, (void *)1, r, 0), EFAULT);  // written, so read-only will not do
}

struct waitv { uint64_t value, address; uint32_t flags, reserved; };
static long waitv(struct waitv *v, unsigned n, unsigned flags, struct timespec *t, clockid_t clock) {
    return syscall(449, v, n, flags, t, clock);
}

CASE(waitv_rules) {
    struct waitv v[3] = {{0, (uint64_t)&a, FUTEX_32, 0}, {0, (uint64_t)&b, FUTEX_32, 0}, {1, (uint64_t)&a, FUTEX_32, 0}};
    if (waitv(v, 0, 0, NULL, 0) == -1 && errno == ENOSYS) SKIP("no futex_waitv");
    CHECK_ERRNO(waitv(v, 0, 0, NULL, 0), EINVAL);
    CHECK_ERRNO(waitv(v, 129, 0, NULL, 0), EINVAL);
    CHECK_ERRNO(waitv(v, 1, 1, NULL, 0), EINVAL);
    CHECK_ERRNO(waitv(NULL, 1, 0, NULL, 0), EINVAL);
    CHECK_ERRNO(waitv((void *)8, 1, 0, NULL, 0), EFAULT);
    CHECK_ERRNO(waitv(v, 3, 0, NULL, 0), EAGAIN);
    struct timespec t = in_ms(CLOCK_MONOTONIC, 30);
    CHECK_ERRNO(waitv(v, 2, 0, &t, CLOCK_MONOTONIC), ETIMEDOUT);
    CHECK_ERRNO(waitv(v, 2, 0, &t, 77), EINVAL);
    volatile unsigned *s = shared_words();
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        struct waitv w[3] = {{0, (uint64_t)s, FUTEX_32, 0}, {0, (uint64_t)(s + 1), FUTEX_32, 0}, {0, (uint64_t)(s + 2), FUTEX_32, 0}};
        _exit(waitv(w, 3, 0, NULL, 0) == 1 ? 0 : 1);  // the index of the one woken
    }
    wake_exactly(s + 1, FUTEX_WAKE, 1);
    CHECK_EXIT(p, 0);
}

MAIN
