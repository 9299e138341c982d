// build: static
// Real-time signals and queues: order, values, limits, what each sender's siginfo says, sigtimedwait.
#include "sig.h"
#include <sys/resource.h>

static long queueinfo(pid_t p, int sig, siginfo_t *info) { return syscall(SYS_rt_sigqueueinfo, p, sig, info); }
static long timedwait(sigset_t *set, siginfo_t *info, struct timespec *t) { return syscall(SYS_rt_sigtimedwait, set, info, t, 8); }

static int values[1000];
static void keep_value(int sig CHECK_USED, siginfo_t *info, void *c CHECK_USED) {
    if (hits < 1000) values[hits] = info->si_value.sival_int;
    hits++;
    last = *info;
}

CASE(rt_signals_queue_in_order) {
    handle_info(SIGRTMIN, keep_value, 0);
    block(SET(SIGRTMIN));
    for (int i = 0; i < 500; i++) CHECK_OK(sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = i}));
    CHECK_EQ(hits, 0);
    unblock(SET(SIGRTMIN));
    CHECK_EQ(hits, 500);
    for (int i = 0; i < 500; i++) CHECK_EQ(values[i], i);
}

CASE(ordinary_signals_keep_the_first) {
    handle_info(SIGUSR1, keep_value, 0);
    block(SET(SIGUSR1));
    for (int i = 0; i < 5; i++) CHECK_OK(sigqueue(getpid(), SIGUSR1, (union sigval){.sival_int = i + 10}));
    unblock(SET(SIGUSR1));
    CHECK_EQ(hits, 1);
    CHECK_EQ(values[0], 10);
}

CASE(lower_rt_numbers_come_first) {
    struct sigaction act = {.sa_sigaction = keep_info, .sa_flags = SA_SIGINFO};
    sigfillset(&act.sa_mask);
    for (int i = 0; i < 4; i++) CHECK_OK(sigaction(SIGRTMIN + i, &act, NULL));
    sigset_t all;
    sigfillset(&all);
    block(&all);
    for (int i = 0; i < 12; i++) CHECK_OK(kill(getpid(), SIGRTMIN + 3 - i % 4));
    unblock(&all);
    CHECK_EQ(hits, 12);
    for (int i = 0; i < 12; i++) CHECK_EQ(order[i], SIGRTMIN + i / 3);
}

CASE(info_of_each_sender) {
    handle_info(SIGRTMIN, keep_info, 0);
    CHECK_OK(kill(getpid(), SIGRTMIN));
    CHECK_EQ(last.si_code, SI_USER);
    CHECK_EQ(last.si_errno, 0);
    CHECK_EQ(last.si_pid, getpid());
    CHECK_EQ(last.si_uid, getuid());
    CHECK_OK(syscall(SYS_tgkill, getpid(), getpid(), SIGRTMIN));
    CHECK_EQ(last.si_code, SI_TKILL);
    CHECK_EQ(last.si_pid, getpid());
    CHECK_OK(syscall(SYS_tkill, getpid(), SIGRTMIN));
    CHECK_EQ(last.si_code, SI_TKILL);
    CHECK_OK(sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_ptr = (void *)0x123456789abc}));
    CHECK_EQ(last.si_code, SI_QUEUE);
    CHECK_EQ((long)last.si_value.sival_ptr, 0x123456789abc);
    CHECK_EQ(last.si_pid, getpid());
    // From a child, its pid.
    pid_t p = later(0, SIGRTMIN);
    CHECK_EXIT(p, 0);
    CHECK_EQ(last.si_code, SI_USER);
    CHECK_EQ(last.si_pid, p);
    CHECK_EQ(hits, 5);
}

