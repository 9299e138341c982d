// build: static
// dup, dup2, dup3, close, close_range, and fcntl's descriptor commands; RLIMIT_NOFILE and the lowest-number rule.
#include "tree.h"
#include <linux/close_range.h>
#include <sys/resource.h>

// Only 0, 1, 2 and what lies at or above the harness's 200.
static void tidy(void) { CHECK_OK(syscall(SYS_close_range, 3, 199, 0)); }

static int open_fds(int from, int to) {
    int n = 0;
    for (int fd = from; fd <= to; fd++) n += fcntl(fd, F_GETFD) != -1;
    return n;
}

CASE(lowest_number) {
    tidy();
    int a = CHECK_OK(open("/dev/null", O_RDONLY)), b = CHECK_OK(dup(a)), c = CHECK_OK(dup(a));
    CHECK_EQ(b, a + 1);
    CHECK_EQ(c, a + 2);
    CHECK_OK(close(b));
    CHECK_EQ(open("/dev/null", O_RDONLY), b);
    CHECK_OK(close(a));
    CHECK_OK(close(c));
    int pipes[2];
    CHECK_OK(pipe(pipes));
    CHECK_EQ(pipes[0], a);
    CHECK_EQ(pipes[1], c);
    CHECK_OK(close(0));
    CHECK_EQ(open("/dev/null", O_RDONLY), 0);
}

CASE(dup2_and_dup3) {
    tidy();
    int a = CHECK_OK(open("/dev/null", O_RDONLY | O_CLOEXEC));
    CHECK_EQ(dup2(a, 50), 50);
    CHECK_EQ(fcntl(50, F_GETFD), 0);  // the flag is not copied
    CHECK_EQ(dup2(a, a), a);
    CHECK_EQ(fcntl(a, F_GETFD), FD_CLOEXEC);
    CHECK_ERRNO(dup2(60, 60), EBADF);
    CHECK_ERRNO(dup2(60, 61), EBADF);
    CHECK_ERRNO(dup2(a, -1), EBADF);
    CHECK_ERRNO(dup2(-1, a), EBADF);
    CHECK_ERRNO(dup2(a, 1 << 30), EBADF);
    CHECK_ERRNO(dup(60), EBADF);
    CHECK_EQ(dup3(a, 51, O_CLOEXEC), 51);
    CHECK_EQ(fcntl(51, F_GETFD), FD_CLOEXEC);
    CHECK_EQ(dup3(a, 51, 0), 51);
    CHECK_EQ(fcntl(51, F_GETFD), 0);
    CHECK_ERRNO(dup3(a, a, 0), EINVAL);
    CHECK_ERRNO(dup3(60, 60, 0), EINVAL);
    CHECK_ERRNO(dup3(a, 52, O_NONBLOCK), EINVAL);
    CHECK_ERRNO(dup3(60, 61, 0), EBADF);
    CHECK_ERRNO(dup3(a, 1 << 30, 0), EBADF);
}

CASE(dup2_closes_the_target) {
    tidy();
    int pipes[2];
    CHECK_OK(pipe(pipes));
    int null = CHECK_OK(open("/dev/null", O_WRONLY));
    CHECK_EQ(dup2(null, pipes[1]), pipes[1]);
    char c;
    CHECK_EQ(read(pipes[0], &c, 1), 0);  // the last writer has gone
    CHECK_OK(pipe(pipes));
    CHECK_ERRNO(dup2(99, pipes[1]), EBADF);  // a failure closes nothing
    CHECK_EQ(write(pipes[1], "x", 1), 1);
}

CASE(close_twice) {
    int a = CHECK_OK(open("/dev/null", O_RDONLY));
    CHECK_OK(close(a));
    CHECK_ERRNO(close(a), EBADF);
    CHECK_ERRNO(close(-1), EBADF);
    CHECK_ERRNO(close(1 << 30), EBADF);
}

CASE(fcntl_dupfd) {
    tidy();
    int a = CHECK_OK(open("/dev/null", O_RDONLY));
    CHECK_EQ(fcntl(a, F_DUPFD, 70), 70);
    CHECK_EQ(fcntl(a, F_DUPFD, 70), 71);
    CHECK_EQ(fcntl(a, F_DUPFD_CLOEXEC, 70), 72);
    CHECK_EQ(fcntl(71, F_GETFD), 0);
    CHECK_EQ(fcntl(72, F_GETFD), FD_CLOEXEC);
    CHECK_ERRNO(fcntl(a, F_DUPFD, -1), EINVAL);
    CHECK_ERRNO(fcntl(a, F_DUPFD, 1 << 30), EINVAL);
    CHECK_ERRNO(fcntl(99, F_DUPFD, 70), EBADF);
    CHECK_ERRNO(fcntl(a, 9999, 0), EINVAL);
    CHECK_ERRNO(fcntl(99, 9999, 0), EBADF);
    CHECK_OK(fcntl(a, F_SETFD, 0xff));  // only the one bit is kept
    CHECK_EQ(fcntl(a, F_GETFD), FD_CLOEXEC);
    CHECK_OK(fcntl(a, F_SETFD, 0));
    CHECK_EQ(fcntl(a, F_GETFD), 0);
    // F_DUPFD_QUERY (6.10): do two descriptors share a description?
    CHECK_EQ(fcntl(a, 1027, 70), 1);
    CHECK_EQ(fcntl(a, 1027, CHECK_OK(open("/dev/null", O_RDONLY))), 0);
    CHECK_ERRNO(fcntl(a, 1027, 99), EBADF);
}

