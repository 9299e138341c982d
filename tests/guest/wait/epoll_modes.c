// build: static
// epoll: edge triggered, one shot, exclusive; nesting and cycles; closed, duplicated and inherited descriptors.
#include "waits.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

static int ctl(int ep, int op, int fd, uint32_t events, uint64_t data) {
    struct epoll_event e = {events, {.u64 = data}};
    return epoll_ctl(ep, op, fd, &e);
}
static int add(int ep, int fd, uint32_t events, uint64_t data) { return ctl(ep, EPOLL_CTL_ADD, fd, events, data); }

// The next event's bits, 0 for none; its data goes to `data_of`.
static uint64_t data_of;
static uint32_t next(int ep) {
    struct epoll_event e = {0, {0}};
    int n = CHECK_OK(epoll_wait(ep, &e, 1, 0));
    data_of = e.data.u64;
    return n ? e.events : 0;
}

CASE(edge_once_for_each_arrival) {
    int ep = CHECK_OK(epoll_create1(0)), p[2];
    CHECK_OK(pipe2(p, O_NONBLOCK));
    CHECK_EQ(write(p[1], "old", 3), 3);
    CHECK_OK(add(ep, p[0], EPOLLIN | EPOLLET, 1));
    CHECK_EQ(next(ep), EPOLLIN);  // what was there before counts as an edge
    CHECK_EQ(next(ep), 0);
    CHECK_EQ(write(p[1], "a", 1), 1);
    CHECK_EQ(next(ep), EPOLLIN);  // new data is an edge, though the old was not read
    CHECK_EQ(next(ep), 0);
    char buf[10];
    CHECK_EQ(read(p[0], buf, 1), 1);
    CHECK_EQ(next(ep), 0);  // reading a part is none
    CHECK_EQ(read(p[0], buf, 10), 3);
    CHECK_ERRNO(read(p[0], buf, 10), EAGAIN);
    CHECK_EQ(next(ep), 0);
    CHECK_EQ(write(p[1], "b", 1), 1);
    CHECK_EQ(write(p[1], "c", 1), 1);
    CHECK_EQ(next(ep), EPOLLIN);  // two writes before the wait are one event
    CHECK_EQ(next(ep), 0);
    CHECK_OK(close(p[1]));
    CHECK_EQ(next(ep), EPOLLIN | EPOLLHUP);
    CHECK_EQ(next(ep), 0);
}

CASE(edge_rearmed_by_modify) {
    int ep = CHECK_OK(epoll_create1(0)), p[2];
    CHECK_OK(pipe(p));
    CHECK_EQ(write(p[1], "x", 1), 1);
    CHECK_OK(add(ep, p[0], EPOLLIN | EPOLLET, 1));
    CHECK_EQ(next(ep), EPOLLIN);
    CHECK_EQ(next(ep), 0);
    CHECK_OK(ctl(ep, EPOLL_CTL_MOD, p[0], EPOLLIN | EPOLLET, 2));
    CHECK_EQ(next(ep), EPOLLIN);
    CHECK_EQ(data_of, 2);
    CHECK_EQ(next(ep), 0);
}

CASE(edge_of_writing) {
    int ep = CHECK_OK(epoll_create1(0)), s[2];
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, s));
    CHECK_OK(add(ep, s[0], EPOLLOUT | EPOLLET, 1));
    CHECK_EQ(next(ep), EPOLLOUT);
    CHECK_EQ(next(ep), 0);
    static char buf[65536];
    while (write(s[0], buf, sizeof buf) > 0) {}
    CHECK_EQ(errno, EAGAIN);
    while (next(ep)) {}
    while (read(s[1], buf, sizeof buf) > 0) {}
    CHECK_EQ(next(ep), EPOLLOUT);  // room again
    CHECK_EQ(next(ep), 0);
}

CASE(edge_of_eventfd) {
    int ep = CHECK_OK(epoll_create1(0)), fd = CHECK_OK(eventfd(0, EFD_NONBLOCK));
    CHECK_OK(add(ep, fd, EPOLLIN | EPOLLET, 1));
    uint64_t v = 1;
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(write(fd, &v, 8), 8);
        CHECK_EQ(next(ep), EPOLLIN);  // each write, read or not
        CHECK_EQ(next(ep), 0);
    }
}

