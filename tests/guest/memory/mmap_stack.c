// build: static
// MAP_GROWSDOWN and the main stack: growth by touch and by system calls, the guard gap, RLIMIT_STACK.
#include "maps.h"
#include <sys/resource.h>

#define RW (PROT_READ | PROT_WRITE)
#define GROWS (MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN)

// A growing mapping of one page with room for `room` pages below it.
static char *growing(size_t room) {
    char *area = CHECK_MAP(raw_mmap(NULL, (room + 1) * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    CHECK_OK(munmap(area, (room + 1) * PAGE));
    char *p = area + room * PAGE;
    CHECK_EQ((long)raw_mmap(p, PAGE, RW, GROWS | MAP_FIXED, -1, 0), (long)p);
    return p;
}

CASE(growsdown_by_touch) {
    char *p = growing(1024);
    CHECK_WRITES(p - 1);
    CHECK_WRITES(p - 10 * PAGE);
    CHECK_EQ(*(p - 5 * PAGE), 0);
    struct maps_entry m;
    CHECK(maps_find(p, &m));
    CHECK_EQ(m.start, (unsigned long)p - 10 * PAGE);
    CHECK_EQ(m.end, (unsigned long)p + PAGE);
    CHECK_READS(p - 20 * PAGE);  // a read grows it as well
    CHECK(maps_find(p, &m));
    CHECK_EQ(m.start, (unsigned long)p - 20 * PAGE);
}

CASE(growsdown_by_read_into_it) {
    char *p = growing(1024);
    int fds[2];
    CHECK_OK(pipe(fds));
    CHECK_EQ(write(fds[1], "abcdefgh", 8), 8);
    CHECK_EQ(read(fds[0], p - 6 * PAGE - 4, 8), 8);
    CHECK_EQ(memcmp(p - 6 * PAGE - 4, "abcdefgh", 8), 0);
    struct maps_entry m;
    CHECK(maps_find(p, &m));
    CHECK_EQ(m.start, (unsigned long)p - 7 * PAGE);
}

CASE(growsdown_by_other_calls) {
    char *p = growing(1024);
    CHECK_OK(clock_gettime(CLOCK_REALTIME, (struct timespec *)(p - 2 * PAGE)));
    CHECK_OK(syscall(SYS_clock_gettime, CLOCK_REALTIME, p - 4 * PAGE));
    CHECK_OK(syscall(SYS_pipe2, p - 6 * PAGE, 0));
    CHECK_OK(syscall(SYS_getcwd, p - 8 * PAGE, 2 * PAGE));
    CHECK_OK(syscall(SYS_newfstatat, AT_FDCWD, "/", p - 10 * PAGE, 0));
    // As a source of bytes, too: they are zero.
    int fds[2];
    char c = 1;
    CHECK_OK(pipe(fds));
    CHECK_EQ(write(fds[1], p - 12 * PAGE, 1), 1);
    CHECK_EQ(read(fds[0], &c, 1), 1);
    CHECK_EQ(c, 0);
}

CASE(growsdown_from_a_forked_child) {
    char *p = growing(1024);
    CHECK_WRITES(p - 3 * PAGE);
    IN_CHILD({
        CHECK_WRITES(p - 9 * PAGE);
        CHECK_EQ(*(p - 3 * PAGE), 77);
    });
    struct maps_entry m;
    CHECK(maps_find(p, &m));
    CHECK_EQ(m.start, (unsigned long)p - 3 * PAGE);
}

CASE(growsdown_stops_at_the_gap) {
    // stack_guard_gap is 256 pages: growth nearer than that to another accessible mapping is refused.
    char *p = growing(512);
    char *below = p - 300 * PAGE;
    CHECK_EQ((long)raw_mmap(below, PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), (long)below);
    CHECK_WRITES(p - 20 * PAGE);
    CHECK_FAULT(p - 100 * PAGE, 1, SIGSEGV, SEGV_MAPERR);
    CHECK_FAULT(below + PAGE, 1, SIGSEGV, SEGV_MAPERR);
    CHECK_ERRNO(syscall(SYS_clock_gettime, CLOCK_REALTIME, p - 100 * PAGE), EFAULT);
    CHECK_WRITES(below);
    // An inaccessible neighbour needs no gap.
    CHECK_OK(mprotect(below, PAGE, PROT_NONE));
    CHECK_WRITES(p - 100 * PAGE);
}

CASE(growsdown_respects_rlimit_stack) {
    char *p = growing(4096);
    struct rlimit lim;
    CHECK_OK(getrlimit(RLIMIT_STACK, &lim));
    lim.rlim_cur = 64 * PAGE;
    CHECK_OK(setrlimit(RLIMIT_STACK, &lim));
    CHECK_WRITES(p - 60 * PAGE);
    CHECK_FAULT(p - 70 * PAGE, 1, SIGSEGV, SEGV_MAPERR);
    CHECK_ERRNO(syscall(SYS_clock_gettime, CLOCK_REALTIME, p - 70 * PAGE), EFAULT);
    lim.rlim_cur = 128 * PAGE;
    CHECK_OK(setrlimit(RLIMIT_STACK, &lim));
    CHECK_WRITES(p - 70 * PAGE);
}

CASE(mprotect_growsdown_flag) {
    char *p = growing(1024);
    CHECK_WRITES(p - 4 * PAGE);
    // PROT_GROWSDOWN extends the change down to the start of the mapping.
    CHECK_OK(mprotect(p, PAGE, PROT_READ | PROT_GROWSDOWN));
    CHECK_FAULT(p - 3 * PAGE, 1, SIGSEGV, SEGV_ACCERR);
    char *q = anon(PAGE);
    CHECK_ERRNO(mprotect(q, PAGE, PROT_READ | PROT_GROWSDOWN), EINVAL);
    CHECK_ERRNO(mprotect(p, PAGE, PROT_READ | PROT_GROWSDOWN | PROT_GROWSUP), EINVAL);
}

static __attribute__((noinline)) int deep(size_t n) {
    volatile char page[PAGE];
    page[0] = page[PAGE - 1] = n;
    return n ? deep(n - 1) + page[0] - page[PAGE - 1] : 0;
}

CASE(main_stack_grows_deep) {
    CHECK_EQ(deep(1500), 0);  // about 6 MiB of the usual 8
    struct maps_entry m;
    int here;
    CHECK(maps_find(&here, &m));
    CHECK_STR(m.name, "[stack]");
    CHECK_STR(m.perms, "rw-p");
    CHECK_GE(m.end - m.start, 1500 * PAGE);
}

CASE(read_into_the_ungrown_main_stack) {
    int fds[2];
    char here, text[4] = "";
    char *below = &here - 400 * PAGE;
    CHECK_OK(pipe(fds));
    CHECK_EQ(write(fds[1], "deep", 4), 4);
    CHECK_EQ(read(fds[0], below, 4), 4);
    memcpy(text, below, 4);
    CHECK_EQ(memcmp(text, "deep", 4), 0);
    CHECK_EQ(write(fds[1], &here - 600 * PAGE, 1), 1);
    CHECK_OK(syscall(SYS_uname, &here - 700 * PAGE));
}

CASE(main_stack_overflow_is_sigsegv) {
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        struct rlimit lim = {256 << 10, RLIM_INFINITY};
        getrlimit(RLIMIT_STACK, &lim);
        lim.rlim_cur = 256 << 10;
        setrlimit(RLIMIT_STACK, &lim);
        deep(1000000);
        _exit(0);
    }
    CHECK_KILLED(pid, SIGSEGV);
}

CASE(main_stack_limit_raised_later) {
    struct rlimit lim;
    CHECK_OK(getrlimit(RLIMIT_STACK, &lim));
    lim.rlim_cur = 512 << 10;
    CHECK_OK(setrlimit(RLIMIT_STACK, &lim));
    char here;
    char *low = (char *)((unsigned long)(&here - (600 << 10)) & -16);
    CHECK_FAULT(low, 1, SIGSEGV, SEGV_MAPERR);
    CHECK_ERRNO(syscall(SYS_uname, low), EFAULT);
    lim.rlim_cur = 4 << 20;
    CHECK_OK(setrlimit(RLIMIT_STACK, &lim));
    CHECK_WRITES(low);
}

HELPER(limits) {
    // The stack's own limit at exec decides how far it may grow.
    struct rlimit lim;
    CHECK_OK(getrlimit(RLIMIT_STACK, &lim));
    CHECK_EQ(lim.rlim_cur, (rlim_t)atol(argv[2]));
    CHECK_EQ(deep(lim.rlim_cur / PAGE - 64), 0);
}

CASE(stack_limit_over_exec) {
    static const char *sizes[] = {"2097152", "7340032"};
    for (int i = 0; i < 2; i++) {
        pid_t pid = CHECK_OK(fork());
        if (pid == 0) {
            struct rlimit lim;
            getrlimit(RLIMIT_STACK, &lim);
            lim.rlim_cur = atol(sizes[i]);
            CHECK_OK(setrlimit(RLIMIT_STACK, &lim));
            execl(check_self, "stack", "@limits", sizes[i], NULL);
            FAIL("exec");
        }
        CHECK_EXIT(pid, 0);
    }
}

MAIN
