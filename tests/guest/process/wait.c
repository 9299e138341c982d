// build: static
// wait4 and waitid: every target, every option, siginfo, usage, and the errno table. Stops are in wait_stop.c.
#include "clone.h"
#include <sys/resource.h>

static long raw_waitid(int which, pid_t id, siginfo_t *info, int options, struct rusage *use) {
    return syscall(SYS_waitid, which, id, info, options, use);
}
static long raw_wait4(pid_t p, int *status, int options, struct rusage *use) { return syscall(SYS_wait4, p, status, options, use); }

static pid_t child_exiting(int code) {
    pid_t p = CHECK_OK(fork());
    if (p == 0) _exit(code);
    return p;
}
// A child that lives until it is killed.
static pid_t child_sleeping(void) {
    pid_t p = CHECK_OK(fork());
    if (p == 0)
        for (;;) pause();
    return p;
}
static void end(pid_t p) {
    CHECK_OK(kill(p, SIGKILL));
    CHECK_KILLED(p, SIGKILL);
}

CASE(no_children) {
    siginfo_t info;
    int status;
    CHECK_ERRNO(raw_wait4(-1, &status, 0, NULL), ECHILD);
    CHECK_ERRNO(raw_wait4(-1, &status, WNOHANG, NULL), ECHILD);
    CHECK_ERRNO(raw_wait4(0, NULL, 0, NULL), ECHILD);
    CHECK_ERRNO(raw_wait4(pid(), NULL, 0, NULL), ECHILD);
    CHECK_ERRNO(raw_wait4(ppid(), NULL, 0, NULL), ECHILD);
    CHECK_ERRNO(raw_wait4(1, NULL, 0, NULL), ECHILD);
    CHECK_ERRNO(raw_wait4(-pid(), NULL, 0, NULL), ECHILD);
    CHECK_ERRNO(raw_waitid(P_ALL, 0, &info, WEXITED, NULL), ECHILD);
    CHECK_ERRNO(raw_waitid(P_PID, pid(), &info, WEXITED, NULL), ECHILD);
    CHECK_ERRNO(raw_waitid(P_PGID, getpgrp(), &info, WEXITED | WNOHANG, NULL), ECHILD);
}

CASE(errno_table) {
    pid_t p = child_sleeping();
    siginfo_t info;
    CHECK_ERRNO(raw_wait4(-1, NULL, 0x100, NULL), EINVAL);
    CHECK_ERRNO(raw_wait4(-1, NULL, WEXITED, NULL), EINVAL);  // not an option of wait4
    CHECK_ERRNO(raw_wait4(-1, NULL, WNOWAIT, NULL), EINVAL);
    CHECK_ERRNO(raw_wait4(INT_MIN, NULL, WNOHANG, NULL), ESRCH);
    CHECK_ERRNO(raw_waitid(P_ALL, 0, &info, 0, NULL), EINVAL);
    CHECK_ERRNO(raw_waitid(P_ALL, 0, &info, WNOHANG, NULL), EINVAL);
    CHECK_ERRNO(raw_waitid(P_ALL, 0, &info, WEXITED | 0x100, NULL), EINVAL);
    CHECK_ERRNO(raw_waitid(99, 0, &info, WEXITED, NULL), EINVAL);
    CHECK_ERRNO(raw_waitid(P_PID, 0, &info, WEXITED, NULL), EINVAL);
    CHECK_ERRNO(raw_waitid(P_PID, -1, &info, WEXITED, NULL), EINVAL);
    CHECK_ERRNO(raw_waitid(P_PGID, -1, &info, WEXITED, NULL), EINVAL);
    CHECK_ERRNO(raw_waitid(P_PIDFD, -1, &info, WEXITED, NULL), EINVAL);
    CHECK_ERRNO(raw_waitid(P_PIDFD, 999, &info, WEXITED, NULL), EBADF);
    CHECK_ERRNO(raw_waitid(P_PIDFD, CHECK_FD, &info, WEXITED, NULL), EBADF);
    end(p);
}

CASE(targets_of_wait4) {
    int status;
    pid_t a = child_exiting(1), b = child_exiting(2), c = child_exiting(3);
    CHECK_EQ(raw_wait4(b, &status, 0, NULL), b);
    CHECK_EQ(status, 0x200);
    pid_t got = CHECK_OK(raw_wait4(0, &status, 0, NULL));  // same process group
    CHECK(got == a || got == c);
    CHECK_EQ(raw_wait4(-getpgrp(), &status, 0, NULL), a + c - got);
    CHECK_ERRNO(raw_wait4(-1, &status, 0, NULL), ECHILD);
    // A child in another group is only found there.
    pid_t d = child_sleeping();
    CHECK_OK(setpgid(d, d));
    CHECK_ERRNO(raw_wait4(0, NULL, WNOHANG, NULL), ECHILD);
    CHECK_EQ(raw_wait4(-d, NULL, WNOHANG, NULL), 0);
    CHECK_EQ(raw_wait4(-1, NULL, WNOHANG, NULL), 0);
    CHECK_OK(kill(d, SIGKILL));
    CHECK_EQ(raw_wait4(-d, &status, 0, NULL), d);
    CHECK_EQ(status, SIGKILL);
}

