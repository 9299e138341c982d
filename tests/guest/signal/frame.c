// build: static
// The signal frame: registers, flags, the red zone and all floating-point state survive; what handlers change is taken over;
// broken frames are refused.
#include "sig.h"
#include <cpuid.h>

#define KILL_SELF "mov $39, %%eax\n\tsyscall\n\tmov %%eax, %%edi\n\tmov $10, %%esi\n\tmov $62, %%eax\n\tsyscall\n\t"
#define ALL_MASKED_HANDLER(NAME) static void NAME(int sig CHECK_USED, siginfo_t *info CHECK_USED, void *context CHECK_USED)

ALL_MASKED_HANDLER(clobber_general) {
    hits++;
    __asm__ volatile("mov $-1, %%rax; mov %%rax, %%rbx; mov %%rax, %%rcx; mov %%rax, %%rdx; mov %%rax, %%rsi; mov %%rax, %%rdi;"
                     "mov %%rax, %%r8; mov %%rax, %%r9; mov %%rax, %%r10; mov %%rax, %%r11; mov %%rax, %%r12; mov %%rax, %%r13;"
                     "mov %%rax, %%r14; mov %%rax, %%r15; stc" ::: "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10",
                     "r11", "r12", "r13", "r14", "r15", "cc");
}

CASE(general_registers_and_red_zone) {
    handle_info(SIGUSR1, clobber_general, 0);
    // An asynchronous signal: a spinning loop with every register loaded, until the child's signal has come.
    long in[16], out[16];
    for (int i = 0; i < 16; i++) in[i] = 0x0111111111111111 * i + 1;
    for (int round = 0; round < 3; round++) {
        memset(out, 0, sizeof out);
        hits = 0;
        pid_t p = later(30, SIGUSR1);
        __asm__ volatile(
            "push %%rbp\n\tpush %%rbx\n\tpush %1\n\tmov %0, %%rax\n\t"
            "mov 8(%%rax), %%rbx; mov 16(%%rax), %%rcx; mov 24(%%rax), %%rdx; mov 32(%%rax), %%rsi; mov 40(%%rax), %%rdi;"
            "mov 48(%%rax), %%rbp; mov 56(%%rax), %%r8; mov 64(%%rax), %%r9; mov 72(%%rax), %%r10; mov 80(%%rax), %%r11;"
            "mov 88(%%rax), %%r12; mov 96(%%rax), %%r13; mov 104(%%rax), %%r14; mov 112(%%rax), %%r15;"
            "movq $0x5eed, -8(%%rsp); movq $0x7eed, -120(%%rsp)\n"
            "1:\tcmpl $0, %2\n\tje 1b\n\t"
            "mov (%%rsp), %%rax\n\t"
            "mov %%rbx, 8(%%rax); mov %%rcx, 16(%%rax); mov %%rdx, 24(%%rax); mov %%rsi, 32(%%rax); mov %%rdi, 40(%%rax);"
            "mov %%rbp, 48(%%rax); mov %%r8, 56(%%rax); mov %%r9, 64(%%rax); mov %%r10, 72(%%rax); mov %%r11, 80(%%rax);"
            "mov %%r12, 88(%%rax); mov %%r13, 96(%%rax); mov %%r14, 104(%%rax); mov %%r15, 112(%%rax);"
            "mov -8(%%rsp), %%rcx; mov %%rcx, (%%rax); mov -120(%%rsp), %%rcx; mov %%rcx, 120(%%rax)\n\t"
            "pop %%rax\n\tpop %%rbx\n\tpop %%rbp"
            :
            : "r"(in), "r"(out), "m"(hits)
            : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc");
        CHECK_EQ(hits, 1);
        for (int i = 1; i < 15; i++) CHECK_EQ(out[i], in[i]);
        CHECK_EQ(out[0], 0x5eed);
        CHECK_EQ(out[15], 0x7eed);
        CHECK_EXIT(p, 0);
    }
}

static unsigned long seen_flags, seen_sp, saved_flags;
ALL_MASKED_HANDLER(look_at_entry) {
    ucontext_t *uc = context;
    __asm__ volatile("pushfq; pop %0" : "=r"(seen_flags));
    seen_sp = (unsigned long)__builtin_frame_address(0);
    saved_flags = uc->uc_mcontext.gregs[REG_EFL];
    hits++;
}

CASE(entry_state_and_flags) {
    handle_info(SIGUSR1, look_at_entry, 0);
    unsigned long after;
    // Direction flag and carry set: cleared for the handler (by the ABI, the former), back afterwards.
    __asm__ volatile("lea -128(%%rsp), %%rsp\n\tstd\n\tstc\n\t" KILL_SELF "pushfq\n\tpop %0\n\tcld\n\tlea 128(%%rsp), %%rsp"
                     : "=&r"(after) : : "rax", "rcx", "rdi", "rsi", "r11", "memory", "cc");
    CHECK_EQ(hits, 1);
    CHECK_EQ(seen_flags & 0x400, 0);
    CHECK_EQ(saved_flags & 0x401, 0x401);
    CHECK_EQ(after & 0x401, 0x401);
    CHECK_EQ(seen_sp % 16, 0);  // the frame address is sp + 8 at entry
}

ALL_MASKED_HANDLER(look_at_context) {
    ucontext_t *uc = context;
    greg_t *g = uc->uc_mcontext.gregs;
    CHECK_EQ(g[REG_RAX], 0);  // kill's result is already there
    CHECK_EQ(g[REG_RBX], 0xb0b);
    CHECK_EQ(g[REG_R15], 0xf15);
    CHECK_EQ(g[REG_CSGSFS] & 0xffff, 0x33);
    CHECK_EQ(g[REG_CSGSFS] >> 48 & 0xffff, 0x2b);
    CHECK_EQ(*(unsigned short *)(g[REG_RIP] - 2), 0x050f);  // just after a syscall instruction
    CHECK_EQ(*(unsigned long *)&uc->uc_sigmask, 1ul << (SIGUSR2 - 1));
    CHECK_EQ(uc->uc_flags & 6, 6);  // SIGCONTEXT_SS, STRICT_RESTORE_SS
    CHECK(uc->uc_link == NULL);
    CHECK(uc->uc_mcontext.fpregs != NULL);
    // The siginfo lies above the ucontext, the return address below it.
    CHECK_GT((long)info, (long)uc);
    g[REG_RAX] = 0xaaaa;
    g[REG_R15] = 0x1515;
    hits++;
}

CASE(context_can_be_read_and_changed) {
    handle_info(SIGUSR1, look_at_context, 0);
    block(SET(SIGUSR2));
    long rax, r15;
    __asm__ volatile("mov $0xb0b, %%ebx; mov $0xf15, %%r15d\n\t" KILL_SELF "mov %%r15, %1"
                     : "=&a"(rax), "=&r"(r15) : : "rbx", "rcx", "rdi", "rsi", "r11", "r15", "memory", "cc");
    CHECK_EQ(hits, 1);
    CHECK_EQ(rax, 0xaaaa);
    CHECK_EQ(r15, 0x1515);
}

ALL_MASKED_HANDLER(change_mask) {
    ucontext_t *uc = context;
    *(unsigned long *)&uc->uc_sigmask = 1ul << (SIGTERM - 1) | 1ul << (SIGKILL - 1);
    hits++;
}

CASE(mask_is_taken_from_the_frame) {
    handle_info(SIGUSR1, change_mask, 0);
    block(SET(SIGUSR2));
    raise(SIGUSR1);
    kill(getpid(), SIGUSR1);
    CHECK_EQ(blocked(SIGTERM), 1);
    CHECK_EQ(blocked(SIGUSR2), 0);
    CHECK_EQ(blocked(SIGKILL), 0);
}

static void landing(void) { _exit(hits == 1 ? 21 : 22); }
ALL_MASKED_HANDLER(redirect) {
    ucontext_t *uc = context;
    hits++;
    uc->uc_mcontext.gregs[REG_RIP] = (long)landing;
    uc->uc_mcontext.gregs[REG_RSP] = ((uc->uc_mcontext.gregs[REG_RSP] - 256) & -16) - 8;
}

CASE(handler_redirects_execution) {
    // What Go's preemption does.
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        handle_info(SIGUSR1, redirect, 0);
        raise(SIGUSR1);
        for (;;) pause();
    }
    CHECK_EXIT(p, 21);
}

