// build: static
// What a new program finds: registers, flags, floating-point state, segments, the stack and the auxiliary vector.
#include "elf.h"
#include <cpuid.h>

// Exit 7 if every general register but rsp is zero, the vector registers too, and control words are the defaults.
#define ZERO(R) "test %" R ", %" R "\n\tjnz 9f\n\t"
PROGRAM(check_registers,
        ZERO("rax") ZERO("rbx") ZERO("rcx") ZERO("rdx") ZERO("rsi") ZERO("rdi") ZERO("rbp") ZERO("r8") ZERO("r9") ZERO("r10")
        ZERO("r11") ZERO("r12") ZERO("r13") ZERO("r14") ZERO("r15")
        "mov %rsp, %rax\n\ttest $15, %al\n\tjnz 8f\n\t"                                 // aligned to 16
        "pushfq\n\tpop %rax\n\ttest $0x7dd00, %eax\n\tjnz 7f\n\t"                       // no TF, DF, IOPL, NT, RF, AC
        "test $0x200, %eax\n\tjz 7f\n\t"
        "stmxcsr -8(%rsp)\n\tcmpl $0x1f80, -8(%rsp)\n\tjne 6f\n\t"
        "fnstcw -8(%rsp)\n\tcmpw $0x37f, -8(%rsp)\n\tjne 6f\n\t"
        "fnstsw %ax\n\ttest %ax, %ax\n\tjnz 6f\n\t"
        "movq %xmm0, %rax\n\ttest %rax, %rax\n\tjnz 5f\n\tmovq %xmm7, %rax\n\ttest %rax, %rax\n\tjnz 5f\n\t"
        "movq %xmm15, %rax\n\ttest %rax, %rax\n\tjnz 5f\n\t"
        "mov %cs, %eax\n\tcmp $0x33, %eax\n\tjne 4f\n\tmov %ss, %eax\n\tcmp $0x2b, %eax\n\tjne 4f\n\t"
        "mov %ds, %eax\n\ttest %eax, %eax\n\tjnz 4f\n\tmov %es, %eax\n\ttest %eax, %eax\n\tjnz 4f\n\t"
        "mov %fs, %eax\n\ttest %eax, %eax\n\tjnz 4f\n\tmov %gs, %eax\n\ttest %eax, %eax\n\tjnz 4f\n\t"
        "mov $0x1003, %edi\n\tlea -16(%rsp), %rsi\n\tmov $158, %eax\n\tsyscall\n\tcmpq $0, -16(%rsp)\n\tjne 3f\n\t"  // FS base
        "mov $0x1004, %edi\n\tlea -16(%rsp), %rsi\n\tmov $158, %eax\n\tsyscall\n\tcmpq $0, -16(%rsp)\n\tjne 3f\n\t"  // GS base
        EXIT(7) "9:\t" EXIT(99) "8:\t" EXIT(98) "7:\t" EXIT(97) "6:\t" EXIT(96) "5:\t" EXIT(95) "4:\t" EXIT(94) "3:\t" EXIT(93));

CASE(registers_at_entry) {
    SIMPLE(ET_EXEC, check_registers);
    RUNS(7);
    SIMPLE(ET_DYN, check_registers);
    RUNS(7);
    // Nothing of the caller's state comes through.
    __builtin_ia32_ldmxcsr(0x7f80);
    unsigned short cw = 0x0c7f;
    __asm__ volatile("fldcw %0; fldpi; pcmpeqd %%xmm7, %%xmm7; pcmpeqd %%xmm15, %%xmm15" ::"m"(cw));
    static unsigned long block[8];
    CHECK_OK(syscall(SYS_arch_prctl, 0x1001 /* ARCH_SET_GS */, block));
    RUNS(7);
}

CASE(alignment_whatever_the_strings) {
    char text[40] = "";
    SIMPLE(ET_EXEC, check_registers);
    const char *path = image_write("r");
    for (int i = 0; i < 33; i++) {
        char *argv[] = {text, text, NULL}, *envp[] = {text, "A=B", i & 1 ? "C" : NULL, NULL};
        CHECK_EQ(run_path(path, argv, envp), 7 << 8);
        text[i] = 'x';
        CHECK_EQ(run_path(path, argv, envp), 7 << 8);
    }
}

