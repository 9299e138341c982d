// build: static
// SCM_RIGHTS: passing descriptors, limits and truncation, close-on-exec, sockets within sockets.
#include "sockets.h"
#include <sys/resource.h>

static int s[2];
static char buf[1000];

union control {
    struct cmsghdr head;
    char room[CMSG_SPACE(300 * sizeof(int))];
};

// Sends one byte of `text` each with these descriptors (none for n == 0); the result of sendmsg.
static long give(int over, const int *fds, int n, const char *text) {
    union control c;
    memset(&c, 0, sizeof c);
    struct iovec v = {(char *)text, strlen(text)};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = CMSG_SPACE(n * sizeof(int))};
    c.head = (struct cmsghdr){.cmsg_len = CMSG_LEN(n * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(&c.head), fds, n * sizeof(int));
    return sendmsg(over, &m, 0);
}

static int flags_got;
// Receives one message with room for `room` descriptors; their count, the message's length in *len.
static int take(int over, int *fds, size_t room, int flags, long *len) {
    union control c;
    memset(&c, 0, sizeof c);
    struct iovec v = {buf, sizeof buf};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &c};
    m.msg_controllen = room ? CMSG_LEN(room * sizeof(int)) : 0;
    long n = CHECK_OK(recvmsg(over, &m, flags));
    if (len) *len = n;
    flags_got = m.msg_flags;
    struct cmsghdr *h = CMSG_FIRSTHDR(&m);
    if (!h || m.msg_controllen == 0) return 0;
    CHECK_EQ(h->cmsg_level, SOL_SOCKET);
    CHECK_EQ(h->cmsg_type, SCM_RIGHTS);
    int count = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    memcpy(fds, CMSG_DATA(h), count * sizeof(int));
    return count;
}

static void pair(int type) {
    signal(SIGPIPE, SIG_IGN);
    CHECK_OK(socketpair(AF_UNIX, type, 0, s));
}

CASE(one_descriptor) {
    pair(SOCK_STREAM);
    int p[2], got = -1;
    CHECK_OK(pipe(p));
    CHECK_EQ(give(s[0], &p[1], 1, "x"), 1);
    CHECK_OK(close(p[1]));
    CHECK_EQ(events_of(p[0], POLLIN), 0);  // in flight it lives
    long len;
    CHECK_EQ(take(s[1], &got, 1, 0, &len), 1);
    CHECK_EQ(len, 1);
    CHECK_EQ(flags_got & MSG_CTRUNC, 0);
    CHECK_EQ(fcntl(got, F_GETFD), 0);
    CHECK_EQ(write(got, "data", 4), 4);
    CHECK_EQ(read(p[0], buf, 10), 4);
    CHECK_OK(close(got));
    CHECK_EQ(read(p[0], buf, 10), 0);
}

CASE(shares_the_description) {
    pair(SOCK_DGRAM);
    int fd = CHECK_OK(memfd_create("m", 0)), got;
    CHECK_EQ(write(fd, "0123456789", 10), 10);
    CHECK_EQ(lseek(fd, 3, SEEK_SET), 3);
    CHECK_EQ(give(s[0], &fd, 1, "x"), 1);
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        CHECK_OK(close(fd));
        CHECK_EQ(take(s[1], &got, 1, 0, NULL), 1);
        CHECK_EQ(read(got, buf, 2), 2);
        CHECK_EQ(memcmp(buf, "34", 2), 0);
        _exit(0);
    }
    CHECK_EXIT(pid, 0);
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), 5);
}

CASE(lowest_numbers_and_cloexec) {
    pair(SOCK_STREAM);
    int fds[3] = {s[0], s[1], 2}, got[3];
    int next = CHECK_OK(dup(0));
    CHECK_OK(close(next));
    CHECK_EQ(give(s[0], fds, 3, "x"), 1);
    CHECK_EQ(take(s[1], got, 3, MSG_CMSG_CLOEXEC, NULL), 3);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(got[i], next + i);
        CHECK_EQ(fcntl(got[i], F_GETFD), FD_CLOEXEC);
    }
    CHECK_EQ(write(got[0], "self", 4), 4);
    CHECK_EQ(read(s[1], buf, 10), 4);
}

