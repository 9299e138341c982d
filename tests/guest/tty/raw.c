// build: static
// Input without lines: the four cases of VMIN and VTIME, readiness, counts, non-blocking reads, interruption.
#include "ptys.h"

static long now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static pid_t type_later(const char *text, int ms) {
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        for (; *text; text++) {
            usleep(ms * 1000);
            CHECK_EQ(write(master, text, 1), 1);
        }
        _exit(0);
    }
    return pid;
}

static char buf[5000];

CASE(every_byte_passes) {
    open_pair();
    raw(1, 0);
    char all[256];
    for (int i = 0; i < 256; i++) all[i] = i;
    CHECK_EQ(write(master, all, 256), 256);
    expect_bytes(slave, all, 256, __LINE__);
    CHECK_EQ(write(slave, all, 256), 256);
    expect_bytes(master, all, 256, __LINE__);
    quiet(master);  // no echo
}

CASE(min_alone_waits_for_so_many) {
    open_pair();
    raw(3, 0);
    pid_t pid = type_later("abcd", 15);
    CHECK_EQ(read(slave, buf, 100), 3);
    CHECK_EQ(memcmp(buf, "abc", 3), 0);
    CHECK_EQ(read(slave, buf, 1), 1);  // but never for more than was asked
    CHECK_EXIT(pid, 0);
    raw(1, 0);
    type("xyz");
    usleep(20000);
    CHECK_EQ(read(slave, buf, 100), 3);  // what is there beyond the minimum comes along
}

CASE(neither_never_waits) {
    open_pair();
    raw(0, 0);
    CHECK_EQ(read(slave, buf, 10), 0);
    type("ab");
    CHECK_EQ(ready(slave, POLLIN, 2000), POLLIN);
    usleep(10000);
    CHECK_EQ(read(slave, buf, 10), 2);
    CHECK_EQ(read(slave, buf, 10), 0);
}

CASE(time_alone_limits_the_wait) {
    open_pair();
    raw(0, 2);
    long start = now_ms();
    CHECK_EQ(read(slave, buf, 10), 0);
    CHECK_GE(now_ms() - start, 190);
    pid_t pid = type_later("a", 30);
    start = now_ms();
    CHECK_EQ(read(slave, buf, 10), 1);  // the first byte ends it
    CHECK_EXIT(pid, 0);
    type("xy");
    usleep(20000);
    CHECK_EQ(read(slave, buf, 10), 2);
}

CASE(both_time_the_gaps) {
    open_pair();
    raw(5, 2);
    // The clock starts with the first byte: until then the wait has no end.
    pid_t pid = type_later("abc", 50);
    long start = now_ms();
    CHECK_EQ(read(slave, buf, 10), 3);
    CHECK_GE(now_ms() - start, 340);  // three gaps of 50 and the pause of 200
    CHECK_EXIT(pid, 0);
    pid = type_later("abcde", 10);
    CHECK_EQ(read(slave, buf, 10), 5);  // the minimum ends it at once
    CHECK_EXIT(pid, 0);
}

CASE(readiness_follows_min) {
    open_pair();
    raw(3, 0);
    type("ab");
    usleep(20000);
    CHECK_EQ(ready(slave, POLLIN, 0), 0);
    type("c");
    CHECK_EQ(ready(slave, POLLIN, 2000), POLLIN);
    CHECK_EQ(read(slave, buf, 10), 3);
    raw(3, 1);
    type("a");
    CHECK_EQ(ready(slave, POLLIN, 2000), POLLIN);  // with a time one byte is enough
    CHECK_EQ(read(slave, buf, 10), 1);
}

CASE(counts) {
    open_pair();
    raw(1, 0);
    int n = -1;
    CHECK_OK(ioctl(slave, FIONREAD, &n));
    CHECK_EQ(n, 0);
    type("hello");
    CHECK_EQ(ready(slave, POLLIN, 2000), POLLIN);
    usleep(20000);
    CHECK_OK(ioctl(slave, FIONREAD, &n));
    CHECK_EQ(n, 5);
    CHECK_EQ(read(slave, buf, 2), 2);
    CHECK_OK(ioctl(slave, FIONREAD, &n));
    CHECK_EQ(n, 3);
    write_all(slave, "out");
    CHECK_EQ(ready(master, POLLIN, 2000) & POLLIN, POLLIN);
    CHECK_OK(ioctl(slave, TIOCOUTQ, &n));
    CHECK_EQ(n, 0);
}

