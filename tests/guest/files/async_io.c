// Signals of open files (O_ASYNC, F_SETOWN, F_SETSIG): pipes, FIFOs, terminals, and what sends none.
#include "../check.h"
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

static volatile int hits, last_sig, last_code, last_fd;
static volatile long last_band;
static void note(int sig, siginfo_t *info, void *u) {
    (void)u;
    hits++;
    last_sig = sig;
    last_code = info->si_code;
    last_fd = info->si_fd;
    last_band = info->si_band;
}
static void listen_for(int sig) {
    struct sigaction act = {.sa_sigaction = note, .sa_flags = SA_SIGINFO | SA_RESTART};
    CHECK_OK(sigaction(sig, &act, NULL));
}
#define TOLD(sig, code, fd, band) \
    do { \
        CHECK_EQ(hits, 1); \
        CHECK_EQ(last_sig, sig); \
        CHECK_EQ(last_code, code); \
        CHECK_EQ(last_fd, fd); \
        CHECK_EQ(last_band, band); \
        hits = 0; \
    } while (0)
enum { READABLE = POLLIN | POLLRDNORM, WRITABLE = POLLOUT | POLLWRNORM | POLLWRBAND };

CASE(readers_of_a_pipe) {
    int p[2];
    CHECK_OK(pipe(p));
    int signals[] = {SIGIO, SIGUSR1, SIGTRAP, SIGRTMIN};
    for (int i = 0; i < 4; i++) listen_for(signals[i]);
    CHECK_OK(fcntl(p[0], F_SETFL, O_ASYNC));
    CHECK_EQ(write(p[1], "x", 1), 1);
    CHECK_EQ(hits, 0);  // nobody owns it yet
    CHECK_OK(fcntl(p[0], F_SETOWN, getpid()));
    CHECK_EQ(write(p[1], "x", 1), 1);
    TOLD(SIGIO, SI_KERNEL, 0, 0);
    CHECK_OK(fcntl(p[0], F_SETSIG, SIGIO));
    CHECK_EQ(write(p[1], "x", 1), 1);
    TOLD(SIGIO, POLL_IN, p[0], READABLE);
    CHECK_OK(fcntl(p[0], F_SETSIG, SIGRTMIN));
    CHECK_EQ(write(p[1], "x", 1), 1);
    TOLD(SIGRTMIN, POLL_IN, p[0], READABLE);
    CHECK_OK(fcntl(p[0], F_SETSIG, SIGTRAP));  // which has codes of its own
    CHECK_EQ(write(p[1], "x", 1), 1);
    TOLD(SIGTRAP, SI_SIGIO, p[0], READABLE);
    CHECK_OK(fcntl(p[0], F_SETSIG, SIGUSR1));
    // The descriptor told is the one by which it was asked for.
    int d = CHECK_OK(dup(p[0]));
    CHECK_OK(fcntl(d, F_SETFL, O_ASYNC));
    CHECK_EQ(write(p[1], "x", 1), 1);
    TOLD(SIGUSR1, POLL_IN, p[0], READABLE);
    CHECK_OK(fcntl(d, F_SETFL, 0));
    CHECK_EQ(write(p[1], "x", 1), 1);
    CHECK_EQ(hits, 0);
    CHECK_OK(fcntl(d, F_SETFL, O_ASYNC));
    CHECK_EQ(write(p[1], "x", 1), 1);
    TOLD(SIGUSR1, POLL_IN, d, READABLE);
    CHECK_EQ(write(p[1], "x", 0), 0);
    CHECK_EQ(hits, 0);
    CHECK_OK(close(p[1]));
    TOLD(SIGUSR1, POLL_IN, d, READABLE);
}

CASE(writers_of_a_pipe) {
    int p[2];
    CHECK_OK(pipe(p));
    listen_for(SIGRTMIN);
    CHECK_OK(fcntl(p[1], F_SETFL, O_ASYNC | O_NONBLOCK));
    CHECK_OK(fcntl(p[1], F_SETOWN, getpid()));
    CHECK_OK(fcntl(p[1], F_SETSIG, SIGRTMIN));
    static char buf[70000];
    CHECK_EQ(write(p[1], buf, sizeof buf), 65536);
    CHECK_EQ(hits, 0);
    CHECK_EQ(read(p[0], buf, 1), 1);
    TOLD(SIGRTMIN, POLL_OUT, p[1], WRITABLE);
    CHECK_OK(close(p[0]));
    TOLD(SIGRTMIN, POLL_OUT, p[1], WRITABLE);
}

CASE(fifos) {
    CHECK_OK(mkfifo(TMP("fifo"), 0600));
    int fd = CHECK_OK(open(TMP("fifo"), O_RDWR | O_NONBLOCK));
    listen_for(SIGRTMIN);
    CHECK_OK(fcntl(fd, F_SETOWN, getpid()));
    CHECK_OK(fcntl(fd, F_SETSIG, SIGRTMIN));
    int on = 1, off = 0;
    CHECK_OK(ioctl(fd, FIOASYNC, &on));
    CHECK_EQ(fcntl(fd, F_GETFL) & O_ASYNC, O_ASYNC);
    CHECK_EQ(write(fd, "x", 1), 1);
    TOLD(SIGRTMIN, POLL_IN, fd, READABLE);
    CHECK_OK(ioctl(fd, FIOASYNC, &off));
    CHECK_EQ(fcntl(fd, F_GETFL) & O_ASYNC, 0);
    CHECK_EQ(write(fd, "x", 1), 1);
    CHECK_EQ(hits, 0);
}

