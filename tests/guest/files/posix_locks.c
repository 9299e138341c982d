// build: static
// fcntl record locks (F_SETLK, F_SETLKW, F_GETLK): ranges, upgrades, deadlock, owners, release on any close.
#include "tree.h"

static int lock(int fd, int cmd, short type, off_t start, off_t len) {
    struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = len};
    return fcntl(fd, cmd, &l);
}

// What another process would find at [start, start+len): its type, the range and the owner.
static struct flock conflict(short type, off_t start, off_t len) {
    struct flock *shared = CHECK_MAP(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    IN_CHILD({
        int fd = CHECK_OK(open("f", O_RDWR));
        *shared = (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = len, .l_pid = 77};
        CHECK_OK(fcntl(fd, F_GETLK, shared));
    });
    struct flock got = *shared;
    munmap(shared, 4096);
    return got;
}

CASE(conflicts_between_processes) {
    enter();
    int fd = make("f", "0123456789");
    CHECK_OK(lock(fd, F_SETLK, F_RDLCK, 0, 5));
    CHECK_OK(lock(fd, F_SETLK, F_WRLCK, 5, 5));
    CHECK_EQ(conflict(F_RDLCK, 0, 5).l_type, F_UNLCK);
    CHECK_EQ(conflict(F_RDLCK, 0, 5).l_pid, 77);  // untouched when nothing is in the way
    struct flock got = conflict(F_WRLCK, 0, 5);
    CHECK_EQ(got.l_type, F_RDLCK);
    CHECK_EQ(got.l_start, 0);
    CHECK_EQ(got.l_len, 5);
    CHECK_EQ(got.l_pid, getpid());
    CHECK_EQ(got.l_whence, SEEK_SET);
    CHECK_EQ(conflict(F_RDLCK, 9, 1).l_type, F_WRLCK);
    CHECK_EQ(conflict(F_WRLCK, 10, 0).l_type, F_UNLCK);
    IN_CHILD({
        int own = CHECK_OK(open("f", O_RDWR));
        CHECK_ERRNO(lock(own, F_SETLK, F_WRLCK, 0, 1), EAGAIN);
        CHECK_ERRNO(lock(own, F_SETLK, F_RDLCK, 4, 2), EAGAIN);
        CHECK_OK(lock(own, F_SETLK, F_RDLCK, 0, 5));
        CHECK_OK(lock(own, F_SETLK, F_WRLCK, 10, 0));
    });
    // One's own locks never conflict.
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    CHECK_OK(fcntl(fd, F_GETLK, &l));
    CHECK_EQ(l.l_type, F_UNLCK);
}

CASE(ranges_split_and_merge) {
    enter();
    int fd = make("f", "");
    CHECK_OK(lock(fd, F_SETLK, F_WRLCK, 0, 100));
    CHECK_OK(lock(fd, F_SETLK, F_UNLCK, 40, 20));
    struct flock got = conflict(F_WRLCK, 0, 0);
    CHECK_EQ(got.l_start, 0);
    CHECK_EQ(got.l_len, 40);
    CHECK_EQ(conflict(F_WRLCK, 40, 20).l_type, F_UNLCK);
    got = conflict(F_WRLCK, 40, 0);
    CHECK_EQ(got.l_start, 60);
    CHECK_EQ(got.l_len, 40);
    CHECK_OK(lock(fd, F_SETLK, F_RDLCK, 70, 10));  // another type in the middle
    got = conflict(F_WRLCK, 65, 0);
    CHECK_EQ(got.l_start, 60);
    CHECK_EQ(got.l_len, 10);
    CHECK_EQ(conflict(F_RDLCK, 70, 10).l_type, F_UNLCK);
    CHECK_OK(lock(fd, F_SETLK, F_WRLCK, 40, 40));  // neighbours of one type become one
    got = conflict(F_WRLCK, 0, 0);
    CHECK_EQ(got.l_start, 0);
    CHECK_EQ(got.l_len, 100);
    CHECK_OK(lock(fd, F_SETLK, F_UNLCK, 0, 0));
    CHECK_EQ(conflict(F_WRLCK, 0, 0).l_type, F_UNLCK);
}

CASE(to_the_end_and_whence) {
    enter();
    int fd = make("f", "0123456789");
    CHECK_OK(lock(fd, F_SETLK, F_WRLCK, 1000, 0));
    struct flock got = conflict(F_WRLCK, 1ll << 40, 1);
    CHECK_EQ(got.l_start, 1000);
    CHECK_EQ(got.l_len, 0);
    CHECK_OK(lock(fd, F_SETLK, F_UNLCK, 0, 0));
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_END, .l_start = -4, .l_len = 2};
    CHECK_OK(fcntl(fd, F_SETLK, &l));
    got = conflict(F_WRLCK, 0, 0);
    CHECK_EQ(got.l_start, 6);
    CHECK_EQ(got.l_len, 2);
    CHECK_OK(lock(fd, F_SETLK, F_UNLCK, 0, 0));
    CHECK_EQ(lseek(fd, 5, SEEK_SET), 5);
    l = (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_CUR, .l_start = 0, .l_len = -3};  // before the start
    CHECK_OK(fcntl(fd, F_SETLK, &l));
    got = conflict(F_WRLCK, 0, 0);
    CHECK_EQ(got.l_start, 2);
    CHECK_EQ(got.l_len, 3);
}

