// build: static
// timerfd: relative, absolute and periodic timers, counts, readiness, arguments.
#include "waits.h"
#include <sys/timerfd.h>

static const struct itimerspec in_20ms = {{0, 0}, {0, 20000000}}, every_5ms = {{0, 5000000}, {0, 5000000}}, never;

static uint64_t take(int fd) {
    uint64_t v = 0;
    CHECK_EQ(read(fd, &v, 8), 8);
    return v;
}

CASE(one_shot) {
    int fd = CHECK_OK(timerfd_create(CLOCK_MONOTONIC, 0));
    long start = now_ms();
    CHECK_OK(timerfd_settime(fd, 0, &in_20ms, NULL));
    CHECK_EQ(events_of(fd, POLLIN), 0);
    CHECK_EQ(take(fd), 1);
    CHECK_GE(now_ms() - start, 19);
    struct itimerspec left;
    CHECK_OK(timerfd_gettime(fd, &left));
    CHECK_EQ(left.it_value.tv_sec | left.it_value.tv_nsec, 0);
    CHECK_EQ(events_of(fd, POLLIN), 0);
}

CASE(periodic) {
    int fd = CHECK_OK(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK));
    CHECK_OK(timerfd_settime(fd, 0, &every_5ms, NULL));
    uint64_t v;
    CHECK_ERRNO(read(fd, &v, 8), EAGAIN);
    long start = now_ms();
    usleep(52000);
    uint64_t n = take(fd);
    CHECK_GE(n, 10);
    CHECK_LE(n, (now_ms() - start) / 5 + 2);
    CHECK(readable_soon(fd));
    CHECK_GE(take(fd), 1);
    struct itimerspec left;
    CHECK_OK(timerfd_gettime(fd, &left));
    CHECK_EQ(left.it_interval.tv_nsec, 5000000);
    CHECK_GT(left.it_value.tv_nsec, 0);
    CHECK_LE(left.it_value.tv_nsec, 5000000);
}

CASE(absolute) {
    clockid_t clocks[] = {CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_BOOTTIME};
    for (int i = 0; i < 3; i++) {
        int fd = CHECK_OK(timerfd_create(clocks[i], 0));
        struct itimerspec at = {{0, 0}, {0, 0}};
        CHECK_OK(clock_gettime(clocks[i], &at.it_value));
        at.it_value.tv_nsec += 20000000;
        if (at.it_value.tv_nsec >= 1000000000) at.it_value.tv_sec++, at.it_value.tv_nsec -= 1000000000;
        CHECK_OK(timerfd_settime(fd, TFD_TIMER_ABSTIME, &at, NULL));
        struct itimerspec left;
        CHECK_OK(timerfd_gettime(fd, &left));  // always told as relative
        CHECK_EQ(left.it_value.tv_sec, 0);
        CHECK_LE(left.it_value.tv_nsec, 20000000);
        CHECK_EQ(take(fd), 1);
        struct timespec now;
        CHECK_OK(clock_gettime(clocks[i], &now));
        CHECK(now.tv_sec > at.it_value.tv_sec || (now.tv_sec == at.it_value.tv_sec && now.tv_nsec >= at.it_value.tv_nsec));
    }
}

CASE(absolute_in_the_past) {
    int fd = CHECK_OK(timerfd_create(CLOCK_MONOTONIC, 0));
    struct itimerspec at = {{0, 0}, {0, 1}};
    CHECK_OK(timerfd_settime(fd, TFD_TIMER_ABSTIME, &at, NULL));
    CHECK(readable_soon(fd));
    CHECK_EQ(take(fd), 1);
    // A period from long ago counts every expiry since.
    struct timespec now;
    CHECK_OK(clock_gettime(CLOCK_MONOTONIC, &now));
    at = (struct itimerspec){{0, 100000000}, {now.tv_sec - 2, now.tv_nsec}};
    if (now.tv_sec > 2) {
        CHECK_OK(timerfd_settime(fd, TFD_TIMER_ABSTIME, &at, NULL));
        CHECK(readable_soon(fd));
        uint64_t n = take(fd);
        CHECK_GE(n, 21);
        CHECK_LE(n, 60);
    }
}

CASE(setting_again) {
    int fd = CHECK_OK(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK));
    struct itimerspec far = {{7, 5}, {1000, 0}}, old;
    CHECK_OK(timerfd_settime(fd, 0, &far, &old));
    CHECK_EQ(old.it_value.tv_sec | old.it_value.tv_nsec | old.it_interval.tv_sec, 0);
    CHECK_OK(timerfd_settime(fd, 0, &in_20ms, &old));
    CHECK_EQ(old.it_interval.tv_sec, 7);
    CHECK_EQ(old.it_interval.tv_nsec, 5);
    CHECK(old.it_value.tv_sec == 999 || old.it_value.tv_sec == 1000);
    CHECK(readable_soon(fd));
    CHECK_OK(timerfd_settime(fd, 0, &far, NULL));  // a new setting forgets expiries not read
    uint64_t v;
    CHECK_ERRNO(read(fd, &v, 8), EAGAIN);
    CHECK_EQ(events_of(fd, POLLIN), 0);
    CHECK_OK(timerfd_settime(fd, 0, &every_5ms, NULL));
    CHECK(readable_soon(fd));
    CHECK_OK(timerfd_settime(fd, 0, &never, &old));
    CHECK_EQ(old.it_interval.tv_nsec, 5000000);
    CHECK_ERRNO(read(fd, &v, 8), EAGAIN);
    CHECK_OK(timerfd_gettime(fd, &old));
    CHECK_EQ(old.it_value.tv_sec | old.it_value.tv_nsec, 0);
    // An interval without a first expiry disarms as well.
    struct itimerspec odd = {{1, 0}, {0, 0}};
    CHECK_OK(timerfd_settime(fd, 0, &odd, NULL));
    CHECK_OK(timerfd_gettime(fd, &old));
    CHECK_EQ(old.it_value.tv_sec | old.it_value.tv_nsec, 0);
}

