// build: static
// AF_UNIX stream sockets: order, partial reads, buffers, flags of send and recv, time-outs, closing.
#include "sockets.h"
#include <linux/sockios.h>

static char buf[300000];
static int s[2];
static void pair(void) {
    signal(SIGPIPE, SIG_IGN);
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
}

CASE(bytes_without_boundaries) {
    pair();
    CHECK_EQ(send(s[0], "abc", 3, 0), 3);
    CHECK_EQ(send(s[0], "defg", 4, 0), 4);
    CHECK_EQ(recv(s[1], buf, 2, 0), 2);
    CHECK_EQ(recv(s[1], buf + 2, 100, 0), 5);
    CHECK_EQ(memcmp(buf, "abcdefg", 7), 0);
    CHECK_EQ(send(s[1], "back", 4, 0), 4);
    CHECK_EQ(recv(s[0], buf, 100, 0), 4);
}

CASE(peek) {
    pair();
    CHECK_EQ(send(s[0], "hello", 5, 0), 5);
    CHECK_EQ(send(s[0], "world", 5, 0), 5);
    CHECK_EQ(recv(s[1], buf, 3, MSG_PEEK), 3);
    CHECK_EQ(recv(s[1], buf, 100, MSG_PEEK), 10);
    CHECK_EQ(memcmp(buf, "helloworld", 10), 0);
    CHECK_EQ(recv(s[1], buf, 100, 0), 10);
    CHECK_ERRNO(recv(s[1], buf, 1, MSG_PEEK | MSG_DONTWAIT), EAGAIN);
}

CASE(truncation_flag_means_nothing) {
    pair();
    CHECK_EQ(send(s[0], "hello", 5, 0), 5);
    CHECK_EQ(recv(s[1], buf, 2, MSG_TRUNC), 2);
    CHECK_EQ(recv(s[1], buf, 10, 0), 3);
}

CASE(nonblocking) {
    pair();
    CHECK_ERRNO(recv(s[0], buf, 1, MSG_DONTWAIT), EAGAIN);
    CHECK_OK(fcntl(s[0], F_SETFL, O_NONBLOCK));
    CHECK_ERRNO(read(s[0], buf, 1), EAGAIN);
    long total = 0, n;
    while ((n = send(s[0], buf, 50000, 0)) > 0) total += n;
    CHECK_EQ(errno, EAGAIN);
    CHECK_GT(total, 50000);
    CHECK_EQ(events_of(s[0], POLLOUT), 0);
    long got = 0;
    while ((n = recv(s[1], buf, sizeof buf, MSG_DONTWAIT)) > 0) got += n;
    CHECK_EQ(got, total);
    CHECK_EQ(events_of(s[0], POLLOUT), POLLOUT);
}

CASE(wait_for_all) {
    pair();
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        CHECK_OK(close(s[1]));
        for (int i = 0; i < 4; i++) {
            CHECK_EQ(send(s[0], "xyz", 3, 0), 3);
            usleep(8000);
        }
        _exit(0);
    }
    CHECK_OK(close(s[0]));
    CHECK_EQ(recv(s[1], buf, 10, MSG_WAITALL), 10);
    CHECK_EQ(recv(s[1], buf, 10, MSG_WAITALL), 2);  // the end comes first
    CHECK_EQ(recv(s[1], buf, 10, MSG_WAITALL), 0);
    CHECK_EXIT(pid, 0);
}

CASE(blocking_and_interruption) {
    pair();
    catch_signal(SIGUSR1);
    pid_t pid = signal_later(SIGUSR1, 20);
    CHECK_ERRNO(recv(s[0], buf, 1, 0), EINTR);
    CHECK_EXIT(pid, 0);
    pid = signal_later(SIGUSR1, 20);
    long n = send(s[0], buf, sizeof buf, 0), first = n;
    CHECK_GT(n, 0);  // the part that was taken counts
    CHECK_LT(n, sizeof buf);
    CHECK_EXIT(pid, 0);
    pid = CHECK_OK(fork());
    if (pid == 0) {
        long got = 0;
        while (got < first + 1000) got += CHECK_OK(recv(s[1], buf, sizeof buf, 0));
        _exit(0);
    }
    CHECK_EQ(send(s[0], buf, 1000, 0), 1000);
    CHECK_EXIT(pid, 0);
}

