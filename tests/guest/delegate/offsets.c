// build: static
// Offsets, appending and sizes of files in much use are those of the open file, whoever uses it.
#include "busy.h"

CASE(the_offset_moves) {
    int fd = make(TMP("f"), 'A', 100);
    busy_reading(fd);
    char buf[8];
    CHECK_EQ(read(fd, buf, 3), 3);
    CHECK_EQ(buf[2], 'C');
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), 3);
    CHECK_EQ(lseek(fd, -4, SEEK_END), 96);
    CHECK_EQ(read(fd, buf, 8), 4);
    CHECK_EQ(buf[0], 'A' + 0);
    CHECK_EQ(read(fd, buf, 8), 0);
    CHECK_EQ(lseek(fd, 200, SEEK_SET), 200);
    CHECK_EQ(read(fd, buf, 8), 0);
    CHECK_EQ(write(fd, "x", 1), 1);
    CHECK_EQ(lseek(fd, 0, SEEK_END), 201);
    CHECK_EQ(pread(fd, buf, 2, 150), 2);
    CHECK_EQ(buf[0], 0);
}

CASE(dup_shares_it) {
    int a = make(TMP("f"), 'A', 100), b = CHECK_OK(dup(a));
    busy_reading(a);
    busy_reading(b);
    char byte;
    CHECK_EQ(lseek(a, 10, SEEK_SET), 10);
    CHECK_EQ(read(b, &byte, 1), 1);
    CHECK_EQ(byte, 'A' + 10);
    CHECK_EQ(lseek(a, 0, SEEK_CUR), 11);
    CHECK_OK(close(a));
    CHECK_EQ(read(b, &byte, 1), 1);
    CHECK_EQ(byte, 'A' + 11);
    CHECK_ERRNO(read(a, &byte, 1), EBADF);
}

CASE(fork_shares_it) {
    int fd = make(TMP("f"), 'A', 100);
    busy_reading(fd);
    char byte;
    CHECK_EQ(lseek(fd, 5, SEEK_SET), 5);
    IN_CHILD({
        CHECK_EQ(read(fd, &byte, 1), 1);
        CHECK_EQ(byte, 'A' + 5);
        busy_reading(fd);
        CHECK_EQ(read(fd, &byte, 1), 1);
        CHECK_EQ(byte, 'A' + 6);
        CHECK_OK(close(fd));
    });
    CHECK_EQ(read(fd, &byte, 1), 1);
    CHECK_EQ(byte, 'A' + 7);
}

CASE(another_open_has_its_own) {
    int a = make(TMP("f"), 'A', 100), b = CHECK_OK(open(TMP("f"), O_RDONLY));
    busy_reading(a);
    busy_reading(b);
    char byte;
    CHECK_EQ(lseek(a, 50, SEEK_SET), 50);
    CHECK_EQ(read(b, &byte, 1), 1);
    CHECK_EQ(byte, 'A');
    CHECK_EQ(pwrite(a, "z", 1, 1), 1);
    CHECK_EQ(read(b, &byte, 1), 1);
    CHECK_EQ(byte, 'z');
}

CASE(appending) {
    CHECK_OK(close(make(TMP("f"), 'A', 10)));
    int fd = CHECK_OK(open(TMP("f"), O_RDWR | O_APPEND));
    char byte = '.';
    for (int i = 0; i < BUSY; i++) CHECK_EQ(write(fd, &byte, 1), 1);
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), 10 + BUSY);
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    CHECK_EQ(write(fd, "!", 1), 1);
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), 11 + BUSY);
    // pwrite appends too (BUGS in pwrite(2)).
    CHECK_EQ(pwrite(fd, "?", 1, 0), 1);
    CHECK_EQ(lseek(fd, 0, SEEK_END), 12 + BUSY);
}

CASE(appending_from_now_on_and_no_longer) {
    int fd = make(TMP("f"), 'A', 10), other = CHECK_OK(dup(fd));
    busy_writing(fd);
    CHECK_OK(fcntl(other, F_SETFL, O_APPEND));
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    CHECK_EQ(write(fd, "1", 1), 1);
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), 11);
    CHECK_OK(fcntl(other, F_SETFL, 0));
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    CHECK_EQ(write(fd, "2", 1), 1);
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), 1);
    CHECK_EQ(lseek(fd, 0, SEEK_END), 11);
}

