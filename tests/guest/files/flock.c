// build: static
// flock: locks of a description: conflicts, conversion, release, inheritance, blocking and interruption.
#include "tree.h"
#include <sys/file.h>

CASE(conflicts_between_descriptions) {
    enter();
    int a = make("f", ""), b = CHECK_OK(open("f", O_RDONLY)), c = CHECK_OK(open("f", O_RDONLY));
    CHECK_OK(flock(a, LOCK_SH));
    CHECK_OK(flock(b, LOCK_SH | LOCK_NB));
    CHECK_ERRNO(flock(c, LOCK_EX | LOCK_NB), EAGAIN);
    CHECK_OK(flock(a, LOCK_UN));
    CHECK_OK(flock(b, LOCK_UN));
    CHECK_OK(flock(c, LOCK_EX | LOCK_NB));  // a read-only descriptor may lock exclusively
    CHECK_ERRNO(flock(a, LOCK_SH | LOCK_NB), EAGAIN);
    CHECK_OK(flock(c, LOCK_EX | LOCK_NB));  // again: no effect
    CHECK_OK(flock(a, LOCK_UN));            // nothing held: no error
    CHECK_ERRNO(flock(b, LOCK_SH | LOCK_NB), EAGAIN);
}

CASE(conversion) {
    enter();
    int a = make("f", ""), b = CHECK_OK(open("f", O_RDONLY));
    CHECK_OK(flock(a, LOCK_SH));
    CHECK_OK(flock(a, LOCK_EX | LOCK_NB));
    CHECK_OK(flock(a, LOCK_SH | LOCK_NB));
    CHECK_OK(flock(b, LOCK_SH | LOCK_NB));
    // Conversion is not atomic: the failed upgrade has given the old lock up.
    CHECK_ERRNO(flock(a, LOCK_EX | LOCK_NB), EAGAIN);
    CHECK_OK(flock(b, LOCK_EX | LOCK_NB));
}

CASE(dup_and_fork_share) {
    enter();
    int a = make("f", ""), other = CHECK_OK(open("f", O_RDONLY)), copy = CHECK_OK(dup(a));
    CHECK_OK(flock(a, LOCK_EX));
    CHECK_OK(flock(copy, LOCK_EX | LOCK_NB));
    CHECK_OK(close(a));
    CHECK_ERRNO(flock(other, LOCK_EX | LOCK_NB), EAGAIN);  // the copy holds it still
    IN_CHILD({
        CHECK_OK(flock(copy, LOCK_EX | LOCK_NB));
        CHECK_ERRNO(flock(other, LOCK_SH | LOCK_NB), EAGAIN);
    });
    CHECK_ERRNO(flock(other, LOCK_EX | LOCK_NB), EAGAIN);  // the child's end changed nothing
    IN_CHILD({ CHECK_OK(flock(copy, LOCK_UN)); });         // but its unlock does
    CHECK_OK(flock(other, LOCK_EX | LOCK_NB));
}

CASE(last_close_releases) {
    enter();
    int a = make("f", ""), other = CHECK_OK(open("f", O_RDONLY));
    CHECK_OK(flock(a, LOCK_EX));
    int ready[2];
    CHECK_OK(pipe(ready));
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        char c;
        CHECK_EQ(read(ready[0], &c, 1), 1);
        _exit(0);
    }
    CHECK_OK(close(a));
    CHECK_ERRNO(flock(other, LOCK_EX | LOCK_NB), EAGAIN);
    CHECK_EQ(write(ready[1], "x", 1), 1);
    CHECK_EXIT(pid, 0);
    CHECK_OK(flock(other, LOCK_EX | LOCK_NB));
}

CASE(blocks_until_released) {
    enter();
    int a = make("f", ""), pipes[2];
    CHECK_OK(pipe(pipes));
    CHECK_OK(flock(a, LOCK_EX));
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        int b = CHECK_OK(open("f", O_RDONLY));
        CHECK_EQ(write(pipes[1], "1", 1), 1);
        CHECK_OK(flock(b, LOCK_EX));
        CHECK_EQ(write(pipes[1], "2", 1), 1);
        _exit(0);
    }
    char c;
    CHECK_EQ(read(pipes[0], &c, 1), 1);
    struct pollfd p = {pipes[0], POLLIN, 0};
    CHECK_EQ(poll(&p, 1, 50), 0);
    CHECK_OK(flock(a, LOCK_UN));
    CHECK_EQ(read(pipes[0], &c, 1), 1);
    CHECK_EQ(c, '2');
    CHECK_EXIT(pid, 0);
    CHECK_OK(flock(a, LOCK_EX | LOCK_NB));
}

static void on_alarm(int sig) { (void)sig; }

CASE(interrupted) {
    enter();
    int a = make("f", ""), b = CHECK_OK(open("f", O_RDONLY));
    CHECK_OK(flock(a, LOCK_EX));
    struct sigaction act = {.sa_handler = on_alarm};
    CHECK_OK(sigaction(SIGALRM, &act, NULL));
    ualarm(30000, 0);
    CHECK_ERRNO(flock(b, LOCK_EX), EINTR);
    CHECK_OK(flock(a, LOCK_UN));
    CHECK_OK(flock(b, LOCK_EX | LOCK_NB));  // the interrupted request left nothing behind
}

CASE(killed_waiter_and_holder) {
    enter();
    int fd = make("f", ""), pipes[2];
    CHECK_OK(pipe(pipes));
    pid_t holder = CHECK_OK(fork());
    if (holder == 0) {
        int own = CHECK_OK(open("f", O_RDONLY));
        CHECK_OK(flock(own, LOCK_EX));
        CHECK_EQ(write(pipes[1], "x", 1), 1);
        pause();
    }
    char c;
    CHECK_EQ(read(pipes[0], &c, 1), 1);
    CHECK_ERRNO(flock(fd, LOCK_SH | LOCK_NB), EAGAIN);
    CHECK_OK(kill(holder, SIGKILL));
    CHECK_OK(flock(fd, LOCK_EX));  // death releases
    CHECK_KILLED(holder, SIGKILL);
}

CASE(arguments) {
    enter();
    int fd = make("f", ""), p = CHECK_OK(open("f", O_PATH)), pipes[2];
    CHECK_OK(pipe(pipes));
    CHECK_ERRNO(flock(fd, 0), EINVAL);
    CHECK_ERRNO(flock(fd, LOCK_SH | LOCK_EX), EINVAL);
    CHECK_ERRNO(flock(fd, LOCK_NB), EINVAL);
    CHECK_ERRNO(flock(999, LOCK_SH), EBADF);
    CHECK_ERRNO(flock(p, LOCK_SH), EBADF);
    CHECK_OK(flock(pipes[0], LOCK_EX));  // any description can be locked
    CHECK_OK(flock(CHECK_OK(open(".", O_RDONLY)), LOCK_EX | LOCK_NB));
    CHECK_OK(flock(CHECK_OK(open("/dev/null", O_RDONLY)), LOCK_SH | LOCK_NB));
}

CASE(independent_of_posix_locks) {
    enter();
    int a = make("f", "");
    CHECK_OK(flock(a, LOCK_EX));
    IN_CHILD({
        int b = CHECK_OK(open("f", O_RDWR));
        struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        CHECK_OK(fcntl(b, F_SETLK, &l));
    });
}

MAIN