CASE(auxiliary_vector_of_a_static_program) {
    SIMPLE(ET_EXEC, dump_stack);
    char *argv[] = {"zero", "one", "", NULL}, *envp[] = {"E=1", "F", NULL};
    size_t n = run_dump(argv, envp);
    CHECK_GE(n, 20);
    CHECK_EQ(dumped[0], 3);
    CHECK_EQ(dumped[4], 0);
    CHECK_EQ(dumped[7], 0);
    // Strings: arguments, then environment, then the file name, one after another.
    CHECK_EQ(dumped[2] - dumped[1], 5);
    CHECK_EQ(dumped[3] - dumped[2], 4);
    CHECK_EQ(dumped[5] - dumped[3], 1);
    CHECK_EQ(dumped[6] - dumped[5], 4);
    CHECK_EQ(dumped_aux(AT_EXECFN) - dumped[6], 2);
    CHECK_EQ(dumped_aux(AT_PHDR), BASE + 64);
    CHECK_EQ(dumped_aux(AT_PHENT), 56);
    CHECK_EQ(dumped_aux(AT_PHNUM), 1);
    CHECK_EQ(dumped_aux(AT_ENTRY), BASE + CODE);
    CHECK_EQ(dumped_aux(AT_BASE), 0);
    CHECK_EQ(dumped_aux(AT_FLAGS), 0);
    CHECK_EQ(dumped_aux(AT_PAGESZ), 4096);
    CHECK_EQ(dumped_aux(AT_CLKTCK), 100);
    CHECK_EQ(dumped_aux(AT_UID), getuid());
    CHECK_EQ(dumped_aux(AT_EUID), geteuid());
    CHECK_EQ(dumped_aux(AT_GID), getgid());
    CHECK_EQ(dumped_aux(AT_EGID), getegid());
    CHECK_EQ(dumped_aux(AT_SECURE), 0);
    CHECK_NE(dumped_aux(AT_RANDOM), 0);
    CHECK_NE(dumped_aux(AT_PLATFORM), 0);
    CHECK_NE(dumped_aux(AT_SYSINFO_EHDR), 0);
    unsigned a, b, c, d;
    __cpuid(1, a, b, c, d);
    CHECK_EQ(dumped_aux(AT_HWCAP), d);
    CHECK_EQ(dumped_aux(AT_HWCAP2) & ~3ul, 0);
    CHECK_GE(dumped_aux(51 /* AT_MINSIGSTKSZ */), 1000);
}

CASE(phdr_address_follows_the_headers) {
    // AT_PHDR comes from PT_PHDR, or from the segment that holds e_phoff.
    SIMPLE(ET_EXEC, dump_stack);
    image.ph[0].p_vaddr = BASE + 0x10000;
    image.head->e_entry += 0x10000;
    char *argv[] = {"x", NULL};
    run_dump(argv, argv + 1);
    CHECK_EQ(dumped_aux(AT_PHDR), BASE + 0x10000 + 64);
}

CASE(pie_base) {
    unsigned long seen[6];
    char *argv[] = {"x", NULL};
    int differ = 0;
    for (int i = 0; i < 6; i++) {
        SIMPLE(ET_DYN, dump_stack);
        run_dump(argv, argv + 1);
        seen[i] = dumped_aux(AT_ENTRY) - CODE;
        CHECK_EQ(seen[i] % 4096, 0);
        CHECK_GT(seen[i], 1ul << 30);
        CHECK_EQ(dumped_aux(AT_PHDR), seen[i] + 64);
        CHECK_EQ(dumped_aux(AT_BASE), 0);
        differ += i && seen[i] != seen[i - 1];
    }
    int fd = open("/proc/sys/kernel/randomize_va_space", O_RDONLY);
    char c = '0';
    if (fd != -1) CHECK_EQ(read(fd, &c, 1), 1);
    if (c != '0') CHECK_GT(differ, 2);
}

CASE(stack_is_randomised) {
    char *argv[] = {"x", NULL};
    unsigned long seen[6];
    int differ = 0;
    SIMPLE(ET_EXEC, dump_stack);
    for (int i = 0; i < 6; i++) {
        run_dump(argv, argv + 1);
        seen[i] = dumped[1];
        differ += i && seen[i] != seen[i - 1];
    }
    int fd = open("/proc/sys/kernel/randomize_va_space", O_RDONLY);
    char c = '0';
    if (fd != -1) CHECK_EQ(read(fd, &c, 1), 1);
    if (c != '0') CHECK_GT(differ, 2);
}

CASE(no_arguments_at_all) {
    // Since 5.18 an empty argv becomes one empty string.
    SIMPLE(ET_EXEC, dump_stack);
    char *none[] = {NULL};
    run_dump(none, none);
    CHECK_EQ(dumped[0], 1);
    CHECK_EQ(dumped[2], 0);
    CHECK_EQ(dumped[3], 0);
    run_dump(NULL, NULL);
    CHECK_EQ(dumped[0], 1);
    CHECK_EQ(dumped_aux(AT_EXECFN) - dumped[1], 1);
}

MAIN