static unsigned handler_csr;
static unsigned short handler_cw;
ALL_MASKED_HANDLER(clobber_float) {
    handler_csr = __builtin_ia32_stmxcsr();
    __asm__ volatile("fnstcw %0" : "=m"(handler_cw));
    __builtin_ia32_ldmxcsr(0x7f80);
    unsigned short cw = 0x0c7f;
    __asm__ volatile("fldcw %0; fldpi; fldpi; fldpi" ::"m"(cw));
    if (__builtin_cpu_supports("avx512f"))
        __asm__ volatile("vpternlogd $0xff, %zmm0, %zmm0, %zmm0; vmovaps %zmm0, %zmm5; vmovaps %zmm0, %zmm15; vmovaps %zmm0, %zmm16; "
                         "vmovaps %zmm0, %zmm31; kxnorw %k1, %k1, %k1; kxnorw %k7, %k7, %k7");
    else if (__builtin_cpu_supports("avx"))
        __asm__ volatile("vzeroall");
    for (int i = 0; i < 1; i++) __asm__ volatile("pcmpeqd %xmm0, %xmm0; movaps %xmm0, %xmm7; movaps %xmm0, %xmm14");
    hits++;
}

CASE(x87_and_mxcsr) {
    handle_info(SIGUSR1, clobber_float, 0);
    unsigned csr;
    unsigned short cw = 0x077f, got_cw;
    double a, b;
    __builtin_ia32_ldmxcsr(0x3f80);
    __asm__ volatile("fninit; fldcw %3; fld1; fldpi\n\t" KILL_SELF "stmxcsr %0; fnstcw %1; fstpl %2; fstpl %4; fninit"
                     : "=m"(csr), "=m"(got_cw), "=m"(a) : "m"(cw), "m"(b) : "rax", "rcx", "rdi", "rsi", "r11", "memory", "cc");
    __builtin_ia32_ldmxcsr(0x1f80);
    CHECK_EQ(hits, 1);
    CHECK_EQ(csr, 0x3f80);
    CHECK_EQ(got_cw, 0x077f);
    CHECK(a > 3.14159 && a < 3.1416);
    CHECK(b == 1.0);
    CHECK_EQ(handler_csr, 0x1f80);  // a handler begins with the default state
    CHECK_EQ(handler_cw, 0x037f);
}

