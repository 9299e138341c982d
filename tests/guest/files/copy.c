// build: static
// copy_file_range, sendfile, and the sync family.
#include "tree.h"
#include <sys/sendfile.h>

static char buf[200000];

static long range(int in, off_t *in_at, int out, off_t *out_at, size_t n, unsigned flags) {
    return syscall(SYS_copy_file_range, in, in_at, out, out_at, n, flags);
}

CASE(copy_range_positions) {
    enter();
    int a = make("a", "0123456789"), b = make("b", "");
    CHECK_EQ(lseek(a, 2, SEEK_SET), 2);
    CHECK_EQ(range(a, NULL, b, NULL, 4, 0), 4);
    CHECK_EQ(lseek(a, 0, SEEK_CUR), 6);
    CHECK_EQ(lseek(b, 0, SEEK_CUR), 4);
    CHECK_STR(content("b"), "2345");
    off_t from = 8, to = 10;
    CHECK_EQ(range(a, &from, b, &to, 100, 0), 2);
    CHECK_EQ(from, 10);
    CHECK_EQ(to, 12);
    CHECK_EQ(lseek(a, 0, SEEK_CUR), 6);
    CHECK_EQ(flook(b).st_size, 12);
    CHECK_EQ(range(a, &from, b, &to, 100, 0), 0);  // at the end
    from = 100;
    CHECK_EQ(range(a, &from, b, &to, 5, 0), 0);
    CHECK_EQ(range(a, NULL, b, NULL, 0, 0), 0);
    // Within one file, apart.
    from = 0, to = 20;
    CHECK_EQ(range(a, &from, a, &to, 10, 0), 10);
    CHECK_EQ(flook(a).st_size, 30);
}

CASE(copy_range_errors) {
    enter();
    int a = make("a", "0123456789"), b = make("b", ""), pipes[2];
    int ro = CHECK_OK(open("b", O_RDONLY)), wo = CHECK_OK(open("a", O_WRONLY)), ap = CHECK_OK(open("b", O_WRONLY | O_APPEND));
    int d = CHECK_OK(open(".", O_RDONLY)), null = CHECK_OK(open("/dev/null", O_RDWR));
    CHECK_OK(pipe(pipes));
    off_t from = 0, to = 5, bad = -1;
    CHECK_ERRNO(range(a, &from, b, NULL, 5, 1), EINVAL);
    CHECK_ERRNO(range(a, &from, a, &to, 6, 0), EINVAL);  // they overlap
    CHECK_EQ(from, 0);
    CHECK_ERRNO(range(a, &from, ro, NULL, 5, 0), EBADF);
    CHECK_ERRNO(range(wo, &from, b, NULL, 5, 0), EBADF);
    CHECK_ERRNO(range(a, &from, ap, NULL, 5, 0), EBADF);
    CHECK_ERRNO(range(d, &from, b, NULL, 5, 0), EISDIR);
    CHECK_ERRNO(range(a, &from, d, NULL, 5, 0), EISDIR);
    CHECK_ERRNO(range(pipes[0], NULL, b, NULL, 5, 0), EINVAL);
    CHECK_ERRNO(range(a, &from, null, NULL, 5, 0), EINVAL);
    CHECK_ERRNO(range(999, NULL, b, NULL, 5, 0), EBADF);
    CHECK_ERRNO(range(a, NULL, 999, NULL, 5, 0), EBADF);
    CHECK_ERRNO(range(a, nowhere, b, NULL, 5, 0), EFAULT);
    CHECK_ERRNO(range(a, &bad, b, NULL, 5, 0), EOVERFLOW);
}

CASE(copy_range_large) {
    enter();
    int a = make("a", ""), b = make("b", "");
    for (size_t i = 0; i < sizeof buf; i++) buf[i] = i * 7 + (i >> 8);
    CHECK_EQ(write(a, buf, sizeof buf), sizeof buf);
    CHECK_OK(lseek(a, 0, SEEK_SET));
    size_t done = 0;
    for (long n; (n = CHECK_OK(range(a, NULL, b, NULL, sizeof buf, 0))) > 0;) done += n;
    CHECK_EQ(done, sizeof buf);
    char *map = CHECK_MAP(mmap(NULL, sizeof buf, PROT_READ, MAP_SHARED, b, 0));
    CHECK_EQ(memcmp(map, buf, sizeof buf), 0);
}

CASE(sendfile_to_file_and_pipe) {
    enter();
    int a = make("a", "0123456789"), b = make("b", ""), pipes[2];
    CHECK_OK(pipe(pipes));
    CHECK_EQ(lseek(a, 3, SEEK_SET), 3);
    CHECK_EQ(sendfile(b, a, NULL, 4), 4);
    CHECK_EQ(lseek(a, 0, SEEK_CUR), 7);
    CHECK_STR(content("b"), "3456");
    off_t at = 8;
    CHECK_EQ(sendfile(pipes[1], a, &at, 100), 2);
    CHECK_EQ(at, 10);
    CHECK_EQ(lseek(a, 0, SEEK_CUR), 7);
    CHECK_EQ(read(pipes[0], buf, 100), 2);
    CHECK_EQ(memcmp(buf, "89", 2), 0);
    CHECK_EQ(sendfile(b, a, &at, 100), 0);
    int null = CHECK_OK(open("/dev/null", O_WRONLY));
    at = 0;
    CHECK_EQ(sendfile(null, a, &at, 10), 10);
}

