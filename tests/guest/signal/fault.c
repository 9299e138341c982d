// build: static
// Synchronous signals: number, code, address and machine context of each exception; blocked and ignored ones kill.
#include "sig.h"

static siginfo_t info;
static greg_t rip, err, trapno, cr2;
static sigjmp_buf back;
static void on_fault(int sig, siginfo_t *i, void *context) {
    ucontext_t *uc = context;
    info = *i;
    rip = uc->uc_mcontext.gregs[REG_RIP];
    err = uc->uc_mcontext.gregs[REG_ERR];
    trapno = uc->uc_mcontext.gregs[REG_TRAPNO];
    cr2 = uc->uc_mcontext.gregs[REG_CR2];
    siglongjmp(back, sig);
}

static void catch_all(void) {
    static const int sigs[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
    for (int i = 0; i < 5; i++) handle_info(sigs[i], on_fault, 0);
}
#define FAULTS(SIG, CODE, ...)                   \
    do {                                         \
        catch_all();                             \
        int got_ = sigsetjmp(back, 1);           \
        if (got_ == 0) {                         \
            __VA_ARGS__;                         \
            FAIL("no fault");                    \
        }                                        \
        CHECK_EQ(got_, SIG);                     \
        CHECK_EQ(info.si_signo, SIG);            \
        CHECK_EQ(info.si_code, CODE);            \
        CHECK_EQ(info.si_errno, 0);              \
    } while (0)
#define ASM(...) __asm__ volatile(__VA_ARGS__)

extern char at_load[], at_store[], at_int3[], at_ud2[], at_div[], at_hlt[];

CASE(segv_unmapped) {
    FAULTS(SIGSEGV, SEGV_MAPERR, ASM(".globl at_load\nat_load: mov (%0), %%al" ::"r"(0x123456l) : "rax"));
    CHECK_EQ((long)info.si_addr, 0x123456);
    CHECK_EQ(rip, (long)at_load);
    CHECK_EQ(trapno, 14);
    CHECK_EQ(err, 4);  // user, read, not present
    CHECK_EQ(cr2, 0x123456);
    FAULTS(SIGSEGV, SEGV_MAPERR, ASM(".globl at_store\nat_store: movb $1, (%0)" ::"r"(0x123457l)));
    CHECK_EQ((long)info.si_addr, 0x123457);
    CHECK_EQ(rip, (long)at_store);
    CHECK_EQ(err, 6);
    FAULTS(SIGSEGV, SEGV_MAPERR, ((void (*)(void))0x99999000)());
    CHECK_EQ((long)info.si_addr, 0x99999000);
    CHECK_EQ(rip, 0x99999000);
    CHECK_EQ(err & 0x14, 0x14);  // an instruction fetch
}

CASE(segv_protection) {
    char *p = CHECK_MAP(mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    (void)*(volatile char *)p;
    FAULTS(SIGSEGV, SEGV_ACCERR, *(volatile char *)(p + 3) = 1);
    CHECK_EQ((long)info.si_addr, (long)p + 3);
    CHECK_EQ(err, 7);
    FAULTS(SIGSEGV, SEGV_ACCERR, ((void (*)(void))p)());
    CHECK_EQ((long)info.si_addr, (long)p);
    CHECK_EQ(rip, (long)p);
    FAULTS(SIGSEGV, SEGV_ACCERR, *(volatile char *)on_fault = 1);
    // Across the border of a page: the address is where the access failed.
    CHECK_OK(munmap(p + 4096, 4096));
    FAULTS(SIGSEGV, SEGV_MAPERR, (void)*(volatile long *)(p + 4092));
    CHECK_EQ((long)info.si_addr, (long)p + 4096);
}

// The error code tells what the instruction wanted: 2 is a write.
#define ERROR_CODE(CODE, ...)                              \
    do {                                                   \
        FAULTS(SIGSEGV, SEGV_MAPERR, ASM(__VA_ARGS__));    \
        CHECK_EQ(err, CODE);                               \
    } while (0)

CASE(error_code_of_instructions) {
    char *none = (char *)0x123000;
    static char there[64];
    ERROR_CODE(6, "incl (%0)" ::"r"(none) : "memory");
    ERROR_CODE(6, "xchg %%eax, (%0)" ::"r"(none) : "memory", "rax");
    ERROR_CODE(6, "lock cmpxchg %%ecx, (%0)" ::"r"(none) : "memory", "rax");
    ERROR_CODE(4, "cmpl %%ecx, 8(%0)" ::"r"(none) : "memory");
    ERROR_CODE(4, "btl $1, (%0)" ::"r"(none) : "memory");
    ERROR_CODE(6, "sete (%0)" ::"r"(none) : "memory");
    ERROR_CODE(6, "rep stosb" ::"D"(none), "c"(10l), "a"(0) : "memory");
    ERROR_CODE(4, "rep movsb" ::"S"(none), "D"(there), "c"(10l) : "memory");
    ERROR_CODE(6, "rep movsb" ::"S"(there), "D"(none), "c"(10l) : "memory");
    ERROR_CODE(6, "movups %%xmm0, (%0,%1,4)" ::"r"(none), "r"(3l) : "memory");
    ERROR_CODE(4, "movups (%0,%1,4), %%xmm0" ::"r"(none), "r"(3l) : "memory");
    ERROR_CODE(6, "fxsave (%0)" ::"r"(none) : "memory");
    ERROR_CODE(5, "movb (%0), %%al" ::"r"(0xffff888000000000ul) : "rax");
    FAULTS(SIGSEGV, SI_KERNEL, ASM("int $0x40"));
    CHECK_EQ(err, 0x202);  // the interrupt's place in the table
    FAULTS(SIGSEGV, SI_KERNEL, ASM("mov %0, %%ds" ::"r"(0x1230)));
    CHECK_EQ(err, 0x1230);  // the selector
    CHECK_EQ((unsigned long)cr2, 0xffff888000000000ul);  // of the last page fault
}

CASE(segv_kernel_addresses) {
    FAULTS(SIGSEGV, SEGV_MAPERR, (void)*(volatile char *)0xffff888000000000ul);
    CHECK_EQ((unsigned long)info.si_addr, 0xffff888000000000ul);
    // Not canonical: a general protection fault, without an address.
    FAULTS(SIGSEGV, SI_KERNEL, (void)*(volatile char *)0x1234567800000000ul);
    CHECK_EQ((long)info.si_addr, 0);
    CHECK_EQ(trapno, 13);
}

CASE(privileged_instructions) {
    FAULTS(SIGSEGV, SI_KERNEL, ASM(".globl at_hlt\nat_hlt: hlt"));
    CHECK_EQ(rip, (long)at_hlt);
    CHECK_EQ(trapno, 13);
    CHECK_EQ((long)info.si_addr, 0);
    FAULTS(SIGSEGV, SI_KERNEL, ASM("cli"));
    FAULTS(SIGSEGV, SI_KERNEL, ASM("in $0x80, %%al" ::: "rax"));
    FAULTS(SIGSEGV, SI_KERNEL, ASM("mov %%cr0, %%rax" ::: "rax"));
    FAULTS(SIGSEGV, SI_KERNEL, ASM("mov $0x18, %%ecx; rdmsr" ::: "rax", "rcx", "rdx"));
    FAULTS(SIGSEGV, SI_KERNEL, ASM("int $0x40"));
    FAULTS(SIGSEGV, SI_KERNEL, ASM("mov %0, %%ds" ::"r"(0x1230)));
}

CASE(misaligned_sse) {
    char *p = aligned_alloc(64, 64);
    FAULTS(SIGSEGV, SI_KERNEL, ASM("movaps %%xmm0, 1(%0)" ::"r"(p)));
}

CASE(divide_errors) {
    FAULTS(SIGFPE, FPE_INTDIV, ASM(".globl at_div\nxor %%edx, %%edx; xor %%ecx, %%ecx; mov $5, %%eax\nat_div: div %%ecx" ::: "rax", "rcx", "rdx"));
    CHECK_EQ(rip, (long)at_div);
    CHECK_EQ((long)info.si_addr, (long)at_div);
    CHECK_EQ(trapno, 0);
    // INT_MIN / -1 overflows: the same exception.
    FAULTS(SIGFPE, FPE_INTDIV, ASM("mov $0x80000000, %%eax; cdq; mov $-1, %%ecx; idiv %%ecx" ::: "rax", "rcx", "rdx"));
}

CASE(sse_exceptions) {
    static const struct { unsigned mask; int code; const char *what; } t[] = {
        {0x0200, FPE_FLTDIV, "1/0"}, {0x0080, FPE_FLTINV, "0/0"}, {0x0400, FPE_FLTOVF, "big"}, {0x1000, FPE_FLTRES, "1/3"}};
    volatile float a[] = {1, 0, 3e38f, 1}, b[] = {0, 0, 1e-30f, 3};
    for (int i = 0; i < 4; i++) {
        volatile float x = a[i], y = b[i], z;
        FAULTS(SIGFPE, t[i].code, __builtin_ia32_ldmxcsr(0x1f80 & ~t[i].mask); z = x / y; (void)z);
        CHECK_EQ(trapno, 19);
        CHECK_EQ((long)info.si_addr, rip);
        __builtin_ia32_ldmxcsr(0x1f80);
    }
}

CASE(x87_exception) {
    unsigned short cw = 0x037b;  // zero divide unmasked
    FAULTS(SIGFPE, FPE_FLTDIV, ASM("fninit; fldcw %0; fld1; fldz; fdivrp; fwait" ::"m"(cw)));
    CHECK_EQ(trapno, 16);
    ASM("fninit");
}

CASE(illegal_instruction) {
    FAULTS(SIGILL, ILL_ILLOPN, ASM(".globl at_ud2\nat_ud2: ud2"));
    CHECK_EQ(rip, (long)at_ud2);
    CHECK_EQ((long)info.si_addr, (long)at_ud2);
    CHECK_EQ(trapno, 6);
    FAULTS(SIGILL, ILL_ILLOPN, ASM(".byte 0x06"));  // push %es: not in 64-bit mode
}

CASE(breakpoint) {
    FAULTS(SIGTRAP, SI_KERNEL, ASM(".globl at_int3\nint3\nat_int3: nop"));
    CHECK_EQ(rip, (long)at_int3);  // after the instruction
    CHECK_EQ((long)info.si_addr, 0);
    CHECK_EQ(trapno, 3);
    FAULTS(SIGTRAP, TRAP_BRKPT, ASM("int1"));
}

static volatile int steps;
static void count_step(int sig CHECK_USED, siginfo_t *i, void *context) {
    ucontext_t *uc = context;
    steps++;
    info = *i;
    if (steps == 6) uc->uc_mcontext.gregs[REG_EFL] &= ~0x100;
}

CASE(single_step_flag) {
    handle_info(SIGTRAP, count_step, 0);
    ASM("lea -128(%%rsp), %%rsp; pushfq; orl $0x100, (%%rsp); popfq; nop; nop; nop; nop; nop; nop; nop; nop; lea 128(%%rsp), %%rsp" ::: "memory", "cc");
    CHECK_EQ(steps, 6);
    CHECK_EQ(info.si_code, TRAP_TRACE);
}

CASE(sigbus_code) {
    int fd = CHECK_OK(open(TMP("b"), O_RDWR | O_CREAT, 0600));
    char *p = CHECK_MAP(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    FAULTS(SIGBUS, BUS_ADRERR, *(volatile char *)(p + 9) = 1);
    CHECK_EQ((long)info.si_addr, (long)p + 9);
    CHECK_EQ(trapno, 14);
}

CASE(alignment_check_flag) {
    static char buffer[16];
    FAULTS(SIGBUS, BUS_ADRALN,
           ASM("lea -128(%%rsp), %%rsp; pushfq; orl $0x40000, (%%rsp); popfq; lea 128(%%rsp), %%rsp; mov 1(%0), %%eax" ::"r"(buffer) : "rax", "memory", "cc"));
    CHECK_EQ(trapno, 17);
    ASM("lea -128(%%rsp), %%rsp; pushfq; andl $~0x40000, (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::: "memory", "cc");
}

CASE(repair_and_go_on) {
    // The handler changes registers and the instruction pointer.
    extern void skip_ud2(int, siginfo_t *, void *);
    handle_info(SIGILL, skip_ud2, 0);
    long rax = 1, rbx = 2;
    ASM("ud2" : "+a"(rax), "+b"(rbx));
    CHECK_EQ(rax, 0x1111);
    CHECK_EQ(rbx, 0x2222);
}
void skip_ud2(int sig CHECK_USED, siginfo_t *i CHECK_USED, void *context) {
    ucontext_t *uc = context;
    uc->uc_mcontext.gregs[REG_RIP] += 2;
    uc->uc_mcontext.gregs[REG_RAX] = 0x1111;
    uc->uc_mcontext.gregs[REG_RBX] = 0x2222;
}

// How a fault ends a process that cannot take the signal.
static void dies(int prepare, int sig, void (*fault)(void)) {
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        handle(sig, count_hit, 0);
        if (prepare == 0) block(SET(SIGSEGV, SIGILL, SIGFPE, SIGTRAP));
        if (prepare == 1) signal(sig, SIG_IGN);
        fault();
        _exit(0);
    }
    CHECK_KILLED(p, sig);
}
static void do_segv(void) { *(volatile int *)16 = 1; }
static void do_ill(void) { ASM("ud2"); }
static void do_div(void) { ASM("xor %%edx, %%edx; xor %%ecx, %%ecx; div %%ecx" ::: "rax", "rcx", "rdx"); }
static void do_trap(void) { ASM("int3"); }

CASE(blocked_faults_kill) {
    dies(0, SIGSEGV, do_segv);
    dies(0, SIGILL, do_ill);
    dies(0, SIGFPE, do_div);
    dies(0, SIGTRAP, do_trap);
}

CASE(ignored_faults_kill) {
    dies(1, SIGSEGV, do_segv);
    dies(1, SIGILL, do_ill);
    dies(1, SIGFPE, do_div);
    dies(1, SIGTRAP, do_trap);
}

static void fault_again(int sig CHECK_USED) { do_segv(); }

CASE(a_fault_in_its_own_handler_kills) {
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        handle(SIGSEGV, fault_again, 0);
        do_segv();
    }
    CHECK_KILLED(p, SIGSEGV);
}

CASE(a_sent_segv_is_only_a_signal) {
    handle_info(SIGSEGV, keep_info, 0);
    CHECK_OK(kill(getpid(), SIGSEGV));
    CHECK_EQ(hits, 1);
    CHECK_EQ(last.si_code, SI_USER);
    block(SET(SIGSEGV));
    CHECK_OK(kill(getpid(), SIGSEGV));
    CHECK_EQ(pending(SIGSEGV), 1);  // blocked, and nothing dies
}

// The number from elsewhere: no `mov` to eax before the call. What follows faults, and tells its own address.
__asm__(".text\n.balign 64\n.skip 64, 0x90\n"
        "divide_behind_call:\n\tmov %ecx, %eax\n\txor %r8d, %r8d\n\tsyscall\n\tdiv %r8\n\tnop\n\tret\n"
        ".skip 64, 0x90\n"
        "load_behind_call:\n\tmov %ecx, %eax\n\tmov $16, %r8d\n\tsyscall\n\tmov (%r8), %rax\n\tnop\n\tret\n");
extern long divide_behind_call(long, long, long, long), load_behind_call(long, long, long, long);

CASE(faults_right_behind_a_call) {
    catch_all();
    if (sigsetjmp(back, 1) == 0) divide_behind_call(0, 0, 0, SYS_getpid);
    CHECK_EQ(info.si_signo, SIGFPE);
    CHECK_EQ(info.si_code, FPE_INTDIV);
    CHECK_EQ(rip - (long)divide_behind_call, 7);
    CHECK_EQ((long)info.si_addr, rip);
    if (sigsetjmp(back, 1) == 0) load_behind_call(0, 0, 0, SYS_getpid);
    CHECK_EQ(info.si_signo, SIGSEGV);
    CHECK_EQ(rip - (long)load_behind_call, 10);
    CHECK_EQ((long)info.si_addr, 16);
}

CASE(thousand_faults) {
    for (int i = 0; i < 1000; i++) {
        FAULTS(SIGSEGV, SEGV_MAPERR, *(volatile int *)(0x1000l + i) = 1);
        CHECK_EQ((long)info.si_addr, 0x1000 + i);
    }
}

MAIN
