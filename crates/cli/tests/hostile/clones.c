// A hostile guest of the platform stub that makes host threads and processes which the kernel has not ordered: by jumping to
// our code's clone instructions, and by having our code carry out an order again and again. What has come of it,
// ../hostile_calls.rs counts from outside. Built static.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "enter.h"

enum { FORK = 0x8000, VFORK = 0x8100, THREAD = 0x250f00, PROCESSES = 8, ORDERED = 6 };

// The sites at which the stub itself clones: processes, then threads; and where it wakes the kernel and waits for it.
static int clones[2], waits;

static void find_sites_of_calls(void) {
    int at[SITES], count = find_sites(at), found = 0;
    for (int i = count - 1; i >= 0; i--) {
        if (memcmp(text + at[i] - 5, "\xb8\xca\0\0\0", 5) == 0) waits = wakes, wakes = at[i];
        if (memcmp(text + at[i] - 5, "\xb8\x38\0\0\0", 5) == 0) clones[1 - found++] = at[i];
    }
    if (found != 2 || wakes == 0) exit(4);
}

static long clone_at(int site, uint64_t flags) {
    // A child has no stack but what is there: one that comes to be is the end of us.
    call_at(site, SYS_clone, (uint64_t[6]){flags, 0, 0, 0, 0, 0});
    return *(int64_t *)(made + RESULT);
}

static void line(const char *text) {
    printf("%s\n", text);
    getchar();
}

static void *try_all(void *arg) {
    own_channel = (uint64_t)channel();
    for (int i = 0; i < 20; i++) {
        long fork = clone_at(clones[0], FORK), vfork = clone_at(clones[0], VFORK);
        long thread = clone_at(clones[1], THREAD);
        if (fork != -1 || vfork != -1 || thread != -1) printf("cloned %ld %ld %ld\n", fork, vfork, thread);
    }
    return arg;
}

static unsigned char *victim;

// The last order once more, and once more.
static void *scribbles(void *arg) {
    for (;;) {
        *(volatile uint32_t *)(victim + ORDER) = ORDER_THREAD;
        *(volatile uint32_t *)(victim + TO_GUEST) = 1;
    }
    return arg;
}

static void *jumps(void *arg) {
    own_channel = (uint64_t)channel();
    use_made((long)arg);
    for (;;) {
        if (clone_at(clones[1], THREAD) != -1) printf("cloned\n");
    }
    return arg;
}

static void *sleeps(void *arg) {
    for (;;) pause();
    return arg;
}

// How many have got all that they asked for: beside the channels of our making.
static uint32_t *done(void) { return (uint32_t *)(all_made + MADE * CHANNEL) + 1; }

// Real orders, while another thread tries to get more by them.
static void under_attack(long slot) {
    pthread_t thread;
    victim = channel();
    pthread_create(&thread, NULL, slot % 2 ? scribbles : jumps, (void *)(slot + 1));
    for (int i = 0; i < ORDERED; i++) {
        pthread_create(&thread, NULL, sleeps, NULL);
        if (fork() == 0) _exit(0);
    }
    __atomic_fetch_add(done(), 1, __ATOMIC_SEQ_CST);
    for (;;) pause();
}

// Plays our code: asks the kernel for a thread, and does not carry out its order once, but many times.
static void carry_out_often(void) {
    enum { TRIES = 20 };
    static uint64_t stack[4096] __attribute__((aligned(64)));
    stack[2048] = (uint64_t)sleeps;
    uint64_t *arguments = (uint64_t *)(own_channel + CALL);
    int64_t tid = -1;
    int made_there = 0;
    hand_over();
    arguments[0] = 0x50f00, arguments[1] = (uint64_t)(stack + 2048);
    arguments[2] = arguments[3] = arguments[4] = 0;
    post(CALLED | SYS_clone << 8);
    await_order();
    int order = ordered();
    uint64_t child = *(uint64_t *)(own_channel + NEW_CHANNEL);
    for (int i = 0; i < TRIES && order == ORDER_THREAD; i++) {
        call_with_child(clones[1], SYS_clone, (uint64_t[6]){THREAD, 0, 0, child + ALIVE, 0, 0}, child);
        int64_t result = *(int64_t *)(made + RESULT);
        if (result > 0) tid = result, made_there++;
    }
    *(int64_t *)(own_channel + RESULT) = tid;
    post(DONE);
    await_order();
    printf("ordered %d, made %d\n", order == ORDER_THREAD, made_there);
}

static volatile int has_pretended;

// Plays our code: is ordered to end, says so, and stays.
static void *pretends(void *arg) {
    static uint32_t word;
    own_channel = (uint64_t)channel();
    hand_over();
    *(uint64_t *)(own_channel + CALL) = 0;
    post(CALLED | SYS_exit << 8);
    // What is ordered before (a word cleared, a wake) is not done, but said to be.
    for (await_order(); ordered() != ORDER_EXIT; await_order()) {
        *(int64_t *)(own_channel + RESULT) = 0;
        post(DONE);
    }
    *(volatile uint32_t *)(own_channel + ALIVE) = 0;
    call_at(wakes, SYS_futex, (uint64_t[6]){own_channel + ALIVE, 1, 1, 0, 0, 0});
    has_pretended = 1;
    for (;;) call_at(waits, SYS_futex, (uint64_t[6]){(uint64_t)&word, 0, 0, 0, 0, 0});
    return arg;
}

static void lose_a_thread(void) {
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, pretends, NULL);
        while (!has_pretended) usleep(10000);
        for (;;) pause();
    }
    waitpid(pid, &status, 0);
    printf("killed %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : -1);
    stop_giving_orders();
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IONBF, 0);
    if (argc < 2 || channel() == NULL) return 2;
    look_around();
    find_sites_of_calls();
    use_made(0);
    if (strcmp(argv[1], "alone") == 0) {
        line("before");
        // On a thread that has begun by an order, and on the first, both with their orders behind them.
        pthread_t thread;
        pthread_create(&thread, NULL, try_all, NULL);
        pthread_join(thread, NULL);
        try_all(NULL);
        line("after");
        stop_giving_orders();
    } else if (strcmp(argv[1], "pretend") == 0) {
        lose_a_thread();
    } else if (strcmp(argv[1], "often") == 0) {
        carry_out_often();
        stop_giving_orders();
        // Whatever has been made ends with the process.
        exit(0);
    } else {
        for (int i = 0; i < PROCESSES; i++) {
            if (fork() == 0) under_attack(i);
        }
        // Those that jump harm nobody; those that scribble are killed early or late.
        for (int tenths = 0; *(volatile uint32_t *)done() < PROCESSES / 2 && tenths < 600; tenths++) usleep(100000);
        line("at work");
        exit(0);
    }
    printf("alive\n");
    return 0;
}
