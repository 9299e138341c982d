// build: static
// /proc/PID/fd and fdinfo: the links' texts, their modes, opening them again, listing.
#include "procs.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

static const char *name_of(int fd) {
    static char name[40];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    return name;
}
static const char *text_of(int fd) { return link_of(name_of(fd)); }

static unsigned long inode(int fd) {
    struct stat st;
    CHECK_OK(fstat(fd, &st));
    return st.st_ino;
}

CASE(files) {
    char want[600];
    int fd = CHECK_OK(open(TMP("f"), O_RDWR | O_CREAT, 0644));
    CHECK_STR(text_of(fd), TMP("f"));
    CHECK_OK(rename(TMP("f"), TMP("g")));
    CHECK_STR(text_of(fd), TMP("g"));
    CHECK_OK(link(TMP("g"), TMP("h")));
    CHECK_OK(unlink(TMP("g")));
    snprintf(want, sizeof want, "%s (deleted)", TMP("g"));
    CHECK_STR(text_of(fd), want);  // the name it was opened by, though another is left
    int d = CHECK_OK(open("/usr/../usr/bin/.", O_RDONLY));
    CHECK_STR(text_of(d), "/usr/bin");
    CHECK_STR(text_of(CHECK_OK(open("/", O_PATH))), "/");
    CHECK_STR(text_of(CHECK_OK(open("/dev/null", O_RDONLY))), "/dev/null");
    CHECK_OK(symlink("h", TMP("l")));
    CHECK_STR(text_of(CHECK_OK(open(TMP("l"), O_RDONLY))), TMP("h"));
    CHECK_STR(text_of(CHECK_OK(open(TMP("l"), O_PATH | O_NOFOLLOW))), TMP("l"));
    snprintf(want, sizeof want, "/proc/%d/stat", getpid());
    CHECK_STR(text_of(CHECK_OK(open("/proc/self/stat", O_RDONLY))), want);
}

CASE(without_names) {
    char want[64];
    int p[2], s[2];
    CHECK_OK(pipe(p));
    snprintf(want, sizeof want, "pipe:[%lu]", inode(p[0]));
    CHECK_STR(text_of(p[0]), want);
    CHECK_STR(text_of(p[1]), want);
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    snprintf(want, sizeof want, "socket:[%lu]", inode(s[0]));
    CHECK_STR(text_of(s[0]), want);
    CHECK_STR(text_of(CHECK_OK(memfd_create("mem", 0))), "/memfd:mem (deleted)");
    CHECK_STR(text_of(CHECK_OK(eventfd(0, 0))), "anon_inode:[eventfd]");
    CHECK_STR(text_of(CHECK_OK(epoll_create1(0))), "anon_inode:[eventpoll]");
    CHECK_STR(text_of(CHECK_OK(timerfd_create(CLOCK_MONOTONIC, 0))), "anon_inode:[timerfd]");
    sigset_t set;
    sigemptyset(&set);
    CHECK_STR(text_of(CHECK_OK(signalfd(-1, &set, 0))), "anon_inode:[signalfd]");
    int t = open(TMP("."), O_TMPFILE | O_RDWR, 0600);
    if (t >= 0) CHECK(strstr(text_of(t), " (deleted)") != NULL);
}

CASE(links_themselves) {
    int r = CHECK_OK(open("/dev/null", O_RDONLY)), w = CHECK_OK(open("/dev/null", O_WRONLY)), rw = CHECK_OK(open("/dev/null", O_RDWR));
    struct stat st;
    CHECK_OK(lstat(name_of(r), &st));
    CHECK_EQ(st.st_mode, S_IFLNK | 0500);
    CHECK_EQ(st.st_size, 64);
    CHECK_EQ(st.st_uid, geteuid());
    CHECK_OK(lstat(name_of(w), &st));
    CHECK_EQ(st.st_mode, S_IFLNK | 0300);
    CHECK_OK(lstat(name_of(rw), &st));
    CHECK_EQ(st.st_mode, S_IFLNK | 0700);
    CHECK_OK(stat(name_of(rw), &st));
    CHECK(S_ISCHR(st.st_mode));
    CHECK_ERRNO(lstat("/proc/self/fd/999", &st), ENOENT);
    CHECK_ERRNO(lstat("/proc/self/fd/x", &st), ENOENT);
    CHECK_ERRNO(lstat("/proc/self/fd/-1", &st), ENOENT);
    CHECK_ERRNO(lstat("/proc/self/fd/00", &st), ENOENT);
    CHECK_ERRNO(unlink(name_of(r)), EPERM);
    CHECK_ERRNO(mkdir("/proc/self/fd/x", 0755), ENOENT);
    CHECK_ERRNO(readlink("/proc/self/fd", (char *)&st, 10), EINVAL);
    char buf[8];
    int bin = CHECK_OK(open("/usr/bin", O_RDONLY));
    CHECK_EQ(readlink(name_of(bin), buf, 4), 4);
    CHECK_EQ(memcmp(buf, "/usr", 4), 0);
}

