// build: static
// clone and clone3: what each flag shares, thread ids, TLS, and the errno table.
#include "clone.h"
#include <asm/prctl.h>

static volatile int word;
static int set_word(void *arg) {
    word = (long)arg;
    return 7;
}

CASE(without_vm_memory_is_copied) {
    long p = CLONE(SIGCHLD, new_stack(), NULL, NULL, 0, set_word, 5);
    CHECK_GT(p, 0);
    CHECK_EXIT(p, 7);
    CHECK_EQ(word, 0);
}

CASE(vm_shares_memory) {
    long p = CLONE(CLONE_VM | SIGCHLD, new_stack(), NULL, NULL, 0, set_word, 5);
    CHECK_GT(p, 0);
    CHECK_EXIT(p, 7);
    CHECK_EQ(word, 5);
}

static int map_something(void *arg) {
    char *p = (char *)syscall(SYS_mmap, arg, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    *p = 'm';
    return p == arg ? 0 : 1;
}

CASE(vm_shares_mappings_even_after_exit) {
    char *at = CHECK_MAP(mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    long p = CLONE(CLONE_VM | SIGCHLD, new_stack(), NULL, NULL, 0, map_something, at);
    CHECK_EXIT(p, 0);
    CHECK_EQ(*at, 'm');
}

static int close_fd(void *arg) { return syscall(SYS_close, (long)arg); }

CASE(files_shared_or_copied) {
    int fd = CHECK_OK(open("/", O_RDONLY));
    CHECK_EXIT(CLONE(CLONE_VM | SIGCHLD, new_stack(), NULL, NULL, 0, close_fd, fd), 0);
    CHECK_OK(fcntl(fd, F_GETFD));
    CHECK_EXIT(CLONE(CLONE_VM | CLONE_FILES | SIGCHLD, new_stack(), NULL, NULL, 0, close_fd, fd), 0);
    CHECK_ERRNO(fcntl(fd, F_GETFD), EBADF);
}

static int move_about(void *arg CHECK_USED) {
    syscall(SYS_umask, 0123);
    return syscall(SYS_chdir, "/proc");
}

CASE(fs_shared_or_copied) {
    char text[100];
    CHECK_OK(chdir("/"));
    umask(022);
    CHECK_EXIT(CLONE(SIGCHLD, new_stack(), NULL, NULL, 0, move_about, 0), 0);
    CHECK_STR(getcwd(text, sizeof text), "/");
    CHECK_EXIT(CLONE(CLONE_FS | SIGCHLD, new_stack(), NULL, NULL, 0, move_about, 0), 0);
    CHECK_STR(getcwd(text, sizeof text), "/proc");
    CHECK_EQ(umask(0), 0123);
}

static int ignore_usr1(void *arg CHECK_USED) {
    signal(SIGUSR1, SIG_IGN);
    return 0;
}

CASE(sighand_shared_or_copied) {
    struct sigaction act;
    CHECK_EXIT(CLONE(CLONE_VM | SIGCHLD, new_stack(), NULL, NULL, 0, ignore_usr1, 0), 0);
    CHECK_OK(sigaction(SIGUSR1, NULL, &act));
    CHECK(act.sa_handler == SIG_DFL);
    CHECK_EXIT(CLONE(CLONE_VM | CLONE_SIGHAND | SIGCHLD, new_stack(), NULL, NULL, 0, ignore_usr1, 0), 0);
    CHECK_OK(sigaction(SIGUSR1, NULL, &act));
    CHECK(act.sa_handler == SIG_IGN);
}

static void handler(int sig CHECK_USED) {}

CASE(clear_sighand_by_clone3) {
    signal(SIGUSR1, handler);
    signal(SIGUSR2, SIG_IGN);
    struct clone3_args args = {.flags = 0x100000000ull /* CLONE_CLEAR_SIGHAND */, .exit_signal = SIGCHLD};
    long p = CHECK_OK(clone3_fork(&args));
    if (p == 0) {
        struct sigaction act;
        sigaction(SIGUSR1, NULL, &act);
        CHECK(act.sa_handler == SIG_DFL);
        sigaction(SIGUSR2, NULL, &act);
        CHECK(act.sa_handler == SIG_IGN);
        _exit(0);
    }
    CHECK_EXIT(p, 0);
    args.flags |= CLONE_SIGHAND | CLONE_VM;
    CHECK_ERRNO(clone3_fork(&args), EINVAL);
}

static int exit_three(void *arg CHECK_USED) { return 3; }

CASE(parent_flag_makes_a_sibling) {
    int fds[2];
    CHECK_OK(pipe(fds));
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        long sibling = CLONE(CLONE_PARENT | SIGCHLD, new_stack(), NULL, NULL, 0, exit_three, 0);
        CHECK_EQ(write(fds[1], &sibling, sizeof sibling), sizeof sibling);
        CHECK_ERRNO(waitpid(sibling, NULL, 0), ECHILD);
        _exit(0);
    }
    CHECK_EXIT(p, 0);
    long sibling;
    CHECK_EQ(read(fds[0], &sibling, sizeof sibling), sizeof sibling);
    CHECK_EXIT(sibling, 3);
}

static volatile int parent_tid, child_tid;
static int check_tids(void *arg CHECK_USED) { return child_tid == syscall(SYS_gettid) ? 0 : 1; }

CASE(settid_flags) {
    long p = CLONE(CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | SIGCHLD, new_stack(), (int *)&parent_tid, (int *)&child_tid, 0,
                   check_tids, 0);
    CHECK_EXIT(p, 0);
    CHECK_EQ(parent_tid, p);
    CHECK_EQ(child_tid, 0);  // set in the child's memory only
    // Bad addresses are not errors.
    p = CLONE(CLONE_CHILD_SETTID | SIGCHLD, new_stack(), NULL, (int *)8, 0, exit_three, 0);
    CHECK_EXIT(p, 3);
    p = CLONE(CLONE_PARENT_SETTID | SIGCHLD, new_stack(), (int *)8, NULL, 0, exit_three, 0);
    CHECK_EXIT(p, 3);
}

static int sleep_a_little(void *arg CHECK_USED) {
    struct timespec t = {0, 50000000};
    syscall(SYS_nanosleep, &t, NULL);
    return 0;
}

CASE(child_cleartid_wakes) {
    child_tid = -5;
    long t = CLONE(THREAD_FLAGS | CLONE_CHILD_CLEARTID | CLONE_PARENT_SETTID, new_stack(), (int *)&parent_tid, (int *)&child_tid, 0,
                   sleep_a_little, 0);
    CHECK_GT(t, 0);
    CHECK_EQ(parent_tid, t);
    wait_while(&child_tid, -5);
    CHECK_EQ(child_tid, 0);
    // A thread is nobody's child.
    CHECK_ERRNO(waitpid(t, NULL, __WALL), ECHILD);
}

CASE(cleartid_of_a_process_in_shared_memory) {
    volatile int *shared = CHECK_MAP(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    *shared = 77;
    long p = CLONE(CLONE_CHILD_CLEARTID | SIGCHLD, new_stack(), NULL, (int *)shared, 0, sleep_a_little, 0);
    CHECK_EXIT(p, 0);
    CHECK_EQ(*shared, 77);  // the last user of an address space does not write
    p = CLONE(CLONE_VM | CLONE_CHILD_CLEARTID | SIGCHLD, new_stack(), NULL, (int *)shared, 0, sleep_a_little, 0);
    wait_while(shared, 77);
    CHECK_EQ(*shared, 0);
    CHECK_EXIT(p, 0);
}

static volatile int thread_pid, thread_tid, thread_ppid, done;
static int thread_ids(void *arg CHECK_USED) {
    thread_pid = pid();
    thread_tid = tid();
    thread_ppid = ppid();
    return 0;
}

CASE(thread_ids_of_a_raw_thread) {
    done = 1;
    long t = CLONE(THREAD_FLAGS | CLONE_CHILD_CLEARTID, new_stack(), NULL, (int *)&done, 0, thread_ids, 0);
    wait_while(&done, 1);
    CHECK_EQ(thread_pid, pid());
    CHECK_EQ(thread_tid, t);
    CHECK_NE(t, pid());
    CHECK_EQ(thread_ppid, ppid());
}

static volatile unsigned long seen_fs, seen_word;
static int read_tls(void *arg CHECK_USED) {
    unsigned long v, base = 0;
    __asm__ volatile("mov %%fs:0, %0" : "=r"(v));
    seen_word = v;
    __asm__ volatile("syscall" : "+a"((long){SYS_arch_prctl}) : "D"(ARCH_GET_FS), "S"(&base) : "rcx", "r11", "memory");
    seen_fs = base;
    return 0;
}

CASE(settls) {
    static unsigned long block[64] = {0xfeedface};
    done = 1;
    unsigned long mine;
    CHECK_OK(syscall(SYS_arch_prctl, ARCH_GET_FS, &mine));
    block[5] = *(unsigned long *)(mine + 0x28);  // the stack protector's canary
    CHECK_GT(CLONE(THREAD_FLAGS | CLONE_SETTLS | CLONE_CHILD_CLEARTID, new_stack(), NULL, (int *)&done, block, read_tls, 0), 0);
    wait_while(&done, 1);
    CHECK_EQ(seen_word, 0xfeedface);
    CHECK_EQ(seen_fs, (unsigned long)block);
    unsigned long now;
    CHECK_OK(syscall(SYS_arch_prctl, ARCH_GET_FS, &now));
    CHECK_EQ(now, mine);
    // A base that no user may have.
    CHECK_EQ(CLONE(THREAD_FLAGS | CLONE_SETTLS, new_stack(), NULL, NULL, 0xffff800000000000ul, read_tls, 0), -EPERM);
    CHECK_ERRNO(syscall(SYS_arch_prctl, ARCH_SET_FS, 0xffff800000000000ul), EPERM);
    CHECK_ERRNO(syscall(SYS_arch_prctl, ARCH_SET_GS, 0xffff800000000000ul), EPERM);
    CHECK_ERRNO(syscall(SYS_arch_prctl, 0x9999, 0), EINVAL);
}

CASE(gs_base) {
    static unsigned long block[4] = {0x1234, 0x5678};
    unsigned long got;
    CHECK_OK(syscall(SYS_arch_prctl, ARCH_SET_GS, block));
    CHECK_OK(syscall(SYS_arch_prctl, ARCH_GET_GS, &got));
    CHECK_EQ(got, (unsigned long)block);
    __asm__ volatile("mov %%gs:8, %0" : "=r"(got));
    CHECK_EQ(got, 0x5678);
    IN_CHILD({
        unsigned long v;
        __asm__ volatile("mov %%gs:0, %0" : "=r"(v));
        CHECK_EQ(v, 0x1234);
    });
    sched_yield();
    __asm__ volatile("mov %%gs:0, %0" : "=r"(got));
    CHECK_EQ(got, 0x1234);
}

CASE(pidfd_flag) {
    int fd = -1;
    long p = CLONE(CLONE_PIDFD | SIGCHLD, new_stack(), &fd, NULL, 0, sleep_a_little, 0);
    CHECK_GT(p, 0);
    CHECK_GE(fd, 0);
    CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
    siginfo_t info;
    CHECK_OK(waitid(P_PIDFD, fd, &info, WEXITED));
    CHECK_EQ(info.si_pid, p);
    CHECK_EQ(CLONE(CLONE_PIDFD | CLONE_PARENT_SETTID | SIGCHLD, new_stack(), &fd, NULL, 0, exit_three, 0), -EINVAL);
    CHECK_EQ(CLONE(CLONE_PIDFD | CLONE_DETACHED | SIGCHLD, new_stack(), &fd, NULL, 0, exit_three, 0), -EINVAL);
}

CASE(pidfd_that_cannot_be_told) {
    int next = CHECK_OK(dup(0));
    close(next);
    CHECK_EQ(CLONE(CLONE_PIDFD | SIGCHLD, new_stack(), (int *)16, NULL, 0, exit_three, 0), -EFAULT);
    // Neither child nor descriptor are there.
    CHECK_ERRNO(waitpid(-1, NULL, WNOHANG), ECHILD);
    CHECK_EQ(dup(0), next);
    close(next);
}

CASE(clone_errno_table) {
    void *s = new_stack();
    CHECK_EQ(CLONE(CLONE_SIGHAND | SIGCHLD, s, NULL, NULL, 0, exit_three, 0), -EINVAL);
    CHECK_EQ(CLONE(CLONE_THREAD | SIGCHLD, s, NULL, NULL, 0, exit_three, 0), -EINVAL);
    CHECK_EQ(CLONE(CLONE_THREAD | CLONE_VM | SIGCHLD, s, NULL, NULL, 0, exit_three, 0), -EINVAL);
    CHECK_EQ(CLONE(CLONE_THREAD | CLONE_SIGHAND | SIGCHLD, s, NULL, NULL, 0, exit_three, 0), -EINVAL);
    CHECK_EQ(CLONE(CLONE_FS | CLONE_NEWNS | SIGCHLD, s, NULL, NULL, 0, exit_three, 0), -EINVAL);
    CHECK_EQ(CLONE(CLONE_VM | CLONE_NEWUSER | CLONE_THREAD | CLONE_SIGHAND, s, NULL, NULL, 0, exit_three, 0), -EINVAL);
    if (geteuid() != 0) CHECK_EQ(CLONE(CLONE_NEWNS | SIGCHLD, s, NULL, NULL, 0, exit_three, 0), -EPERM);
}

CASE(exit_signal_choice) {
    // Any signal or none: such a child is a "clone" child, waited for with __WCLONE or __WALL only.
    long p = CLONE(0, new_stack(), NULL, NULL, 0, exit_three, 0);
    CHECK_ERRNO(waitpid(p, NULL, 0), ECHILD);
    int status;
    CHECK_EQ(waitpid(p, &status, __WCLONE), p);
    CHECK_EQ(status, 0x300);
    signal(SIGUSR1, SIG_IGN);
    p = CLONE(SIGUSR1, new_stack(), NULL, NULL, 0, exit_three, 0);
    CHECK_ERRNO(waitpid(-1, NULL, 0), ECHILD);
    CHECK_EQ(waitpid(-1, &status, __WALL), p);
    p = CLONE(SIGCHLD, new_stack(), NULL, NULL, 0, exit_three, 0);
    CHECK_ERRNO(waitpid(p, NULL, __WCLONE), ECHILD);
    CHECK_EXIT(p, 3);
}

CASE(clone3_errno_table) {
    struct clone3_args a = {.exit_signal = SIGCHLD};
    char big[256] = "";
    CHECK_ERRNO(syscall(SYS_clone3, &a, 63), EINVAL);
    CHECK_ERRNO(syscall(SYS_clone3, &a, 0), EINVAL);
    CHECK_ERRNO(syscall(SYS_clone3, &a, 4097), E2BIG);
    CHECK_ERRNO(syscall(SYS_clone3, (void *)8, sizeof a), EFAULT);
    memcpy(big, &a, sizeof a);
    big[200] = 1;
    CHECK_ERRNO(syscall(SYS_clone3, big, 256), E2BIG);
#define BAD(...) do { struct clone3_args b = {.exit_signal = SIGCHLD, __VA_ARGS__}; CHECK_ERRNO(clone3_fork(&b), EINVAL); } while (0)
    BAD(.flags = SIGCHLD);  // the exit signal does not go here
    BAD(.flags = CLONE_DETACHED);
    BAD(.flags = 1ull << 62);
    BAD(.flags = CLONE_SIGHAND);
    BAD(.flags = THREAD_FLAGS);  // with an exit signal
    BAD(.stack = 4096);
    BAD(.stack_size = 4096);
    BAD(.set_tid_size = 1);
    BAD(.set_tid = 4096);
    a.exit_signal = 65;
    CHECK_ERRNO(clone3_fork(&a), EINVAL);
    a.exit_signal = 1ull << 40;
    CHECK_ERRNO(clone3_fork(&a), EINVAL);
}

CASE(clone3_as_fork) {
    int fd = -1, ptid = 0;
    struct clone3_args a = {.flags = CLONE_PIDFD | CLONE_PARENT_SETTID | CLONE_CHILD_SETTID, .exit_signal = SIGCHLD,
                            .pidfd = (uint64_t)&fd, .parent_tid = (uint64_t)&ptid, .child_tid = (uint64_t)&child_tid};
    long p = CHECK_OK(clone3_fork(&a));
    if (p == 0) _exit(child_tid == tid() ? 4 : 5);
    CHECK_EQ(ptid, p);
    CHECK_OK(syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0));
    CHECK_EXIT(p, 4);
    // The first, smallest version of the structure is enough; a longer one with zeroes is fine.
    struct clone3_args v0 = {.exit_signal = SIGCHLD};
    p = CHECK_OK(syscall(SYS_clone3, &v0, 64));
    if (p == 0) _exit(6);
    CHECK_EXIT(p, 6);
    char big[200] = "";
    memcpy(big, &v0, sizeof v0);
    p = CHECK_OK(syscall(SYS_clone3, big, sizeof big));
    if (p == 0) _exit(8);
    CHECK_EXIT(p, 8);
}

MAIN
