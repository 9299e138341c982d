// build: static
// run: alone
// getrlimit, setrlimit, prlimit64: rules, inheritance, and the limits that bite on processes and files.
#include "clone.h"
#include <sys/resource.h>

static long raw_prlimit(pid_t p, int what, const struct rlimit *new, struct rlimit *old) {
    return syscall(SYS_prlimit64, p, what, new, old);
}

CASE(all_can_be_read) {
    for (int i = 0; i < 16; i++) {
        struct rlimit a = {1, 0}, b = {1, 0};
        CHECK_OK(syscall(SYS_getrlimit, i, &a));
        CHECK_OK(raw_prlimit(0, i, NULL, &b));
        CHECK_EQ(a.rlim_cur, b.rlim_cur);
        CHECK_EQ(a.rlim_max, b.rlim_max);
        CHECK(a.rlim_cur <= a.rlim_max);
    }
    struct rlimit l;
    CHECK_ERRNO(syscall(SYS_getrlimit, 16, &l), EINVAL);
    CHECK_ERRNO(syscall(SYS_getrlimit, -1, &l), EINVAL);
    CHECK_ERRNO(raw_prlimit(0, 16, NULL, &l), EINVAL);
    CHECK_ERRNO(raw_prlimit(0x3fffffff, 0, NULL, &l), ESRCH);
    CHECK_ERRNO(raw_prlimit(0, 0, (void *)8, NULL), EFAULT);
    CHECK_ERRNO(raw_prlimit(0, 0, NULL, (void *)8), EFAULT);
    CHECK_OK(raw_prlimit(0, 0, NULL, NULL));
}

CASE(soft_within_hard) {
    struct rlimit l, got;
    CHECK_OK(getrlimit(RLIMIT_NOFILE, &l));
    struct rlimit low = {l.rlim_cur / 2, l.rlim_max};
    CHECK_OK(setrlimit(RLIMIT_NOFILE, &low));
    CHECK_OK(getrlimit(RLIMIT_NOFILE, &got));
    CHECK_EQ(got.rlim_cur, l.rlim_cur / 2);
    CHECK_OK(setrlimit(RLIMIT_NOFILE, &l));  // up again, to the hard limit at most
    struct rlimit bad = {l.rlim_max, l.rlim_max - 1};
    CHECK_ERRNO(setrlimit(RLIMIT_NOFILE, &bad), EINVAL);
    // prlimit gives the old one and sets the new one.
    CHECK_OK(raw_prlimit(pid(), RLIMIT_NOFILE, &low, &got));
    CHECK_EQ(got.rlim_cur, l.rlim_cur);
    CHECK_OK(getrlimit(RLIMIT_NOFILE, &got));
    CHECK_EQ(got.rlim_cur, low.rlim_cur);
}

CASE(hard_goes_down_only_for_users) {
    NEED_USER();
    struct rlimit l;
    CHECK_OK(getrlimit(RLIMIT_CORE, &l));
    struct rlimit low = {0, 4096};
    CHECK_OK(setrlimit(RLIMIT_CORE, &low));
    low.rlim_max = 4097;
    CHECK_ERRNO(setrlimit(RLIMIT_CORE, &low), EPERM);
    low.rlim_max = 4096;
    CHECK_OK(setrlimit(RLIMIT_CORE, &low));
    if (foreign_init()) CHECK_ERRNO(raw_prlimit(1, RLIMIT_CORE, NULL, &l), EPERM);
}

CASE(root_raises_hard_limits) {
    if (!has_cap(24)) SKIP("needs CAP_SYS_RESOURCE");
    struct rlimit low = {0, 4096}, high = {RLIM_INFINITY, RLIM_INFINITY}, got;
    CHECK_OK(setrlimit(RLIMIT_CORE, &low));
    CHECK_OK(setrlimit(RLIMIT_CORE, &high));
    CHECK_OK(getrlimit(RLIMIT_CORE, &got));
    CHECK(got.rlim_max == RLIM_INFINITY);
    // NOFILE has a ceiling of its own, fs.nr_open.
    high.rlim_cur = high.rlim_max = 1ul << 40;
    CHECK_ERRNO(setrlimit(RLIMIT_NOFILE, &high), EPERM);
}

CASE(of_another_process) {
    pid_t p = CHECK_OK(fork());
    if (p == 0)
        for (;;) pause();
    struct rlimit low = {77, 100}, got;
    CHECK_OK(raw_prlimit(p, RLIMIT_CORE, &low, NULL));
    CHECK_OK(raw_prlimit(p, RLIMIT_CORE, NULL, &got));
    CHECK_EQ(got.rlim_cur, 77);
    CHECK_EQ(got.rlim_max, 100);
    CHECK_OK(getrlimit(RLIMIT_CORE, &got));
    CHECK_NE(got.rlim_cur, 77);
    CHECK_OK(kill(p, SIGKILL));
    CHECK_KILLED(p, SIGKILL);
}

HELPER(core_limit) {
    struct rlimit got;
    CHECK_OK(getrlimit(RLIMIT_CORE, &got));
    CHECK_EQ(got.rlim_cur, 1234);
    CHECK_EQ(got.rlim_max, 5678);
}

