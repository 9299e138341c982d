// build: dynamic
// Mapped files and read/write agree, in every direction and between processes.
#include "tree.h"

static char *map(int fd, size_t size, int prot, int flags) { return CHECK_MAP(mmap(NULL, size, prot, flags, fd, 0)); }

CASE(shared_both_ways) {
    enter();
    int fd = make("f", "0123456789");
    char *m = map(fd, 4096, PROT_READ | PROT_WRITE, MAP_SHARED);
    m[0] = 'A';
    CHECK_STR(content("f"), "A123456789");
    CHECK_EQ(pwrite(fd, "B", 1, 1), 1);
    CHECK_EQ(m[1], 'B');
    CHECK_EQ(m[10], 0);  // the rest of the page
    m[20] = 'x';         // behind the end: never in the file
    CHECK_OK(msync(m, 4096, MS_SYNC));
    CHECK_EQ(flook(fd).st_size, 10);
    CHECK_EQ(write(fd, "cd", 2), 2);
    CHECK_EQ(m[11], 'd');
    CHECK_OK(ftruncate(fd, 4096));
    char *again = map(fd, 4096, PROT_READ, MAP_SHARED);
    CHECK_EQ(memcmp(again, "AB23456789cd", 12), 0);
}

CASE(private_copies) {
    enter();
    int fd = make("f", "original");
    char *m = map(fd, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE), *s = map(fd, 4096, PROT_READ, MAP_SHARED);
    m[0] = 'X';
    CHECK_STR(content("f"), "original");
    CHECK_EQ(s[0], 'o');
    CHECK_EQ(pwrite(fd, "Z", 1, 0), 1);
    CHECK_EQ(m[0], 'X');
    CHECK_EQ(s[0], 'Z');
    IN_CHILD({
        CHECK_EQ(m[0], 'X');
        m[1] = 'Y';
    });
    CHECK_EQ(m[1], 'r');
}

CASE(between_processes) {
    enter();
    int fd = make("f", "");
    CHECK_OK(ftruncate(fd, 8192));
    char *m = map(fd, 8192, PROT_READ | PROT_WRITE, MAP_SHARED);
    IN_CHILD({
        int own = CHECK_OK(open("f", O_RDWR));
        char *o = map(own, 8192, PROT_READ | PROT_WRITE, MAP_SHARED);
        o[5000] = 'o';
        m[5001] = 'm';
        CHECK_EQ(pwrite(own, "w", 1, 5002), 1);
    });
    CHECK_EQ(memcmp(m + 5000, "omw", 3), 0);
}

static sigjmp_buf back;
static volatile int code;
static void *volatile where;
static void on_bus(int sig, siginfo_t *info, void *context) {
    (void)context;
    code = info->si_code;
    where = info->si_addr;
    siglongjmp(back, sig);
}

static int fault_at(volatile char *p) {
    struct sigaction act = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO};
    sigaction(SIGBUS, &act, NULL);
    sigaction(SIGSEGV, &act, NULL);
    int sig = sigsetjmp(back, 1);
    if (sig == 0) (void)*p;
    return sig;
}

CASE(beyond_the_end) {
    enter();
    int fd = make("f", "short");
    char *m = map(fd, 12288, PROT_READ | PROT_WRITE, MAP_SHARED);
    CHECK_EQ(m[4095], 0);
    CHECK_EQ(fault_at(m + 4096), SIGBUS);
    CHECK_EQ(code, BUS_ADRERR);
    CHECK_EQ(where, m + 4096);
    CHECK_ERRNO(write(CHECK_OK(memfd_create("x", 0)), m + 4096, 10), EFAULT);
    CHECK_OK(ftruncate(fd, 8192));
    CHECK_EQ(fault_at(m + 4096), 0);  // growing makes it reachable
    CHECK_EQ(fault_at(m + 8192), SIGBUS);
    CHECK_EQ(pwrite(fd, "x", 1, 8191), 1);
    CHECK_EQ(m[8191], 'x');
    CHECK_OK(ftruncate(fd, 100));
    CHECK_EQ(fault_at(m + 8191), SIGBUS);  // and cutting takes it away
    CHECK_OK(ftruncate(fd, 8192));
    CHECK_EQ(m[8191], 0);
}

