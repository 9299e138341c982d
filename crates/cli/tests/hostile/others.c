// A hostile guest of the platform stub that takes what it was given by our code in its process: it closes and exchanges its
// descriptors, maps memory that the kernel does not know of, goes back to itself by frames of its own making, and keeps the
// kernel looking for what does not come. Each try is a process of its own. Built static, run by ../hostile_calls.rs.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>

#include "enter.h"

// Of an entry of the table of delegated files: below the host's number.
enum { SHIFT = 3 };

// The first site at which the stub itself makes this call.
static int site_of(uint32_t nr) {
    int at[SITES], count = find_sites(at);
    for (int i = 0; i < count; i++) {
        if (text[at[i] - 5] == 0xb8 && memcmp(text + at[i] - 4, &nr, 4) == 0) return at[i];
    }
    exit(4);
}

static uint64_t host(uint32_t nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
    static int site;
    static uint32_t of;
    if (of != nr) site = site_of(nr), of = nr;
    call_at(site, nr, (uint64_t[6]){a, b, c, d, -1, 0});
    return *(uint64_t *)(made + RESULT);
}

static const char *self;

// Whether a file can be mapped, which needs the control socket.
static int maps_files(void) {
    int fd = open(self, O_RDONLY);
    void *at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    int good = at != MAP_FAILED && memcmp(at, "\177ELF", 4) == 0;
    if (at != MAP_FAILED) munmap(at, 4096);
    close(fd);
    return good;
}

static void without_a_socket(long how) {
    int fd = open(self, O_RDONLY);
    char bytes[4];
    for (int i = 0; i < 50; i++) pread(fd, bytes, 4, 0);
    uint32_t number = *(uint32_t *)(channel() + HANDED + 4 * fd) >> SHIFT;
    if (how == 0) host(SYS_close, 0, 0, 0, 0);
    if (how == 1) host(SYS_dup2, number, 0, 0, 0);
    if (how == 2) host(SYS_close_range, 0, -1, 0, 0);
    maps_files();
    if (fork() == 0) _exit(0);
    for (int i = 0; i < 100; i++) pread(fd, bytes, 4, 0);
}

// What it was handed is closed behind the kernel's back, and its number is taken again.
static void close_delegated(long unused) {
    (void)unused;
    char bytes[4];
    for (int round = 0; round < 20; round++) {
        int fd = open(self, O_RDONLY), other = open("/etc/passwd", O_RDONLY);
        for (int i = 0; i < 50; i++) pread(fd, bytes, 4, 0);
        uint32_t number = *(uint32_t *)(channel() + HANDED + 4 * fd) >> SHIFT;
        if (number != 0) host(SYS_close, number, 0, 0, 0);
        for (int i = 0; i < 50; i++) pread(other, bytes, 4, 0), pread(fd, bytes, 4, 0);
        close(fd), close(other);
    }
    if (!maps_files()) exit(5);
}

// More mappings than the host allows a process, none of which the kernel has a record of.
static void take_all_mappings(long unused) {
    (void)unused;
    uint64_t result = 0;
    int count = 0;
    for (; count < 200000 && (int64_t)result >= 0; count++) {
        result = host(SYS_mmap, 0x200000000000 + count * 8192ul, 4096, 1 + count % 2 * 2, 0x100022);
    }
    // The kernel's own way to more memory of this process is shut too.
    void *more = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (result != (uint64_t)-12 || more != MAP_FAILED) exit(6);
}

static void call_for_ever(void) {
    for (;;) syscall(SYS_getppid);
}

// rt_sigreturn by the stub's own instruction, with a state of our making.
static void go_back(long how) {
    static struct { ucontext_t context; char more[4096]; } frame __attribute__((aligned(64)));
    ucontext_t *context = &frame.context;
    greg_t *regs = context->uc_mcontext.gregs;
    static char stack[CHANNEL];
    regs[REG_RIP] = (greg_t)call_for_ever, regs[REG_RSP] = (greg_t)stack + CHANNEL - 8, regs[REG_EFL] = 0x202;
    regs[REG_CSGSFS] = 0x33 | 0x2bul << 48;
    context->uc_stack = (stack_t){.ss_sp = (void *)(own_channel + STACK), .ss_size = CHANNEL - STACK};
    if (how == 0) memset(&context->uc_sigmask, -1, 8);
    if (how == 1) context->uc_stack.ss_sp = made;
    if (how == 2) context->uc_stack.ss_flags = SS_DISABLE;
    if (how == 3) context->uc_sigmask.__val[0] = 1ul << (SIGUSR1 - 1);
    if (how == 4) regs[REG_RIP] = (greg_t)text + 0x100, regs[REG_EFL] = 0x40302;
    if (how == 5) regs[REG_CSGSFS] = 0x23 | 0x2bul << 48;
    if (how == 6) regs[REG_RIP] = 1ul << 63;
    if (how == 7) regs[REG_RSP] = 0, regs[REG_EFL] = 0x102;
    int site = site_of(SYS_rt_sigreturn);
    __asm__ volatile("mov %0, %%rsp; mov $15, %%eax; jmp *%1" : : "r"(context), "r"(text + site) : "memory");
}

// Quick calls, so that both sides watch for each other, then none; the stub is told to watch for ever.
static void keep_watching(long unused) {
    (void)unused;
    for (int i = 0; i < 10000; i++) {
        syscall(SYS_getppid);
        if (i % 100 == 99) *(volatile uint32_t *)(channel() + SPIN) = -1;
    }
    *(volatile uint32_t *)(channel() + SPIN) = 0;
}

static void each(int count, void (*run)(long)) {
    pid_t pids[16];
    for (int i = 0; i < count; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            own_channel = (uint64_t)channel();
            use_made(i);
            run(i);
            _exit(0);
        }
    }
    for (int i = 0; i < count; i++) {
        int status = 0;
        // Far longer than any of them takes that ends by itself.
        for (int tenths = 0; waitpid(pids[i], &status, WNOHANG) == 0; tenths++) {
            if (tenths == 100) kill(pids[i], SIGKILL);
            nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        }
        if (WIFEXITED(status) && WEXITSTATUS(status) != 0) printf("try %d: %d\n", i, WEXITSTATUS(status));
    }
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IONBF, 0);
    if (argc < 2 || channel() == NULL) return 2;
    self = argv[0];
    look_around();
    if (strcmp(argv[1], "sockets") == 0) each(3, without_a_socket);
    if (strcmp(argv[1], "delegated") == 0) each(2, close_delegated);
    if (strcmp(argv[1], "mappings") == 0) each(1, take_all_mappings);
    if (strcmp(argv[1], "frames") == 0) each(8, go_back);
    if (strcmp(argv[1], "watching") == 0) {
        each(4, keep_watching);
        stop_giving_orders();
        printf("quiet\n");
        sleep(3);
    }
    stop_giving_orders();
    printf("maps files %d\nalive\n", maps_files());
    return 0;
}
