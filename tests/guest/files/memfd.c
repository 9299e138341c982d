// build: static
// memfd_create and its seals.
#include "tree.h"
#include <linux/memfd.h>

static const int all = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

CASE(a_file_without_a_name) {
    int fd = CHECK_OK(memfd_create("the name", MFD_CLOEXEC));
    CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
    CHECK_EQ(fcntl(fd, F_GETFL), O_RDWR | 0100000);
    struct stat st = flook(fd);
    CHECK_EQ(st.st_mode, S_IFREG | 0777);
    CHECK_EQ(st.st_nlink, 0);
    CHECK_EQ(st.st_size, 0);
    CHECK_EQ(st.st_uid, geteuid());
    CHECK_EQ(write(fd, "text", 4), 4);
    CHECK_OK(ftruncate(fd, 10000));
    char *map = CHECK_MAP(mmap(NULL, 10000, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    CHECK_EQ(memcmp(map, "text", 5), 0);
    map[9999] = 'z';
    char c;
    CHECK_EQ(pread(fd, &c, 1, 9999), 1);
    CHECK_EQ(c, 'z');
    char link[100] = {0};
    CHECK_OK(readlink(proc_fd(fd), link, 99));
    CHECK_STR(link, "/memfd:the name (deleted)");
    int again = CHECK_OK(open(proc_fd(fd), O_RDONLY));
    CHECK_EQ(flook(again).st_ino, st.st_ino);
    CHECK_ERRNO(write(again, "x", 1), EBADF);
    IN_CHILD({ CHECK_EQ(pwrite(fd, "child", 5, 0), 5); });
    CHECK_EQ(memcmp(map, "child", 5), 0);
}

CASE(arguments) {
    char name[260];
    memset(name, 'n', sizeof name);
    name[249] = 0;
    CHECK_OK(memfd_create(name, 0));
    name[249] = 'n';
    name[250] = 0;
    CHECK_ERRNO(memfd_create(name, 0), EINVAL);
    CHECK_OK(memfd_create("", 0));
    CHECK_OK(memfd_create("a/b", 0));
    CHECK_ERRNO(memfd_create("x", 0x20), EINVAL);
    CHECK_ERRNO(memfd_create("x", 0x80000000u), EINVAL);
    CHECK_ERRNO(memfd_create(nowhere, 0), EFAULT);
    CHECK_NE(flook(CHECK_OK(memfd_create("x", 0))).st_ino, flook(CHECK_OK(memfd_create("x", 0))).st_ino);
}

CASE(seals_need_consent) {
    enter();
    int plain = CHECK_OK(memfd_create("x", 0)), open_to = CHECK_OK(memfd_create("x", MFD_ALLOW_SEALING)), f = make("f", "");
    CHECK_EQ(fcntl(plain, F_GET_SEALS), F_SEAL_SEAL);
    CHECK_ERRNO(fcntl(plain, F_ADD_SEALS, F_SEAL_GROW), EPERM);
    CHECK_EQ(fcntl(open_to, F_GET_SEALS), 0);
    CHECK_OK(fcntl(open_to, F_ADD_SEALS, 0));
    CHECK_ERRNO(fcntl(open_to, F_ADD_SEALS, 0x1000), EINVAL);
    CHECK_ERRNO(fcntl(CHECK_OK(open("/dev/null", O_RDWR)), F_GET_SEALS), EINVAL);
    int ro = CHECK_OK(open(proc_fd(open_to), O_RDONLY));
    CHECK_ERRNO(fcntl(ro, F_ADD_SEALS, F_SEAL_GROW), EPERM);
    CHECK_EQ(fcntl(ro, F_GET_SEALS), 0);
    if (fcntl(f, F_GET_SEALS) == -1) CHECK_EQ(errno, EINVAL);
    CHECK_OK(fcntl(open_to, F_ADD_SEALS, F_SEAL_SEAL));
    CHECK_ERRNO(fcntl(open_to, F_ADD_SEALS, F_SEAL_GROW), EPERM);
}

CASE(seal_sizes) {
    int fd = CHECK_OK(memfd_create("x", MFD_ALLOW_SEALING));
    CHECK_OK(ftruncate(fd, 8192));
    CHECK_OK(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
    CHECK_ERRNO(ftruncate(fd, 8191), EPERM);
    CHECK_ERRNO(open(proc_fd(fd), O_RDWR | O_TRUNC), EPERM);
    CHECK_OK(ftruncate(fd, 8192));
    CHECK_OK(ftruncate(fd, 12288));
    CHECK_OK(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW));
    CHECK_EQ(fcntl(fd, F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW);
    CHECK_ERRNO(ftruncate(fd, 12289), EPERM);
    CHECK_ERRNO(pwrite(fd, "x", 1, 12288), EPERM);
    CHECK_ERRNO(fallocate(fd, 0, 0, 20000), EPERM);
    CHECK_EQ(pwrite(fd, "x", 1, 12287), 1);
    CHECK_EQ(flook(fd).st_size, 12288);
}

CASE(seal_writing) {
    int fd = CHECK_OK(memfd_create("x", MFD_ALLOW_SEALING));
    CHECK_EQ(write(fd, "data", 4), 4);
    char *map = CHECK_MAP(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    CHECK_ERRNO(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), EBUSY);  // while somebody can write through a mapping
    CHECK_OK(munmap(map, 4096));
    map = CHECK_MAP(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0));
    CHECK_OK(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
    map[0] = 'D';  // a private copy
    CHECK_ERRNO(write(fd, "x", 1), EPERM);
    CHECK_ERRNO(pwrite(fd, "x", 1, 100), EPERM);
    CHECK_ERRNO(fallocate(fd, 3 /* punch, keep size */, 0, 4096), EPERM);
    CHECK_ERRNO(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), EPERM);
    map = CHECK_MAP(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0));
    CHECK_EQ(memcmp(map, "data", 4), 0);
    CHECK_ERRNO(mprotect(map, 4096, PROT_READ | PROT_WRITE), EACCES);
    CHECK_OK(ftruncate(fd, 100));  // size has its own seals
    CHECK_OK(fcntl(fd, F_ADD_SEALS, all));
    CHECK_EQ(fcntl(fd, F_GET_SEALS) & all, all);
}

CASE(seal_future_writing) {
    int fd = CHECK_OK(memfd_create("x", MFD_ALLOW_SEALING));
    CHECK_OK(ftruncate(fd, 4096));
    char *map = CHECK_MAP(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    CHECK_OK(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE));
    map[0] = 'x';  // those who had it keep it
    char c;
    CHECK_EQ(pread(fd, &c, 1, 0), 1);
    CHECK_EQ(c, 'x');
    CHECK_ERRNO(pwrite(fd, "y", 1, 0), EPERM);
    CHECK_ERRNO(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), EPERM);
    CHECK_MAP(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0));
}

