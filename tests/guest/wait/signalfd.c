// build: static
// signalfd: which signals, the fields, masks, readiness, whose signals are read.
#include "waits.h"
#include <sys/signalfd.h>

static sigset_t set_of(int a, int b) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, a);
    if (b) sigaddset(&set, b);
    return set;
}

static int blocked_fd(int a, int b, int flags) {
    sigset_t set = set_of(a, b);
    CHECK_OK(sigprocmask(SIG_BLOCK, &set, NULL));
    return CHECK_OK(signalfd(-1, &set, flags));
}

CASE(fields_of_kill) {
    int fd = blocked_fd(SIGUSR1, SIGUSR2, SFD_NONBLOCK);
    struct signalfd_siginfo s;
    CHECK_ERRNO(read(fd, &s, sizeof s), EAGAIN);
    CHECK_OK(kill(getpid(), SIGUSR2));
    CHECK_EQ(read(fd, &s, sizeof s), 128);
    CHECK_EQ(s.ssi_signo, SIGUSR2);
    CHECK_EQ(s.ssi_code, SI_USER);
    CHECK_EQ(s.ssi_pid, getpid());
    CHECK_EQ(s.ssi_uid, getuid());
    CHECK_EQ(s.ssi_errno, 0);
    CHECK_ERRNO(read(fd, &s, sizeof s), EAGAIN);
    CHECK_OK(syscall(SYS_tgkill, getpid(), getpid(), SIGUSR1));
    CHECK_EQ(read(fd, &s, sizeof s), 128);
    CHECK_EQ(s.ssi_code, SI_TKILL);
}

CASE(fields_of_sigqueue) {
    int fd = blocked_fd(SIGRTMIN + 3, 0, 0);
    for (int i = 0; i < 3; i++) CHECK_OK(sigqueue(getpid(), SIGRTMIN + 3, (union sigval){.sival_int = 70 + i}));
    struct signalfd_siginfo s[5];
    CHECK_EQ(read(fd, s, sizeof s), 3 * 128);  // as many as there are and fit
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(s[i].ssi_signo, SIGRTMIN + 3);
        CHECK_EQ(s[i].ssi_code, SI_QUEUE);
        CHECK_EQ(s[i].ssi_int, 70 + i);
        CHECK_EQ(s[i].ssi_pid, getpid());
    }
}

CASE(fields_of_children) {
    int fd = blocked_fd(SIGCHLD, 0, 0);
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) _exit(9);
    struct signalfd_siginfo s;
    CHECK_EQ(read(fd, &s, sizeof s), 128);
    CHECK_EQ(s.ssi_signo, SIGCHLD);
    CHECK_EQ(s.ssi_code, CLD_EXITED);
    CHECK_EQ(s.ssi_pid, pid);
    CHECK_EQ(s.ssi_status, 9);
    CHECK_EXIT(pid, 9);
    pid = CHECK_OK(fork());
    if (pid == 0) {
        raise(SIGKILL);
    }
    CHECK_EQ(read(fd, &s, sizeof s), 128);
    CHECK_EQ(s.ssi_code, CLD_KILLED);
    CHECK_EQ(s.ssi_status, SIGKILL);
    CHECK_KILLED(pid, SIGKILL);
}

CASE(standard_signals_do_not_queue) {
    int fd = blocked_fd(SIGUSR1, 0, SFD_NONBLOCK);
    for (int i = 0; i < 5; i++) CHECK_OK(kill(getpid(), SIGUSR1));
    struct signalfd_siginfo s[5];
    CHECK_EQ(read(fd, s, sizeof s), 128);
    sigset_t pending;
    CHECK_OK(sigpending(&pending));
    CHECK_EQ(sigismember(&pending, SIGUSR1), 0);  // reading takes it
}

CASE(readiness) {
    int fd = blocked_fd(SIGUSR1, 0, 0);
    CHECK_EQ(events_of(fd, POLLIN | POLLOUT), 0);
    CHECK_OK(kill(getpid(), SIGUSR1));
    CHECK_EQ(events_of(fd, POLLIN), POLLIN);
    sigset_t set = set_of(SIGUSR1, 0);
    int sig;
    CHECK_EQ(sigwait(&set, &sig), 0);  // taken another way
    CHECK_EQ(events_of(fd, POLLIN), 0);
    pid_t pid = signal_later(SIGUSR1, 20);
    CHECK(readable_soon(fd));
    CHECK_EXIT(pid, 0);
}

