// build: static
// When a number of a file in much use leads elsewhere, so do the calls.
#include "busy.h"
#include <sched.h>
#include <linux/close_range.h>

static char first_of(int fd) {
    char byte;
    CHECK_EQ(pread(fd, &byte, 1, 0), 1);
    return byte;
}

CASE(closed_and_opened) {
    int a = make(TMP("a"), 'a', 50);
    busy_reading(a);
    CHECK_OK(close(a));
    char byte;
    CHECK_ERRNO(read(a, &byte, 1), EBADF);
    CHECK_ERRNO(lseek(a, 0, SEEK_SET), EBADF);
    int b = make(TMP("b"), 'B', 50);
    CHECK_EQ(a, b);
    CHECK_EQ(first_of(b), 'B');
    busy_reading(b);
    CHECK_EQ(first_of(b), 'B');
}

CASE(replaced) {
    int a = make(TMP("a"), 'a', 50), b = make(TMP("b"), 'B', 50);
    busy_reading(a);
    busy_reading(b);
    CHECK_EQ(dup2(b, a), a);
    CHECK_EQ(first_of(a), 'B');
    CHECK_EQ(lseek(b, 9, SEEK_SET), 9);
    CHECK_EQ(lseek(a, 0, SEEK_CUR), 9);
    busy_reading(a);
    int ends[2];
    CHECK_OK(pipe(ends));
    CHECK_EQ(dup3(ends[0], a, O_CLOEXEC), a);
    char byte;
    CHECK_ERRNO(pread(a, &byte, 1, 0), ESPIPE);
    CHECK_EQ(first_of(b), 'B');
}

CASE(ranges) {
    int a = make(TMP("a"), 'a', 50), b = make(TMP("b"), 'B', 50), c = make(TMP("c"), '3', 50);
    busy_reading(a);
    busy_reading(b);
    busy_reading(c);
    CHECK_OK(syscall(SYS_close_range, b, b, 0));
    char byte;
    CHECK_ERRNO(read(b, &byte, 1), EBADF);
    CHECK_EQ(first_of(a), 'a');
    CHECK_OK(syscall(SYS_close_range, c, c, CLOSE_RANGE_UNSHARE));
    CHECK_ERRNO(read(c, &byte, 1), EBADF);
    CHECK_EQ(first_of(a), 'a');
}

HELPER(after_exec) {
    (void)argc;
    char byte;
    int kept = atoi(argv[2]), closed = atoi(argv[3]);
    CHECK_EQ(read(kept, &byte, 1), 1);
    CHECK_EQ(byte, 'a' + 3);
    busy_reading(kept);
    CHECK_EQ(read(kept, &byte, 1), 1);
    CHECK_EQ(byte, 'a' + 4);
    CHECK_ERRNO(read(closed, &byte, 1), EBADF);
    CHECK_ERRNO(lseek(closed, 0, SEEK_SET), EBADF);
}

CASE(exec) {
    int a = make(TMP("a"), 'a', 50), b = make(TMP("b"), 'B', 50);
    busy_reading(a);
    busy_reading(b);
    CHECK_OK(fcntl(b, F_SETFD, FD_CLOEXEC));
    CHECK_EQ(lseek(a, 3, SEEK_SET), 3);
    char one[20], other[20];
    snprintf(one, sizeof one, "%d", a);
    snprintf(other, sizeof other, "%d", b);
    IN_CHILD({
        busy_reading(a);
        busy_reading(b);
        execl(check_self, check_self, "@after_exec", one, other, NULL);
        FAIL("exec");
    });
    pid_t pid = CHECK_OK(vfork());
    if (pid == 0) {
        // Two bytes went; the helper wants to begin where it did.
        lseek(a, 3, SEEK_SET);
        execl(check_self, check_self, "@after_exec", one, other, NULL);
        _exit(1);
    }
    CHECK_EXIT(pid, 0);
    CHECK_EQ(first_of(b), 'B');
}

// A child has the files, not the parent's way to them; what it does to its numbers is its own.
CASE(forked) {
    int a = make(TMP("a"), 'a', 50), b = make(TMP("b"), 'B', 50);
    busy_reading(a);
    IN_CHILD({
        CHECK_EQ(dup2(b, a), a);
        CHECK_EQ(first_of(a), 'B');
        busy_reading(a);
        CHECK_EQ(first_of(a), 'B');
    });
    CHECK_EQ(first_of(a), 'a');
    CHECK_OK(close(a));
}

// A table of one's own no longer follows the other.
static int shared;
static int unshares(void *none) {
    (void)none;
    busy_reading(shared);
    CHECK_OK(unshare(CLONE_FILES));
    CHECK_EQ(first_of(shared), 'a');
    busy_reading(shared);
    int other = make(TMP("b"), 'B', 50);
    CHECK_EQ(dup2(other, shared), shared);
    CHECK_EQ(first_of(shared), 'B');
    return 0;
}

static int closes(void *none) {
    (void)none;
    busy_reading(shared);
    CHECK_OK(close(shared));
    return 0;
}

CASE(shared_tables) {
    static char stack[65536] __attribute__((aligned(16)));
    shared = make(TMP("a"), 'a', 50);
    busy_reading(shared);
    // Processes of their own which share the table but no memory.
    pid_t pid = CHECK_OK(clone(unshares, stack + sizeof stack, CLONE_FILES | SIGCHLD, NULL));
    CHECK_EXIT(pid, 0);
    CHECK_EQ(first_of(shared), 'a');
    pid = CHECK_OK(clone(closes, stack + sizeof stack, CLONE_FILES | SIGCHLD, NULL));
    CHECK_EXIT(pid, 0);
    char byte;
    CHECK_ERRNO(pread(shared, &byte, 1, 0), EBADF);
}

// More files than anybody is handed.
CASE(very_many) {
    struct rlimit most;
    CHECK_OK(getrlimit(RLIMIT_NOFILE, &most));
    int count = most.rlim_cur < 400 ? 100 : 200;
    int large = make(TMP("a"), 'A', 50), fds[200];
    char some[128 << 10] = "";
    CHECK_EQ(pwrite(large, some, sizeof some, 50), (int)sizeof some);
    CHECK_OK(close(large));
    for (int i = 0; i < count; i++) {
        fds[i] = CHECK_OK(open(TMP("a"), O_RDONLY));
        for (int j = 0; j < 3; j++) CHECK_EQ(first_of(fds[i]), 'A');
    }
    for (int i = 0; i < count; i++) {
        char byte;
        CHECK_EQ(lseek(fds[i], i % 50, SEEK_SET), i % 50);
        CHECK_EQ(read(fds[i], &byte, 1), 1);
        CHECK_EQ(byte, 'A' + i % 50 % 32);
    }
    CHECK_OK(syscall(SYS_close_range, fds[0], fds[count - 1], 0));
    int again = CHECK_OK(open(TMP("a"), O_RDONLY));
    CHECK_EQ(again, fds[0]);
    busy_reading(again);
    CHECK_EQ(first_of(again), 'A');
}
MAIN
