// build: static
// The nodes: /dev/ptmx, /dev/pts, numbers, owners, locks, TIOCGPTPEER, /dev/tty, and their life.
#include "ptys.h"
#include <sys/sysmacros.h>

CASE(device_numbers) {
    open_pair();
    struct stat st;
    CHECK_OK(stat("/dev/ptmx", &st));
    CHECK(S_ISCHR(st.st_mode));
    CHECK_EQ(st.st_rdev, makedev(5, 2));
    CHECK_EQ(st.st_mode & 0666, 0666);
    CHECK_OK(fstat(master, &st));
    CHECK_EQ(st.st_rdev, makedev(5, 2));
    CHECK_OK(fstat(slave, &st));
    CHECK(S_ISCHR(st.st_mode));
    CHECK_EQ(st.st_rdev, makedev(136, pty_number()));
    CHECK_EQ(st.st_uid, geteuid());
    struct stat by_name;
    CHECK_OK(stat(pty_name(), &by_name));
    CHECK_EQ(by_name.st_ino, st.st_ino);
    CHECK_EQ(by_name.st_dev, st.st_dev);
    int mode = st.st_mode & 07777;
    CHECK(mode == 0620 || mode == 0600);  // as the mount says
    CHECK_EQ(st.st_nlink, 1);
    CHECK_OK(stat("/dev/pts", &st));
    CHECK(S_ISDIR(st.st_mode));
    CHECK_EQ(st.st_dev, by_name.st_dev);
    CHECK_OK(stat("/dev/tty", &st));
    CHECK_EQ(st.st_rdev, makedev(5, 0));
}

CASE(node_lives_with_the_master) {
    open_pair();
    char name[32];
    strcpy(name, pty_name());
    CHECK_OK(access(name, F_OK));
    CHECK_OK(close(slave));
    CHECK_OK(access(name, F_OK));
    int copy = CHECK_OK(dup(master));
    CHECK_OK(close(master));
    CHECK_OK(access(name, F_OK));
    CHECK_OK(close(copy));
    CHECK_ERRNO(access(name, F_OK), ENOENT);
    CHECK_ERRNO(open(name, O_RDWR), ENOENT);
}

CASE(numbers_differ) {
    int seen[5], fds[5];
    for (int i = 0; i < 5; i++) {
        open_master();
        fds[i] = master;
        seen[i] = pty_number();
        for (int k = 0; k < i; k++) CHECK_NE(seen[i], seen[k]);
    }
    for (int i = 0; i < 5; i++) CHECK_OK(close(fds[i]));
}

CASE(locked_until_told) {
    master = CHECK_OK(open("/dev/ptmx", O_RDWR | O_NOCTTY));
    int v = -1, on = 1, off = 0;
    CHECK_OK(ioctl(master, TIOCGPTLCK, &v));
    CHECK_EQ(v, 1);
    CHECK_ERRNO(open(pty_name(), O_RDWR | O_NOCTTY), EIO);
    CHECK_ERRNO(ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY), EIO);
    CHECK_OK(ioctl(master, TIOCSPTLCK, &off));
    CHECK_OK(ioctl(master, TIOCGPTLCK, &v));
    CHECK_EQ(v, 0);
    slave = CHECK_OK(open(pty_name(), O_RDWR | O_NOCTTY));
    write_all(slave, "now");
    EXPECT(master, "now");
    CHECK_OK(ioctl(master, TIOCSPTLCK, &on));
    CHECK_OK(ioctl(master, TIOCGPTLCK, &v));
    CHECK_EQ(v, 1);
    CHECK_ERRNO(ioctl(slave, TIOCSPTLCK, &off), ENOTTY);
    CHECK_ERRNO(ioctl(slave, TIOCGPTN, &v), ENOTTY);
    CHECK_ERRNO(ioctl(master, TIOCSPTLCK, nowhere), EFAULT);
    CHECK_ERRNO(ioctl(master, TIOCGPTN, nowhere), EFAULT);
}