CASE(truncation_by_another) {
    int fd = make(TMP("f"), 'A', 100);
    busy_writing(fd);
    char buf[8];
    CHECK_EQ(lseek(fd, 50, SEEK_SET), 50);
    IN_CHILD({ CHECK_OK(truncate(TMP("f"), 52)); });
    CHECK_EQ(read(fd, buf, 8), 2);
    CHECK_EQ(read(fd, buf, 8), 0);
    CHECK_OK(ftruncate(fd, 0));
    CHECK_EQ(pread(fd, buf, 8, 0), 0);
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), 52);
    CHECK_EQ(write(fd, "x", 1), 1);
    CHECK_EQ(lseek(fd, 0, SEEK_END), 53);
    CHECK_OK(close(CHECK_OK(open(TMP("f"), O_WRONLY | O_TRUNC))));
    CHECK_EQ(lseek(fd, 0, SEEK_END), 0);
}

CASE(holes) {
    int fd = CHECK_OK(open(TMP("f"), O_RDWR | O_CREAT, 0644));
    char page[4096] = "x";
    for (int i = 0; i < BUSY; i++) CHECK_EQ(pwrite(fd, page, sizeof page, 0), (int)sizeof page);
    CHECK_EQ(pwrite(fd, page, sizeof page, 1 << 20), (int)sizeof page);
    CHECK_EQ(lseek(fd, 4096, SEEK_DATA), 1 << 20);
    CHECK_EQ(lseek(fd, 0, SEEK_HOLE), 4096);
    CHECK_ERRNO(lseek(fd, -1, SEEK_DATA), ENXIO);
    CHECK_ERRNO(lseek(fd, (1 << 20) + 4096, SEEK_HOLE), ENXIO);
    CHECK_ERRNO(lseek(fd, 0, 5), EINVAL);
    CHECK_ERRNO(lseek(fd, -1, SEEK_SET), EINVAL);
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), 4096);
}

CASE(vectors) {
    int fd = make(TMP("f"), 'A', 100);
    busy_writing(fd);
    char a[4], b[4];
    struct iovec in[3] = {{a, 3}, {NULL, 0}, {b, 4}};
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(lseek(fd, 1, SEEK_SET), 1);
        CHECK_EQ(readv(fd, in, 3), 7);
        CHECK_EQ(a[0], 'B');
        CHECK_EQ(b[3], 'H');
        CHECK_EQ(preadv(fd, in, 1, 32), 3);
        CHECK_EQ(a[0], 'A');
    }
    struct iovec out[2] = {{"12", 2}, {"345", 3}};
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(lseek(fd, 98, SEEK_SET), 98);
        CHECK_EQ(writev(fd, out, 2), 5);
        CHECK_EQ(pwritev(fd, out, 2, 40), 5);
    }
    CHECK_EQ(lseek(fd, 0, SEEK_END), 103);
    CHECK_EQ(readv(fd, in, 0), 0);
    CHECK_ERRNO(readv(fd, in, -1), EINVAL);
    CHECK_ERRNO(readv(fd, in, 1025), EINVAL);
}

// What the process has read and written is told, whoever did it.
CASE(io_is_counted) {
    int fd = make(TMP("f"), 'A', 100);
    char text[1000], buf[10];
    long long before[2], after[2];
    long long *figures[] = {before, after};
    busy_writing(fd);
    for (int i = 0; i < 2; i++) {
        int io = open("/proc/self/io", O_RDONLY);
        if (io < 0) SKIP("no /proc/self/io");
        int len = CHECK_OK(read(io, text, sizeof text - 1));
        text[len] = 0;
        CHECK_OK(close(io));
        char *syscr = strstr(text, "syscr: "), *wchar = strstr(text, "wchar: ");
        CHECK(syscr && wchar);
        figures[i][0] = atoll(syscr + 7);
        figures[i][1] = atoll(wchar + 7);
        for (int j = 0; j < 50 && i == 0; j++) {
            CHECK_EQ(pread(fd, buf, sizeof buf, 0), 10);
            CHECK_EQ(pwrite(fd, buf, sizeof buf, 0), 10);
        }
    }
    CHECK_GE(after[0] - before[0], 50);
    CHECK_GE(after[1] - before[1], 500);
}

// Reading a file that has changed shows in its access time, a while later at the latest.
CASE(access_time) {
    int fd = make(TMP("f"), 'A', 100);
    busy_writing(fd);
    struct timespec old[2] = {{1000000000, 0}, {1500000000, 0}};
    CHECK_OK(futimens(fd, old));
    struct stat st;
    CHECK_OK(fstat(fd, &st));
    CHECK_EQ(st.st_atime, 1000000000);
    CHECK_EQ(st.st_mtime, 1500000000);
    char byte;
    usleep(50000);
    CHECK_EQ(pread(fd, &byte, 1, 0), 1);
    CHECK_OK(fstat(fd, &st));
    if (st.st_atime == 1000000000) SKIP("a file system without access times");
    CHECK_EQ(st.st_mtime, 1500000000);
    CHECK_EQ(pwrite(fd, "x", 1, 0), 1);
    CHECK_OK(fstat(fd, &st));
    CHECK_GT(st.st_mtime, 1500000000);
}
MAIN
