// build: static
// Socket options and shutdown.
#include "sockets.h"

static int s[2];

static long get(int fd, int level, int which, void *v, socklen_t *len) { return getsockopt(fd, level, which, v, len); }
static long set(int fd, int level, int which, int v) { return setsockopt(fd, level, which, &v, sizeof v); }

CASE(what_a_socket_is) {
    int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};
    for (int i = 0; i < 3; i++) {
        int fd = sock(types[i]);
        CHECK_EQ(option(fd, SO_TYPE), types[i]);
        CHECK_EQ(option(fd, SO_DOMAIN), AF_UNIX);
        CHECK_EQ(option(fd, SO_PROTOCOL), 0);
        CHECK_EQ(option(fd, SO_ACCEPTCONN), 0);
        CHECK_EQ(option(fd, SO_ERROR), 0);
        CHECK_EQ(option(fd, SO_PASSCRED), 0);
        CHECK_EQ(option(fd, SO_KEEPALIVE), 0);
    }
    CHECK_ERRNO(set(sock(SOCK_STREAM), SOL_SOCKET, SO_TYPE, 1), ENOPROTOOPT);
    CHECK_ERRNO(set(sock(SOCK_STREAM), SOL_SOCKET, SO_ERROR, 1), ENOPROTOOPT);
    CHECK_ERRNO(set(sock(SOCK_STREAM), SOL_SOCKET, SO_ACCEPTCONN, 1), ENOPROTOOPT);
}

CASE(buffers) {
    int fd = sock(SOCK_STREAM);
    CHECK_GE(option(fd, SO_SNDBUF), 100000);
    CHECK_GE(option(fd, SO_RCVBUF), 100000);
    CHECK_OK(set(fd, SOL_SOCKET, SO_SNDBUF, 30000));
    CHECK_EQ(option(fd, SO_SNDBUF), 60000);  // doubled, for the book-keeping
    CHECK_OK(set(fd, SOL_SOCKET, SO_RCVBUF, 40000));
    CHECK_EQ(option(fd, SO_RCVBUF), 80000);
    CHECK_OK(set(fd, SOL_SOCKET, SO_SNDBUF, 1));
    CHECK_EQ(option(fd, SO_SNDBUF), 4608);
    CHECK_OK(set(fd, SOL_SOCKET, SO_RCVBUF, 1));
    CHECK_EQ(option(fd, SO_RCVBUF), 2304);
    CHECK_OK(set(fd, SOL_SOCKET, SO_SNDBUF, 1 << 30));  // cut to the limit, not refused
    CHECK_LT(option(fd, SO_SNDBUF), 1 << 30);
    CHECK_GE(option(fd, SO_SNDBUF), 200000);
    if (geteuid() != 0) CHECK_ERRNO(set(fd, SOL_SOCKET, SO_SNDBUFFORCE, 10000), EPERM);
    // A small buffer makes a writer wait sooner.
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    CHECK_OK(set(s[0], SOL_SOCKET, SO_SNDBUF, 1));
    static char buf[100000];
    long n = send(s[0], buf, sizeof buf, MSG_DONTWAIT);
    CHECK_GT(n, 0);
    CHECK_LE(n, 4608);
}

CASE(switches) {
    int fd = sock(SOCK_STREAM);
    int which[] = {SO_REUSEADDR, SO_KEEPALIVE, SO_BROADCAST, SO_OOBINLINE, SO_PASSCRED};
    for (int i = 0; i < 5; i++) {
        CHECK_OK(set(fd, SOL_SOCKET, which[i], 5));
        CHECK_EQ(option(fd, which[i]), 1);  // any value but zero is one
        CHECK_OK(set(fd, SOL_SOCKET, which[i], 0));
        CHECK_EQ(option(fd, which[i]), 0);
    }
    CHECK_OK(set(fd, SOL_SOCKET, SO_PRIORITY, 3));
    CHECK_EQ(option(fd, SO_PRIORITY), 3);
    struct linger l = {1, 7}, got = {0, 0};
    socklen_t len = sizeof got;
    CHECK_OK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof l));
    CHECK_OK(get(fd, SOL_SOCKET, SO_LINGER, &got, &len));
    CHECK_EQ(got.l_onoff, 1);
    CHECK_EQ(got.l_linger, 7);
    CHECK_ERRNO(setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, 4), EINVAL);
}

CASE(errors) {
    int fd = sock(SOCK_STREAM), v = 0;
    socklen_t len = sizeof v;
    CHECK_ERRNO(get(fd, SOL_SOCKET, 9999, &v, &len), ENOPROTOOPT);
    CHECK_ERRNO(set(fd, SOL_SOCKET, 9999, 1), ENOPROTOOPT);
    CHECK_ERRNO(get(fd, 6 /* TCP */, 1, &v, &len), EOPNOTSUPP);
    CHECK_ERRNO(set(fd, 6, 1, 1), EOPNOTSUPP);
    CHECK_ERRNO(setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &v, 3), EINVAL);
    CHECK_ERRNO(setsockopt(fd, SOL_SOCKET, SO_PASSCRED, nowhere, 4), EFAULT);
    CHECK_ERRNO(setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &v, -1), EINVAL);
    CHECK_ERRNO(get(fd, SOL_SOCKET, SO_TYPE, nowhere, &len), EFAULT);
    CHECK_ERRNO(get(fd, SOL_SOCKET, SO_TYPE, &v, nowhere), EFAULT);
    len = -1;
    CHECK_ERRNO(get(fd, SOL_SOCKET, SO_TYPE, &v, &len), EINVAL);
    // A short buffer gets the first bytes.
    unsigned char one[2] = {0xee, 0xee};
    len = 1;
    CHECK_OK(get(fd, SOL_SOCKET, SO_TYPE, one, &len));
    CHECK_EQ(len, 1);
    CHECK_EQ(one[0], SOCK_STREAM);
    CHECK_EQ(one[1], 0xee);
    len = 100;
    char big[100];
    CHECK_OK(get(fd, SOL_SOCKET, SO_TYPE, big, &len));
    CHECK_EQ(len, 4);
}

