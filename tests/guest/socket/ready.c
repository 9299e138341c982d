// build: dynamic -pthread
// Readiness of sockets: poll, select and epoll at each stage, and waking those who wait.
#include "sockets.h"
#include <pthread.h>
#include <sys/epoll.h>

static int s[2];
static const int all = POLLIN | POLLOUT | POLLPRI | POLLRDHUP;

static int ready_soon(int fd, int wanted) {
    struct pollfd p = {fd, wanted, 0};
    CHECK_EQ(poll(&p, 1, 3000), 1);
    return p.revents;
}

CASE(fresh_sockets) {
    CHECK_EQ(events_of(sock(SOCK_STREAM), all), POLLOUT | POLLHUP);
    CHECK_EQ(events_of(sock(SOCK_SEQPACKET), all), POLLOUT | POLLHUP);
    CHECK_EQ(events_of(sock(SOCK_DGRAM), all), POLLOUT);
    CHECK_EQ(events_of(bound(SOCK_STREAM, abstract("b")), all), POLLOUT | POLLHUP);
    CHECK_EQ(events_of(listener(SOCK_STREAM, abstract("l"), 5), all), 0);
}

CASE(a_connection) {
    enter();
    int l = listener(SOCK_STREAM, path("s"), 5), c = joined(SOCK_STREAM, path("s"));
    CHECK_EQ(events_of(l, all), POLLIN);
    CHECK_EQ(events_of(c, all), POLLOUT);
    int a = CHECK_OK(accept(l, NULL, NULL));
    CHECK_EQ(events_of(l, all), 0);
    CHECK_EQ(events_of(a, all), POLLOUT);
    CHECK_EQ(write(c, "x", 1), 1);
    CHECK_EQ(events_of(a, all), POLLIN | POLLOUT);
    CHECK_EQ(events_of(a, POLLRDNORM), POLLRDNORM);
    CHECK_OK(close(c));
    CHECK_EQ(events_of(a, all), POLLIN | POLLOUT | POLLHUP | POLLRDHUP);
    char b;
    CHECK_EQ(read(a, &b, 1), 1);
    CHECK_EQ(events_of(a, all), POLLIN | POLLOUT | POLLHUP | POLLRDHUP);
    CHECK_EQ(read(a, &b, 1), 0);
}

CASE(unread_data_resets) {
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    CHECK_EQ(write(s[0], "x", 1), 1);
    CHECK_OK(close(s[1]));
    CHECK_EQ(events_of(s[0], all), POLLIN | POLLOUT | POLLHUP | POLLRDHUP | POLLERR);
    CHECK_EQ(option(s[0], SO_ERROR), ECONNRESET);
    CHECK_EQ(events_of(s[0], all), POLLIN | POLLOUT | POLLHUP | POLLRDHUP);
}

CASE(writable_at_a_quarter) {
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, s));
    static char buf[8192];
    while (write(s[0], buf, sizeof buf) > 0) {}
    CHECK_EQ(events_of(s[0], POLLOUT), 0);
    CHECK_EQ(read(s[1], buf, 100), 100);
    CHECK_EQ(events_of(s[0], POLLOUT), 0);  // a little room is not enough
    while (read(s[1], buf, sizeof buf) > 0) {}
    CHECK_EQ(events_of(s[0], POLLOUT), POLLOUT);
}

static void *act_later(void *arg) {
    usleep(20000);
    switch ((long)arg) {
    case 0: CHECK_EQ(write(s[1], "x", 1), 1); break;
    case 1: CHECK_OK(shutdown(s[1], SHUT_WR)); break;
    case 2: CHECK_OK(close(s[1])); break;
    case 3: CHECK_OK(shutdown(s[0], SHUT_RD)); break;
    }
    return NULL;
}

CASE(each_event_wakes_a_poller) {
    static const int want[] = {POLLIN, POLLIN | POLLRDHUP, POLLIN | POLLRDHUP | POLLHUP, POLLIN | POLLRDHUP};
    for (long i = 0; i < 4; i++) {
        pthread_t t;
        CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
        CHECK_EQ(pthread_create(&t, NULL, act_later, (void *)i), 0);
        CHECK_EQ(ready_soon(s[0], POLLIN | POLLRDHUP), want[i]);
        CHECK_EQ(pthread_join(t, NULL), 0);
    }
}

CASE(room_wakes_a_poller) {
    int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};
    for (int i = 0; i < 3; i++) {
        CHECK_OK(socketpair(AF_UNIX, types[i] | SOCK_NONBLOCK, 0, s));
        static char buf[4000];
        while (write(s[0], buf, sizeof buf) > 0) {}
        CHECK_EQ(errno, EAGAIN);
        pid_t pid = CHECK_OK(fork());
        if (pid == 0) {
            usleep(20000);
            while (read(s[1], buf, sizeof buf) > 0) {}
            _exit(0);
        }
        CHECK_EQ(ready_soon(s[0], POLLOUT), POLLOUT);
        CHECK_EXIT(pid, 0);
    }
}