CASE(access_rules) {
    enter();
    CHECK_OK(close(make("f", "text")));
    int ro = CHECK_OK(open("f", O_RDONLY)), wo = CHECK_OK(open("f", O_WRONLY)), ap = CHECK_OK(open("f", O_RDWR | O_APPEND));
    CHECK_ERRNO(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ro, 0), EACCES);
    CHECK_ERRNO(mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, wo, 0), EACCES);
    CHECK_ERRNO(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, wo, 0), EACCES);
    CHECK_MAP(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ap, 0));
    char *m = map(ro, 4096, PROT_READ, MAP_SHARED);
    CHECK_ERRNO(mprotect(m, 4096, PROT_READ | PROT_WRITE), EACCES);
    map(ro, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE)[0] = 'x';
    CHECK_STR(content("f"), "text");
    CHECK_ERRNO(mmap(NULL, 4096, PROT_READ, MAP_SHARED, 999, 0), EBADF);
    CHECK_ERRNO(mmap(NULL, 4096, PROT_READ, MAP_SHARED, ro, 100), EINVAL);
    CHECK_ERRNO(mmap(NULL, 4096, PROT_READ, MAP_SHARED, CHECK_OK(open(".", O_RDONLY)), 0), ENODEV);
    CHECK_ERRNO(mmap(NULL, 0, PROT_READ, MAP_SHARED, ro, 0), EINVAL);
    int pipes[2];
    CHECK_OK(pipe(pipes));
    CHECK_ERRNO(mmap(NULL, 4096, PROT_READ, MAP_SHARED, pipes[0], 0), ENODEV);
}

CASE(mapping_outlives_descriptor_and_name) {
    enter();
    int fd = make("f", "kept");
    char *m = map(fd, 4096, PROT_READ | PROT_WRITE, MAP_SHARED);
    CHECK_OK(close(fd));
    CHECK_OK(unlink("f"));
    CHECK_EQ(memcmp(m, "kept", 4), 0);
    m[0] = 'K';
    IN_CHILD({ m[1] = 'E'; });
    CHECK_EQ(memcmp(m, "KEpt", 4), 0);
    CHECK_OK(msync(m, 4096, MS_ASYNC));
}

CASE(read_into_a_mapping_of_the_same_file) {
    enter();
    int fd = make("f", "0123456789");
    CHECK_OK(ftruncate(fd, 8192));
    char *m = map(fd, 8192, PROT_READ | PROT_WRITE, MAP_SHARED);
    CHECK_EQ(pread(fd, m + 5000, 10, 0), 10);
    CHECK_EQ(memcmp(m + 5000, "0123456789", 10), 0);
    CHECK_EQ(pwrite(fd, m, 10, 6000), 10);
    CHECK_EQ(memcmp(m + 6000, "0123456789", 10), 0);
}

CASE(offsets_and_remaps) {
    enter();
    int fd = make("f", "");
    CHECK_OK(ftruncate(fd, 16 * 4096));
    for (int i = 0; i < 16; i++) CHECK_EQ(pwrite(fd, &i, 4, i * 4096), 4);
    char *m = CHECK_MAP(mmap(NULL, 4 * 4096, PROT_READ, MAP_SHARED, fd, 8 * 4096));
    for (int i = 0; i < 4; i++) CHECK_EQ(*(int *)(m + i * 4096), 8 + i);
    CHECK_MAP(mmap(m + 4096, 4096, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0));
    CHECK_EQ(*(int *)m, 8);
    CHECK_EQ(*(int *)(m + 4096), 0);
    CHECK_EQ(*(int *)(m + 8192), 10);
    CHECK_OK(munmap(m + 4096, 4096));
    char *moved = CHECK_MAP(mremap(m + 8192, 8192, 6 * 4096, MREMAP_MAYMOVE));
    for (int i = 0; i < 6; i++) CHECK_EQ(*(int *)(moved + i * 4096), 10 + i);
}

CASE(times_and_size_after_mapped_writes) {
    enter();
    int fd = make("f", "text");
    struct timespec old[2] = {{1000, 0}, {1000, 0}};
    CHECK_OK(futimens(fd, old));
    char *m = map(fd, 4096, PROT_READ | PROT_WRITE, MAP_SHARED);
    CHECK_EQ(flook(fd).st_mtim.tv_sec, 1000);
    m[0] = 'T';
    CHECK_OK(msync(m, 4096, MS_SYNC));
    CHECK_OK(munmap(m, 4096));
    CHECK_EQ(flook(fd).st_size, 4);
    CHECK_STR(content("f"), "Text");
}

MAIN
