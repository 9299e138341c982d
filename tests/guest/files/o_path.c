// build: static
// O_PATH descriptors: what they refuse, what they allow, and opening them again through /proc/self/fd.
#include "tree.h"
#include <sys/ioctl.h>
#include <sys/statfs.h>
#include <sys/uio.h>

static void fill(void) {
    CHECK_OK(close(make("f", "text")));
    CHECK_OK(mkdir("d", 0755));
    CHECK_OK(symlink("f", "l"));
}

static void prepare(void) {
    enter();
    fill();
}

CASE(refused_operations) {
    prepare();
    int fd = CHECK_OK(open("f", O_PATH | O_RDWR));
    char buf[8];
    struct iovec v = {buf, 1};
    CHECK_ERRNO(read(fd, buf, 1), EBADF);
    CHECK_ERRNO(write(fd, buf, 1), EBADF);
    CHECK_ERRNO(pread(fd, buf, 1, 0), EBADF);
    CHECK_ERRNO(readv(fd, &v, 1), EBADF);
    CHECK_ERRNO(lseek(fd, 0, SEEK_SET), EBADF);
    CHECK_ERRNO(ftruncate(fd, 0), EBADF);
    CHECK_ERRNO(fchmod(fd, 0600), EBADF);
    CHECK_ERRNO(fchown(fd, -1, -1), EBADF);
    CHECK_ERRNO(ioctl(fd, FIONREAD, buf), EBADF);
    CHECK_ERRNO(fsync(fd), EBADF);
    CHECK_ERRNO(fallocate(fd, 0, 0, 1), EBADF);
    CHECK_ERRNO(syscall(SYS_mmap, NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0), EBADF);
    CHECK_ERRNO(fcntl(fd, F_SETFL, O_NONBLOCK), EBADF);
    CHECK_ERRNO(fcntl(fd, F_GETLK, &(struct flock){.l_type = F_RDLCK}), EBADF);
    struct timespec now[2] = {{0, UTIME_NOW}, {0, UTIME_NOW}};
    CHECK_ERRNO(syscall(SYS_utimensat, fd, NULL, now, 0), EBADF);
    int d = CHECK_OK(open("d", O_PATH | O_DIRECTORY));
    CHECK_ERRNO(syscall(SYS_getdents64, d, buf, sizeof buf), EBADF);
    struct pollfd p = {fd, POLLIN, 0};
    CHECK_EQ(poll(&p, 1, 0), 1);
    CHECK_EQ(p.revents, POLLNVAL);
}

CASE(allowed_operations) {
    prepare();
    int fd = CHECK_OK(open("f", O_PATH | O_CLOEXEC)), d = CHECK_OK(open("d", O_PATH));
    struct stat a, b;
    CHECK_OK(fstat(fd, &a));
    CHECK_OK(stat("f", &b));
    CHECK_EQ(a.st_ino, b.st_ino);
    CHECK_EQ(a.st_size, 4);
    struct statfs sf;
    CHECK_OK(fstatfs(fd, &sf));
    CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
    CHECK_OK(fcntl(fd, F_SETFD, 0));
    CHECK_EQ(fcntl(fd, F_GETFL), O_PATH);
    // All but O_PATH, O_DIRECTORY, O_NOFOLLOW and O_CLOEXEC is dropped.
    int e = CHECK_OK(open("f", O_PATH | O_RDWR | O_CREAT | O_EXCL | O_TRUNC | O_APPEND | O_NONBLOCK | O_NOFOLLOW));
    CHECK_EQ(fcntl(e, F_GETFL), O_PATH | O_NOFOLLOW);
    CHECK_OK(stat("f", &b));
    CHECK_EQ(b.st_size, 4);
    CHECK_OK(dup(fd));
    CHECK_OK(dup2(fd, 90));
    CHECK_OK(fcntl(fd, F_DUPFD, 91));
    CHECK_OK(fstatat(d, "..", &b, 0));
    CHECK_OK(openat(d, "../f", O_RDONLY));
    CHECK_OK(fchdir(d));
    char cwd[400];
    CHECK_OK(syscall(SYS_getcwd, cwd, sizeof cwd));
    CHECK_STR(strrchr(cwd, '/'), "/d");
    CHECK_OK(fstatat(fd, "", &b, AT_EMPTY_PATH));
    CHECK_EQ(a.st_ino, b.st_ino);
    CHECK_OK(syscall(SYS_faccessat2, fd, "", R_OK, AT_EMPTY_PATH));
    CHECK_OK(close(fd));
}

