// build: static
// What a write to a file in much use must not get around: limits, seals, set-id bits.
#include "busy.h"

static volatile int too_big;
static void on_xfsz(int signal) {
    (void)signal;
    too_big++;
}

CASE(file_size_limit) {
    int fd = make(TMP("f"), 'A', 100);
    busy_writing(fd);
    signal(SIGXFSZ, on_xfsz);
    struct rlimit limit = {150, 200};
    CHECK_OK(setrlimit(RLIMIT_FSIZE, &limit));
    char buf[100] = "";
    CHECK_EQ(pwrite(fd, buf, 100, 100), 50);
    CHECK_EQ(too_big, 0);
    for (int i = 1; i < 4; i++) {
        CHECK_ERRNO(pwrite(fd, buf, 1, 150), EFBIG);
        CHECK_EQ(too_big, i);
    }
    for (int i = 0; i < BUSY; i++) CHECK_EQ(pwrite(fd, buf, 1, 0), 1);
    CHECK_ERRNO(pwrite(fd, buf, 1, 150), EFBIG);
    CHECK_EQ(pread(fd, buf, 100, 100), 50);
}

// Of another process, by prlimit.
CASE(limited_from_outside) {
    int fd = make(TMP("f"), 'A', 100);
    int begin[2], go[2];
    CHECK_OK(pipe(begin));
    CHECK_OK(pipe(go));
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        char byte = 0;
        signal(SIGXFSZ, on_xfsz);
        busy_writing(fd);
        CHECK_EQ(write(begin[1], &byte, 1), 1);
        CHECK_EQ(read(go[0], &byte, 1), 1);
        CHECK_ERRNO(pwrite(fd, &byte, 1, 120), EFBIG);
        CHECK_EQ(too_big, 1);
        _exit(0);
    }
    char byte;
    CHECK_EQ(read(begin[0], &byte, 1), 1);
    struct rlimit limit = {100, 100};
    CHECK_OK(prlimit(pid, RLIMIT_FSIZE, &limit, NULL));
    CHECK_EQ(write(go[1], &byte, 1), 1);
    CHECK_EXIT(pid, 0);
}

CASE(seals) {
    int fd = CHECK_OK(memfd_create("sealed", MFD_ALLOW_SEALING));
    CHECK_OK(ftruncate(fd, 100));
    busy_writing(fd);
    CHECK_OK(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW));
    CHECK_EQ(pwrite(fd, "x", 1, 99), 1);
    CHECK_ERRNO(pwrite(fd, "x", 1, 100), EPERM);
    CHECK_OK(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
    char byte;
    CHECK_ERRNO(pwrite(fd, "x", 1, 0), EPERM);
    CHECK_EQ(pread(fd, &byte, 1, 99), 1);
    CHECK_EQ(byte, 'x');
}

// A write takes set-id bits, unless the writer may keep them.
static int mode(int fd) {
    struct stat st;
    CHECK_OK(fstat(fd, &st));
    return st.st_mode & 07777;
}
CASE(set_id_bits) {
    int fd = make(TMP("f"), 'A', 100);
    busy_writing(fd);
    CHECK_OK(chmod(TMP("f"), 06755));
    int keeps = geteuid() == 0;
    CHECK_EQ(mode(fd), 06755);
    CHECK_EQ(pwrite(fd, "x", 1, 0), 1);
    CHECK_EQ(mode(fd), keeps ? 06755 : 0755);
    busy_writing(fd);
    IN_CHILD({ CHECK_OK(fchmod(fd, 04755)); });
    CHECK_EQ(pwrite(fd, "x", 1, 0), 1);
    CHECK_EQ(mode(fd), keeps ? 04755 : 0755);
}

// A program that runs cannot be opened for writing, and one that is being written cannot run.
CASE(text_busy) {
    int fd = CHECK_OK(open(TMP("prog"), O_RDWR | O_CREAT, 0755));
    busy_writing(fd);
    for (int i = 0; i < BUSY; i++) CHECK_EQ(pwrite(fd, "#!/bin/sh\n", 10, 0), 10);
    IN_CHILD({
        execl(TMP("prog"), "prog", NULL);
        CHECK_EQ(errno, ETXTBSY);
    });
    CHECK_OK(close(fd));
}

CASE(synchronous_and_direct) {
    int fd = CHECK_OK(open(TMP("f"), O_RDWR | O_CREAT | O_SYNC, 0644));
    busy_writing(fd);
    CHECK_EQ(pwrite(fd, "abc", 3, 0), 3);
    char buf[4] = "";
    CHECK_EQ(pread(fd, buf, 3, 0), 3);
    CHECK_STR(buf, "abc");
    CHECK_EQ(fcntl(fd, F_GETFL) & O_SYNC, O_SYNC);
}
MAIN
