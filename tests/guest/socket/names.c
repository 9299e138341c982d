// build: static
// AF_UNIX addresses: pathnames, abstract names, autobind; bind, getsockname, getpeername; socket files.
#include "sockets.h"

static struct name own(int fd) {
    struct name n = {.len = sizeof n.un};
    memset(&n.un, 0x5a, sizeof n.un);
    CHECK_OK(getsockname(fd, (struct sockaddr *)&n.un, &n.len));
    return n;
}

CASE(pathname) {
    enter();
    int fd = bound(SOCK_STREAM, path("s"));
    struct stat st;
    CHECK_OK(lstat("s", &st));
    CHECK_EQ(st.st_mode, S_IFSOCK | 0755);  // 0777 less the umask
    CHECK_EQ(st.st_uid, geteuid());
    CHECK_EQ(st.st_size, 0);
    struct name n = own(fd);
    CHECK_EQ(n.len, 2 + 2);
    CHECK_EQ(n.un.sun_family, AF_UNIX);
    CHECK_STR(n.un.sun_path, "s");
    struct name again = path("s"), other = path("t");
    CHECK_ERRNO(bind(sock(SOCK_STREAM), NAME(again)), EADDRINUSE);
    CHECK_ERRNO(bind(sock(SOCK_DGRAM), NAME(again)), EADDRINUSE);
    CHECK_ERRNO(bind(fd, NAME(other)), EINVAL);  // it has a name already
    CHECK_ERRNO(access("t", F_OK), ENOENT);
    CHECK_OK(close(fd));
    CHECK_OK(lstat("s", &st));  // the file stays when the socket goes
    CHECK_ERRNO(bind(sock(SOCK_STREAM), NAME(again)), EADDRINUSE);
    CHECK_OK(unlink("s"));
    bound(SOCK_STREAM, again);
}

CASE(pathname_errors) {
    enter();
    CHECK_OK(close(CHECK_OK(open("f", O_CREAT | O_WRONLY, 0644))));
    CHECK_OK(symlink("nowhere", "l"));
    int fd = sock(SOCK_STREAM);
    struct name dir = path("none/s"), file = path("f"), under = path("f/s"), link = path("l"), slash = path("x/");
    CHECK_ERRNO(bind(fd, NAME(dir)), ENOENT);
    CHECK_ERRNO(bind(fd, NAME(file)), EADDRINUSE);
    CHECK_ERRNO(bind(fd, NAME(under)), ENOTDIR);
    CHECK_ERRNO(bind(fd, NAME(link)), EADDRINUSE);
    CHECK_ERRNO(bind(fd, NAME(slash)), ENOENT);
    if (geteuid() != 0) {
        struct name etc = path("/etc/s");
        CHECK_ERRNO(bind(fd, NAME(etc)), EACCES);
    }
    struct name n = path("s");
    CHECK_ERRNO(bind(fd, (struct sockaddr *)&n.un, 1), EINVAL);
    CHECK_ERRNO(bind(fd, (struct sockaddr *)&n.un, 111), EINVAL);
    CHECK_ERRNO(bind(fd, (struct sockaddr *)&n.un, 200), EINVAL);
    CHECK_ERRNO(bind(fd, (struct sockaddr *)&n.un, -1), EINVAL);
    CHECK_ERRNO(bind(fd, nowhere, 10), EFAULT);
    n.un.sun_family = AF_INET;
    CHECK_ERRNO(bind(fd, NAME(n)), EINVAL);
    n.un.sun_family = AF_UNIX;
    CHECK_OK(bind(fd, NAME(n)));  // none of the failures left a name
}

CASE(longest_pathname) {
    enter();
    struct name n = {.un = {.sun_family = AF_UNIX}, .len = sizeof n.un};
    memset(n.un.sun_path, 'n', 108);  // no room for a zero: Linux takes it all the same
    int fd = sock(SOCK_STREAM);
    CHECK_OK(bind(fd, NAME(n)));
    char name[109];
    memset(name, 'n', 108);
    name[108] = 0;
    CHECK_OK(access(name, F_OK));
    CHECK_OK(listen(fd, 1));
    CHECK_OK(connect(sock(SOCK_STREAM), NAME(n)));
    char big[128];
    socklen_t len = sizeof big;
    CHECK_OK(getsockname(fd, (struct sockaddr *)big, &len));
    CHECK_EQ(len, 2 + 109);
}

