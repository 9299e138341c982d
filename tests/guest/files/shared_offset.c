// build: static
// What dup, fork and two opens share: offset, status flags, append atomicity.
#include "tree.h"

CASE(dup_shares_the_offset) {
    enter();
    int a = make("f", "0123456789"), b = CHECK_OK(dup(a)), c = CHECK_OK(open("f", O_RDWR));
    CHECK_EQ(lseek(a, 3, SEEK_SET), 3);
    CHECK_EQ(lseek(b, 0, SEEK_CUR), 3);
    CHECK_EQ(lseek(c, 0, SEEK_CUR), 0);
    char buf[4];
    CHECK_EQ(read(b, buf, 2), 2);
    CHECK_EQ(lseek(a, 0, SEEK_CUR), 5);
    CHECK_OK(close(a));
    CHECK_EQ(read(b, buf, 1), 1);
    CHECK_EQ(buf[0], '5');
}

CASE(status_flags_belong_to_the_description) {
    enter();
    int a = make("f", "abc"), b = CHECK_OK(dup(a)), c = CHECK_OK(open("f", O_RDWR));
    CHECK_OK(fcntl(a, F_SETFL, O_APPEND | O_NONBLOCK));
    CHECK_EQ(fcntl(b, F_GETFL) & (O_APPEND | O_NONBLOCK), O_APPEND | O_NONBLOCK);
    CHECK_EQ(fcntl(c, F_GETFL) & (O_APPEND | O_NONBLOCK), 0);
    CHECK_EQ(lseek(b, 0, SEEK_SET), 0);
    CHECK_EQ(write(b, "d", 1), 1);
    CHECK_STR(content("f"), "abcd");
    // FD_CLOEXEC belongs to the descriptor.
    CHECK_OK(fcntl(a, F_SETFD, FD_CLOEXEC));
    CHECK_EQ(fcntl(b, F_GETFD), 0);
}

CASE(fork_shares_the_offset) {
    enter();
    int fd = make("f", "");
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        CHECK_EQ(write(fd, "child", 5), 5);
        _exit(0);
    }
    CHECK_EXIT(pid, 0);
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), 5);
    CHECK_EQ(write(fd, "parent", 6), 6);
    CHECK_STR(content("f"), "childparent");
    // A close in the child closes nothing here; a seek in the child is seen here.
    IN_CHILD({
        CHECK_EQ(lseek(fd, 2, SEEK_SET), 2);
        CHECK_OK(close(fd));
    });
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), 2);
    IN_CHILD({ CHECK_OK(fcntl(fd, F_SETFL, O_APPEND)); });
    CHECK_EQ(fcntl(fd, F_GETFL) & O_APPEND, O_APPEND);
}

CASE(shared_offset_writes_do_not_overlap) {
    enter();
    // Since 3.14 write takes the position's lock: two processes on one description never overwrite each other.
    int fd = make("f", "");
    pid_t pids[3];
    for (int p = 0; p < 3; p++) {
        pids[p] = CHECK_OK(fork());
        if (pids[p] == 0) {
            char line[16];
            memset(line, 'a' + p, sizeof line);
            for (int i = 0; i < 500; i++) CHECK_EQ(write(fd, line, sizeof line), sizeof line);
            _exit(0);
        }
    }
    for (int p = 0; p < 3; p++) CHECK_EXIT(pids[p], 0);
    CHECK_EQ(flook(fd).st_size, 3 * 500 * 16);
    int counts[3] = {0};
    char line[16];
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    while (read(fd, line, 16) == 16) {
        for (int i = 1; i < 16; i++) CHECK_EQ(line[i], line[0]);
        counts[line[0] - 'a']++;
    }
    for (int p = 0; p < 3; p++) CHECK_EQ(counts[p], 500);
}

CASE(append_is_atomic) {
    enter();
    CHECK_OK(close(make("f", "")));
    pid_t pids[3];
    for (int p = 0; p < 3; p++) {
        pids[p] = CHECK_OK(fork());
        if (pids[p] == 0) {
            int fd = CHECK_OK(open("f", O_WRONLY | O_APPEND));  // each its own description
            char line[100];
            memset(line, 'a' + p, sizeof line);
            for (int i = 0; i < 300; i++) CHECK_EQ(write(fd, line, sizeof line), sizeof line);
            _exit(0);
        }
    }
    for (int p = 0; p < 3; p++) CHECK_EXIT(pids[p], 0);
    int fd = CHECK_OK(open("f", O_RDONLY)), counts[3] = {0};
    char line[100];
    CHECK_EQ(flook(fd).st_size, 3 * 300 * 100);
    while (read(fd, line, 100) == 100) {
        for (int i = 1; i < 100; i++) CHECK_EQ(line[i], line[0]);
        counts[line[0] - 'a']++;
    }
    for (int p = 0; p < 3; p++) CHECK_EQ(counts[p], 300);
}

CASE(exec_keeps_the_offset) {
    enter();
    int fd = make("f", "0123456789");
    CHECK_EQ(lseek(fd, 4, SEEK_SET), 4);
    char arg[12];
    snprintf(arg, sizeof arg, "%d", fd);
    IN_CHILD({
        execl(check_self, check_self, "@reader", arg, NULL);
        FAIL("exec");
    });
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), 7);
}

HELPER(reader) {
    char buf[4] = {0};
    CHECK_EQ(argc, 3);
    CHECK_EQ(read(atoi(argv[2]), buf, 3), 3);
    CHECK_STR(buf, "456");
}

CASE(directory_offset_is_shared_too) {
    enter();
    CHECK_OK(close(make("a", "")));
    CHECK_OK(close(make("b", "")));
    int d = CHECK_OK(open(".", O_RDONLY));
    IN_CHILD({
        char buf[4096];
        CHECK_GT(syscall(SYS_getdents64, d, buf, sizeof buf), 0);
    });
    char buf[4096];
    CHECK_EQ(syscall(SYS_getdents64, d, buf, sizeof buf), 0);
}

MAIN