CASE(listing) {
    CHECK_OK(syscall(SYS_close_range, 3, 199, 0));
    int a = CHECK_OK(dup2(2, 77)), seen[3] = {0};
    DIR *d = opendir("/proc/self/fd");
    CHECK(d != NULL);
    int total = 0;
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.') continue;
        int n = atoi(e->d_name);
        CHECK_EQ(e->d_type, DT_LNK);
        CHECK_OK(fcntl(n, F_GETFD));
        seen[0] += n == a, seen[1] += n == dirfd(d), seen[2] += n == CHECK_FD;
        total++;
    }
    CHECK_EQ(seen[0] + seen[1] + seen[2], 3);
    closedir(d);
    struct stat st;
    CHECK_OK(stat("/proc/self/fd", &st));
    CHECK_EQ(st.st_mode, S_IFDIR | 0500);
    CHECK_EQ(st.st_size, total - 1);  // since 6.2 the number of descriptors; the listing itself had one more
}

CASE(opening_again) {
    int fd = CHECK_OK(open(TMP("f"), O_RDWR | O_CREAT, 0600));
    CHECK_EQ(write(fd, "text", 4), 4);
    int again = CHECK_OK(open(name_of(fd), O_RDONLY));
    char buf[8];
    CHECK_EQ(read(again, buf, 8), 4);
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), 4);
    CHECK_EQ(fcntl(again, F_GETFL) & O_ACCMODE, O_RDONLY);
    CHECK_OK(unlink(TMP("f")));
    again = CHECK_OK(open(name_of(fd), O_WRONLY | O_APPEND));
    CHECK_EQ(write(again, "more", 4), 4);
    CHECK_EQ(pread(fd, buf, 8, 0), 8);
    int p[2];
    CHECK_OK(pipe(p));
    int other = CHECK_OK(open(name_of(p[0]), O_WRONLY));
    CHECK_EQ(write(other, "x", 1), 1);
    CHECK_EQ(read(p[0], buf, 8), 1);
    int s[2];
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
    CHECK_ERRNO(open(name_of(s[0]), O_RDWR), ENXIO);
    CHECK_ERRNO(open(name_of(CHECK_OK(eventfd(0, 0))), O_RDWR), geteuid() == 0 ? ENXIO : EACCES);
    int d = CHECK_OK(open("/usr", O_RDONLY));
    char path[60];
    snprintf(path, sizeof path, "%s/bin/env", name_of(d));
    CHECK_OK(access(path, X_OK));  // through a directory's link
    snprintf(path, sizeof path, "%s/..", name_of(d));
    struct stat a, b;
    CHECK_OK(stat(path, &a));
    CHECK_OK(stat("/", &b));
    CHECK_EQ(a.st_ino, b.st_ino);
}

CASE(of_another_process) {
    int p[2];
    CHECK_OK(pipe(p));
    CHECK_OK(dup2(p[1], 88));
    pid_t pid = sleeper();
    CHECK_OK(close(88));
    CHECK_OK(close(p[1]));
    int w = CHECK_OK(open(of_pid(pid, "fd/88"), O_WRONLY));
    CHECK_EQ(write(w, "x", 1), 1);
    char c;
    CHECK_EQ(read(p[0], &c, 1), 1);
    CHECK(strstr(link_of(of_pid(pid, "fd/88")), "pipe:[") != NULL);
    end(pid);
    CHECK_ERRNO(open(of_pid(pid, "fd/88"), O_WRONLY), ENOENT);
    CHECK_OK(close(w));
    CHECK_EQ(read(p[0], &c, 1), 0);  // looking has kept nothing open
}

CASE(info) {
    char name[64];
    int fd = CHECK_OK(open(TMP("f"), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    CHECK_EQ(write(fd, "0123456789", 10), 10);
    CHECK_EQ(lseek(fd, 7, SEEK_SET), 7);
    snprintf(name, sizeof name, "/proc/self/fdinfo/%d", fd);
    char *text = slurp(name);
    CHECK_EQ(number(text, "pos"), 7);
    CHECK_EQ(strtol(field(text, "flags"), NULL, 8), O_RDWR | O_APPEND | O_CLOEXEC | 0100000);
    CHECK_GT(number(text, "mnt_id"), 0);
    struct stat st;
    CHECK_OK(fstat(fd, &st));
    CHECK_EQ(number(text, "ino"), st.st_ino);
    int e = CHECK_OK(eventfd(0x2a, 0));
    snprintf(name, sizeof name, "/proc/self/fdinfo/%d", e);
    CHECK_EQ(strtol(field(slurp(name), "eventfd-count"), NULL, 16), 0x2a);
    CHECK_ERRNO(open("/proc/self/fdinfo/999", O_RDONLY), ENOENT);
}

MAIN
