// build: static
// AF_UNIX datagram and seqpacket sockets: boundaries, truncation, limits, peers, sendmmsg and recvmmsg.
#include "sockets.h"
#include <linux/sockios.h>

static char buf[400000];
static int s[2];
static void pair(int type) {
    signal(SIGPIPE, SIG_IGN);
    CHECK_OK(socketpair(AF_UNIX, type, 0, s));
}

static void boundaries(int type) {
    pair(type);
    CHECK_EQ(send(s[0], "first", 5, 0), 5);
    CHECK_EQ(send(s[0], "", 0, 0), 0);
    CHECK_EQ(send(s[0], "third message", 13, 0), 13);
    int n = -1;
    CHECK_OK(ioctl(s[1], FIONREAD, &n));
    CHECK_EQ(n, type == SOCK_DGRAM ? 5 : 18);  // the next datagram; of a seqpacket socket all
    CHECK_EQ(recv(s[1], buf, 100, 0), 5);
    CHECK_EQ(recv(s[1], buf, 100, 0), 0);  // an empty message is a message
    CHECK_EQ(recv(s[1], buf, 5, MSG_PEEK), 5);
    CHECK_EQ(recv(s[1], buf, 5, MSG_PEEK | MSG_TRUNC), 13);
    struct iovec v = {buf, 5};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
    CHECK_EQ(recvmsg(s[1], &m, 0), 5);
    CHECK_EQ(m.msg_flags & MSG_TRUNC, MSG_TRUNC);
    CHECK_EQ(memcmp(buf, "third", 5), 0);
    CHECK_ERRNO(recv(s[1], buf, 100, MSG_DONTWAIT), EAGAIN);  // the rest has gone
    v.iov_len = 100;
    CHECK_EQ(send(s[0], "whole", 5, 0), 5);
    CHECK_EQ(recvmsg(s[1], &m, 0), 5);
    CHECK_EQ(m.msg_flags & MSG_TRUNC, 0);
    CHECK_EQ(m.msg_flags & MSG_EOR, 0);  // Linux: never told here
}

CASE(datagram_boundaries) { boundaries(SOCK_DGRAM); }
CASE(seqpacket_boundaries) { boundaries(SOCK_SEQPACKET); }

CASE(too_large) {
    pair(SOCK_DGRAM);
    int size = 20000;
    CHECK_OK(setsockopt(s[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size));
    CHECK_EQ(option(s[0], SO_SNDBUF), 40000);
    CHECK_ERRNO(send(s[0], buf, 40000, 0), EMSGSIZE);
    CHECK_ERRNO(send(s[0], buf, 39969, 0), EMSGSIZE);  // 32 less than the buffer
    CHECK_EQ(send(s[0], buf, 30000, 0), 30000);
    CHECK_EQ(recv(s[1], buf, sizeof buf, 0), 30000);
    pair(SOCK_SEQPACKET);
    CHECK_ERRNO(send(s[0], buf, sizeof buf, 0), EMSGSIZE);
    CHECK_EQ(send(s[0], buf, 150000, 0), 150000);
    CHECK_EQ(recv(s[1], buf, sizeof buf, 0), 150000);
}

CASE(full_queue) {
    pair(SOCK_DGRAM);
    int n = 0;
    while (send(s[0], "x", 1, MSG_DONTWAIT) == 1) n++;
    CHECK_EQ(errno, EAGAIN);
    CHECK_GE(n, 10);
    CHECK_LT(n, 2000);
    CHECK_EQ(events_of(s[0], POLLOUT), 0);
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        CHECK_EQ(send(s[0], "y", 1, 0), 1);  // waits for room
        _exit(0);
    }
    usleep(20000);
    for (int i = 0; i <= n; i++) CHECK_EQ(recv(s[1], buf, 10, 0), 1);
    CHECK_EXIT(pid, 0);
    CHECK_ERRNO(recv(s[1], buf, 10, MSG_DONTWAIT), EAGAIN);
    CHECK_EQ(events_of(s[0], POLLOUT), POLLOUT);
}

