// build: static
// Actions, masks, pending signals, the SA_* flags, default actions, and the errors of the calls.
#include "sig.h"

static long raw_sigaction(int sig, void *new, void *old, size_t size) { return syscall(SYS_rt_sigaction, sig, new, old, size); }

CASE(delivery_is_immediate) {
    handle(SIGUSR1, count_hit, 0);
    for (int i = 1; i <= 50; i++) {
        CHECK_OK(kill(getpid(), SIGUSR1));
        CHECK_EQ(hits, i);  // before kill returns
    }
    CHECK_EQ(raise(SIGUSR1), 0);
    CHECK_EQ(hits, 51);
}

CASE(every_signal_can_be_handled) {
    for (int sig = 1; sig < 65; sig++) {
        if (sig == SIGKILL || sig == SIGSTOP || sig == 32 || sig == 33) continue;
        hits = 0;
        handle_info(sig, keep_info, 0);
        CHECK_OK(kill(getpid(), sig));
        CHECK_EQ(hits, 1);
        CHECK_EQ(order[0], sig);
        CHECK_EQ(last.si_signo, sig);
        CHECK_EQ(last.si_code, SI_USER);
        CHECK_EQ(last.si_pid, getpid());
        CHECK_EQ(last.si_uid, getuid());
    }
}

CASE(kill_and_stop_cannot_be_changed) {
    struct sigaction act = {.sa_handler = SIG_IGN}, old;
    for (int i = 0; i < 2; i++) {
        int sig = i ? SIGKILL : SIGSTOP;
        CHECK_ERRNO(sigaction(sig, &act, NULL), EINVAL);
        CHECK_OK(sigaction(sig, NULL, &old));
        CHECK(old.sa_handler == SIG_DFL);
    }
    // In a mask they are dropped without an error.
    sigset_t set;
    sigfillset(&set);
    CHECK_OK(sigprocmask(SIG_SETMASK, &set, NULL));
    CHECK_EQ(blocked(SIGKILL), 0);
    CHECK_EQ(blocked(SIGSTOP), 0);
    CHECK_EQ(blocked(SIGTERM), 1);
    pid_t p = CHECK_OK(fork());
    if (p == 0)
        for (;;) pause();
    CHECK_OK(kill(p, SIGKILL));
    CHECK_KILLED(p, SIGKILL);
}

CASE(sigaction_errors_and_round_trip) {
    char act[32] = "", old[32];
    CHECK_ERRNO(raw_sigaction(0, act, NULL, 8), EINVAL);
    CHECK_ERRNO(raw_sigaction(65, act, NULL, 8), EINVAL);
    CHECK_ERRNO(raw_sigaction(-1, act, NULL, 8), EINVAL);
    CHECK_ERRNO(raw_sigaction(SIGUSR1, act, NULL, 4), EINVAL);
    CHECK_ERRNO(raw_sigaction(SIGUSR1, act, NULL, 16), EINVAL);
    CHECK_ERRNO(raw_sigaction(SIGKILL, act, NULL, 8), EINVAL);
    CHECK_OK(raw_sigaction(SIGKILL, NULL, old, 8));
    unsigned long in[4] = {0x1234567, SA_RESTART | SA_SIGINFO | 0x04000000, 0x7654321, 0xf0f0f0f0f0f0f0f0}, out[4];
    CHECK_OK(raw_sigaction(SIGUSR1, in, NULL, 8));
    CHECK_OK(raw_sigaction(SIGUSR1, NULL, out, 8));
    CHECK_EQ(out[0], in[0]);
    CHECK_EQ(out[1], in[1]);
    CHECK_EQ(out[2], in[2]);
    CHECK_EQ(out[3], in[3] & ~(1ul << (SIGKILL - 1) | 1ul << (SIGSTOP - 1)));
}

CASE(mask_calls) {
    unsigned long a = 0x0200, old = 0;
#define MASK(HOW, NEW, OLD, SIZE) syscall(SYS_rt_sigprocmask, HOW, NEW, OLD, SIZE)
    CHECK_OK(MASK(SIG_SETMASK, &a, NULL, 8));
    CHECK_OK(MASK(SIG_BLOCK, NULL, &old, 8));
    CHECK_EQ(old, 0x200);
    a = 0x800;
    CHECK_OK(MASK(SIG_BLOCK, &a, &old, 8));
    CHECK_EQ(old, 0x200);
    a = 0x200;
    CHECK_OK(MASK(SIG_UNBLOCK, &a, &old, 8));
    CHECK_EQ(old, 0xa00);
    CHECK_OK(MASK(99, NULL, &old, 8));  // `how` does not matter without a set
    CHECK_EQ(old, 0x800);
    CHECK_ERRNO(MASK(99, &a, NULL, 8), EINVAL);
    CHECK_ERRNO(MASK(SIG_BLOCK, &a, NULL, 4), EINVAL);
    CHECK_ERRNO(syscall(SYS_rt_sigpending, &a, 9), EINVAL);
    CHECK_ERRNO(syscall(SYS_rt_sigsuspend, &a, 4), EINVAL);
}