static unsigned char in[33 * 64] __attribute__((aligned(64))), out[33 * 64] __attribute__((aligned(64)));
static void fill(void) {
    for (int i = 0; i < (int)sizeof in; i++) in[i] = i * 7 + i / 64;
    memset(out, 0, sizeof out);
}
#define CLOBBERS "rax", "rcx", "rdx", "rdi", "rsi", "r8", "r11", "memory", "cc"
#define LIST16(M) M(0) M(1) M(2) M(3) M(4) M(5) M(6) M(7) M(8) M(9) M(10) M(11) M(12) M(13) M(14) M(15)
#define LIST32(M) LIST16(M) M(16) M(17) M(18) M(19) M(20) M(21) M(22) M(23) M(24) M(25) M(26) M(27) M(28) M(29) M(30) M(31)

CASE(sse_registers) {
    handle_info(SIGUSR1, clobber_float, 0);
    fill();
#define LOAD(N) "movaps 64*" #N "(%0), %%xmm" #N "\n\t"
#define STORE(N) "movaps %%xmm" #N ", 64*" #N "(%1)\n\t"
    __asm__ volatile(LIST16(LOAD) KILL_SELF LIST16(STORE)::"r"(in), "r"(out) : CLOBBERS);
#undef LOAD
#undef STORE
    CHECK_EQ(hits, 1);
    for (int i = 0; i < 16; i++) CHECK_EQ(memcmp(in + i * 64, out + i * 64, 16), 0);
}

CASE(avx_registers) {
    if (!__builtin_cpu_supports("avx")) SKIP("no AVX");
    handle_info(SIGUSR1, clobber_float, 0);
    fill();
#define LOAD(N) "vmovaps 64*" #N "(%0), %%ymm" #N "\n\t"
#define STORE(N) "vmovaps %%ymm" #N ", 64*" #N "(%1)\n\t"
    __asm__ volatile(LIST16(LOAD) KILL_SELF LIST16(STORE) "vzeroupper"::"r"(in), "r"(out) : CLOBBERS);
#undef LOAD
#undef STORE
    CHECK_EQ(hits, 1);
    for (int i = 0; i < 16; i++) CHECK_EQ(memcmp(in + i * 64, out + i * 64, 32), 0);
}

