// What the programs of this family share: addresses, listeners, connections.
#ifndef SOCKETS_H
#define SOCKETS_H
#include "../check.h"
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>

// An address where nothing is mapped; volatile, so that gcc does not argue.
static void *volatile nowhere CHECK_USED = (void *)8;

struct name {
    struct sockaddr_un un;
    socklen_t len;
};
#define NAME(n) ((struct sockaddr *)&(n).un), (n).len

CHECK_USED static void enter(void) {
    umask(022);
    CHECK_OK(chdir(TMP(".")));
    signal(SIGPIPE, SIG_IGN);
}

// A pathname address, with its terminating zero.
CHECK_USED static struct name path(const char *text) {
    struct name n = {.un = {.sun_family = AF_UNIX}, .len = offsetof(struct sockaddr_un, sun_path) + strlen(text) + 1};
    strcpy(n.un.sun_path, text);
    return n;
}

// An abstract address, different in each process.
CHECK_USED static struct name abstract(const char *text) {
    struct name n = {.un = {.sun_family = AF_UNIX}};
    int len = snprintf(n.un.sun_path + 1, sizeof n.un.sun_path - 1, "check-%d-%s", getpid(), text);
    n.len = offsetof(struct sockaddr_un, sun_path) + 1 + len;
    return n;
}

CHECK_USED static int sock(int type) { return CHECK_OK(socket(AF_UNIX, type, 0)); }

CHECK_USED static int bound(int type, struct name n) {
    int fd = sock(type);
    CHECK_OK(bind(fd, NAME(n)));
    return fd;
}

CHECK_USED static int listener(int type, struct name n, int backlog) {
    int fd = bound(type, n);
    CHECK_OK(listen(fd, backlog));
    return fd;
}

CHECK_USED static int joined(int type, struct name n) {
    int fd = sock(type);
    CHECK_OK(connect(fd, NAME(n)));
    return fd;
}

CHECK_USED static int events_of(int fd, int wanted) {
    struct pollfd p = {fd, wanted, 0};
    CHECK_OK(poll(&p, 1, 0));
    return p.revents;
}

CHECK_USED static int option(int fd, int which) {
    int v = -1;
    socklen_t len = sizeof v;
    CHECK_OK(getsockopt(fd, SOL_SOCKET, which, &v, &len));
    CHECK_EQ(len, sizeof v);
    return v;
}

CHECK_USED static volatile int caught;
CHECK_USED static void on_signal(int sig) { caught = sig; }
CHECK_USED static void catch_signal(int sig) {
    struct sigaction act = {.sa_handler = on_signal};
    CHECK_OK(sigaction(sig, &act, NULL));
}

// A child that sends the caller this signal after so many milliseconds; its pid.
CHECK_USED static pid_t signal_later(int sig, int ms) {
    pid_t parent = getpid(), pid = CHECK_OK(fork());
    if (pid == 0) {
        usleep(ms * 1000);
        kill(parent, sig);
        _exit(0);
    }
    return pid;
}

#endif
