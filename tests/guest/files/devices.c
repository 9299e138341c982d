// build: static
// The memory devices, generic ioctls, and what each kind of descriptor refuses.
#include "tree.h"
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/sysmacros.h>
#include <termios.h>

static char buf[65536];

CASE(null) {
    int fd = CHECK_OK(open("/dev/null", O_RDWR));
    CHECK_EQ(read(fd, buf, 10), 0);
    CHECK_EQ(write(fd, buf, sizeof buf), sizeof buf);
    CHECK_EQ(write(fd, nowhere, 10), 10);  // the data is not looked at
    CHECK_EQ(pread(fd, buf, 10, 5), 0);
    CHECK_EQ(pwrite(fd, buf, 10, 5), 10);
    CHECK_OK(open("/dev/null", O_WRONLY | O_CREAT | O_TRUNC, 0644));  // as every shell does
    CHECK_OK(open("/dev/null", O_WRONLY | O_APPEND));
    struct pollfd p = {fd, POLLIN | POLLOUT, 0};
    CHECK_EQ(poll(&p, 1, 0), 1);
    CHECK_EQ(p.revents, POLLIN | POLLOUT);
    CHECK_ERRNO(ioctl(fd, TCGETS, buf), ENOTTY);
    CHECK_ERRNO(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0), ENODEV);
}

CASE(zero) {
    int fd = CHECK_OK(open("/dev/zero", O_RDWR));
    memset(buf, 1, sizeof buf);
    CHECK_EQ(read(fd, buf, 50000), 50000);
    for (int i = 0; i < 50000; i++) CHECK(buf[i] == 0);
    CHECK_EQ(buf[50000], 1);
    CHECK_EQ(write(fd, "x", 1), 1);
    CHECK_EQ(lseek(fd, 1000, SEEK_SET), 0);
    CHECK_ERRNO(read(fd, nowhere, 10), EFAULT);
    char *a = CHECK_MAP(mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0));
    CHECK_EQ(a[8191], 0);
    a[0] = 5;
    char *b = CHECK_MAP(mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    CHECK_EQ(b[0], 0);
    IN_CHILD({ b[100] = 7; });
    CHECK_EQ(b[100], 7);  // a shared mapping of zero is shared with children
}

CASE(full) {
    int fd = CHECK_OK(open("/dev/full", O_RDWR));
    CHECK_ERRNO(write(fd, "x", 1), ENOSPC);
    memset(buf, 1, 100);
    CHECK_EQ(read(fd, buf, 100), 100);
    CHECK_EQ(buf[0] | buf[99], 0);
}

CASE(random_devices) {
    const char *names[] = {"/dev/random", "/dev/urandom"};
    for (int i = 0; i < 2; i++) {
        int fd = CHECK_OK(open(names[i], O_RDONLY));
        unsigned char a[64] = {0}, b[64] = {0};
        CHECK_EQ(read(fd, a, 64), 64);
        CHECK_EQ(read(fd, b, 64), 64);
        CHECK_NE(memcmp(a, b, 64), 0);
        CHECK_EQ(read(fd, buf, 5000), 5000);
        int counts[256] = {0}, different = 0;
        for (int k = 0; k < 5000; k++) counts[(unsigned char)buf[k]]++;
        for (int k = 0; k < 256; k++) different += counts[k] > 0;
        CHECK_GT(different, 240);
        struct pollfd p = {fd, POLLIN, 0};
        CHECK_EQ(poll(&p, 1, 0), 1);
    }
    int fd = CHECK_OK(open("/dev/urandom", O_WRONLY));
    CHECK_EQ(write(fd, "seed", 4), 4);
}

CASE(getrandom_call) {
    unsigned char a[300] = {0}, b[300] = {0};
    CHECK_EQ(getrandom(a, 256, 0), 256);
    CHECK_EQ(getrandom(b, 256, GRND_NONBLOCK), 256);
    CHECK_NE(memcmp(a, b, 256), 0);
    CHECK_EQ(getrandom(a, 16, GRND_RANDOM), 16);
    CHECK_EQ(getrandom(a, 16, 4 /* GRND_INSECURE */), 16);
    CHECK_EQ(getrandom(a, 0, 0), 0);
    CHECK_ERRNO(getrandom(a, 16, 8), EINVAL);
    CHECK_ERRNO(getrandom(a, 16, 4 | GRND_RANDOM), EINVAL);
    CHECK_ERRNO(getrandom(nowhere, 16, 0), EFAULT);
}

