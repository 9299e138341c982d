// build: static
// mkdir and mknod: modes under umask, set-group-id inheritance, device nodes, sticky directories.
#include "tree.h"
#include <sys/sysmacros.h>

CASE(mkdir_modes) {
    enter();
    umask(0);
    CHECK_OK(mkdir("a", 0777));
    CHECK_EQ(look("a").st_mode, S_IFDIR | 0777);
    umask(027);
    CHECK_OK(mkdir("b", 0777));
    CHECK_EQ(look("b").st_mode, S_IFDIR | 0750);
    CHECK_OK(mkdir("c", 0));
    CHECK_EQ(look("c").st_mode, S_IFDIR);
    // Sticky is taken, the set-id bits are not.
    umask(0);
    CHECK_OK(mkdir("d", 07755));
    CHECK_EQ(look("d").st_mode, S_IFDIR | 01755);
    CHECK_OK(mkdir("e", 0170000 | 0700));
    CHECK_EQ(look("e").st_mode, S_IFDIR | 0700);
    CHECK_ERRNO(mkdir("a", 0700), EEXIST);
    CHECK_EQ(look("a").st_mode, S_IFDIR | 0777);
    CHECK_OK(symlink("gone", "l"));
    CHECK_ERRNO(mkdir("l", 0755), EEXIST);
    CHECK_ERRNO(mkdirat(999, "x", 0755), EBADF);
    CHECK_ERRNO(mkdir(nowhere, 0755), EFAULT);
    if (geteuid() != 0) CHECK_ERRNO(mkdir("/etc/x", 0755), EACCES);
    CHECK_ERRNO(mkdir("/proc/x", 0755), ENOENT);
}

CASE(umask_call) {
    umask(0);
    CHECK_EQ(umask(07777), 0);
    CHECK_EQ(umask(0123), 0777);  // only the permission bits are kept
    CHECK_EQ(umask(0), 0123);
    umask(031);
    IN_CHILD({
        CHECK_EQ(umask(077), 031);
    });
    CHECK_EQ(umask(022), 031);  // the child's was a copy
}

CASE(setgid_directory) {
    NEED_ROOT();
    enter();
    CHECK_OK(mkdir("d", 0755));
    CHECK_OK(chown("d", 0, 1234));
    CHECK_OK(chmod("d", 02775));
    CHECK_OK(mkdir("d/sub", 0755));
    struct stat st = look("d/sub");
    CHECK_EQ(st.st_gid, 1234);
    CHECK_EQ(st.st_mode, S_IFDIR | 02755);  // directories hand the bit on
    CHECK_OK(close(make("d/f", "")));
    st = look("d/f");
    CHECK_EQ(st.st_gid, 1234);
    CHECK_EQ(st.st_mode, S_IFREG | 0644);
    CHECK_OK(symlink("x", "d/l"));
    CHECK_EQ(look("d/l").st_gid, 1234);
    CHECK_OK(mkfifo("d/p", 0600));
    CHECK_EQ(look("d/p").st_gid, 1234);
    // Renaming changes nothing, and without the bit the creator's group counts.
    CHECK_OK(close(make("g", "")));
    CHECK_OK(rename("g", "d/g"));
    CHECK_EQ(look("d/g").st_gid, 0);
    CHECK_OK(chmod("d", 0775));
    CHECK_OK(close(make("d/h", "")));
    CHECK_EQ(look("d/h").st_gid, 0);
}

CASE(setgid_on_new_files_of_foreign_groups) {
    NEED_ROOT();
    enter();
    CHECK_OK(mkdir("d", 0755));
    CHECK_OK(chown("d", 65534, 1234));
    CHECK_OK(chmod("d", 02777));
    be_user();
    umask(0);
    // A user outside the group cannot make group-executable set-id files for it.
    int fd = CHECK_OK(open("d/f", O_RDWR | O_CREAT, 02775));
    struct stat st = flook(fd);
    CHECK_EQ(st.st_gid, 1234);
    CHECK_EQ(st.st_mode, S_IFREG | 0775);
    CHECK_OK(fchmod(fd, 02775));
    CHECK_EQ(flook(fd).st_mode, S_IFREG | 0775);
}