CASE(symlink_itself) {
    prepare();
    int fd = CHECK_OK(open("l", O_PATH | O_NOFOLLOW));
    struct stat st;
    CHECK_OK(fstat(fd, &st));
    CHECK(S_ISLNK(st.st_mode));
    char buf[10] = {0};
    CHECK_EQ(readlinkat(fd, "", buf, sizeof buf), 1);
    CHECK_STR(buf, "f");
    CHECK_ERRNO(open("l", O_PATH | O_NOFOLLOW | O_DIRECTORY), ENOTDIR);
    CHECK_ERRNO(openat(fd, "x", O_RDONLY), ENOTDIR);
    // Opening it again reaches a symlink, which cannot be opened.
    CHECK_ERRNO(open(proc_fd(fd), O_RDONLY), ELOOP);
    int again = CHECK_OK(open(proc_fd(fd), O_PATH));
    CHECK_OK(fstat(again, &st));
    CHECK(S_ISLNK(st.st_mode));
    // On something that is no symlink an empty readlinkat fails.
    fd = CHECK_OK(open("f", O_PATH));
    CHECK_ERRNO(readlinkat(fd, "", buf, sizeof buf), ENOENT);
}

CASE(reopen_through_proc) {
    prepare();
    int p = CHECK_OK(open("f", O_PATH));
    int fd = CHECK_OK(open(proc_fd(p), O_RDWR));
    char buf[8];
    CHECK_EQ(read(fd, buf, 8), 4);
    // A new description: its offset is its own.
    int other = CHECK_OK(open(proc_fd(fd), O_RDONLY));
    CHECK_EQ(lseek(other, 0, SEEK_CUR), 0);
    CHECK_OK(unlink("f"));
    other = CHECK_OK(open(proc_fd(p), O_RDONLY | O_TRUNC));
    struct stat st;
    CHECK_OK(fstat(fd, &st));
    CHECK_EQ(st.st_size, 0);
    CHECK_EQ(st.st_nlink, 0);
    int ro = CHECK_OK(open(proc_fd(p), O_RDONLY));
    CHECK_OK(open(proc_fd(ro), O_WRONLY));  // permission is asked of the inode, not of the descriptor
    CHECK_ERRNO(open(proc_fd(999), O_RDONLY), ENOENT);
    CHECK_ERRNO(open(proc_fd(ro), O_RDONLY | O_NOFOLLOW), ELOOP);
    CHECK_ERRNO(open(proc_fd(ro), O_RDONLY | O_CREAT | O_EXCL, 0600), EEXIST);
    CHECK_OK(fchmod(fd, 0));
    if (geteuid() != 0) CHECK_ERRNO(open(proc_fd(p), O_RDONLY), EACCES);
}

CASE(needs_search_not_read) {
    enter_as_user();
    fill();
    CHECK_OK(chmod("f", 0));
    CHECK_OK(chmod("d", 0));
    CHECK_OK(open("f", O_PATH));
    int d = CHECK_OK(open("d", O_PATH));
    CHECK_ERRNO(openat(d, "x", O_RDONLY), EACCES);
    CHECK_ERRNO(fchdir(d), EACCES);
    CHECK_ERRNO(open("d/x", O_PATH), EACCES);
    CHECK_OK(chmod("d", 0755));
}

CASE(chmod_and_exec_by_descriptor) {
    prepare();
    int p = CHECK_OK(open("f", O_PATH));
    struct stat st;
    CHECK_OK(chmod(proc_fd(p), 0604));
    CHECK_OK(fstat(p, &st));
    CHECK_EQ(st.st_mode & 07777, 0604);
    CHECK_OK(syscall(452 /* fchmodat2 */, p, "", 0640, AT_EMPTY_PATH));
    CHECK_OK(fstat(p, &st));
    CHECK_EQ(st.st_mode & 07777, 0640);
    CHECK_OK(fchownat(p, "", geteuid(), getegid(), AT_EMPTY_PATH));
    int self = CHECK_OK(open("/proc/self/exe", O_PATH));
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        char *argv[] = {(char *)check_self, "@seven", NULL}, *env[] = {NULL};
        syscall(SYS_execveat, self, "", argv, env, AT_EMPTY_PATH);
        FAIL("execveat: %d", errno);
    }
    CHECK_EXIT(pid, 7);
}

HELPER(seven) { _exit(7); }

CASE(special_files_are_not_opened) {
    prepare();
    CHECK_OK(mkfifo("p", 0600));
    int p = CHECK_OK(open("p", O_PATH));  // would block without O_PATH
    struct stat st;
    CHECK_OK(fstat(p, &st));
    CHECK(S_ISFIFO(st.st_mode));
    int r = CHECK_OK(open(proc_fd(p), O_RDONLY | O_NONBLOCK)), w = CHECK_OK(open("p", O_WRONLY));
    char c;
    CHECK_EQ(write(w, "x", 1), 1);
    CHECK_EQ(read(r, &c, 1), 1);
    int null = CHECK_OK(open("/dev/null", O_PATH));
    CHECK_OK(fstat(null, &st));
    CHECK(S_ISCHR(st.st_mode));
    CHECK_ERRNO(write(null, "x", 1), EBADF);
}

MAIN
