// build: static
// Credentials on AF_UNIX sockets: SO_PEERCRED, SO_PASSCRED, SCM_CREDENTIALS.
#include "sockets.h"
#include <grp.h>

static int s[2];
union control {
    struct cmsghdr head;
    char room[256];
};

static struct ucred peer(int fd) {
    struct ucred c;
    socklen_t len = sizeof c;
    CHECK_OK(getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &len));
    CHECK_EQ(len, sizeof c);
    return c;
}

// Receives one message; its credentials, or pid -1 when there are none.
static struct ucred take(int fd) {
    union control c;
    char buf[16];
    struct iovec v = {buf, sizeof buf};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof c};
    CHECK_GT(recvmsg(fd, &m, 0), 0);
    struct ucred got = {-1, -1, -1};
    for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h))
        if (h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_CREDENTIALS) memcpy(&got, CMSG_DATA(h), sizeof got);
    return got;
}

static long give(int fd, struct ucred cred) {
    union control c;
    memset(&c, 0, sizeof c);
    struct iovec v = {"x", 1};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = CMSG_SPACE(sizeof cred)};
    c.head = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof cred), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_CREDENTIALS};
    memcpy(CMSG_DATA(&c.head), &cred, sizeof cred);
    return sendmsg(fd, &m, 0);
}

static void pass(int fd, int on) { CHECK_OK(setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on)); }

CASE(peer_of_a_pair) {
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    struct ucred c = peer(s[0]);
    CHECK_EQ(c.pid, getpid());
    CHECK_EQ(c.uid, geteuid());
    CHECK_EQ(c.gid, getegid());
    pid_t parent = getpid();
    IN_CHILD({ CHECK_EQ(peer(s[0]).pid, parent); });  // as it was at the making
    struct ucred none = peer(sock(SOCK_STREAM));
    CHECK_EQ(none.pid, 0);
    CHECK_EQ(none.uid, (uid_t)-1);
    CHECK_EQ(none.gid, (gid_t)-1);
}

CASE(peer_of_a_connection) {
    enter();
    int l = listener(SOCK_STREAM, path("s"), 5), ready[2];
    CHECK_OK(pipe(ready));
    pid_t parent = getpid(), pid = CHECK_OK(fork());
    if (pid == 0) {
        int c = joined(SOCK_STREAM, path("s"));
        CHECK_EQ(peer(c).pid, parent);  // who called listen
        char b;
        CHECK_EQ(read(c, &b, 1), 1);
        _exit(0);
    }
    int a = CHECK_OK(accept(l, NULL, NULL));
    CHECK_EQ(peer(a).pid, pid);  // who called connect
    CHECK_EQ(peer(l).pid, parent);
    CHECK_EQ(write(a, "x", 1), 1);
    CHECK_EXIT(pid, 0);
    CHECK_EQ(peer(a).pid, pid);  // even when it has gone
}

CASE(peer_after_dropping_privileges) {
    NEED_ROOT();
    enter();
    CHECK_OK(chmod(".", 0777));
    int l = listener(SOCK_STREAM, path("s"), 5);
    CHECK_OK(chmod("s", 0777));
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        CHECK_OK(setresgid(1234, 1234, 1234));
        CHECK_OK(setresuid(4321, 4321, 4321));
        int c = joined(SOCK_STREAM, path("s"));
        CHECK_EQ(peer(c).uid, 0);
        char b;
        CHECK_EQ(read(c, &b, 1), 1);
        _exit(0);
    }
    int a = CHECK_OK(accept(l, NULL, NULL));
    CHECK_EQ(peer(a).uid, 4321);
    CHECK_EQ(peer(a).gid, 1234);
    CHECK_EQ(write(a, "x", 1), 1);
    CHECK_EXIT(pid, 0);
}

CASE(passed_when_wanted) {
    CHECK_OK(socketpair(AF_UNIX, SOCK_DGRAM, 0, s));
    CHECK_EQ(option(s[1], SO_PASSCRED), 0);
    CHECK_EQ(write(s[0], "x", 1), 1);
    CHECK_EQ(take(s[1]).pid, -1);
    pass(s[1], 1);
    CHECK_EQ(option(s[1], SO_PASSCRED), 1);
    CHECK_EQ(write(s[0], "x", 1), 1);
    struct ucred c = take(s[1]);
    CHECK_EQ(c.pid, getpid());
    CHECK_EQ(c.uid, getuid());
    CHECK_EQ(c.gid, getgid());
    // Each message tells its own sender.
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        CHECK_EQ(write(s[0], "x", 1), 1);
        _exit(0);
    }
    CHECK_EXIT(pid, 0);
    CHECK_EQ(take(s[1]).pid, pid);
    pass(s[1], 0);
    CHECK_EQ(write(s[0], "x", 1), 1);
    CHECK_EQ(take(s[1]).pid, -1);
}

