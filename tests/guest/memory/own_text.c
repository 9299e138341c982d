// build: dynamic -pie -fPIE -pthread
// A program that changes its own code, and that maps right behind itself: its system calls go on as it made them.
#include "../check.h"
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

// Like those of C libraries: the number loaded before the call, or a comparison behind it.
__asm__(".pushsection .text\n"
        ".skip 64, 0x90\n"
        "loads: mov $110, %eax\n syscall\n ret\n"
        ".skip 64, 0x90\n"
        "compares: mov %rdi, %rax\n mov %rsi, %rdi\n mov %rdx, %rsi\n mov %rcx, %rdx\n mov %r8, %r10\n mov %r9, %r8\n"
        "mov 8(%rsp), %r9\n syscall\n cmp $-4095, %rax\n jae 1f\n1: ret\n"
        ".skip 64, 0x90\n"
        ".popsection");
long loads(void);
long compares(long number, ...);
extern char end[];
static const uint8_t getpid_code[] = {0xb8, SYS_getpid, 0, 0, 0};
static const uint8_t loads_code[] = {0xb8, SYS_getppid, 0, 0, 0, 0x0f, 0x05, 0xc3};

enum { PAGE = 4096 };

// Nothing but the code that runs here is on these pages, and they stay executable.
static void make_writable(void) {
    uintptr_t from = (uintptr_t)loads & -PAGE, until = (uintptr_t)loads + 512;
    CHECK_OK(mprotect((void *)from, until - from, PROT_READ | PROT_WRITE | PROT_EXEC));
}

static char *behind(void) { return (char *)(((uintptr_t)end + PAGE - 1) & -PAGE); }

static void need_room(void) {
    if ((char *)sbrk(0) - behind() < 64 * PAGE && (char *)sbrk(0) > behind()) SKIP("the heap is there");
}

CASE(made_writable_it_is_what_was_linked) {
    CHECK_EQ(loads(), getppid());
    make_writable();
    CHECK_EQ(memcmp((void *)loads, loads_code, sizeof loads_code), 0);
    CHECK_EQ(loads(), getppid());
    CHECK_EQ(compares(SYS_getppid), getppid());
}

CASE(what_is_written_is_done) {
    make_writable();
    memcpy((void *)loads, getpid_code, sizeof getpid_code);
    CHECK_EQ(loads(), getpid());
    CHECK_OK(mprotect((void *)((uintptr_t)loads & -PAGE), PAGE, PROT_READ | PROT_EXEC));
    CHECK_EQ(loads(), getpid());
}

CASE(what_is_written_stays_when_the_place_behind_is_mapped) {
    need_room();
    make_writable();
    memcpy((void *)loads, getpid_code, sizeof getpid_code);
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    CHECK_MAP(mmap(behind(), 16 * PAGE, PROT_READ | PROT_WRITE, flags, -1, 0));
    CHECK_EQ(loads(), getpid());
    CHECK_EQ(compares(SYS_getppid), getppid());
}

CASE(a_call_maps_over_the_place_behind) {
    need_room();
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    long at = compares(SYS_mmap, behind(), 16L * PAGE, (long)(PROT_READ | PROT_WRITE), (long)flags, -1L, 0L);
    CHECK_EQ(at, (long)behind());
    memset(behind(), 0xcc, 16 * PAGE);
    CHECK_EQ(loads(), getppid());
    CHECK_EQ(compares(SYS_munmap, behind(), 16L * PAGE), 0);
    CHECK_EQ(compares(SYS_getppid), getppid());
}

static volatile int stop;
static void *caller(void *parent) {
    long bad = 0;
    while (!stop) bad += loads() != (long)parent || compares(SYS_getppid) != (long)parent;
    return (void *)bad;
}

CASE(made_writable_while_others_call) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) CHECK_EQ(pthread_create(&threads[i], NULL, caller, (void *)(long)getppid()), 0);
    usleep(10000);
    make_writable();
    usleep(10000);
    stop = 1;
    for (int i = 0; i < 3; i++) {
        void *bad;
        CHECK_EQ(pthread_join(threads[i], &bad), 0);
        CHECK_EQ((long)bad, 0);
    }
}
// Threads that compute, that call all the time, and one that waits in a call made from here: the place behind is taken under
// them, and their calls go on.
static int never[2];
static void *waiter(void *arg) {
    char c = 0;
    long got = compares(SYS_read, (long)never[0], &c, 1L);
    return (void *)(got == 1 && c == 'x' ? arg : NULL);
}
static volatile int turns;
static void turn(int sig CHECK_USED) { turns++; }

CASE(the_place_behind_is_mapped_while_others_call) {
    need_room();
    CHECK_OK(pipe(never));
    pthread_t threads[3], waits;
    signal(SIGUSR1, turn);
    for (int i = 0; i < 3; i++) CHECK_EQ(pthread_create(&threads[i], NULL, caller, (void *)(long)getppid()), 0);
    CHECK_EQ(pthread_create(&waits, NULL, waiter, &stop), 0);
    usleep(20000);
    for (int i = 0; i < 20; i++) {
        int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
        CHECK_MAP(mmap(behind(), 16 * PAGE, PROT_READ | PROT_WRITE, flags, -1, 0));
        memset(behind(), 0xcc, 16 * PAGE);
        for (int t = 0; t < 3; t++) CHECK_EQ(pthread_kill(threads[t], SIGUSR1), 0);
        usleep(1000);
    }
    CHECK_EQ(loads(), getppid());
    CHECK_EQ(compares(SYS_getppid), getppid());
    stop = 1;
    void *result;
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(pthread_join(threads[i], &result), 0);
        CHECK_EQ((long)result, 0);
    }
    CHECK_EQ(write(never[1], "x", 1), 1);
    CHECK_EQ(pthread_join(waits, &result), 0);
    CHECK(result == &stop);
    CHECK_GT(turns, 0);
}

// A thread that begins while its parent is behind a call made from here, and code that is put where the trampolines were.
static char code[] = {0xb8, SYS_getpid, 0, 0, 0, 0x0f, 0x05, 0xc3};
static void *calls_there(void *at) { return (void *)((long (*)(void))at)(); }

CASE(code_in_the_place_behind_runs) {
    need_room();
    pthread_t threads[2];
    void *result;
    for (int i = 0; i < 2; i++) CHECK_EQ(pthread_create(&threads[i], NULL, caller, (void *)(long)getppid()), 0);
    usleep(5000);
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    char *at = CHECK_MAP(mmap(behind(), 16 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, flags, -1, 0));
    memset(at, 0x90, 16 * PAGE);
    for (int place = 64; place + 64 < 16 * PAGE; place += 1024) memcpy(at + place, code, sizeof code);
    for (int place = 0; place + 64 < 16 * PAGE; place += 1024) {
        pthread_t there;
        CHECK_EQ(pthread_create(&there, NULL, calls_there, at + place), 0);
        CHECK_EQ(pthread_join(there, &result), 0);
        CHECK_EQ((long)result, getpid());
    }
    stop = 1;
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(pthread_join(threads[i], &result), 0);
        CHECK_EQ((long)result, 0);
    }
}
MAIN
