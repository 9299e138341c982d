// build: static -pthread
// Signals to a process with several threads: which thread takes one, and what is private to a thread.
#include "sig.h"
#include <pthread.h>

static pid_t tid(void) { return syscall(SYS_gettid); }
static volatile pid_t taker;
static void note_taker(int sig CHECK_USED) {
    taker = tid();
    __atomic_add_fetch((int *)&hits, 1, __ATOMIC_SEQ_CST);
}
static volatile int stop, ready;
static volatile pid_t open_tid;

static void *with_signal_open(void *arg) {
    if (arg) pthread_sigmask(SIG_UNBLOCK, SET(SIGUSR1), NULL);
    open_tid = arg ? tid() : open_tid;
    __atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
    while (!stop) sleep_ms(2);
    return NULL;
}

CASE(a_thread_that_does_not_block_it_takes_it) {
    handle(SIGUSR1, note_taker, 0);
    block(SET(SIGUSR1));
    pthread_t t[5];
    for (long i = 0; i < 5; i++) CHECK_EQ(pthread_create(&t[i], NULL, with_signal_open, (void *)(long)(i == 3)), 0);
    while (ready != 5) sleep_ms(1);
    for (int i = 1; i <= 20; i++) {
        CHECK_OK(kill(getpid(), SIGUSR1));
        long start = now_ms();
        while (hits < i && now_ms() - start < 5000) sched_yield();
        CHECK_EQ(hits, i);
        CHECK_EQ(taker, open_tid);
    }
    stop = 1;
    for (int i = 0; i < 5; i++) pthread_join(t[i], NULL);
}

CASE(the_main_thread_is_preferred) {
    handle(SIGUSR1, note_taker, 0);
    pthread_t t[3];
    for (long i = 0; i < 3; i++) CHECK_EQ(pthread_create(&t[i], NULL, with_signal_open, (void *)1), 0);
    while (ready != 3) sleep_ms(1);
    for (int i = 0; i < 10; i++) {
        CHECK_OK(kill(getpid(), SIGUSR1));
        CHECK_EQ(hits, i + 1);
        CHECK_EQ(taker, getpid());
    }
    stop = 1;
    for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
}

static void *sees_shared_pending(void *arg) {
    CHECK_EQ(pending(SIGUSR1), 1);
    CHECK_EQ(pending(SIGUSR2), 0);
    return arg;
}

CASE(pending_sets) {
    block(SET(SIGUSR1, SIGUSR2));
    kill(getpid(), SIGUSR1);                              // to the process
    syscall(SYS_tgkill, getpid(), tid(), SIGUSR2);        // to this thread
    CHECK_EQ(pending(SIGUSR1) + pending(SIGUSR2), 2);
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, sees_shared_pending, NULL), 0);
    pthread_join(t, NULL);
}

static void *unblocks(void *arg) {
    pthread_sigmask(SIG_UNBLOCK, SET(SIGUSR1), NULL);
    CHECK_EQ(taker, tid());
    return arg;
}

CASE(whoever_unblocks_first_takes_a_pending_one) {
    handle(SIGUSR1, note_taker, 0);
    block(SET(SIGUSR1));
    kill(getpid(), SIGUSR1);
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, unblocks, NULL), 0);
    pthread_join(t, NULL);
    CHECK_EQ(hits, 1);
    CHECK_EQ(pending(SIGUSR1), 0);
}

static int fds[2];
static void *blocked_in_read(void *arg) {
    char c;
    pthread_sigmask(SIG_UNBLOCK, SET(SIGUSR1), NULL);
    ready = 1;
    CHECK_ERRNO(read(fds[0], &c, 1), EINTR);
    CHECK_EQ(taker, tid());
    return arg;
}

CASE(a_blocked_thread_is_woken_for_it) {
    CHECK_OK(pipe(fds));
    handle(SIGUSR1, note_taker, 0);
    block(SET(SIGUSR1));
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, blocked_in_read, NULL), 0);
    while (!ready) sleep_ms(1);
    sleep_ms(20);
    kill(getpid(), SIGUSR1);
    pthread_join(t, NULL);
}

