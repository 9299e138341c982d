// build: dynamic -pthread
// Blocking and waking across processes and threads: nothing is lost, nobody waits for ever.
#include "waits.h"
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

static int fds[2], done[2];

static void *read_one(void *arg) {
    char c;
    CHECK_EQ(read(fds[0], &c, 1), 1);
    CHECK_EQ(write(done[1], "d", 1), 1);
    return arg;
}

CASE(threads_blocked_in_read) {
    pthread_t t[8];
    CHECK_OK(pipe(fds));
    CHECK_OK(pipe(done));
    for (int i = 0; i < 8; i++) CHECK_EQ(pthread_create(&t[i], NULL, read_one, NULL), 0);
    usleep(20000);
    CHECK_EQ(write(fds[1], "12345678", 8), 8);
    for (int i = 0; i < 8; i++) CHECK_EQ(pthread_join(t[i], NULL), 0);
    int n = 0;
    char c;
    while (events_of(done[0], POLLIN)) n += read(done[0], &c, 1);
    CHECK_EQ(n, 8);
}

static void *poll_it(void *arg) {
    struct pollfd p = {fds[0], POLLIN, 0};
    CHECK_EQ(poll(&p, 1, 5000), 1);
    return arg;
}

CASE(all_pollers_wake) {
    pthread_t t[8];
    CHECK_OK(pipe(fds));
    for (int i = 0; i < 8; i++) CHECK_EQ(pthread_create(&t[i], NULL, poll_it, NULL), 0);
    usleep(20000);
    CHECK_EQ(write(fds[1], "x", 1), 1);
    for (int i = 0; i < 8; i++) CHECK_EQ(pthread_join(t[i], NULL), 0);
}

static void *epoll_once(void *arg) {
    struct epoll_event e;
    long n = CHECK_OK(epoll_wait(*(int *)arg, &e, 1, 5000));
    return (void *)n;
}

CASE(one_epoll_many_waiters) {
    // Level triggered: each of them gets the event in the end, as long as nobody takes it.
    pthread_t t[4];
    int ep = CHECK_OK(epoll_create1(0)), fd = CHECK_OK(eventfd(0, 0));
    struct epoll_event e = {EPOLLIN, {.u64 = 1}};
    CHECK_OK(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e));
    for (int i = 0; i < 4; i++) CHECK_EQ(pthread_create(&t[i], NULL, epoll_once, &ep), 0);
    usleep(20000);
    uint64_t one = 1;
    CHECK_EQ(write(fd, &one, 8), 8);
    for (int i = 0; i < 4; i++) {
        void *n;
        CHECK_EQ(pthread_join(t[i], &n), 0);
        CHECK_EQ((long)n, 1);
    }
}

static int tokens[2], results[2];
static void *edge_worker(void *arg) {
    int ep = *(int *)arg;
    struct epoll_event e;
    for (;;) {
        if (CHECK_OK(epoll_wait(ep, &e, 1, -1)) == 0) continue;
        char c;
        long n;
        while ((n = read(tokens[0], &c, 1)) == 1) {
            if (c == 'q') return NULL;
            CHECK_EQ(write(results[1], "r", 1), 1);
        }
        if (n == 0) return NULL;
        CHECK_EQ(errno, EAGAIN);
    }
}

CASE(edge_triggered_worker_misses_nothing) {
    pthread_t t;
    int ep = CHECK_OK(epoll_create1(0));
    CHECK_OK(pipe2(tokens, O_NONBLOCK));
    CHECK_OK(pipe(results));
    struct epoll_event e = {EPOLLIN | EPOLLET, {.u64 = 1}};
    CHECK_OK(epoll_ctl(ep, EPOLL_CTL_ADD, tokens[0], &e));
    CHECK_EQ(pthread_create(&t, NULL, edge_worker, &ep), 0);
    for (int i = 0; i < 500; i++) {
        char c;
        CHECK_EQ(write(tokens[1], "t", 1), 1);
        CHECK(readable_soon(results[0]));
        CHECK_EQ(read(results[0], &c, 1), 1);
    }
    CHECK_EQ(write(tokens[1], "q", 1), 1);
    CHECK_EQ(pthread_join(t, NULL), 0);
}

static void *oneshot_worker(void *arg) {
    int ep = *(int *)arg;
    struct epoll_event e;
    long handled = 0;
    for (;;) {
        CHECK_EQ(epoll_wait(ep, &e, 1, 5000), 1);
        uint64_t v = 0;
        if (e.data.fd < 0) return (void *)handled;  // the end: stays readable for all
        CHECK_EQ(read(e.data.fd, &v, 8), 8);        // nobody else can have it
        handled += v;
        CHECK_EQ(write(done[1], "d", 1), 1);
        e.events = EPOLLIN | EPOLLONESHOT;
        CHECK_OK(epoll_ctl(ep, EPOLL_CTL_MOD, e.data.fd, &e));
    }
}

