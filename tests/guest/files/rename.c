// build: static
// rename, renameat2: what replaces what, directories, flags, errors and their order, and cwd inside.
#include "tree.h"

static int rename2(const char *from, const char *to, unsigned flags) {
    return syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags);
}

static int present(const char *name) { return faccessat(AT_FDCWD, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0; }

CASE(file_over_file) {
    enter();
    int a = make("a", "from"), b = make("b", "to");
    ino_t ino = flook(a).st_ino;
    CHECK_OK(rename("a", "b"));
    CHECK(!present("a"));
    CHECK_STR(content("b"), "from");
    CHECK_EQ(look("b").st_ino, ino);
    CHECK_EQ(flook(b).st_nlink, 0);
    char buf[8];
    CHECK_EQ(pread(b, buf, 8, 0), 2);  // the replaced file lives as long as it is open
    CHECK_OK(rename("b", "b"));
    CHECK(present("b"));
}

CASE(hard_links_of_one_file) {
    enter();
    make("a", "x");
    CHECK_OK(link("a", "b"));
    CHECK_OK(rename("a", "b"));  // POSIX: nothing happens, both names stay
    CHECK(present("a") && present("b"));
    CHECK_EQ(look("a").st_nlink, 2);
}

CASE(directories) {
    enter();
    CHECK_OK(mkdir("full", 0755));
    CHECK_OK(close(make("full/x", "")));
    CHECK_OK(mkdir("empty", 0755));
    CHECK_OK(mkdir("d", 0755));
    CHECK_OK(close(make("d/y", "in d")));
    CHECK_OK(close(make("f", "")));
    CHECK_OK(symlink("d", "l"));
    CHECK_ERRNO(rename("d", "full"), ENOTEMPTY);
    CHECK_ERRNO(rename("d", "f"), ENOTDIR);
    CHECK_ERRNO(rename("f", "d"), EISDIR);
    CHECK_ERRNO(rename("f", "empty"), EISDIR);
    CHECK_ERRNO(rename("d", "l"), ENOTDIR);
    CHECK_ERRNO(rename("d", "d/sub"), EINVAL);
    CHECK_OK(mkdir("d/e", 0755));
    CHECK_ERRNO(rename("d", "d/e"), EINVAL);
    CHECK_ERRNO(rename("d", "d/e/z"), EINVAL);
    CHECK_ERRNO(rename("d/e", "d"), ENOTEMPTY);
    CHECK_ERRNO(rename("d/none", "d"), ENOENT);
    CHECK_ERRNO(rename("d", "none/x"), ENOENT);
    CHECK_ERRNO(rename("d", "f/x"), ENOTDIR);
    CHECK_OK(rename("d", "empty"));
    CHECK_STR(content("empty/y"), "in d");
    CHECK(!present("d"));
    CHECK_OK(rename("f", "l"));  // the link is replaced, not followed
    CHECK(S_ISREG(look("l").st_mode));
}

CASE(parent_follows_the_directory) {
    enter();
    CHECK_OK(mkdir("a", 0755));
    CHECK_OK(mkdir("b", 0755));
    CHECK_OK(mkdir("a/d", 0755));
    int d = CHECK_OK(open("a/d", O_RDONLY));
    long na = look("a").st_nlink, nb = look("b").st_nlink;
    CHECK_OK(rename("a/d", "b/d"));
    struct stat st;
    CHECK_OK(fstatat(d, "..", &st, 0));
    CHECK_EQ(st.st_ino, look("b").st_ino);
    if (na == 3 && nb == 2) {
        CHECK_EQ(look("a").st_nlink, 2);
        CHECK_EQ(look("b").st_nlink, 3);
    }
    CHECK_OK(rmdir("a"));
}

CASE(working_directory_inside) {
    enter();
    CHECK_OK(mkdir("a", 0755));
    CHECK_OK(mkdir("a/b", 0755));
    CHECK_OK(chdir("a/b"));
    CHECK_OK(rename(TMP("a"), TMP("moved")));
    char cwd[500];
    CHECK_OK(syscall(SYS_getcwd, cwd, sizeof cwd));
    CHECK_STR(cwd + strlen(cwd) - strlen("/moved/b"), "/moved/b");
    CHECK_OK(close(make("f", "here")));
    CHECK_STR(content(TMP("moved/b/f")), "here");
    CHECK_STR(content("../b/f"), "here");
    CHECK_OK(rename(".././b/f", "../g"));
    CHECK_STR(content("../g"), "here");
}

CASE(symlinks_are_moved_as_such) {
    enter();
    CHECK_OK(symlink("none", "l"));
    CHECK_OK(rename("l", "m"));
    CHECK(S_ISLNK(look("m").st_mode));
    CHECK_OK(mkdir("d", 0755));
    CHECK_OK(symlink("d", "ld"));
    CHECK_OK(rename("ld", "ld2"));
    CHECK(S_ISLNK(look("ld2").st_mode));
    CHECK_ERRNO(rename("ld2/", "z"), ENOTDIR);
    CHECK(present("d"));
}

CASE(noreplace) {
    enter();
    make("a", "a");
    make("b", "b");
    CHECK_ERRNO(rename2("a", "b", RENAME_NOREPLACE), EEXIST);
    CHECK_STR(content("b"), "b");
    CHECK_OK(symlink("none", "l"));
    CHECK_ERRNO(rename2("a", "l", RENAME_NOREPLACE), EEXIST);
    CHECK_OK(rename2("a", "c", RENAME_NOREPLACE));
    CHECK_STR(content("c"), "a");
    CHECK_ERRNO(rename2("c", "c", RENAME_NOREPLACE), EEXIST);
    CHECK_ERRNO(rename2("none", "b", RENAME_NOREPLACE), ENOENT);
    CHECK_ERRNO(rename2("c", ".", RENAME_NOREPLACE), EEXIST);
    CHECK_ERRNO(rename2("c", "..", RENAME_NOREPLACE), EEXIST);
    CHECK_OK(mkdir("d", 0755));
    CHECK_ERRNO(rename2("c", "d", RENAME_NOREPLACE), EEXIST);
}

CASE(exchange) {
    enter();
    ino_t a = flook(make("a", "a")).st_ino, b = flook(make("b", "b")).st_ino;
    CHECK_OK(rename2("a", "b", RENAME_EXCHANGE));
    CHECK_EQ(look("a").st_ino, b);
    CHECK_EQ(look("b").st_ino, a);
    CHECK_ERRNO(rename2("a", "none", RENAME_EXCHANGE), ENOENT);
    CHECK_ERRNO(rename2("none", "a", RENAME_EXCHANGE), ENOENT);
    // Any two kinds may change places.
    CHECK_OK(mkdir("d", 0755));
    CHECK_OK(mkdir("d/sub", 0755));
    CHECK_OK(rename2("a", "d", RENAME_EXCHANGE));
    CHECK(S_ISDIR(look("a").st_mode) && S_ISREG(look("d").st_mode));
    CHECK(present("a/sub"));
    CHECK_ERRNO(rename2("a", "a/sub", RENAME_EXCHANGE), EINVAL);
    CHECK_ERRNO(rename2("a/sub", "a", RENAME_EXCHANGE), EINVAL);
    CHECK_OK(rename2("d", "a/sub", RENAME_EXCHANGE));
    CHECK(S_ISDIR(look("d").st_mode) && S_ISREG(look("a/sub").st_mode));
    struct stat up;
    CHECK_OK(stat("d/..", &up));
    CHECK_EQ(up.st_ino, look(".").st_ino);
    CHECK_OK(rename2("d", "d", RENAME_EXCHANGE));
}

CASE(flag_errors) {
    enter();
    make("a", "");
    CHECK_ERRNO(rename2("a", "b", 0x80), EINVAL);
    CHECK_ERRNO(rename2("a", "b", RENAME_NOREPLACE | RENAME_EXCHANGE), EINVAL);
    CHECK_ERRNO(rename2("a", "b", RENAME_EXCHANGE | RENAME_WHITEOUT), EINVAL);
    CHECK_ERRNO(rename2(NULL, "b", 0x80), EINVAL);
    CHECK_ERRNO(rename2(NULL, "b", 0), EFAULT);
    CHECK_ERRNO(rename2("a", NULL, 0), EFAULT);
    CHECK(present("a"));
}

CASE(dirfds) {
    enter();
    CHECK_OK(mkdir("a", 0755));
    CHECK_OK(mkdir("b", 0755));
    int a = CHECK_OK(open("a", O_PATH)), b = CHECK_OK(open("b", O_PATH)), f = make("a/f", "x");
    CHECK_OK(renameat(a, "f", b, "g"));
    CHECK_STR(content("b/g"), "x");
    CHECK_ERRNO(renameat(f, "x", b, "g"), ENOTDIR);
    CHECK_ERRNO(renameat(999, "x", b, "g"), EBADF);
    CHECK_ERRNO(renameat(a, "x", 999, "g"), EBADF);
    CHECK_OK(rmdir("a"));
    CHECK_ERRNO(renameat(b, "g", a, "g"), ENOENT);  // a removed directory takes nothing
}

CASE(across_mounts) {
    enter();
    make("a", "");
    CHECK_ERRNO(rename("a", "/proc/x"), EXDEV);
    CHECK_ERRNO(rename("/proc/self", "x"), EXDEV);
    CHECK_ERRNO(rename("/proc/none", "x"), EXDEV);  // before either name is looked up
    CHECK_ERRNO(link("/proc/stat", "x"), EXDEV);
    CHECK_ERRNO(rename("/", "/x"), EBUSY);
    CHECK_ERRNO(rename("/proc", "/proc2"), geteuid() == 0 ? EBUSY : EACCES);
    CHECK_ERRNO(rmdir("/proc"), geteuid() == 0 ? EBUSY : EACCES);
}

CASE(permission) {
    enter_as_user();
    CHECK_OK(mkdir("a", 0755));
    CHECK_OK(mkdir("b", 0755));
    CHECK_OK(close(make("a/f", "x")));
    CHECK_OK(close(make("b/g", "x")));
    CHECK_OK(mkdir("b/d", 0755));
    CHECK_OK(mkdir("b/d/e", 0755));
    CHECK_OK(chmod("a", 0555));
    CHECK_ERRNO(rename("a/f", "b/f"), EACCES);
    CHECK_ERRNO(rename("b/g", "a/g"), EACCES);
    CHECK_ERRNO(rename("b/g", "a/f"), EACCES);
    CHECK_ERRNO(rename("a/f", "a/h"), EACCES);
    CHECK_ERRNO(rename("a/none", "b/x"), ENOENT);
    CHECK_OK(chmod("a", 0755));
    // A directory that changes its parent must itself be writable (its ".." changes).
    CHECK_OK(chmod("b/d", 0555));
    CHECK_ERRNO(rename("b/d", "a/d"), EACCES);
    CHECK_OK(rename("b/d", "b/d2"));
    CHECK_OK(chmod("b/d2", 0755));
    CHECK_OK(rename("b/d2", "a/d"));
}

CASE(readers_never_miss_a_replaced_file) {
    enter();
    CHECK_OK(close(make("f", "0")));
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        for (int i = 0; i < 300; i++) {
            CHECK_OK(close(make("new", "1")));
            CHECK_OK(rename("new", "f"));
        }
        _exit(0);
    }
    int status;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        struct stat st;
        CHECK_OK(stat("f", &st));
        CHECK_EQ(st.st_size, 1);
    }
    CHECK_EQ(status, 0);
}

