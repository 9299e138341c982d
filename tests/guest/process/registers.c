// build: static
// What a system call leaves of the caller's registers: all but rax, rcx and r11, and all flags; rcx is where it goes on. However
// it is served, from call sites of several shapes, with each flag set and none.
#include "../delegate/busy.h"
#include <linux/futex.h>

struct registers {
    long rax, rdi, rsi, rdx, r10, r8, r9, rbx, rbp, r12, r14, r15;
    unsigned long flags, rcx, next;
};
typedef void caller(struct registers *);

// Loads the registers, calls, stores them. The nops before let a disassembler that begins anywhere find its way.
#define CALLER(NAME, BEFORE, BEHIND)                                                                                      \
    ".balign 64\n\t.skip 64, 0x90\n" NAME ":\n\tpush %rbx\n\tpush %rbp\n\tpush %r12\n\tpush %r13\n\tpush %r14\n\tpush %r15\n\t" \
    "mov %rdi, %r13\n\tmov (%r13), %rax\n\tmov 16(%r13), %rsi\n\tmov 24(%r13), %rdx\n\tmov 32(%r13), %r10\n\t"           \
    "mov 40(%r13), %r8\n\tmov 48(%r13), %r9\n\tmov 56(%r13), %rbx\n\tmov 64(%r13), %rbp\n\tmov 72(%r13), %r12\n\t"        \
    "mov 80(%r13), %r14\n\tmov 88(%r13), %r15\n\tmov 8(%r13), %rdi\n\tpush 96(%r13)\n\tpopfq\n\t" BEFORE                  \
    "\n\tsyscall\n1:\t" BEHIND "\n\tpushfq\n\tpop 96(%r13)\n\tcld\n\t"                                                    \
    "mov %rax, (%r13)\n\tmov %rdi, 8(%r13)\n\tmov %rsi, 16(%r13)\n\tmov %rdx, 24(%r13)\n\tmov %r10, 32(%r13)\n\t"         \
    "mov %r8, 40(%r13)\n\tmov %r9, 48(%r13)\n\tmov %rbx, 56(%r13)\n\tmov %rbp, 64(%r13)\n\tmov %r12, 72(%r13)\n\t"        \
    "mov %r14, 80(%r13)\n\tmov %r15, 88(%r13)\n\tmov %rcx, 104(%r13)\n\tlea 1b(%rip), %rcx\n\tmov %rcx, 112(%r13)\n\t"    \
    "pop %r15\n\tpop %r14\n\tpop %r13\n\tpop %r12\n\tpop %rbp\n\tpop %rbx\n\tret\n"
// The calls that have a site of their own, which loads the number.
#define NUMBERS(X) \
    X(0) X(1) X(8) X(14) X(17) X(18) X(19) X(20) X(24) X(28) X(39) X(57) X(62) X(79) X(95) X(102) X(186) X(202) X(228) X(257) \
    X(295) X(296) X(309) X(1999)
#define SITE(N) CALLER("call_" #N, "mov $" #N ", %eax", "")
__asm__(".text\n" NUMBERS(SITE)
        CALLER("call_with_long_before", "mov 8(%rsp), %r11", "")
        CALLER("call_with_long_behind", "nop", "lea 0x100(%rcx), %r11")
        CALLER("call_with_short", "nop", "nop"));
#define DECLARE(N) caller call_##N;
NUMBERS(DECLARE)
caller call_with_long_before, call_with_long_behind, call_with_short;
#define ENTRY(N) {N, call_##N},
static const struct {
    long number;
    caller *call;
} sites[] = {NUMBERS(ENTRY)};

static caller *shape(int which, long number) {
    caller *general[] = {call_with_long_before, call_with_long_behind, call_with_short};
    if (which < 3) return general[which];
    for (unsigned i = 0; i < sizeof sites / sizeof *sites; i++)
        if (sites[i].number == number) return sites[i].call;
    FAIL("no site of %ld", number);
}

enum { SHAPES = 4, ARITHMETIC = 0x8d5, DIRECTION = 0x400, FLAGS = ARITHMETIC | DIRECTION };
static const unsigned long patterns[] = {0, 1, 4, 0x10, 0x40, 0x80, 0x400, 0x800, ARITHMETIC, FLAGS};
enum { PATTERNS = sizeof patterns / sizeof *patterns };