CASE(nonblocking) {
    open_pair();
    raw(1, 0);
    CHECK_OK(fcntl(slave, F_SETFL, O_NONBLOCK));
    CHECK_ERRNO(read(slave, buf, 10), EAGAIN);
    raw(5, 0);
    type("ab");
    usleep(20000);
    CHECK_EQ(read(slave, buf, 10), 2);  // what there is, the minimum notwithstanding
    raw(0, 3);
    CHECK_ERRNO(read(slave, buf, 10), EAGAIN);
    CHECK_OK(fcntl(master, F_SETFL, O_NONBLOCK));
    CHECK_ERRNO(read(master, buf, 10), EAGAIN);
}

CASE(interrupted) {
    open_pair();
    raw(1, 0);
    catch_signal(SIGUSR1);
    pid_t parent = getpid(), pid = CHECK_OK(fork());
    if (pid == 0) {
        usleep(20000);
        kill(parent, SIGUSR1);
        usleep(20000);
        kill(parent, SIGUSR1);
        _exit(0);
    }
    CHECK_ERRNO(read(slave, buf, 1), EINTR);
    CHECK_ERRNO(read(master, buf, 1), EINTR);
    CHECK_EXIT(pid, 0);
}

CASE(writer_waits_for_room) {
    open_pair();
    raw(1, 0);
    CHECK_OK(fcntl(slave, F_SETFL, O_NONBLOCK));
    long total = 0, n;
    while ((n = write(slave, buf, sizeof buf)) > 0) total += n;
    CHECK_EQ(errno, EAGAIN);
    CHECK_GT(total, 1000);
    CHECK_LT(total, 10000000);
    CHECK_EQ(ready(slave, POLLOUT, 0) & POLLOUT, 0);
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        long got = 0;
        while (got < total) {
            n = CHECK_OK(read(master, buf, sizeof buf));
            got += n;
        }
        _exit(0);
    }
    CHECK_EQ(ready(slave, POLLOUT, 3000) & POLLOUT, POLLOUT);
    CHECK_EXIT(pid, 0);
}

CASE(throughput_both_ways) {
    open_pair();
    raw(1, 0);
    enum { SIZE = 100000 };
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {  // an echo program
        for (long done = 0; done < SIZE;) {
            long n = CHECK_OK(read(slave, buf, 700));
            for (long at = 0; at < n;) at += CHECK_OK(write(slave, buf + at, n - at));
            done += n;
        }
        _exit(0);
    }
    CHECK_OK(fcntl(master, F_SETFL, O_NONBLOCK));
    long sent = 0, got = 0;
    while (got < SIZE) {
        struct pollfd p = {master, POLLIN | (sent < SIZE && sent - got < 2000 ? POLLOUT : 0), 0};
        CHECK_EQ(poll(&p, 1, 5000), 1);
        if (p.revents & POLLIN) {
            long n = CHECK_OK(read(master, buf, sizeof buf));
            for (long i = 0; i < n; i++) CHECK(buf[i] == (char)((got + i) * 7 >> 2));
            got += n;
        } else {
            int want = SIZE - sent < 500 ? SIZE - sent : 500;
            for (int i = 0; i < want; i++) buf[i] = (sent + i) * 7 >> 2;
            long n = write(master, buf, want);
            if (n > 0) sent += n;
        }
    }
    CHECK_EXIT(pid, 0);
}

CASE(arrow_keys_whole) {
    open_pair();
    raw(1, 0);
    type("\x1b[A");
    CHECK_EQ(ready(slave, POLLIN, 2000), POLLIN);
    usleep(10000);
    CHECK_EQ(read(slave, buf, 10), 3);
    CHECK_EQ(memcmp(buf, "\x1b[A", 3), 0);
}

MAIN
