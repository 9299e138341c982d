// futex.h: the futex call and clocks, without libc's pthread layer.
#ifndef FUTEX_H
#define FUTEX_H
#include "../check.h"
#include <linux/futex.h>
#include <pthread.h>

CHECK_USED static long futex(volatile void *word, int op, unsigned value, const void *timeout, volatile void *word2, unsigned value3) {
    return syscall(SYS_futex, word, op, value, timeout, word2, value3);
}
CHECK_USED static struct timespec in_ms(clockid_t clock, long ms) {
    struct timespec t;
    clock_gettime(clock, &t);
    t.tv_nsec += ms % 1000 * 1000000;
    t.tv_sec += ms / 1000 + t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
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
// Zeroed memory that forked children share.
CHECK_USED static volatile unsigned *shared_words(void) {
    return CHECK_MAP(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
}
// Sleep until n waiters are there. Requeueing from a word to itself changes nothing and counts them.
CHECK_USED static void wait_for_waiters(volatile unsigned *word, int n, int private_flag) {
    long got = 0;
    for (long t = now_ms(); got < n && now_ms() - t < 10000; sched_yield())
        got = CHECK_OK(futex(word, FUTEX_REQUEUE | private_flag, 0, (void *)1000l, word, 0));
    CHECK_EQ(got, n);
}
// Wake `count`, trying until that many waiters were there to be woken (5 s at most).
CHECK_USED static void wake_exactly(volatile unsigned *word, int op, int count) {
    int woken = 0;
    for (long t = now_ms(); woken < count && now_ms() - t < 5000; sched_yield()) {
        long n = futex(word, op, count - woken, NULL, NULL, ~0u);
        CHECK_GE(n, 0);
        woken += n;
    }
    CHECK_EQ(woken, count);
}
#endif
