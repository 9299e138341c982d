// build: static -pthread
// pidfd_open, pidfd_send_signal, pidfd_getfd, polling and waiting on them.
#include "clone.h"
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>

static int pidfd_open_(pid_t p, unsigned flags) { return syscall(SYS_pidfd_open, p, flags); }
static long send_signal(int fd, int sig, siginfo_t *info, unsigned flags) {
    return syscall(SYS_pidfd_send_signal, fd, sig, info, flags);
}
static pid_t sleeper(void) {
    pid_t p = CHECK_OK(fork());
    if (p == 0)
        for (;;) pause();
    return p;
}
static int ready(int fd) {
    struct pollfd pfd = {fd, POLLIN, 0};
    int n = CHECK_OK(poll(&pfd, 1, 0));
    return n ? pfd.revents : 0;
}

CASE(open_rules) {
    int fd = CHECK_OK(pidfd_open_(pid(), 0));
    CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
    CHECK_EQ(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDWR);
    CHECK_ERRNO(pidfd_open_(-1, 0), EINVAL);
    CHECK_ERRNO(pidfd_open_(0, 0), EINVAL);
    CHECK_ERRNO(pidfd_open_(pid(), 1), EINVAL);
    CHECK_ERRNO(pidfd_open_(0x3fffffff, 0), ESRCH);
    int nb = CHECK_OK(pidfd_open_(pid(), O_NONBLOCK));
    CHECK_EQ(fcntl(nb, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
    char c;
    CHECK_ERRNO(read(fd, &c, 1), EINVAL);
    CHECK_ERRNO(write(fd, &c, 1), EINVAL);
}

CASE(becomes_readable_at_exit) {
    pid_t p = sleeper();
    int fd = CHECK_OK(pidfd_open_(p, 0));
    CHECK_EQ(ready(fd), 0);
    CHECK_OK(kill(p, SIGKILL));
    struct pollfd pfd = {fd, POLLIN, 0};
    CHECK_EQ(poll(&pfd, 1, 5000), 1);
    CHECK_EQ(pfd.revents & POLLIN, POLLIN);
    // A zombie can still be named, and takes signals to no effect.
    CHECK_OK(send_signal(fd, 0, NULL, 0));
    CHECK_GE(pidfd_open_(p, 0), 0);
    CHECK_KILLED(p, SIGKILL);
    CHECK_ERRNO(send_signal(fd, 0, NULL, 0), ESRCH);
    CHECK_ERRNO(pidfd_open_(p, 0), ESRCH);
    CHECK_EQ(ready(fd) & POLLIN, POLLIN);
}

CASE(poll_blocks_until_the_exit) {
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        sleep_ms(60);
        _exit(0);
    }
    int fd = CHECK_OK(pidfd_open_(p, 0)), ep = CHECK_OK(epoll_create1(0));
    struct epoll_event ev = {.events = EPOLLIN, .data.u32 = 7}, got;
    CHECK_OK(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev));
    CHECK_EQ(epoll_wait(ep, &got, 1, 0), 0);
    CHECK_EQ(epoll_wait(ep, &got, 1, 5000), 1);
    CHECK_EQ(got.data.u32, 7);
    CHECK_EXIT(p, 0);
}

static int go[2];
static void *late(void *arg) {
    read(go[0], &(char){0}, 1);
    return arg;
}

CASE(a_process_ends_with_its_last_thread) {
    CHECK_OK(pipe(go));
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        pthread_t t;
        pthread_create(&t, NULL, late, NULL);
        pthread_detach(t);
        syscall(SYS_exit, 0);
    }
    int fd = CHECK_OK(pidfd_open_(p, 0));
    wait_for_state(p, 'Z');  // the leader
    CHECK_EQ(ready(fd), 0);
    CHECK_EQ(write(go[1], "", 1), 1);
    struct pollfd pfd = {fd, POLLIN, 0};
    CHECK_EQ(poll(&pfd, 1, 5000), 1);
    CHECK_EXIT(p, 0);
}

CASE(pidfd_of_a_thread_is_refused) {
    static volatile int done = 1;
    extern int thread_body(void *);
    long t = CLONE(THREAD_FLAGS | CLONE_CHILD_CLEARTID, new_stack(), NULL, (int *)&done, 0, thread_body, 0);
    CHECK_GT(t, 0);
    int fd = pidfd_open_(t, 0);
    int e = errno;
    CHECK_EQ(fd, -1);
    CHECK(e == EINVAL || e == ENOENT);  // ENOENT since 6.15
    wait_while(&done, 1);
}
int thread_body(void *arg CHECK_USED) {
    struct timespec t = {0, 50000000};
    syscall(SYS_nanosleep, &t, NULL);
    return 0;
}

static volatile siginfo_t got;
static void on_usr1(int sig CHECK_USED, siginfo_t *info, void *c CHECK_USED) { got = *info; }

