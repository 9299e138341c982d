// build: static
// The read and write families: vectors, positions, flags, limits, partial transfers and faults.
#include "tree.h"
#include <sys/uio.h>

static char buf[70000];

static long rawpreadv2(int fd, const struct iovec *v, unsigned long n, off_t at, int flags) {
    return syscall(SYS_preadv2, fd, v, n, at, 0, flags);
}
static long rawpwritev2(int fd, const struct iovec *v, unsigned long n, off_t at, int flags) {
    return syscall(SYS_pwritev2, fd, v, n, at, 0, flags);
}

CASE(read_at_the_end) {
    enter();
    int fd = make("f", "0123456789");
    CHECK_EQ(read(fd, buf, 10), 0);
    CHECK_EQ(lseek(fd, 7, SEEK_SET), 7);
    CHECK_EQ(read(fd, buf, 100), 3);
    CHECK_EQ(read(fd, buf, 100), 0);
    CHECK_EQ(lseek(fd, 1000, SEEK_SET), 1000);
    CHECK_EQ(read(fd, buf, 100), 0);
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), 1000);
    CHECK_EQ(read(fd, nowhere, 0), 0);
    CHECK_ERRNO(read(999, buf, 0), EBADF);
}

CASE(vectors) {
    enter();
    int fd = make("f", "");
    char a[4] = {0}, b[8] = {0};
    struct iovec w[] = {{"abc", 3}, {NULL, 0}, {"defg", 4}, {"h", 1}};
    CHECK_EQ(writev(fd, w, 4), 8);
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    struct iovec r[] = {{a, 2}, {nowhere, 0}, {b, 8}};
    CHECK_EQ(readv(fd, r, 3), 8);
    CHECK_STR(a, "ab");
    CHECK_EQ(memcmp(b, "cdefgh\0\0", 8), 0);
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), 8);
    CHECK_EQ(preadv(fd, r, 1, 3), 2);
    CHECK_STR(a, "de");
    CHECK_EQ(pwritev(fd, w, 1, 20), 3);
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), 8);
    CHECK_EQ(flook(fd).st_size, 23);
    CHECK_EQ(readv(fd, r, 0), 0);
    CHECK_EQ(writev(fd, NULL, 0), 0);
}

CASE(vector_limits) {
    enter();
    int fd = make("f", "");
    static struct iovec v[1025];
    for (int i = 0; i < 1025; i++) v[i] = (struct iovec){"x", 1};
    CHECK_EQ(writev(fd, v, 1024), 1024);
    CHECK_ERRNO(writev(fd, v, 1025), EINVAL);
    CHECK_ERRNO(syscall(SYS_writev, fd, v, -1L), EINVAL);    CHECK_EQ(syscall(SYS_writev, fd, v, 1ul << 32 | 1), 1);  // Linux: the count is cut to 32 bits    CHECK_ERRNO(writev(fd, nowhere, 1), EFAULT);
    CHECK_EQ(flook(fd).st_size, 1025);
    v[0] = (struct iovec){buf, (size_t)-1};
    CHECK_ERRNO(readv(fd, v, 1), EINVAL);
    v[0] = (struct iovec){buf, 10}, v[1] = (struct iovec){buf, (size_t)1 << 63};
    CHECK_ERRNO(writev(fd, v, 2), EINVAL);
    CHECK_ERRNO(readv(999, v, 1), EBADF);
    CHECK_ERRNO(preadv(fd, v, 1, -1), EINVAL);
    CHECK_ERRNO(pwritev(fd, v, 1, -1), EINVAL);
}

CASE(huge_counts_are_cut) {
    enter();
    // One call moves at most 0x7ffff000 bytes; to /dev/null that costs nothing.
    int null = CHECK_OK(open("/dev/null", O_WRONLY));
    char *big = CHECK_MAP(mmap(NULL, 1ul << 32, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    CHECK_EQ(write(null, big, 1ul << 32), 0x7ffff000);
    struct iovec v[2] = {{big, 0x7fffff00}, {big, 0x1000}};
    CHECK_EQ(writev(null, v, 2), 0x7ffff000);
    int fd = make("f", "abc");
    CHECK_EQ(pread(fd, big, 0, 0), 0);
    CHECK_ERRNO(syscall(SYS_read, fd, buf, -1L), EFAULT);  // the range leaves the address space
    CHECK_ERRNO(syscall(SYS_write, fd, buf, 1ul << 63), EFAULT);
}

CASE(positions) {
    enter();
    int fd = make("f", "0123456789");
    CHECK_EQ(lseek(fd, 2, SEEK_SET), 2);
    CHECK_EQ(pread(fd, buf, 3, 5), 3);
    CHECK_EQ(memcmp(buf, "567", 3), 0);
    CHECK_EQ(pwrite(fd, "ab", 2, 9), 2);
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), 2);
    CHECK_STR(content("f"), "012345678ab");
    CHECK_ERRNO(pread(fd, buf, 1, -1), EINVAL);
    CHECK_ERRNO(pwrite(fd, buf, 1, -5), EINVAL);
    CHECK_EQ(pread(fd, buf, 1, INT64_MAX - 1), 0);
    CHECK_EQ(pread(fd, buf, 0, 0), 0);
    CHECK_EQ(pwrite(fd, buf, 0, 500), 0);
    CHECK_EQ(flook(fd).st_size, 11);
}

