// build: static
// What a blocking call does when a signal comes: EINTR or restart, with and without SA_RESTART (signal(7)), and when no
// handler runs at all. Each attempt: a child sends SIGUSR1 once the call sleeps, and provides
// the awaited event somewhat later.
#include "sig.h"
#include <linux/futex.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { INTERRUPTED = -EINTR };
static int fds[2];
static volatile int *word;

// Run call() with SIGUSR1 handled with `flags`, event() in a child afterwards. The call's result or -errno.
static long attempt(int flags, long (*call)(void), void (*event)(void)) {
    pid_t me = getpid();
    handle(SIGUSR1, count_hit, flags);
    hits = 0;
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        sleep_ms(20);
        wait_asleep(me);
        CHECK_OK(kill(me, SIGUSR1));
        if (event) {
            sleep_ms(30);
            event();
        }
        _exit(0);
    }
    long r = call();
    if (r == -1) r = -errno;
    CHECK_EQ(hits, 1);
    CHECK_EXIT(p, 0);
    return r;
}
#define RESTARTS(CALL, EVENT, RESULT)                      \
    do {                                                   \
        CHECK_EQ(attempt(0, CALL, EVENT), INTERRUPTED);    \
        if (EVENT == put_byte) take_byte();                \
        CHECK_EQ(attempt(SA_RESTART, CALL, EVENT), RESULT); \
    } while (0)
#define NEVER_RESTARTS(CALL)                                        \
    do {                                                            \
        CHECK_EQ(attempt(0, CALL, NULL), INTERRUPTED);              \
        CHECK_EQ(attempt(SA_RESTART, CALL, NULL), INTERRUPTED);     \
    } while (0)

static void put_byte(void) { CHECK_EQ(write(fds[1], "x", 1), 1); }
static void take_byte(void) {
    char c;
    CHECK_EQ(read(fds[0], &c, 1), 1);
}

static long read_byte(void) {
    char c;
    return read(fds[0], &c, 1);
}
CASE(read_of_a_pipe) {
    CHECK_OK(pipe(fds));
    RESTARTS(read_byte, put_byte, 1);
}

static long read_vector(void) {
    char c;
    struct iovec { void *p; size_t n; } v = {&c, 1};
    return syscall(SYS_readv, fds[0], &v, 1);
}
CASE(readv_of_a_socket) {
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
    RESTARTS(read_vector, put_byte, 1);
}