CASE(oneshot_hands_to_one_worker) {
    pthread_t t[3];
    int ep = CHECK_OK(epoll_create1(0)), fd = CHECK_OK(eventfd(0, EFD_NONBLOCK)), end = CHECK_OK(eventfd(0, 0));
    CHECK_OK(pipe(done));
    struct epoll_event e = {EPOLLIN | EPOLLONESHOT, {.fd = fd}}, last = {EPOLLIN, {.fd = -1}};
    CHECK_OK(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e));
    CHECK_OK(epoll_ctl(ep, EPOLL_CTL_ADD, end, &last));
    for (int i = 0; i < 3; i++) CHECK_EQ(pthread_create(&t[i], NULL, oneshot_worker, &ep), 0);
    uint64_t one = 1;
    char c;
    for (int i = 0; i < 200; i++) {
        CHECK_EQ(write(fd, &one, 8), 8);
        CHECK(readable_soon(done[0]));
        CHECK_EQ(read(done[0], &c, 1), 1);
    }
    CHECK_EQ(write(end, &one, 8), 8);
    long total = 0;
    for (int i = 0; i < 3; i++) {
        void *n;
        CHECK_EQ(pthread_join(t[i], &n), 0);
        total += (long)n;
    }
    CHECK_EQ(total, 200);
}

CASE(added_while_waiting) {
    pthread_t t;
    int ep = CHECK_OK(epoll_create1(0)), fd = CHECK_OK(eventfd(5, 0));
    CHECK_EQ(pthread_create(&t, NULL, epoll_once, &ep), 0);
    usleep(20000);
    struct epoll_event e = {EPOLLIN, {.u64 = 1}};
    CHECK_OK(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e));  // ready already: the waiter wakes
    void *n;
    CHECK_EQ(pthread_join(t, &n), 0);
    CHECK_EQ((long)n, 1);
}

static void *closes_later(void *arg) {
    usleep(20000);
    CHECK_OK(close(*(int *)arg));
    return NULL;
}

CASE(close_by_another_thread_does_not_disturb_a_read) {
    // The blocked call holds the description: it goes on until data comes.
    pthread_t t;
    CHECK_OK(pipe(fds));
    CHECK_EQ(pthread_create(&t, NULL, closes_later, &fds[0]), 0);
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        CHECK_OK(close(fds[0]));
        usleep(60000);
        CHECK_EQ(write(fds[1], "x", 1), 1);
        _exit(0);
    }
    char c;
    CHECK_EQ(read(fds[0], &c, 1), 1);
    CHECK_EQ(pthread_join(t, NULL), 0);
    CHECK_ERRNO(read(fds[0], &c, 1), EBADF);
    CHECK_EXIT(pid, 0);
}

CASE(ring_of_processes) {
    enum { N = 8, ROUNDS = 50 };
    int ring[N][2];
    pid_t pids[N];
    for (int i = 0; i < N; i++) CHECK_OK(pipe(ring[i]));
    for (int i = 0; i < N; i++) {
        pids[i] = CHECK_OK(fork());
        if (pids[i] == 0) {
            int v;
            for (int r = 0; r < ROUNDS; r++) {
                CHECK_EQ(read(ring[i][0], &v, 4), 4);
                v++;
                CHECK_EQ(write(ring[(i + 1) % N][1], &v, 4), 4);
            }
            _exit(0);
        }
    }
    int v = 0;
    CHECK_EQ(write(ring[0][1], &v, 4), 4);
    for (int i = 0; i < N; i++) CHECK_EXIT(pids[i], 0);
    CHECK_EQ(read(ring[0][0], &v, 4), 4);
    CHECK_EQ(v, N * ROUNDS);
}

CASE(killed_while_blocked) {
    int p[2], s[2], ep = CHECK_OK(epoll_create1(0));
    CHECK_OK(pipe(p));
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    for (int how = 0; how < 5; how++) {
        pid_t pid = CHECK_OK(fork());
        if (pid == 0) {
            char c;
            struct pollfd v = {p[0], POLLIN, 0};
            struct epoll_event e;
            if (how == 0) read(p[0], &c, 1) == 1 ? _exit(1) : _exit(2);
            if (how == 1) poll(&v, 1, -1);
            if (how == 2) epoll_wait(ep, &e, 1, -1);
            if (how == 3) recv(s[0], &c, 1, 0);
            if (how == 4) accept(s[0], NULL, NULL), pause();
            _exit(3);
        }
        usleep(10000);
        CHECK_OK(kill(pid, SIGKILL));
        CHECK_KILLED(pid, SIGKILL);
    }
}

MAIN