CASE(sendfile_errors) {
    enter();
    int a = make("a", "0123456789"), b = make("b", ""), pipes[2];
    int ro = CHECK_OK(open("b", O_RDONLY)), wo = CHECK_OK(open("a", O_WRONLY)), ap = CHECK_OK(open("b", O_WRONLY | O_APPEND));
    CHECK_OK(pipe(pipes));
    off_t at = 0, bad = -1;
    CHECK_ERRNO(sendfile(ro, a, &at, 5), EBADF);
    CHECK_ERRNO(sendfile(b, wo, &at, 5), EBADF);
    CHECK_ERRNO(sendfile(ap, a, &at, 5), EINVAL);
    CHECK_ERRNO(sendfile(999, a, &at, 5), EBADF);
    CHECK_ERRNO(sendfile(b, 999, &at, 5), EBADF);
    CHECK_ERRNO(sendfile(b, a, &bad, 5), EINVAL);
    CHECK_ERRNO(sendfile(b, a, nowhere, 5), EFAULT);
    CHECK_ERRNO(sendfile(b, pipes[0], &at, 5), ESPIPE);
    CHECK_OK(fcntl(pipes[1], F_SETFL, O_NONBLOCK));
    while (write(pipes[1], buf, 4096) == 4096) {}
    CHECK_ERRNO(sendfile(pipes[1], a, &at, 5), EAGAIN);
    CHECK_EQ(at, 0);
}

CASE(sendfile_large_through_a_pipe) {
    enter();
    int a = make("a", ""), pipes[2];
    for (size_t i = 0; i < sizeof buf; i++) buf[i] = i * 13 + (i >> 9);
    CHECK_EQ(write(a, buf, sizeof buf), sizeof buf);
    CHECK_OK(pipe(pipes));
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        CHECK_OK(close(pipes[0]));
        off_t at = 0;
        while (at < (off_t)sizeof buf) CHECK_GT(sendfile(pipes[1], a, &at, sizeof buf), 0);
        _exit(0);
    }
    CHECK_OK(close(pipes[1]));
    static char got[8192];
    size_t at = 0;
    for (long n; (n = CHECK_OK(read(pipes[0], got, sizeof got))) > 0; at += n) CHECK_EQ(memcmp(got, buf + at, n), 0);
    CHECK_EQ(at, sizeof buf);
    CHECK_EXIT(pid, 0);
}

CASE(sync_family) {
    enter();
    int fd = make("f", "data"), d = CHECK_OK(open(".", O_RDONLY)), pipes[2];
    CHECK_OK(pipe(pipes));
    CHECK_OK(fsync(fd));
    CHECK_OK(fdatasync(fd));
    CHECK_OK(fsync(d));
    CHECK_OK(syncfs(fd));
    CHECK_OK(sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE));
    int ro = CHECK_OK(open("f", O_RDONLY));
    CHECK_OK(fsync(ro));
    CHECK_ERRNO(fsync(pipes[0]), EINVAL);
    CHECK_ERRNO(fdatasync(pipes[1]), EINVAL);
    CHECK_ERRNO(fsync(999), EBADF);
    CHECK_ERRNO(syncfs(999), EBADF);
    CHECK_ERRNO(sync_file_range(fd, 0, 0, 0x100), EINVAL);
    CHECK_ERRNO(sync_file_range(fd, -1, 0, SYNC_FILE_RANGE_WRITE), EINVAL);
    CHECK_ERRNO(sync_file_range(pipes[0], 0, 0, SYNC_FILE_RANGE_WRITE), ESPIPE);
    int null = CHECK_OK(open("/dev/null", O_RDWR));
    CHECK_ERRNO(fsync(null), EINVAL);
}

CASE(fadvise_and_readahead) {
    enter();
    int fd = make("f", "data"), pipes[2];
    CHECK_OK(pipe(pipes));
    for (int advice = 0; advice <= 5; advice++) CHECK_OK(syscall(SYS_fadvise64, fd, 0L, 0L, advice));
    CHECK_ERRNO(syscall(SYS_fadvise64, fd, 0L, 0L, 99), EINVAL);
    CHECK_ERRNO(syscall(SYS_fadvise64, fd, 0L, -1L, 0), EINVAL);
    CHECK_ERRNO(syscall(SYS_fadvise64, pipes[0], 0L, 0L, 0), ESPIPE);
    CHECK_ERRNO(syscall(SYS_fadvise64, 999, 0L, 0L, 0), EBADF);
    CHECK_OK(readahead(fd, 0, 4096));
    CHECK_ERRNO(readahead(999, 0, 4096), EBADF);
    CHECK_ERRNO(readahead(pipes[0], 0, 4096), EINVAL);
}

MAIN
