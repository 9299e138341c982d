// build: static
// truncate, ftruncate, fallocate, holes, SEEK_DATA and SEEK_HOLE, very large offsets.
#include "tree.h"
#include <linux/falloc.h>
#include <sys/resource.h>

static char buf[262144];

static int all_zero(int fd, off_t at, size_t n) {
    memset(buf, 0x55, n);
    CHECK_EQ(pread(fd, buf, n, at), n);
    for (size_t i = 0; i < n; i++)
        if (buf[i]) return 0;
    return 1;
}

CASE(truncate_shrinks_and_grows) {
    enter();
    int fd = make("f", "0123456789");
    CHECK_OK(truncate("f", 4));
    CHECK_EQ(flook(fd).st_size, 4);
    CHECK_OK(ftruncate(fd, 8));
    CHECK_EQ(pread(fd, buf, 20, 0), 8);
    CHECK_EQ(memcmp(buf, "0123\0\0\0\0", 8), 0);  // what was cut does not come back
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), 10);
    CHECK_EQ(read(fd, buf, 1), 0);
    CHECK_EQ(write(fd, "x", 1), 1);
    CHECK_EQ(flook(fd).st_size, 11);
    // Within one page and across pages.
    memset(buf, 'a', 10000);
    CHECK_EQ(pwrite(fd, buf, 10000, 0), 10000);
    CHECK_OK(ftruncate(fd, 5000));
    CHECK_OK(ftruncate(fd, 10000));
    CHECK(all_zero(fd, 5000, 5000));
    CHECK_OK(symlink("f", "l"));
    CHECK_OK(truncate("l", 1));
    CHECK_EQ(flook(fd).st_size, 1);
}

CASE(truncate_errors) {
    enter();
    int fd = make("f", "abc");
    CHECK_OK(mkdir("d", 0755));
    CHECK_OK(mkfifo("p", 0600));
    CHECK_ERRNO(truncate("f", -1), EINVAL);
    CHECK_ERRNO(truncate("none", -1), EINVAL);
    CHECK_ERRNO(truncate("none", 0), ENOENT);
    CHECK_ERRNO(truncate("d", 0), EISDIR);
    CHECK_ERRNO(truncate("p", 0), EINVAL);
    CHECK_ERRNO(truncate("/dev/null", 0), EINVAL);
    CHECK_ERRNO(truncate("f/x", 0), ENOTDIR);
    CHECK_ERRNO(truncate(nowhere, 0), EFAULT);
    CHECK_ERRNO(ftruncate(fd, -1), EINVAL);
    CHECK_ERRNO(ftruncate(999, 0), EBADF);
    CHECK_ERRNO(ftruncate(999, -1), EINVAL);
    int d = CHECK_OK(open("d", O_RDONLY)), r = CHECK_OK(open("f", O_RDONLY)), pipes[2];
    CHECK_OK(pipe(pipes));
    CHECK_ERRNO(ftruncate(d, 0), EINVAL);
    CHECK_ERRNO(ftruncate(r, 0), EINVAL);
    CHECK_ERRNO(ftruncate(pipes[1], 0), EINVAL);
    if (geteuid() != 0) CHECK_ERRNO(truncate("/etc/passwd", 0), EACCES);
    CHECK_ERRNO(truncate("/usr/bin/env", -5), EINVAL);
}

CASE(truncate_needs_write_permission) {
    enter_as_user();
    int fd = make("f", "abc");
    CHECK_OK(chmod("f", 0444));
    CHECK_ERRNO(truncate("f", 0), EACCES);
    CHECK_OK(ftruncate(fd, 1));  // the descriptor was opened for writing
}

CASE(lseek_whence) {
    enter();
    int fd = make("f", "0123456789"), pipes[2];
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), 10);
    CHECK_EQ(lseek(fd, -3, SEEK_END), 7);
    CHECK_EQ(lseek(fd, -2, SEEK_CUR), 5);
    CHECK_EQ(lseek(fd, 100, SEEK_END), 110);
    CHECK_EQ(flook(fd).st_size, 10);
    CHECK_ERRNO(lseek(fd, -1, SEEK_SET), EINVAL);
    CHECK_ERRNO(lseek(fd, -11, SEEK_END), EINVAL);
    CHECK_ERRNO(lseek(fd, -111, SEEK_CUR), EINVAL);
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), 110);
    CHECK_ERRNO(lseek(fd, 0, 5), EINVAL);
    CHECK_ERRNO(lseek(fd, 0, -1), EINVAL);
    CHECK_ERRNO(lseek(fd, INT64_MAX, SEEK_CUR), EINVAL);
    CHECK_ERRNO(lseek(999, 0, SEEK_SET), EBADF);
    CHECK_OK(pipe(pipes));
    CHECK_ERRNO(lseek(pipes[0], 0, SEEK_CUR), ESPIPE);
    CHECK_ERRNO(lseek(pipes[0], 0, 77), EINVAL);
    CHECK_ERRNO(pread(pipes[0], buf, 1, 0), ESPIPE);
    CHECK_ERRNO(pwrite(pipes[1], buf, 1, 0), ESPIPE);
    int null = CHECK_OK(open("/dev/null", O_RDWR));
    CHECK_EQ(lseek(null, 12345, SEEK_SET), 0);  // Linux: null_lseek keeps it at zero
}

