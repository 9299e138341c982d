// build: static
// Open file description locks: owned by the description, so between two opens of one process as well.
#include "tree.h"

static int lock(int fd, int cmd, short type, off_t start, off_t len) {
    struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = len};
    return fcntl(fd, cmd, &l);
}

CASE(conflict_within_a_process) {
    enter();
    int a = make("f", ""), b = CHECK_OK(open("f", O_RDWR));
    CHECK_OK(lock(a, F_OFD_SETLK, F_WRLCK, 0, 10));
    CHECK_ERRNO(lock(b, F_OFD_SETLK, F_RDLCK, 9, 1), EAGAIN);
    CHECK_OK(lock(b, F_OFD_SETLK, F_WRLCK, 10, 0));
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 5};
    CHECK_OK(fcntl(b, F_OFD_GETLK, &l));
    CHECK_EQ(l.l_type, F_WRLCK);
    CHECK_EQ(l.l_start, 0);
    CHECK_EQ(l.l_len, 10);
    CHECK_EQ(l.l_pid, -1);
    CHECK_OK(lock(a, F_OFD_SETLK, F_UNLCK, 0, 0));
    CHECK_OK(lock(b, F_OFD_SETLK, F_RDLCK, 9, 1));
}

CASE(pid_must_be_zero) {
    enter();
    int fd = make("f", "");
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_pid = 1};
    CHECK_ERRNO(fcntl(fd, F_OFD_SETLK, &l), EINVAL);
    CHECK_ERRNO(fcntl(fd, F_OFD_SETLKW, &l), EINVAL);
    CHECK_ERRNO(fcntl(fd, F_OFD_GETLK, &l), EINVAL);
    CHECK_ERRNO(lock(CHECK_OK(open("f", O_RDONLY)), F_OFD_SETLK, F_WRLCK, 0, 1), EBADF);
}

CASE(other_close_does_not_release) {
    enter();
    int a = make("f", ""), b = CHECK_OK(open("f", O_RDWR));
    CHECK_OK(lock(a, F_OFD_SETLK, F_WRLCK, 0, 0));
    CHECK_OK(close(CHECK_OK(open("f", O_RDONLY))));
    CHECK_ERRNO(lock(b, F_OFD_SETLK, F_RDLCK, 0, 0), EAGAIN);
    int copy = CHECK_OK(dup(a));
    CHECK_OK(close(a));
    CHECK_ERRNO(lock(b, F_OFD_SETLK, F_RDLCK, 0, 0), EAGAIN);
    CHECK_OK(close(copy));
    CHECK_OK(lock(b, F_OFD_SETLK, F_WRLCK, 0, 0));
}

CASE(inherited_by_fork) {
    enter();
    int a = make("f", "");
    CHECK_OK(lock(a, F_OFD_SETLK, F_WRLCK, 0, 10));
    IN_CHILD({
        CHECK_OK(lock(a, F_OFD_SETLK, F_WRLCK, 0, 10));  // the same owner
        int own = CHECK_OK(open("f", O_RDWR));
        CHECK_ERRNO(lock(own, F_OFD_SETLK, F_RDLCK, 0, 1), EAGAIN);
        CHECK_OK(lock(a, F_OFD_SETLK, F_UNLCK, 5, 5));
        CHECK_OK(lock(own, F_OFD_SETLK, F_RDLCK, 5, 5));
    });
    int b = CHECK_OK(open("f", O_RDWR));
    CHECK_OK(lock(b, F_OFD_SETLK, F_WRLCK, 5, 5));
    CHECK_ERRNO(lock(b, F_OFD_SETLK, F_WRLCK, 4, 1), EAGAIN);
}

CASE(against_posix_locks) {
    enter();
    int a = make("f", ""), b = CHECK_OK(open("f", O_RDWR));
    CHECK_OK(lock(a, F_SETLK, F_WRLCK, 0, 10));
    // Another kind of owner, even in the same process.
    CHECK_ERRNO(lock(b, F_OFD_SETLK, F_WRLCK, 0, 1), EAGAIN);
    CHECK_ERRNO(lock(a, F_OFD_SETLK, F_WRLCK, 0, 1), EAGAIN);
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    CHECK_OK(fcntl(b, F_OFD_GETLK, &l));
    CHECK_EQ(l.l_pid, getpid());
    CHECK_OK(lock(b, F_OFD_SETLK, F_WRLCK, 20, 5));
    CHECK_ERRNO(lock(a, F_SETLK, F_RDLCK, 22, 1), EAGAIN);
    l = (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 20};
    CHECK_OK(fcntl(a, F_GETLK, &l));
    CHECK_EQ(l.l_pid, -1);
}

CASE(blocking_wait) {
    enter();
    int a = make("f", ""), pipes[2];
    CHECK_OK(pipe(pipes));
    CHECK_OK(lock(a, F_OFD_SETLK, F_WRLCK, 0, 0));
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        int b = CHECK_OK(open("f", O_RDWR));
        CHECK_EQ(write(pipes[1], "1", 1), 1);
        CHECK_OK(lock(b, F_OFD_SETLKW, F_RDLCK, 5, 5));
        CHECK_EQ(write(pipes[1], "2", 1), 1);
        _exit(0);
    }
    char c;
    CHECK_EQ(read(pipes[0], &c, 1), 1);
    struct pollfd p = {pipes[0], POLLIN, 0};
    CHECK_EQ(poll(&p, 1, 40), 0);
    CHECK_OK(lock(a, F_OFD_SETLK, F_UNLCK, 0, 5));
    CHECK_EQ(poll(&p, 1, 40), 0);  // the wanted part is still held
    CHECK_OK(lock(a, F_OFD_SETLK, F_UNLCK, 0, 0));
    CHECK_EQ(read(pipes[0], &c, 1), 1);
    CHECK_EQ(c, '2');
    CHECK_EXIT(pid, 0);
}

MAIN