CASE(listener_wakes) {
    enter();
    int l = listener(SOCK_STREAM, path("s"), 5);
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        usleep(20000);
        joined(SOCK_STREAM, path("s"));
        _exit(0);
    }
    CHECK_EQ(ready_soon(l, POLLIN), POLLIN);
    CHECK_OK(accept(l, NULL, NULL));
    CHECK_EXIT(pid, 0);
}

CASE(epoll_edges) {
    int ep = CHECK_OK(epoll_create1(0));
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, s));
    struct epoll_event e = {EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, {.u64 = 1}};
    CHECK_OK(epoll_ctl(ep, EPOLL_CTL_ADD, s[0], &e));
    CHECK_EQ(epoll_wait(ep, &e, 1, 0), 1);
    CHECK_EQ(e.events, EPOLLOUT);
    CHECK_EQ(epoll_wait(ep, &e, 1, 0), 0);
    for (int i = 0; i < 3; i++) {  // each message is an edge, whether the last was read or not
        CHECK_EQ(write(s[1], "x", 1), 1);
        CHECK_EQ(epoll_wait(ep, &e, 1, 0), 1);
        CHECK_EQ(e.events, EPOLLIN | EPOLLOUT);
        CHECK_EQ(epoll_wait(ep, &e, 1, 0), 0);
    }
    CHECK_OK(shutdown(s[1], SHUT_WR));
    CHECK_EQ(epoll_wait(ep, &e, 1, 0), 1);
    CHECK_EQ(e.events, EPOLLIN | EPOLLOUT | EPOLLRDHUP);
    CHECK_OK(close(s[1]));
    CHECK_EQ(epoll_wait(ep, &e, 1, 0), 1);
    CHECK_EQ(e.events, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLHUP);
    CHECK_EQ(epoll_wait(ep, &e, 1, 0), 0);
}

CASE(epoll_server) {
    enter();
    int l = listener(SOCK_STREAM | SOCK_NONBLOCK, path("s"), 50), ep = CHECK_OK(epoll_create1(0));
    struct epoll_event e = {EPOLLIN, {.fd = l}};
    CHECK_OK(epoll_ctl(ep, EPOLL_CTL_ADD, l, &e));
    pid_t pids[4];
    for (int p = 0; p < 4; p++) {
        pids[p] = CHECK_OK(fork());
        if (pids[p] == 0) {
            for (int i = 0; i < 25; i++) {
                int c = joined(SOCK_STREAM, path("s")), v = p * 100 + i, back = 0;
                for (int k = 0; k < 3; k++) {
                    CHECK_EQ(write(c, &v, 4), 4);
                    CHECK_EQ(recv(c, &back, 4, MSG_WAITALL), 4);
                    CHECK_EQ(back, ~v);
                }
                CHECK_OK(close(c));
            }
            _exit(0);
        }
    }
    int closed = 0;
    while (closed < 100) {
        struct epoll_event got[16];
        int n = CHECK_OK(epoll_wait(ep, got, 16, 5000));
        CHECK_GT(n, 0);
        for (int i = 0; i < n; i++) {
            int fd = got[i].data.fd, v;
            if (fd == l) {
                int a;
                while ((a = accept4(l, NULL, NULL, SOCK_NONBLOCK)) != -1) {
                    e = (struct epoll_event){EPOLLIN, {.fd = a}};
                    CHECK_OK(epoll_ctl(ep, EPOLL_CTL_ADD, a, &e));
                }
                CHECK_EQ(errno, EAGAIN);
                continue;
            }
            long r = read(fd, &v, 4);
            if (r == 4) {
                v = ~v;
                CHECK_EQ(write(fd, &v, 4), 4);
            } else if (r == 0) {
                CHECK_OK(close(fd));
                closed++;
            } else {
                CHECK_EQ(errno, EAGAIN);
            }
        }
    }
    for (int p = 0; p < 4; p++) CHECK_EXIT(pids[p], 0);
}

CASE(datagram_receiver_full) {
    enter();
    int r = bound(SOCK_DGRAM, path("r")), c = joined(SOCK_DGRAM, path("r"));
    struct name n = path("r");
    int other = sock(SOCK_DGRAM);
    while (send(c, "x", 1, MSG_DONTWAIT) == 1) {}
    CHECK_EQ(errno, EAGAIN);
    CHECK_EQ(events_of(c, POLLOUT), 0);  // connected: it knows that the peer is full
    CHECK_EQ(events_of(other, POLLOUT), POLLOUT);
    CHECK_ERRNO(sendto(other, "x", 1, MSG_DONTWAIT, NAME(n)), EAGAIN);
    char b;
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        usleep(20000);
        while (recv(r, &b, 1, MSG_DONTWAIT) == 1) {}
        _exit(0);
    }
    CHECK_EQ(ready_soon(c, POLLOUT), POLLOUT);
    CHECK_EXIT(pid, 0);
}

static volatile int got_io;
static void on_io(int sig) { got_io = sig; }

CASE(sigio) {
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    signal(SIGIO, on_io);
    CHECK_OK(fcntl(s[0], F_SETOWN, getpid()));
    CHECK_OK(fcntl(s[0], F_SETFL, O_ASYNC));
    CHECK_EQ(write(s[1], "x", 1), 1);
    CHECK_EQ(got_io, SIGIO);
}

MAIN