static void pair(int type) {
    signal(SIGPIPE, SIG_IGN);
    CHECK_OK(socketpair(AF_UNIX, type, 0, s));
}

CASE(shutdown_of_writing) {
    char b[8];
    int types[] = {SOCK_STREAM, SOCK_SEQPACKET};
    for (int i = 0; i < 2; i++) {
        pair(types[i]);
        CHECK_EQ(send(s[0], "last", 4, 0), 4);
        CHECK_OK(shutdown(s[0], SHUT_WR));
        CHECK_ERRNO(send(s[0], "x", 1, 0), EPIPE);
        CHECK_EQ(events_of(s[1], POLLIN | POLLOUT | POLLRDHUP), POLLIN | POLLOUT | POLLRDHUP);
        CHECK_EQ(recv(s[1], b, 8, 0), 4);
        CHECK_EQ(recv(s[1], b, 8, 0), 0);
        CHECK_EQ(recv(s[1], b, 8, 0), 0);
        CHECK_EQ(send(s[1], "back", 4, 0), 4);  // the other way is open
        CHECK_EQ(recv(s[0], b, 8, 0), 4);
        CHECK_EQ(events_of(s[0], POLLIN | POLLOUT | POLLRDHUP), POLLOUT);
    }
}

CASE(shutdown_of_reading) {
    char b[8];
    pair(SOCK_STREAM);
    CHECK_EQ(send(s[1], "here", 4, 0), 4);
    CHECK_OK(shutdown(s[0], SHUT_RD));
    CHECK_EQ(recv(s[0], b, 8, 0), 4);  // what has arrived can be read
    CHECK_EQ(recv(s[0], b, 8, 0), 0);
    CHECK_ERRNO(send(s[1], "x", 1, 0), EPIPE);
    CHECK_EQ(events_of(s[0], POLLIN | POLLOUT | POLLRDHUP), POLLIN | POLLOUT | POLLRDHUP);
    CHECK_EQ(send(s[0], "y", 1, 0), 1);
    CHECK_EQ(recv(s[1], b, 8, 0), 1);
}

CASE(shutdown_of_both) {
    char b[8];
    pair(SOCK_STREAM);
    CHECK_OK(shutdown(s[0], SHUT_RDWR));
    CHECK_EQ(recv(s[0], b, 8, 0), 0);
    CHECK_EQ(recv(s[1], b, 8, 0), 0);
    CHECK_ERRNO(send(s[0], "x", 1, 0), EPIPE);
    CHECK_ERRNO(send(s[1], "x", 1, 0), EPIPE);
    CHECK_EQ(events_of(s[0], POLLIN | POLLOUT | POLLRDHUP), POLLIN | POLLOUT | POLLHUP | POLLRDHUP);
    CHECK_EQ(events_of(s[1], POLLIN | POLLOUT | POLLRDHUP), POLLIN | POLLOUT | POLLHUP | POLLRDHUP);
    CHECK_OK(shutdown(s[0], SHUT_RDWR));
    CHECK_ERRNO(shutdown(s[0], 3), EINVAL);
    CHECK_ERRNO(shutdown(s[0], -1), EINVAL);
    CHECK_OK(shutdown(sock(SOCK_STREAM), SHUT_RD));  // Linux does not insist on a connection here
}

CASE(shutdown_of_datagrams) {
    char b[8];
    pair(SOCK_DGRAM);
    CHECK_OK(shutdown(s[0], SHUT_WR));
    CHECK_ERRNO(send(s[0], "x", 1, 0), EPIPE);
    CHECK_EQ(send(s[1], "y", 1, 0), 1);
    CHECK_EQ(recv(s[0], b, 8, 0), 1);
    CHECK_ERRNO(recv(s[1], b, 8, MSG_DONTWAIT), EAGAIN);  // datagrams know no end
    CHECK_OK(shutdown(s[0], SHUT_RD));
    CHECK_EQ(recv(s[0], b, 8, 0), 0);  // for a blocking call only
    CHECK_ERRNO(recv(s[0], b, 8, MSG_DONTWAIT), EAGAIN);
    CHECK_ERRNO(send(s[1], "y", 1, 0), EPIPE);
}

CASE(shutdown_wakes_readers) {
    pair(SOCK_STREAM);
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        char b;
        CHECK_EQ(recv(s[1], &b, 1, 0), 0);
        _exit(0);
    }
    usleep(20000);
    CHECK_OK(shutdown(s[0], SHUT_WR));
    CHECK_EXIT(pid, 0);
    pid = CHECK_OK(fork());
    if (pid == 0) {
        char b;
        CHECK_EQ(recv(s[0], &b, 1, 0), 0);
        _exit(0);
    }
    usleep(20000);
    CHECK_OK(shutdown(s[0], SHUT_RD));  // its own end, from another process
    CHECK_EXIT(pid, 0);
}

CASE(shutdown_of_a_listener) {
    enter();
    int l = listener(SOCK_STREAM, path("s"), 5);
    struct name n = path("s");
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        CHECK_ERRNO(accept(l, NULL, NULL), EINVAL);
        _exit(0);
    }
    usleep(20000);
    CHECK_OK(shutdown(l, SHUT_RD));
    CHECK_EXIT(pid, 0);
    CHECK_ERRNO(connect(sock(SOCK_STREAM), NAME(n)), ECONNREFUSED);
}

MAIN
