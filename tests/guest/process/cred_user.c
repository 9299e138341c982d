// build: static
// run: user-only
// Credentials of an unprivileged user: what is refused, and what is allowed all the same.
#include "clone.h"
#include <linux/capability.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/time.h>

CASE(own_ids_may_be_set) {
    NEED_USER();
    uid_t u = getuid();
    gid_t g = getgid();
    CHECK_OK(syscall(SYS_setuid, u));
    CHECK_OK(syscall(SYS_setresuid, u, u, u));
    CHECK_OK(syscall(SYS_setreuid, u, u));
    CHECK_OK(syscall(SYS_setresgid, g, g, g));
    CHECK_OK(syscall(SYS_setregid, g, g));
    CHECK_OK(syscall(SYS_setgid, g));
    CHECK_ERRNO(syscall(SYS_setuid, 0), EPERM);
    CHECK_ERRNO(syscall(SYS_setuid, u + 1), EPERM);
    CHECK_ERRNO(syscall(SYS_setresuid, -1, 0, -1), EPERM);
    CHECK_ERRNO(syscall(SYS_setreuid, 0, -1), EPERM);
    CHECK_ERRNO(syscall(SYS_setgid, 0), EPERM);
    CHECK_ERRNO(syscall(SYS_setresgid, -1, -1, 0), EPERM);
    CHECK_ERRNO(syscall(SYS_setuid, -1), EINVAL);
    CHECK_ERRNO(syscall(SYS_setgid, -1), EINVAL);
    gid_t none = 0;
    CHECK_ERRNO(syscall(SYS_setgroups, 1, &none), EPERM);
    CHECK_ERRNO(syscall(SYS_setgroups, 0, NULL), EPERM);
    CHECK_EQ(setfsuid(0), u);
    CHECK_EQ(setfsuid(-1), u);  // refused in silence
}

CASE(no_capabilities) {
    NEED_USER();
    unsigned h[2] = {_LINUX_CAPABILITY_VERSION_3, 0}, d[6];
    CHECK_OK(syscall(SYS_capget, h, d));
    CHECK_EQ(d[0] | d[1] | d[3] | d[4], 0);
    CHECK_OK(syscall(SYS_capset, h, d));
    d[0] = d[1] = 1;
    CHECK_ERRNO(syscall(SYS_capset, h, d), EPERM);
    d[0] = d[1] = 0;
    d[2] = 1;
    CHECK_ERRNO(syscall(SYS_capset, h, d), EPERM);
}

CASE(signals_to_root_are_refused) {
    NEED_USER();
    CHECK_ERRNO(kill(-1, 65), EINVAL);
    if (!foreign_init()) SKIP("pid 1 is not another user's");
    CHECK_ERRNO(kill(1, 0), EPERM);
    CHECK_ERRNO(kill(1, SIGTERM), EPERM);
}

CASE(privileged_calls) {
    NEED_USER();
    CHECK_ERRNO(mount("none", "/mnt", "tmpfs", 0, NULL), EPERM);
    CHECK_ERRNO(umount2("/proc", 0), EPERM);
    CHECK_ERRNO(chroot("/"), EPERM);
    CHECK_ERRNO(syscall(SYS_reboot, 0xfee1dead, 672274793, 0x89abcdef, NULL), EPERM);
    CHECK_ERRNO(syscall(SYS_swapon, "/tmp", 0), EPERM);
    CHECK_ERRNO(syscall(SYS_acct, "/tmp/x"), EPERM);
    CHECK_ERRNO(syscall(SYS_vhangup), EPERM);
    CHECK_ERRNO(syscall(SYS_unshare, CLONE_NEWNS), EPERM);
    CHECK_ERRNO(mknod(TMP("dev"), S_IFCHR | 0600, 0x103), EPERM);
    CHECK_OK(mknod(TMP("fifo"), S_IFIFO | 0600, 0));
    CHECK_OK(mknod(TMP("reg"), S_IFREG | 0600, 0));
    struct timeval now;
    gettimeofday(&now, NULL);
    CHECK_ERRNO(settimeofday(&now, NULL), EPERM);
}

CASE(file_ownership) {
    NEED_USER();
    const char *path = TMP("mine");
    int fd = CHECK_OK(open(path, O_RDWR | O_CREAT, 0600));
    CHECK_OK(fchown(fd, getuid(), getgid()));
    CHECK_OK(fchown(fd, -1, -1));
    CHECK_ERRNO(fchown(fd, 0, -1), EPERM);
    CHECK_ERRNO(fchown(fd, -1, 0), EPERM);
    CHECK_ERRNO(chmod("/", 0777), EPERM);
    CHECK_ERRNO(chown("/", getuid(), -1), EPERM);
    CHECK_ERRNO(mkdir("/not-by-me", 0700), EACCES);
}

CASE(access_checks_apply) {
    NEED_USER();
    const char *path = TMP("closed");
    int fd = CHECK_OK(open(path, O_RDWR | O_CREAT, 0600));
    CHECK_OK(fchmod(fd, 0));
    CHECK_ERRNO(open(path, O_RDONLY), EACCES);
    CHECK_ERRNO(access(path, R_OK), EACCES);
    CHECK_OK(access(path, F_OK));
    CHECK_OK(fchmod(fd, 0200));
    CHECK_OK(open(path, O_WRONLY));
    CHECK_ERRNO(open(path, O_RDONLY), EACCES);
    CHECK_ERRNO(access(path, X_OK), EACCES);
}

CASE(ids_in_proc) {
    NEED_USER();
    char text[4096] = "", want[64];
    int fd = CHECK_OK(open("/proc/self/status", O_RDONLY));
    CHECK_GT(read(fd, text, sizeof text - 1), 0);
    snprintf(want, sizeof want, "\nUid:\t%d\t%d\t%d\t%d\n", getuid(), geteuid(), getuid(), getuid());
    CHECK(strstr(text, want) != NULL);
    CHECK(strstr(text, "\nCapEff:\t0000000000000000\n") != NULL);
}

MAIN
