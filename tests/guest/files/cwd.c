// build: static
// chdir, fchdir, getcwd, chroot, statfs.
#include "tree.h"
#include <linux/magic.h>
#include <sys/statfs.h>

static const char *cwd(void) {
    static char path[4200];
    long n = CHECK_OK(syscall(SYS_getcwd, path, sizeof path));
    CHECK_EQ(n, strlen(path) + 1);  // the raw call counts the zero
    return path;
}

CASE(chdir_and_getcwd) {
    enter();
    char top[400], want[500];
    strcpy(top, cwd());
    CHECK_EQ(top[0], '/');
    CHECK_OK(mkdir("a", 0755));
    CHECK_OK(mkdir("a/b", 0755));
    CHECK_OK(symlink("a/b", "l"));
    CHECK_OK(chdir("l"));
    snprintf(want, sizeof want, "%s/a/b", top);
    CHECK_STR(cwd(), want);  // physical, not by the link's name
    CHECK_OK(chdir(".."));
    CHECK_STR(strrchr(cwd(), '/'), "/a");
    CHECK_OK(chdir("./b/../../a//b/."));
    CHECK_STR(cwd(), want);
    CHECK_OK(chdir("/"));
    CHECK_STR(cwd(), "/");
    CHECK_OK(chdir("/usr/../proc/.."));
    CHECK_STR(cwd(), "/");
    CHECK_OK(chdir("/proc/self"));
    snprintf(want, sizeof want, "/proc/%d", getpid());
    CHECK_STR(cwd(), want);
}

CASE(getcwd_buffer) {
    CHECK_OK(chdir("/usr/bin"));
    char buf[16];
    memset(buf, '#', sizeof buf);
    CHECK_ERRNO(syscall(SYS_getcwd, buf, 8), ERANGE);
    CHECK_EQ(syscall(SYS_getcwd, buf, 9), 9);
    CHECK_STR(buf, "/usr/bin");
    CHECK_EQ(buf[9], '#');
    CHECK_ERRNO(syscall(SYS_getcwd, buf, 0), ERANGE);
    CHECK_ERRNO(syscall(SYS_getcwd, nowhere, 100), EFAULT);
}

CASE(errors) {
    enter();
    make("f", "");
    CHECK_ERRNO(chdir("f"), ENOTDIR);
    CHECK_ERRNO(chdir("none"), ENOENT);
    CHECK_ERRNO(chdir(nowhere), EFAULT);
    CHECK_ERRNO(fchdir(999), EBADF);
    CHECK_ERRNO(fchdir(CHECK_OK(open("f", O_RDONLY))), ENOTDIR);
    int pipes[2];
    CHECK_OK(pipe(pipes));
    CHECK_ERRNO(fchdir(pipes[0]), ENOTDIR);
    int d = CHECK_OK(open("/usr", O_RDONLY));
    CHECK_OK(fchdir(d));
    CHECK_STR(cwd(), "/usr");
}

CASE(belongs_to_the_process) {
    CHECK_OK(chdir("/usr"));
    IN_CHILD({
        CHECK_STR(cwd(), "/usr");
        CHECK_OK(chdir("/etc"));
    });
    CHECK_STR(cwd(), "/usr");
}

CASE(search_permission) {
    enter_as_user();
    CHECK_OK(mkdir("d", 0755));
    int d = CHECK_OK(open("d", O_RDONLY));
    CHECK_OK(chmod("d", 0600));
    CHECK_ERRNO(chdir("d"), EACCES);
    CHECK_ERRNO(fchdir(d), EACCES);
    CHECK_OK(chmod("d", 0100));
    CHECK_OK(chdir("d"));
    CHECK_OK(access("..", F_OK));
}