static long receive(void) {
    char c;
    return recv(fds[0], &c, 1, 0);
}
CASE(recv_without_and_with_a_timeout) {
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
    RESTARTS(receive, put_byte, 1);
    struct timeval t = {5, 0};
    CHECK_OK(setsockopt(fds[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t));
    NEVER_RESTARTS(receive);
}

static char big[1 << 18];
static long write_big(void) { return write(fds[1], big, sizeof big); }
static void drain(void) {
    size_t n = 0;
    ssize_t got;
    // As long as something comes within a moment.
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    for (int idle = 0; idle < 20;) {
        got = read(fds[0], big, sizeof big);
        if (got > 0) n += got, idle = 0;
        else idle++, sleep_ms(2);
    }
    fcntl(fds[0], F_SETFL, 0);
}
CASE(write_to_a_full_pipe) {
    // Something was written before the signal: a partial count, in either case.
    CHECK_OK(pipe(fds));
    CHECK_EQ(attempt(0, write_big, drain), 65536);
    CHECK_EQ(attempt(SA_RESTART, write_big, drain), 65536);
    // Nothing was written: EINTR or restart.
    fcntl(fds[1], F_SETFL, O_NONBLOCK);
    while (write(fds[1], big, 4096) > 0) {}
    fcntl(fds[1], F_SETFL, 0);
    CHECK_EQ(attempt(0, write_big, NULL), INTERRUPTED);
}

static int child_to_wait;
static long wait_child(void) { return syscall(SYS_wait4, child_to_wait, NULL, 0, NULL); }
static void end_child(void) { CHECK_OK(kill(child_to_wait, SIGKILL)); }
static long waitid_child(void) { return syscall(SYS_waitid, P_PID, child_to_wait, NULL, WEXITED, NULL); }
static void new_child(void) {
    child_to_wait = CHECK_OK(fork());
    if (child_to_wait == 0)
        for (;;) pause();
}
CASE(wait4_and_waitid) {
    new_child();
    CHECK_EQ(attempt(0, wait_child, NULL), INTERRUPTED);
    CHECK_EQ(attempt(SA_RESTART, wait_child, end_child), child_to_wait);
    new_child();
    CHECK_EQ(attempt(0, waitid_child, NULL), INTERRUPTED);
    CHECK_EQ(attempt(SA_RESTART, waitid_child, end_child), 0);
}

static long futex_wait(void) { return syscall(SYS_futex, word, FUTEX_WAIT, 0, NULL, NULL, 0); }
static void futex_wake(void) { CHECK_EQ(syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0), 1); }
static long futex_timed(void) {
    struct timespec t = {5, 0};
    return syscall(SYS_futex, word, FUTEX_WAIT, 0, &t, NULL, 0);
}
static long futex_absolute(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += 5;
    return syscall(SYS_futex, word, FUTEX_WAIT_BITSET, 0, &t, NULL, -1);
}
CASE(futex) {
    word = CHECK_MAP(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    CHECK_EQ(attempt(0, futex_wait, NULL), INTERRUPTED);
    CHECK_EQ(attempt(SA_RESTART, futex_wait, futex_wake), 0);
    // With a timeout it goes on by restart_syscall, which only happens when no handler runs.
    NEVER_RESTARTS(futex_timed);
    NEVER_RESTARTS(futex_absolute);
}

static long open_fifo(void) {
    int fd = open(TMP("fifo"), O_RDONLY);
    return fd == -1 ? -1 : (close(fd), 99);
}
static void open_other_end(void) { CHECK_OK(open(TMP("fifo"), O_WRONLY)); }
CASE(open_of_a_fifo) {
    CHECK_OK(mkfifo(TMP("fifo"), 0600));
    CHECK_EQ(attempt(0, open_fifo, NULL), INTERRUPTED);
    CHECK_EQ(attempt(SA_RESTART, open_fifo, open_other_end), 99);
}

static int lock_fd;
static volatile pid_t lock_owner;
static long take_flock(void) { return flock(lock_fd, LOCK_EX); }
static long take_posix(void) {
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(lock_fd, F_SETLKW, &l);
}
static void hold(int posix) {
    lock_fd = CHECK_OK(open(TMP("lock"), O_RDWR | O_CREAT, 0600));
    int sync[2];
    CHECK_OK(pipe(sync));
    lock_owner = CHECK_OK(fork());
    if (lock_owner == 0) {
        lock_fd = CHECK_OK(open(TMP("lock"), O_RDWR));
        CHECK_OK(posix ? take_posix() : take_flock());
        CHECK_EQ(write(sync[1], "x", 1), 1);
        for (;;) pause();
    }
    char c;
    CHECK_EQ(read(sync[0], &c, 1), 1);
}
static void end_owner(void) { CHECK_OK(kill(lock_owner, SIGKILL)); }
CASE(file_locks) {
    for (int posix = 0; posix < 2; posix++) {
        hold(posix);
        CHECK_EQ(attempt(0, posix ? take_posix : take_flock, NULL), INTERRUPTED);
        CHECK_EQ(attempt(SA_RESTART, posix ? take_posix : take_flock, end_owner), 0);
        close(lock_fd);
    }
}

static long accept_one(void) {
    int fd = accept(fds[0], NULL, NULL);
    return fd == -1 ? -1 : (close(fd), 88);
}
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static void connect_one(void) {
    int fd = CHECK_OK(socket(AF_UNIX, SOCK_STREAM, 0));
    CHECK_OK(connect(fd, (struct sockaddr *)&address, sizeof address));
}
CASE(accept_call) {
    snprintf(address.sun_path, sizeof address.sun_path, "%s", TMP("s"));
    fds[0] = CHECK_OK(socket(AF_UNIX, SOCK_STREAM, 0));
    CHECK_OK(bind(fds[0], (struct sockaddr *)&address, sizeof address));
    CHECK_OK(listen(fds[0], 5));
    CHECK_EQ(attempt(0, accept_one, NULL), INTERRUPTED);
    CHECK_EQ(attempt(SA_RESTART, accept_one, connect_one), 88);
}

static long poll_one(void) { return poll(&(struct pollfd){fds[0], POLLIN, 0}, 1, 5000); }
static long poll_forever(void) { return poll(&(struct pollfd){fds[0], POLLIN, 0}, 1, -1); }
static long ppoll_one(void) { return ppoll(&(struct pollfd){fds[0], POLLIN, 0}, 1, &(struct timespec){5, 0}, NULL); }
static long select_one(void) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fds[0], &set);
    return select(fds[0] + 1, &set, NULL, NULL, &(struct timeval){5, 0});
}
static int ep;
static long epoll_one(void) {
    struct epoll_event e;
    return epoll_wait(ep, &e, 1, 5000);
}
CASE(waiting_calls_never_restart) {
    CHECK_OK(pipe(fds));
    NEVER_RESTARTS(poll_one);
    NEVER_RESTARTS(poll_forever);
    NEVER_RESTARTS(ppoll_one);
    NEVER_RESTARTS(select_one);
    ep = CHECK_OK(epoll_create1(0));
    CHECK_OK(epoll_ctl(ep, EPOLL_CTL_ADD, fds[0], &(struct epoll_event){.events = EPOLLIN}));
    NEVER_RESTARTS(epoll_one);
}