CASE(peer_by_descriptor) {
    open_master();
    slave = CHECK_OK(ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
    CHECK_EQ(fcntl(slave, F_GETFD), FD_CLOEXEC);
    CHECK_EQ(fcntl(slave, F_GETFL) & O_ACCMODE, O_RDWR);
    char link[64] = {0}, name[64];
    snprintf(name, sizeof name, "/proc/self/fd/%d", slave);
    CHECK_OK(readlink(name, link, 63));
    CHECK_STR(link, pty_name());
    write_all(slave, "hi");
    EXPECT(master, "hi");
    struct stat st;
    CHECK_OK(fstat(slave, &st));
    CHECK_EQ(st.st_rdev, makedev(136, pty_number()));
}

CASE(several_opens_share_the_terminal) {
    open_pair();
    int second = CHECK_OK(open(pty_name(), O_RDWR | O_NOCTTY));
    local_flags(0, ECHO);
    type("a line\n");
    CHECK_EQ(ready(second, POLLIN, 2000), POLLIN);
    char buf[20];
    CHECK_EQ(read(second, buf, 20), 7);
    quiet(slave);
    CHECK_OK(close(second));
    type("more\n");
    READ("more\n");
    int ro = CHECK_OK(open(pty_name(), O_RDONLY | O_NOCTTY));
    CHECK_ERRNO(write(ro, "x", 1), EBADF);
    int wo = CHECK_OK(open(pty_name(), O_WRONLY | O_NOCTTY));
    CHECK_ERRNO(read(wo, buf, 1), EBADF);
}

CASE(as_files) {
    open_pair();
    char c;
    CHECK_ERRNO(lseek(slave, 0, SEEK_SET), ESPIPE);
    CHECK_ERRNO(lseek(master, 0, SEEK_SET), ESPIPE);
    CHECK_ERRNO(pread(slave, &c, 1, 0), ESPIPE);
    CHECK_ERRNO(ftruncate(slave, 0), EINVAL);
    CHECK_ERRNO(mmap(NULL, 4096, PROT_READ, MAP_SHARED, slave, 0), ENODEV);
    CHECK_ERRNO(fsync(slave), EINVAL);
    CHECK_ERRNO(open(pty_name(), O_RDONLY | O_DIRECTORY), ENOTDIR);
    CHECK_ERRNO(open("/dev/pts/999999", O_RDWR), ENOENT);
    CHECK_ERRNO(open("/dev/pts/new", O_RDWR | O_CREAT, 0644), EACCES);
}

CASE(listed) {
    open_pair();
    char want[16];
    snprintf(want, sizeof want, "%d", pty_number());
    DIR *d = opendir("/dev/pts");
    CHECK(d != NULL);
    int found = 0;
    for (struct dirent *e; (e = readdir(d));) {
        if (strcmp(e->d_name, want)) continue;
        found++;
        CHECK_EQ(e->d_type, DT_CHR);
    }
    CHECK_EQ(found, 1);
    closedir(d);
}

CASE(chmod_and_chown) {
    open_pair();
    struct stat st;
    CHECK_OK(fchmod(slave, 0600));
    CHECK_OK(stat(pty_name(), &st));
    CHECK_EQ(st.st_mode, S_IFCHR | 0600);
    CHECK_OK(chmod(pty_name(), 0622));
    CHECK_OK(fstat(slave, &st));
    CHECK_EQ(st.st_mode, S_IFCHR | 0622);
    if (geteuid() == 0) {
        CHECK_OK(fchown(slave, 65534, 5));
        CHECK_OK(stat(pty_name(), &st));
        CHECK_EQ(st.st_uid, 65534);
        CHECK_EQ(st.st_gid, 5);
    }
}

CASE(dev_tty) {
    open_pair();
    IN_CHILD({
        CHECK_OK(prctl(PR_SET_PDEATHSIG, SIGKILL));
        CHECK_OK(setsid());
        CHECK_ERRNO(open("/dev/tty", O_RDWR), ENXIO);
        int fd = CHECK_OK(open(pty_name(), O_RDWR | O_NOCTTY));
        CHECK_ERRNO(open("/dev/tty", O_RDWR), ENXIO);  // O_NOCTTY kept it from becoming ours
        CHECK_OK(close(fd));
        CHECK_OK(open(pty_name(), O_RDWR));  // without it, it is
        fd = CHECK_OK(open("/dev/tty", O_RDWR));
        write_all(fd, "by tty");
        EXPECT(master, "by tty");
        struct stat st;
        CHECK_OK(fstat(fd, &st));
        CHECK_EQ(st.st_rdev, makedev(5, 0));
        struct termios t;
        CHECK_OK(ioctl(fd, TCGETS, &t));
        type("in\n");
        EXPECT(fd, "in\n");
        char path[32];
        snprintf(path, sizeof path, "/proc/%d/stat", getpid());
        char text[1000] = {0};
        CHECK_OK(read(CHECK_OK(open(path, O_RDONLY)), text, 999));
        int ppid; int pgrp; int session; int tty; int front;
        CHECK_EQ(sscanf(strrchr(text, ')') + 4, "%d %d %d %d %d", &ppid, &pgrp, &session, &tty, &front), 5);
        CHECK_EQ(tty, (int)((136 << 8) | (pty_number() & 0xff) | (pty_number() >> 8 << 20)));
        CHECK_EQ(session, getpid());
        CHECK_EQ(front, getpid());
    });
}

CASE(many_pairs) {
    int fds[60];
    for (int i = 0; i < 30; i++) {
        open_pair();
        fds[2 * i] = master;
        fds[2 * i + 1] = slave;
    }
    write_all(fds[1], "first");
    EXPECT(fds[0], "first");
    write_all(fds[59], "last");
    EXPECT(fds[58], "last");
    for (int i = 0; i < 60; i++) CHECK_OK(close(fds[i]));
}

MAIN