CASE(targets_of_waitid) {
    siginfo_t info;
    pid_t a = child_exiting(1), b = child_exiting(2), c = child_exiting(3);
    CHECK_OK(raw_waitid(P_PID, c, &info, WEXITED, NULL));
    CHECK_EQ(info.si_pid, c);
    CHECK_OK(raw_waitid(P_PGID, getpgrp(), &info, WEXITED, NULL));
    pid_t got = info.si_pid;
    CHECK(got == a || got == b);
    CHECK_OK(raw_waitid(P_PGID, 0, &info, WEXITED, NULL));  // since 5.4: the caller's group
    CHECK_EQ(info.si_pid, a + b - got);
    pid_t d = child_exiting(4);
    int fd = CHECK_OK(syscall(SYS_pidfd_open, d, 0));
    CHECK_OK(raw_waitid(P_PIDFD, fd, &info, WEXITED, NULL));
    CHECK_EQ(info.si_pid, d);
    CHECK_EQ(info.si_status, 4);
    CHECK_ERRNO(raw_waitid(P_PIDFD, fd, &info, WEXITED, NULL), ECHILD);
}

CASE(siginfo_of_an_exit) {
    siginfo_t info;
    memset(&info, 0xff, sizeof info);
    pid_t p = child_exiting(0x1ff);
    CHECK_EQ(raw_waitid(P_ALL, 0, &info, WEXITED, NULL), 0);
    CHECK_EQ(info.si_signo, SIGCHLD);
    CHECK_EQ(info.si_code, CLD_EXITED);
    CHECK_EQ(info.si_errno, 0);
    CHECK_EQ(info.si_pid, p);
    CHECK_EQ(info.si_uid, getuid());
    CHECK_EQ(info.si_status, 0xff);
}

CASE(siginfo_of_a_kill) {
    siginfo_t info;
    pid_t p = child_sleeping();
    CHECK_OK(kill(p, SIGTERM));
    CHECK_OK(raw_waitid(P_PID, p, &info, WEXITED, NULL));
    CHECK_EQ(info.si_code, CLD_KILLED);
    CHECK_EQ(info.si_status, SIGTERM);
    CHECK_EQ(info.si_pid, p);
}

CASE(nohang_leaves_zeroes) {
    siginfo_t info;
    pid_t p = child_sleeping();
    memset(&info, 0xff, sizeof info);
    CHECK_EQ(raw_waitid(P_PID, p, &info, WEXITED | WNOHANG, NULL), 0);
    CHECK_EQ(info.si_signo, 0);
    CHECK_EQ(info.si_pid, 0);
    int status = 0x5555;
    CHECK_EQ(raw_wait4(p, &status, WNOHANG, NULL), 0);
    CHECK_EQ(status, 0x5555);
    end(p);
}

CASE(nowait_leaves_the_zombie) {
    siginfo_t info;
    pid_t p = child_exiting(6);
    for (int i = 0; i < 3; i++) {
        memset(&info, 0, sizeof info);
        CHECK_OK(raw_waitid(P_PID, p, &info, WEXITED | WNOWAIT, NULL));
        CHECK_EQ(info.si_pid, p);
        CHECK_EQ(info.si_status, 6);
        CHECK_OK(kill(p, 0));
        CHECK_EQ(stat_field(p, 3), 'Z');
    }
    CHECK_EXIT(p, 6);
    CHECK_ERRNO(kill(p, 0), ESRCH);
    CHECK_EQ(stat_field(p, 3), -1);
}

CASE(null_pointers_are_fine) {
    child_exiting(1);
    CHECK_GT(raw_wait4(-1, NULL, 0, NULL), 0);
    child_exiting(1);
    // The raw call returns 0; all that is lost is the information.
    CHECK_EQ(raw_waitid(P_ALL, 0, NULL, WEXITED, NULL), 0);
    CHECK_ERRNO(raw_wait4(-1, NULL, 0, NULL), ECHILD);
}

CASE(wait_blocks_until_the_exit) {
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        sleep_ms(80);
        _exit(0);
    }
    CHECK_EXIT(p, 0);
    clock_gettime(CLOCK_MONOTONIC, &b);
    CHECK_GE((b.tv_sec - a.tv_sec) * 1000000000 + b.tv_nsec - a.tv_nsec, 75000000);
}

