// A thread in tight loops of calls, and another that sends it numbered real-time signals at random moments. Each must arrive
// once, in the order sent, and disturb nothing. `guest COUNT`; built static, run natively and inside by ../kicks.rs.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// Signals sent while the other thread does one thing; seconds that one may take to arrive.
enum { EACH = 64, PATIENCE = 60 };
enum { COMPUTE, GETPID, GETPID_BY_SYSCALL, CLOCK, READ, MASK, YIELD, FUTEX, HANDED_OVER, MIXED, KINDS };

static pid_t pid, target;
static int file;
static unsigned kind;
static unsigned long arrived;
// Its low half, and whether somebody sleeps on that.
static uint32_t arrived_low, sleepers;
static __thread unsigned long state = 88172645463325252ul;

#define LOAD(x) __atomic_load_n(&(x), __ATOMIC_SEQ_CST)

static unsigned long any(void) {
    state ^= state << 13, state ^= state >> 7;
    return state ^= state << 17;
}

static void wrong(const char *what, long have, long want) {
    printf("%s: %ld, not %ld, behind %lu signals\n", what, have, want, LOAD(arrived));
    exit(1);
}

static void expect(const char *what, long have, long want) {
    if (have != want) wrong(what, have, want);
}

static void handler(int sig, siginfo_t *info, void *context) {
    (void)context;
    unsigned long number = (unsigned long)info->si_value.sival_ptr;
    if (sig != SIGRTMIN || number != arrived + 1) wrong("signal", number, arrived + 1);
    // What it interrupts is in these as well.
    __asm__ volatile("pxor %%xmm0, %%xmm0; pxor %%xmm1, %%xmm1; pxor %%xmm15, %%xmm15" ::: "xmm0", "xmm1", "xmm15");
    if ((number & 7) == 0) expect("gettid in the handler", syscall(SYS_gettid), target);
    __atomic_store_n(&arrived, number, __ATOMIC_SEQ_CST);
    __atomic_store_n(&arrived_low, (uint32_t)number, __ATOMIC_SEQ_CST);
    if (LOAD(sleepers)) syscall(SYS_futex, &arrived_low, 129, 1);
}

// Some work with a known result, in registers of all kinds.
static void compute(void) {
    uint64_t sum = 0;
    double product = 1;
    for (uint64_t i = 1; i <= 200; i++) {
        sum = sum * 31 + i;
        product *= 1 + 1.0 / (double)i;
    }
    static uint64_t known;
    if (known == 0) known = sum;
    expect("a sum", (long)sum, (long)known);
    expect("a product", (long)(product + 0.5), 201);
}

static void mask(void) {
    unsigned long set = any() & 1 ? 1ul << (SIGRTMIN - 1) : 1ul << (SIGUSR1 - 1), old = ~0ul;
    expect("blocking", syscall(SYS_rt_sigprocmask, SIG_BLOCK, &set, &old, 8), 0);
    expect("the mask before", old, 0);
    if (any() & 3) syscall(SYS_getpid);
    expect("unblocking", syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &set, &old, 8), 0);
    expect("the mask between", old, set);
}

static void do_one(unsigned what) {
    char bytes[8];
    struct timespec now;
    static uint32_t word = 1;
    switch (what) {
    case COMPUTE: compute(); break;
    case GETPID: expect("getpid", getpid(), pid); break;
    case GETPID_BY_SYSCALL: expect("getpid", syscall(SYS_getpid), pid); break;
    case CLOCK: expect("clock_gettime", clock_gettime(CLOCK_MONOTONIC, &now), 0); break;
    case READ:
        memset(bytes, 0, 8);
        expect("pread", syscall(SYS_pread64, file, bytes, 8, 8), 8);
        expect("what was read", memcmp(bytes, "89abcdef", 8), 0);
        break;
    case MASK: mask(); break;
    case YIELD: expect("sched_yield", syscall(SYS_sched_yield), 0); break;
    case FUTEX: {
        long result = syscall(SYS_futex, &word, 128, 0, NULL);
        expect("futex", result == -1 ? errno : 0, EAGAIN);
        break;
    }
    case HANDED_OVER: expect("getppid", syscall(SYS_getppid), getppid()); break;
    case MIXED: do_one(any() % MIXED); break;
    }
}

static void *run(void *arg) {
    target = syscall(SYS_gettid);
    __atomic_store_n((int *)arg, 1, __ATOMIC_SEQ_CST);
    for (;;) {
        unsigned what = LOAD(kind);
        if (what == KINDS) return NULL;
        for (int i = 0; i < 32; i++) do_one(what);
    }
}

// The time is the host's: the wait must not keep a CPU from those that it waits for.
static void await(unsigned long number) {
    struct timespec limit = {.tv_sec = PATIENCE};
    for (int i = 0; i < 64 && LOAD(arrived) < number; i++) __asm__ volatile("pause");
    __atomic_store_n(&sleepers, 1, __ATOMIC_SEQ_CST);
    for (;;) {
        uint32_t now = LOAD(arrived_low);
        if (LOAD(arrived) >= number) break;
        if (syscall(SYS_futex, &arrived_low, 128, now, &limit) == -1 && errno == ETIMEDOUT)
            wrong("arrived", LOAD(arrived), number);
    }
    __atomic_store_n(&sleepers, 0, __ATOMIC_SEQ_CST);
}

static void send(unsigned long number) {
    siginfo_t info = {.si_code = SI_QUEUE, .si_pid = pid};
    info.si_value.sival_ptr = (void *)number;
    while (syscall(SYS_rt_tgsigqueueinfo, pid, target, SIGRTMIN, &info) != 0) {
        if (errno != EAGAIN) wrong("sending", errno, 0);
        sched_yield();
    }
}

int main(int argc, char **argv) {
    unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 0) : 10000;
    char path[] = "/tmp/kicks-XXXXXX";
    pthread_t thread;
    int ready = 0;
    pid = getpid();
    file = mkstemp(path);
    if (file < 0 || unlink(path) != 0 || write(file, "0123456789abcdef", 16) != 16) return 1;
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGRTMIN, &action, NULL);
    if (pthread_create(&thread, NULL, run, &ready) != 0) return 1;
    while (!LOAD(ready)) sched_yield();
    for (unsigned long number = 1; number <= count; number++) {
        if (number % EACH == 0) __atomic_store_n(&kind, (number / EACH) % KINDS, __ATOMIC_SEQ_CST);
        send(number);
        // One at a time mostly, sometimes behind each other.
        if (number % 16 < 12 || number % EACH == EACH - 1) await(number);
        for (unsigned long spin = any() % 512; spin > 0; spin--) __asm__ volatile("pause");
    }
    await(count);
    __atomic_store_n(&kind, KINDS, __ATOMIC_SEQ_CST);
    pthread_join(thread, NULL);
    printf("arrived %lu\n", LOAD(arrived));
    return 0;
}
