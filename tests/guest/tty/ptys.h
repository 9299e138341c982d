// What the programs of this family share: a pty pair, its settings, typing and expecting, sessions.
#ifndef PTYS_H
#define PTYS_H
#include "../check.h"
#include <asm/termbits.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>

// An address where nothing is mapped; volatile, so that gcc does not argue.
static void *volatile nowhere CHECK_USED = (void *)8;

static int master CHECK_USED = -1, slave CHECK_USED = -1;

CHECK_USED static int pty_number(void) {
    int n = -1;
    CHECK_OK(ioctl(master, TIOCGPTN, &n));
    return n;
}

CHECK_USED static const char *pty_name(void) {
    static char name[32];
    snprintf(name, sizeof name, "/dev/pts/%d", pty_number());
    return name;
}

CHECK_USED static void open_master(void) {
    int off = 0;
    master = CHECK_OK(open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC));
    CHECK_OK(ioctl(master, TIOCSPTLCK, &off));
}

CHECK_USED static void open_pair(void) {
    open_master();
    slave = CHECK_OK(open(pty_name(), O_RDWR | O_NOCTTY | O_CLOEXEC));
}

CHECK_USED static struct termios get(void) {
    struct termios t;
    CHECK_OK(ioctl(slave, TCGETS, &t));
    return t;
}

CHECK_USED static void set(struct termios t) { CHECK_OK(ioctl(slave, TCSETS, &t)); }

// Sets and clears bits of the four flag words.
CHECK_USED static void input_flags(unsigned on, unsigned off) {
    struct termios t = get();
    t.c_iflag = (t.c_iflag & ~off) | on;
    set(t);
}
CHECK_USED static void output_flags(unsigned on, unsigned off) {
    struct termios t = get();
    t.c_oflag = (t.c_oflag & ~off) | on;
    set(t);
}
CHECK_USED static void local_flags(unsigned on, unsigned off) {
    struct termios t = get();
    t.c_lflag = (t.c_lflag & ~off) | on;
    set(t);
}

CHECK_USED static void raw(int min, int time) {
    struct termios t = get();
    t.c_iflag = t.c_oflag = t.c_lflag = 0;
    t.c_cc[VMIN] = min;
    t.c_cc[VTIME] = time;
    set(t);
}

CHECK_USED static int ready(int fd, int events, int ms) {
    struct pollfd p = {fd, events, 0};
    CHECK_OK(poll(&p, 1, ms));
    return p.revents;
}

CHECK_USED static void write_all(int fd, const char *text) { CHECK_EQ(write(fd, text, strlen(text)), strlen(text)); }

// As if typed at the keyboard.
CHECK_USED static void type(const char *text) { write_all(master, text); }

CHECK_USED static const char *shown(const char *bytes, int n) {
    static char out[2][700];
    static int which;
    char *text = out[which ^= 1];
    int at = 0;
    for (int i = 0; i < n && at < 640; i++) {
        unsigned char c = bytes[i];
        at += c >= ' ' && c < 127 ? sprintf(text + at, "%c", c) : sprintf(text + at, "\\%03o", c);
    }
    text[at] = 0;
    return text;
}

// Exactly these bytes come from fd, and nothing more within a moment.
CHECK_USED static void expect_bytes(int fd, const char *want, int len, int line) {
    char got[9000];
    int n = 0;
    while (n < (int)sizeof got) {
        if (!(ready(fd, POLLIN, n < len ? 2000 : 8) & POLLIN)) break;
        long r = read(fd, got + n, sizeof got - n);
        if (r <= 0) break;
        n += r;
    }
    if (n != len || memcmp(got, want, len))
        check_report('F', __BASE_FILE__, line, "got \"%s\", wanted \"%s\"", shown(got, n), shown(want, len));
}
#define EXPECT(FD, TEXT) expect_bytes(FD, TEXT, sizeof(TEXT) - 1, __LINE__)

// One read of the slave gives just this.
CHECK_USED static void read_line(const char *want, int len, int line) {
    char got[9000];
    if (!(ready(slave, POLLIN, 2000) & POLLIN)) check_report('F', __BASE_FILE__, line, "nothing to read");
    int n = CHECK_OK(read(slave, got, sizeof got));
    if (n != len || memcmp(got, want, len))
        check_report('F', __BASE_FILE__, line, "read \"%s\", wanted \"%s\"", shown(got, n), shown(want, len));
}
#define READ(TEXT) read_line(TEXT, sizeof(TEXT) - 1, __LINE__)

CHECK_USED static void quiet(int fd) { CHECK_EQ(ready(fd, POLLIN, 25) & POLLIN, 0); }

// In a forked child: a new session with the slave as its terminal, ended with its parent.
CHECK_USED static void lead(void) {
    CHECK_OK(prctl(PR_SET_PDEATHSIG, SIGKILL));
    CHECK_OK(setsid());
    CHECK_OK(ioctl(slave, TIOCSCTTY, 0));
}

CHECK_USED static int foreground(void) {
    int pgrp = -1;
    CHECK_OK(ioctl(slave, TIOCGPGRP, &pgrp));
    return pgrp;
}
CHECK_USED static void set_foreground(int pgrp) { CHECK_OK(ioctl(slave, TIOCSPGRP, &pgrp)); }

CHECK_USED static volatile int caught;
CHECK_USED static void on_signal(int sig) { caught = sig; }
CHECK_USED static void catch_signal(int sig) {
    struct sigaction act = {.sa_handler = on_signal};
    caught = 0;
    CHECK_OK(sigaction(sig, &act, NULL));
}

// A handled signal arrives within two seconds.
CHECK_USED static void await_signal(int sig, int line) {
    for (int i = 0; i < 400 && caught != sig; i++) usleep(5000);
    if (caught != sig) check_report('F', __BASE_FILE__, line, "signal %d did not come (%d)", sig, caught);
    caught = 0;
}
#define AWAIT(SIG) await_signal(SIG, __LINE__)

#endif