CASE(usage_of_a_child) {
    struct rusage use, before, after;
    siginfo_t info;
    CHECK_OK(getrusage(RUSAGE_CHILDREN, &before));
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        struct timespec t;
        do clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        while (t.tv_nsec < 60000000 && t.tv_sec == 0);
        _exit(0);
    }
    memset(&use, 0xff, sizeof use);
    CHECK_OK(raw_waitid(P_PID, p, &info, WEXITED | WNOWAIT, &use));
    long us = (use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000000 + use.ru_utime.tv_usec + use.ru_stime.tv_usec;
    CHECK_GE(us, 40000);
    CHECK_LT(us, 5000000);
    CHECK_GT(use.ru_maxrss, 0);
    // RUSAGE_CHILDREN counts only what was reaped.
    CHECK_OK(getrusage(RUSAGE_CHILDREN, &after));
    CHECK_EQ(after.ru_utime.tv_usec, before.ru_utime.tv_usec);
    CHECK_EQ(raw_wait4(p, NULL, 0, &use), p);
    CHECK_OK(getrusage(RUSAGE_CHILDREN, &after));
    us = (after.ru_utime.tv_sec - before.ru_utime.tv_sec + after.ru_stime.tv_sec - before.ru_stime.tv_sec) * 1000000 +
         after.ru_utime.tv_usec - before.ru_utime.tv_usec + after.ru_stime.tv_usec - before.ru_stime.tv_usec;
    CHECK_GE(us, 40000);
}

static int never(void *arg CHECK_USED) {
    for (;;) syscall(SYS_pause);
    return 0;
}
static pid_t thread_child;
static int fork_one(void *arg CHECK_USED) {
    thread_child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (thread_child == 0) syscall(SYS_exit, 0);
    for (;;) syscall(SYS_pause);
    return 0;
}

CASE(wnothread_sees_only_its_own) {
    CHECK_GT(CLONE(THREAD_FLAGS, new_stack(), NULL, NULL, 0, fork_one, 0), 0);
    for (int i = 0; i < 500 && !__atomic_load_n(&thread_child, __ATOMIC_ACQUIRE); i++) sleep_ms(2);
    CHECK_GT(thread_child, 0);
    CHECK_ERRNO(raw_wait4(-1, NULL, __WNOTHREAD, NULL), ECHILD);
    CHECK_EQ(raw_wait4(-1, NULL, 0, NULL), thread_child);
    CHECK_GT(CLONE(THREAD_FLAGS, new_stack(), NULL, NULL, 0, never, 0), 0);
}

CASE(exits_are_collected_in_any_order) {
    pid_t p[30];
    int seen[30] = {0};
    for (int i = 0; i < 30; i++) p[i] = child_exiting(i);
    for (int i = 0; i < 30; i++) {
        int status;
        pid_t got = CHECK_OK(wait(&status));
        int k = WEXITSTATUS(status);
        CHECK_LT(k, 30);
        CHECK_EQ(p[k], got);
        CHECK_EQ(seen[k]++, 0);
    }
}

static volatile int chld;
static void on_chld(int sig CHECK_USED) { chld++; }

CASE(wait_is_interrupted_or_restarted) {
    struct sigaction act = {.sa_handler = on_chld};
    sigaction(SIGUSR1, &act, NULL);
    pid_t me = pid(), p = CHECK_OK(fork());
    if (p == 0) {
        sleep_ms(50);
        kill(me, SIGUSR1);
        sleep_ms(100);
        _exit(1);
    }
    CHECK_ERRNO(raw_wait4(p, NULL, 0, NULL), EINTR);
    CHECK_EQ(chld, 1);
    CHECK_EXIT(p, 1);
    act.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &act, NULL);
    p = CHECK_OK(fork());
    if (p == 0) {
        sleep_ms(50);
        kill(me, SIGUSR1);
        sleep_ms(50);
        _exit(2);
    }
    int status;
    CHECK_EQ(raw_wait4(p, &status, 0, NULL), p);
    CHECK_EQ(chld, 2);
    CHECK_EQ(status, 0x200);
}

CASE(ignored_sigchld_reaps_by_itself) {
    signal(SIGCHLD, SIG_IGN);
    pid_t p = child_exiting(1);
    // wait blocks until the last child has gone, then says ECHILD.
    CHECK_ERRNO(raw_wait4(-1, NULL, 0, NULL), ECHILD);
    // It is no child any more at once, and gone a moment later.
    for (int i = 0; i < 1000 && kill(p, 0) == 0; i++) sleep_ms(2);
    CHECK_ERRNO(kill(p, 0), ESRCH);
    struct sigaction act = {.sa_handler = on_chld, .sa_flags = SA_NOCLDWAIT};
    sigaction(SIGCHLD, &act, NULL);
    chld = 0;
    p = child_exiting(1);
    while (raw_wait4(p, NULL, 0, NULL) == -1 && errno == EINTR) {}
    CHECK_EQ(errno, ECHILD);
    CHECK_EQ(chld, 1);  // the signal comes all the same
    // A zombie made before the signal was ignored stays.
    signal(SIGCHLD, SIG_DFL);
    p = child_exiting(7);
    wait_for_state(p, 'Z');
    signal(SIGCHLD, SIG_IGN);
    CHECK_EXIT(p, 7);
}

MAIN