CASE(arguments) {
    CHECK_ERRNO(timerfd_create(99, 0), EINVAL);
    CHECK_ERRNO(timerfd_create(CLOCK_PROCESS_CPUTIME_ID, 0), EINVAL);
    CHECK_ERRNO(timerfd_create(CLOCK_MONOTONIC_RAW, 0), EINVAL);
    CHECK_ERRNO(timerfd_create(CLOCK_MONOTONIC, 0x100), EINVAL);
    int fd = CHECK_OK(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
    CHECK_EQ(fcntl(fd, F_GETFL), O_RDWR | O_NONBLOCK);
    struct itimerspec bad = {{0, 0}, {0, 1000000000}}, neg = {{0, 0}, {-1, 0}}, badi = {{0, -1}, {1, 0}};
    CHECK_ERRNO(timerfd_settime(fd, 0, &bad, NULL), EINVAL);
    CHECK_ERRNO(timerfd_settime(fd, 0, &neg, NULL), EINVAL);
    CHECK_ERRNO(timerfd_settime(fd, 0, &badi, NULL), EINVAL);
    CHECK_ERRNO(timerfd_settime(fd, 8, &in_20ms, NULL), EINVAL);
    CHECK_ERRNO(timerfd_settime(fd, 0, nowhere, NULL), EFAULT);
    CHECK_ERRNO(timerfd_gettime(fd, nowhere), EFAULT);
    CHECK_ERRNO(timerfd_settime(999, 0, &in_20ms, NULL), EBADF);
    CHECK_ERRNO(timerfd_gettime(999, &bad), EBADF);
    int null = CHECK_OK(open("/dev/null", O_RDWR));
    CHECK_ERRNO(timerfd_settime(null, 0, &in_20ms, NULL), EINVAL);
    CHECK_ERRNO(timerfd_gettime(null, &bad), EINVAL);
    char buf[16];
    CHECK_ERRNO(read(fd, buf, 7), EINVAL);
    CHECK_ERRNO(write(fd, buf, 8), EINVAL);
    CHECK_EQ(lseek(fd, 5, SEEK_SET), 0);  // Linux: noop_llseek
    int real = CHECK_OK(timerfd_create(CLOCK_REALTIME, 0));
    struct itimerspec at = {{0, 0}, {4000000000, 0}};
    CHECK_OK(timerfd_settime(real, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &at, NULL));
    CHECK_EQ(events_of(real, POLLIN), 0);
}

CASE(shared_by_fork) {
    int fd = CHECK_OK(timerfd_create(CLOCK_MONOTONIC, 0));
    IN_CHILD({ CHECK_OK(timerfd_settime(fd, 0, &in_20ms, NULL)); });
    CHECK_EQ(take(fd), 1);
}

CASE(wakes_blocked_and_polling) {
    int fd = CHECK_OK(timerfd_create(CLOCK_MONOTONIC, 0)), other = CHECK_OK(timerfd_create(CLOCK_MONOTONIC, 0));
    struct itimerspec later = {{0, 0}, {5, 0}};
    CHECK_OK(timerfd_settime(fd, 0, &in_20ms, NULL));
    CHECK_OK(timerfd_settime(other, 0, &later, NULL));
    struct pollfd p[2] = {{other, POLLIN, 0}, {fd, POLLIN, 0}};
    CHECK_EQ(poll(p, 2, 3000), 1);
    CHECK_EQ(p[0].revents, 0);
    CHECK_EQ(p[1].revents, POLLIN);
    CHECK_EQ(take(fd), 1);
    // Armed by another while a reader is blocked.
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        usleep(20000);
        CHECK_OK(timerfd_settime(fd, 0, &in_20ms, NULL));
        _exit(0);
    }
    CHECK_EQ(take(fd), 1);
    CHECK_EXIT(pid, 0);
}

CASE(interrupted) {
    int fd = CHECK_OK(timerfd_create(CLOCK_MONOTONIC, 0));
    catch_signal(SIGUSR1);
    pid_t pid = signal_later(SIGUSR1, 20);
    uint64_t v;
    CHECK_ERRNO(read(fd, &v, 8), EINTR);
    CHECK_EXIT(pid, 0);
}

MAIN
