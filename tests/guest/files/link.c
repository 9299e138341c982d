// build: static
// link, symlink, readlink, unlink and rmdir.
#include "tree.h"

CASE(hard_link) {
    enter();
    int fd = make("a", "text");
    CHECK_OK(mkdir("d", 0755));
    CHECK_OK(link("a", "d/b"));
    CHECK_EQ(look("a").st_ino, look("d/b").st_ino);
    CHECK_EQ(write(fd, "!", 1), 1);
    CHECK_STR(content("d/b"), "text!");
    CHECK_OK(chmod("d/b", 0600));
    CHECK_EQ(look("a").st_mode, S_IFREG | 0600);
    CHECK_OK(unlink("a"));
    CHECK_STR(content("d/b"), "text!");
    CHECK_EQ(look("d/b").st_nlink, 1);
    CHECK_ERRNO(link("d/b", "d/b"), EEXIST);
    CHECK_ERRNO(link("none", "x"), ENOENT);
    CHECK_ERRNO(link("d/b", "none/x"), ENOENT);
    CHECK_ERRNO(link("d/b/x", "y"), ENOTDIR);
    CHECK_ERRNO(link("d", "e"), EPERM);
    CHECK_ERRNO(link("d", "d"), EEXIST);
}

CASE(link_and_symlinks) {
    enter();
    make("f", "x");
    CHECK_OK(symlink("f", "l"));
    CHECK_OK(link("l", "m"));  // link() does not follow
    CHECK(S_ISLNK(look("m").st_mode));
    CHECK_EQ(look("l").st_nlink, 2);
    CHECK_OK(linkat(AT_FDCWD, "l", AT_FDCWD, "n", AT_SYMLINK_FOLLOW));
    CHECK_EQ(look("n").st_ino, look("f").st_ino);
    CHECK_OK(symlink("new", "dangling"));
    CHECK_ERRNO(link("f", "dangling"), EEXIST);
    CHECK_ERRNO(linkat(AT_FDCWD, "dangling", AT_FDCWD, "z", AT_SYMLINK_FOLLOW), ENOENT);
    CHECK_ERRNO(linkat(AT_FDCWD, "f", AT_FDCWD, "z", AT_SYMLINK_NOFOLLOW), EINVAL);
    CHECK_ERRNO(linkat(AT_FDCWD, "f", AT_FDCWD, "z", 0x8000), EINVAL);
    CHECK_ERRNO(linkat(999, "f", AT_FDCWD, "z", 0), EBADF);
    CHECK_ERRNO(linkat(AT_FDCWD, "f", 999, "z", 0), EBADF);
    CHECK_ERRNO(linkat(AT_FDCWD, "", AT_FDCWD, "z", 0), ENOENT);
}

CASE(link_of_open_deleted_file) {
    enter();
    int fd = make("f", "x");
    CHECK_OK(unlink("f"));
    // Once its last name is gone a file gets none again (O_TMPFILE is the exception).
    CHECK_ERRNO(linkat(AT_FDCWD, proc_fd(fd), AT_FDCWD, "back", AT_SYMLINK_FOLLOW), ENOENT);
}

CASE(symlink_and_readlink) {
    enter();
    char buf[64];
    CHECK_OK(symlink("some/where", "l"));
    memset(buf, '#', sizeof buf);
    CHECK_EQ(readlink("l", buf, sizeof buf), 10);
    CHECK_EQ(memcmp(buf, "some/where#", 11), 0);  // no terminating zero
    memset(buf, '#', sizeof buf);
    CHECK_EQ(readlink("l", buf, 4), 4);
    CHECK_EQ(memcmp(buf, "some#", 5), 0);
    CHECK_EQ(readlink("l", buf, 10), 10);
    CHECK_ERRNO(readlink("l", buf, 0), EINVAL);
    CHECK_ERRNO(syscall(SYS_readlink, "l", buf, -1), EINVAL);
    CHECK_ERRNO(readlink("l", nowhere, 5), EFAULT);
    make("f", "");
    CHECK_ERRNO(readlink("f", buf, 5), EINVAL);
    CHECK_ERRNO(readlink(".", buf, 5), EINVAL);
    CHECK_ERRNO(readlink("none", buf, 5), ENOENT);
    CHECK_ERRNO(readlink("", buf, 5), ENOENT);
    CHECK_ERRNO(symlink("x", "l"), EEXIST);
    CHECK_ERRNO(symlink("x", "none/l"), ENOENT);
    CHECK_ERRNO(symlink(nowhere, "n"), EFAULT);
    CHECK_OK(symlink("a//b/../c/", "raw"));  // kept byte by byte
    CHECK_EQ(readlink("raw", buf, sizeof buf), 10);
    CHECK_EQ(memcmp(buf, "a//b/../c/", 10), 0);
}

CASE(long_symlink) {
    enter();
    static char text[4096], buf[4200];
    memset(text, 'y', 4094);
    CHECK_OK(symlink(text, "l"));
    CHECK_EQ(look("l").st_size, 4094);
    CHECK_EQ(readlink("l", buf, sizeof buf), 4094);
    CHECK_EQ(memcmp(text, buf, 4094), 0);
    CHECK_ERRNO(open("l", O_RDONLY), ENAMETOOLONG);
    CHECK_OK(unlink("l"));
    text[60] = 0;
    CHECK_OK(symlink(text, "l"));
    CHECK_EQ(look("l").st_size, 60);
}