CASE(limits_of_a_message) {
    pair(SOCK_STREAM);
    static int fds[254], got[254];
    for (int i = 0; i < 254; i++) fds[i] = s[0];
    CHECK_ERRNO(give(s[0], fds, 254, "x"), EINVAL);
    CHECK_EQ(give(s[0], fds, 253, "x"), 1);
    struct rlimit limit;
    CHECK_OK(getrlimit(RLIMIT_NOFILE, &limit));
    if (limit.rlim_cur < 600) limit.rlim_cur = limit.rlim_max;
    CHECK_OK(setrlimit(RLIMIT_NOFILE, &limit));
    CHECK_EQ(take(s[1], got, 253, 0, NULL), 253);
    for (int i = 0; i < 253; i++) CHECK_OK(close(got[i]));
    int bad[2] = {s[0], 999};
    CHECK_ERRNO(give(s[0], bad, 2, "x"), EBADF);
    bad[1] = -1;
    CHECK_ERRNO(give(s[0], bad, 2, "x"), EBADF);
    CHECK_ERRNO(recv(s[1], buf, 10, MSG_DONTWAIT), EAGAIN);
}

CASE(no_room_for_control) {
    pair(SOCK_STREAM);
    int p[2], got[4], fds[4];
    CHECK_OK(pipe(p));
    for (int i = 0; i < 4; i++) fds[i] = p[1];
    CHECK_EQ(give(s[0], fds, 4, "abc"), 3);
    CHECK_OK(close(p[1]));
    long len;
    CHECK_EQ(take(s[1], got, 0, 0, &len), 0);
    CHECK_EQ(len, 3);
    CHECK_EQ(flags_got & MSG_CTRUNC, MSG_CTRUNC);
    CHECK_EQ(read(p[0], buf, 1), 0);  // what did not fit was closed
    CHECK_OK(pipe(p));
    for (int i = 0; i < 4; i++) fds[i] = p[1];
    CHECK_EQ(give(s[0], fds, 4, "abc"), 3);
    CHECK_OK(close(p[1]));
    CHECK_EQ(take(s[1], got, 2, 0, &len), 2);
    CHECK_EQ(flags_got & MSG_CTRUNC, MSG_CTRUNC);
    CHECK_EQ(events_of(p[0], POLLIN), 0);
    CHECK_OK(close(got[0]));
    CHECK_OK(close(got[1]));
    CHECK_EQ(read(p[0], buf, 1), 0);
}

CASE(no_free_numbers) {
    pair(SOCK_STREAM);
    int p[2], got[4], fds[4];
    CHECK_OK(pipe(p));
    for (int i = 0; i < 4; i++) fds[i] = p[1];
    CHECK_EQ(give(s[0], fds, 4, "x"), 1);
    int next = CHECK_OK(dup(0));
    CHECK_OK(close(next));
    struct rlimit limit;
    CHECK_OK(getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = next + 2;
    CHECK_OK(setrlimit(RLIMIT_NOFILE, &limit));
    CHECK_EQ(take(s[1], got, 4, 0, NULL), 2);  // as many as there are numbers
    CHECK_EQ(flags_got & MSG_CTRUNC, MSG_CTRUNC);
}

CASE(reads_stop_at_descriptors) {
    pair(SOCK_STREAM);
    int got[4], fd = 2;
    long len;
    CHECK_EQ(write(s[0], "plain", 5), 5);
    CHECK_EQ(give(s[0], &fd, 1, "with"), 4);
    CHECK_EQ(write(s[0], "after", 5), 5);
    CHECK_EQ(give(s[0], &fd, 1, "last"), 4);
    CHECK_EQ(write(s[0], "end", 3), 3);    CHECK_EQ(take(s[1], got, 4, 0, &len), 1);
    CHECK_EQ(len, 9);  // a read ends behind data with descriptors, not before it
    CHECK_EQ(memcmp(buf, "plainwith", 9), 0);
    CHECK_EQ(read(s[1], buf, 100), 9);  // read() drops them, and ends there too
    CHECK_EQ(memcmp(buf, "afterlast", 9), 0);
    CHECK_EQ(read(s[1], buf, 100), 3);
}

CASE(partial_reads_take_them_once) {
    pair(SOCK_STREAM);
    int fd = 2;
    CHECK_EQ(give(s[0], &fd, 1, "abcdef"), 6);
    union control c;
    struct iovec v = {buf, 2};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof c};
    CHECK_EQ(recvmsg(s[1], &m, 0), 2);
    CHECK_EQ(m.msg_controllen, CMSG_SPACE(sizeof(int)));
    m.msg_controllen = sizeof c;
    CHECK_EQ(recvmsg(s[1], &m, 0), 2);
    CHECK_EQ(m.msg_controllen, 0);
}