CASE(to_addresses) {
    enter();
    int a = bound(SOCK_DGRAM, path("a")), b = bound(SOCK_DGRAM, path("b")), c = sock(SOCK_DGRAM);
    struct name na = path("a"), nb = path("b"), none = path("none"), got = {.len = sizeof got.un}, abs = abstract("none");
    CHECK_EQ(sendto(a, "to b", 4, 0, NAME(nb)), 4);
    CHECK_EQ(sendto(c, "unnamed", 7, 0, NAME(nb)), 7);
    CHECK_EQ(recvfrom(b, buf, 100, 0, (struct sockaddr *)&got.un, &got.len), 4);
    CHECK_EQ(got.len, 2 + 2);
    CHECK_STR(got.un.sun_path, "a");
    got.len = sizeof got.un;
    CHECK_EQ(recvfrom(b, buf, 100, 0, (struct sockaddr *)&got.un, &got.len), 7);
    CHECK_EQ(got.len, 0);  // a sender without a name
    CHECK_ERRNO(sendto(a, "x", 1, 0, NAME(none)), ENOENT);
    CHECK_ERRNO(sendto(a, "x", 1, 0, NAME(abs)), ECONNREFUSED);
    CHECK_ERRNO(send(a, "x", 1, 0), ENOTCONN);
    CHECK_OK(close(b));
    CHECK_ERRNO(sendto(a, "x", 1, 0, NAME(nb)), ECONNREFUSED);
    struct name st = path("s");
    bound(SOCK_STREAM, st);
    CHECK_ERRNO(sendto(a, "x", 1, 0, NAME(st)), EPROTOTYPE);
    CHECK_ERRNO(sendto(a, "x", 1, 0, nowhere, 10), EFAULT);
    CHECK_EQ(sendto(a, "self", 4, 0, NAME(na)), 4);
    CHECK_EQ(recv(a, buf, 10, 0), 4);
}

CASE(connected_datagrams) {
    enter();
    int a = bound(SOCK_DGRAM, path("a")), b = bound(SOCK_DGRAM, path("b")), c = bound(SOCK_DGRAM, path("c"));
    struct name na = path("a"), nb = path("b"), nc = path("c");
    CHECK_OK(connect(a, NAME(nb)));
    CHECK_EQ(send(a, "x", 1, 0), 1);
    CHECK_EQ(sendto(a, "y", 1, 0, NAME(nc)), 1);  // an address still counts
    CHECK_EQ(recv(b, buf, 10, 0), 1);
    CHECK_EQ(recv(c, buf, 10, 0), 1);
    // A connected socket hears only its peer.
    CHECK_ERRNO(sendto(c, "x", 1, 0, NAME(na)), EPERM);
    CHECK_EQ(sendto(b, "x", 1, 0, NAME(na)), 1);
    CHECK_EQ(recv(a, buf, 10, 0), 1);
    CHECK_OK(connect(a, NAME(nc)));  // again, elsewhere
    CHECK_EQ(send(a, "x", 1, 0), 1);
    CHECK_EQ(recv(c, buf, 10, 0), 1);
    struct sockaddr none = {.sa_family = AF_UNSPEC};
    CHECK_OK(connect(a, &none, sizeof none));
    CHECK_ERRNO(send(a, "x", 1, 0), ENOTCONN);
    struct name got = {.len = sizeof got.un};
    CHECK_ERRNO(getpeername(a, (struct sockaddr *)&got.un, &got.len), ENOTCONN);
    CHECK_EQ(sendto(b, "x", 1, 0, NAME(na)), 1);
    // When the peer goes, the next send says so, and the one after it has no peer.
    CHECK_OK(connect(a, NAME(nc)));
    CHECK_OK(close(c));
    CHECK_ERRNO(send(a, "x", 1, 0), ECONNREFUSED);
    CHECK_ERRNO(send(a, "x", 1, 0), ENOTCONN);
}