static void *waits(void *arg) {
    int sig = 0;
    CHECK_EQ(sigwait(SET(SIGUSR1), &sig), 0);
    CHECK_EQ(sig, SIGUSR1);
    __atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
    return arg;
}

CASE(sigwait_in_threads) {
    block(SET(SIGUSR1));
    pthread_t t[4];
    for (int i = 0; i < 4; i++) CHECK_EQ(pthread_create(&t[i], NULL, waits, NULL), 0);
    for (int i = 1; i <= 4; i++) {
        CHECK_OK(kill(getpid(), SIGUSR1));  // one waiter each
        long start = now_ms();
        while (ready < i && now_ms() - start < 5000) sched_yield();
        CHECK_EQ(ready, i);
    }
    for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
}

static pthread_t faulter;
static sigjmp_buf back;
static void on_segv(int sig CHECK_USED) {
    if (!pthread_equal(pthread_self(), faulter)) _exit(5);
    siglongjmp(back, 1);
}
static void *faults(void *arg) {
    faulter = pthread_self();
    if (sigsetjmp(back, 1) == 0) *(volatile int *)16 = 1;
    return arg;
}

CASE(a_fault_goes_to_its_own_thread) {
    handle(SIGSEGV, on_segv, 0);
    for (int i = 0; i < 20; i++) {
        pthread_t t;
        CHECK_EQ(pthread_create(&t, NULL, faults, NULL), 0);
        pthread_join(t, NULL);
    }
}

static void *exits_with_pending(void *arg) {
    // A thread that would have taken the signal ends first: somebody else must.
    pthread_sigmask(SIG_UNBLOCK, SET(SIGUSR1), NULL);
    ready = 1;
    return arg;
}

CASE(no_signal_is_lost_with_a_dying_thread) {
    handle(SIGUSR1, note_taker, 0);
    for (int i = 1; i <= 200; i++) {
        pthread_t t;
        ready = 0;
        block(SET(SIGUSR1));
        CHECK_EQ(pthread_create(&t, NULL, exits_with_pending, NULL), 0);
        while (!ready) sched_yield();
        kill(getpid(), SIGUSR1);
        pthread_join(t, NULL);
        unblock(SET(SIGUSR1));
        CHECK_EQ(hits, i);
    }
}

static void *storm(void *arg) {
    for (int i = 0; i < 500; i++) {
        sigset_t old;
        pthread_sigmask(SIG_BLOCK, SET(SIGRTMIN), &old);
        sched_yield();
        pthread_sigmask(SIG_SETMASK, &old, NULL);
    }
    return arg;
}

CASE(storm_of_queued_signals) {
    // Threads that keep switching their masks: all the queued signals arrive, once each.
    handle(SIGRTMIN, note_taker, SA_RESTART);
    pthread_t t[4];
    int sent = 0;
    for (int i = 0; i < 4; i++) CHECK_EQ(pthread_create(&t[i], NULL, storm, NULL), 0);
    for (int i = 0; i < 1000; i++) {
        CHECK_OK(sigqueue(getpid(), SIGRTMIN, (union sigval){0}));
        sent++;
    }
    for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
    long start = now_ms();
    while (hits < sent && now_ms() - start < 5000) sched_yield();
    CHECK_EQ(hits, sent);
}

CASE(a_stop_signal_sent_to_one_thread_stops_all) {
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        pthread_t t;
        pthread_create(&t, NULL, with_signal_open, NULL);
        while (!ready) sched_yield();
        syscall(SYS_tgkill, getpid(), tid(), SIGSTOP);
        _exit(7);
    }
    int status;
    CHECK_EQ(waitpid(p, &status, WUNTRACED), p);
    CHECK_EQ(status, 0x137f);
    CHECK_OK(kill(p, SIGCONT));
    CHECK_EXIT(p, 7);
}

MAIN