static struct timespec rest;
static long sleep_rel(void) { return nanosleep(&(struct timespec){5, 0}, &rest); }
static long sleep_clock(void) { return syscall(SYS_clock_nanosleep, CLOCK_REALTIME, 0, &(struct timespec){5, 0}, &rest); }
static long sleep_abs(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += 5;
    rest.tv_sec = 77;
    return syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &t, &rest);
}
static long pause_call(void) { return pause(); }
static long suspend(void) { return sigsuspend(SET(SIGUSR2)); }
CASE(sleeping_calls_never_restart) {
    NEVER_RESTARTS(sleep_rel);
    CHECK(rest.tv_sec == 4 && rest.tv_nsec > 0);  // what was left
    NEVER_RESTARTS(sleep_clock);
    CHECK(rest.tv_sec == 4);
    NEVER_RESTARTS(sleep_abs);
    CHECK_EQ(rest.tv_sec, 77);  // an absolute sleep leaves no remainder
    NEVER_RESTARTS(pause_call);
    NEVER_RESTARTS(suspend);
}

static long read_event(void) {
    uint64_t v;
    return read(fds[0], &v, 8);
}
static void put_event(void) { CHECK_EQ(write(fds[0], &(uint64_t){1}, 8), 8); }
CASE(eventfd_read) {
    fds[0] = CHECK_OK(eventfd(0, 0));
    CHECK_EQ(attempt(0, read_event, NULL), INTERRUPTED);
    CHECK_EQ(attempt(SA_RESTART, read_event, put_event), 8);
}

// Without a handler (the signal is ignored, or stops and continues) every call goes on with the time that is left.
static void undisturbed(long (*call)(void), long result, long at_least) {
    pid_t me = getpid();
    long t = now_ms();
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        sleep_ms(20);
        CHECK_OK(kill(me, SIGUSR2));
        CHECK_OK(kill(me, SIGSTOP));
        sleep_ms(20);
        CHECK_OK(kill(me, SIGCONT));
        _exit(0);
    }
    long r = call();
    if (r == -1) r = -errno;
    CHECK_EQ(r, result);
    CHECK_GE(now_ms() - t, at_least);
    CHECK_LT(now_ms() - t, at_least + 3000);
    CHECK_EXIT(p, 0);
}
static long short_sleep(void) { return nanosleep(&(struct timespec){0, 100000000}, NULL); }
static long short_poll(void) { return poll(&(struct pollfd){fds[0], POLLIN, 0}, 1, 100); }
static long short_select(void) { return select(0, NULL, NULL, NULL, &(struct timeval){0, 100000}); }
static long short_epoll(void) {
    struct epoll_event e;
    return epoll_wait(ep, &e, 1, 100);
}
static long short_futex(void) {
    struct timespec t = {0, 100000000};
    return syscall(SYS_futex, word, FUTEX_WAIT, 0, &t, NULL, 0);
}
static long short_sigwait(void) { return sigtimedwait(SET(SIGTERM), NULL, &(struct timespec){0, 100000000}); }

CASE(without_a_handler_all_go_on) {
    CHECK_OK(pipe(fds));
    ep = CHECK_OK(epoll_create1(0));
    word = CHECK_MAP(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    signal(SIGUSR2, SIG_IGN);
    IN_CHILD(undisturbed(short_sleep, 0, 99));
    IN_CHILD(undisturbed(short_poll, 0, 99));
    IN_CHILD(undisturbed(short_select, 0, 99));
    IN_CHILD(undisturbed(short_futex, -ETIMEDOUT, 99));
    // These two are interrupted by a stop, as signal(7) says of Linux.
    IN_CHILD(undisturbed(short_epoll, INTERRUPTED, 30));
    IN_CHILD(undisturbed(short_sigwait, INTERRUPTED, 30));
}

CASE(restart_syscall_alone) {
    // Whoever started us may have been stopped in a call that goes on so, and a child inherits that; a handler's return ends it.
    handle(SIGUSR1, count_hit, 0);
    CHECK_OK(raise(SIGUSR1));
    CHECK_ERRNO(syscall(SYS_restart_syscall), EINTR);
}

CASE(handler_runs_before_the_restart) {
    // The event that ends the call comes from the handler itself.
    extern void feed(int);
    CHECK_OK(pipe(fds));
    handle(SIGUSR1, feed, SA_RESTART);
    pid_t p = later_asleep(40, SIGUSR1);
    CHECK_EQ(read_byte(), 1);
    CHECK_EXIT(p, 0);
}
void feed(int sig CHECK_USED) { put_byte(); }

static volatile int restarts;
static void look(int sig CHECK_USED, siginfo_t *i CHECK_USED, void *context) {
    ucontext_t *uc = context;
    // A call to be restarted: its number is back in rax, and the instruction pointer at the syscall instruction.
    if (*(unsigned short *)uc->uc_mcontext.gregs[REG_RIP] == 0x050f && uc->uc_mcontext.gregs[REG_RAX] == SYS_read) restarts++;
}
CASE(frame_of_a_restarted_call) {
    CHECK_OK(pipe(fds));
    handle_info(SIGUSR1, look, SA_RESTART);
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        for (int i = 0; i < 5; i++) {
            sleep_ms(20);
            kill(getppid(), SIGUSR1);
        }
        sleep_ms(20);
        put_byte();
        _exit(0);
    }
    char c;
    CHECK_EQ(syscall(SYS_read, fds[0], &c, 1), 1);
    CHECK_GE(restarts, 3);
    CHECK_EXIT(p, 0);
}

MAIN