CASE(queueinfo_passes_everything) {
    handle_info(SIGRTMIN, keep_info, 0);
    siginfo_t info;
    memset(&info, 0x5a, sizeof info);
    info.si_code = -77;
    CHECK_ERRNO(queueinfo(getpid(), SIGRTMIN, &info), E2BIG);  // of an unknown layout only 48 bytes may be used
    memset((char *)&info + 48, 0, sizeof info - 48);
    info.si_signo = 1;  // corrected
    info.si_code = -77;
    info.si_errno = 33;
    info.si_pid = 1;
    info.si_uid = 2;
    CHECK_OK(queueinfo(getpid(), SIGRTMIN, &info));
    CHECK_EQ(last.si_signo, SIGRTMIN);
    CHECK_EQ(last.si_code, -77);
    CHECK_EQ(last.si_errno, 33);
    CHECK_EQ(last.si_pid, 1);
    CHECK_EQ(last.si_uid, 2);
    CHECK_EQ((long)last.si_value.sival_ptr, 0x5a5a5a5a5a5a5a5a);
    // To oneself even the kernel's own codes are allowed.
    info.si_code = SI_USER;
    CHECK_OK(queueinfo(getpid(), SIGRTMIN, &info));
    info.si_code = SI_TKILL;
    CHECK_OK(queueinfo(getpid(), SIGRTMIN, &info));
    pid_t p = CHECK_OK(fork());
    if (p == 0)
        for (;;) pause();
    info.si_code = SI_USER;
    CHECK_ERRNO(queueinfo(p, SIGRTMIN, &info), EPERM);
    info.si_code = 5;
    CHECK_ERRNO(queueinfo(p, SIGRTMIN, &info), EPERM);
    info.si_code = SI_TKILL;
    CHECK_ERRNO(queueinfo(p, SIGRTMIN, &info), EPERM);
    info.si_code = SI_QUEUE;
    CHECK_OK(queueinfo(p, 0, &info));
    CHECK_ERRNO(queueinfo(p, 65, &info), EINVAL);
    CHECK_ERRNO(queueinfo(0x3fffffff, SIGRTMIN, &info), ESRCH);
    CHECK_ERRNO(queueinfo(p, SIGRTMIN, (void *)8), EFAULT);
    CHECK_ERRNO(syscall(SYS_rt_tgsigqueueinfo, p, 0, SIGRTMIN, &info), EINVAL);
    CHECK_ERRNO(syscall(SYS_rt_tgsigqueueinfo, -1, p, SIGRTMIN, &info), EINVAL);
    CHECK_OK(syscall(SYS_rt_tgsigqueueinfo, p, p, SIGRTMIN + 1, &info));
    CHECK_KILLED(p, SIGRTMIN + 1);
}

CASE(sigpending_limit) {
    struct rlimit l;
    CHECK_OK(getrlimit(RLIMIT_SIGPENDING, &l));
    handle_info(SIGRTMIN, keep_value, 0);
    handle(SIGRTMIN + 1, count_hit, 0);
    block(SET(SIGRTMIN, SIGRTMIN + 1, SIGUSR1));
    // Other processes of the user count too, so leave room for chance only below us.
    l.rlim_cur = 20;
    CHECK_OK(setrlimit(RLIMIT_SIGPENDING, &l));
    int n = 0;
    while (n < 100 && sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = n}) == 0) n++;
    CHECK_EQ(errno, EAGAIN);
    CHECK_LE(n, 20);
    CHECK_GE(n, 1);
    // kill still works without a queue entry, losing its information; so do ordinary signals.
    CHECK_OK(kill(getpid(), SIGRTMIN + 1));
    CHECK_OK(sigqueue(getpid(), SIGUSR1, (union sigval){0}));
    CHECK_EQ(pending(SIGRTMIN + 1), 1);
    CHECK_EQ(pending(SIGUSR1), 1);
    siginfo_t info;
    memset(&info, 0xff, sizeof info);
    CHECK_EQ(timedwait(SET(SIGUSR1), &info, NULL), SIGUSR1);
    CHECK_EQ(info.si_code, SI_USER);
    CHECK_EQ(info.si_pid, 0);
    unblock(SET(SIGRTMIN));
    CHECK_EQ(hits, n);
    for (int i = 0; i < n; i++) CHECK_EQ(values[i], i);
    // Room again.
    block(SET(SIGRTMIN));
    CHECK_OK(sigqueue(getpid(), SIGRTMIN, (union sigval){0}));
}

CASE(sigq_in_status) {
    char text[4096] = "", *at;
    block(SET(SIGRTMIN));
    for (int i = 0; i < 7; i++) CHECK_OK(sigqueue(getpid(), SIGRTMIN, (union sigval){0}));
    int fd = CHECK_OK(open("/proc/self/status", O_RDONLY));
    CHECK_GT(read(fd, text, sizeof text - 1), 0);
    CHECK((at = strstr(text, "\nSigQ:\t")) != NULL);
    CHECK_GE(atoi(at + 7), 7);
    CHECK((at = strstr(text, "\nShdPnd:\t")) != NULL);
    CHECK_EQ(strtoul(at + 9, NULL, 16), 1ul << (SIGRTMIN - 1));
    CHECK((at = strstr(text, "\nSigPnd:\t")) != NULL);
    CHECK_EQ(strtoul(at + 9, NULL, 16), 0);
    CHECK((at = strstr(text, "\nSigBlk:\t")) != NULL);
    CHECK_EQ(strtoul(at + 9, NULL, 16) >> (SIGRTMIN - 1) & 1, 1);
}

