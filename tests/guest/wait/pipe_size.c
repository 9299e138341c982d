// build: static
// F_SETPIPE_SZ, F_GETPIPE_SZ and packet mode (O_DIRECT).
#include "waits.h"

static char buf[2000000];

static int fill(int fd) {
    int total = 0;
    CHECK_OK(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK));
    for (long n; (n = write(fd, buf, 4096)) > 0;) total += n;
    CHECK_EQ(errno, EAGAIN);
    return total;
}

CASE(sizes_are_rounded) {
    int p[2];
    CHECK_OK(pipe(p));
    CHECK_EQ(fcntl(p[0], F_GETPIPE_SZ), 65536);
    CHECK_EQ(fcntl(p[1], F_GETPIPE_SZ), 65536);
    CHECK_EQ(fcntl(p[1], F_SETPIPE_SZ, 4096), 4096);
    CHECK_EQ(fcntl(p[0], F_GETPIPE_SZ), 4096);
    CHECK_EQ(fill(p[1]), 4096);
    CHECK_EQ(read(p[0], buf, 100000), 4096);
    CHECK_EQ(fcntl(p[1], F_SETPIPE_SZ, 1), 4096);
    CHECK_EQ(fcntl(p[1], F_SETPIPE_SZ, 0), 4096);
    CHECK_EQ(fcntl(p[1], F_SETPIPE_SZ, 4097), 8192);
    CHECK_EQ(fcntl(p[1], F_SETPIPE_SZ, 12289), 16384);
    CHECK_EQ(fcntl(p[0], F_SETPIPE_SZ, 131072), 131072);
    CHECK_EQ(fill(p[1]), 131072);
}

CASE(limits) {
    int p[2];
    CHECK_OK(pipe(p));
    CHECK_EQ(fcntl(p[1], F_SETPIPE_SZ, 1 << 20), 1 << 20);
    CHECK_ERRNO(fcntl(p[1], F_SETPIPE_SZ, 0x80000001u), EINVAL);
    if (capable(CAP_SYS_RESOURCE))
        CHECK_EQ(fcntl(p[1], F_SETPIPE_SZ, 1 << 21), 1 << 21);
    else
        CHECK_ERRNO(fcntl(p[1], F_SETPIPE_SZ, 1 << 21), EPERM);
    int null = CHECK_OK(open("/dev/null", O_RDWR));
    CHECK_ERRNO(fcntl(null, F_GETPIPE_SZ), EBADF);
    CHECK_ERRNO(fcntl(null, F_SETPIPE_SZ, 4096), EBADF);
}

CASE(content_survives_resizing) {
    int p[2];
    CHECK_OK(pipe(p));
    for (int i = 0; i < 20000; i++) buf[i] = i;
    CHECK_EQ(write(p[1], buf, 20000), 20000);
    CHECK_ERRNO(fcntl(p[1], F_SETPIPE_SZ, 4096), EBUSY);
    CHECK_EQ(fcntl(p[1], F_GETPIPE_SZ), 65536);
    CHECK_EQ(fcntl(p[1], F_SETPIPE_SZ, 32768), 32768);
    CHECK_EQ(fcntl(p[1], F_SETPIPE_SZ, 262144), 262144);
    static char got[30000];
    CHECK_EQ(read(p[0], got, sizeof got), 20000);
    CHECK_EQ(memcmp(got, buf, 20000), 0);
}

CASE(growing_wakes_a_writer) {
    int p[2];
    CHECK_OK(pipe(p));
    CHECK_EQ(fcntl(p[1], F_SETPIPE_SZ, 4096), 4096);
    CHECK_EQ(write(p[1], buf, 4096), 4096);
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        CHECK_EQ(write(p[1], buf, 4096), 4096);
        _exit(0);
    }
    usleep(30000);
    CHECK_EQ(fcntl(p[1], F_SETPIPE_SZ, 8192), 8192);
    CHECK_EXIT(pid, 0);
}

CASE(packets) {
    int p[2];
    CHECK_OK(pipe2(p, O_DIRECT | O_NONBLOCK));
    CHECK_EQ(fcntl(p[1], F_GETFL), O_WRONLY | O_DIRECT | O_NONBLOCK);
    CHECK_EQ(fcntl(p[0], F_GETFL), O_RDONLY | O_NONBLOCK);  // the writer's flag makes the packets
    CHECK_EQ(write(p[1], "first", 5), 5);
    CHECK_EQ(write(p[1], "2nd", 3), 3);
    CHECK_EQ(write(p[1], "", 0), 0);  // makes no packet
    CHECK_EQ(write(p[1], "third!", 6), 6);
    CHECK_EQ(read(p[0], buf, 100), 5);  // one packet at a time
    CHECK_EQ(memcmp(buf, "first", 5), 0);
    CHECK_EQ(read(p[0], buf, 1), 1);  // the rest of it is dropped
    CHECK_EQ(buf[0], '2');
    CHECK_EQ(read(p[0], buf, 100), 6);
    CHECK_EQ(memcmp(buf, "third!", 6), 0);
    CHECK_ERRNO(read(p[0], buf, 100), EAGAIN);
}

CASE(large_writes_are_cut_into_packets) {
    int p[2];
    CHECK_OK(pipe2(p, O_DIRECT));
    CHECK_EQ(write(p[1], buf, 4096 * 2 + 10), 4096 * 2 + 10);
    CHECK_EQ(read(p[0], buf, 100000), 4096);
    CHECK_EQ(read(p[0], buf, 100000), 4096);
    CHECK_EQ(read(p[0], buf, 100000), 10);
}

CASE(packets_take_a_slot_each) {
    int p[2], n = 0;
    CHECK_OK(pipe2(p, O_DIRECT | O_NONBLOCK));
    while (write(p[1], "x", 1) == 1) n++;
    CHECK_EQ(n, 16);
    while (read(p[0], buf, 10) == 1) n--;
    CHECK_EQ(n, 0);
    // Without packet mode single bytes share a page.
    CHECK_OK(fcntl(p[1], F_SETFL, O_NONBLOCK));
    for (n = 0; write(p[1], "x", 1) == 1;) n++;
    CHECK_EQ(n, 65536);
}

MAIN
