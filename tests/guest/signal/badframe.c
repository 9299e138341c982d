// build: static
// sigreturn with frames that lie: SIGSEGV, never a crash of anything else; and the odd ways in that must work.
#include "sig.h"

static volatile int what;
static int reached;

static void spoil(int sig CHECK_USED, siginfo_t *info CHECK_USED, void *context) {
    ucontext_t *uc = context;
    greg_t *g = uc->uc_mcontext.gregs;
    char *fp = (char *)uc->uc_mcontext.fpregs;
    unsigned *sw = (unsigned *)(fp + 464);
    switch (what) {
        case 0: g[REG_RIP] = 0x1234567800000000; break;         // not canonical
        case 1: g[REG_RIP] = (greg_t)0xffff888000001000; break; // the kernel's half
        case 2: g[REG_RIP] = 16; break;
        case 3: g[REG_RSP] = 16; break;
        case 4: uc->uc_mcontext.fpregs = (void *)16; break;
        case 5: uc->uc_mcontext.fpregs = (void *)0xffff888000000000; break;
        case 6: *(unsigned *)(fp + 24) |= 0x80000000; break;    // reserved MXCSR bits
        case 7: memset(fp + 512, 0xff, 64); break;              // xstate header
        case 8: sw[1] = 0xffffffff; break;                      // sizes
        case 9: sw[4] = 0x7fffffff; break;
        case 10: *(unsigned *)(fp + sw[1] - 4) = 0; break;      // the closing magic
        case 11: g[REG_CSGSFS] = (g[REG_CSGSFS] & ~0xffffl) | 0x10; break;  // the kernel's code segment
        case 12: g[REG_EFL] |= 0x3000 | 1 << 17; break;         // IOPL and VM: not taken
        case 13: sw[2] = 0xffffffff; sw[3] = 0xffffffff; break; // features that are not there
        case 14: sw[0] = 0; break;                              // no extended state: the legacy part only
        case 15: memset(fp, 0xff, 24); break;                   // odd x87 state
        case 16: g[REG_RIP] = (greg_t)0x7ffffffff000; break;    // the last page of user space, never mapped
        case 17: uc->uc_flags = ~0ul; break;
        case 18: uc->uc_link = (void *)16; break;
        case 19: memset(&uc->uc_stack, 0xff, sizeof uc->uc_stack); break;
    }
}

// The wait status of a child that returns through such a frame.
static int outcome(int kind) {
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        what = kind;
        handle_info(SIGUSR1, spoil, 0);
        kill(getpid(), SIGUSR1);
        _exit(0);
    }
    int status;
    CHECK_EQ(waitpid(p, &status, 0), p);
    return status & ~0x80;
}

CASE(bad_instruction_pointers) {
    CHECK_EQ(outcome(0), SIGSEGV);
    CHECK_EQ(outcome(1), SIGSEGV);
    CHECK_EQ(outcome(2), SIGSEGV);
    CHECK_EQ(outcome(16), SIGSEGV);
}
CASE(bad_stack_pointer) { CHECK_EQ(outcome(3), SIGSEGV); }
CASE(bad_float_pointer) {
    CHECK_EQ(outcome(4), SIGSEGV);
    CHECK_EQ(outcome(5), SIGSEGV);
}
CASE(bad_segments) { CHECK_EQ(outcome(11), SIGSEGV); }
CASE(bad_mxcsr) { CHECK_EQ(outcome(6), SIGSEGV); }
CASE(bad_xstate_header) {
    if (!__builtin_cpu_supports("avx")) SKIP("no extended state");
    CHECK_EQ(outcome(7), SIGSEGV);
}
CASE(bad_software_bytes_fall_back_to_the_legacy_area) {
    for (int i = 8; i <= 10; i++) CHECK_EQ(outcome(i), 0);
    CHECK_EQ(outcome(14), 0);
    CHECK_EQ(outcome(13), 0);
}
CASE(harmless_lies) {
    CHECK_EQ(outcome(12), 0);
    CHECK_EQ(outcome(15), 0);
    CHECK_EQ(outcome(17), 0);
    CHECK_EQ(outcome(18), 0);
    CHECK_EQ(outcome(19), 0);
}

static void segv(int sig CHECK_USED, siginfo_t *info, void *c CHECK_USED) {
    _exit(info->si_code == SI_KERNEL && info->si_addr == NULL ? 31 : 32);
}

CASE(a_bad_frame_is_a_signal_that_can_be_handled) {
    static char alt[65536];
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        stack_t ss = {.ss_sp = alt, .ss_size = sizeof alt};
        sigaltstack(&ss, NULL);
        handle_info(SIGSEGV, segv, SA_ONSTACK);
        __asm__ volatile("mov $0x1000, %%rsp; mov $15, %%eax; syscall" ::: "memory");
    }
    CHECK_EXIT(p, 31);
}