CASE(one_shot) {
    int ep = CHECK_OK(epoll_create1(0)), p[2];
    CHECK_OK(pipe(p));
    CHECK_OK(add(ep, p[0], EPOLLIN | EPOLLONESHOT, 1));
    CHECK_EQ(write(p[1], "x", 1), 1);
    CHECK_EQ(next(ep), EPOLLIN);
    CHECK_EQ(next(ep), 0);
    CHECK_EQ(write(p[1], "y", 1), 1);
    CHECK_EQ(next(ep), 0);
    CHECK_OK(close(p[1]));
    CHECK_EQ(next(ep), 0);  // even a hang-up is not told while disarmed
    CHECK_ERRNO(add(ep, p[0], EPOLLIN, 2), EEXIST);  // but the entry is there
    CHECK_OK(ctl(ep, EPOLL_CTL_MOD, p[0], EPOLLIN | EPOLLONESHOT, 3));
    CHECK_EQ(next(ep), EPOLLIN | EPOLLHUP);
    CHECK_EQ(data_of, 3);
    CHECK_EQ(next(ep), 0);
}

CASE(exclusive) {
    int a = CHECK_OK(epoll_create1(0)), b = CHECK_OK(epoll_create1(0)), fd = CHECK_OK(eventfd(0, 0));
    CHECK_OK(add(a, fd, EPOLLIN | EPOLLEXCLUSIVE, 1));
    CHECK_OK(add(b, fd, EPOLLIN | EPOLLEXCLUSIVE | EPOLLET, 2));
    uint64_t v = 1;
    CHECK_EQ(write(fd, &v, 8), 8);
    CHECK(next(a) == EPOLLIN || next(b) == EPOLLIN);  // at least one learns of it
    CHECK_ERRNO(ctl(a, EPOLL_CTL_MOD, fd, EPOLLIN, 1), EINVAL);
    CHECK_ERRNO(ctl(a, EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLEXCLUSIVE, 1), EINVAL);
    CHECK_OK(ctl(a, EPOLL_CTL_DEL, fd, 0, 0));
    CHECK_ERRNO(add(a, fd, EPOLLIN | EPOLLEXCLUSIVE | EPOLLONESHOT, 1), EINVAL);
    CHECK_ERRNO(add(a, fd, EPOLLIN | EPOLLEXCLUSIVE | EPOLLPRI, 1), EINVAL);
    CHECK_ERRNO(add(a, b, EPOLLIN | EPOLLEXCLUSIVE, 1), EINVAL);
    CHECK_OK(add(a, fd, EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP | EPOLLWAKEUP | EPOLLEXCLUSIVE, 1));
}

CASE(nested) {
    int outer = CHECK_OK(epoll_create1(0)), inner = CHECK_OK(epoll_create1(0)), p[2];
    CHECK_OK(pipe(p));
    CHECK_OK(add(inner, p[0], EPOLLIN, 1));
    CHECK_OK(add(outer, inner, EPOLLIN, 2));
    CHECK_EQ(next(outer), 0);
    CHECK_EQ(events_of(inner, POLLIN | POLLOUT), 0);
    CHECK_EQ(write(p[1], "x", 1), 1);
    CHECK_EQ(next(outer), EPOLLIN);
    CHECK_EQ(data_of, 2);
    CHECK_EQ(events_of(outer, POLLIN | POLLOUT), POLLIN);
    CHECK_EQ(next(inner), EPOLLIN);
    CHECK_EQ(data_of, 1);
    char c;
    CHECK_EQ(read(p[0], &c, 1), 1);
    CHECK_EQ(next(outer), 0);
    CHECK_EQ(events_of(outer, POLLIN), 0);
    // A wait on the outer one is woken from the innermost.
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        usleep(20000);
        CHECK_EQ(write(p[1], "x", 1), 1);
        _exit(0);
    }
    struct epoll_event e;
    CHECK_EQ(epoll_wait(outer, &e, 1, 3000), 1);
    CHECK_EXIT(pid, 0);
}

