// build: static -pthread
// Core files: when there is one, its status, name and mode, and what a debugger finds in it.
#include "../check.h"
#include <elf.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/procfs.h>
#include <sys/resource.h>

// Natively the pattern may name a program, and the hard limit may be 0: then there is nothing to compare.
static void need_cores(void) {
    char pattern[128] = "";
    int fd = open("/proc/sys/kernel/core_pattern", O_RDONLY);
    int n = fd == -1 ? 0 : read(fd, pattern, sizeof pattern - 1);
    close(fd);
    pattern[n > 0 ? n : 0] = 0;
    if (strcmp(pattern, "core\n")) SKIP("cores are not files named core here");
    fd = open("/proc/sys/kernel/core_uses_pid", O_RDONLY);
    if (fd != -1 && read(fd, pattern, 1) == 1 && pattern[0] != '0') SKIP("cores are named by pid here");
    close(fd);
    struct rlimit limit;
    CHECK_OK(getrlimit(RLIMIT_CORE, &limit));
    if (limit.rlim_max != RLIM_INFINITY) SKIP("core files are limited here");
    TMP("");
    CHECK_OK(chdir(check_dir));
}

static void limit_core(rlim_t soft) {
    struct rlimit limit;
    CHECK_OK(getrlimit(RLIMIT_CORE, &limit));
    limit.rlim_cur = soft;
    CHECK_OK(setrlimit(RLIMIT_CORE, &limit));
}

// Forks a child with this limit that runs `crash`; its wait status.
static int crash_with(rlim_t soft, void (*crash)(void)) {
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        limit_core(soft);
        crash();
        _exit(99);
    }
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    return status;
}

static void quit(void) { raise(SIGQUIT); }
static void term(void) { raise(SIGTERM); }
static void fault(void) { *(volatile int *)0x1230 = 1; }

#define SECRET "this text is in the core: "
static char *kept, *forgotten, *shared, *untouched;

