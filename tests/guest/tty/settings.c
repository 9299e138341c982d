// build: static
// Settings: TCGETS and its kin, window size, flushing, breaks, exclusive use, line disciplines.
#include "ptys.h"

// Linux's old struct termio (asm/termios.h cannot be included beside sys/ioctl.h).
struct old_termio {
    unsigned short iflag, oflag, cflag, lflag;
    unsigned char line, cc[8];
};

CASE(get_and_set) {
    open_pair();
    struct termios t = get(), u;
    t.c_iflag = BRKINT | INPCK | IXOFF;
    t.c_oflag = OPOST;
    t.c_lflag = ISIG | NOFLSH;
    t.c_cc[VINTR] = 7;
    CHECK_OK(ioctl(slave, TCSETS, &t));
    u = get();
    CHECK_EQ(memcmp(&t, &u, sizeof t), 0);
    CHECK_OK(ioctl(master, TCGETS, &u));  // the master's answer is the slave's setting
    CHECK_EQ(memcmp(&t, &u, sizeof t), 0);
    t.c_lflag = ICANON;
    CHECK_OK(ioctl(master, TCSETS, &t));
    CHECK_EQ(get().c_lflag, ICANON);
    CHECK_ERRNO(ioctl(slave, TCGETS, nowhere), EFAULT);
    CHECK_ERRNO(ioctl(slave, TCSETS, nowhere), EFAULT);
    CHECK_ERRNO(ioctl(slave, 0x54ff, &t), ENOTTY);
}

CASE(character_size_is_fixed) {
    open_pair();
    struct termios t = get();
    t.c_cflag = B9600 | CS5 | PARENB | CSTOPB;  // a pty has eight bits and no parity
    set(t);
    t = get();
    CHECK_EQ(t.c_cflag & (CSIZE | PARENB), CS8);
    CHECK_EQ(t.c_cflag & CREAD, CREAD);
    CHECK_EQ(t.c_cflag & CBAUD, B9600);
}

CASE(survives_closing) {
    open_pair();
    local_flags(0, ECHO);
    int n = pty_number();
    char name[32];
    snprintf(name, sizeof name, "/dev/pts/%d", n);
    CHECK_OK(close(slave));
    slave = CHECK_OK(open(name, O_RDWR | O_NOCTTY));
    CHECK_EQ(get().c_lflag & ECHO, 0);  // as long as the pair lives
}

CASE(second_version) {
    open_pair();
    struct termios2 t;
    memset(&t, 0x5a, sizeof t);
    CHECK_OK(ioctl(slave, TCGETS2, &t));
    struct termios u = get();
    CHECK_EQ(t.c_lflag, u.c_lflag);
    CHECK_EQ(t.c_cc[VINTR], 3);
    CHECK_EQ(t.c_ospeed, 38400);
    CHECK_EQ(t.c_ispeed, 38400);
    t.c_cflag = (t.c_cflag & ~CBAUD) | BOTHER;
    t.c_ospeed = t.c_ispeed = 12345;
    t.c_lflag &= ~ECHO;
    CHECK_OK(ioctl(slave, TCSETS2, &t));
    memset(&t, 0, sizeof t);
    CHECK_OK(ioctl(slave, TCGETS2, &t));
    CHECK_EQ(t.c_ospeed, 12345);
    CHECK_EQ(t.c_cflag & CBAUD, BOTHER);
    CHECK_EQ(get().c_lflag & ECHO, 0);
    t.c_cflag = (t.c_cflag & ~CBAUD) | B115200;
    CHECK_OK(ioctl(slave, TCSETSW2, &t));
    CHECK_OK(ioctl(slave, TCGETS2, &t));
    CHECK_EQ(t.c_ospeed, 115200);
    CHECK_ERRNO(ioctl(slave, TCSETS2, nowhere), EFAULT);
}

CASE(oldest_version) {
    open_pair();
    struct old_termio t;
    memset(&t, 0, sizeof t);
    CHECK_OK(ioctl(slave, TCGETA, &t));
    CHECK_EQ(t.lflag, get().c_lflag & 0xffff);
    CHECK_EQ(t.cc[VERASE], 0x7f);
    t.lflag &= ~ECHO;
    CHECK_OK(ioctl(slave, TCSETA, &t));
    CHECK_EQ(get().c_lflag & ECHO, 0);
    CHECK_EQ(get().c_cc[VSUSP], 26);  // what the old structure lacks stays
}

CASE(set_and_flush) {
    open_pair();
    local_flags(0, ECHO | ICANON);
    struct termios t = get();
    type("typed ahead");
    CHECK_EQ(ready(slave, POLLIN, 2000), POLLIN);
    usleep(10000);
    CHECK_OK(ioctl(slave, TCSETSW, &t));
    CHECK_EQ(ready(slave, POLLIN, 0), POLLIN);
    CHECK_OK(ioctl(slave, TCSETSF, &t));  // this one drops what was not read
    quiet(slave);
    type("new");
    EXPECT(slave, "new");
}

