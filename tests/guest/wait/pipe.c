// build: static
// Pipes: order, end of file, EPIPE and SIGPIPE, non-blocking ends, atomicity, blocking and interruption.
#include "waits.h"
#include <sys/ioctl.h>
#include <sys/uio.h>

static char buf[200000];

CASE(bytes_in_order) {
    int p[2];
    CHECK_OK(pipe(p));
    CHECK_EQ(write(p[1], "abc", 3), 3);
    CHECK_EQ(write(p[1], "defg", 4), 4);
    CHECK_EQ(read(p[0], buf, 2), 2);
    CHECK_EQ(memcmp(buf, "ab", 2), 0);
    CHECK_EQ(read(p[0], buf, 100), 5);
    CHECK_EQ(memcmp(buf, "cdefg", 5), 0);
    int n = -1;
    CHECK_OK(ioctl(p[0], FIONREAD, &n));
    CHECK_EQ(n, 0);
    CHECK_EQ(write(p[1], buf, 1000), 1000);
    CHECK_OK(ioctl(p[0], FIONREAD, &n));
    CHECK_EQ(n, 1000);
}

CASE(creation) {
    int p[2] = {-7, -7};
    CHECK_OK(pipe2(p, O_CLOEXEC | O_NONBLOCK));
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(fcntl(p[i], F_GETFD), FD_CLOEXEC);
        CHECK_EQ(fcntl(p[i], F_GETFL), (i ? O_WRONLY : O_RDONLY) | O_NONBLOCK);
    }
    int q[2] = {-7, -7};
    CHECK_ERRNO(pipe2(q, O_APPEND), EINVAL);
    CHECK_ERRNO(pipe2(q, 0x40000000), EINVAL);
    CHECK_EQ(q[0], -7);
    CHECK_ERRNO(pipe(nowhere), EFAULT);
    CHECK_EQ(dup(p[0]), p[1] + 1);  // nothing was left open by the failures
    char c;
    CHECK_ERRNO(write(p[0], "x", 1), EBADF);
    CHECK_ERRNO(read(p[1], &c, 1), EBADF);
    struct stat a, b;
    CHECK_OK(fstat(p[0], &a));
    CHECK_OK(fstat(p[1], &b));
    CHECK_EQ(a.st_mode, S_IFIFO | 0600);
    CHECK_EQ(a.st_ino, b.st_ino);
    CHECK_EQ(a.st_uid, geteuid());
    CHECK_EQ(a.st_size, 0);
    CHECK_EQ(a.st_nlink, 1);
}

CASE(end_of_file) {
    int p[2];
    CHECK_OK(pipe(p));
    int second = CHECK_OK(dup(p[1]));
    CHECK_EQ(write(p[1], "rest", 4), 4);
    CHECK_OK(close(p[1]));
    CHECK_EQ(events_of(p[0], POLLIN), POLLIN);
    CHECK_OK(close(second));
    CHECK_EQ(events_of(p[0], POLLIN), POLLIN | POLLHUP);
    CHECK_EQ(read(p[0], buf, 100), 4);
    CHECK_EQ(read(p[0], buf, 100), 0);
    CHECK_EQ(read(p[0], buf, 100), 0);
    CHECK_EQ(events_of(p[0], POLLIN), POLLHUP);
}

CASE(no_reader) {
    int p[2];
    CHECK_OK(pipe(p));
    CHECK_OK(close(p[0]));
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        signal(SIGPIPE, SIG_DFL);
        if (write(p[1], "x", 1) != 1) _exit(1);
        _exit(0);
    }
    CHECK_KILLED(pid, SIGPIPE);
    signal(SIGPIPE, SIG_IGN);
    CHECK_ERRNO(write(p[1], "x", 1), EPIPE);
    CHECK_EQ(write(p[1], "", 0), 0);
    signal(SIGPIPE, on_signal);
    CHECK_ERRNO(write(p[1], "x", 1), EPIPE);
    CHECK_EQ(caught, SIGPIPE);
    CHECK_EQ(events_of(p[1], POLLOUT), POLLOUT | POLLERR);
    CHECK_EQ(events_of(p[1], 0), POLLERR);
}