// One call; the result.
static long call_once(caller *call, unsigned long flags, const long *in) {
    struct registers before = {in[0], in[1], in[2], in[3], in[4], in[5], in[6], 0x0bb, 0x0bbb, -12, 0x1414, -15, 0x202 | flags, 0, 0};
    struct registers after = before;
    call(&after);
    CHECK_EQ(after.flags & FLAGS, flags);
    CHECK_EQ(after.rcx, after.next);
    CHECK_EQ(memcmp(&before.rdi, &after.rdi, offsetof(struct registers, flags) - sizeof(long)), 0);
    return after.rax;
}
// Each shape with each pattern gives this result.
#define ALWAYS(RESULT, NUMBER, ...)                                                                    \
    do {                                                                                               \
        for (int which = 0; which < SHAPES; which++)                                                   \
            for (int i = 0; i < PATTERNS; i++)                                                         \
                CHECK_EQ(call_once(shape(which, NUMBER), patterns[i], (long[7]){NUMBER, __VA_ARGS__}), RESULT); \
    } while (0)

CASE(who_one_is) {
    ALWAYS(getpid(), SYS_getpid, 1, 2, 3, 4, 5, 6);
    ALWAYS(getuid(), SYS_getuid, 1);
    ALWAYS(getpid(), SYS_gettid, -1, -1, -1, -1, -1, -1);
    ALWAYS(0, SYS_sched_yield, 0);
}