CASE(chroot_confines) {
    NEED_ROOT();
    enter();
    CHECK_OK(mkdir("root", 0755));
    CHECK_OK(mkdir("root/sub", 0755));
    CHECK_OK(close(make("root/f", "inside")));
    CHECK_OK(close(make("outside", "outside")));
    CHECK_OK(symlink("/f", "root/abs"));
    CHECK_OK(symlink("/../../../f", "root/sub/up"));
    int before = CHECK_OK(open(".", O_RDONLY));
    ino_t root = look("root").st_ino;
    CHECK_OK(chroot("root"));
    CHECK_EQ(look("/").st_ino, root);
    CHECK_EQ(look("/..").st_ino, root);
    CHECK_STR(content("/abs"), "inside");
    CHECK_STR(content("/sub/up"), "inside");
    CHECK_STR(content("/sub/../../../f"), "inside");
    CHECK_ERRNO(access("/etc/passwd", F_OK), ENOENT);
    // The working directory stayed outside: it cannot be named, and leads out, as on Linux.
    char buf[400];
    long n = CHECK_OK(syscall(SYS_getcwd, buf, sizeof buf));
    CHECK_EQ(memcmp(buf, "(unreachable)/", 14), 0);
    CHECK_EQ(n, strlen(buf) + 1);
    CHECK_STR(content("outside"), "outside");
    CHECK_OK(chdir("/sub"));
    CHECK_STR(cwd(), "/sub");
    CHECK_OK(chdir("/"));
    CHECK_STR(cwd(), "/");
    CHECK_OK(chdir(".."));
    CHECK_EQ(look(".").st_ino, root);
    CHECK_OK(faccessat(before, "outside", F_OK, 0));
    IN_CHILD({ CHECK_EQ(look("/").st_ino, root); });
}

CASE(chroot_errors) {
    NEED_ROOT();
    enter();
    make("f", "");
    CHECK_ERRNO(chroot("none"), ENOENT);
    CHECK_ERRNO(chroot("f"), ENOTDIR);
    CHECK_ERRNO(chroot(nowhere), EFAULT);
    be_user();
    CHECK_ERRNO(chroot("."), EPERM);
    CHECK_ERRNO(chroot("none"), ENOENT);
}

CASE(chroot_is_not_for_users) {
    NEED_USER();
    CHECK_ERRNO(chroot("/"), EPERM);
    CHECK_ERRNO(chroot("/none"), ENOENT);
}

CASE(statfs_fields) {
    enter();
    int fd = make("f", "");
    struct statfs a, b;
    CHECK_OK(statfs(".", &a));
    CHECK_OK(fstatfs(fd, &b));
    CHECK_EQ(a.f_type, b.f_type);
    CHECK_EQ(a.f_bsize, b.f_bsize);
    CHECK_GT(a.f_bsize, 0);
    CHECK_GT(a.f_frsize, 0);
    CHECK_EQ(a.f_namelen, 255);
    CHECK_GE(a.f_blocks, a.f_bfree);
    CHECK_GE(a.f_bfree, a.f_bavail);
    CHECK_GT(a.f_bavail, 0);
    CHECK_GE(a.f_files, a.f_ffree);
    CHECK_OK(statfs("/proc", &a));
    CHECK_EQ(a.f_type, PROC_SUPER_MAGIC);
    CHECK_EQ(a.f_bsize, 4096);
    CHECK_EQ(a.f_blocks, 0);
    CHECK_OK(statfs("/proc/self/stat", &a));
    CHECK_EQ(a.f_type, PROC_SUPER_MAGIC);
    CHECK_OK(statfs("/dev/pts", &a));
    CHECK_EQ(a.f_type, DEVPTS_SUPER_MAGIC);
    int pipes[2];
    CHECK_OK(pipe(pipes));
    CHECK_OK(fstatfs(pipes[0], &a));
    CHECK_EQ(a.f_type, PIPEFS_MAGIC);
    int m = CHECK_OK(memfd_create("m", 0));
    CHECK_OK(fstatfs(m, &a));
    CHECK_EQ(a.f_type, TMPFS_MAGIC);
    CHECK_ERRNO(statfs("none", &a), ENOENT);
    CHECK_ERRNO(statfs("f/x", &a), ENOTDIR);
    CHECK_ERRNO(statfs(".", nowhere), EFAULT);
    CHECK_ERRNO(fstatfs(999, &a), EBADF);
}

MAIN
