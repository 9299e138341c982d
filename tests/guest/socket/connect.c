// build: static
// listen, accept, connect: states and their errors, the backlog, waiting and interruption.
#include "sockets.h"

CASE(connect_errors) {
    enter();
    bound(SOCK_STREAM, path("quiet"));
    int l = listener(SOCK_STREAM, path("s"), 5);
    bound(SOCK_DGRAM, path("dgram"));
    CHECK_OK(close(CHECK_OK(open("file", O_CREAT | O_WRONLY, 0644))));
    struct name none = path("none"), quiet = path("quiet"), dgram = path("dgram"), file = path("file"), s = path("s");
    struct name abs = abstract("none");
    int c = sock(SOCK_STREAM);
    CHECK_ERRNO(connect(c, NAME(none)), ENOENT);
    CHECK_ERRNO(connect(c, NAME(quiet)), ECONNREFUSED);  // bound but not listening
    CHECK_ERRNO(connect(c, NAME(file)), ECONNREFUSED);
    CHECK_ERRNO(connect(c, NAME(abs)), ECONNREFUSED);
    CHECK_ERRNO(connect(c, NAME(dgram)), EPROTOTYPE);
    CHECK_ERRNO(connect(sock(SOCK_DGRAM), NAME(s)), EPROTOTYPE);
    CHECK_ERRNO(connect(sock(SOCK_SEQPACKET), NAME(s)), EPROTOTYPE);
    CHECK_ERRNO(connect(c, (struct sockaddr *)&s.un, 1), EINVAL);
    CHECK_ERRNO(connect(c, nowhere, 10), EFAULT);
    s.un.sun_family = AF_INET;
    CHECK_ERRNO(connect(c, NAME(s)), EINVAL);
    s.un.sun_family = AF_UNIX;
    CHECK_OK(connect(c, NAME(s)));  // after failures it still may
    CHECK_ERRNO(connect(c, NAME(s)), EISCONN);
    CHECK_ERRNO(connect(l, NAME(s)), EINVAL);
    int p[2];
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, p));
    CHECK_ERRNO(connect(p[0], NAME(s)), EISCONN);
    CHECK_OK(close(l));
    CHECK_ERRNO(connect(sock(SOCK_STREAM), NAME(s)), ECONNREFUSED);  // the file alone is not enough
}

CASE(listen_errors) {
    enter();
    int c = sock(SOCK_STREAM), p[2];
    CHECK_ERRNO(listen(c, 5), EINVAL);  // without a name
    CHECK_ERRNO(listen(bound(SOCK_DGRAM, abstract("d")), 5), EOPNOTSUPP);
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, p));
    CHECK_ERRNO(listen(p[0], 5), EINVAL);
    int l = bound(SOCK_STREAM, abstract("l"));
    CHECK_EQ(option(l, SO_ACCEPTCONN), 0);
    CHECK_OK(listen(l, -1));
    CHECK_EQ(option(l, SO_ACCEPTCONN), 1);
    CHECK_OK(listen(l, 1 << 30));  // again, with another length
}

CASE(accept_errors) {
    enter();
    int l = listener(SOCK_STREAM | SOCK_NONBLOCK, path("s"), 5), p[2];
    struct name s = path("s");
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, p));
    CHECK_ERRNO(accept(p[0], NULL, NULL), EINVAL);
    CHECK_ERRNO(accept(bound(SOCK_DGRAM, abstract("d")), NULL, NULL), EOPNOTSUPP);
    CHECK_ERRNO(accept(sock(SOCK_STREAM), NULL, NULL), EINVAL);
    CHECK_ERRNO(accept(l, NULL, NULL), EAGAIN);
    CHECK_ERRNO(accept4(l, NULL, NULL, 0x100), EINVAL);
    joined(SOCK_STREAM, s);
    int a = CHECK_OK(accept4(l, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
    CHECK_EQ(fcntl(a, F_GETFD), FD_CLOEXEC);
    CHECK_EQ(fcntl(a, F_GETFL), O_RDWR | O_NONBLOCK);
    joined(SOCK_STREAM, s);
    a = CHECK_OK(accept(l, NULL, NULL));
    CHECK_EQ(fcntl(a, F_GETFL), O_RDWR);  // the listener's O_NONBLOCK is not handed on
    CHECK_EQ(option(a, SO_ACCEPTCONN), 0);
    struct sockaddr_un un;
    socklen_t bad = -1;
    joined(SOCK_STREAM, s);
    CHECK_ERRNO(accept(l, (struct sockaddr *)&un, &bad), EINVAL);
}

CASE(data_before_accept) {
    enter();
    int l = listener(SOCK_STREAM, path("s"), 5);
    int c = joined(SOCK_STREAM, path("s"));
    CHECK_EQ(write(c, "early", 5), 5);
    CHECK_OK(close(c));
    int a = CHECK_OK(accept(l, NULL, NULL));  // a connection closed meanwhile is accepted all the same
    char buf[8];
    CHECK_EQ(read(a, buf, 8), 5);
    CHECK_EQ(read(a, buf, 8), 0);
}

CASE(order_of_connections) {
    enter();
    int l = listener(SOCK_STREAM, path("s"), 10);
    for (int i = 0; i < 5; i++) {
        int c = joined(SOCK_STREAM, path("s"));
        CHECK_EQ(write(c, &i, 4), 4);
    }
    for (int i = 0; i < 5; i++) {
        int got = -1;
        CHECK_EQ(read(CHECK_OK(accept(l, NULL, NULL)), &got, 4), 4);
        CHECK_EQ(got, i);
    }
}

CASE(full_backlog) {
    enter();
    int l = listener(SOCK_STREAM, path("s"), 2), n = 0;
    struct name s = path("s");
    for (;; n++) {
        int c = sock(SOCK_STREAM | SOCK_NONBLOCK);
        if (connect(c, NAME(s)) == -1) break;
    }
    CHECK_EQ(errno, EAGAIN);
    CHECK_EQ(n, 3);  // one more than asked for
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        int c = joined(SOCK_STREAM, s);  // waits for room
        CHECK_EQ(write(c, "late", 4), 4);
        _exit(0);
    }
    usleep(30000);
    CHECK_EQ(waitpid(pid, NULL, WNOHANG), 0);
    CHECK_OK(accept(l, NULL, NULL));
    CHECK_EXIT(pid, 0);
}