CASE(fcntl_setfl_changes_five_bits) {
    enter();
    int fd = make("f", "");
    CHECK_OK(fcntl(fd, F_SETFL, O_APPEND | O_NONBLOCK | O_NOATIME));
    CHECK_EQ(fcntl(fd, F_GETFL), O_RDWR | O_APPEND | O_NONBLOCK | O_NOATIME | 0100000);
    // The access mode, creation flags and O_SYNC are not to be changed; no complaint either.
    CHECK_OK(fcntl(fd, F_SETFL, O_WRONLY | O_CREAT | O_EXCL | O_TRUNC | O_SYNC | O_CLOEXEC | O_DIRECTORY));
    CHECK_EQ(fcntl(fd, F_GETFL), O_RDWR | 0100000);
    CHECK_EQ(fcntl(fd, F_GETFD), 0);
    int ro = CHECK_OK(open("f", O_RDONLY));
    CHECK_OK(fcntl(ro, F_SETFL, O_RDWR));
    CHECK_ERRNO(write(ro, "x", 1), EBADF);
    CHECK_ERRNO(fcntl(99, F_SETFL, 0), EBADF);
    int pipes[2];
    CHECK_OK(pipe(pipes));
    CHECK_EQ(fcntl(pipes[0], F_GETFL), O_RDONLY);
    CHECK_EQ(fcntl(pipes[1], F_GETFL), O_WRONLY);
}

CASE(fcntl_noatime_of_foreign_files) {
    be_user();
    int fd = CHECK_OK(open("/etc/passwd", O_RDONLY));
    CHECK_ERRNO(fcntl(fd, F_SETFL, O_NOATIME), EPERM);
}

CASE(fcntl_owner) {
    int pipes[2];
    CHECK_OK(pipe(pipes));
    CHECK_EQ(fcntl(pipes[0], F_GETOWN), 0);
    CHECK_OK(fcntl(pipes[0], F_SETOWN, getpid()));
    CHECK_EQ(fcntl(pipes[0], F_GETOWN), getpid());
    struct f_owner_ex owner = {F_OWNER_TID, getpid()};
    CHECK_OK(fcntl(pipes[0], F_SETOWN_EX, &owner));
    memset(&owner, 0, sizeof owner);
    CHECK_OK(fcntl(pipes[0], F_GETOWN_EX, &owner));
    CHECK_EQ(owner.type, F_OWNER_TID);
    CHECK_EQ(owner.pid, getpid());
    CHECK_OK(fcntl(pipes[0], F_SETOWN, -getpgrp()));
    CHECK_OK(fcntl(pipes[0], F_GETOWN_EX, &owner));
    CHECK_EQ(owner.type, F_OWNER_PGRP);
    CHECK_EQ(owner.pid, getpgrp());
    CHECK_EQ(fcntl(pipes[0], F_GETOWN), -getpgrp());
    CHECK_ERRNO(fcntl(pipes[0], F_SETOWN, 0x3fffffff), ESRCH);
    CHECK_EQ(fcntl(pipes[0], F_GETSIG), 0);
    CHECK_OK(fcntl(pipes[0], F_SETSIG, SIGUSR1));
    CHECK_EQ(fcntl(pipes[0], F_GETSIG), SIGUSR1);
    CHECK_ERRNO(fcntl(pipes[0], F_SETSIG, 65), EINVAL);
    CHECK_OK(fcntl(pipes[0], F_SETOWN, 0));
}

static volatile int got_signal;
static void on_signal(int sig) { got_signal = sig; }

CASE(fcntl_async_signals) {
    int pipes[2];
    CHECK_OK(pipe(pipes));
    signal(SIGIO, on_signal);
    signal(SIGUSR1, on_signal);
    CHECK_OK(fcntl(pipes[0], F_SETOWN, getpid()));
    CHECK_OK(fcntl(pipes[0], F_SETFL, O_ASYNC));
    CHECK_EQ(fcntl(pipes[0], F_GETFL) & O_ASYNC, O_ASYNC);
    CHECK_EQ(write(pipes[1], "x", 1), 1);
    CHECK_EQ(got_signal, SIGIO);
    CHECK_OK(fcntl(pipes[0], F_SETSIG, SIGUSR1));
    got_signal = 0;
    CHECK_EQ(write(pipes[1], "x", 1), 1);
    CHECK_EQ(got_signal, SIGUSR1);
    CHECK_OK(fcntl(pipes[0], F_SETFL, 0));
    got_signal = 0;
    CHECK_EQ(write(pipes[1], "x", 1), 1);
    CHECK_EQ(got_signal, 0);
}