CASE(no_execute) {
    int fd = memfd_create("x", 8 /* MFD_NOEXEC_SEAL */);
    if (fd == -1 && errno == EINVAL) SKIP("no MFD_NOEXEC_SEAL here");
    CHECK_GE(fd, 0);
    CHECK_EQ(flook(fd).st_mode & 0777, 0666);
    CHECK_EQ(fcntl(fd, F_GET_SEALS) & 0x20, 0x20);  // F_SEAL_EXEC; sealing is allowed with it
    CHECK_ERRNO(fchmod(fd, 0777), EPERM);
    CHECK_OK(fchmod(fd, 0600));
    CHECK_ERRNO(memfd_create("x", 8 | 16), EINVAL);
}

CASE(passed_and_executed) {
    int fd = CHECK_OK(memfd_create("prog", MFD_CLOEXEC)), self = CHECK_OK(open("/proc/self/exe", O_RDONLY));
    static char buf[65536];
    for (long n; (n = CHECK_OK(read(self, buf, sizeof buf))) > 0;) CHECK_EQ(write(fd, buf, n), n);
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        char *argv[] = {"prog", "@five", NULL}, *env[] = {NULL};
        syscall(SYS_execveat, fd, "", argv, env, AT_EMPTY_PATH);
        FAIL("execveat %d", errno);
    }
    CHECK_EXIT(pid, 5);
}

HELPER(five) { _exit(5); }

MAIN