CASE(cycles_and_depth) {
    int a = CHECK_OK(epoll_create1(0)), b = CHECK_OK(epoll_create1(0)), c = CHECK_OK(epoll_create1(0));
    CHECK_ERRNO(add(a, a, EPOLLIN, 0), EINVAL);
    CHECK_OK(add(a, b, EPOLLIN, 0));
    CHECK_OK(add(b, c, EPOLLIN, 0));
    CHECK_ERRNO(add(c, a, EPOLLIN, 0), ELOOP);
    CHECK_ERRNO(add(b, a, EPOLLIN, 0), ELOOP);
    CHECK_OK(add(a, c, EPOLLIN, 0));  // a second way is no cycle
    int chain[8], n = 1;
    chain[0] = CHECK_OK(epoll_create1(0));
    for (; n < 8; n++) {
        chain[n] = CHECK_OK(epoll_create1(0));
        if (add(chain[n], chain[n - 1], EPOLLIN, 0) == -1) break;
    }
    CHECK_LT(n, 8);
    CHECK_EQ(errno, ELOOP);
    CHECK_EQ(n, 5);  // four links at most
}

CASE(close_removes) {
    int ep = CHECK_OK(epoll_create1(0)), p[2];
    CHECK_OK(pipe(p));
    CHECK_EQ(write(p[1], "x", 1), 1);
    CHECK_OK(add(ep, p[0], EPOLLIN, 1));
    CHECK_OK(close(p[0]));
    CHECK_EQ(next(ep), 0);
    int q[2];
    CHECK_OK(pipe(q));
    CHECK_EQ(q[0], p[0]);  // the number lives again, as something else
    CHECK_ERRNO(ctl(ep, EPOLL_CTL_MOD, q[0], EPOLLIN, 1), ENOENT);
    CHECK_OK(add(ep, q[0], EPOLLIN, 2));
    CHECK_EQ(next(ep), 0);
}

CASE(duplicates_keep_the_entry) {
    int ep = CHECK_OK(epoll_create1(0)), p[2];
    CHECK_OK(pipe(p));
    int copy = CHECK_OK(dup(p[0]));
    CHECK_OK(add(ep, p[0], EPOLLIN, 1));
    CHECK_OK(add(ep, copy, EPOLLIN, 2));  // another number is another entry
    CHECK_EQ(write(p[1], "x", 1), 1);
    struct epoll_event e[4];
    CHECK_EQ(epoll_wait(ep, e, 4, 0), 2);
    CHECK_OK(ctl(ep, EPOLL_CTL_DEL, copy, 0, 0));
    CHECK_OK(close(p[0]));
    // The description lives on in the copy, so the entry does; and by the closed number it cannot be reached.
    CHECK_EQ(next(ep), EPOLLIN);
    CHECK_EQ(data_of, 1);
    CHECK_ERRNO(ctl(ep, EPOLL_CTL_DEL, p[0], 0, 0), EBADF);
    CHECK_ERRNO(ctl(ep, EPOLL_CTL_DEL, copy, 0, 0), ENOENT);
    CHECK_EQ(dup2(copy, p[0]), p[0]);  // the same number for the same description finds it again
    CHECK_OK(ctl(ep, EPOLL_CTL_DEL, p[0], 0, 0));
    CHECK_EQ(next(ep), 0);
}

CASE(shared_with_children) {
    int ep = CHECK_OK(epoll_create1(0)), p[2];
    CHECK_OK(pipe(p));
    CHECK_OK(add(ep, p[0], EPOLLIN, 1));
    IN_CHILD({
        CHECK_OK(close(p[0]));  // the parent still has it
        CHECK_EQ(write(p[1], "x", 1), 1);
        CHECK_EQ(next(ep), EPOLLIN);
        int fd = CHECK_OK(eventfd(1, 0));
        CHECK_OK(add(ep, fd, EPOLLIN, 2));
    });
    char c;
    CHECK_EQ(next(ep), EPOLLIN);
    CHECK_EQ(data_of, 1);  // the child's own descriptor went with the child
    CHECK_EQ(read(p[0], &c, 1), 1);
    CHECK_EQ(next(ep), 0);
}

CASE(closing_the_epoll_descriptor) {
    int ep = CHECK_OK(epoll_create1(0)), fd = CHECK_OK(eventfd(0, 0)), copy = CHECK_OK(dup(ep));
    CHECK_OK(add(ep, fd, EPOLLIN, 1));
    CHECK_OK(close(ep));
    uint64_t v = 1;
    CHECK_EQ(write(fd, &v, 8), 8);
    CHECK_EQ(next(copy), EPOLLIN);
    CHECK_OK(close(copy));
    CHECK_EQ(write(fd, &v, 8), 8);
}

MAIN
