// build: static
// chmod and chown: who may, what they clear, symlinks, and the set-id bits on writing.
#include "tree.h"

#define FCHMODAT2 452

static unsigned mode_of(const char *name) { return look(name).st_mode & 07777; }

CASE(chmod_ways) {
    enter();
    int fd = make("f", "");
    CHECK_OK(symlink("f", "l"));
    CHECK_OK(chmod("f", 0612));
    CHECK_EQ(mode_of("f"), 0612);
    CHECK_OK(fchmod(fd, 0400));
    CHECK_EQ(mode_of("f"), 0400);
    CHECK_OK(syscall(SYS_fchmodat, AT_FDCWD, "l", 0444));  // follows
    CHECK_EQ(mode_of("f"), 0444);
    CHECK_OK(chmod("f", 0170000 | 0640));  // only twelve bits count
    CHECK_EQ(look("f").st_mode, S_IFREG | 0640);
    CHECK_OK(syscall(FCHMODAT2, fd, "", 0600, AT_EMPTY_PATH));
    CHECK_EQ(mode_of("f"), 0600);
    CHECK_OK(syscall(FCHMODAT2, AT_FDCWD, "f", 0601, AT_SYMLINK_NOFOLLOW));
    CHECK_EQ(mode_of("f"), 0601);
    CHECK_ERRNO(syscall(FCHMODAT2, AT_FDCWD, "l", 0600, AT_SYMLINK_NOFOLLOW), EOPNOTSUPP);
    CHECK_EQ(mode_of("f"), 0601);
    CHECK_ERRNO(syscall(FCHMODAT2, AT_FDCWD, "f", 0600, AT_REMOVEDIR), EINVAL);
    CHECK_ERRNO(syscall(FCHMODAT2, fd, "", 0600, 0), ENOENT);
    CHECK_ERRNO(chmod("none", 0600), ENOENT);
    CHECK_ERRNO(chmod("f/x", 0600), ENOTDIR);
    CHECK_ERRNO(chmod(nowhere, 0600), EFAULT);
    CHECK_ERRNO(fchmod(999, 0600), EBADF);
    CHECK_OK(mkdir("d", 0755));
    CHECK_OK(chmod("d", 07777));
    CHECK_EQ(look("d").st_mode, S_IFDIR | 07777);
}

CASE(chmod_takes_effect_at_open) {
    enter_as_user();
    int fd = make("f", "x");
    CHECK_OK(chmod("f", 0));
    CHECK_ERRNO(open("f", O_RDONLY), EACCES);
    char c;
    CHECK_EQ(pread(fd, &c, 1, 0), 1);  // what is open stays open
    CHECK_EQ(pwrite(fd, "y", 1, 0), 1);
    CHECK_ERRNO(open(proc_fd(fd), O_RDONLY), EACCES);
    CHECK_OK(chmod("f", 0400));
    CHECK_OK(open("f", O_RDONLY));
    CHECK_ERRNO(open("f", O_RDWR), EACCES);
}

CASE(only_the_owner_changes_modes) {
    NEED_ROOT();
    enter();
    int fd = make("f", "");
    CHECK_OK(chmod("f", 0666));
    CHECK_OK(close(make("theirs", "")));
    CHECK_OK(chown("theirs", 65534, 0));
    IN_CHILD({
        be_user();
        CHECK_ERRNO(chmod("f", 0777), EPERM);
        CHECK_ERRNO(fchmod(fd, 0777), EPERM);
        CHECK_OK(chmod("theirs", 0600));
        CHECK_OK(chmod("theirs", 02770));  // of a foreign group: the set-group-id bit is dropped, not refused
        CHECK_EQ(mode_of("theirs"), 0770);
        CHECK_OK(chmod("theirs", 04770));
        CHECK_EQ(mode_of("theirs"), 04770);
    });
}

