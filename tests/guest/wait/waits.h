// What the programs of this family share.
#ifndef WAITS_H
#define WAITS_H
#include "../check.h"
#include <linux/capability.h>

// An address where nothing is mapped; volatile, so that gcc does not argue.
static void *volatile nowhere CHECK_USED = (void *)8;

// One descriptor, asked without waiting: its returned events.
CHECK_USED static int events_of(int fd, int wanted) {
    struct pollfd p = {fd, wanted, 0};
    int n = CHECK_OK(poll(&p, 1, 0));
    CHECK_EQ(n, p.revents != 0);
    return p.revents;
}

// Root in a container may lack a capability.
CHECK_USED static int capable(int cap) {
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    CHECK_OK(syscall(SYS_capget, &head, data));
    return data[cap / 32].effective >> cap % 32 & 1;
}

// Waits at most three seconds for input, so that a lost wake-up is a failure with a line and not a time-out.
CHECK_USED static int readable_soon(int fd) {
    struct pollfd p = {fd, POLLIN, 0};
    return poll(&p, 1, 3000) == 1;
}

CHECK_USED static long now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

CHECK_USED static volatile int caught;
CHECK_USED static void on_signal(int sig) { caught = sig; }

// A handler without SA_RESTART, so that waits end with EINTR.
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