CASE(preadv2_flags) {
    enter();
    int fd = make("f", "0123456789");
    struct iovec v = {buf, 4};
    CHECK_EQ(lseek(fd, 3, SEEK_SET), 3);
    CHECK_EQ(rawpreadv2(fd, &v, 1, -1, 0), 4);  // -1: at the file's own position, which moves
    CHECK_EQ(memcmp(buf, "3456", 4), 0);
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), 7);
    CHECK_EQ(rawpreadv2(fd, &v, 1, 1, 0), 4);
    CHECK_EQ(memcmp(buf, "1234", 4), 0);
    CHECK_EQ(rawpreadv2(fd, &v, 1, 0, RWF_HIPRI), 4);
    CHECK_ERRNO(rawpreadv2(fd, &v, 1, -2, 0), EINVAL);
    CHECK_ERRNO(rawpreadv2(fd, &v, 1, 0, 0x40000000), EOPNOTSUPP);
    long n = rawpreadv2(fd, &v, 1, 0, RWF_NOWAIT);
    CHECK(n == 4 || (n == -1 && (errno == EAGAIN || errno == EOPNOTSUPP)));
    int pipes[2];
    CHECK_OK(pipe(pipes));
    CHECK_EQ(write(pipes[1], "pipe", 4), 4);
    CHECK_EQ(rawpreadv2(pipes[0], &v, 1, -1, 0), 4);
    CHECK_ERRNO(rawpreadv2(pipes[0], &v, 1, 0, 0), ESPIPE);
    CHECK_ERRNO(rawpreadv2(pipes[0], &v, 1, -1, RWF_NOWAIT), EAGAIN);
}

CASE(pwritev2_flags) {
    enter();
    int fd = make("f", "0123456789");
    struct iovec v = {"AB", 2};
    CHECK_EQ(rawpwritev2(fd, &v, 1, 0, RWF_APPEND), 2);
    CHECK_STR(content("f"), "0123456789AB");
    CHECK_EQ(lseek(fd, 4, SEEK_SET), 4);
    CHECK_EQ(rawpwritev2(fd, &v, 1, -1, 0), 2);
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), 6);
    CHECK_EQ(rawpwritev2(fd, &v, 1, 0, RWF_SYNC), 2);
    CHECK_EQ(rawpwritev2(fd, &v, 1, 0, RWF_DSYNC), 2);
    CHECK_STR(content("f"), "AB23AB6789AB");
    CHECK_ERRNO(rawpwritev2(fd, &v, 1, 0, 0x40000000), EOPNOTSUPP);
    // RWF_NOAPPEND (6.9): the position counts on an O_APPEND description.
    int a = CHECK_OK(open("f", O_WRONLY | O_APPEND));
    CHECK_EQ(rawpwritev2(a, &v, 1, 2, 0), 2);
    CHECK_EQ(flook(a).st_size, 14);
    CHECK_EQ(rawpwritev2(a, &v, 1, 2, 0x20), 2);
    CHECK_EQ(flook(a).st_size, 14);
    CHECK_ERRNO(rawpwritev2(a, &v, 1, 2, 0x20 | RWF_APPEND), EINVAL);
}