CASE(chown_by_root) {
    NEED_ROOT();
    enter();
    int fd = make("f", "");
    CHECK_OK(symlink("f", "l"));
    CHECK_OK(chown("f", 1000, 2000));
    CHECK_EQ(look("f").st_uid, 1000);
    CHECK_EQ(look("f").st_gid, 2000);
    CHECK_OK(chown("f", -1, 3000));
    CHECK_EQ(look("f").st_uid, 1000);
    CHECK_EQ(look("f").st_gid, 3000);
    CHECK_OK(fchown(fd, 4000, -1));
    CHECK_EQ(look("f").st_uid, 4000);
    CHECK_EQ(look("f").st_gid, 3000);
    CHECK_OK(lchown("l", 5, 6));
    CHECK_EQ(look("l").st_uid, 5);
    CHECK_EQ(look("l").st_gid, 6);
    CHECK_EQ(look("f").st_uid, 4000);
    CHECK_OK(chown("l", 7, 8));
    CHECK_EQ(look("f").st_uid, 7);
    CHECK_OK(fchownat(fd, "", 9, 10, AT_EMPTY_PATH));
    CHECK_EQ(look("f").st_gid, 10);
    CHECK_OK(fchownat(AT_FDCWD, "l", 11, 12, AT_SYMLINK_NOFOLLOW));
    CHECK_EQ(look("l").st_uid, 11);
    CHECK_OK(chown("f", 0x7ffffffe, 0x80000001));
    CHECK_EQ(look("f").st_uid, 0x7ffffffe);
    CHECK_EQ(look("f").st_gid, 0x80000001);
    CHECK_OK(mkdir("d", 0755));
    CHECK_OK(chown("d", 33, 44));
    CHECK_EQ(look("d").st_uid, 33);
    CHECK_OK(close(make("d/f", "")));
    CHECK_EQ(look("d/f").st_uid, 0);
    CHECK_EQ(look("d/f").st_gid, 0);
}

CASE(chown_arguments) {
    enter();
    int fd = make("f", ""), p = CHECK_OK(open("f", O_PATH));
    CHECK_ERRNO(chown("none", 0, 0), ENOENT);
    CHECK_ERRNO(chown("f/x", 0, 0), ENOTDIR);
    CHECK_ERRNO(chown("", 0, 0), ENOENT);
    CHECK_ERRNO(chown(nowhere, 0, 0), EFAULT);
    CHECK_ERRNO(fchown(999, 0, 0), EBADF);
    CHECK_ERRNO(fchown(p, -1, -1), EBADF);
    CHECK_ERRNO(fchownat(AT_FDCWD, "f", -1, -1, 0x8000), EINVAL);
    CHECK_ERRNO(fchownat(fd, "", -1, -1, 0), ENOENT);
    CHECK_OK(fchownat(fd, "", -1, -1, AT_EMPTY_PATH));
    CHECK_OK(chown("f", -1, -1));
}

CASE(chown_by_user) {
    enter_as_user();
    make("f", "");
    uid_t me = geteuid();
    gid_t group = getegid();
    CHECK_ERRNO(chown("f", me + 1, -1), EPERM);
    CHECK_ERRNO(chown("f", 0, 0), EPERM);
    CHECK_ERRNO(chown("f", -1, group + 1), EPERM);
    CHECK_OK(chown("f", me, group));
    CHECK_OK(chown("f", me, -1));
    CHECK_OK(chown("f", -1, group));
    CHECK_ERRNO(chown("/etc/passwd", me, -1), EPERM);
    CHECK_OK(chown("f", -1, -1));
}

CASE(chown_to_an_own_group) {
    NEED_ROOT();
    enter();
    make("f", "");
    CHECK_OK(chown("f", 65534, 65534));
    gid_t groups[2] = {1111, 2222};
    CHECK_OK(setgroups(2, groups));
    CHECK_OK(setresgid(65534, 65534, 65534));
    CHECK_OK(setresuid(65534, 65534, 65534));
    CHECK_OK(chown("f", -1, 2222));
    CHECK_EQ(look("f").st_gid, 2222);
    CHECK_OK(chown("f", 65534, 1111));
    CHECK_ERRNO(chown("f", -1, 3333), EPERM);
    CHECK_OK(chmod("f", 02770));
    CHECK_EQ(mode_of("f"), 02770);
}