CASE(length_without_zero) {
    enter();
    struct name n = path("abc");
    n.len = 2 + 2;  // only "ab" counts
    int fd = bound(SOCK_DGRAM, n);
    CHECK_OK(access("ab", F_OK));
    CHECK_EQ(own(fd).len, 2 + 3);
    struct name full = path("ab");
    CHECK_OK(connect(sock(SOCK_DGRAM), NAME(full)));
}

CASE(abstract_names) {
    enter();
    struct name n = abstract("a"), m = abstract("a");
    int fd = bound(SOCK_STREAM, n);
    struct name got = own(fd);
    CHECK_EQ(got.len, n.len);
    CHECK_EQ(memcmp(&got.un, &n.un, n.len), 0);
    CHECK_ERRNO(bind(sock(SOCK_STREAM), NAME(m)), EADDRINUSE);
    bound(SOCK_DGRAM, n);  // each type has its own
    m.len++;               // a zero more is another name
    bound(SOCK_STREAM, m);
    CHECK_OK(close(fd));
    bound(SOCK_STREAM, n);  // free at once
    struct name nul = abstract("z");
    nul.un.sun_path[3] = 0;  // zeros inside are part of the name
    bound(SOCK_STREAM, nul);
    struct name full = {.un = {.sun_family = AF_UNIX}, .len = sizeof full.un};
    memset(full.un.sun_path + 1, 'q', 107);
    int pid = getpid();
    memcpy(full.un.sun_path + 1, &pid, sizeof pid);
    fd = bound(SOCK_STREAM, full);
    CHECK_EQ(own(fd).len, sizeof full.un);
}

CASE(autobind) {
    int a = sock(SOCK_STREAM), b = sock(SOCK_STREAM);
    struct name empty = {.un = {.sun_family = AF_UNIX}, .len = 2};
    CHECK_EQ(own(a).len, 2);  // unnamed
    CHECK_EQ(own(a).un.sun_family, AF_UNIX);
    CHECK_OK(bind(a, NAME(empty)));
    CHECK_OK(bind(b, NAME(empty)));
    struct name na = own(a), nb = own(b);
    CHECK_EQ(na.len, 2 + 6);  // a zero and five digits
    CHECK_EQ(na.un.sun_path[0], 0);
    for (int i = 1; i < 6; i++) CHECK(strchr("0123456789abcdef", na.un.sun_path[i]) != NULL);
    CHECK_NE(memcmp(&na.un, &nb.un, 8), 0);
    CHECK_OK(bind(a, NAME(empty)));  // a second autobind changes nothing
    struct name same = own(a);
    CHECK_EQ(memcmp(&same.un, &na.un, 8), 0);
    CHECK_OK(listen(a, 1));
    CHECK_OK(connect(b, NAME(na)));
}

CASE(peers) {
    enter();
    int l = listener(SOCK_STREAM, path("server"), 5);
    int c = bound(SOCK_STREAM, path("client"));
    struct name server = path("server"), got = {.len = sizeof got.un};
    CHECK_ERRNO(getpeername(c, (struct sockaddr *)&got.un, &got.len), ENOTCONN);
    CHECK_OK(connect(c, NAME(server)));
    CHECK_OK(getpeername(c, (struct sockaddr *)&got.un, &got.len));
    CHECK_STR(got.un.sun_path, "server");
    got.len = sizeof got.un;
    int a = CHECK_OK(accept(l, (struct sockaddr *)&got.un, &got.len));
    CHECK_EQ(got.len, 2 + 7);
    CHECK_STR(got.un.sun_path, "client");
    CHECK_STR(own(a).un.sun_path, "server");  // the accepted one carries the listener's name
    int unnamed = joined(SOCK_STREAM, server);
    got.len = sizeof got.un;
    a = CHECK_OK(accept(l, (struct sockaddr *)&got.un, &got.len));
    CHECK_EQ(got.len, 2);
    got.len = sizeof got.un;
    CHECK_OK(getpeername(a, (struct sockaddr *)&got.un, &got.len));
    CHECK_EQ(got.len, 2);
    CHECK_OK(close(unnamed));
    int s[2];
    CHECK_OK(socketpair(AF_UNIX, SOCK_DGRAM, 0, s));
    got.len = sizeof got.un;
    CHECK_OK(getpeername(s[0], (struct sockaddr *)&got.un, &got.len));
    CHECK_EQ(got.len, 2);
}

