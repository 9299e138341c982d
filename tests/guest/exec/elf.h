// elf.h: ELF files made by hand, to be executed: a header, program headers at 64, code at 0x400 and whatever a case adds.
#ifndef MAKE_ELF_H
#define MAKE_ELF_H
#include "../check.h"
#include <elf.h>

#define BASE 0x400000ul
#define CODE 0x400ul  // offset of the code in the file

struct image {
    unsigned char bytes[1 << 16];
    size_t size;
    Elf64_Ehdr *head;
    Elf64_Phdr *ph;
};
static struct image image;

// Position-independent programs, copied from here into the files.
#define PROGRAM(NAME, TEXT)                                                                                  \
    extern const char NAME[], NAME##_end[];                                                                  \
    __asm__(".pushsection .rodata\n" #NAME ":\n" TEXT "\n" #NAME "_end:\n.popsection")
#define EXIT(N) "mov $" #N ", %edi\n\tmov $231, %eax\n\tsyscall\n\t"
PROGRAM(exit7, EXIT(7));
PROGRAM(exit9, EXIT(9));
// Write the initial stack, from the argument count to the end of the auxiliary vector, to descriptor 1.
PROGRAM(dump_stack,
        "mov %rsp, %rsi\n\tmov (%rsi), %rax\n\tlea 16(%rsi, %rax, 8), %rdx\n"
        "1:\tadd $8, %rdx\n\tcmpq $0, -8(%rdx)\n\tjne 1b\n"
        "2:\tadd $16, %rdx\n\tcmpq $0, -16(%rdx)\n\tjne 2b\n\t"
        "sub %rsi, %rdx\n\tmov $1, %edi\n\tmov $1, %eax\n\tsyscall\n\t" EXIT(0));
// Push an exit and jump to it: does the stack execute?
PROGRAM(run_on_stack, "movabs $0x050f5fe7b0906a58, %rax\n\tlea -64(%rsp), %rbx\n\tmov $231, %eax\n\tmovb $0xbf, (%rbx)\n\t"
                      "movl $8, 1(%rbx)\n\tmovb $0xb8, 5(%rbx)\n\tmovl $231, 6(%rbx)\n\tmovw $0x050f, 10(%rbx)\n\tjmp *%rbx\n\t");

static void *image_start(int type, const char *code, size_t len) {
    memset(&image, 0, sizeof image);
    image.head = (Elf64_Ehdr *)image.bytes;
    image.ph = (Elf64_Phdr *)(image.bytes + 64);
    *image.head = (Elf64_Ehdr){.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT}, .e_type = type,
                               .e_machine = EM_X86_64, .e_version = EV_CURRENT, .e_phoff = 64, .e_ehsize = 64, .e_phentsize = 56};
    image.head->e_entry = (type == ET_EXEC ? BASE : 0) + CODE;
    memcpy(image.bytes + CODE, code, len);
    image.size = CODE + len;
    return image.head;
}
CHECK_USED static Elf64_Phdr *segment(int type, int flags, size_t offset, size_t address, size_t filesz, size_t memsz) {
    Elf64_Phdr *p = &image.ph[image.head->e_phnum++];
    *p = (Elf64_Phdr){.p_type = type, .p_flags = flags, .p_offset = offset, .p_vaddr = address, .p_paddr = address,
                      .p_filesz = filesz, .p_memsz = memsz, .p_align = 4096};
    return p;
}
// The usual beginning: one segment with all that is in the file so far.
#define SIMPLE(TYPE, PROG)                                                                                   \
    do {                                                                                                     \
        image_start(TYPE, PROG, PROG##_end - PROG);                                                          \
        segment(PT_LOAD, PF_R | PF_X, 0, (TYPE) == ET_EXEC ? BASE : 0, image.size, image.size);              \
    } while (0)

CHECK_USED static const char *image_write(const char *name) {
    const char *path = TMP(name);
    unlink(path);
    int fd = CHECK_OK(open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755));
    CHECK_EQ(write(fd, image.bytes, image.size), (ssize_t)image.size);
    CHECK_OK(fchmod(fd, 0755));
    CHECK_OK(close(fd));
    return path;
}

// Execute it in a child: the wait status without the core bit, or -errno of execve.
CHECK_USED static int run_path(const char *path, char *const argv[], char *const envp[]) {
    int fds[2], e = 0, status;
    CHECK_OK(pipe2(fds, O_CLOEXEC));
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        syscall(SYS_execve, path, argv, envp);
        e = errno;
        write(fds[1], &e, sizeof e);
        _exit(126);
    }
    close(fds[1]);
    ssize_t n = read(fds[0], &e, sizeof e);
    close(fds[0]);
    CHECK_EQ(waitpid(p, &status, 0), p);
    return n > 0 ? -e : status & ~0x80;
}
CHECK_USED static int run_image(void) {
    char *argv[] = {"image", NULL}, *envp[] = {NULL};
    return run_path(image_write("image"), argv, envp);
}
#define RUNS(CODE_) CHECK_EQ(run_image(), (CODE_) << 8)
#define DIES(SIG) CHECK_EQ(run_image(), SIG)
#define REFUSED(E) CHECK_EQ(run_image(), -(E))

// The initial stack of a dump_stack image.
static unsigned long dumped[4096];
CHECK_USED static size_t run_dump(char *const argv[], char *const envp[]) {
    int fds[2], status;
    const char *path = image_write("dump");
    CHECK_OK(pipe(fds));
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        dup2(fds[1], 1);
        syscall(SYS_execve, path, argv, envp);
        _exit(126);
    }
    close(fds[1]);
    size_t n = 0;
    ssize_t got;
    while ((got = read(fds[0], (char *)dumped + n, sizeof dumped - n)) > 0) n += got;
    close(fds[0]);
    CHECK_EQ(waitpid(p, &status, 0), p);
    CHECK_EQ(status, 0);
    return n / 8;
}
// The value of an auxiliary entry in the dump; FAILs without one.
CHECK_USED static unsigned long dumped_aux(unsigned long type) {
    unsigned long *at = dumped + 1 + dumped[0] + 1;
    while (*at++) {}
    for (; *at; at += 2)
        if (*at == type) return at[1];
    FAIL("no auxiliary entry %lu", type);
}
#endif