static void looks(const char *dir, const char *file) {
    // The names come and go; what was found by one is there and is the file.
    struct stat st;
    if (stat(dir, &st) == 0) CHECK(S_ISDIR(st.st_mode)); else CHECK_EQ(errno, ENOENT);
    int fd = open(file, O_RDONLY);
    if (fd == -1) {
        CHECK_EQ(errno, ENOENT);
        return;
    }
    char c;
    CHECK_EQ(read(fd, &c, 1), 1);
    CHECK_EQ(c, 'x');
    CHECK_OK(close(fd));
}

CASE(looked_up_while_they_move) {
    enter();
    CHECK_OK(mkdir("d", 0755));
    CHECK_OK(close(make("d/f", "x")));
    int inside = CHECK_OK(open("d", O_PATH | O_DIRECTORY));
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        CHECK_OK(fchdir(inside));
        for (int i = 0; i < 300; i++) {
            CHECK_OK(rename("../d", "../e"));
            CHECK_OK(rename("f", "../f"));
            // Whoever stands in it still does.
            char path[4096];
            CHECK(getcwd(path, sizeof path) != NULL);
            CHECK_STR(strrchr(path, '/'), "/e");
            CHECK_OK(access(".", X_OK));
            CHECK_OK(rename("../f", "f"));
            CHECK_OK(rename("../e", "../d"));
        }
        _exit(0);
    }
    int status;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        looks("d", "d/f");
        looks("e", "e/f");
        looks(".", "f");
    }
    CHECK_EQ(status, 0);
}

MAIN
