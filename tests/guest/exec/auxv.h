// auxv.h: checks of one's own auxiliary vector, for a static and for a dynamic program.
#include "../check.h"
#include <elf.h>
#include <sys/auxv.h>
#include <sys/time.h>

extern char **environ;
static unsigned long *vector(void) {
    char **e = environ;
    while (*e) e++;
    return (unsigned long *)(e + 1);
}

CASE_INLINE(getauxval_agrees_with_proc) {
    unsigned long *v = vector(), text[200];
    int n = 0;
    while (v[2 * n]) n++;
    int fd = CHECK_OK(open("/proc/self/auxv", O_RDONLY));
    ssize_t got = CHECK_OK(read(fd, text, sizeof text));
    CHECK_GE(got, (n + 1) * 16);
    CHECK_EQ(memcmp(text, v, (n + 1) * 16), 0);
    for (int i = 0; i < n; i++)
        if (v[2 * i] != AT_HWCAP && v[2 * i] != AT_HWCAP2 && v[2 * i] != AT_PLATFORM) CHECK_EQ(getauxval(v[2 * i]), v[2 * i + 1]);  // libc puts its own there
    close(fd);
}

CASE_INLINE(phdr_and_entry) {
    extern void _start(void);
    extern const Elf64_Ehdr __ehdr_start;
    CHECK_EQ(getauxval(AT_PHDR), (unsigned long)&__ehdr_start + __ehdr_start.e_phoff);
    CHECK_EQ(getauxval(AT_PHNUM), __ehdr_start.e_phnum);
    CHECK_EQ(getauxval(AT_PHENT), sizeof(Elf64_Phdr));
    CHECK_EQ(getauxval(AT_ENTRY), (unsigned long)_start);
    CHECK_EQ(getauxval(AT_PAGESZ), 4096);
    CHECK_EQ(getauxval(AT_CLKTCK), 100);
}

CASE_INLINE(interpreter_base) {
    unsigned long base = getauxval(AT_BASE);
#ifdef DYNAMIC
    CHECK_NE(base, 0);
    CHECK_EQ(memcmp((void *)base, ELFMAG, 4), 0);
    CHECK_EQ(((Elf64_Ehdr *)base)->e_type, ET_DYN);
#else
    CHECK_EQ(base, 0);
#endif
}

CASE_INLINE(identity_and_security) {
    CHECK_EQ(getauxval(AT_UID), getuid());
    CHECK_EQ(getauxval(AT_EUID), geteuid());
    CHECK_EQ(getauxval(AT_GID), getgid());
    CHECK_EQ(getauxval(AT_EGID), getegid());
    CHECK_EQ(getauxval(AT_SECURE), 0);
    CHECK_EQ(getauxval(AT_FLAGS), 0);
}

CASE_INLINE(strings) {
    const char *execfn = (char *)getauxval(AT_EXECFN), *platform = (char *)getauxval(AT_PLATFORM);
    CHECK_STR(platform, "x86_64");
    CHECK(execfn != NULL);
    CHECK_OK(access(execfn, X_OK));
    if (check_self[0] == '/' && strncmp(check_self, "/proc", 5)) CHECK_STR(execfn, check_self);
    char path[4096] = "";
    CHECK_GT(readlink("/proc/self/exe", path, sizeof path - 1), 0);
    struct stat a, b;
    CHECK_OK(stat(path, &a));
    CHECK_OK(stat(execfn, &b));
    CHECK_EQ(a.st_ino, b.st_ino);
}

HELPER(random_bytes) { write(1, (void *)getauxval(AT_RANDOM), 16); }

CASE(random_bytes_differ) {
    unsigned char seen[3][16];
    for (int i = 0; i < 3; i++) {
        int fds[2];
        CHECK_OK(pipe(fds));
        pid_t p = CHECK_OK(fork());
        if (p == 0) {
            dup2(fds[1], 1);
            execl(check_self, check_self, "@random_bytes", NULL);
            FAIL("exec");
        }
        CHECK_EXIT(p, 0);
        CHECK_EQ(read(fds[0], seen[i], 16), 16);
    }
    CHECK_NE(memcmp(seen[0], seen[1], 16), 0);
    CHECK_NE(memcmp(seen[1], seen[2], 16), 0);
}