CASE(inherited_by_fork_and_exec) {
    struct rlimit l = {1234, 5678};
    CHECK_OK(setrlimit(RLIMIT_CORE, &l));
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        execl(check_self, "x", "@core_limit", NULL);
        FAIL("exec");
    }
    CHECK_EXIT(p, 0);
    // /proc/PID/limits tells the same.
    char text[4096] = "", *at;
    int fd = CHECK_OK(open("/proc/self/limits", O_RDONLY));
    CHECK_GT(read(fd, text, sizeof text - 1), 0);
    CHECK((at = strstr(text, "Max core file size")) != NULL);
    long a = 0, b = 0;
    CHECK_EQ(sscanf(at, "Max core file size %ld %ld bytes", &a, &b), 2);
    CHECK_EQ(a, 1234);
    CHECK_EQ(b, 5678);
}

CASE(nofile_bites) {
    struct rlimit l;
    CHECK_OK(getrlimit(RLIMIT_NOFILE, &l));
    int high = CHECK_OK(dup2(0, 150));
    l.rlim_cur = 64;
    CHECK_OK(setrlimit(RLIMIT_NOFILE, &l));
    int n = 0, fd;
    while ((fd = dup(0)) != -1) {
        CHECK_LT(fd, 64);
        n++;
        CHECK_LT(n, 65);
    }
    CHECK_EQ(errno, EMFILE);
    CHECK_ERRNO(open("/", O_RDONLY), EMFILE);
    CHECK_ERRNO(dup2(0, 64), EBADF);
    CHECK_ERRNO(fcntl(0, F_DUPFD, 64), EINVAL);
    CHECK_ERRNO(fcntl(0, F_DUPFD, 10), EMFILE);
    int fds[2];
    CHECK_OK(close(20));
    CHECK_ERRNO(pipe(fds), EMFILE);
    CHECK_EQ(dup(0), 20);
    // What is open above the limit stays open.
    CHECK_OK(fcntl(high, F_GETFD));
    CHECK_OK(close(high));
    CHECK_ERRNO(poll((struct pollfd *)(void *)fds, 65, 0), EINVAL);
}

CASE(fsize_bites) {
    struct rlimit l = {1000, RLIM_INFINITY};
    getrlimit(RLIMIT_FSIZE, &l);
    l.rlim_cur = 1000;
    int fd = CHECK_OK(open(TMP("f"), O_RDWR | O_CREAT, 0600));
    CHECK_OK(setrlimit(RLIMIT_FSIZE, &l));
    signal(SIGXFSZ, SIG_IGN);
    char text[600] = "";
    CHECK_EQ(write(fd, text, 600), 600);
    CHECK_EQ(write(fd, text, 600), 400);  // up to the limit
    CHECK_ERRNO(write(fd, text, 1), EFBIG);
    CHECK_ERRNO(ftruncate(fd, 1001), EFBIG);
    CHECK_ERRNO(pwrite(fd, text, 1, 5000), EFBIG);
    CHECK_EQ(pwrite(fd, text, 1, 999), 1);
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        signal(SIGXFSZ, SIG_DFL);
        write(fd, text, 1);
        _exit(0);
    }
    CHECK_KILLED(p, SIGXFSZ);
    int fds[2];
    CHECK_OK(pipe(fds));
    for (int i = 0; i < 5; i++) CHECK_EQ(write(fds[1], text, 600), 600);  // files only
}

CASE(nproc_bites_users) {
    NEED_USER();
    // Counted over all processes of the user; with a limit of one no more can be made.
    struct rlimit l;
    CHECK_OK(getrlimit(RLIMIT_NPROC, &l));
    l.rlim_cur = 1;
    CHECK_OK(setrlimit(RLIMIT_NPROC, &l));
    CHECK_ERRNO(fork(), EAGAIN);
    CHECK_ERRNO(syscall(SYS_clone, THREAD_FLAGS, NULL, NULL, NULL, 0), EAGAIN);
    l.rlim_cur = l.rlim_max;
    CHECK_OK(setrlimit(RLIMIT_NPROC, &l));
    IN_CHILD();
}

static volatile int xcpus;
static void on_xcpu(int sig CHECK_USED) { xcpus++; }

CASE(cpu_soft_limit) {
    // SIGXCPU at the soft limit, which is in whole seconds.
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        struct rlimit l = {1, RLIM_INFINITY};
        CHECK_OK(getrlimit(RLIMIT_CPU, &l));
        l.rlim_cur = 1;
        signal(SIGXCPU, on_xcpu);
        CHECK_OK(setrlimit(RLIMIT_CPU, &l));
        struct timespec t;
        while (!xcpus) {}
        CHECK_OK(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t));
        CHECK_GE(t.tv_sec * 1000 + t.tv_nsec / 1000000, 750);  // the limit counts ticks
        CHECK_LT(t.tv_sec, 2);
        _exit(0);
    }
    CHECK_EXIT(p, 0);
}

CASE(cpu_hard_limit) {
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        struct rlimit l = {1, 1};
        signal(SIGXCPU, SIG_IGN);
        CHECK_OK(setrlimit(RLIMIT_CPU, &l));
        for (;;) {}
    }
    CHECK_KILLED(p, SIGKILL);
}

MAIN
