// A hostile guest of the platform stub: spoils our code's memory in its process, and runs that code as it likes. Each try is a
// process of its own; what they do to others would show in the first one. Built static, run by ../hostile.rs.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// Where things lie is told by who compiles this: crates/stubs/src/layout.rs, PLACES.
enum { COUNTERS_END = COUNTERS + 0x200 };

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

// FRAME is where a thread begins, KERNELS_PID what the last real fork was told.
static volatile uint64_t *shared;

static void hidden(void) {
    for (;;) ++*shared;
}

// Runs the stub's clone of processes by itself: a process that the kernel has not ordered, in memory of its own.
static void hide_a_process(long text) {
    unsigned char *at = memmem((void *)text, TEXT, "\xb8\x38\0\0\0\x0f\x05", 7);
    if (at == NULL) return;
    unsigned char *own = mmap(NULL, CHANNEL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t *frame = (void *)(own + FRAME);
    frame[2] = (uint64_t)own + STACK;
    frame[4] = CHANNEL - STACK;
    // Behind flags, link and stack: rsp, rip, flags, segments of the sigcontext.
    frame[5 + 15] = (uint64_t)own + FRAME - 0x1008;
    frame[5 + 16] = (uint64_t)hidden;
    frame[5 + 17] = 0x202;
    frame[5 + 18] = 0x33;
    uint64_t r[15] = {[0] = SYS_clone, [1] = (uint64_t)own, [5] = 0x8000, [14] = (uint64_t)channel()};
    // The child: descriptor 0 stays its own, no channels, and the kernel is its parent.
    if (fork() == 0) _exit(0);
    r[6] = *(uint64_t *)(channel() + KERNELS_PID);
    jump(at + 5, r);
}

// Where GS points decides whose channel a call by a patched site uses.
static unsigned char *volatile others;

static void set_channel(unsigned char *at) { __asm__ volatile("wrgsbase %0" : : "r"(at)); }

static void *uses_its_own(void *arg) {
    others = channel();
    for (;;) call_some();
    return arg;
}

// Two threads in one channel, or one at a place that is none.
static void point_elsewhere(long which) {
    alarm(2);
    pthread_t thread;
    pthread_create(&thread, NULL, uses_its_own, NULL);
    while (others == NULL) {}
    unsigned char *places[] = {others, others + 8, channel() + CHANNEL / 2, channel() - TEXT, channel() + 64 * CHANNEL,
                               (unsigned char *)&places, NULL, (unsigned char *)-CHANNEL};
    unsigned char *own = channel();
    for (int i = 0; i < 20; i++) {
        set_channel(places[which]);
        call_some();
        set_channel(own);
        call_some();
    }
    raise(SIGKILL);
}

// The words of the hand-over, and nothing else, as fast as can be.
static void *storm(void *arg) {
    volatile uint32_t *words = arg;
    for (uint32_t value = 0;; value++) {
        words[0] = value % 4;
        words[1] = value % 3;
        if (value % 64 == 0) words[value / 64 % 8] = value;
    }
    return arg;
}

static void under_a_storm(long what) {
    static const char *const arguments[] = {"/proc/self/exe", "nothing", NULL};
    pthread_t thread;
    pthread_create(&thread, NULL, storm, channel());
    for (int i = 0; i < 3; i++) call_some();
    if (what == 0) _exit(0);
    if (what == 1) execv(arguments[0], (char **)arguments);
    if (what == 2) fork();
    for (;;) call_some();
}

// Each is killed, whatever state it is in: nobody waits for the guest's good will.
static void end_under_storms(void) {
    enum { COUNT = 8 };
    pid_t pids[COUNT];
    for (int i = 0; i < COUNT; i++) {
        pids[i] = fork();
        if (pids[i] == 0) under_a_storm(i % 4);
    }
    usleep(300000);
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (int i = 0; i < COUNT; i++) kill(pids[i], SIGKILL);
    for (int i = 0; i < COUNT; i++) waitpid(pids[i], NULL, 0);
    clock_gettime(CLOCK_MONOTONIC, &end);
    // Far below the kernel's patience, which is 20 s, and far above what it takes on a busy machine.
    printf("ended in time %d\n", end.tv_sec - start.tv_sec < 10);
}

// ALTERNATE is the alternate signal stack by which the kernel pushes frames: where it begins, its flags, its size.
static char frames[65536];

static void on_frame(int sig) {
    (void)sig;
    syscall(SYS_sigaltstack, NULL, frames);
}

static void *change_stacks(void *arg) {
    volatile uint64_t *words = arg;
    for (uint64_t i = 0;; i++) {
        words[i % 3] = i % 7 ? i * 6364136223846793005u : (uint64_t)frames;
        if (i % 64 == 0) sched_yield();
    }
    return arg;
}

// Any numbers: the frame goes to the memory of the guest, where it stands already if that is on such a stack, or nowhere.
static void forge_stacks(void) {
    uint64_t own = (uint64_t)channel(), good = (uint64_t)frames;
    uint64_t kinds[][3] = {
        {good, 0, sizeof frames}, {good, 1, sizeof frames}, {good, ~0ul, sizeof frames}, {good, 0, 1},
        {-1, 0, -1}, {0, 0, 1}, {8, 2, 1ul << 63}, {own, 0, CHANNEL}, {own - TEXT, 0, TEXT}, {1ul << 63, 0, 4096},
        {-4096, 0, 4096}, {good, 0, -good},
    };
    struct sigaction action = {.sa_handler = on_frame, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR2, &action, NULL);
    int handled = 0, killed = 0, status;
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (fork() == 0) {
            memcpy(channel() + ALTERNATE, kinds[i], sizeof kinds[i]);
            raise(SIGUSR2);
            _exit(0);
        }
        wait(&status);
        handled += status == 0;
        killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
    }
    printf("handled %d, killed %d\n", handled, killed);
    // While they change; it ends by itself, or is ended.
    for (int i = 0; i < 8; i++) {
        if (fork() == 0) {
            alarm(1);
            pthread_t thread;
            pthread_create(&thread, NULL, change_stacks, channel() + ALTERNATE);
            for (;;) raise(SIGUSR2);
        }
    }
    while (wait(NULL) > 0) {}
}