CASE(bad_buffers) {
    enter();
    int fd = make("f", "");
    memset(buf, 'b', sizeof buf);
    CHECK_EQ(write(fd, buf, 20000), 20000);
    char *map = CHECK_MAP(mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    CHECK_OK(munmap(map + 4096, 4096));
    // What fits before the hole is transferred, then the count is short.
    CHECK_EQ(pread(fd, map + 4000, 1000, 0), 96);
    CHECK_EQ(map[4095], 'b');
    CHECK_ERRNO(pread(fd, map + 4096, 10, 0), EFAULT);
    CHECK_EQ(pread(fd, map + 4096, 10, 20000), 0);  // nothing to copy, no fault
    long n = pwrite(fd, map + 4000, 1000, 0);
    CHECK(n == 96 || (n == -1 && errno == EFAULT));
    CHECK_ERRNO(pwrite(fd, map + 4096, 10, 0), EFAULT);
    struct iovec v[3] = {{buf, 10}, {map + 4096, 10}, {buf, 10}};
    CHECK_EQ(preadv(fd, v, 3, 0), 10);
    CHECK_OK(mprotect(map, 4096, PROT_READ));
    CHECK_ERRNO(pread(fd, map, 10, 0), EFAULT);
    CHECK_EQ(pwrite(fd, map, 10, 0), 10);
    CHECK_OK(mprotect(map, 4096, PROT_NONE));
    CHECK_ERRNO(pwrite(fd, map, 10, 0), EFAULT);
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    CHECK_ERRNO(read(fd, nowhere, 10), EFAULT);
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), 0);
}

CASE(large_transfers) {
    enter();
    int fd = make("f", "");
    size_t size = 5 << 20;
    char *a = CHECK_MAP(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    char *b = CHECK_MAP(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    for (size_t i = 0; i < size; i++) a[i] = i * 31 + (i >> 12);
    CHECK_EQ(write(fd, a, size), size);
    CHECK_EQ(pread(fd, b, size, 0), size);
    CHECK_EQ(memcmp(a, b, size), 0);
    CHECK_EQ(pread(fd, b, size, 12345), size - 12345);
    CHECK_EQ(memcmp(a + 12345, b, size - 12345), 0);
    CHECK_OK(lseek(fd, 0, SEEK_SET));
    size_t at = 0;
    for (long n; (n = CHECK_OK(read(fd, buf, 65537))) > 0; at += n) CHECK_EQ(memcmp(buf, a + at, n), 0);
    CHECK_EQ(at, size);
}

CASE(two_views_of_one_file) {
    enter();
    int a = make("f", "hello"), b = CHECK_OK(open("f", O_RDWR));
    CHECK_EQ(pwrite(a, "J", 1, 0), 1);
    CHECK_EQ(read(b, buf, 5), 5);
    CHECK_EQ(memcmp(buf, "Jello", 5), 0);
    CHECK_EQ(pwrite(b, "!!", 2, 5), 2);
    CHECK_EQ(flook(a).st_size, 7);
    CHECK_EQ(read(a, buf, 5), 2);
    CHECK_OK(ftruncate(b, 0));
    CHECK_EQ(pread(a, buf, 5, 0), 0);
}

CASE(system_files_read_alike) {
    // The same bytes by read, pread and mmap, whatever layers are below.
    const char *names[] = {"/etc/passwd", "/usr/bin/env", "/etc/group"};
    for (int i = 0; i < 3; i++) {
        int fd = CHECK_OK(open(names[i], O_RDONLY));
        size_t size = flook(fd).st_size, at = 0;
        CHECK_GT(size, 0);
        char *map = CHECK_MAP(mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0));
        for (long n; (n = CHECK_OK(read(fd, buf, 1000))) > 0; at += n) {
            CHECK_EQ(memcmp(map + at, buf, n), 0);
            CHECK_EQ(pread(fd, buf + 2000, n, at), n);
            CHECK_EQ(memcmp(buf, buf + 2000, n), 0);
        }
        CHECK_EQ(at, size);
    }
    CHECK_EQ(memcmp(content("/etc/passwd"), "root:", 5), 0);
}

CASE(user_cannot_write_system_files) {
    be_user();
    CHECK_ERRNO(open("/etc/passwd", O_RDWR), EACCES);
    CHECK_ERRNO(open("/usr/bin/env", O_WRONLY), EACCES);
    CHECK_ERRNO(open("/usr/bin/new-file", O_WRONLY | O_CREAT, 0644), EACCES);
    CHECK_ERRNO(chmod("/etc/passwd", 0666), EPERM);
    CHECK_ERRNO(rename("/etc/passwd", "/etc/x"), EACCES);
    CHECK_ERRNO(chown("/etc/passwd", 65534, -1), EPERM);
    CHECK_ERRNO(utimensat(AT_FDCWD, "/etc/passwd", NULL, 0), EACCES);
}

MAIN
