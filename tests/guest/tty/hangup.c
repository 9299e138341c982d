// build: static
// The end of either side: end of file, EIO, hang-up events, SIGHUP; readiness; packet mode.
#include "ptys.h"

static char buf[100];

CASE(slave_closed) {
    open_pair();
    write_all(slave, "last words");
    CHECK_OK(close(slave));
    CHECK_EQ(ready(master, POLLIN, 2000), POLLIN | POLLHUP);
    usleep(10000);
    CHECK_EQ(read(master, buf, 100), 10);
    CHECK_ERRNO(read(master, buf, 100), EIO);
    CHECK_EQ(ready(master, POLLIN | POLLOUT, 0) & POLLHUP, POLLHUP);
    slave = CHECK_OK(open(pty_name(), O_RDWR | O_NOCTTY));  // a new open heals it
    CHECK_EQ(ready(master, POLLIN, 0), 0);
    write_all(slave, "again");
    EXPECT(master, "again");
}

CASE(slave_never_opened) {
    open_master();
    CHECK_OK(fcntl(master, F_SETFL, O_NONBLOCK));
    CHECK_ERRNO(read(master, buf, 10), EAGAIN);  // waits for the first
    CHECK_EQ(ready(master, POLLIN | POLLOUT, 0), POLLOUT);
    type("early\n");
    slave = CHECK_OK(open(pty_name(), O_RDWR | O_NOCTTY));
    READ("early\n");  // typed before anybody was there
}

CASE(slave_closed_while_master_reads) {
    open_pair();
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        CHECK_OK(close(master));
        usleep(30000);
        _exit(0);
    }
    CHECK_OK(close(slave));
    CHECK_ERRNO(read(master, buf, 10), EIO);
    CHECK_EXIT(pid, 0);
}

CASE(master_closed) {
    open_pair();
    type("unread\n");
    usleep(20000);
    CHECK_OK(close(master));
    CHECK_EQ(read(slave, buf, 100), 0);  // a hung up terminal is at its end
    CHECK_ERRNO(write(slave, "x", 1), EIO);
    struct termios t;
    CHECK_ERRNO(ioctl(slave, TCGETS, &t), EIO);
    CHECK_EQ(ready(slave, POLLIN | POLLOUT, 0), POLLIN | POLLOUT | POLLERR | POLLHUP);
    CHECK_EQ(isatty(slave), 0);
    struct stat st;
    CHECK_OK(fstat(slave, &st));
    CHECK(S_ISCHR(st.st_mode));
}

CASE(master_closed_while_slave_reads) {
    open_pair();
    int m = master;
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        CHECK_OK(close(m));
        int n = read(slave, buf, 10);
        CHECK(n == 0 || (n == -1 && errno == EIO));  // the end or the hang-up, whichever is seen first
        usleep(10000);
        CHECK_EQ(read(slave, buf, 10), 0);
        CHECK_ERRNO(write(slave, "x", 1), EIO);
        _exit(0);
    }
    usleep(30000);
    CHECK_OK(close(m));
    CHECK_EXIT(pid, 0);
}

CASE(master_closed_signals_the_leader) {
    open_pair();
    int m = master;
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        CHECK_OK(close(m));
        lead();
        write_all(slave, "r");
        for (;;) pause();
    }
    CHECK_EQ(ready(m, POLLIN, 2000) & POLLIN, POLLIN);
    CHECK_OK(close(m));
    CHECK_KILLED(pid, SIGHUP);
}

CASE(foreground_job_is_told_when_the_leader_goes) {
    open_pair();
    int m = master, done[2];
    CHECK_OK(pipe(done));
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        CHECK_OK(close(m));
        lead();
        catch_signal(SIGHUP);
        pid_t job = CHECK_OK(fork());
        if (job == 0) {
            CHECK_OK(setpgid(0, 0));
            signal(SIGTTOU, SIG_IGN);
            set_foreground(getpid());
            write_all(slave, "r");
            AWAIT(SIGHUP);
            CHECK_EQ(write(done[1], "h", 1), 1);
            _exit(0);
        }
        AWAIT(SIGHUP);
        CHECK_ERRNO(open("/dev/tty", O_RDWR), ENXIO);  // nobody's terminal any more
        CHECK_EQ(ready(done[0], POLLIN, 50), 0);       // the job has heard nothing yet
        _exit(5);
    }
    CHECK_EQ(ready(m, POLLIN, 2000) & POLLIN, POLLIN);
    CHECK_OK(close(m));
    CHECK_EXIT(pid, 5);
    CHECK_EQ(ready(done[0], POLLIN, 3000), POLLIN);
}