CASE(blocked_signals_wait) {
    handle(SIGUSR1, count_hit, 0);
    block(SET(SIGUSR1));
    for (int i = 0; i < 5; i++) CHECK_OK(kill(getpid(), SIGUSR1));
    CHECK_EQ(hits, 0);
    CHECK_EQ(pending(SIGUSR1), 1);
    unblock(SET(SIGUSR1));
    CHECK_EQ(hits, 1);  // an ordinary signal is pending once only
    CHECK_EQ(pending(SIGUSR1), 0);
}

CASE(ignoring_discards_what_is_pending) {
    block(SET(SIGUSR1, SIGCHLD));
    handle(SIGCHLD, count_hit, 0);
    raise(SIGUSR1);
    kill(getpid(), SIGCHLD);
    CHECK_EQ(pending(SIGUSR1) + pending(SIGCHLD), 2);
    signal(SIGUSR1, SIG_IGN);
    CHECK_EQ(pending(SIGUSR1), 0);
    signal(SIGCHLD, SIG_DFL);  // its default is to be ignored
    CHECK_EQ(pending(SIGCHLD), 0);
    // A signal ignored when it comes is dropped, unless it is blocked.
    unblock(SET(SIGUSR1));
    raise(SIGUSR1);
    handle(SIGUSR1, count_hit, 0);
    CHECK_EQ(hits, 0);
    block(SET(SIGUSR1));
    signal(SIGUSR1, SIG_IGN);
    raise(SIGUSR1);
    CHECK_EQ(pending(SIGUSR1), 1);
    handle(SIGUSR1, count_hit, 0);
    unblock(SET(SIGUSR1));
    CHECK_EQ(hits, 1);
}

static int masked_inside[3];
static void look_at_mask(int sig CHECK_USED) {
    masked_inside[0] = blocked(SIGUSR1);
    masked_inside[1] = blocked(SIGUSR2);
    masked_inside[2] = blocked(SIGTERM);
    hits++;
}

CASE(mask_during_a_handler) {
    struct sigaction act = {.sa_handler = look_at_mask};
    sigaddset(&act.sa_mask, SIGUSR2);
    CHECK_OK(sigaction(SIGUSR1, &act, NULL));
    raise(SIGUSR1);
    CHECK(masked_inside[0] && masked_inside[1] && !masked_inside[2]);
    CHECK_EQ(blocked(SIGUSR1) | blocked(SIGUSR2), 0);
    act.sa_flags = SA_NODEFER;
    CHECK_OK(sigaction(SIGUSR1, &act, NULL));
    raise(SIGUSR1);
    CHECK(!masked_inside[0] && masked_inside[1]);
}

static volatile int depth, deepest;  // volatile: libc declares raise() a leaf
static void reenter(int sig) {
    if (++depth > deepest) deepest = depth;
    if (hits++ < 10) raise(sig);
    depth--;
}

CASE(nodefer_nests_and_default_does_not) {
    handle(SIGUSR1, reenter, 0);
    raise(SIGUSR1);
    CHECK_EQ(deepest, 1);
    CHECK_EQ(hits, 11);
    hits = deepest = 0;
    handle(SIGUSR1, reenter, SA_NODEFER);
    raise(SIGUSR1);
    CHECK_EQ(deepest, 11);
}

CASE(resethand) {
    struct sigaction act;
    handle(SIGUSR1, count_hit, SA_RESETHAND);
    raise(SIGUSR1);
    CHECK_EQ(hits, 1);
    CHECK_OK(sigaction(SIGUSR1, NULL, &act));
    CHECK(act.sa_handler == SIG_DFL);
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        raise(SIGUSR1);
        _exit(0);
    }
    CHECK_KILLED(p, SIGUSR1);
}

CASE(default_actions) {
    // Ignored by default; the rest terminates (process/fork.c) or stops (process/wait_stop.c).
    static const int ignored[] = {SIGCHLD, SIGURG, SIGWINCH, SIGCONT};
    for (int i = 0; i < 4; i++) CHECK_OK(kill(getpid(), ignored[i]));
}

CASE(core_bit_of_the_status) {
    // With a core limit of zero, and no core pattern to a pipe, the bit stays clear; never set for plain terminations.
    static const int cores[] = {SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGXCPU, SIGXFSZ, SIGSYS};
    for (unsigned i = 0; i < sizeof cores / sizeof *cores + 1; i++) {
        int sig = i ? cores[i - 1] : SIGTERM, status;
        pid_t p = CHECK_OK(fork());
        if (p == 0) {
            CHECK_OK(chdir("/proc"));  // no file can be made here
            kill(getpid(), sig);
            _exit(0);
        }
        siginfo_t info;
        CHECK_OK(waitid(P_PID, p, &info, WEXITED | WNOWAIT));
        CHECK_EQ(waitpid(p, &status, 0), p);
        CHECK_EQ(WTERMSIG(status), sig);
        CHECK_EQ(info.si_status, sig);
        CHECK_EQ(info.si_code, WCOREDUMP(status) ? CLD_DUMPED : CLD_KILLED);
        if (sig == SIGTERM) CHECK_EQ(status, SIGTERM);
    }
}