CASE(holes_read_as_zero) {
    enter();
    int fd = make("f", "start");
    CHECK_EQ(pwrite(fd, "end", 3, 200000), 3);
    CHECK_EQ(flook(fd).st_size, 200003);
    CHECK(all_zero(fd, 5, 199995));
    CHECK_EQ(pread(fd, buf, 10, 200000), 3);
    CHECK_EQ(memcmp(buf, "end", 3), 0);
    CHECK_EQ(pread(fd, buf, 10, 200003), 0);
    CHECK_EQ(pread(fd, buf, 10, 1l << 50), 0);
}

CASE(seek_data_and_hole) {
    enter();
    int fd = make("f", "");
    CHECK_EQ(pwrite(fd, buf, 65536, 1 << 20), 65536);
    CHECK_OK(ftruncate(fd, 4 << 20));
    off_t data = lseek(fd, 0, SEEK_DATA);
    CHECK(data == 1 << 20 || data == 0);  // a file system may call all of it data
    CHECK_EQ(lseek(fd, (1 << 20) + 100, SEEK_DATA), (1 << 20) + 100);
    off_t hole = lseek(fd, 1 << 20, SEEK_HOLE);
    CHECK(hole >= (1 << 20) + 65536 && hole <= 4 << 20);
    if (data == 1 << 20) {
        CHECK_EQ(lseek(fd, 0, SEEK_HOLE), 0);
        CHECK_EQ(hole, (1 << 20) + 65536);
        CHECK_ERRNO(lseek(fd, hole, SEEK_DATA), ENXIO);
    }
    CHECK_ERRNO(lseek(fd, 4 << 20, SEEK_DATA), ENXIO);
    CHECK_ERRNO(lseek(fd, 4 << 20, SEEK_HOLE), ENXIO);
    CHECK_ERRNO(lseek(fd, -1, SEEK_DATA), ENXIO);
    int full = make("g", "data to the end");
    CHECK_EQ(lseek(full, 0, SEEK_DATA), 0);
    CHECK_EQ(lseek(full, 3, SEEK_HOLE), 15);  // there is a hole at every end
    int empty = make("h", "");
    CHECK_ERRNO(lseek(empty, 0, SEEK_DATA), ENXIO);
    CHECK_ERRNO(lseek(empty, 0, SEEK_HOLE), ENXIO);
}

CASE(fallocate_allocates) {
    enter();
    int fd = make("f", "abc");
    if (fallocate(fd, 0, 0, 100000) == -1 && errno == EOPNOTSUPP) SKIP("no fallocate here");
    CHECK_EQ(flook(fd).st_size, 100000);
    CHECK_GE(flook(fd).st_blocks, 100000 / 512);
    CHECK(all_zero(fd, 3, 99997));
    CHECK_OK(fallocate(fd, 0, 0, 10));
    CHECK_EQ(flook(fd).st_size, 100000);
    CHECK_OK(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 300000));
    CHECK_EQ(flook(fd).st_size, 100000);
    CHECK_GE(flook(fd).st_blocks, 300000 / 512);
}

CASE(fallocate_punches) {
    enter();
    int fd = make("f", "");
    memset(buf, 'p', sizeof buf);
    CHECK_EQ(write(fd, buf, sizeof buf), sizeof buf);
    CHECK_OK(fsync(fd));
    long before = flook(fd).st_blocks;
    if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 65536 + 10, 65536) == -1 && errno == EOPNOTSUPP)
        SKIP("no holes here");
    CHECK_EQ(flook(fd).st_size, sizeof buf);
    CHECK_LT(flook(fd).st_blocks, before);
    CHECK(all_zero(fd, 65536 + 10, 65536));
    CHECK_EQ(pread(fd, buf, 1, 65536 + 9), 1);
    CHECK_EQ(buf[0], 'p');
    CHECK_EQ(pread(fd, buf, 1, 131072 + 10), 1);
    CHECK_EQ(buf[0], 'p');
    CHECK_ERRNO(fallocate(fd, FALLOC_FL_PUNCH_HOLE, 0, 4096), EOPNOTSUPP);
    CHECK_OK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, sizeof buf - 4096, 1 << 20));
    CHECK_EQ(flook(fd).st_size, sizeof buf);
}

CASE(fallocate_other_modes) {
    enter();
    int fd = make("f", "");
    memset(buf, 'z', 16384);
    CHECK_EQ(write(fd, buf, 16384), 16384);
    // Where a file system lacks a mode it says so; where it has it, the result is fixed.
    if (fallocate(fd, FALLOC_FL_ZERO_RANGE, 4096, 4096) == 0)
        CHECK(all_zero(fd, 4096, 4096));
    else
        CHECK_EQ(errno, EOPNOTSUPP);
    CHECK_EQ(flook(fd).st_size, 16384);
    if (fallocate(fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, 12288, 8192) == 0)
        CHECK(all_zero(fd, 12288, 4096));
    else
        CHECK_EQ(errno, EOPNOTSUPP);
    CHECK_EQ(flook(fd).st_size, 16384);
    CHECK_EQ(pwrite(fd, "mark", 4, 8192), 4);
    if (fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, 4096) == 0) {
        CHECK_EQ(flook(fd).st_size, 12288);
        CHECK_EQ(pread(fd, buf, 4, 4096), 4);
        CHECK_EQ(memcmp(buf, "mark", 4), 0);
    } else {
        CHECK(errno == EOPNOTSUPP || errno == EINVAL);
        CHECK_EQ(flook(fd).st_size, 16384);
    }
}