// Whether it still counts, seconds later.
static int is_alive(void) {
    uint64_t before = *shared;
    sleep(1);
    return *shared != before;
}

// HANDED is the table of delegated files, by the guest's number: the host's, and what it is good for.
enum { SHIFT = 3, ANYTHING = 3, UNUSED = 900, LAST = 512 };

// Has a file delegated that may only be read, and forges entries for every descriptor that its host process may have.
static void forge_files(const char *path) {
    char byte;
    int fd = open(path, O_RDONLY), read_by_others = 0, written = 0;
    for (int i = 0; i < 50; i++) pread(fd, &byte, 1, 0);
    volatile uint32_t *table = (void *)(channel() + HANDED);
    uint32_t own = table[fd] >> SHIFT;
    for (uint32_t number = 0; number < LAST; number++) {
        table[UNUSED] = number << SHIFT | ANYTHING;
        if (pread(UNUSED, &byte, 1, 0) != -1) read_by_others += number != own;
        if (pwrite(UNUSED, "x", 1, 0) != -1) written++;
        if (number == 0) printf("control socket %d\n", read(UNUSED, &byte, 1) == -1 && errno == EPERM);
    }
    table[UNUSED] = 0;
    printf("delegated %d, read by others %d, written %d\nready\n", own != 0, read_by_others, written);
    pause();
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
        for (long at = 0; at < TEXT; at += argc > 2 ? atoi(argv[2]) : 41) {
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
    } else if (strcmp(argv[1], "elsewhere") == 0) {
        for (long which = 0; which < 8; which++) {
            if (fork() == 0) point_elsewhere(which);
        }
        while (wait(NULL) > 0) {}
    } else if (strcmp(argv[1], "storms") == 0) {
        end_under_storms();
    } else if (strcmp(argv[1], "hide") == 0) {
        shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        in_child(hide_a_process, (long)channel() - TEXT);
        for (int i = 0; i < 100 && *shared == 0; i++) usleep(100000);
        printf("hidden %d\n", *shared != 0);
        int seconds = 0;
        while (seconds < 60 && is_alive()) seconds++;
        printf("still there %d\n", seconds == 60);
    }
    if (strcmp(argv[1], "frames") == 0) forge_stacks();
    if (strcmp(argv[1], "files") == 0) forge_files(argv[0]);
    printf("alive\n");
    return 0;
}