static void fault_with_memory(void) {
    kept = CHECK_MAP(mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    CHECK_OK(mprotect(kept + 32768, 4096, PROT_NONE));
    forgotten = CHECK_MAP(mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    shared = CHECK_MAP(mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    untouched = CHECK_MAP(mmap(NULL, 1 << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    sprintf(kept + 8192, "%skept", SECRET);
    sprintf(forgotten + 8192, "%sforgotten", SECRET);
    sprintf(shared + 8192, "%sshared", SECRET);
    CHECK_OK(madvise(forgotten, 65536, MADV_DONTDUMP));
    CHECK_OK(madvise(untouched, 1 << 30, MADV_NOHUGEPAGE));
    fault();
}

static void *wait_for_ever(void *arg) {
    pthread_barrier_wait(arg);
    for (;;) pause();
    return NULL;
}

static void fault_with_threads(void) {
    pthread_barrier_t all;
    pthread_t thread;
    pthread_barrier_init(&all, NULL, 4);
    for (int i = 0; i < 3; i++) CHECK_EQ(pthread_create(&thread, NULL, wait_for_ever, &all), 0);
    pthread_barrier_wait(&all);
    fault();
}

static char *core;
static size_t core_size;

static void read_core(void) {
    struct stat st;
    int fd = CHECK_OK(open("core", O_RDONLY));
    CHECK_OK(fstat(fd, &st));
    CHECK_EQ(st.st_mode, S_IFREG | 0600);
    CHECK_EQ(st.st_uid, geteuid());
    core_size = st.st_size;
    core = CHECK_MAP(mmap(NULL, core_size, PROT_READ, MAP_PRIVATE, fd, 0));
    CHECK_OK(close(fd));
}

static int contains(const char *text) {
    char whole[100];
    snprintf(whole, sizeof whole, "%s%s", SECRET, text);
    return memmem(core, core_size, whole, strlen(whole) + 1) != NULL;
}

static Elf64_Phdr *segment(int index) {
    Elf64_Ehdr *head = (void *)core;
    return (Elf64_Phdr *)(core + head->e_phoff) + index;
}

// The n-th note of a kind: its content, and in `size` how long that is.
static void *note(unsigned kind, int n, size_t *size) {
    Elf64_Phdr *notes = segment(0);
    for (size_t at = notes->p_offset; at < notes->p_offset + notes->p_filesz;) {
        Elf64_Nhdr *head = (void *)(core + at);
        size_t content = at + sizeof *head + ((head->n_namesz + 3) & ~3);
        CHECK_LE(content + head->n_descsz, core_size);
        if (head->n_type == kind && n-- == 0) {
            CHECK_STR((char *)(head + 1), kind == NT_X86_XSTATE ? "LINUX" : "CORE");
            *size = head->n_descsz;
            return core + content;
        }
        at = content + ((head->n_descsz + 3) & ~3);
    }
    return NULL;
}

CASE(without_a_limit_there_is_none) {
    need_cores();
    CHECK_EQ(crash_with(0, quit), SIGQUIT);
    // Less than a page is none.
    CHECK_EQ(crash_with(4095, fault), SIGSEGV);
    CHECK_ERRNO(access("core", F_OK), ENOENT);
}

CASE(status_tells_of_it) {
    need_cores();
    static const int all[] = {SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGXCPU, SIGXFSZ, SIGSYS};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        pid_t pid = CHECK_OK(fork());
        if (pid == 0) {
            limit_core(RLIM_INFINITY);
            raise(all[i]);
            _exit(99);
        }
        siginfo_t info;
        CHECK_OK(waitid(P_PID, pid, &info, WEXITED | WNOWAIT));
        CHECK_EQ(info.si_code, CLD_DUMPED);
        CHECK_EQ(info.si_status, all[i]);
        int status;
        CHECK_EQ(waitpid(pid, &status, 0), pid);
        CHECK_EQ(status, all[i] | 0x80);
        CHECK_OK(unlink("core"));
    }
    CHECK_EQ(crash_with(RLIM_INFINITY, term), SIGTERM);
    CHECK_ERRNO(access("core", F_OK), ENOENT);
}

CASE(headers_and_notes) {
    need_cores();
    CHECK_EQ(crash_with(RLIM_INFINITY, fault_with_memory), SIGSEGV | 0x80);
    read_core();
    Elf64_Ehdr *head = (void *)core;
    CHECK_EQ(memcmp(head->e_ident, "\177ELF\2\1\1", 7), 0);
    CHECK_EQ(head->e_type, ET_CORE);
    CHECK_EQ(head->e_machine, EM_X86_64);
    CHECK_EQ(head->e_phoff, 64);
    CHECK_EQ(head->e_phentsize, sizeof(Elf64_Phdr));
    CHECK_EQ(head->e_shnum, 0);
    CHECK_GT(head->e_phnum, 5);
    CHECK_EQ(segment(0)->p_type, PT_NOTE);
    CHECK_EQ(segment(0)->p_offset, 64 + head->e_phnum * sizeof(Elf64_Phdr));
    size_t size;
    struct elf_prstatus *status = note(NT_PRSTATUS, 0, &size);
    CHECK_EQ(size, sizeof *status);
    CHECK_EQ(status->pr_cursig, SIGSEGV);
    CHECK_EQ(status->pr_info.si_signo, SIGSEGV);
    CHECK_EQ(status->pr_ppid, getpid());
    CHECK_EQ(status->pr_pgrp, getpgrp());
    CHECK_EQ(status->pr_fpvalid, 1);
    struct elf_prpsinfo *process = note(NT_PRPSINFO, 0, &size);
    CHECK_EQ(size, sizeof *process);
    CHECK_EQ(process->pr_pid, status->pr_pid);
    CHECK_EQ(process->pr_uid, getuid());
    CHECK(strstr(process->pr_psargs, "coredump") != NULL);
    siginfo_t *info = note(NT_SIGINFO, 0, &size);
    CHECK_EQ(size, 128);
    CHECK_EQ(info->si_signo, SIGSEGV);
    CHECK_EQ(info->si_code, SEGV_MAPERR);
    CHECK_EQ((long)info->si_addr, 0x1230);
    Elf64_auxv_t *aux = note(NT_AUXV, 0, &size);
    while (aux->a_type != AT_PHDR && aux->a_type != AT_NULL) aux++;
    CHECK_EQ(aux->a_type, AT_PHDR);
    long *files = note(NT_FILE, 0, &size);
    CHECK_GT(files[0], 0);
    CHECK_EQ(files[1], 4096);
    CHECK(strstr((char *)(files + 2 + 3 * files[0]), "coredump") != NULL);
    CHECK(note(NT_FPREGSET, 0, &size) != NULL);
    CHECK_EQ(size, 512);
    CHECK(note(NT_X86_XSTATE, 0, &size) != NULL);
    CHECK_GE(size, 576);
    CHECK(note(NT_PRSTATUS, 1, &size) == NULL);
    // The instruction that faulted lies in a mapping that is there; the stack pointer in one that is dumped.
    int code = 0, stack = 0;
    for (int i = 1; i < head->e_phnum; i++) {
        Elf64_Phdr *s = segment(i);
        CHECK_EQ(s->p_type, PT_LOAD);
        CHECK_EQ(s->p_offset % 4096, 0);
        CHECK_LE(s->p_offset + s->p_filesz, core_size);
        code |= status->pr_reg[16] - s->p_vaddr < s->p_memsz && s->p_flags & PF_X;
        stack |= status->pr_reg[19] - s->p_vaddr < s->p_filesz && s->p_flags & PF_W;
    }
    CHECK(code && stack);
}

CASE(memory) {
    need_cores();
    CHECK_EQ(crash_with(RLIM_INFINITY, fault_with_memory), SIGSEGV | 0x80);
    read_core();
    CHECK(contains("kept"));
    CHECK(contains("shared"));
    CHECK(!contains("forgotten"));
    // A mapping that was never touched takes no room.
    CHECK_LT(core_size, 64 << 20);
    Elf64_Ehdr *head = (void *)core;
    int found = 0;
    for (int i = 1; i < head->e_phnum; i++)
        if (segment(i)->p_memsz >= 1 << 30) found += segment(i)->p_filesz == 0;
    CHECK_EQ(found, 1);
    struct stat st;
    CHECK_OK(stat("core", &st));
    CHECK_LE(st.st_blocks * 512, (long long)core_size + 65536);
}

CASE(filter) {
    need_cores();
    int fd = CHECK_OK(open("/proc/self/coredump_filter", O_RDWR));
    char text[32] = "";
    CHECK_EQ(read(fd, text, sizeof text), 9);
    CHECK_STR(text, "00000033\n");
    CHECK_EQ(write(fd, "0x2\n", 4), 4);
    CHECK_EQ(pread(fd, text, sizeof text, 0), 9);
    CHECK_STR(text, "00000002\n");
    CHECK_ERRNO(write(fd, "many", 4), EINVAL);
    // Children inherit it.
    CHECK_EQ(crash_with(RLIM_INFINITY, fault_with_memory), SIGSEGV | 0x80);
    read_core();
    CHECK(!contains("kept"));
    CHECK(contains("shared"));
    CHECK_EQ(write(fd, "1", 1), 1);
    CHECK_EQ(crash_with(RLIM_INFINITY, fault_with_memory), SIGSEGV | 0x80);
    read_core();
    CHECK(contains("kept"));
    CHECK(!contains("shared"));
}

// A system call's site, which is in the core as it was linked. The nops before let a disassembler find its way.
__asm__(".pushsection .text\n.balign 64\n.skip 64, 0x90\nsite: mov $110, %eax\nsyscall\ncmp $-4095, %rax\nret\n.popsection");
extern long site(void);
static void fault_after_a_call(void) {
    site();
    fault();
}

CASE(text) {
    static const unsigned char linked[] = {0xb8, 110, 0, 0, 0, 0x0f, 0x05, 0x48, 0x3d, 0x01, 0xf0, 0xff, 0xff, 0xc3};
    need_cores();
    int fd = CHECK_OK(open("/proc/self/coredump_filter", O_RDWR));
    CHECK_EQ(write(fd, "0x7\n", 4), 4);  // mappings of files as well
    CHECK_EQ(crash_with(RLIM_INFINITY, fault_after_a_call), SIGSEGV | 0x80);
    read_core();
    int found = 0;
    for (int i = 1; i < ((Elf64_Ehdr *)core)->e_phnum; i++) {
        Elf64_Phdr *s = segment(i);
        size_t at = (uintptr_t)site - s->p_vaddr;
        if (at >= s->p_filesz) continue;
        CHECK_EQ(memcmp(core + s->p_offset + at, linked, sizeof linked), 0);
        found++;
    }
    CHECK_EQ(found, 1);
}

CASE(threads) {
    need_cores();
    CHECK_EQ(crash_with(RLIM_INFINITY, fault_with_threads), SIGSEGV | 0x80);
    read_core();
    size_t size;
    int pids[4];
    for (int i = 0; i < 4; i++) {
        struct elf_prstatus *status = note(NT_PRSTATUS, i, &size);
        CHECK(status != NULL);
        CHECK_EQ(status->pr_cursig, SIGSEGV);
        pids[i] = status->pr_pid;
        for (int k = 0; k < i; k++) CHECK_NE(pids[k], pids[i]);
        CHECK(note(NT_X86_XSTATE, i, &size) != NULL);
        // The others sit in pause(), or on their way there.
        if (i > 0) CHECK_NE(status->pr_reg[16], 0);
    }
    CHECK(note(NT_PRSTATUS, 4, &size) == NULL);
    struct elf_prpsinfo *process = note(NT_PRPSINFO, 0, &size);
    // The one that faulted comes first; here it is the leader.
    CHECK_EQ(process->pr_pid, pids[0]);
}

CASE(cut_by_the_limit) {
    need_cores();
    CHECK_EQ(crash_with(65536, fault_with_memory), SIGSEGV | 0x80);
    struct stat st;
    CHECK_OK(stat("core", &st));
    CHECK_LE(st.st_blocks * 512, 65536 + 4096);
    CHECK_GE(st.st_size, 4096);
}

static void fault_undumpable(void) {
    CHECK_OK(prctl(PR_SET_DUMPABLE, 0));
    fault();
}

CASE(undumpable) {
    need_cores();
    CHECK_EQ(crash_with(RLIM_INFINITY, fault_undumpable), SIGSEGV);
    CHECK_ERRNO(access("core", F_OK), ENOENT);
}

CASE(what_is_in_the_way) {
    need_cores();
    // An older file goes, also one with other names, and a symbolic link.
    int fd = CHECK_OK(open("core", O_RDWR | O_CREAT, 0666));
    CHECK_EQ(write(fd, "old", 3), 3);
    CHECK_OK(link("core", "second"));
    CHECK_EQ(crash_with(RLIM_INFINITY, quit), SIGQUIT | 0x80);
    struct stat st;
    CHECK_OK(stat("second", &st));
    CHECK_EQ(st.st_size, 3);
    CHECK_OK(unlink("core"));
    CHECK_OK(symlink("second", "core"));
    CHECK_EQ(crash_with(RLIM_INFINITY, quit), SIGQUIT | 0x80);
    CHECK_OK(lstat("core", &st));
    CHECK(S_ISREG(st.st_mode));
    CHECK_OK(stat("second", &st));
    CHECK_EQ(st.st_size, 3);
    // A directory stays.
    CHECK_OK(unlink("core"));
    CHECK_OK(mkdir("core", 0777));
    CHECK_EQ(crash_with(RLIM_INFINITY, quit), SIGQUIT);
}

static void fault_with_umask(void) {
    umask(0277);
    fault();
}

CASE(umask_counts) {
    need_cores();
    // A file that its owner may not write to is no core.
    CHECK_EQ(crash_with(RLIM_INFINITY, fault_with_umask), SIGSEGV);
}

CASE(nobody_may_write_there) {
    need_cores();
    NEED_USER();
    CHECK_OK(chmod(check_dir, 0500));
    CHECK_EQ(crash_with(RLIM_INFINITY, quit), SIGQUIT);
    CHECK_OK(chmod(check_dir, 0700));
}

MAIN
