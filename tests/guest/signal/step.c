// build: static
// A program that steps itself: with TF set, SIGTRAP comes behind each instruction, with TRAP_TRACE and its address; behind a
// `syscall` only after the instruction that follows it, whatever the call did. Compared are offsets from a sequence's start.
#include "sig.h"
#include <elf.h>
#include <sched.h>

extern char __executable_start, etext;
static unsigned long steps[4096];          // where each trap was
static volatile int count, clear_at = -1;  // clear_at: the trap whose handler clears TF
static volatile unsigned long seen_flags;
static volatile int other_after = -1;  // traps before the other signal
static volatile unsigned long other_at;

static void on_step(int sig CHECK_USED, siginfo_t *info, void *context) {
    greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
    unsigned long now;
    __asm__ volatile("pushfq; pop %0" : "=r"(now));
    seen_flags |= now;
    CHECK_EQ(info->si_code, TRAP_TRACE);
    CHECK_EQ((unsigned long)info->si_addr, g[REG_RIP]);
    CHECK_EQ(g[REG_TRAPNO], 1);
    if (count < 4096) steps[count++] = g[REG_RIP];
    if (count == clear_at) g[REG_EFL] &= ~0x100;
}
static void on_other(int sig CHECK_USED, siginfo_t *info CHECK_USED, void *context) {
    ucontext_t *uc = context;
    CHECK_EQ(uc->uc_mcontext.gregs[REG_EFL] & 0x100, 0x100);
    other_at = uc->uc_mcontext.gregs[REG_RIP];
    other_after = count;
}
static void set_trap_flag(int sig CHECK_USED, siginfo_t *info CHECK_USED, void *context) {
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] |= 0x100;
}

// Sequences: rdi to rdx are the call's arguments, rcx its number where it is loaded from there. The nops before let a
// disassembler that begins anywhere find its way.
#define BEGIN(NAME) ".balign 64\n.skip 64, 0x90\n.globl " NAME "\n" NAME ":\n\t"
#define TF_ON "pushfq\n\torl $0x100, (%rsp)\n\tpopfq\n\t"               // 1 + 7 + 1 bytes
#define TF_OFF "pushfq\n\tandl $0xfffffeff, (%rsp)\n\tpopfq\n\tret\n"  // likewise
#define NUMBER_BEFORE(NAME, NR) BEGIN(NAME) TF_ON "nop\n\tmov $" NR ", %eax\n\tsyscall\n\tnop\n\tnop\n\t" TF_OFF
__asm__(".text\n"
        NUMBER_BEFORE("step_getpid", "39")
        NUMBER_BEFORE("step_pause", "34")
        NUMBER_BEFORE("step_nanosleep", "35")
        NUMBER_BEFORE("step_fork", "57")
        NUMBER_BEFORE("step_kill", "62")
        NUMBER_BEFORE("step_read", "0")
        NUMBER_BEFORE("step_execve", "59")
        NUMBER_BEFORE("step_unknown", "1999")
        BEGIN("step_long_mov") TF_ON "mov $39, %rax\n\tsyscall\n\tnop\n\tnop\n\t" TF_OFF
        BEGIN("step_twice") TF_ON "mov $39, %eax\n\tsyscall\n\tmov $39, %eax\n\tsyscall\n\tnop\n\t" TF_OFF
        // The number from elsewhere, and a long instruction behind the call.
        BEGIN("step_general") TF_ON "mov %ecx, %eax\n\tsyscall\n\tcmp $-4095, %rax\n\tnop\n\tnop\n\t" TF_OFF
        BEGIN("step_short") TF_ON "mov %ecx, %eax\n\tsyscall\n\tnop\n\tnop\n\t" TF_OFF
        BEGIN("step_cleared_behind") TF_ON "pushq $0x202\n\tmov $39, %eax\n\tsyscall\n\tpopfq\n\tnop\n\tnop\n\tret\n"
        BEGIN("step_string") TF_ON "mov $3, %ecx\n\trep stosb\n\tnop\n\t" TF_OFF
        BEGIN("step_vfork") TF_ON "mov $0x4111, %edi\n\txor %esi, %esi\n\tmov $56, %eax\n\tsyscall\n\ttest %eax, %eax\n\t"
        "jnz 1f\n\txor %edi, %edi\n\tmov $60, %eax\n\tsyscall\n1:\tnop\n\t" TF_OFF
        // Not by itself: a handler sets the flag.
        BEGIN("step_by_handler") "nop\n\tmov $62, %eax\n\tsyscall\n\tnop\n\tnop\n\tnop\n\tnop\n\tret\n"
        BEGIN("step_by_handler_general") "nop\n\tmov %ecx, %eax\n\tsyscall\n\tcmp $-4095, %rax\n\tnop\n\tnop\n\tnop\n\tret\n");
