// build: static
// eventfd: counter and semaphore, limits, blocking, readiness.
#include "waits.h"
#include <sys/eventfd.h>

static uint64_t take(int fd) {
    uint64_t v = 0;
    CHECK_EQ(read(fd, &v, 8), 8);
    return v;
}
static long put(int fd, uint64_t v) { return write(fd, &v, 8); }

CASE(counter) {
    int fd = CHECK_OK(eventfd(3, EFD_NONBLOCK));
    CHECK_EQ(take(fd), 3);
    uint64_t v;
    CHECK_ERRNO(read(fd, &v, 8), EAGAIN);
    CHECK_EQ(put(fd, 5), 8);
    CHECK_EQ(put(fd, 7), 8);
    CHECK_EQ(put(fd, 0), 8);
    CHECK_EQ(take(fd), 12);
    CHECK_EQ(put(fd, 0), 8);
    CHECK_ERRNO(read(fd, &v, 8), EAGAIN);
}

CASE(semaphore) {
    int fd = CHECK_OK(eventfd(2, EFD_SEMAPHORE | EFD_NONBLOCK));
    CHECK_EQ(put(fd, 1), 8);
    for (int i = 0; i < 3; i++) CHECK_EQ(take(fd), 1);
    uint64_t v;
    CHECK_ERRNO(read(fd, &v, 8), EAGAIN);
}

CASE(sizes_and_values) {
    int fd = CHECK_OK(eventfd(1, EFD_NONBLOCK));
    char buf[16];
    CHECK_ERRNO(read(fd, buf, 7), EINVAL);
    CHECK_ERRNO(write(fd, buf, 7), EINVAL);
    CHECK_ERRNO(put(fd, UINT64_MAX), EINVAL);
    CHECK_EQ(read(fd, buf, 16), 8);
    CHECK_EQ(put(fd, UINT64_MAX - 1), 8);
    CHECK_ERRNO(put(fd, 1), EAGAIN);
    CHECK_EQ(put(fd, 0), 8);
    CHECK_EQ(take(fd), UINT64_MAX - 1);
    uint64_t two[2] = {4, 9};
    CHECK_ERRNO(write(fd, two, 16), EINVAL);  // since 6.10 exactly eight bytes
    CHECK_ERRNO(write(fd, nowhere, 8), EFAULT);
    CHECK_EQ(put(fd, 6), 8);
    CHECK_ERRNO(read(fd, nowhere, 8), EFAULT);
    CHECK_EQ(lseek(fd, 5, SEEK_SET), 0);  // Linux: noop_llseek
    CHECK_ERRNO(pread(fd, buf, 8, 0), ESPIPE);
}

CASE(flags) {
    int fd = CHECK_OK(eventfd(0, EFD_CLOEXEC));
    CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
    CHECK_EQ(fcntl(fd, F_GETFL), O_RDWR);
    fd = CHECK_OK(eventfd(0, EFD_NONBLOCK));
    CHECK_EQ(fcntl(fd, F_GETFL), O_RDWR | O_NONBLOCK);
    CHECK_ERRNO(eventfd(0, 0x100), EINVAL);
    fd = CHECK_OK(syscall(SYS_eventfd, 9));
    CHECK_EQ(take(fd), 9);
    CHECK_EQ(take(CHECK_OK(eventfd(0xffffffff, 0))), 0xffffffff);
}

CASE(readiness) {
    int fd = CHECK_OK(eventfd(0, 0));
    CHECK_EQ(events_of(fd, POLLIN | POLLOUT), POLLOUT);
    CHECK_EQ(put(fd, 1), 8);
    CHECK_EQ(events_of(fd, POLLIN | POLLOUT), POLLIN | POLLOUT);
    CHECK_EQ(put(fd, UINT64_MAX - 2), 8);
    CHECK_EQ(events_of(fd, POLLIN | POLLOUT), POLLIN);
    CHECK_EQ(take(fd), UINT64_MAX - 1);
    CHECK_EQ(events_of(fd, POLLIN | POLLOUT), POLLOUT);
}

CASE(blocking_read) {
    int fd = CHECK_OK(eventfd(0, 0));
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        usleep(30000);
        CHECK_EQ(put(fd, 42), 8);
        _exit(0);
    }
    CHECK_EQ(take(fd), 42);
    CHECK_EXIT(pid, 0);
}

CASE(blocking_write) {
    int fd = CHECK_OK(eventfd(0, 0));
    CHECK_EQ(put(fd, UINT64_MAX - 1), 8);
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        usleep(30000);
        CHECK_EQ(take(fd), UINT64_MAX - 1);
        _exit(0);
    }
    CHECK_EQ(put(fd, 5), 8);
    CHECK_EXIT(pid, 0);
    CHECK_EQ(take(fd), 5);
}

CASE(interrupted) {
    int fd = CHECK_OK(eventfd(0, 0));
    catch_signal(SIGUSR1);
    pid_t pid = signal_later(SIGUSR1, 30);
    uint64_t v;
    CHECK_ERRNO(read(fd, &v, 8), EINTR);
    CHECK_EXIT(pid, 0);
}

CASE(semaphore_between_processes) {
    int sem = CHECK_OK(eventfd(0, EFD_SEMAPHORE));
    pid_t pids[4];
    for (int i = 0; i < 4; i++) {
        pids[i] = CHECK_OK(fork());
        if (pids[i] == 0) {
            for (int k = 0; k < 50; k++) CHECK_EQ(take(sem), 1);
            _exit(0);
        }
    }
    for (int i = 0; i < 100; i++) CHECK_EQ(put(sem, 2), 8);
    for (int i = 0; i < 4; i++) CHECK_EXIT(pids[i], 0);
    CHECK_EQ(events_of(sem, POLLIN), 0);
}

MAIN