CASE(fallocate_errors) {
    enter();
    int fd = make("f", ""), pipes[2];
    CHECK_OK(pipe(pipes));
    CHECK_ERRNO(fallocate(fd, 0, -1, 10), EINVAL);
    CHECK_ERRNO(fallocate(fd, 0, 0, 0), EINVAL);
    CHECK_ERRNO(fallocate(fd, 0, 0, -1), EINVAL);
    CHECK_ERRNO(fallocate(fd, 0, 1, INT64_MAX), EFBIG);
    CHECK_ERRNO(fallocate(fd, 0x4000, 0, 10), EOPNOTSUPP);
    CHECK_ERRNO(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, 0, 10), EOPNOTSUPP);
    CHECK_ERRNO(fallocate(999, 0, 0, 10), EBADF);
    CHECK_ERRNO(fallocate(pipes[1], 0, 0, 10), ESPIPE);
    int d = CHECK_OK(open(".", O_RDONLY)), r = CHECK_OK(open("f", O_RDONLY)), null = CHECK_OK(open("/dev/null", O_RDWR));
    CHECK_ERRNO(fallocate(d, 0, 0, 10), EBADF);
    CHECK_ERRNO(fallocate(r, 0, 0, 10), EBADF);
    CHECK_ERRNO(fallocate(null, 0, 0, 10), ENODEV);
}

CASE(one_terabyte_of_nothing) {
    enter();
    int fd = make("f", "");
    CHECK_EQ(pwrite(fd, "far", 3, 1l << 40), 3);
    CHECK_EQ(flook(fd).st_size, (1l << 40) + 3);
    CHECK_LT(flook(fd).st_blocks, 4096);
    CHECK_EQ(lseek(fd, 0, SEEK_END), (1l << 40) + 3);
    CHECK_EQ(pread(fd, buf, 10, (1l << 40) - 2), 5);
    CHECK_EQ(memcmp(buf, "\0\0far", 5), 0);
    CHECK(all_zero(fd, 1l << 39, 4096));
    char *map = CHECK_MAP(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 1l << 40));
    CHECK_EQ(memcmp(map, "far", 4), 0);
    map[1] = 'o';
    CHECK_EQ(pread(fd, buf, 3, 1l << 40), 3);
    CHECK_EQ(memcmp(buf, "for", 3), 0);
    CHECK_ERRNO(pwrite(fd, "x", 1, INT64_MAX), EINVAL);
    CHECK_ERRNO(pwrite(fd, "x", 1, -1), EINVAL);
}

static volatile int caught;
static void on_xfsz(int sig) { caught = sig; }

CASE(file_size_limit) {
    enter();
    signal(SIGXFSZ, on_xfsz);
    struct rlimit limit = {10, RLIM_INFINITY};
    CHECK_OK(getrlimit(RLIMIT_FSIZE, &limit));
    limit.rlim_cur = 10;
    int fd = make("f", "12345");
    CHECK_OK(setrlimit(RLIMIT_FSIZE, &limit));
    CHECK_EQ(write(fd, "6789abcdef", 10), 5);  // as much as fits, silently
    CHECK_EQ(caught, 0);
    CHECK_ERRNO(write(fd, "x", 1), EFBIG);
    CHECK_EQ(caught, SIGXFSZ);
    caught = 0;
    CHECK_ERRNO(ftruncate(fd, 11), EFBIG);
    CHECK_EQ(caught, SIGXFSZ);
    CHECK_OK(ftruncate(fd, 10));
    CHECK_ERRNO(truncate("f", 1000), EFBIG);
    caught = 0;
    CHECK_ERRNO(fallocate(fd, 0, 0, 100), EFBIG);
    CHECK_ERRNO(pwrite(fd, "x", 1, 10), EFBIG);
    CHECK_EQ(pwrite(fd, "xyz", 3, 9), 1);
    CHECK_EQ(pwrite(fd, "xyz", 3, 0), 3);
    CHECK_EQ(flook(fd).st_size, 10);
    int pipes[2];
    CHECK_OK(pipe(pipes));
    CHECK_EQ(write(pipes[1], buf, 100), 100);  // files only
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        signal(SIGXFSZ, SIG_DFL);
        if (pwrite(fd, "x", 1, 10) == -1) _exit(1);
        _exit(2);
    }
    CHECK_KILLED(pid, SIGXFSZ);
    signal(SIGXFSZ, SIG_IGN);
    CHECK_ERRNO(pwrite(fd, "x", 1, 10), EFBIG);
}

MAIN