#define SEQUENCE(NAME) extern long NAME(long, const volatile void *, long, long)
SEQUENCE(step_getpid);
SEQUENCE(step_pause);
SEQUENCE(step_nanosleep);
SEQUENCE(step_fork);
SEQUENCE(step_kill);
SEQUENCE(step_read);
SEQUENCE(step_execve);
SEQUENCE(step_unknown);
SEQUENCE(step_long_mov);
SEQUENCE(step_twice);
SEQUENCE(step_general);
SEQUENCE(step_short);
SEQUENCE(step_cleared_behind);
SEQUENCE(step_string);
SEQUENCE(step_vfork);
SEQUENCE(step_by_handler);
SEQUENCE(step_by_handler_general);

static void begin(void) {
    handle_info(SIGTRAP, on_step, 0);
    count = 0;
}
// Whether the traps were at these offsets.
#define STEPS(FROM, ...) same((unsigned long)(FROM), (int[]){__VA_ARGS__, -1}, __LINE__)
static void same(unsigned long from, const int *want, int line) {
    static char text[400];
    int at = 0, length = 0;
    for (int i = 0; i < count && length < 300; i++)
        length += snprintf(text + length, sizeof text - length, " %ld", (long)(steps[i] - from));
    while (want[at] != -1 && at < count && steps[at] - from == (unsigned long)want[at]) at++;
    if (want[at] != -1 || at != count) FAIL("line %d: stepped at%s", line, text);
}
// Of those that load the number by a `mov` of 5 bytes behind a nop.
#define BEFORE_STEPS 10, 15, 18, 19, 20, 27, 28

CASE(over_a_quick_call) {
    begin();
    CHECK_EQ(step_getpid(0, 0, 0, 0), getpid());
    STEPS(step_getpid, BEFORE_STEPS);
    CHECK_EQ(seen_flags & 0x100, 0);  // the handler itself is not stepped
    begin();
    CHECK_EQ(step_unknown(0, 0, 0, 0), -ENOSYS);
    STEPS(step_unknown, BEFORE_STEPS);
    begin();
    CHECK_EQ(step_read(-1, 0, 0, 0), -EBADF);
    STEPS(step_read, BEFORE_STEPS);
}

CASE(over_other_shapes_of_calls) {
    begin();
    CHECK_EQ(step_long_mov(0, 0, 0, 0), getpid());
    STEPS(step_long_mov, 16, 19, 20, 21, 28, 29);
    begin();
    CHECK_EQ(step_general(0, 0, 0, SYS_getpid), getpid());
    STEPS(step_general, 11, 19, 20, 21, 22, 29, 30);
    begin();
    CHECK_EQ(step_short(0, 0, 0, SYS_getpid), getpid());
    STEPS(step_short, 11, 14, 15, 16, 23, 24);
    begin();
    CHECK_EQ(step_twice(0, 0, 0, 0), getpid());
    STEPS(step_twice, 14, 21, 24, 25, 32, 33);
}