CASE(arguments) {
    enter();
    int fd = make("f", ""), ro = CHECK_OK(open("f", O_RDONLY)), wo = CHECK_OK(open("f", O_WRONLY));
    CHECK_ERRNO(lock(ro, F_SETLK, F_WRLCK, 0, 1), EBADF);
    CHECK_ERRNO(lock(wo, F_SETLK, F_RDLCK, 0, 1), EBADF);
    CHECK_ERRNO(lock(999, F_SETLK, F_RDLCK, 0, 1), EBADF);
    CHECK_ERRNO(lock(fd, F_SETLK, 7, 0, 1), EINVAL);
    CHECK_ERRNO(lock(fd, F_GETLK, F_UNLCK, 0, 1), EINVAL);
    CHECK_ERRNO(lock(fd, F_SETLK, F_RDLCK, -1, 1), EINVAL);
    CHECK_ERRNO(lock(fd, F_SETLK, F_RDLCK, 5, -6), EINVAL);
    CHECK_ERRNO(lock(fd, F_SETLK, F_RDLCK, 2, INT64_MAX), EOVERFLOW);
    CHECK_ERRNO(fcntl(fd, F_SETLK, nowhere), EFAULT);
    CHECK_ERRNO(fcntl(fd, F_GETLK, nowhere), EFAULT);
    struct flock l = {.l_type = F_RDLCK, .l_whence = 9};
    CHECK_ERRNO(fcntl(fd, F_SETLK, &l), EINVAL);
    CHECK_OK(lock(ro, F_GETLK, F_WRLCK, 0, 1));  // asking needs no access
    CHECK_OK(lock(fd, F_SETLK, F_UNLCK, 50, 1));
}

CASE(any_close_releases) {
    enter();
    int fd = make("f", "");
    CHECK_OK(lock(fd, F_SETLK, F_WRLCK, 0, 0));
    int other = CHECK_OK(open("f", O_RDONLY));
    CHECK_EQ(conflict(F_RDLCK, 0, 0).l_type, F_WRLCK);
    CHECK_OK(close(other));
    CHECK_EQ(conflict(F_RDLCK, 0, 0).l_type, F_UNLCK);
    CHECK_OK(lock(fd, F_SETLK, F_WRLCK, 0, 0));
    CHECK_OK(close(CHECK_OK(dup(fd))));
    CHECK_EQ(conflict(F_RDLCK, 0, 0).l_type, F_UNLCK);
    CHECK_OK(lock(fd, F_SETLK, F_WRLCK, 0, 0));
    CHECK_OK(link("f", "g"));
    CHECK_OK(close(CHECK_OK(open("g", O_RDONLY))));  // by whatever name
    CHECK_EQ(conflict(F_RDLCK, 0, 0).l_type, F_UNLCK);
}

CASE(not_inherited) {
    enter();
    int fd = make("f", ""), pipes[2];
    CHECK_OK(pipe(pipes));
    CHECK_OK(lock(fd, F_SETLK, F_WRLCK, 0, 0));
    IN_CHILD({
        CHECK_ERRNO(lock(fd, F_SETLK, F_WRLCK, 0, 1), EAGAIN);
        struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        CHECK_OK(fcntl(fd, F_GETLK, &l));
        CHECK_EQ(l.l_pid, getppid());
        CHECK_OK(lock(fd, F_SETLK, F_UNLCK, 0, 0));  // not the child's to release
        CHECK_OK(close(fd));
    });
    CHECK_EQ(conflict(F_RDLCK, 0, 0).l_type, F_WRLCK);
    // A child's death releases the child's.
    CHECK_OK(lock(fd, F_SETLK, F_UNLCK, 0, 0));
    IN_CHILD({ CHECK_OK(lock(fd, F_SETLK, F_WRLCK, 0, 0)); });
    CHECK_OK(lock(fd, F_SETLK, F_WRLCK, 0, 0));
}