CASE(files_that_send_none) {
    int fds[2] = {CHECK_OK(eventfd(0, 0)), CHECK_OK(open(TMP("file"), O_RDWR | O_CREAT, 0600))}, on = 1, off = 0;
    for (int i = 0; i < 2; i++) {
        CHECK_ERRNO(ioctl(fds[i], FIOASYNC, &on), ENOTTY);
        CHECK_OK(ioctl(fds[i], FIOASYNC, &off));  // as it is
        CHECK_OK(fcntl(fds[i], F_SETFL, O_ASYNC));
        CHECK_EQ(fcntl(fds[i], F_GETFL) & O_ASYNC, 0);
    }
    CHECK_ERRNO(ioctl(fds[0], FIOASYNC, NULL), EFAULT);
}

CASE(terminals) {
    int m = CHECK_OK(posix_openpt(O_RDWR | O_NOCTTY));
    CHECK_OK(grantpt(m));
    CHECK_OK(unlockpt(m));
    int s = CHECK_OK(open(ptsname(m), O_RDWR | O_NOCTTY));
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN);
    CHECK_OK(sigprocmask(SIG_BLOCK, &set, NULL));
    CHECK_OK(fcntl(s, F_SETSIG, SIGRTMIN));
    CHECK_OK(fcntl(s, F_SETFL, O_ASYNC));
    CHECK_EQ(fcntl(s, F_GETOWN), getpid());  // without a foreground group who asked becomes the owner
    CHECK_EQ(write(m, "line\n", 5), 5);
    siginfo_t info;
    struct timespec long_enough = {10, 0}, none = {0, 0};
    CHECK_EQ(sigtimedwait(&set, &info, &long_enough), SIGRTMIN);
    CHECK_EQ(info.si_code, POLL_IN);
    CHECK_EQ(info.si_fd, s);
    CHECK_OK(fcntl(s, F_SETFL, 0));
    CHECK_EQ(write(m, "line\n", 5), 5);
    struct pollfd p = {.fd = s, .events = POLLIN};
    CHECK_EQ(poll(&p, 1, 10000), 1);
    CHECK_ERRNO(sigtimedwait(&set, &info, &none), EAGAIN);
}

CASE(owners) {
    int p[2];
    CHECK_OK(pipe(p));
    struct f_owner_ex owner = {77, 77};
    CHECK_OK(fcntl(p[0], F_GETOWN_EX, &owner));
    CHECK_EQ(owner.type, F_OWNER_TID);
    CHECK_EQ(owner.pid, 0);
    pid_t child = CHECK_OK(fork());
    if (child == 0)
        for (;;) pause();
    CHECK_OK(fcntl(p[0], F_SETOWN, child));
    CHECK_EQ(fcntl(p[0], F_GETOWN), child);
    kill(child, SIGKILL);
    CHECK_KILLED(child, SIGKILL);
    CHECK_EQ(fcntl(p[0], F_GETOWN), 0);  // it has gone
    CHECK_OK(fcntl(p[0], F_GETOWN_EX, &owner));
    CHECK_EQ(owner.type, F_OWNER_PID);
    CHECK_EQ(owner.pid, 0);
    owner.pid = -1;
    CHECK_ERRNO(fcntl(p[0], F_SETOWN_EX, &owner), ESRCH);
    owner.type = 9;
    CHECK_ERRNO(fcntl(p[0], F_SETOWN_EX, &owner), EINVAL);
    owner.type = F_OWNER_TID;
    owner.pid = 0;
    CHECK_OK(fcntl(p[0], F_SETOWN_EX, &owner));
    CHECK_ERRNO(fcntl(p[0], F_SETOWN, 0x80000000), EINVAL);
}

CASE(a_full_queue_falls_back_to_plain_sigio) {
    int p[2];
    CHECK_OK(pipe(p));
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN);
    sigaddset(&set, SIGIO);
    CHECK_OK(sigprocmask(SIG_BLOCK, &set, NULL));
    struct rlimit none = {0, 0};
    CHECK_OK(setrlimit(RLIMIT_SIGPENDING, &none));
    CHECK_OK(fcntl(p[0], F_SETOWN, getpid()));
    CHECK_OK(fcntl(p[0], F_SETSIG, SIGRTMIN));
    CHECK_OK(fcntl(p[0], F_SETFL, O_ASYNC));
    CHECK_EQ(write(p[1], "x", 1), 1);
    CHECK_OK(sigpending(&set));
    CHECK_EQ(sigismember(&set, SIGIO), 1);
    CHECK_EQ(sigismember(&set, SIGRTMIN), 0);
}

MAIN
