// A hostile guest of the platform stub: spoils our code's memory in its process, and runs that code as it likes. Each try is a
// process of its own; what they do to others would show in the first one. Built static, run by ../hostile.rs.
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHANNEL = 0x10000, TEXT = 0x2000, COUNTERS = 0x200, COUNTERS_END = 0x400 };

// GS base is where a thread's channel is; the text lies below the first.
static unsigned char *channel(void) {
    unsigned char *at;
    __asm__ volatile("rdgsbase %0" : "=r"(at));
    return at;
}

static void call_some(void) {
    for (int i = 0; i < 100; i++) {
        getpid();
        getppid();
        syscall(SYS_sched_yield);
    }
}

static void in_child(void (*run)(long), long arg) {
    pid_t pid = fork();
    if (pid == 0) {
        alarm(2);
        run(arg);
        _exit(0);
    }
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        printf("no child: %m\n");
        exit(1);
    }
}

static void spoil_counters(long value) {
    for (int at = COUNTERS; at < COUNTERS_END; at += 8) {
        *(volatile uint64_t *)(channel() + at) = (uint64_t)value;
        call_some();
    }
}

static unsigned char *target;
static volatile uint64_t state;

static void *scribbler(void *arg) {
    for (;;) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint64_t at = state >> 33, value = state >> 20;
        // The words of the hand-over more often than the rest.
        target[at % (at & 1 << 20 ? 0x100 : CHANNEL)] = value & 1 << 8 ? value & 3 : value;
    }
    return arg;
}

static void scribble(long seed) {
    pthread_t thread;
    // A call whose post is lost never comes back.
    alarm(2);
    target = channel();
    state = seed;
    pthread_create(&thread, NULL, scribbler, NULL);
    for (int i = 0; i < 50; i++) call_some();
    raise(SIGKILL);
}

static void jump(void *to, const uint64_t *r) {
    __asm__ volatile("mov %0, %%rax; push %1\n"
                     "mov 8(%%rax), %%rbx; mov 16(%%rax), %%rcx; mov 24(%%rax), %%rdx; mov 32(%%rax), %%rsi\n"
                     "mov 40(%%rax), %%rdi; mov 48(%%rax), %%rbp; mov 56(%%rax), %%r8; mov 64(%%rax), %%r9\n"
                     "mov 72(%%rax), %%r10; mov 80(%%rax), %%r11; mov 88(%%rax), %%r12; mov 96(%%rax), %%r13\n"
                     "mov 104(%%rax), %%r14; mov 112(%%rax), %%r15; mov (%%rax), %%rax; ret"
                     :
                     : "r"(r), "r"(to)
                     : "memory", "rax", "rbx");
}

static void jump_into(long at) {
    uint64_t r[15], any = at * 2654435761u + 1;
    for (int i = 0; i < 15; i++) {
        any = any * 6364136223846793005u + 1442695040888963407u;
        r[i] = any >> 62 == 0 ? 0 : any >> 62 == 1 ? (uint64_t)channel() : any >> 62 == 2 ? (uint64_t)target : any;
    }
    jump(target + at, r);
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IONBF, 0);
    if (argc < 2 || channel() == NULL) return 2;
    if (strcmp(argv[1], "counters") == 0) {
        static const long values[] = {-1, INT64_MAX, INT64_MIN, 1};
        for (int i = 0; i < 4; i++) in_child(spoil_counters, values[i]);
    } else if (strcmp(argv[1], "scribble") == 0) {
        // At once: the kernel waits for one that does not answer for as long as its patience lasts.
        for (long seed = 1; seed <= 8; seed++) {
            if (fork() == 0) scribble(seed);
        }
        while (wait(NULL) > 0) {}
    } else if (strcmp(argv[1], "jumps") == 0) {
        // Many at once: some of them do not answer for as long as the kernel has patience.
        target = channel() - TEXT;
        int live = 0;
        for (long at = 0; at < TEXT * 3 / 4; at += argc > 2 ? atoi(argv[2]) : 23) {
            pid_t pid = fork();
            if (pid == 0) {
                alarm(1);
                jump_into(at);
                _exit(0);
            }
            if (pid < 0) return 3;
            for (live++; live >= 64; live--) wait(NULL);
        }
        while (wait(NULL) > 0) {}
    }
    printf("alive\n");
    return 0;
}