CASE(sigpipe) {
    int fds[2];
    CHECK_OK(pipe(fds));
    close(fds[0]);
    handle_info(SIGPIPE, keep_info, 0);
    CHECK_ERRNO(write(fds[1], "x", 1), EPIPE);
    CHECK_EQ(hits, 1);
    CHECK_EQ(last.si_code, SI_USER);  // as if by kill from oneself
    CHECK_EQ(last.si_pid, getpid());
    signal(SIGPIPE, SIG_IGN);
    CHECK_ERRNO(write(fds[1], "x", 1), EPIPE);
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        signal(SIGPIPE, SIG_DFL);
        write(fds[1], "x", 1);
        _exit(0);
    }
    CHECK_KILLED(p, SIGPIPE);
}

CASE(kill_errors) {
    CHECK_ERRNO(kill(getpid(), -1), EINVAL);
    CHECK_ERRNO(kill(getpid(), 65), EINVAL);
    CHECK_ERRNO(kill(0x3fffffff, 0), ESRCH);
    CHECK_ERRNO(kill(-0x3fffffff, 0), ESRCH);
    CHECK_ERRNO(kill(INT_MIN, 0), ESRCH);
    CHECK_ERRNO(kill(0x3fffffff, 99), ESRCH);  // looked up first
    CHECK_OK(kill(getpid(), 0));
    CHECK_OK(kill(-1, 0));  // there is always somebody else
    CHECK_OK(kill(0, 0));
}

CASE(kill_everybody_as_a_user_of_its_own) {
    NEED_ROOT();
    // Nobody else runs as this user, so kill(-1) may be tried: it spares the caller.
    enum { USER = 54321 };
    int fds[2];
    CHECK_OK(pipe(fds));
    pid_t p[3];
    for (int i = 0; i < 3; i++) {
        p[i] = CHECK_OK(fork());
        if (p[i] == 0) {
            CHECK_OK(syscall(SYS_setresuid, USER, USER, USER));
            CHECK_EQ(write(fds[1], "r", 1), 1);
            for (;;) pause();
        }
        char c;
        CHECK_EQ(read(fds[0], &c, 1), 1);
    }
    IN_CHILD({
        unsigned h[2] = {0x20080522, 0}, d[6];
        CHECK_OK(syscall(SYS_setresuid, USER, USER, USER));
        CHECK_OK(syscall(SYS_capget, h, d));
        CHECK_EQ(geteuid(), USER);
        CHECK_EQ(d[0] | d[3], 0);
        CHECK_OK(kill(-1, SIGTERM));
    });
    for (int i = 0; i < 3; i++) CHECK_KILLED(p[i], SIGTERM);
    IN_CHILD({
        CHECK_OK(syscall(SYS_setresuid, USER, USER, USER));
        CHECK_OK(kill(-1, 0));  // being refused by all is no error
    });
}

CASE(handler_in_a_forked_child) {
    handle(SIGUSR1, count_hit, 0);
    IN_CHILD({
        raise(SIGUSR1);
        CHECK_EQ(hits, 1);
    });
    CHECK_EQ(hits, 0);
}

// Six signals pending at once, then unblocked together.
static void pend_six(int mask_all) {
    int sigs[] = {SIGTERM, SIGUSR2, SIGHUP, SIGRTMIN + 3, SIGUSR1, SIGRTMIN};
    sigset_t all;
    for (int i = 0; i < 6; i++) {
        struct sigaction act = {.sa_sigaction = keep_info, .sa_flags = SA_SIGINFO};
        if (mask_all) sigfillset(&act.sa_mask);
        CHECK_OK(sigaction(sigs[i], &act, NULL));
    }
    sigfillset(&all);
    block(&all);
    for (int i = 0; i < 6; i++) CHECK_OK(kill(getpid(), sigs[i]));
    unblock(&all);
    CHECK_EQ(hits, 6);
}

CASE(pending_signals_one_by_one) {
    // Each handler masks all: the next is taken at its sigreturn. Lowest number first.
    pend_six(1);
    int want[] = {SIGHUP, SIGUSR1, SIGUSR2, SIGTERM, SIGRTMIN, SIGRTMIN + 3};
    for (int i = 0; i < 6; i++) CHECK_EQ(order[i], want[i]);
}

CASE(pending_signals_stack_their_frames) {
    // Nothing masked: all frames are pushed, lowest number first, before any handler runs; the last one pushed runs first.
    pend_six(0);
    int want[] = {SIGRTMIN + 3, SIGRTMIN, SIGTERM, SIGUSR2, SIGUSR1, SIGHUP};
    for (int i = 0; i < 6; i++) CHECK_EQ(order[i], want[i]);
}

MAIN