CASE(close_range_call) {
    tidy();
    int a = CHECK_OK(open("/dev/null", O_RDONLY));
    for (int fd = 60; fd < 80; fd++) CHECK_OK(dup2(a, fd));
    CHECK_OK(syscall(SYS_close_range, 65, 69, 0));
    CHECK_EQ(open_fds(60, 79), 15);
    CHECK_OK(syscall(SYS_close_range, 61, 62, CLOSE_RANGE_CLOEXEC));
    CHECK_EQ(fcntl(61, F_GETFD), FD_CLOEXEC);
    CHECK_EQ(fcntl(62, F_GETFD), FD_CLOEXEC);
    CHECK_EQ(fcntl(60, F_GETFD), 0);
    CHECK_EQ(fcntl(63, F_GETFD), 0);
    CHECK_ERRNO(syscall(SYS_close_range, 5, 4, 0), EINVAL);
    CHECK_ERRNO(syscall(SYS_close_range, 60, 61, 8), EINVAL);
    CHECK_EQ(open_fds(60, 79), 15);
}

CASE(close_range_to_the_end) {
    tidy();
    int a = CHECK_OK(open("/dev/null", O_RDONLY));
    for (int fd = 60; fd < 80; fd++) CHECK_OK(dup2(a, fd));
    CHECK_OK(syscall(SYS_close_range, 201u, ~0u, 0));
    CHECK_OK(syscall(SYS_close_range, 60, 199, 0));
    CHECK_EQ(open_fds(60, 199), 0);
    CHECK_OK(fcntl(a, F_GETFD));
    // With UNSHARE the caller gets a table of its own first; alone that changes nothing.
    CHECK_OK(dup2(a, 60));
    CHECK_OK(syscall(SYS_close_range, 60, 199, CLOSE_RANGE_UNSHARE));
    CHECK_ERRNO(fcntl(60, F_GETFD), EBADF);
    CHECK_OK(fcntl(a, F_GETFD));
}

CASE(nofile_limit) {
    tidy();
    struct rlimit limit;
    CHECK_OK(getrlimit(RLIMIT_NOFILE, &limit));
    int first = CHECK_OK(open("/dev/null", O_RDONLY));
    rlim_t old = limit.rlim_cur;
    limit.rlim_cur = first + 10;
    CHECK_OK(setrlimit(RLIMIT_NOFILE, &limit));
    for (int i = 1; i < 10; i++) CHECK_EQ(open("/dev/null", O_RDONLY), first + i);
    CHECK_ERRNO(open("/dev/null", O_RDONLY), EMFILE);
    CHECK_ERRNO(dup(first), EMFILE);
    CHECK_ERRNO(fcntl(first, F_DUPFD, 0), EMFILE);
    CHECK_ERRNO(fcntl(first, F_DUPFD, first + 10), EINVAL);
    CHECK_ERRNO(dup2(first, first + 10), EBADF);
    CHECK_EQ(dup2(first, first + 9), first + 9);
    int pipes[2];
    CHECK_OK(close(first + 9));
    CHECK_ERRNO(pipe(pipes), EMFILE);  // one number is not enough, and it is not lost
    CHECK_EQ(dup(first), first + 9);
    CHECK_ERRNO(open("/none", O_RDONLY), EMFILE);  // the number comes first
    // What is open above the limit stays open.
    limit.rlim_cur = first + 2;
    CHECK_OK(setrlimit(RLIMIT_NOFILE, &limit));
    CHECK_OK(fcntl(first + 9, F_GETFD));
    CHECK_OK(close(first + 9));
    limit.rlim_cur = old;
    CHECK_OK(setrlimit(RLIMIT_NOFILE, &limit));
}

CASE(many_descriptors) {
    tidy();
    struct rlimit limit;
    CHECK_OK(getrlimit(RLIMIT_NOFILE, &limit));
    int want = limit.rlim_cur > 1000 ? 900 : limit.rlim_cur - 20, n = 0;
    int a = CHECK_OK(open("/dev/null", O_RDONLY));
    while (n < want && CHECK_OK(dup(a)) >= 0) n++;
    IN_CHILD({
        CHECK_OK(syscall(SYS_close_range, 201u, ~0u, 0));
        CHECK_OK(fcntl(199, F_GETFD));
    });
    CHECK_OK(fcntl(a + 300, F_GETFD));
}

MAIN