CASE(seqpacket_connections) {
    enter();
    int l = listener(SOCK_SEQPACKET, path("s"), 5), c = joined(SOCK_SEQPACKET, path("s")), a = CHECK_OK(accept(l, NULL, NULL));
    struct name n = path("s");
    CHECK_EQ(option(a, SO_TYPE), SOCK_SEQPACKET);
    CHECK_EQ(send(c, "one", 3, 0), 3);
    CHECK_EQ(write(c, "four", 4), 4);
    CHECK_EQ(read(a, buf, 100), 3);
    CHECK_EQ(read(a, buf, 2), 2);  // read drops the rest as well
    CHECK_EQ(send(c, "x", 1, 0), 1);
    CHECK_EQ(read(a, buf, 100), 1);
    CHECK_ERRNO(recv(sock(SOCK_SEQPACKET), buf, 1, 0), ENOTCONN);
    CHECK_ERRNO(send(sock(SOCK_SEQPACKET), buf, 1, 0), ENOTCONN);
    CHECK_ERRNO(connect(c, NAME(n)), EISCONN);
    CHECK_OK(close(a));
    CHECK_EQ(recv(c, buf, 10, MSG_DONTWAIT), 0);
    CHECK_ERRNO(send(c, "x", 1, 0), EPIPE);
}

CASE(several_at_once) {
    pair(SOCK_DGRAM);
    struct mmsghdr out[4] = {0}, in[8] = {0};
    struct iovec ov[4], iv[8];
    char texts[4][8] = {"a", "bb", "ccc", "dddd"}, rooms[8][8];
    for (int i = 0; i < 4; i++) {
        ov[i] = (struct iovec){texts[i], i + 1};
        out[i].msg_hdr.msg_iov = &ov[i], out[i].msg_hdr.msg_iovlen = 1;
    }
    for (int i = 0; i < 8; i++) {
        iv[i] = (struct iovec){rooms[i], 3};
        in[i].msg_hdr.msg_iov = &iv[i], in[i].msg_hdr.msg_iovlen = 1;
    }
    CHECK_EQ(sendmmsg(s[0], out, 4, 0), 4);
    for (int i = 0; i < 4; i++) CHECK_EQ(out[i].msg_len, i + 1);
    CHECK_EQ(recvmmsg(s[1], in, 2, 0, NULL), 2);
    CHECK_EQ(in[0].msg_len, 1);
    CHECK_EQ(in[1].msg_len, 2);
    CHECK_EQ(recvmmsg(s[1], in, 8, MSG_DONTWAIT, NULL), 2);  // as many as there are
    CHECK_EQ(in[1].msg_len, 3);
    CHECK_EQ(in[1].msg_hdr.msg_flags & MSG_TRUNC, MSG_TRUNC);
    CHECK_ERRNO(recvmmsg(s[1], in, 8, MSG_DONTWAIT, NULL), EAGAIN);
    CHECK_EQ(sendmmsg(s[0], out, 1, 0), 1);
    CHECK_EQ(recvmmsg(s[1], in, 8, MSG_WAITFORONE, NULL), 1);
    struct timespec bad = {0, -1};
    CHECK_ERRNO(recvmmsg(s[1], in, 8, MSG_DONTWAIT, &bad), EINVAL);
    CHECK_EQ(sendmmsg(s[0], out, 0, 0), 0);
    // An error after the first message shortens the count and is told next time.
    ov[2].iov_base = nowhere;
    CHECK_EQ(sendmmsg(s[0], out, 4, 0), 2);
    CHECK_ERRNO(sendmmsg(s[0], out + 2, 2, 0), EFAULT);
    CHECK_ERRNO(sendmmsg(s[0], nowhere, 2, 0), EFAULT);
    CHECK_ERRNO(sendmmsg(999, out, 1, 0), EBADF);
}

CASE(order_and_wakeups) {
    pair(SOCK_DGRAM);
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        for (int i = 0; i < 1000; i++) CHECK_EQ(send(s[0], &i, 4, 0), 4);
        _exit(0);
    }
    for (int i = 0; i < 1000; i++) {
        int v = -1;
        CHECK_EQ(recv(s[1], &v, sizeof v, 0), 4);
        CHECK_EQ(v, i);
    }
    CHECK_EXIT(pid, 0);
}

CASE(outgoing_memory) {
    pair(SOCK_DGRAM);
    int n = -1;
    CHECK_EQ(send(s[0], buf, 3000, 0), 3000);
    CHECK_OK(ioctl(s[0], SIOCOUTQ, &n));
    CHECK_GE(n, 3000);
    CHECK_EQ(recv(s[1], buf, 10, 0), 10);
    CHECK_OK(ioctl(s[0], SIOCOUTQ, &n));
    CHECK_EQ(n, 0);
    CHECK_OK(ioctl(s[1], SIOCINQ, &n));
    CHECK_EQ(n, 0);
}

MAIN