// Find a function in the vDSO as libc does: by its dynamic symbol table.
static void *vdso(const char *name) {
    Elf64_Ehdr *h = (Elf64_Ehdr *)getauxval(AT_SYSINFO_EHDR);
    if (!h) return NULL;
    Elf64_Phdr *ph = (Elf64_Phdr *)((char *)h + h->e_phoff);
    Elf64_Dyn *dyn = NULL;
    unsigned long bias = 0;
    for (int i = 0; i < h->e_phnum; i++) {
        if (ph[i].p_type == PT_LOAD) bias = (unsigned long)h + ph[i].p_offset - ph[i].p_vaddr;
        if (ph[i].p_type == PT_DYNAMIC) dyn = (Elf64_Dyn *)((char *)h + ph[i].p_offset);
    }
    Elf64_Sym *symbols = NULL;
    const char *strings = NULL;
    for (; dyn && dyn->d_tag; dyn++) {
        if (dyn->d_tag == DT_SYMTAB) symbols = (Elf64_Sym *)(dyn->d_un.d_ptr + bias);
        if (dyn->d_tag == DT_STRTAB) strings = (char *)(dyn->d_un.d_ptr + bias);
    }
    // The string table follows the symbols.
    for (Elf64_Sym *s = symbols; s && (char *)s < strings; s++)
        if (s->st_shndx && !strcmp(strings + s->st_name, name)) return (void *)(s->st_value + bias);
    return NULL;
}

CASE(vdso_works) {
    Elf64_Ehdr *h = (Elf64_Ehdr *)getauxval(AT_SYSINFO_EHDR);
    CHECK(h != NULL);
    CHECK_EQ(memcmp(h, ELFMAG, 4), 0);
    CHECK_EQ(h->e_type, ET_DYN);
    CHECK_EQ(h->e_machine, EM_X86_64);
    int (*get)(clockid_t, struct timespec *) = vdso("__vdso_clock_gettime");
    int (*tod)(struct timeval *, void *) = vdso("__vdso_gettimeofday");
    time_t (*tim)(time_t *) = vdso("__vdso_time");
    int (*cpu)(unsigned *, unsigned *, void *) = vdso("__vdso_getcpu");
    CHECK(get && tod && tim && cpu);
    static const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_MONOTONIC_COARSE, CLOCK_PROCESS_CPUTIME_ID};
    for (int i = 0; i < 4; i++) {
        struct timespec a, b;
        CHECK_EQ(get(clocks[i], &a), 0);
        CHECK_OK(syscall(SYS_clock_gettime, clocks[i], &b));
        long long d = (b.tv_sec - a.tv_sec) * 1000000000ll + b.tv_nsec - a.tv_nsec;
        CHECK(d >= 0 && d < 2000000000);
    }
    CHECK_EQ(get(99, &(struct timespec){0, 0}), -EINVAL);
    struct timeval v;
    CHECK_EQ(tod(&v, NULL), 0);
    time_t t = tim(NULL);
    CHECK(t - v.tv_sec >= -1 && t - v.tv_sec <= 2);
    unsigned c = 9999;
    CHECK_EQ(cpu(&c, NULL, NULL), 0);
    CHECK_LT(c, 4096);
}

CASE(vdso_shows_in_maps) {
    static char text[1 << 16];
    char want[64];
    snprintf(want, sizeof want, "%lx-", getauxval(AT_SYSINFO_EHDR));
    int fd = CHECK_OK(open("/proc/self/maps", O_RDONLY));
    size_t n = 0;
    ssize_t got;
    while ((got = read(fd, text + n, sizeof text - 1 - n)) > 0) n += got;
    char *at = strstr(text, want);
    CHECK(at != NULL);
    at[strcspn(at, "\n")] = 0;
    CHECK(strstr(at, " r-xp ") != NULL);
    CHECK(strstr(at, "[vdso]") != NULL);
}

MAIN