CASE(timeouts) {
    pair();
    struct timeval t = {0, 30000}, got;
    socklen_t len = sizeof got;
    CHECK_OK(setsockopt(s[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t));
    CHECK_OK(setsockopt(s[0], SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t));
    CHECK_OK(getsockopt(s[0], SOL_SOCKET, SO_RCVTIMEO, &got, &len));
    CHECK_GE(got.tv_usec, 30000);  // rounded up to a tick
    CHECK_LE(got.tv_usec, 40000);
    CHECK_ERRNO(recv(s[0], buf, 1, 0), EAGAIN);
    CHECK_ERRNO(read(s[0], buf, 1), EAGAIN);
    long n = send(s[0], buf, sizeof buf, 0);
    CHECK(n > 0 && n < (long)sizeof buf);
    CHECK_ERRNO(send(s[0], buf, 100000, 0), EAGAIN);
    struct timeval bad = {0, 1000000}, zero = {0, 0};
    CHECK_ERRNO(setsockopt(s[0], SOL_SOCKET, SO_RCVTIMEO, &bad, sizeof bad), EDOM);
    CHECK_ERRNO(setsockopt(s[0], SOL_SOCKET, SO_RCVTIMEO, &zero, 4), EINVAL);
    CHECK_OK(setsockopt(s[0], SOL_SOCKET, SO_RCVTIMEO, &zero, sizeof zero));
}

CASE(peer_closed) {
    pair();
    CHECK_EQ(send(s[1], "last", 4, 0), 4);
    CHECK_OK(close(s[1]));
    CHECK_EQ(recv(s[0], buf, 10, 0), 4);
    CHECK_EQ(recv(s[0], buf, 10, 0), 0);
    CHECK_ERRNO(send(s[0], "x", 1, 0), EPIPE);
    CHECK_ERRNO(write(s[0], "x", 1), EPIPE);
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        signal(SIGPIPE, SIG_DFL);
        if (send(s[0], "x", 1, MSG_NOSIGNAL) != -1 || errno != EPIPE) _exit(1);
        send(s[0], "x", 1, 0);
        _exit(2);
    }
    CHECK_KILLED(pid, SIGPIPE);
}

CASE(peer_closed_with_unread_data) {
    pair();
    CHECK_EQ(send(s[0], "unread", 6, 0), 6);
    CHECK_EQ(send(s[1], "back", 4, 0), 4);
    CHECK_OK(close(s[1]));
    CHECK_EQ(option(s[0], SO_ERROR), ECONNRESET);  // told once
    CHECK_EQ(option(s[0], SO_ERROR), 0);
    CHECK_EQ(recv(s[0], buf, 10, 0), 4);
    CHECK_EQ(recv(s[0], buf, 10, 0), 0);
    pair();
    CHECK_EQ(send(s[0], "unread", 6, 0), 6);
    CHECK_OK(close(s[1]));
    CHECK_ERRNO(recv(s[0], buf, 10, 0), ECONNRESET);
    CHECK_EQ(recv(s[0], buf, 10, 0), 0);
}

CASE(not_connected) {
    signal(SIGPIPE, SIG_IGN);
    int fd = sock(SOCK_STREAM);
    struct name n = abstract("x");
    CHECK_ERRNO(send(fd, "x", 1, 0), ENOTCONN);
    CHECK_ERRNO(recv(fd, buf, 1, 0), EINVAL);
    CHECK_ERRNO(sendto(fd, "x", 1, 0, NAME(n)), EOPNOTSUPP);
    pair();
    CHECK_ERRNO(sendto(s[0], "x", 1, 0, NAME(n)), EISCONN);
    int l = listener(SOCK_STREAM, n, 1);
    CHECK_ERRNO(recv(l, buf, 1, 0), EINVAL);
    CHECK_ERRNO(send(l, "x", 1, 0), ENOTCONN);
}