CASE(cleared_right_behind_a_call) {
    begin();
    CHECK_EQ(step_cleared_behind(0, 0, 0, 0), getpid());
    STEPS(step_cleared_behind, 14, 19, 22);
}

CASE(string_instructions_step_each_time) {
    char bytes[4] = {0};
    begin();
    step_string((long)bytes, 0, 0, 0);
    STEPS(step_string, 14, 14, 14, 16, 17, 18, 25, 26);
}

CASE(over_a_call_that_a_signal_interrupts) {
    struct timespec t = {10, 0};
    for (int restart = 0; restart < 2; restart++) {
        handle_info(SIGUSR1, on_other, restart ? SA_RESTART : 0);
        begin();
        pid_t p = later_asleep(20, SIGUSR1);
        CHECK_EQ(step_pause(0, 0, 0, 0), -EINTR);
        STEPS(step_pause, BEFORE_STEPS);
        CHECK_EQ(other_at - (unsigned long)step_pause, 17);
        CHECK_EQ(other_after, 2);
        CHECK_EXIT(p, 0);
        begin();
        p = later_asleep(20, SIGUSR1);
        CHECK_EQ(step_nanosleep((long)&t, 0, 0, 0), -EINTR);
        STEPS(step_nanosleep, BEFORE_STEPS);
        CHECK_EQ(other_after, 2);
        CHECK_EXIT(p, 0);
        begin();
        p = later_asleep(20, SIGUSR1);
        CHECK_EQ(step_general((long)&t, 0, 0, SYS_nanosleep), -EINTR);
        STEPS(step_general, 11, 19, 20, 21, 22, 29, 30);
        CHECK_EQ(other_at - (unsigned long)step_general, 13);
        CHECK_EXIT(p, 0);
    }
}

// The call is made again: its own address is where the handler was called and goes back to.
CASE(over_a_call_that_is_restarted) {
    int fds[2];
    char byte[2];
    pid_t me = getpid();
    for (int general = 0; general < 2; general++) {
        handle_info(SIGUSR1, on_other, SA_RESTART);
        CHECK_OK(pipe(fds));
        begin();
        pid_t p = CHECK_OK(fork());
        if (p == 0) {
            wait_asleep(me);
            kill(me, SIGUSR1);
            sleep_ms(50);
            _exit(write(fds[1], "x", 1) != 1);
        }
        long n = general ? step_general(fds[0], byte, 1, SYS_read) : step_read(fds[0], byte, 1, 0);
        CHECK_EQ(n, 1);
        if (general) STEPS(step_general, 11, 19, 20, 21, 22, 29, 30);
        else STEPS(step_read, BEFORE_STEPS);
        CHECK_EQ(other_at - (unsigned long)(general ? step_general : step_read), general ? 11 : 15);
        CHECK_EXIT(p, 0);
    }
}

CASE(over_a_signal_to_oneself) {
    handle_info(SIGUSR1, on_other, 0);
    begin();
    CHECK_EQ(step_kill(getpid(), (void *)SIGUSR1, 0, 0), 0);
    STEPS(step_kill, BEFORE_STEPS);
    CHECK_EQ(other_at - (unsigned long)step_kill, 17);
    CHECK_EQ(other_after, 2);
}

CASE(a_forked_child_steps_on) {
    begin();
    pid_t p = step_fork(0, 0, 0, 0);
    if (p == 0) {
        STEPS(step_fork, BEFORE_STEPS);
        _exit(7);
    }
    STEPS(step_fork, BEFORE_STEPS);
    CHECK_EXIT(p, 7);
    begin();
    p = step_general(0, 0, 0, SYS_fork);
    if (p == 0) {
        STEPS(step_general, 11, 19, 20, 21, 22, 29, 30);
        _exit(7);
    }
    STEPS(step_general, 11, 19, 20, 21, 22, 29, 30);
    CHECK_EXIT(p, 7);
}