CASE(tty_without_a_terminal) {
    IN_CHILD({  // the child leads no group, so it may leave the session and its terminal
        CHECK_OK(setsid());
        CHECK_ERRNO(open("/dev/tty", O_RDWR), ENXIO);
        CHECK_OK(open("/dev/tty", O_PATH));
    });
}

CASE(standard_links) {
    CHECK_EQ(readlink("/dev/fd", buf, sizeof buf), 13);
    CHECK_EQ(memcmp(buf, "/proc/self/fd", 13), 0);
    CHECK_EQ(readlink("/dev/stdin", buf, sizeof buf), 15);
    CHECK_EQ(readlink("/dev/stderr", buf, sizeof buf), 15);
    int pipes[2];
    CHECK_OK(pipe(pipes));
    CHECK_OK(dup2(pipes[0], 0));
    CHECK_EQ(write(pipes[1], "hello", 5), 5);
    int in = CHECK_OK(open("/dev/stdin", O_RDONLY));
    CHECK_EQ(read(in, buf, 10), 5);
    char name[32];
    snprintf(name, sizeof name, "/dev/fd/%d", pipes[1]);
    int out = CHECK_OK(open(name, O_WRONLY));
    CHECK_EQ(write(out, "x", 1), 1);
    CHECK_EQ(read(0, buf, 10), 1);
}

CASE(fionread_fionbio_fioclex) {
    enter();
    int fd = make("f", "0123456789"), pipes[2], n = -1, on = 1, off = 0;
    CHECK_OK(pipe(pipes));
    CHECK_OK(lseek(fd, 3, SEEK_SET));
    CHECK_OK(ioctl(fd, FIONREAD, &n));
    CHECK_EQ(n, 7);
    CHECK_EQ(write(pipes[1], "abc", 3), 3);
    CHECK_OK(ioctl(pipes[0], FIONREAD, &n));
    CHECK_EQ(n, 3);
    CHECK_OK(ioctl(pipes[1], FIONREAD, &n));
    CHECK_EQ(n, 3);
    CHECK_ERRNO(ioctl(pipes[0], FIONREAD, nowhere), EFAULT);
    CHECK_OK(ioctl(pipes[0], FIONBIO, &on));
    CHECK_EQ(fcntl(pipes[0], F_GETFL) & O_NONBLOCK, O_NONBLOCK);
    CHECK_OK(ioctl(pipes[0], FIONBIO, &off));
    CHECK_EQ(fcntl(pipes[0], F_GETFL) & O_NONBLOCK, 0);
    CHECK_OK(ioctl(fd, FIONBIO, &on));
    CHECK_ERRNO(ioctl(fd, FIONBIO, nowhere), EFAULT);
    CHECK_OK(ioctl(fd, FIOCLEX));
    CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
    CHECK_OK(ioctl(fd, FIONCLEX));
    CHECK_EQ(fcntl(fd, F_GETFD), 0);
    CHECK_OK(ioctl(CHECK_OK(open("/", O_RDONLY)), FIOCLEX));
}

CASE(ioctl_refusals) {
    enter();
    int fd = make("f", ""), pipes[2], d = CHECK_OK(open(".", O_RDONLY));
    CHECK_OK(pipe(pipes));
    CHECK_ERRNO(ioctl(fd, TCGETS, buf), ENOTTY);
    CHECK_ERRNO(ioctl(fd, TIOCGWINSZ, buf), ENOTTY);
    CHECK_ERRNO(ioctl(d, TCGETS, buf), ENOTTY);
    CHECK_ERRNO(ioctl(pipes[0], TCGETS, buf), ENOTTY);
    CHECK_ERRNO(ioctl(fd, 0xdeadbeef, buf), ENOTTY);
    CHECK_ERRNO(ioctl(999, TCGETS, buf), EBADF);
    CHECK_ERRNO(ioctl(999, FIOCLEX), EBADF);
    CHECK_ERRNO(ioctl(d, FIONREAD, buf), ENOTTY);
    CHECK_EQ(isatty(fd), 0);
}

CASE(permissions_of_devices) {
    be_user();
    const char *names[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"};
    for (int i = 0; i < 5; i++) CHECK_OK(open(names[i], O_RDWR));
    CHECK_ERRNO(open("/dev/new", O_CREAT | O_RDWR, 0644), EACCES);
    CHECK_ERRNO(unlink("/dev/null"), EACCES);
    CHECK_ERRNO(open("/dev/mem", O_RDONLY), access("/dev/mem", F_OK) ? ENOENT : EACCES);
}

MAIN