CASE(queue_lengths) {
    pair();
    int n = -1;
    CHECK_OK(ioctl(s[1], SIOCINQ, &n));
    CHECK_EQ(n, 0);
    CHECK_EQ(send(s[0], buf, 1000, 0), 1000);
    CHECK_EQ(send(s[0], buf, 500, 0), 500);
    CHECK_OK(ioctl(s[1], FIONREAD, &n));
    CHECK_EQ(n, 1500);
    CHECK_OK(ioctl(s[0], SIOCOUTQ, &n));
    CHECK_GE(n, 1500);  // memory, not bytes
    CHECK_EQ(recv(s[1], buf, 700, 0), 700);
    CHECK_OK(ioctl(s[1], SIOCINQ, &n));
    CHECK_EQ(n, 800);
    CHECK_EQ(recv(s[1], buf, 5000, 0), 800);
    CHECK_OK(ioctl(s[0], SIOCOUTQ, &n));
    CHECK_EQ(n, 0);
    int l = listener(SOCK_STREAM, abstract("l"), 1);
    CHECK_ERRNO(ioctl(l, SIOCINQ, &n), EINVAL);
    CHECK_ERRNO(ioctl(s[1], SIOCINQ, nowhere), EFAULT);
}

CASE(large_transfer_both_ways) {
    pair();
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {  // an echo
        CHECK_OK(close(s[0]));
        for (long n; (n = CHECK_OK(recv(s[1], buf, 7777, 0))) > 0;)
            for (long at = 0; at < n;) at += CHECK_OK(send(s[1], buf + at, n - at, 0));
        _exit(0);
    }
    CHECK_OK(close(s[1]));
    long sent = 0, got = 0;
    const long total = 500000;
    while (got < total) {
        struct pollfd p = {s[0], POLLIN | (sent < total ? POLLOUT : 0), 0};
        CHECK_EQ(poll(&p, 1, 5000), 1);
        if (p.revents & POLLOUT) {
            for (int i = 0; i < 3000; i++) buf[i] = (sent + i) * 31 >> 3;
            long n = send(s[0], buf, total - sent < 3000 ? total - sent : 3000, MSG_DONTWAIT);
            if (n > 0) sent += n;
        }
        if (p.revents & POLLIN) {
            long n = CHECK_OK(recv(s[0], buf, 5000, MSG_DONTWAIT));
            for (long i = 0; i < n; i++) CHECK(buf[i] == (char)((got + i) * 31 >> 3));
            got += n;
        }
    }
    CHECK_OK(shutdown(s[0], SHUT_WR));
    CHECK_EQ(recv(s[0], buf, 10, 0), 0);
    CHECK_EXIT(pid, 0);
}

CASE(bad_pointers) {
    pair();
    CHECK_ERRNO(send(s[0], nowhere, 10, 0), EFAULT);
    CHECK_EQ(send(s[0], "data", 4, 0), 4);
    CHECK_ERRNO(recv(s[1], nowhere, 10, 0), EFAULT);
    CHECK_ERRNO(sendmsg(s[0], nowhere, 0), EFAULT);
    struct iovec v = {buf, 10};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1025};
    CHECK_ERRNO(sendmsg(s[0], &m, 0), EMSGSIZE);
    CHECK_ERRNO(recvmsg(s[0], &m, 0), EMSGSIZE);
    m = (struct msghdr){.msg_iov = &v, .msg_iovlen = 1, .msg_flags = 0x7777};
    CHECK_EQ(recvmsg(s[1], &m, 0), 4);
    CHECK_EQ(m.msg_flags & ~MSG_CMSG_CLOEXEC, 0);
    CHECK_EQ(m.msg_namelen, 0);
}

MAIN
