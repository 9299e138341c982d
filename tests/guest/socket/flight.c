// build: static
// Sockets in flight: what only messages hold is closed; long chains, cycles through listeners, limits.
#include "sockets.h"
#include <sys/resource.h>

static int s[2], p[2];

static long give(int over, const int *fds, int n) {
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(253 * sizeof(int))];
    } c;
    memset(&c, 0, sizeof c);
    struct iovec v = {"x", 1};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = CMSG_SPACE(n * sizeof(int))};
    c.head = (struct cmsghdr){.cmsg_len = CMSG_LEN(n * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(&c.head), fds, n * sizeof(int));
    return sendmsg(over, &m, MSG_DONTWAIT);
}

// Takes one descriptor.
static int take(int over) {
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } c;
    char b;
    struct iovec v = {&b, 1};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof c};
    CHECK_EQ(recvmsg(over, &m, 0), 1);
    CHECK_EQ(m.msg_controllen, sizeof c);
    int fd;
    memcpy(&fd, CMSG_DATA(&c.head), sizeof fd);
    return fd;
}

// Whether the pipe's last writer goes when sockets are closed, as which Linux looks for unreachable ones.
static int writer_goes(void) {
    for (int i = 0; i < 100 && events_of(p[0], POLLIN) == 0; i++) {
        CHECK_OK(close(sock(SOCK_DGRAM)));
        usleep(2000);
    }
    return events_of(p[0], POLLIN) == POLLHUP;
}

CASE(a_long_chain) {
    CHECK_OK(pipe(p));
    int last = p[1];
    for (int i = 0; i < 900; i++) {  // each holds the one before
        CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
        CHECK_EQ(give(s[0], &last, 1), 1);
        CHECK_OK(close(s[0]));
        CHECK_OK(close(last));
        last = s[1];
    }
    CHECK_EQ(events_of(p[0], POLLIN), 0);
    CHECK_OK(close(last));
    CHECK(writer_goes());
}

CASE(a_chain_unwound) {
    CHECK_OK(pipe(p));
    int last = p[1];
    for (int i = 0; i < 50; i++) {
        CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
        CHECK_EQ(give(s[0], &last, 1), 1);
        CHECK_OK(close(s[0]));
        CHECK_OK(close(last));
        last = s[1];
    }
    for (int i = 0; i < 50; i++) {
        int next = take(last);
        CHECK_OK(close(last));
        last = next;
    }
    CHECK_EQ(write(last, "z", 1), 1);
    char b;
    CHECK_EQ(read(p[0], &b, 1), 1);
}

CASE(cycles_do_not_pile_up) {
    struct rlimit limit = {256, 256};
    CHECK_OK(setrlimit(RLIMIT_NOFILE, &limit));
    int refused = 0;
    for (int i = 0; i < 2000; i++) {
        CHECK_OK(socketpair(AF_UNIX, SOCK_DGRAM, 0, s));
        if (give(s[0], &s[1], 1) == -1 || give(s[1], &s[0], 1) == -1) {
            CHECK_EQ(errno, ETOOMANYREFS);
            refused++;
            usleep(1000);  // Linux collects in its own time
        }
        CHECK_OK(close(s[0]));
        CHECK_OK(close(s[1]));
    }
    CHECK_LT(refused, 1900);
}

CASE(a_listener_in_its_own_backlog) {
    CHECK_OK(pipe(p));
    struct name n = abstract("cycle");
    int l = listener(SOCK_STREAM, n, 5), c = joined(SOCK_STREAM, n);
    int fds[2] = {l, p[1]};
    CHECK_EQ(give(c, fds, 2), 1);
    CHECK_OK(close(c));
    CHECK_OK(close(p[1]));
    for (int i = 0; i < 20; i++) CHECK_OK(close(sock(SOCK_DGRAM)));
    CHECK_EQ(events_of(p[0], POLLIN), 0);  // it can still be accepted
    CHECK_OK(close(l));
    CHECK(writer_goes());
}

CASE(reachable_ones_stay) {
    int outer[2];
    CHECK_OK(pipe(p));
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, outer));
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    CHECK_EQ(give(s[0], &s[1], 1), 1);  // holds itself
    CHECK_EQ(give(s[0], &p[1], 1), 1);
    CHECK_EQ(give(outer[0], &s[1], 1), 1);  // and is held by one that is open
    CHECK_OK(close(s[0]));
    CHECK_OK(close(s[1]));
    CHECK_OK(close(p[1]));
    for (int i = 0; i < 20; i++) CHECK_OK(close(sock(SOCK_DGRAM)));
    CHECK_EQ(events_of(p[0], POLLIN), 0);
    int inner = take(outer[1]), itself = take(inner), writer = take(itself);
    CHECK_EQ(write(writer, "z", 1), 1);
    CHECK_OK(close(writer));
    CHECK_EQ(events_of(p[0], POLLIN), POLLIN | POLLHUP);
}

CASE(limit_of_a_user) {
    if (geteuid() == 0) {  // root may have more
        CHECK_OK(setresgid(65533, 65533, 65533));
        CHECK_OK(setresuid(65533, 65533, 65533));
    }
    struct rlimit limit = {100, 100};
    CHECK_OK(setrlimit(RLIMIT_NOFILE, &limit));
    CHECK_OK(socketpair(AF_UNIX, SOCK_DGRAM, 0, s));
    int fds[10], sent = 0;
    for (int i = 0; i < 10; i++) fds[i] = 2;
    while (give(s[0], fds, 10) == 1) sent += 10;
    CHECK_EQ(errno, ETOOMANYREFS);
    CHECK_LE(sent, 110);  // one message may go beyond it
    char b;
    while (recv(s[1], &b, 1, MSG_DONTWAIT) == 1) {}
    CHECK_EQ(give(s[0], fds, 10), 1);  // received ones no longer count
}

MAIN