CASE(send_signal_rules) {
    struct sigaction act = {.sa_sigaction = on_usr1, .sa_flags = SA_SIGINFO};
    CHECK_OK(sigaction(SIGUSR1, &act, NULL));
    int fd = CHECK_OK(pidfd_open_(pid(), 0));
    CHECK_OK(send_signal(fd, SIGUSR1, NULL, 0));
    CHECK_EQ(got.si_signo, SIGUSR1);
    CHECK_EQ(got.si_code, SI_USER);
    CHECK_EQ(got.si_pid, pid());
    siginfo_t info = {.si_signo = SIGUSR1, .si_code = SI_QUEUE};
    info.si_pid = pid();
    info.si_value.sival_int = 99;
    CHECK_OK(send_signal(fd, SIGUSR1, &info, 0));
    CHECK_EQ(got.si_code, SI_QUEUE);
    CHECK_EQ(got.si_value.sival_int, 99);
    CHECK_ERRNO(send_signal(fd, SIGUSR2, &info, 0), EINVAL);  // si_signo differs
    CHECK_ERRNO(send_signal(fd, 65, NULL, 0), EINVAL);
    CHECK_ERRNO(send_signal(fd, SIGUSR1, NULL, 0x100), EINVAL);
    CHECK_ERRNO(send_signal(-1, SIGUSR1, NULL, 0), EBADF);
    CHECK_ERRNO(send_signal(CHECK_FD, SIGUSR1, NULL, 0), EBADF);
    CHECK_ERRNO(send_signal(fd, SIGUSR1, (void *)8, 0), EFAULT);
    // To another process, no codes that only the kernel uses.
    pid_t p = sleeper();
    int other = CHECK_OK(pidfd_open_(p, 0));
    info.si_code = SI_USER;
    CHECK_ERRNO(send_signal(other, SIGUSR1, &info, 0), EPERM);
    info.si_code = SI_TKILL;
    CHECK_ERRNO(send_signal(other, SIGUSR1, &info, 0), EPERM);
    CHECK_OK(send_signal(other, SIGTERM, NULL, 0));
    CHECK_KILLED(p, SIGTERM);
}

CASE(getfd_copies_a_descriptor) {
    int fds[2], sync[2];
    CHECK_OK(pipe(sync));
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        CHECK_OK(pipe(fds));
        CHECK_EQ(write(fds[1], "inner", 5), 5);
        CHECK_EQ(write(sync[1], fds, sizeof fds), sizeof fds);
        for (;;) pause();
    }
    CHECK_EQ(read(sync[0], fds, sizeof fds), sizeof fds);
    int fd = CHECK_OK(pidfd_open_(p, 0));
    int mine = syscall(SYS_pidfd_getfd, fd, fds[0], 0);
    if (mine == -1 && errno == EPERM) {
        kill(p, SIGKILL);
        SKIP("ptrace of children is forbidden here");
    }
    CHECK_GE(mine, 0);
    CHECK_EQ(fcntl(mine, F_GETFD), FD_CLOEXEC);
    char text[8] = "";
    CHECK_EQ(read(mine, text, 8), 5);
    CHECK_STR(text, "inner");
    CHECK_ERRNO(syscall(SYS_pidfd_getfd, fd, 500, 0), EBADF);
    CHECK_ERRNO(syscall(SYS_pidfd_getfd, fd, 0, 1), EINVAL);
    CHECK_ERRNO(syscall(SYS_pidfd_getfd, CHECK_FD, 0, 0), EBADF);
    CHECK_OK(kill(p, SIGKILL));
    CHECK_KILLED(p, SIGKILL);
    CHECK_ERRNO(syscall(SYS_pidfd_getfd, fd, 0, 0), ESRCH);
}

CASE(waiting_nonblocking) {
    pid_t p = sleeper();
    int fd = CHECK_OK(pidfd_open_(p, O_NONBLOCK));
    siginfo_t info;
    CHECK_ERRNO(waitid(P_PIDFD, fd, &info, WEXITED), EAGAIN);
    CHECK_OK(kill(p, SIGKILL));
    while (ready(fd) == 0) sleep_ms(1);
    CHECK_OK(waitid(P_PIDFD, fd, &info, WEXITED));
    CHECK_EQ(info.si_code, CLD_KILLED);
    CHECK_EQ(info.si_pid, p);
}

CASE(a_non_child_cannot_be_waited_for) {
    int fd = CHECK_OK(pidfd_open_(pid(), 0));
    siginfo_t info;
    CHECK_ERRNO(waitid(P_PIDFD, fd, &info, WEXITED), ECHILD);
    // But it can be inherited, and polled by anybody.
    IN_CHILD({
        CHECK_EQ(ready(fd), 0);
        siginfo_t i;
        CHECK_ERRNO(waitid(P_PIDFD, fd, &i, WEXITED), ECHILD);
    });
}

CASE(a_recycled_pid_is_not_meant) {
    pid_t p = sleeper();
    int fd = CHECK_OK(pidfd_open_(p, 0));
    CHECK_OK(kill(p, SIGKILL));
    CHECK_KILLED(p, SIGKILL);
    for (int i = 0; i < 20; i++) {
        pid_t q = CHECK_OK(fork());
        if (q == 0) _exit(0);
        CHECK_ERRNO(send_signal(fd, SIGKILL, NULL, 0), ESRCH);
        CHECK_EXIT(q, 0);
    }
}

CASE(fdinfo_shows_the_pid) {
    char path[64], text[512] = "", want[32];
    pid_t p = sleeper();
    int fd = CHECK_OK(pidfd_open_(p, 0));
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    snprintf(want, sizeof want, "\nPid:\t%d\n", p);
    int f = CHECK_OK(open(path, O_RDONLY));
    CHECK_GT(read(f, text, sizeof text - 1), 0);
    CHECK(strstr(text, want) != NULL);
    CHECK_OK(kill(p, SIGKILL));
    CHECK_KILLED(p, SIGKILL);
}

MAIN