CASE(sent_before_they_were_wanted) {
    CHECK_OK(socketpair(AF_UNIX, SOCK_DGRAM, 0, s));
    CHECK_EQ(write(s[0], "x", 1), 1);
    pass(s[1], 1);
    struct ucred c = take(s[1]);  // nobody's
    CHECK_EQ(c.pid, 0);
    CHECK_EQ(c.uid, 65534);
    CHECK_EQ(c.gid, 65534);
    // To a connection that has not been accepted they go in any case.
    struct name n = abstract("early");
    int l = listener(SOCK_STREAM, n, 5), client = joined(SOCK_STREAM, n);
    CHECK_EQ(write(client, "x", 1), 1);
    int a = CHECK_OK(accept(l, NULL, NULL));
    pass(a, 1);
    CHECK_EQ(take(a).pid, getpid());
    // An accepted socket wants them if its listener did.
    pass(l, 1);
    joined(SOCK_STREAM, n);
    CHECK_EQ(option(CHECK_OK(accept(l, NULL, NULL)), SO_PASSCRED), 1);
}

CASE(streams_keep_senders_apart) {
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    pass(s[1], 1);
    CHECK_EQ(write(s[0], "mine", 4), 4);
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        CHECK_EQ(write(s[0], "childs", 6), 6);
        _exit(0);
    }
    CHECK_EXIT(pid, 0);
    char buf[32];
    CHECK_EQ(recv(s[1], buf, sizeof buf, MSG_PEEK), 4);  // no read mixes two senders
    CHECK_EQ(take(s[1]).pid, getpid());
    CHECK_EQ(take(s[1]).pid, pid);
}

CASE(explicit_credentials) {
    CHECK_OK(socketpair(AF_UNIX, SOCK_DGRAM, 0, s));
    pass(s[1], 1);
    struct ucred own = {getpid(), getuid(), getgid()};
    CHECK_EQ(give(s[0], own), 1);
    CHECK_EQ(take(s[1]).pid, getpid());
    struct ucred odd = {0x3ffffff0, getuid(), getgid()};
    CHECK_EQ(give(s[0], odd), -1);
    CHECK(errno == EPERM || errno == ESRCH);  // ESRCH for those who may name other processes
}

CASE(forging_is_refused) {
    if (geteuid() == 0) {
        CHECK_OK(setgroups(0, NULL));
        CHECK_OK(setresgid(65534, 65534, 65534));
        CHECK_OK(setresuid(65534, 65534, 65534));
    }
    CHECK_OK(socketpair(AF_UNIX, SOCK_DGRAM, 0, s));
    pass(s[1], 1);
    struct ucred c = {getppid(), getuid(), getgid()};
    CHECK_ERRNO(give(s[0], c), EPERM);
    c = (struct ucred){getpid(), 0, getgid()};
    CHECK_ERRNO(give(s[0], c), EPERM);
    c = (struct ucred){getpid(), getuid(), 0};
    CHECK_ERRNO(give(s[0], c), EPERM);
    c.gid = getgid();
    CHECK_EQ(give(s[0], c), 1);
    CHECK_EQ(take(s[1]).uid, getuid());
}

CASE(root_may_name_others) {
    NEED_ROOT();
    CHECK_OK(socketpair(AF_UNIX, SOCK_DGRAM, 0, s));
    pass(s[1], 1);
    struct ucred c = {getpid(), 1000, 2000};
    CHECK_EQ(give(s[0], c), 1);
    c = take(s[1]);
    CHECK_EQ(c.pid, getpid());
    CHECK_EQ(c.uid, 1000);
    CHECK_EQ(c.gid, 2000);
}

CASE(passcred_binds_on_send) {
    // A socket with SO_PASSCRED and no name gets one when it connects or sends.
    struct name target = abstract("t"), got = {.len = sizeof got.un};
    int t = bound(SOCK_DGRAM, target), c = sock(SOCK_DGRAM);
    pass(c, 1);
    CHECK_EQ(sendto(c, "x", 1, 0, NAME(target)), 1);
    char b;
    CHECK_EQ(recvfrom(t, &b, 1, 0, (struct sockaddr *)&got.un, &got.len), 1);
    CHECK_EQ(got.len, 2 + 6);
    CHECK_EQ(sendto(t, "y", 1, 0, NAME(got)), 1);
    CHECK_EQ(take(c).pid, getpid());
}

CASE(with_descriptors) {
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    pass(s[1], 1);
    union control c;
    memset(&c, 0, sizeof c);
    int fd = 2, rights = 0, creds = 0;
    char buf[4];
    struct iovec v = {buf, 1};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = CMSG_SPACE(sizeof fd)};
    c.head = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(&c.head), &fd, sizeof fd);
    CHECK_EQ(sendmsg(s[0], &m, 0), 1);
    m.msg_controllen = sizeof c;
    CHECK_EQ(recvmsg(s[1], &m, 0), 1);
    for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h)) {
        rights += h->cmsg_type == SCM_RIGHTS;
        creds += h->cmsg_type == SCM_CREDENTIALS;
    }
    CHECK_EQ(rights, 1);
    CHECK_EQ(creds, 1);
}

MAIN