CASE(sigreturn_without_a_frame_kills) {
    static const unsigned long sp[] = {8, 0x1000, 0xffff888000000000, 0x1234567800000000, -16ul, 0x7fffffffffff8};
    for (int i = 0; i < 6; i++) {
        pid_t p = CHECK_OK(fork());
        if (p == 0) __asm__ volatile("mov %0, %%rsp; mov $15, %%eax; syscall; hlt" ::"r"(sp[i]) : "memory");
        CHECK_KILLED(p, SIGSEGV);
    }
}

CASE(handler_that_does_not_exist) {
    for (int i = 0; i < 2; i++) {
        pid_t p = CHECK_OK(fork());
        if (p == 0) {
            handle(SIGUSR1, (void (*)(int))(i ? 0x1234567800000000 : 0x10), 0);
            kill(getpid(), SIGUSR1);
            _exit(0);
        }
        CHECK_KILLED(p, SIGSEGV);
    }
}

CASE(no_restorer) {
    // x86-64 has no other way back: without SA_RESTORER the signal kills.
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        unsigned long act[4] = {(unsigned long)count_hit, 0, 0, 0};
        CHECK_OK(syscall(SYS_rt_sigaction, SIGUSR1, act, NULL, 8));
        kill(getpid(), SIGUSR1);
        _exit(0);
    }
    CHECK_KILLED(p, SIGSEGV);
}

CASE(stack_pointer_of_nowhere_at_delivery) {
    handle(SIGUSR1, count_hit, 0);
    pid_t me = getpid(), p = CHECK_OK(fork());
    (void)me;
    if (p == 0) {
        long pid = getpid();
        __asm__ volatile("mov $0x4000, %%rsp; mov $62, %%eax; mov %0, %%rdi; mov $10, %%esi; syscall; hlt" ::"r"(pid) : "memory");
    }
    CHECK_KILLED(p, SIGSEGV);
}

static sigjmp_buf back;
static void jump_out(int sig) { siglongjmp(back, sig); }

CASE(siglongjmp_out_of_handlers) {
    handle(SIGUSR1, jump_out, 0);
    for (volatile int i = 0; i < 1000; i++) {
        int got = sigsetjmp(back, 1);
        if (got == 0) {
            kill(getpid(), SIGUSR1);
            FAIL("no jump");
        }
        CHECK_EQ(got, SIGUSR1);
        CHECK_EQ(blocked(SIGUSR1), 0);
    }
    // Without the mask saved, the signal stays blocked.
    if (sigsetjmp(back, 0) == 0) kill(getpid(), SIGUSR1);
    CHECK_EQ(blocked(SIGUSR1), 1);
}

CASE(siglongjmp_out_of_a_blocking_call) {
    int fds[2];
    char c;
    CHECK_OK(pipe(fds));
    handle(SIGUSR1, jump_out, SA_RESTART);
    for (volatile int i = 0; i < 5; i++) {
        pid_t p = later_asleep(10, SIGUSR1);
        if (sigsetjmp(back, 1) == 0) {
            read(fds[0], &c, 1);
            FAIL("read returned");
        }
        CHECK_EXIT(p, 0);
    }
    CHECK_EQ(write(fds[1], "x", 1), 1);
    CHECK_EQ(read(fds[0], &c, 1), 1);
}

static ucontext_t main_context, other_context;
static void coroutine(void) {
    for (int i = 0; i < 3; i++) {
        reached++;
        swapcontext(&other_context, &main_context);
    }
}

CASE(ucontext_switches) {
    static char stack[65536];
    CHECK_OK(getcontext(&other_context));
    other_context.uc_stack.ss_sp = stack;
    other_context.uc_stack.ss_size = sizeof stack;
    other_context.uc_link = &main_context;
    makecontext(&other_context, coroutine, 0);
    for (int i = 1; i <= 3; i++) {
        CHECK_OK(swapcontext(&main_context, &other_context));
        CHECK_EQ(reached, i);
    }
}

static int nest_depth;
static void nest(int sig) {
    volatile char pad[100];
    memset((char *)pad, sig, sizeof pad);
    if (++nest_depth < 200) kill(getpid(), SIGRTMIN + nest_depth % 20);
    for (int i = 0; i < 100; i++)
        if (pad[i] != (char)sig) _exit(77);
}

CASE(deeply_nested_handlers) {
    for (int i = 0; i < 20; i++) handle(SIGRTMIN + i, nest, SA_NODEFER);
    kill(getpid(), SIGRTMIN);
    CHECK_EQ(nest_depth, 200);
}

MAIN
