// build: dynamic -pthread
// A program's text as others see it: by /proc/PID/mem and process_vm_readv it is what was linked, and what is written there is
// done, a debugger's breakpoints above all.
#include "../check.h"
#include <pthread.h>
#include <sys/uio.h>
#include <ucontext.h>

// Call sites of several shapes. The nops before let a disassembler that begins anywhere find its way.
#define BEGIN(NAME) ".balign 64\n.skip 64, 0x90\n" NAME ":\n"
__asm__(".pushsection .text\n"
        BEGIN("number_before") "mov $110, %eax\n syscall\n ret\n"
        BEGIN("long_number_before") "mov $110, %rax\n syscall\n ret\n"
        BEGIN("long_before") "mov %rdi, %rax\n mov %rsi, %rdi\n mov %rdx, %rsi\n mov %rcx, %rdx\n mov 8(%rsp), %r9\n syscall\n ret\n"
        BEGIN("long_behind") "mov %rdi, %rax\n mov %rsi, %rdi\n mov %rdx, %rsi\n mov %rcx, %rdx\n syscall\n cmp $-4095, %rax\n ret\n"
        BEGIN("short_only") "mov %rdi, %rax\n mov %rsi, %rdi\n mov %rdx, %rsi\n mov %rcx, %rdx\n syscall\n ret\n"
        ".balign 64\n.popsection");
typedef long caller(long, long, long, long);
caller number_before, long_number_before, long_before, long_behind, short_only;

#define MOVES 0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0x48, 0x89, 0xd6, 0x48, 0x89, 0xca
static const struct site {
    const char *name;
    caller *call;
    int len;
    uint8_t code[32];
    int8_t boundaries[10];  // of instructions; the last is 0
} sites[] = {
    {"number_before", number_before, 8, {0xb8, 110, 0, 0, 0, 0x0f, 0x05, 0xc3}, {5, 7, 0}},
    {"long_number_before", long_number_before, 10, {0x48, 0xc7, 0xc0, 110, 0, 0, 0, 0x0f, 0x05, 0xc3}, {7, 9, 0}},
    {"long_before", long_before, 20, {MOVES, 0x4c, 0x8b, 0x4c, 0x24, 8, 0x0f, 0x05, 0xc3}, {9, 12, 17, 19, 0}},
    {"long_behind", long_behind, 21, {MOVES, 0x0f, 0x05, 0x48, 0x3d, 0x01, 0xf0, 0xff, 0xff, 0xc3}, {9, 12, 14, 20, 0}},
    {"short_only", short_only, 15, {MOVES, 0x0f, 0x05, 0xc3}, {9, 12, 14, 0}},
};
enum { SITES = sizeof sites / sizeof *sites };

static int mem;
static void open_memory(void) { mem = CHECK_OK(open("/proc/self/mem", O_RDWR)); }

static long by_mem(void *to, size_t len, uintptr_t at) { return pread(mem, to, len, at); }
static long by_vm(void *to, size_t len, uintptr_t at) {
    return process_vm_readv(getpid(), &(struct iovec){to, len}, 1, &(struct iovec){(void *)at, len}, 1, 0);
}

