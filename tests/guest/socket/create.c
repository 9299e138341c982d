// build: static
// socket and socketpair: families, types, flags; what a socket is as a file.
#include "sockets.h"
#include <sys/sendfile.h>
#include <sys/uio.h>

CASE(families_and_types) {
    CHECK_ERRNO(socket(0, SOCK_STREAM, 0), EAFNOSUPPORT);
    CHECK_ERRNO(socket(99, SOCK_STREAM, 0), EAFNOSUPPORT);
    CHECK_ERRNO(socket(-1, SOCK_STREAM, 0), EAFNOSUPPORT);
    CHECK_ERRNO(socket(12 /* DECnet, removed */, SOCK_STREAM, 0), EAFNOSUPPORT);
    CHECK_ERRNO(socket(AF_UNIX, 0, 0), ESOCKTNOSUPPORT);
    CHECK_ERRNO(socket(AF_UNIX, SOCK_RDM, 0), ESOCKTNOSUPPORT);
    CHECK_ERRNO(socket(AF_UNIX, 11, 0), EINVAL);
    CHECK_ERRNO(socket(AF_UNIX, SOCK_STREAM | 0x100000, 0), EINVAL);
    CHECK_ERRNO(socket(AF_UNIX, SOCK_STREAM, 2), EPROTONOSUPPORT);
    CHECK_OK(socket(AF_UNIX, SOCK_STREAM, AF_UNIX));
    CHECK_EQ(option(CHECK_OK(socket(AF_UNIX, SOCK_RAW, 0)), SO_TYPE), SOCK_DGRAM);  // taken as datagram
}

CASE(flags) {
    int fd = sock(SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK);
    CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
    CHECK_EQ(fcntl(fd, F_GETFL), O_RDWR | O_NONBLOCK);
    fd = sock(SOCK_DGRAM);
    CHECK_EQ(fcntl(fd, F_GETFD), 0);
    CHECK_EQ(fcntl(fd, F_GETFL), O_RDWR);
    int s[2];
    CHECK_OK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, s));
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(fcntl(s[i], F_GETFD), FD_CLOEXEC);
        CHECK_EQ(fcntl(s[i], F_GETFL), O_RDWR | O_NONBLOCK);
    }
    CHECK_EQ(s[1], s[0] + 1);
}

CASE(socketpair_errors) {
    int s[2];
    CHECK_ERRNO(socketpair(AF_UNIX, SOCK_STREAM, 0, nowhere), EFAULT);
    CHECK_ERRNO(socketpair(99, SOCK_STREAM, 0, s), EAFNOSUPPORT);
    CHECK_ERRNO(socketpair(AF_UNIX, SOCK_STREAM, 9, s), EPROTONOSUPPORT);
    CHECK_ERRNO(socketpair(AF_UNIX, SOCK_STREAM | 0x100000, 0, s), EINVAL);
    int next = CHECK_OK(dup(0));
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    CHECK_EQ(s[0], next + 1);  // the failures left nothing open
}

CASE(as_a_file) {
    enter();
    int s[2];
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    struct stat st, other;
    CHECK_OK(fstat(s[0], &st));
    CHECK_OK(fstat(s[1], &other));
    CHECK_EQ(st.st_mode, S_IFSOCK | 0777);
    CHECK_EQ(st.st_uid, geteuid());
    CHECK_NE(st.st_ino, other.st_ino);
    char link[64] = {0}, name[64], buf[8];
    snprintf(name, sizeof name, "/proc/self/fd/%d", s[0]);
    CHECK_OK(readlink(name, link, 63));
    char want[64];
    snprintf(want, sizeof want, "socket:[%lu]", (unsigned long)st.st_ino);
    CHECK_STR(link, want);
    CHECK_ERRNO(open(name, O_RDWR), ENXIO);
    CHECK_ERRNO(lseek(s[0], 0, SEEK_CUR), ESPIPE);
    CHECK_ERRNO(pread(s[0], buf, 1, 0), ESPIPE);
    CHECK_ERRNO(pwrite(s[0], "x", 1, 0), ESPIPE);
    CHECK_ERRNO(ftruncate(s[0], 0), EINVAL);
    CHECK_ERRNO(mmap(NULL, 4096, PROT_READ, MAP_SHARED, s[0], 0), ENODEV);
    CHECK_ERRNO(fsync(s[0]), EINVAL);
    CHECK_ERRNO(ioctl(s[0], 0x5401 /* TCGETS */, buf), ENOTTY);
    CHECK_ERRNO(fallocate(s[0], 0, 0, 10), ENODEV);
}

CASE(read_and_write_calls) {
    int s[2];
    char a[4] = {0}, b[8] = {0};
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    CHECK_EQ(write(s[0], "abc", 3), 3);
    struct iovec w[] = {{"de", 2}, {"fgh", 3}}, r[] = {{a, 3}, {b, 8}};
    CHECK_EQ(writev(s[0], w, 2), 5);
    CHECK_EQ(readv(s[1], r, 2), 8);
    CHECK_STR(a, "abc");
    CHECK_STR(b, "defgh");
    int fd = CHECK_OK(memfd_create("m", 0));
    CHECK_EQ(write(fd, "0123456789", 10), 10);
    off_t at = 2;
    CHECK_EQ(sendfile(s[1], fd, &at, 5), 5);
    CHECK_EQ(read(s[0], b, 8), 5);
    CHECK_EQ(memcmp(b, "23456", 5), 0);
    CHECK_EQ(write(s[0], "", 0), 0);
    CHECK_EQ(read(s[1], b, 0), 0);
    CHECK_EQ(recv(s[1], b, 8, MSG_DONTWAIT), -1);  // an empty write sent nothing
}

CASE(calls_on_other_descriptors) {
    int null = CHECK_OK(open("/dev/null", O_RDWR));
    struct name n = path("x");
    char c;
    CHECK_ERRNO(bind(null, NAME(n)), ENOTSOCK);
    CHECK_ERRNO(connect(null, NAME(n)), ENOTSOCK);
    CHECK_ERRNO(listen(null, 1), ENOTSOCK);
    CHECK_ERRNO(accept(null, NULL, NULL), ENOTSOCK);
    CHECK_ERRNO(send(null, "x", 1, 0), ENOTSOCK);
    CHECK_ERRNO(recv(null, &c, 1, 0), ENOTSOCK);
    CHECK_ERRNO(shutdown(null, SHUT_RD), ENOTSOCK);
    CHECK_ERRNO(getsockname(null, (struct sockaddr *)&n.un, &n.len), ENOTSOCK);
    CHECK_ERRNO(getsockopt(null, SOL_SOCKET, SO_TYPE, &c, &n.len), ENOTSOCK);
    CHECK_ERRNO(bind(999, NAME(n)), EBADF);
    CHECK_ERRNO(listen(999, 1), EBADF);
    CHECK_ERRNO(send(999, "x", 1, 0), EBADF);
    CHECK_ERRNO(accept(999, NULL, NULL), EBADF);
    int p = CHECK_OK(open("/dev/null", O_PATH));
    CHECK_ERRNO(listen(p, 1), EBADF);
}

MAIN
