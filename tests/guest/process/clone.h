// clone.h: clone and clone3 without libc's wrappers.
#ifndef CLONE_H
#define CLONE_H
#include "../check.h"
#include <linux/futex.h>
#include <linux/sched.h>
#include <sched.h>

struct clone3_args {
    uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid, set_tid_size, cgroup;
};

// Start fn(arg) on `stack_top` as the child of a clone; its result is its exit status. It runs on the parent's TLS unless
// CLONE_SETTLS says otherwise, so it should call no more of libc than raw calls need. The result, or -errno.
__attribute__((naked, used)) static long raw_clone(unsigned long flags CHECK_USED, void *stack_top CHECK_USED,
                                                   int *parent_tid CHECK_USED, int *child_tid CHECK_USED,
                                                   unsigned long tls CHECK_USED, int (*fn)(void *) CHECK_USED, ...) {
    __asm__("mov 8(%rsp), %rax\n\t"  // arg, the seventh
            "sub $16, %rsi\n\t"
            "mov %rax, 8(%rsi)\n\t"
            "mov %r9, (%rsi)\n\t"
            "mov %rcx, %r10\n\t"
            "mov $56, %eax\n\t"
            "syscall\n\t"
            "test %rax, %rax\n\t"
            "jz 1f\n\t"
            "ret\n"
            "1:\txor %ebp, %ebp\n\t"
            "pop %rax\n\t"
            "pop %rdi\n\t"
            "call *%rax\n\t"
            "mov %eax, %edi\n\t"
            "mov $60, %eax\n\t"
            "syscall\n\t"
            "hlt");
}

// Order of the third to fifth arguments on x86-64: parent_tid, child_tid, tls; the asm moves child_tid to r10.
#define CLONE(FLAGS, STACK, PTID, CTID, TLS, FN, ARG) \
    raw_clone(FLAGS, STACK, PTID, CTID, (unsigned long)(TLS), FN, (void *)(long)(ARG))

// clone3 in the manner of fork, on the caller's stack (args->stack 0 and no CLONE_VM).
CHECK_USED static long clone3_fork(struct clone3_args *args) { return syscall(SYS_clone3, args, sizeof *args); }

// The top of a fresh stack.
CHECK_USED static void *new_stack(void) {
    char *p = CHECK_MAP(mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    return p + 65536;
}

#define THREAD_FLAGS (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM)

// Sleep until *word is no longer value: what a joiner does on CLONE_CHILD_CLEARTID's word.
CHECK_USED static void wait_while(volatile int *word, int value) {
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == value) syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
}

CHECK_USED static pid_t tid(void) { return syscall(SYS_gettid); }
CHECK_USED static pid_t pid(void) { return syscall(SYS_getpid); }
CHECK_USED static pid_t ppid(void) { return syscall(SYS_getppid); }

CHECK_USED static void sleep_ms(long ms) {
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&t, &t) == -1 && errno == EINTR) {}
}

// Whether the caller has this capability in its effective set: root may lack some, in a container for instance.
CHECK_USED static int has_cap(int cap) {
    unsigned header[2] = {0x20080522, 0}, data[6] = {0};
    CHECK_OK(syscall(SYS_capget, header, data));
    return data[cap / 32 * 3] >> cap % 32 & 1;
}

// One field of /proc/PID/stat, counted from 1 as in proc(5), as a number (the state letter for field 3); -1 without one.
CHECK_USED static long stat_field(pid_t p, int field) {
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", p);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd == -1) return -1;
    int n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0) return -1;
    text[n] = 0;
    char *at = strrchr(text, ')');
    if (!at) return -1;
    at += 2;
    for (int i = 3; i < field && at; i++) at = strchr(at, ' ') ? strchr(at, ' ') + 1 : NULL;
    return !at ? -1 : field == 3 ? *at : atol(at);
}
// Wait (5 s at most) until the process has this state letter.
CHECK_USED static void wait_for_state(pid_t p, char state) {
    for (int i = 0; i < 1000 && stat_field(p, 3) != state; i++) sleep_ms(5);
    CHECK_EQ(stat_field(p, 3), state);
}
#endif