CASE(timedwait_takes_what_is_pending) {
    block(SET(SIGUSR1, SIGUSR2, SIGRTMIN));
    kill(getpid(), SIGUSR2);
    CHECK_OK(sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = 3}));
    kill(getpid(), SIGUSR1);
    siginfo_t info;
    struct timespec zero = {0, 0};
    CHECK_EQ(timedwait(SET(SIGUSR1, SIGUSR2, SIGRTMIN), &info, &zero), SIGUSR1);  // the lowest
    CHECK_EQ(info.si_signo, SIGUSR1);
    CHECK_EQ(info.si_code, SI_USER);
    CHECK_EQ(timedwait(SET(SIGUSR2, SIGRTMIN), &info, &zero), SIGUSR2);
    CHECK_EQ(timedwait(SET(SIGRTMIN), &info, NULL), SIGRTMIN);
    CHECK_EQ(info.si_value.sival_int, 3);
    CHECK_ERRNO(timedwait(SET(SIGUSR1, SIGUSR2, SIGRTMIN), &info, &zero), EAGAIN);
}

CASE(timedwait_waits) {
    block(SET(SIGUSR1));
    pid_t p = later_asleep(60, SIGUSR1);
    siginfo_t info;
    long t = now_ms();
    CHECK_EQ(timedwait(SET(SIGUSR1), &info, &(struct timespec){5, 0}), SIGUSR1);
    CHECK_GE(now_ms() - t, 40);
    CHECK_LT(now_ms() - t, 4000);
    CHECK_EQ(info.si_pid, p);
    CHECK_EXIT(p, 0);
    t = now_ms();
    CHECK_ERRNO(timedwait(SET(SIGUSR1), &info, &(struct timespec){0, 50000000}), EAGAIN);
    CHECK_GE(now_ms() - t, 49);
    CHECK_EQ(timedwait(SET(SIGUSR1), NULL, &(struct timespec){0, 0}), -1);
}

CASE(timedwait_errors_and_interruption) {
    siginfo_t info;
    CHECK_ERRNO(timedwait(SET(SIGUSR1), &info, &(struct timespec){-1, 0}), EINVAL);
    CHECK_ERRNO(timedwait(SET(SIGUSR1), &info, &(struct timespec){0, 1000000000}), EINVAL);
    CHECK_ERRNO(syscall(SYS_rt_sigtimedwait, SET(SIGUSR1), &info, NULL, 4), EINVAL);
    CHECK_ERRNO(timedwait(SET(SIGUSR1), &info, (void *)8), EFAULT);
    // A handled signal outside the set interrupts, SA_RESTART or not.
    handle(SIGUSR2, count_hit, SA_RESTART);
    block(SET(SIGUSR1));
    pid_t p = later_asleep(40, SIGUSR2);
    CHECK_ERRNO(timedwait(SET(SIGUSR1), &info, NULL), EINTR);
    CHECK_EQ(hits, 1);
    CHECK_EXIT(p, 0);
    // A signal in the set that is not blocked is taken, not handled.
    handle(SIGUSR1, count_hit, 0);
    unblock(SET(SIGUSR1));
    p = later_asleep(40, SIGUSR1);
    CHECK_EQ(timedwait(SET(SIGUSR1), &info, NULL), SIGUSR1);
    CHECK_EQ(hits, 1);
    CHECK_EXIT(p, 0);
    // SIGKILL and SIGSTOP cannot be waited for.
    CHECK_ERRNO(timedwait(SET(SIGKILL, SIGSTOP), &info, &(struct timespec){0, 1000}), EAGAIN);
}

CASE(sigwaitinfo_for_a_child) {
    block(SET(SIGCHLD));
    siginfo_t info;
    pid_t p = CHECK_OK(fork());
    if (p == 0) _exit(5);
    CHECK_EQ(sigwaitinfo(SET(SIGCHLD), &info), SIGCHLD);
    CHECK_EQ(info.si_code, CLD_EXITED);
    CHECK_EQ(info.si_status, 5);
    CHECK_EQ(info.si_pid, p);
    CHECK_EQ(info.si_uid, getuid());
    CHECK_EXIT(p, 5);
    p = CHECK_OK(fork());
    if (p == 0) {
        volatile int *null = (int *)16;
        *null = 1;
    }
    CHECK_EQ(sigwaitinfo(SET(SIGCHLD), &info), SIGCHLD);
    CHECK(info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED);
    CHECK_EQ(info.si_status, SIGSEGV);
    CHECK_KILLED(p, SIGSEGV);
}

CASE(siginfo_size_and_padding) {
    // The unused rest of the 128 bytes is zero when it reaches user space.
    block(SET(SIGRTMIN));
    kill(getpid(), SIGRTMIN);
    unsigned char raw[128];
    memset(raw, 0xff, sizeof raw);
    CHECK_EQ(timedwait(SET(SIGRTMIN), (siginfo_t *)raw, NULL), SIGRTMIN);
    for (int i = 24; i < 128; i++) CHECK_EQ(raw[i], 0);
}

MAIN