CASE(a_child_that_shares_memory_steps_on) {
    begin();
    pid_t p = step_vfork(0, 0, 0, 0);  // CLONE_VM | CLONE_VFORK | SIGCHLD: the child's steps come first
    STEPS(step_vfork, 14, 16, 21, 25, 27, 29, 34, 25, 36, 37, 38, 45, 46);
    CHECK_EXIT(p, 0);
}

HELPER(tell_trap_flag) {
    unsigned long flags;
    __asm__ volatile("nop; nop; pushfq; pop %0" : "=r"(flags));
    exit(flags & 0x100 ? 1 : 42);
}
CASE(exec_ends_it) {
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        static const char *argv[] = {0, "@tell_trap_flag", 0}, *envp[] = {0};
        argv[0] = check_self;
        begin();
        step_execve((long)check_self, argv, (long)envp, 0);
        _exit(1);
    }
    CHECK_EXIT(p, 42);
}

CASE(a_handler_sets_and_clears_the_flag) {
    handle_info(SIGUSR1, set_trap_flag, 0);
    begin();
    clear_at = 3;
    CHECK_EQ(step_by_handler(getpid(), (void *)SIGUSR1, 0, 0), 0);
    STEPS(step_by_handler, 9, 10, 11);
    begin();
    CHECK_EQ(step_by_handler_general(getpid(), (void *)SIGUSR1, 0, SYS_kill), 0);
    STEPS(step_by_handler_general, 11, 12, 13);
}

// Whether the program's file has a `syscall` there.
static int is_call(int file, unsigned long at) {
    unsigned char bytes[2];
    Elf64_Ehdr elf;
    CHECK_EQ(pread(file, &elf, sizeof elf, 0), sizeof elf);
    for (int i = 0; i < elf.e_phnum; i++) {
        Elf64_Phdr p;
        CHECK_EQ(pread(file, &p, sizeof p, elf.e_phoff + i * sizeof p), sizeof p);
        if (p.p_type != PT_LOAD || at < p.p_vaddr || at >= p.p_vaddr + p.p_filesz) continue;
        CHECK_EQ(pread(file, bytes, 2, at - p.p_vaddr + p.p_offset), 2);
        return bytes[0] == 0x0f && bytes[1] == 0x05;
    }
    return 0;
}

// Through calls of the library: no step anywhere but in this program, none twice, and each call's is there.
CASE(through_the_library) {
    int fds[2];
    char byte = 0;
    CHECK_OK(pipe(fds));
    begin();
    __asm__ volatile("pushfq; orl $0x100, (%%rsp); popfq" ::: "memory", "cc");
    pid_t pid = getpid();
    uid_t uid = getuid();
    ssize_t out = write(fds[1], "y", 1), in = read(fds[0], &byte, 1);
    int yield = sched_yield();
    __asm__ volatile("pushfq; andl $0xfffffeff, (%%rsp); popfq" ::: "memory", "cc");
    CHECK_EQ(pid, getpid());
    CHECK_EQ(uid, getuid());
    CHECK_EQ(out, 1);
    CHECK_EQ(in, 1);
    CHECK_EQ(byte, 'y');
    CHECK_EQ(yield, 0);
    CHECK_GT(count, 30);
    CHECK_LT(count, 4096);
    int calls = 0, file = CHECK_OK(open(check_self, O_RDONLY));
    for (int i = 0; i < count; i++) {
        CHECK_GE(steps[i], (unsigned long)&__executable_start);
        CHECK_LT(steps[i], (unsigned long)&etext);
        if (i > 0) CHECK_NE(steps[i], steps[i - 1]);
        // At a call: the next is behind what follows it.
        if (i + 1 < count && is_call(file, steps[i])) {
            CHECK_NE(steps[i + 1], steps[i] + 2);
            calls++;
        }
    }
    CHECK_EQ(calls, 5);
}
MAIN