CASE(what_is_the_threads_own) {
    static unsigned long mask, old;
    static int word;
    char *page = CHECK_MAP(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    unsigned cpu, node;
    ALWAYS(0, SYS_rt_sigprocmask, SIG_BLOCK, (long)&mask, (long)&old, 8);
    ALWAYS(0, SYS_rt_sigprocmask, SIG_SETMASK, 0, 0, 8);
    ALWAYS(-EINVAL, SYS_rt_sigprocmask, 77, (long)&mask, 0, 8);
    ALWAYS(-EFAULT, SYS_rt_sigprocmask, SIG_BLOCK, 1, 0, 8);
    ALWAYS(0, SYS_getcpu, (long)&cpu, (long)&node);
    ALWAYS(-EFAULT, SYS_getcpu, 1, 0);
    ALWAYS(0, SYS_madvise, (long)page, 4096, MADV_DONTNEED);
    ALWAYS(-EINVAL, SYS_madvise, (long)page, 4096, 7777);
    ALWAYS(0, SYS_futex, (long)&word, FUTEX_WAKE, 1);
    ALWAYS(-EAGAIN, SYS_futex, (long)&word, FUTEX_WAIT, 1);
    ALWAYS(-EINVAL, SYS_futex, (long)&word + 1, FUTEX_WAIT, 0);
}

CASE(files_in_much_use) {
    static char bytes[64];
    struct iovec parts[] = {{bytes, 8}, {bytes + 32, 8}};
    int fd = make(TMP("file"), 'A', 4096);
    busy_reading(fd);
    busy_writing(fd);
    ALWAYS(16, SYS_pread64, fd, (long)bytes, 16, 32);
    CHECK_EQ(bytes[15], 'A' + 15);
    ALWAYS(16, SYS_pwrite64, fd, (long)bytes, 16, 32);
    ALWAYS(16, SYS_preadv, fd, (long)parts, 2, 64, 0);
    ALWAYS(16, SYS_pwritev, fd, (long)parts, 2, 64, 0);
    CHECK_EQ(bytes[32 + 7], 'A' + 15);
    ALWAYS(7, SYS_lseek, fd, 7, SEEK_SET);
    ALWAYS(16, SYS_read, fd, (long)bytes, 16);
    CHECK_EQ(bytes[0], 'A' + (7 + 39 * 16) % 32);
    ALWAYS(16, SYS_write, fd, (long)bytes, 16);
    ALWAYS(16, SYS_readv, fd, (long)parts, 2);
    ALWAYS(16, SYS_writev, fd, (long)parts, 2);
    ALWAYS(-EFAULT, SYS_readv, fd, 1, 2);
    ALWAYS(-EFAULT, SYS_read, fd, 1, 2);
    CHECK_OK(unlink(TMP("file")));
}

CASE(asked_of_the_kernel) {
    static char path[4096], here[4096];
    struct timespec now;
    umask(022);
    ALWAYS(022, SYS_umask, 022);
    ALWAYS(-ENOSYS, 1999, 1, 2, 3, 4, 5, 6);
    ALWAYS(0, SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, (long)&now);
    ALWAYS(-EBADF, SYS_read, 9999, (long)path, 1);
    // What is brought along and what is answered, also if the caller copies backwards.
    CHECK(getcwd(here, sizeof here) != NULL);
    ALWAYS((long)strlen(here) + 1, SYS_getcwd, (long)path, sizeof path);
    CHECK_STR(path, here);
    ALWAYS(-ENOENT, SYS_openat, AT_FDCWD, (long)"/no such directory/file", O_RDONLY);
    ALWAYS(-EFAULT, SYS_openat, AT_FDCWD, 1, O_RDONLY);
}

CASE(forked) {
    for (int which = 0; which < SHAPES; which++)
        for (int i = 0; i < PATTERNS; i++) {
            pid_t pid = call_once(shape(which, SYS_fork), patterns[i], (long[7]){SYS_fork});
            if (pid == 0) _exit(0);
            CHECK_EXIT(pid, 0);
        }
}

static volatile unsigned long seen;
static void look(int sig CHECK_USED, siginfo_t *info CHECK_USED, void *context) {
    ucontext_t *uc = context;
    seen = uc->uc_mcontext.gregs[REG_EFL];
    __asm__ volatile("xor %%eax, %%eax" ::: "eax", "cc");
}
static void handle(int sig, int flags) {
    struct sigaction action = {.sa_sigaction = look, .sa_flags = SA_SIGINFO | flags};
    CHECK_OK(sigaction(sig, &action, NULL));
}

CASE(with_a_signal) {
    handle(SIGUSR1, 0);
    for (int which = 0; which < SHAPES; which++)
        for (int i = 0; i < PATTERNS; i++) {
            struct registers r = {SYS_kill, getpid(), SIGUSR1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x202 | patterns[i], 0, 0};
            seen = -1;
            shape(which, SYS_kill)(&r);
            CHECK_EQ(r.rax, 0);
            CHECK_EQ(seen & FLAGS, patterns[i]);
            CHECK_EQ(r.flags & FLAGS, patterns[i]);
        }
}

// A signal that finds the thread in the midst of calls, of whatever kind.
CASE(in_a_storm_of_signals) {
    static char bytes[16];
    handle(SIGALRM, SA_RESTART);
    int fd = make(TMP("file"), 'A', 4096);
    busy_reading(fd);
    struct itimerval often = {{0, 500}, {0, 500}};
    CHECK_OK(setitimer(ITIMER_REAL, &often, NULL));
    for (int round = 0; round < 200; round++)
        for (int which = 0; which < SHAPES; which++)
            for (int i = 0; i < PATTERNS; i++) {
                CHECK_EQ(call_once(shape(which, SYS_getpid), patterns[i], (long[7]){SYS_getpid}), getpid());
                CHECK_EQ(call_once(shape(which, SYS_pread64), patterns[i], (long[7]){SYS_pread64, fd, (long)bytes, 4}), 4);
                CHECK_EQ(call_once(shape(which, SYS_umask), patterns[i], (long[7]){SYS_umask, 022}) & ~022, 0);
            }
    CHECK_OK(setitimer(ITIMER_REAL, &(struct itimerval){}, NULL));
    CHECK_OK(unlink(TMP("file")));
}

// A call that is broken off and made again keeps them too.
CASE(made_again) {
    int fds[2];
    static char byte;
    CHECK_OK(pipe(fds));
    handle(SIGUSR1, SA_RESTART);
    for (int which = 0; which < SHAPES; which++) {
        pid_t me = getpid(), pid = CHECK_OK(fork());
        if (pid == 0) {
            for (int i = 0; i < 3; i++) {
                usleep(10000);
                kill(me, SIGUSR1);
            }
            usleep(10000);
            CHECK_EQ(write(fds[1], "x", 1), 1);
            _exit(0);
        }
        struct registers r = {SYS_read, fds[0], (long)&byte, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0x202 | FLAGS, 0, 0};
        shape(which, SYS_read)(&r);
        CHECK_EQ(r.rax, 1);
        CHECK_EQ(r.flags & FLAGS, FLAGS);
        CHECK_EXIT(pid, 0);
    }
}

MAIN