CASE(address_buffers) {
    enter();
    int fd = bound(SOCK_STREAM, path("a-name"));
    struct sockaddr_un un;
    memset(&un, '#', sizeof un);
    socklen_t len = 5;
    CHECK_OK(getsockname(fd, (struct sockaddr *)&un, &len));
    CHECK_EQ(len, 2 + 7);  // the length that it would have had
    CHECK_EQ(memcmp(un.sun_path, "a-n##", 5), 0);
    len = 0;
    CHECK_OK(getsockname(fd, (struct sockaddr *)&un, &len));
    len = -1;
    CHECK_ERRNO(getsockname(fd, (struct sockaddr *)&un, &len), EINVAL);
    len = sizeof un;
    CHECK_ERRNO(getsockname(fd, nowhere, &len), EFAULT);
    CHECK_ERRNO(getsockname(fd, (struct sockaddr *)&un, nowhere), EFAULT);
}

CASE(socket_files) {
    enter();
    int l = listener(SOCK_STREAM, path("s"), 5);
    CHECK_ERRNO(open("s", O_RDWR), ENXIO);
    CHECK_ERRNO(open("s", O_RDONLY | O_NONBLOCK), ENXIO);
    CHECK_OK(open("s", O_PATH));
    CHECK_ERRNO(truncate("s", 0), EINVAL);
    CHECK_OK(chmod("s", 0700));
    CHECK_OK(link("s", "t"));
    struct name s = path("s"), t = path("t"), moved = path("moved"), sym = path("sym");
    int c = joined(SOCK_STREAM, t);  // a second name leads to the same socket
    CHECK_OK(rename("s", "moved"));
    joined(SOCK_STREAM, moved);
    CHECK_ERRNO(connect(sock(SOCK_STREAM), NAME(s)), ENOENT);
    CHECK_OK(symlink("moved", "sym"));
    joined(SOCK_STREAM, sym);
    CHECK_STR(own(l).un.sun_path, "s");  // the name at bind
    CHECK_OK(unlink("t"));
    CHECK_OK(unlink("moved"));
    int a = CHECK_OK(accept(l, NULL, NULL));
    CHECK_EQ(write(c, "x", 1), 1);  // connections outlive names
    char b;
    CHECK_EQ(read(a, &b, 1), 1);
    CHECK_ERRNO(connect(sock(SOCK_STREAM), NAME(sym)), ENOENT);
}

CASE(permission_to_connect) {
    enter();
    if (geteuid() == 0) {
        CHECK_OK(chown(".", 65534, 65534));
        CHECK_OK(setresgid(65534, 65534, 65534));
        CHECK_OK(setresuid(65534, 65534, 65534));
    }
    int l = listener(SOCK_STREAM, path("s"), 5);
    struct name s = path("s");
    CHECK_OK(chmod("s", 0555));
    CHECK_ERRNO(connect(sock(SOCK_STREAM), NAME(s)), EACCES);  // connecting is writing
    CHECK_OK(chmod("s", 0200));
    joined(SOCK_STREAM, s);
    CHECK_OK(mkdir("d", 0755));
    CHECK_OK(rename("s", "d/s"));
    CHECK_OK(chmod("d", 0));
    struct name d = path("d/s");
    CHECK_ERRNO(connect(sock(SOCK_STREAM), NAME(d)), EACCES);
    CHECK_OK(chmod("d", 0755));
    CHECK_OK(close(l));
    CHECK_ERRNO(connect(sock(SOCK_STREAM), NAME(d)), ECONNREFUSED);
}

MAIN