CASE(blocking_read) {
    int fd = blocked_fd(SIGUSR1, 0, 0);
    pid_t pid = signal_later(SIGUSR1, 20);
    struct signalfd_siginfo s;
    CHECK_EQ(read(fd, &s, sizeof s), 128);
    CHECK_EQ(s.ssi_pid, pid);
    CHECK_EXIT(pid, 0);
    // A signal that is not in the set and has a handler interrupts.
    catch_signal(SIGUSR2);
    pid = signal_later(SIGUSR2, 20);
    CHECK_ERRNO(read(fd, &s, sizeof s), EINTR);
    CHECK_EXIT(pid, 0);
}

CASE(changing_the_set) {
    int fd = blocked_fd(SIGUSR1, SIGUSR2, SFD_NONBLOCK);
    sigset_t one = set_of(SIGUSR1, 0);
    CHECK_EQ(signalfd(fd, &one, 0), fd);
    CHECK_OK(kill(getpid(), SIGUSR2));
    struct signalfd_siginfo s;
    CHECK_ERRNO(read(fd, &s, sizeof s), EAGAIN);
    sigset_t two = set_of(SIGUSR2, 0);
    CHECK_EQ(signalfd(fd, &two, 0), fd);
    CHECK_EQ(read(fd, &s, sizeof s), 128);
    CHECK_EQ(s.ssi_signo, SIGUSR2);
}

CASE(unblocked_signals_go_to_handlers) {
    sigset_t set = set_of(SIGUSR1, 0);
    int fd = CHECK_OK(signalfd(-1, &set, SFD_NONBLOCK));
    catch_signal(SIGUSR1);
    CHECK_OK(kill(getpid(), SIGUSR1));
    CHECK_EQ(caught, SIGUSR1);
    struct signalfd_siginfo s;
    CHECK_ERRNO(read(fd, &s, sizeof s), EAGAIN);
}

CASE(the_readers_signals) {
    // A child that reads an inherited descriptor gets its own signals, not its parent's.
    int fd = blocked_fd(SIGUSR1, 0, SFD_NONBLOCK);
    CHECK_OK(kill(getpid(), SIGUSR1));
    IN_CHILD({
        struct signalfd_siginfo c;
        CHECK_ERRNO(read(fd, &c, sizeof c), EAGAIN);
        CHECK_OK(kill(getpid(), SIGUSR1));
        CHECK_EQ(read(fd, &c, sizeof c), 128);
        CHECK_EQ(c.ssi_pid, getpid());
    });
    struct signalfd_siginfo s;
    CHECK_EQ(read(fd, &s, sizeof s), 128);
    CHECK_EQ(s.ssi_pid, getpid());
}

CASE(arguments) {
    sigset_t set = set_of(SIGUSR1, SIGKILL);  // SIGKILL and SIGSTOP are silently left out
    int fd = CHECK_OK(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
    CHECK_EQ(fcntl(fd, F_GETFL), O_RDWR | O_NONBLOCK);
    CHECK_ERRNO(signalfd(-1, &set, 0x100), EINVAL);
    CHECK_ERRNO(signalfd(999, &set, 0), EBADF);
    CHECK_ERRNO(signalfd(CHECK_OK(open("/dev/null", O_RDWR)), &set, 0), EINVAL);
    CHECK_ERRNO(syscall(SYS_signalfd4, -1, &set, 16, 0), EINVAL);
    CHECK_ERRNO(syscall(SYS_signalfd4, -1, nowhere, 8, 0), EFAULT);
    struct signalfd_siginfo s;
    CHECK_ERRNO(read(fd, &s, 127), EINVAL);
    CHECK_ERRNO(write(fd, &s, sizeof s), EINVAL);
    CHECK_OK(syscall(SYS_signalfd, -1, &set, 8));
}

MAIN