CASE(symlink_in_the_middle) {
    enter();
    CHECK_OK(mkdir("d", 0755));
    CHECK_OK(mkdir("d/e", 0755));
    CHECK_OK(close(make("d/e/f", "deep")));
    CHECK_OK(symlink("d//e/.", "odd"));
    CHECK_STR(content("odd/f"), "deep");
    CHECK_OK(symlink("../e/f", "d/e/back"));
    CHECK_STR(content("odd/back"), "deep");
    char target[300];
    snprintf(target, sizeof target, "%s", TMP("d/e"));
    CHECK_OK(symlink(target, "abs"));
    CHECK_STR(content("abs/f"), "deep");
    CHECK_OK(symlink("d/", "slash"));
    CHECK_STR(content("slash/e/f"), "deep");
    CHECK_EQ(look("odd/..").st_ino, look("d").st_ino);
}

CASE(unlink_open_file) {
    enter();
    int fd = make("f", "still here");
    CHECK_OK(unlink("f"));
    CHECK_ERRNO(access("f", F_OK), ENOENT);
    CHECK_EQ(flook(fd).st_nlink, 0);
    char buf[16];
    CHECK_EQ(pread(fd, buf, sizeof buf, 0), 10);
    CHECK_EQ(pwrite(fd, "x", 1, 100000), 1);
    CHECK_EQ(flook(fd).st_size, 100001);
    CHECK_OK(ftruncate(fd, 3));
    CHECK_OK(fchmod(fd, 0600));
    int again = CHECK_OK(open(proc_fd(fd), O_RDONLY));
    CHECK_EQ(flook(again).st_size, 3);
    int fresh = make("f", "new");
    CHECK_NE(flook(fresh).st_ino, flook(fd).st_ino);
    void *map = CHECK_MAP(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0));
    CHECK_OK(close(fd));
    CHECK_OK(close(again));
    CHECK_EQ(memcmp(map, "sti", 3), 0);  // a mapping alone holds it as well
}

CASE(unlink_errors) {
    enter();
    CHECK_OK(mkdir("d", 0755));
    CHECK_OK(close(make("f", "")));
    CHECK_ERRNO(unlink("d"), EISDIR);
    CHECK_ERRNO(unlink("d/"), EISDIR);
    CHECK_ERRNO(unlink("none"), ENOENT);
    CHECK_ERRNO(unlink("f/x"), ENOTDIR);
    CHECK_ERRNO(unlink(""), ENOENT);
    CHECK_ERRNO(unlinkat(AT_FDCWD, "f", 0x100), EINVAL);
    CHECK_ERRNO(unlinkat(AT_FDCWD, "f", AT_REMOVEDIR), ENOTDIR);
    CHECK_ERRNO(unlinkat(999, "f", 0), EBADF);
    CHECK_ERRNO(unlinkat(AT_FDCWD, nowhere, 0), EFAULT);
    CHECK_OK(unlinkat(AT_FDCWD, "d", AT_REMOVEDIR));
    CHECK_OK(symlink("f", "l"));
    CHECK_OK(unlink("l"));
    CHECK_OK(access("f", F_OK));
    if (geteuid() != 0) CHECK_ERRNO(unlink("/etc/passwd"), EACCES);
    CHECK_ERRNO(unlink("/proc/stat"), geteuid() == 0 ? EPERM : EACCES);
}

CASE(remove_directories) {
    enter();
    CHECK_OK(mkdir("d", 0755));
    CHECK_OK(close(make("d/f", "")));
    CHECK_OK(symlink("d", "l"));
    CHECK_ERRNO(rmdir("d"), ENOTEMPTY);
    CHECK_ERRNO(rmdir("d/f"), ENOTDIR);
    CHECK_ERRNO(rmdir("l"), ENOTDIR);
    CHECK_ERRNO(rmdir("none"), ENOENT);
    CHECK_ERRNO(rmdir("."), EINVAL);
    CHECK_ERRNO(rmdir("d/.."), ENOTEMPTY);
    CHECK_OK(unlink("d/f"));
    int d = CHECK_OK(open("d", O_RDONLY));
    CHECK_OK(rmdir("d"));
    CHECK_ERRNO(openat(d, "x", O_CREAT | O_WRONLY, 0644), ENOENT);
    CHECK_ERRNO(mkdirat(d, "x", 0755), ENOENT);
    CHECK_ERRNO(symlinkat("x", d, "y"), ENOENT);
    CHECK_OK(mkdir("d", 0755));  // the name is free again
    CHECK_NE(look("d").st_ino, flook(d).st_ino);
}

CASE(removed_working_directory) {
    enter();
    CHECK_OK(mkdir("d", 0755));
    CHECK_OK(chdir("d"));
    CHECK_OK(rmdir("../d"));
    char cwd[300];
    CHECK_ERRNO(syscall(SYS_getcwd, cwd, sizeof cwd), ENOENT);
    CHECK_ERRNO(open("x", O_CREAT | O_WRONLY, 0644), ENOENT);
    CHECK_ERRNO(mkdir("x", 0755), ENOENT);
    struct stat st;
    CHECK_OK(stat(".", &st));
    CHECK_EQ(st.st_nlink, 0);
    CHECK_OK(stat("..", &st));
    CHECK_OK(chdir(".."));
    CHECK_OK(syscall(SYS_getcwd, cwd, sizeof cwd));
}

CASE(many_files) {
    enter();
    char name[32];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 1500; i++) {
            snprintf(name, sizeof name, "file%d", i);
            int fd = make(name, name);
            CHECK_OK(close(fd));
        }
        for (int i = 0; i < 1500; i += 97) {
            snprintf(name, sizeof name, "file%d", i);
            CHECK_STR(content(name), name);
        }
        for (int i = 0; i < 1500; i++) {
            snprintf(name, sizeof name, "file%d", i);
            CHECK_OK(unlink(name));
        }
    }
    CHECK_OK(mkdir("d", 0755));
    CHECK_OK(rmdir("d"));
}

MAIN