CASE(nonblocking) {
    int p[2];
    CHECK_OK(pipe2(p, O_NONBLOCK));
    CHECK_ERRNO(read(p[0], buf, 1), EAGAIN);
    CHECK_EQ(read(p[0], buf, 0), 0);
    CHECK_EQ(write(p[1], buf, 100000), 65536);  // more than PIPE_BUF: as much as fits
    CHECK_ERRNO(write(p[1], buf, 100000), EAGAIN);
    CHECK_ERRNO(write(p[1], buf, 1), EAGAIN);
    CHECK_EQ(events_of(p[1], POLLOUT), 0);
    CHECK_EQ(read(p[0], buf, 4096), 4096);
    CHECK_EQ(events_of(p[1], POLLOUT), POLLOUT);
    CHECK_EQ(write(p[1], buf, 8192), 4096);
    CHECK_EQ(read(p[0], buf, sizeof buf), 65536);
    CHECK_ERRNO(read(p[0], buf, 1), EAGAIN);
}

CASE(small_writes_are_whole_or_not_at_all) {
    int p[2];
    CHECK_OK(pipe2(p, O_NONBLOCK));
    int total = 0;
    while (write(p[1], buf, 3000) == 3000) total += 3000;
    CHECK_EQ(errno, EAGAIN);
    CHECK_GT(total, 30000);
    CHECK_LE(total, 65536);
    CHECK_EQ(read(p[0], buf, sizeof buf), total);
    CHECK_EQ(write(p[1], buf, 4096), 4096);
}

CASE(writers_do_not_mix) {
    int p[2];
    CHECK_OK(pipe(p));
    pid_t pids[3];
    for (int k = 0; k < 3; k++) {
        pids[k] = CHECK_OK(fork());
        if (pids[k] == 0) {
            memset(buf, 'a' + k, 4096);
            for (int i = 0; i < 60; i++) CHECK_EQ(write(p[1], buf, 4096), 4096);
            _exit(0);
        }
    }
    CHECK_OK(close(p[1]));
    for (int i = 0; i < 180; i++) {
        size_t have = 0;
        while (have < 4096) {
            long n = CHECK_OK(read(p[0], buf + have, 4096 - have));
            CHECK_GT(n, 0);
            have += n;
        }
        for (int k = 1; k < 4096; k++) CHECK(buf[k] == buf[0]);
    }
    CHECK_EQ(read(p[0], buf, 1), 0);
    for (int k = 0; k < 3; k++) CHECK_EXIT(pids[k], 0);
}

CASE(blocking_read_and_write) {
    int p[2], q[2];
    CHECK_OK(pipe(p));
    CHECK_OK(pipe(q));
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        for (int i = 0; i < 1000; i++) {
            char c;
            CHECK_EQ(read(p[0], &c, 1), 1);
            CHECK_EQ(write(q[1], &c, 1), 1);
        }
        _exit(0);
    }
    for (int i = 0; i < 1000; i++) {
        char c = i, d;
        CHECK_EQ(write(p[1], &c, 1), 1);
        CHECK_EQ(read(q[0], &d, 1), 1);
        CHECK_EQ(c, d);
    }
    CHECK_EXIT(pid, 0);
}

CASE(large_transfer) {
    int p[2];
    CHECK_OK(pipe(p));
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        for (size_t i = 0; i < sizeof buf; i++) buf[i] = i * 7 + (i >> 8);
        CHECK_EQ(write(p[1], buf, sizeof buf), sizeof buf);  // a blocking write ends when all is written
        _exit(0);
    }
    CHECK_OK(close(p[1]));
    static char got[1000];
    size_t at = 0;
    for (long n; (n = CHECK_OK(read(p[0], got, sizeof got))) > 0;)
        for (long i = 0; i < n; i++, at++) CHECK(got[i] == (char)(at * 7 + (at >> 8)));
    CHECK_EQ(at, sizeof buf);
    CHECK_EXIT(pid, 0);
}