CASE(mknod_regular_and_fifo) {
    enter();
    CHECK_OK(mknod("r", S_IFREG | 0666, 0));
    CHECK_EQ(look("r").st_mode, S_IFREG | 0644);
    CHECK_OK(mknod("z", 0600, 0));  // no type means a regular file
    CHECK_EQ(look("z").st_mode, S_IFREG | 0600);
    CHECK_OK(mknod("p", S_IFIFO | 0660, 0));
    CHECK_EQ(look("p").st_mode, S_IFIFO | 0640);
    CHECK_OK(mknod("s", S_IFSOCK | 0600, 0));
    CHECK_EQ(look("s").st_mode, S_IFSOCK | 0600);
    CHECK_ERRNO(open("s", O_RDWR), ENXIO);
    CHECK_ERRNO(mknod("p", S_IFIFO | 0600, 0), EEXIST);
    CHECK_ERRNO(mknod("d", S_IFDIR | 0755, 0), EPERM);
    CHECK_ERRNO(mknod("l", S_IFLNK | 0755, 0), EINVAL);
    CHECK_ERRNO(mknod("x", 0170000, 0), EINVAL);
    CHECK_ERRNO(mknod("none/x", S_IFREG, 0), ENOENT);
}

CASE(devices_are_not_for_users) {
    enter_as_user();
    CHECK_ERRNO(mknod("c", S_IFCHR | 0600, makedev(1, 3)), EPERM);
    CHECK_ERRNO(mknod("b", S_IFBLK | 0600, makedev(7, 0)), EPERM);
    CHECK_OK(mknod("w", S_IFCHR | 0600, makedev(0, 0)));  // the overlay's whiteout is harmless
    CHECK_EQ(look("w").st_mode, S_IFCHR | 0600);
    CHECK_EQ(look("w").st_rdev, 0);
    CHECK_ERRNO(open("w", O_RDONLY), ENXIO);
}

CASE(devices_by_root) {
    NEED_ROOT();
    enter();
    if (mknod("null", S_IFCHR | 0666, makedev(1, 3)) == -1 && errno == EPERM) SKIP("device nodes are refused");
    CHECK_EQ(look("null").st_rdev, makedev(1, 3));
    CHECK_EQ(look("null").st_mode, S_IFCHR | 0644);
    CHECK_OK(mknod("odd", S_IFCHR | 0600, makedev(300, 70000)));
    CHECK_EQ(look("odd").st_rdev, makedev(300, 70000));
    CHECK_OK(mknod("blk", S_IFBLK | 0600, makedev(250, 1)));
    CHECK_EQ(look("blk").st_mode, S_IFBLK | 0600);
    int fd = open("null", O_RDWR);
    if (fd == -1) {
        CHECK_EQ(errno, EACCES);  // a mount with nodev
    } else {
        CHECK_EQ(write(fd, "x", 1), 1);
        CHECK_EQ(read(fd, &(char){0}, 1), 0);
    }
}

CASE(sticky_directory) {
    NEED_ROOT();
    enter();
    CHECK_OK(mkdir("d", 0777));
    CHECK_OK(chmod("d", 01777));
    CHECK_OK(mkdir("e", 0777));
    CHECK_OK(chmod("e", 0777));
    CHECK_OK(close(make("d/roots", "")));
    CHECK_OK(mkdir("d/rootdir", 0777));
    CHECK_OK(close(make("d/theirs", "")));
    CHECK_OK(chown("d/theirs", 65534, 65534));
    CHECK_OK(close(make("e/roots", "")));
    IN_CHILD({
        be_user();
        CHECK_ERRNO(unlink("d/roots"), EPERM);
        CHECK_ERRNO(rmdir("d/rootdir"), EPERM);
        CHECK_ERRNO(rename("d/roots", "d/x"), EPERM);
        CHECK_ERRNO(rename("d/roots", "e/x"), EPERM);
        CHECK_ERRNO(rename("d/theirs", "d/roots"), EPERM);
        CHECK_ERRNO(rename("e/roots", "d/roots"), EPERM);
        CHECK_OK(rename("d/theirs", "d/theirs2"));
        CHECK_OK(unlink("d/theirs2"));
        CHECK_OK(unlink("e/roots"));
        CHECK_OK(close(make("d/mine", "")));
        CHECK_OK(unlink("d/mine"));
    });
    // The directory's owner may remove what others made.
    CHECK_OK(chown("d", 65534, 65534));
    IN_CHILD({
        be_user();
        CHECK_OK(unlink("d/roots"));
    });
}

CASE(tmp_is_sticky) {
    struct stat st = look("/tmp");
    CHECK_EQ(st.st_mode & 01777, 01777);
}

MAIN