CASE(peeking_copies_them) {
    pair(SOCK_STREAM);
    int p[2], got[2];
    CHECK_OK(pipe(p));
    CHECK_EQ(give(s[0], &p[1], 1, "x"), 1);
    CHECK_OK(close(p[1]));
    CHECK_EQ(take(s[1], got, 1, MSG_PEEK, NULL), 1);
    CHECK_EQ(take(s[1], got + 1, 1, 0, NULL), 1);
    CHECK_NE(got[0], got[1]);
    CHECK_OK(close(got[0]));
    CHECK_EQ(write(got[1], "y", 1), 1);
    CHECK_EQ(read(p[0], buf, 1), 1);
}

CASE(dropped_with_the_receiver) {
    pair(SOCK_STREAM);
    int p[2];
    CHECK_OK(pipe(p));
    CHECK_EQ(give(s[0], &p[1], 1, "x"), 1);
    CHECK_OK(close(p[1]));
    CHECK_OK(close(s[1]));
    CHECK_EQ(read(p[0], buf, 1), 0);  // nobody can receive it any more
}

CASE(a_socket_through_itself) {
    pair(SOCK_STREAM);
    int p[2], got;
    CHECK_OK(pipe(p));
    // A socket with its own peer in flight is reachable by nobody once closed: the cycle is collected.
    CHECK_EQ(give(s[0], &s[1], 1, "x"), 1);
    CHECK_EQ(give(s[0], &p[1], 1, "y"), 1);
    CHECK_EQ(take(s[1], &got, 1, 0, NULL), 1);
    CHECK_EQ(take(got, &got, 1, 0, NULL), 1);
    CHECK_EQ(write(got, "z", 1), 1);
    CHECK_OK(close(got));
    CHECK_EQ(read(p[0], buf, 1), 1);
    pair(SOCK_DGRAM);
    CHECK_EQ(give(s[0], &s[1], 1, "x"), 1);
    CHECK_EQ(give(s[1], &s[0], 1, "x"), 1);
    CHECK_EQ(give(s[0], &p[1], 1, "x"), 1);
    CHECK_OK(close(s[0]));
    CHECK_OK(close(s[1]));
    CHECK_OK(close(p[1]));
    for (int i = 0; i < 200 && events_of(p[0], POLLIN) == 0; i++) {
        CHECK_OK(close(sock(SOCK_DGRAM)));  // Linux collects when some socket is closed
        usleep(10000);
    }
    CHECK_EQ(events_of(p[0], POLLIN), POLLHUP);
}

CASE(kinds) {
    pair(SOCK_SEQPACKET);
    int fds[5], got[5];
    fds[0] = CHECK_OK(open("/dev/null", O_PATH));
    fds[1] = CHECK_OK(open("/", O_RDONLY | O_DIRECTORY));
    fds[2] = sock(SOCK_DGRAM);
    fds[3] = CHECK_OK(open("/etc/passwd", O_RDONLY));
    fds[4] = s[1];
    CHECK_EQ(give(s[0], fds, 5, "x"), 1);
    CHECK_EQ(take(s[1], got, 5, 0, NULL), 5);
    for (int i = 0; i < 5; i++) {
        struct stat a, b;
        CHECK_OK(fstat(fds[i], &a));
        CHECK_OK(fstat(got[i], &b));
        CHECK_EQ(a.st_ino, b.st_ino);
        CHECK_EQ(fcntl(fds[i], F_GETFL), fcntl(got[i], F_GETFL));
    }
    CHECK_OK(openat(got[1], "etc", O_RDONLY));
}

CASE(malformed_control) {
    pair(SOCK_STREAM);
    union control c;
    struct iovec v = {"x", 1};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = CMSG_SPACE(4)};
    c.head = (struct cmsghdr){.cmsg_len = 5, .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    CHECK_ERRNO(sendmsg(s[0], &m, 0), EINVAL);
    c.head.cmsg_len = 1000;
    CHECK_ERRNO(sendmsg(s[0], &m, 0), EINVAL);
    c.head = (struct cmsghdr){.cmsg_len = CMSG_LEN(4), .cmsg_level = SOL_SOCKET, .cmsg_type = 0x77};
    CHECK_ERRNO(sendmsg(s[0], &m, 0), EINVAL);
    c.head.cmsg_level = 12345;  // another level's business
    CHECK_EQ(sendmsg(s[0], &m, 0), 1);
    m.msg_control = nowhere;
    CHECK_ERRNO(sendmsg(s[0], &m, 0), EFAULT);
    m.msg_controllen = 1 << 30;
    CHECK_ERRNO(sendmsg(s[0], &m, 0), ENOBUFS);
    CHECK_EQ(give(s[0], NULL, 0, "y"), 1);  // no descriptors at all
}

MAIN