CASE(chown_clears_set_ids) {
    NEED_ROOT();
    enter();
    make("f", "");
    CHECK_OK(chmod("f", 06777));
    CHECK_OK(chown("f", 1, 1));
    CHECK_EQ(mode_of("f"), 0777);
    CHECK_OK(chmod("f", 06767));  // without group execute the set-group-id bit is not an identity: a user keeps it not
    CHECK_OK(chown("f", 2, 2));
    CHECK_EQ(mode_of("f") & 04000, 0);
    CHECK_OK(chmod("f", 06777));
    CHECK_OK(chown("f", -1, -1));  // even when nothing changes
    CHECK_EQ(mode_of("f"), 0777);
    CHECK_OK(mkdir("d", 0755));
    CHECK_OK(chmod("d", 06755));
    CHECK_OK(chown("d", 1, 1));
    CHECK_EQ(mode_of("d"), 06755);  // not of directories
}

CASE(writing_clears_set_ids) {
    enter_as_user();
    int fd = make("f", "abc");
    CHECK_OK(fchmod(fd, 06777));
    CHECK_EQ(mode_of("f"), 06777);
    CHECK_EQ(pwrite(fd, "x", 1, 0), 1);
    CHECK_EQ(mode_of("f"), 0777);
    CHECK_OK(fchmod(fd, 06777));
    CHECK_OK(ftruncate(fd, 1));
    CHECK_EQ(mode_of("f"), 0777);
    CHECK_OK(fchmod(fd, 06777));
    CHECK_OK(truncate("f", 0));
    CHECK_EQ(mode_of("f"), 0777);
    CHECK_OK(fchmod(fd, 06777));
    CHECK_OK(close(CHECK_OK(open("f", O_WRONLY | O_TRUNC))));
    CHECK_EQ(mode_of("f"), 0777);
    CHECK_OK(fchmod(fd, 06777));
    CHECK_EQ(pwrite(fd, "", 0, 0), 0);
    char c;
    CHECK_EQ(pread(fd, &c, 1, 0), 0);
    CHECK_EQ(mode_of("f"), 06777);
    CHECK_OK(chown("f", -1, getegid()));
    CHECK_EQ(mode_of("f"), 0777);
}

CASE(root_writes_keep_set_ids) {
    NEED_ROOT();
    enter();
    int fd = make("f", "abc");
    CHECK_OK(fchmod(fd, 06777));
    CHECK_EQ(pwrite(fd, "x", 1, 0), 1);
    CHECK_EQ(mode_of("f"), 06777);  // CAP_FSETID
}

CASE(group_permission_bits) {
    NEED_ROOT();
    enter();
    make("f", "x");
    CHECK_OK(chown("f", 1, 1111));
    CHECK_OK(chmod("f", 0604));
    gid_t groups[1] = {1111};
    IN_CHILD({
        CHECK_OK(setgroups(1, groups));
        CHECK_OK(setresgid(65534, 65534, 65534));
        CHECK_OK(setresuid(65534, 65534, 65534));
        CHECK_ERRNO(open("f", O_RDONLY), EACCES);  // a member gets the group's bits, not the others'
    });
    IN_CHILD({
        be_user();
        CHECK_OK(open("f", O_RDONLY));
        CHECK_ERRNO(open("f", O_WRONLY), EACCES);
    });
    CHECK_OK(chmod("f", 0060));
    IN_CHILD({
        CHECK_OK(setgroups(1, groups));
        CHECK_OK(setresgid(65534, 65534, 65534));
        CHECK_OK(setresuid(65534, 65534, 65534));
        CHECK_OK(open("f", O_RDWR));
    });
    CHECK_OK(open("f", O_RDWR));  // root needs no bit to read and write
}

MAIN
