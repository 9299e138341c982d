// build: static
// What calls on files in much use refuse, and what bad memory does.
#include "busy.h"

CASE(access_modes) {
    CHECK_OK(close(make(TMP("f"), 'A', 100)));
    int r = CHECK_OK(open(TMP("f"), O_RDONLY)), w = CHECK_OK(open(TMP("f"), O_WRONLY));
    char byte = 'x';
    busy_reading(r);
    for (int i = 0; i < BUSY; i++) CHECK_EQ(pwrite(w, &byte, 1, 0), 1);
    for (int i = 0; i < 3; i++) {
        CHECK_ERRNO(write(r, &byte, 1), EBADF);
        CHECK_ERRNO(pwrite(r, &byte, 1, 0), EBADF);
        CHECK_ERRNO(writev(r, &(struct iovec){&byte, 1}, 1), EBADF);
        CHECK_ERRNO(read(w, &byte, 1), EBADF);
        CHECK_ERRNO(pread(w, &byte, 1, 0), EBADF);
        CHECK_ERRNO(readv(w, &(struct iovec){&byte, 1}, 1), EBADF);
    }
    CHECK_EQ(lseek(r, 3, SEEK_SET), 3);
    CHECK_EQ(lseek(w, 4, SEEK_SET), 4);
    CHECK_ERRNO(read(1000, &byte, 1), EBADF);
    CHECK_ERRNO(read(5000, &byte, 1), EBADF);
    CHECK_ERRNO(read(-1, &byte, 1), EBADF);
    // The number is an int, whatever is above it.
    CHECK_EQ(syscall(SYS_pread64, r | 1L << 32, &byte, 1L, 0L), 1);
}

CASE(bad_memory) {
    int fd = make(TMP("f"), 'A', 100);
    busy_writing(fd);
    char *pages = CHECK_MAP(mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    CHECK_OK(munmap(pages + 4096, 4096));
    char *edge = pages + 4096 - 10;
    for (int i = 0; i < 3; i++) {
        CHECK_ERRNO(pread(fd, (void *)16, 1, 0), EFAULT);
        CHECK_ERRNO(pread(fd, (void *)0x7ffffffff000, 1, 0), EFAULT);
        CHECK_ERRNO(pread(fd, (void *)-1, 1, 0), EFAULT);
        CHECK_ERRNO(pread(fd, (void *)(1UL << 63), 1, 0), EFAULT);
        CHECK_ERRNO(pwrite(fd, (void *)16, 1, 0), EFAULT);
        CHECK_ERRNO(readv(fd, (void *)16, 1), EFAULT);
        CHECK_ERRNO(readv(fd, (void *)-16, 1), EFAULT);
        CHECK_ERRNO(writev(fd, (void *)(edge + 10), 1), EFAULT);
        // Up to the fault, where it is not the first byte.
        CHECK_EQ(lseek(fd, 20, SEEK_SET), 20);
        CHECK_EQ(read(fd, edge, 50), 10);
        CHECK_EQ(lseek(fd, 0, SEEK_CUR), 30);
        CHECK_EQ(edge[9], 'A' + 29);
        CHECK_EQ(preadv(fd, (struct iovec[]){{edge, 10}, {edge + 10, 10}}, 2, 0), 10);
    }
}

CASE(offsets_and_counts) {
    int fd = make(TMP("f"), 'A', 100);
    busy_writing(fd);
    char buf[200];
    for (int i = 0; i < 3; i++) {
        CHECK_ERRNO(pread(fd, buf, 1, -1), EINVAL);
        CHECK_ERRNO(pwrite(fd, buf, 1, -1), EINVAL);
        CHECK_EQ(pread(fd, buf, 1, LLONG_MAX - 1), 0);
        CHECK_ERRNO(pread(fd, buf, 10, LLONG_MAX), EINVAL);
        CHECK_EQ(pread(fd, buf, 0, 0), 0);
        CHECK_EQ(pwrite(fd, buf, 0, 0), 0);
        CHECK_EQ(pread(fd, buf, -1UL, 0), -1);
        CHECK_EQ(pread(fd, buf, sizeof buf, 50), 50);
    }
}

// A long read is whole.
CASE(much_at_once) {
    enum { SIZE = 80 << 20 };
    int fd = make(TMP("f"), 'A', 100);
    CHECK_OK(ftruncate(fd, SIZE));
    busy_writing(fd);
    char *buf = CHECK_MAP(mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    CHECK_EQ(read(fd, buf, SIZE + 0UL), SIZE);
    CHECK_EQ(buf[3], 'D');
    CHECK_EQ(buf[SIZE - 1], 0);
    CHECK_EQ(pread(fd, buf, 20 << 20, 10), 20 << 20);
    CHECK_EQ(buf[0], 'A' + 10);
}

// Memory of a stack that has yet to grow is there for a read.
CASE(the_stack_grows) {
    int fd = make(TMP("f"), 'A', 100);
    busy_reading(fd);
    char here;
    char *below = &here - (1 << 20);
    CHECK_EQ(pread(fd, below, 100, 0), 100);
    CHECK_EQ(below[1], 'B');
}

// A handler runs though the thread only ever reads.
static volatile int alarms;
static void on_alarm(int signal) {
    (void)signal;
    alarms++;
}
CASE(signals_during_reads) {
    int fd = make(TMP("f"), 'A', 100);
    busy_reading(fd);
    signal(SIGALRM, on_alarm);
    struct itimerval often = {{0, 2000}, {0, 2000}};
    CHECK_OK(setitimer(ITIMER_REAL, &often, NULL));
    char buf[100];
    while (alarms < 20) {
        CHECK_EQ(lseek(fd, 7, SEEK_SET), 7);
        CHECK_EQ(read(fd, buf, 50), 50);
        CHECK_EQ(buf[0], 'A' + 7);
        CHECK_EQ(pread(fd, buf, 3, 1), 3);
        CHECK_EQ(buf[2], 'D');
    }
}

// Others than regular files are as ever, however often they are used.
CASE(pipes) {
    int ends[2];
    CHECK_OK(pipe(ends));
    char byte = 'x';
    for (int i = 0; i < 2 * BUSY; i++) {
        CHECK_EQ(write(ends[1], &byte, 1), 1);
        CHECK_EQ(read(ends[0], &byte, 1), 1);
    }
    CHECK_ERRNO(lseek(ends[0], 0, SEEK_SET), ESPIPE);
    CHECK_ERRNO(pread(ends[0], &byte, 1, 0), ESPIPE);
    CHECK_OK(fcntl(ends[0], F_SETFL, O_NONBLOCK));
    CHECK_ERRNO(read(ends[0], &byte, 1), EAGAIN);
    int null = CHECK_OK(open("/dev/zero", O_RDWR));
    for (int i = 0; i < 2 * BUSY; i++) CHECK_EQ(read(null, &byte, 1), 1);
    CHECK_EQ(byte, 0);
}
MAIN