CASE(kept_over_exec) {
    enter();
    int fd = make("f", ""), pipes[2], back[2];
    CHECK_OK(pipe(pipes));
    CHECK_OK(pipe(back));
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        CHECK_OK(lock(fd, F_SETLK, F_WRLCK, 3, 4));
        CHECK_OK(dup2(pipes[1], 50));
        CHECK_OK(dup2(back[0], 51));
        execl(check_self, check_self, "@hold", NULL);
        FAIL("exec");
    }
    char c;
    CHECK_EQ(read(pipes[0], &c, 1), 1);
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    CHECK_OK(fcntl(fd, F_GETLK, &l));
    CHECK_EQ(l.l_type, F_WRLCK);
    CHECK_EQ(l.l_start, 3);
    CHECK_EQ(l.l_pid, pid);
    CHECK_EQ(write(back[1], "x", 1), 1);
    CHECK_EXIT(pid, 0);
    CHECK_OK(lock(fd, F_SETLK, F_WRLCK, 0, 0));
}

HELPER(hold) {
    char c;
    CHECK_EQ(write(50, "x", 1), 1);
    CHECK_EQ(read(51, &c, 1), 1);
}

CASE(waits_and_upgrades) {
    enter();
    int fd = make("f", ""), pipes[2];
    CHECK_OK(pipe(pipes));
    CHECK_OK(lock(fd, F_SETLK, F_RDLCK, 0, 10));
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        CHECK_OK(lock(fd, F_SETLK, F_RDLCK, 0, 10));
        CHECK_EQ(write(pipes[1], "1", 1), 1);
        CHECK_OK(lock(fd, F_SETLKW, F_WRLCK, 0, 10));  // upgrade: waits for the parent's read lock
        CHECK_EQ(write(pipes[1], "2", 1), 1);
        _exit(0);
    }
    char c;
    CHECK_EQ(read(pipes[0], &c, 1), 1);
    struct pollfd p = {pipes[0], POLLIN, 0};
    CHECK_EQ(poll(&p, 1, 50), 0);
    CHECK_OK(lock(fd, F_SETLK, F_UNLCK, 0, 10));
    CHECK_EQ(read(pipes[0], &c, 1), 1);
    CHECK_EQ(c, '2');
    CHECK_EXIT(pid, 0);
}

static void on_alarm(int sig) { (void)sig; }

CASE(interrupted_wait) {
    enter();
    int fd = make("f", ""), pipes[2];
    CHECK_OK(pipe(pipes));
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        CHECK_OK(lock(fd, F_SETLK, F_WRLCK, 0, 0));
        CHECK_EQ(write(pipes[1], "1", 1), 1);
        pause();
    }
    char c;
    CHECK_EQ(read(pipes[0], &c, 1), 1);
    struct sigaction act = {.sa_handler = on_alarm};
    CHECK_OK(sigaction(SIGALRM, &act, NULL));
    ualarm(30000, 0);
    CHECK_ERRNO(lock(fd, F_SETLKW, F_WRLCK, 5, 1), EINTR);
    CHECK_OK(kill(pid, SIGKILL));
    CHECK_OK(lock(fd, F_SETLKW, F_WRLCK, 5, 1));
    CHECK_KILLED(pid, SIGKILL);
}

CASE(deadlock_is_found) {
    enter();
    int fd = make("f", ""), pipes[2];
    CHECK_OK(pipe(pipes));
    CHECK_OK(lock(fd, F_SETLK, F_WRLCK, 0, 1));
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        CHECK_OK(lock(fd, F_SETLK, F_WRLCK, 1, 1));
        CHECK_EQ(write(pipes[1], "1", 1), 1);
        int r = lock(fd, F_SETLKW, F_WRLCK, 0, 1);
        _exit(r == 0 ? 0 : errno == EDEADLK ? 3 : 4);
    }
    char c;
    CHECK_EQ(read(pipes[0], &c, 1), 1);
    usleep(100000);
    // The second to wait is refused, whichever that is; then the other gets its lock.
    if (lock(fd, F_SETLKW, F_WRLCK, 1, 1) == 0) {
        CHECK_EXIT(pid, 3);
    } else {
        CHECK_EQ(errno, EDEADLK);
        CHECK_OK(lock(fd, F_SETLK, F_UNLCK, 0, 1));
        CHECK_EXIT(pid, 0);
        CHECK_OK(lock(fd, F_SETLKW, F_WRLCK, 1, 1));
    }
}

CASE(leases_work_or_are_refused) {
    enter();
    CHECK_OK(close(make("f", "")));
    int fd = CHECK_OK(open("f", O_RDONLY));
    if (fcntl(fd, F_SETLEASE, F_RDLCK) == 0) {
        CHECK_EQ(fcntl(fd, F_GETLEASE), F_RDLCK);
        CHECK_OK(fcntl(fd, F_SETLEASE, F_UNLCK));
    } else {
        CHECK(errno == EINVAL || errno == EAGAIN);
    }
    CHECK_EQ(fcntl(fd, F_GETLEASE), F_UNLCK);
    CHECK_ERRNO(fcntl(fd, F_SETLEASE, 77), EINVAL);
}

MAIN