CASE(leader_exit) {
    open_pair();
    int done[2];
    CHECK_OK(pipe(done));
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        lead();
        pid_t job = CHECK_OK(fork());
        if (job == 0) {
            catch_signal(SIGHUP);
            CHECK_EQ(write(done[1], "r", 1), 1);
            AWAIT(SIGHUP);
            CHECK_ERRNO(open("/dev/tty", O_RDWR), ENXIO);
            write_all(slave, "alive");  // Linux: a pty is not hung up by this, only given free
            CHECK_EQ(write(done[1], "d", 1), 1);
            _exit(0);
        }
        CHECK_EQ(read(done[0], buf, 1), 1);
        _exit(0);
    }
    CHECK_EXIT(pid, 0);
    CHECK_EQ(ready(done[0], POLLIN, 3000), POLLIN);
    EXPECT(master, "alive");
    int v = -1;
    CHECK_OK(ioctl(master, TIOCGPGRP, &v));
    CHECK_EQ(v, 0);
    IN_CHILD({ lead(); });  // the next session may have it
}

CASE(readiness_of_both_ends) {
    open_pair();
    local_flags(0, ECHO);
    CHECK_EQ(ready(master, POLLIN | POLLOUT, 0), POLLOUT);
    CHECK_EQ(ready(slave, POLLIN | POLLOUT, 0), POLLOUT);
    type("half a line");
    usleep(20000);
    CHECK_EQ(ready(slave, POLLIN | POLLOUT, 0), POLLOUT);
    type("\n");
    CHECK_EQ(ready(slave, POLLIN, 2000), POLLIN);
    READ("half a line\n");
    CHECK_EQ(ready(slave, POLLIN, 0), 0);
    write_all(slave, "out");
    CHECK_EQ(ready(master, POLLIN, 2000), POLLIN);
    EXPECT(master, "out");
    CHECK_EQ(ready(master, POLLIN, 0), 0);
    type("\x04");
    CHECK_EQ(ready(slave, POLLIN, 2000), POLLIN);  // the end of file is something to read
    READ("");
}

static unsigned char packet(void) {
    CHECK(ready(master, POLLIN | POLLPRI, 2000));
    long n = CHECK_OK(read(master, buf, 100));
    CHECK_GE(n, 1);
    buf[n] = 0;
    return buf[0];
}

CASE(packet_mode) {
    open_pair();
    int on = 1, v = -1;
    CHECK_OK(ioctl(master, TIOCGPKT, &v));
    CHECK_EQ(v, 0);
    CHECK_OK(ioctl(master, TIOCPKT, &on));
    CHECK_OK(ioctl(master, TIOCGPKT, &v));
    CHECK_EQ(v, 1);
    write_all(slave, "data");
    CHECK_EQ(packet(), TIOCPKT_DATA);
    CHECK_STR(buf + 1, "data");
    CHECK_OK(ioctl(slave, TCFLSH, TCIFLUSH));
    CHECK_EQ(ready(master, POLLIN | POLLPRI, 2000), POLLIN | POLLPRI);
    CHECK_EQ(packet(), TIOCPKT_FLUSHREAD);
    CHECK_OK(ioctl(slave, TCFLSH, TCOFLUSH));
    CHECK_EQ(packet(), TIOCPKT_FLUSHWRITE);
    CHECK_OK(ioctl(slave, TCXONC, TCOOFF));
    CHECK_EQ(packet(), TIOCPKT_STOP);
    CHECK_OK(ioctl(slave, TCXONC, TCOON));
    CHECK_EQ(packet(), TIOCPKT_START);
    input_flags(0, IXON);
    CHECK_EQ(packet(), TIOCPKT_NOSTOP);
    input_flags(IXON, 0);
    CHECK_EQ(packet(), TIOCPKT_DOSTOP);
    CHECK_EQ(ready(master, POLLIN | POLLPRI, 10), 0);
    CHECK_ERRNO(ioctl(slave, TIOCPKT, &on), ENOTTY);
    CHECK_ERRNO(ioctl(master, TIOCPKT, nowhere), EFAULT);
    on = 0;
    CHECK_OK(ioctl(master, TIOCPKT, &on));
    write_all(slave, "plain");
    EXPECT(master, "plain");
}

MAIN