CASE(interrupted_reading) {
    int p[2];
    CHECK_OK(pipe(p));
    catch_signal(SIGUSR1);
    pid_t pid = signal_later(SIGUSR1, 30);
    CHECK_ERRNO(read(p[0], buf, 1), EINTR);
    CHECK_EXIT(pid, 0);
    // With SA_RESTART the read goes on.
    struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    CHECK_OK(sigaction(SIGUSR1, &act, NULL));
    caught = 0;
    pid_t parent = getpid();
    pid = CHECK_OK(fork());
    if (pid == 0) {
        usleep(20000);
        kill(parent, SIGUSR1);
        usleep(20000);
        CHECK_EQ(write(p[1], "x", 1), 1);
        _exit(0);
    }
    CHECK_EQ(read(p[0], buf, 1), 1);
    CHECK_EQ(caught, SIGUSR1);
    CHECK_EXIT(pid, 0);
}

CASE(interrupted_writing) {
    int p[2];
    CHECK_OK(pipe(p));
    catch_signal(SIGUSR1);
    pid_t pid = signal_later(SIGUSR1, 30);
    CHECK_EQ(write(p[1], buf, 100000), 65536);  // what was written counts
    CHECK_EXIT(pid, 0);
    pid = signal_later(SIGUSR1, 30);
    CHECK_ERRNO(write(p[1], buf, 1), EINTR);
    CHECK_EXIT(pid, 0);
}

CASE(reader_leaves_a_blocked_writer) {
    int p[2];
    CHECK_OK(pipe(p));
    signal(SIGPIPE, SIG_IGN);
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        CHECK_OK(close(p[1]));
        usleep(30000);
        _exit(0);
    }
    CHECK_OK(close(p[0]));
    CHECK_EQ(write(p[1], buf, 100000), 65536);
    CHECK_ERRNO(write(p[1], buf, 1), EPIPE);
    CHECK_EXIT(pid, 0);
}

CASE(vectors_and_faults) {
    int p[2];
    CHECK_OK(pipe2(p, O_NONBLOCK));
    struct iovec w[] = {{"ab", 2}, {"", 0}, {"cde", 3}};
    CHECK_EQ(writev(p[1], w, 3), 5);
    char a[3], b[8];
    struct iovec r[] = {{a, 3}, {b, 8}};
    CHECK_EQ(readv(p[0], r, 2), 5);
    CHECK_EQ(memcmp(a, "abc", 3) | memcmp(b, "de", 2), 0);
    CHECK_ERRNO(write(p[1], nowhere, 10), EFAULT);
    CHECK_ERRNO(read(p[0], buf, 1), EAGAIN);  // the failed write left nothing
    CHECK_EQ(write(p[1], "data", 4), 4);
    CHECK_ERRNO(read(p[0], nowhere, 10), EFAULT);
    CHECK_EQ(read(p[0], buf, 10), 4);  // and the failed read took nothing
    CHECK_EQ(memcmp(buf, "data", 4), 0);
}

CASE(reopened_through_proc) {
    int p[2];
    char path[40];
    CHECK_OK(pipe(p));
    snprintf(path, sizeof path, "/proc/self/fd/%d", p[0]);
    int w = CHECK_OK(open(path, O_WRONLY)), r = CHECK_OK(open(path, O_RDONLY | O_NONBLOCK));
    CHECK_EQ(write(w, "x", 1), 1);
    CHECK_EQ(read(p[0], buf, 1), 1);
    CHECK_ERRNO(read(r, buf, 1), EAGAIN);
    CHECK_EQ(fcntl(p[0], F_GETFL) & O_NONBLOCK, 0);
    CHECK_OK(close(p[1]));
    CHECK_EQ(events_of(p[0], POLLIN), 0);  // w is a writer too
    CHECK_OK(close(w));
    CHECK_EQ(events_of(p[0], POLLIN), POLLHUP);
}

MAIN