CASE(avx512_registers) {
    if (!__builtin_cpu_supports("avx512bw")) SKIP("no AVX-512");
    handle_info(SIGUSR1, clobber_float, 0);
    fill();
    unsigned long k[8] = {0};
#define LOAD(N) "vmovaps 64*" #N "(%0), %%zmm" #N "\n\t"
#define STORE(N) "vmovaps %%zmm" #N ", 64*" #N "(%1)\n\t"
    __asm__ volatile("mov $0x123456789abcdef, %%rax; kmovq %%rax, %%k1; not %%rax; kmovq %%rax, %%k7\n\t" LIST32(LOAD) KILL_SELF LIST32(STORE)
                     "kmovq %%k1, 8(%2); kmovq %%k7, 56(%2); vzeroupper" ::"r"(in), "r"(out), "r"(k) : CLOBBERS);
#undef LOAD
#undef STORE
    CHECK_EQ(hits, 1);
    CHECK_EQ(memcmp(in, out, 32 * 64), 0);
    CHECK_EQ(k[1], 0x123456789abcdef);
    CHECK_EQ(k[7], ~0x123456789abcdeful);
}

ALL_MASKED_HANDLER(change_xmm) {
    ucontext_t *uc = context;
    struct _libc_fpstate *fp = uc->uc_mcontext.fpregs;
    CHECK_EQ((long)fp % 64, 0);
    CHECK_EQ(memcmp(&fp->_xmm[3], in + 3 * 64, 16), 0);  // as it was
    memset(&fp->_xmm[3], 0x33, 16);
    // The software bytes at the end of the legacy area tell of the rest.
    unsigned *sw = (unsigned *)((char *)fp + 464);
    if (__builtin_cpu_supports("avx")) {
        CHECK_EQ(sw[0], 0x46505853);
        CHECK_GT(sw[1], sw[4]);  // extended size = xstate size + the closing magic
        CHECK_EQ(*(unsigned *)((char *)fp + sw[1] - 4), 0x46505845);
        CHECK_EQ(sw[2] & 7, 7);
        CHECK_EQ(uc->uc_flags & 1, 1);
        CHECK_EQ(memcmp((char *)fp + 576 + 3 * 16, in + 3 * 64 + 16, 16), 0);  // upper half of ymm3
        memset((char *)fp + 576 + 3 * 16, 0x44, 16);
    }
    hits++;
}

CASE(float_state_of_the_frame_is_taken_over) {
    if (!__builtin_cpu_supports("avx")) SKIP("no AVX");
    handle_info(SIGUSR1, change_xmm, 0);
    fill();
    __asm__ volatile("vmovaps 64*3(%0), %%ymm3\n\t" KILL_SELF "vmovaps %%ymm3, 64*3(%1); vzeroupper"::"r"(in), "r"(out) : CLOBBERS);
    CHECK_EQ(hits, 1);
    for (int i = 0; i < 16; i++) CHECK_EQ(out[3 * 64 + i], 0x33);
    for (int i = 16; i < 32; i++) CHECK_EQ(out[3 * 64 + i], 0x44);
}

ALL_MASKED_HANDLER(drop_float) {
    ((ucontext_t *)context)->uc_mcontext.fpregs = NULL;
    hits++;
}

CASE(without_float_state_it_is_reset) {
    handle_info(SIGUSR1, drop_float, 0);
    fill();
    __asm__ volatile("movaps 64(%0), %%xmm1\n\t" KILL_SELF "movaps %%xmm1, 64(%1)"::"r"(in), "r"(out) : CLOBBERS);
    CHECK_EQ(hits, 1);
    for (int i = 64; i < 80; i++) CHECK_EQ(out[i], 0);
}

CASE(float_state_in_a_forked_child) {
    fill();
    long pid;
    __asm__ volatile("movaps 128(%1), %%xmm9\n\tmov $57, %%eax\n\tsyscall\n\tmovaps %%xmm9, 128(%2)"
                     : "=&a"(pid) : "r"(in), "r"(out) : "rcx", "r11", "memory");
    if (pid == 0) _exit(memcmp(in + 128, out + 128, 16) != 0);
    CHECK_EXIT(pid, 0);
    CHECK_EQ(memcmp(in + 128, out + 128, 16), 0);
}

MAIN