// All executable mappings of files, page by page and in one.
static void all_of_it(long (*read_it)(void *, size_t, uintptr_t)) {
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps != NULL);
    char line[4600], path[4400];
    int found = 0;
    while (fgets(line, sizeof line, maps)) {
        unsigned long start, end, offset;
        if (sscanf(line, "%lx-%lx r-xp %lx %*s %*s %4399[^\n]", &start, &end, &offset, path) != 4 || path[0] != '/') continue;
        size_t len = end - start;
        char *file = CHECK_MAP(mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        char *memory = CHECK_MAP(mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        int fd = CHECK_OK(open(path, O_RDONLY));
        CHECK_LE(0, pread(fd, file, len, offset));
        close(fd);
        CHECK_EQ(read_it(memory, len, start), (long)len);
        if (memcmp(memory, file, len)) FAIL("%s is not as in the file", path);
        for (size_t page = 0; page < len; page += 4096) {
            CHECK_EQ(read_it(memory, 4096, start + page), 4096);
            if (memcmp(memory, file + page, 4096)) FAIL("%s is not as in the file at %#zx", path, page);
        }
        found++;
        munmap(file, len);
        munmap(memory, len);
    }
    CHECK_GE(found, 2);  // the program, and a library at least
}
CASE(by_mem_it_is_what_is_in_the_files) {
    open_memory();
    all_of_it(by_mem);
}
CASE(by_process_vm_readv_too) { all_of_it(by_vm); }

CASE(any_part_of_it) {
    open_memory();
    for (int i = 0; i < SITES; i++)
        for (int from = 0; from < sites[i].len; from++)
            for (int len = 1; from + len <= sites[i].len; len++) {
                uint8_t bytes[32];
                CHECK_EQ(by_mem(bytes, len, (uintptr_t)sites[i].call + from), len);
                CHECK_EQ(memcmp(bytes, sites[i].code + from, len), 0);
                CHECK_EQ(by_vm(bytes, len, (uintptr_t)sites[i].call + from), len);
                CHECK_EQ(memcmp(bytes, sites[i].code + from, len), 0);
            }
}

static const uint8_t int3 = 0xcc;
static const struct site *broken;
static int broken_at;
static volatile int traps;
static void on_trap(int sig CHECK_USED, siginfo_t *info CHECK_USED, void *context) {
    greg_t *rip = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    uintptr_t place = (uintptr_t)broken->call + broken_at;
    if ((uintptr_t)*rip != place + 1) FAIL("%s: trapped at %d, not %d", broken->name, (int)(*rip - (uintptr_t)broken->call), broken_at + 1);
    CHECK_EQ(pwrite(mem, broken->code + broken_at, 1, place), 1);
    *rip = place;
    traps++;
}
static void break_at(const struct site *site, int at) {
    uint8_t now[32];
    broken = site;
    broken_at = at;
    CHECK_EQ(pwrite(mem, &int3, 1, (uintptr_t)site->call + at), 1);
    // Nothing else has changed.
    CHECK_EQ(by_mem(now, site->len, (uintptr_t)site->call), site->len);
    CHECK_EQ(now[at], int3);
    now[at] = site->code[at];
    CHECK_EQ(memcmp(now, site->code, site->len), 0);
}
static void handle_traps(void) {
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    CHECK_OK(sigaction(SIGTRAP, &action, NULL));
    open_memory();
}
static long call(const struct site *site) { return site->call(SYS_getppid, 0, 0, 0); }

CASE(a_breakpoint_on_each_instruction) {
    handle_traps();
    for (int i = 0; i < SITES; i++) {
        CHECK_EQ(call(&sites[i]), getppid());
        for (int b = -1; b < 0 || sites[i].boundaries[b]; b++) {
            int hits = traps;
            break_at(&sites[i], b < 0 ? 0 : sites[i].boundaries[b]);
            CHECK_EQ(call(&sites[i]), getppid());
            CHECK_EQ(traps, hits + 1);
            CHECK_EQ(call(&sites[i]), getppid());
            CHECK_EQ(traps, hits + 1);
        }
        // By plain loads as well by now.
        CHECK_EQ(memcmp((void *)sites[i].call, sites[i].code, sites[i].len), 0);
    }
}

// Each for itself: the site is as it was linked when the breakpoint comes.
CASE(a_first_breakpoint) {
    for (int i = 0; i < SITES; i++)
        for (int b = -1; b < 0 || sites[i].boundaries[b]; b++)
            IN_CHILD({
                handle_traps();
                if (b % 2) CHECK_EQ(call(&sites[i]), getppid());
                break_at(&sites[i], b < 0 ? 0 : sites[i].boundaries[b]);
                CHECK_EQ(call(&sites[i]), getppid());
                CHECK_EQ(traps, 1);
            });
}

// Behind a call that somebody is in.
static int fds[2];
static void *read_there(void *site) {
    static char byte;
    return (void *)((const struct site *)site)->call(SYS_read, fds[0], (long)&byte, 1);
}
static void wait_until_it_sleeps(void) {
    usleep(100000);
}
CASE(a_breakpoint_behind_a_call_in_progress) {
    for (int i = 2; i < SITES; i++)
        IN_CHILD({
            handle_traps();
            CHECK_OK(pipe(fds));
            pthread_t thread;
            void *result;
            CHECK_EQ(pthread_create(&thread, NULL, read_there, (void *)&sites[i]), 0);
            wait_until_it_sleeps();
            int last = 0;
            while (sites[i].code[last] != 0x0f || sites[i].code[last + 1] != 0x05) last++;
            break_at(&sites[i], last + 2);
            CHECK_EQ(write(fds[1], "x", 1), 1);
            CHECK_EQ(pthread_join(thread, &result), 0);
            CHECK_EQ((long)result, 1);
            CHECK_EQ(traps, 1);
        });
}

CASE(in_another_process) {
    pid_t child = CHECK_OK(fork());
    if (child == 0) {
        for (;;) {
            call(&sites[0]);
            raise(SIGSTOP);
        }
    }
    int status;
    CHECK_EQ(waitpid(child, &status, WUNTRACED), child);
    CHECK(WIFSTOPPED(status));
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", child);
    mem = CHECK_OK(open(path, O_RDWR));
    uint8_t now[32];
    CHECK_EQ(by_mem(now, sites[0].len, (uintptr_t)sites[0].call), sites[0].len);
    CHECK_EQ(memcmp(now, sites[0].code, sites[0].len), 0);
    CHECK_EQ(pwrite(mem, &int3, 1, (uintptr_t)sites[0].call + 5), 1);
    CHECK_OK(kill(child, SIGCONT));
    CHECK_KILLED(child, SIGTRAP);
    // Ours is another copy.
    CHECK_EQ(call(&sites[0]), getppid());
}

CASE(a_written_number_is_called) {
    open_memory();
    uint32_t number = SYS_getpid;
    CHECK_EQ(pwrite(mem, &number, 4, (uintptr_t)number_before + 1), 4);
    CHECK_EQ(call(&sites[0]), getpid());
    // And is inherited, and given up with the pages.
    IN_CHILD(CHECK_EQ(call(&sites[0]), getpid()));
    CHECK_OK(madvise((void *)((uintptr_t)number_before & -4096), 4096, MADV_DONTNEED));
    CHECK_EQ(call(&sites[0]), getppid());
    uint8_t now[32];
    CHECK_EQ(by_mem(now, sites[0].len, (uintptr_t)sites[0].call), sites[0].len);
    CHECK_EQ(memcmp(now, sites[0].code, sites[0].len), 0);
}

// /proc/PID/mem is a debugger's: protections do not count, holes do, and no shared mapping is written that the process itself
// could not make writable.
CASE(protections_do_not_count) {
    open_memory();
    char byte = 7;
    char *page = CHECK_MAP(mmap(NULL, 3 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    CHECK_EQ(pread(mem, &byte, 1, (uintptr_t)page), 1);
    CHECK_EQ(byte, 0);
    CHECK_EQ(pwrite(mem, "abc", 3, (uintptr_t)page + 4094), 3);
    CHECK_OK(mprotect(page, 4096, PROT_READ));
    CHECK_EQ(page[4095], 'b');
    CHECK_OK(mprotect(page, 3 * 4096, PROT_READ));
    CHECK_EQ(page[4096], 'c');
    CHECK_EQ(pwrite(mem, "def", 3, (uintptr_t)page + 4094), 3);
    CHECK_EQ(page[4096], 'f');
    CHECK_OK(munmap(page + 2 * 4096, 4096));
    CHECK_EQ(pwrite(mem, "ghij", 4, (uintptr_t)page + 2 * 4096 - 2), 2);
    CHECK_ERRNO(pwrite(mem, "x", 1, (uintptr_t)page + 2 * 4096), EIO);
    CHECK_ERRNO(pread(mem, &byte, 1, (uintptr_t)page + 2 * 4096), EIO);
    int fd = CHECK_OK(open(TMP("file"), O_RDWR | O_CREAT, 0600));
    CHECK_OK(ftruncate(fd, 4096));
    int only_read = CHECK_OK(open(TMP("file"), O_RDONLY));
    page = CHECK_MAP(mmap(NULL, 4096, PROT_READ, MAP_SHARED, only_read, 0));
    CHECK_EQ(pread(mem, &byte, 1, (uintptr_t)page), 1);
    CHECK_ERRNO(pwrite(mem, "x", 1, (uintptr_t)page), EIO);
    page = CHECK_MAP(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0));
    CHECK_ERRNO(pwrite(mem, "x", 1, (uintptr_t)page), EIO);
    page = CHECK_MAP(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, only_read, 0));
    CHECK_EQ(pwrite(mem, "x", 1, (uintptr_t)page), 1);
    CHECK_EQ(page[0], 'x');
    CHECK_EQ(pread(fd, &byte, 1, 0), 1);
    CHECK_EQ(byte, 0);
    CHECK_OK(unlink(TMP("file")));
}

MAIN
