// build: static -pthread
// Code that a program generates, system calls in it, and writes again: on pages that are writable and executable, made
// executable by turns, mapped twice, and from a file.
#include "../check.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>

enum { PAGE = 4096, NUMBER = 1, CALL = 5 };

// mov $number, %eax; syscall; ret
static const uint8_t code[] = {0xb8, SYS_getppid, 0, 0, 0, 0x0f, 0x05, 0xc3};
typedef long function(long, long);

static void generate(uint8_t *at, uint32_t number) {
    memcpy(at, code, sizeof code);
    memcpy(at + NUMBER, &number, sizeof number);
}

static uint8_t *page_of(int prot) {
    return CHECK_MAP(mmap(NULL, PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

static long call(uint8_t *at) { return ((function *)at)(0, 0); }

CASE(generated_and_rewritten) {
    uint8_t *at = page_of(PROT_READ | PROT_WRITE | PROT_EXEC);
    for (int round = 0; round < 100; round++) {
        generate(at, SYS_getppid);
        CHECK_EQ(call(at), getppid());
        generate(at, SYS_getpid);
        CHECK_EQ(call(at), getpid());
        // The call itself gives way to other code: mov $7, %al; the rest as before.
        memcpy(at + CALL, (uint8_t[]){0xb0, 7}, 2);
        CHECK_EQ(call(at), (SYS_getpid & ~0xff) | 7);
    }
}

CASE(at_every_place_of_a_line_and_over_the_pages_end) {
    uint8_t *at = CHECK_MAP(mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    for (int place = PAGE - 80; place <= PAGE; place++) {
        generate(at + place, SYS_getppid);
        CHECK_EQ(call(at + place), getppid());
    }
}

CASE(writable_and_executable_by_turns) {
    uint8_t *at = page_of(PROT_READ | PROT_WRITE);
    for (int round = 0; round < 20; round++) {
        CHECK_OK(mprotect(at, PAGE, PROT_READ | PROT_WRITE));
        generate(at, round % 2 ? SYS_getpid : SYS_getppid);
        CHECK_OK(mprotect(at, PAGE, PROT_READ | PROT_EXEC));
        CHECK_EQ(call(at), round % 2 ? getpid() : getppid());
    }
}

CASE(mapped_twice) {
    int fd = CHECK_OK(syscall(SYS_memfd_create, "code", 0));
    CHECK_OK(ftruncate(fd, PAGE));
    uint8_t *writable = CHECK_MAP(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    uint8_t *at = CHECK_MAP(mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0));
    for (int round = 0; round < 20; round++) {
        generate(writable, round % 2 ? SYS_getpid : SYS_getppid);
        CHECK_EQ(call(at), round % 2 ? getpid() : getppid());
    }
}

CASE(from_a_file_and_then_private) {
    int fd = CHECK_OK(open(TMP("code"), O_RDWR | O_CREAT, 0700));
    uint8_t bytes[PAGE] = {0};
    generate(bytes, SYS_getppid);
    CHECK_EQ(write(fd, bytes, PAGE), PAGE);
    uint8_t *at = CHECK_MAP(mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE, fd, 0));
    CHECK_EQ(call(at), getppid());
    generate(at, SYS_getpid);
    CHECK_EQ(call(at), getpid());
    generate(bytes, SYS_gettid);
    CHECK_EQ(pwrite(fd, bytes, PAGE, 0), PAGE);
    CHECK_EQ(call(at), getpid());
}

CASE(each_process_has_its_own_after_a_fork) {
    uint8_t *at = page_of(PROT_READ | PROT_WRITE | PROT_EXEC);
    generate(at, SYS_getpid);
    pid_t child = CHECK_OK(fork());
    if (child == 0) {
        CHECK_EQ(call(at), getpid());
        generate(at, SYS_getppid);
        CHECK_EQ(call(at), getppid());
        _exit(0);
    }
    CHECK_EXIT(child, 0);
    CHECK_EQ(call(at), getpid());
}

static uint8_t *shared;
static atomic_int stop;

// One byte at a time, so that whoever runs it meets one number or the other.
static void *flip(void *unused) {
    for (unsigned round = 0; !stop; round++) {
        __atomic_store_n(&shared[NUMBER], round % 2 ? SYS_getpid : SYS_getppid, __ATOMIC_SEQ_CST);
    }
    return unused;
}

CASE(rewritten_by_another_thread) {
    shared = page_of(PROT_READ | PROT_WRITE | PROT_EXEC);
    generate(shared, SYS_getppid);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, flip, NULL), 0);
    for (int round = 0; round < 20000; round++) {
        long told = call(shared);
        CHECK(told == getpid() || told == getppid());
    }
    stop = 1;
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

static volatile uintptr_t seen;
static void handler(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    seen = ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
}

// A handler sees the place behind the call, and may send its thread elsewhere.
CASE(signals_find_the_place) {
    uint8_t *at = page_of(PROT_READ | PROT_WRITE | PROT_EXEC);
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    CHECK_OK(sigaction(SIGUSR1, &action, NULL));
    generate(at, SYS_kill);
    CHECK_EQ(((function *)at)(getpid(), SIGUSR1), 0);
    CHECK_EQ(seen, (uintptr_t)at + CALL + 2);
}

MAIN