CASE(backlog_wait_ends) {
    enter();
    int l = listener(SOCK_STREAM, path("s"), 0);
    struct name s = path("s");
    joined(SOCK_STREAM, s);
    catch_signal(SIGUSR1);
    pid_t pid = signal_later(SIGUSR1, 30);
    CHECK_ERRNO(connect(sock(SOCK_STREAM), NAME(s)), EINTR);
    CHECK_EXIT(pid, 0);
    struct timeval t = {0, 30000};
    int c = sock(SOCK_STREAM);
    CHECK_OK(setsockopt(c, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t));
    CHECK_ERRNO(connect(c, NAME(s)), EAGAIN);
    pid = CHECK_OK(fork());
    if (pid == 0) {
        CHECK_OK(close(l));
        CHECK_ERRNO(connect(sock(SOCK_STREAM), NAME(s)), ECONNREFUSED);
        _exit(0);
    }
    usleep(30000);
    CHECK_OK(close(l));  // the listener goes while somebody waits
    CHECK_EXIT(pid, 0);
}

CASE(waiting_accept) {
    enter();
    int l = listener(SOCK_STREAM, path("s"), 5);
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        usleep(30000);
        int c = joined(SOCK_STREAM, path("s"));
        CHECK_EQ(write(c, "hi", 2), 2);
        _exit(0);
    }
    char buf[8];
    int a = CHECK_OK(accept(l, NULL, NULL));
    CHECK_EQ(read(a, buf, 8), 2);
    CHECK_EXIT(pid, 0);
    catch_signal(SIGUSR1);
    pid = signal_later(SIGUSR1, 20);
    CHECK_ERRNO(accept(l, NULL, NULL), EINTR);
    CHECK_EXIT(pid, 0);
    struct timeval t = {0, 30000};
    CHECK_OK(setsockopt(l, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t));
    CHECK_ERRNO(accept(l, NULL, NULL), EAGAIN);
}

CASE(many_clients) {
    enter();
    int l = listener(SOCK_STREAM, path("s"), 100);
    pid_t pids[5];
    for (int p = 0; p < 5; p++) {
        pids[p] = CHECK_OK(fork());
        if (pids[p] == 0) {
            for (int i = 0; i < 40; i++) {
                int c = joined(SOCK_STREAM, path("s")), v = p * 1000 + i, back = 0;
                CHECK_EQ(write(c, &v, 4), 4);
                CHECK_EQ(recv(c, &back, 4, MSG_WAITALL), 4);
                CHECK_EQ(back, v + 1);
                CHECK_OK(close(c));
            }
            _exit(0);
        }
    }
    for (int i = 0; i < 200; i++) {
        int a = CHECK_OK(accept(l, NULL, NULL)), v;
        CHECK_EQ(read(a, &v, 4), 4);
        v++;
        CHECK_EQ(write(a, &v, 4), 4);
        CHECK_OK(close(a));
    }
    for (int p = 0; p < 5; p++) CHECK_EXIT(pids[p], 0);
}

CASE(listener_closed_with_pending) {
    enter();
    int l = listener(SOCK_STREAM, path("s"), 5);
    int c = joined(SOCK_STREAM, path("s"));
    CHECK_EQ(write(c, "x", 1), 1);
    CHECK_OK(close(l));
    char b;
    CHECK_ERRNO(write(c, "x", 1), EPIPE);
    int r = read(c, &b, 1);
    CHECK(r == 0 || (r == -1 && errno == ECONNRESET));
    CHECK_EQ(events_of(c, POLLIN) & POLLHUP, POLLHUP);
}

MAIN