CASE(window_size) {
    open_pair();
    struct winsize w = {1, 1, 1, 1}, got;
    CHECK_OK(ioctl(slave, TIOCGWINSZ, &w));
    CHECK_EQ(w.ws_row | w.ws_col | w.ws_xpixel | w.ws_ypixel, 0);
    w = (struct winsize){50, 132, 800, 600};
    CHECK_OK(ioctl(master, TIOCSWINSZ, &w));
    CHECK_OK(ioctl(slave, TIOCGWINSZ, &got));
    CHECK_EQ(memcmp(&w, &got, sizeof w), 0);
    w.ws_col = 80;
    CHECK_OK(ioctl(slave, TIOCSWINSZ, &w));
    CHECK_OK(ioctl(master, TIOCGWINSZ, &got));
    CHECK_EQ(got.ws_col, 80);
    CHECK_ERRNO(ioctl(slave, TIOCGWINSZ, nowhere), EFAULT);
    CHECK_ERRNO(ioctl(slave, TIOCSWINSZ, nowhere), EFAULT);
}

CASE(window_change_signal) {
    open_pair();
    IN_CHILD({
        lead();
        catch_signal(SIGWINCH);
        struct winsize w = {30, 90, 0, 0};
        CHECK_OK(ioctl(master, TIOCSWINSZ, &w));
        AWAIT(SIGWINCH);
        CHECK_OK(ioctl(master, TIOCSWINSZ, &w));  // the same size: no news
        usleep(20000);
        CHECK_EQ(caught, 0);
        w.ws_row = 31;
        CHECK_OK(ioctl(slave, TIOCSWINSZ, &w));
        AWAIT(SIGWINCH);
    });
}

CASE(flushing) {
    open_pair();
    local_flags(0, ECHO);
    type("one\ntwo");
    CHECK_EQ(ready(slave, POLLIN, 2000), POLLIN);
    usleep(10000);
    CHECK_OK(ioctl(slave, TCFLSH, TCIFLUSH));
    quiet(slave);
    type("three\n");
    READ("three\n");
    type("four\n");
    CHECK_EQ(ready(slave, POLLIN, 2000), POLLIN);
    usleep(10000);
    CHECK_OK(ioctl(slave, TCFLSH, TCIOFLUSH));
    quiet(slave);
    CHECK_OK(ioctl(slave, TCFLSH, TCOFLUSH));
    CHECK_ERRNO(ioctl(slave, TCFLSH, 7), EINVAL);
}

CASE(breaks_and_drains) {
    open_pair();
    write_all(slave, "out");
    CHECK_OK(ioctl(slave, TCSBRK, 1));  // tcdrain
    EXPECT(master, "out");
    CHECK_OK(ioctl(slave, TCSBRK, 0));
    CHECK_OK(ioctl(slave, TCSBRKP, 0));
    CHECK_OK(ioctl(slave, TIOCSBRK));
    CHECK_OK(ioctl(slave, TIOCCBRK));
    quiet(slave);
}

CASE(exclusive_use) {
    open_pair();
    int v = -1;
    CHECK_OK(ioctl(slave, TIOCGEXCL, &v));
    CHECK_EQ(v, 0);
    CHECK_OK(ioctl(slave, TIOCEXCL));
    CHECK_OK(ioctl(slave, TIOCGEXCL, &v));
    CHECK_EQ(v, 1);
    if (geteuid() != 0) CHECK_ERRNO(open(pty_name(), O_RDWR | O_NOCTTY), EBUSY);
    CHECK_OK(ioctl(slave, TIOCNXCL));
    CHECK_OK(close(CHECK_OK(open(pty_name(), O_RDWR | O_NOCTTY))));
}

CASE(disciplines) {
    open_pair();
    int v = -1;
    CHECK_OK(ioctl(slave, TIOCGETD, &v));
    CHECK_EQ(v, 0);
    CHECK_OK(ioctl(slave, TIOCSETD, &v));
    v = 9999;
    CHECK_ERRNO(ioctl(slave, TIOCSETD, &v), EINVAL);
}

CASE(modem_lines) {
    open_pair();
    int v = 0;
    CHECK_EQ(ioctl(slave, TIOCMGET, &v), -1);
    CHECK(errno == ENOTTY || errno == EINVAL);
    CHECK_OK(ioctl(slave, TIOCGSOFTCAR, &v));
    CHECK_EQ(v, 0);
}

CASE(libc_view) {
    open_pair();
    CHECK_EQ(isatty(slave), 1);
    CHECK_EQ(isatty(master), 1);
    CHECK_STR(ttyname(slave), pty_name());
    CHECK_EQ(isatty(CHECK_OK(open("/dev/null", O_RDWR))), 0);
    CHECK_EQ(errno, ENOTTY);
}

MAIN
