// build: static
// Path resolution: slashes, dots, symlink budgets, length limits, search permission, and which errno wins.
#include "tree.h"

CASE(trailing_slashes) {
    enter();
    CHECK_OK(close(make("f", "")));
    CHECK_OK(mkdir("d", 0755));
    CHECK_OK(symlink("f", "lf"));
    CHECK_OK(symlink("d", "ld"));
    CHECK_OK(symlink("none", "lnone"));
    struct stat st;
    CHECK_ERRNO(stat("f/", &st), ENOTDIR);
    CHECK_ERRNO(stat("f/.", &st), ENOTDIR);
    CHECK_ERRNO(stat("f/..", &st), ENOTDIR);
    CHECK_ERRNO(lstat("lf/", &st), ENOTDIR);
    CHECK_OK(stat("d//", &st));
    CHECK_OK(lstat("ld", &st));
    CHECK(S_ISLNK(st.st_mode));
    CHECK_OK(lstat("ld/", &st));
    CHECK(S_ISDIR(st.st_mode));
    CHECK_ERRNO(stat("none/", &st), ENOENT);
    CHECK_ERRNO(open("f/", O_RDONLY), ENOTDIR);
    CHECK_ERRNO(open("new/", O_WRONLY | O_CREAT, 0644), EISDIR);
    CHECK_ERRNO(open("f/", O_WRONLY | O_CREAT, 0644), EISDIR);
    CHECK_ERRNO(unlink("f/"), ENOTDIR);
    CHECK_ERRNO(unlink("none/"), ENOENT);
    CHECK_ERRNO(unlink("ld/"), ENOTDIR);
    CHECK_ERRNO(symlink("f", "s/"), ENOENT);
    CHECK_ERRNO(link("f", "s/"), ENOENT);
    CHECK_ERRNO(mknod("s/", S_IFREG | 0644, 0), ENOENT);
    CHECK_OK(mkdir("e/", 0755));
    CHECK_ERRNO(mkdir("lnone/", 0755), EEXIST);
    CHECK_OK(rmdir("e//"));
    CHECK_ERRNO(rmdir("ld/"), ENOTDIR);
    CHECK_ERRNO(rename("f", "g/"), ENOTDIR);
    CHECK_OK(rename("d", "d2/"));
    CHECK_OK(rename("d2/", "d"));
    char buf[8];
    CHECK_ERRNO(readlink("ld/", buf, 8), EINVAL);
}

CASE(dots) {
    enter();
    CHECK_OK(mkdir("a", 0755));
    CHECK_OK(mkdir("a/b", 0755));
    CHECK_OK(close(make("a/f", "x")));
    ino_t here = look(".").st_ino, a = look("a").st_ino;
    CHECK_EQ(look("a/b/../..").st_ino, here);
    CHECK_EQ(look("./a/./b/.././.").st_ino, a);
    CHECK_EQ(look(".//a///b//..").st_ino, a);
    CHECK_ERRNO(access("a/none/..", F_OK), ENOENT);  // never shortened by text
    CHECK_ERRNO(access("a/f/..", F_OK), ENOTDIR);
    CHECK_OK(symlink("a/b", "l"));
    CHECK_EQ(look("l/..").st_ino, a);  // the parent of the target
    CHECK_OK(mkdir("...", 0755));
    CHECK_OK(mkdir(".x", 0755));
    CHECK_ERRNO(rmdir("a/."), EINVAL);
    CHECK_ERRNO(rmdir("a/b/.."), ENOTEMPTY);
    CHECK_ERRNO(mkdir("a/.", 0755), EEXIST);
    CHECK_ERRNO(mkdir("a/..", 0755), EEXIST);
    CHECK_ERRNO(rename("a/.", "c"), EBUSY);
    CHECK_ERRNO(rename("a/b/..", "c"), EBUSY);
    CHECK_ERRNO(rename("a", "."), EBUSY);
    CHECK_ERRNO(unlink("."), EISDIR);
    CHECK_ERRNO(symlink("x", "."), EEXIST);
}

CASE(root_is_its_own_parent) {
    struct stat root = look("/");
    CHECK_EQ(look("/..").st_ino, root.st_ino);
    CHECK_EQ(look("/../../..").st_dev, root.st_dev);
    CHECK_EQ(look("//").st_ino, root.st_ino);
    CHECK_EQ(look("///etc/..///").st_ino, root.st_ino);
    CHECK_OK(access("/../../etc/passwd", R_OK));
    CHECK_ERRNO(mkdir("/", 0755), EEXIST);
    CHECK_ERRNO(rmdir("/"), EBUSY);
    CHECK_ERRNO(unlink("/"), EISDIR);
    CHECK_ERRNO(open("/", O_WRONLY), EISDIR);
}

CASE(symlink_budget) {
    enter();
    char name[16], next[16];
    CHECK_OK(close(make("l0", "end")));
    for (int i = 1; i <= 41; i++) {
        snprintf(name, sizeof name, "l%d", i);
        snprintf(next, sizeof next, "l%d", i - 1);
        CHECK_OK(symlink(next, name));
    }
    CHECK_STR(content("l40"), "end");
    CHECK_ERRNO(open("l41", O_RDONLY), ELOOP);
    CHECK_OK(symlink("loop", "loop"));
    CHECK_OK(symlink("b", "a"));
    CHECK_OK(symlink("a", "b"));
    CHECK_ERRNO(open("loop", O_RDONLY), ELOOP);
    CHECK_ERRNO(open("loop/x", O_RDONLY), ELOOP);
    CHECK_ERRNO(access("a", F_OK), ELOOP);
    CHECK_ERRNO(open("a", O_WRONLY | O_CREAT, 0644), ELOOP);
    // Links in the middle count too, over the whole path.
    CHECK_OK(symlink(".", "dot"));
    char path[400] = "";
    for (int i = 0; i < 40; i++) strcat(path, "dot/");
    strcat(path, "l0");
    CHECK_STR(content(path), "end");
    strcpy(path + strlen(path) - 2, "l1");
    CHECK_ERRNO(open(path, O_RDONLY), ELOOP);
}

CASE(name_limit) {
    enter();
    char name[300];
    memset(name, 'n', sizeof name);
    name[255] = 0;
    CHECK_OK(close(make(name, "")));
    CHECK_OK(unlink(name));
    CHECK_OK(mkdir(name, 0755));
    CHECK_OK(rmdir(name));
    name[255] = 'n';
    name[256] = 0;
    CHECK_ERRNO(open(name, O_WRONLY | O_CREAT, 0644), ENAMETOOLONG);
    CHECK_ERRNO(mkdir(name, 0755), ENAMETOOLONG);
    CHECK_ERRNO(access(name, F_OK), ENAMETOOLONG);
    CHECK_ERRNO(symlink("x", name), ENAMETOOLONG);
    CHECK_ERRNO(rename(".", name), EBUSY);
    CHECK_OK(close(make("f", "")));
    CHECK_ERRNO(rename("f", name), ENAMETOOLONG);
    CHECK_ERRNO(link("f", name), ENAMETOOLONG);
    CHECK_ERRNO(unlink(name), ENAMETOOLONG);
}

CASE(path_limit) {
    enter();
    static char path[5000];
    // "./././...f": 4095 characters pass, 4096 do not.
    for (int i = 0; i < 4094; i += 2) memcpy(path + i, "./", 2);
    strcpy(path + 4094, ".");
    CHECK_EQ(strlen(path), 4095);
    CHECK_OK(access(path, F_OK));
    strcpy(path + 4094, "./");
    CHECK_ERRNO(access(path, F_OK), ENAMETOOLONG);
    CHECK_ERRNO(open(path, O_RDONLY), ENAMETOOLONG);
    CHECK_ERRNO(mkdir(path, 0755), ENAMETOOLONG);
    // A symlink's text has the same limit.
    memset(path, 'x', sizeof path);
    path[4095] = 0;
    CHECK_ERRNO(symlink(path, "big") == 0 ? open("big", O_RDONLY) : -1, ENAMETOOLONG);
    path[4095] = 'x';
    path[4096] = 0;
    CHECK_ERRNO(symlink(path, "bigger"), ENAMETOOLONG);
    CHECK_ERRNO(symlink("", "empty"), ENOENT);
}

CASE(deep_tree) {
    enter();
    // Deeper than any path can say: only step by step.
    char name[201];
    memset(name, 'd', 200);
    name[200] = 0;
    for (int i = 0; i < 25; i++) {
        CHECK_OK(mkdir(name, 0755));
        CHECK_OK(chdir(name));
    }
    char cwd[5000];
    CHECK_ERRNO(syscall(SYS_getcwd, cwd, sizeof cwd), ENAMETOOLONG);
    CHECK_OK(close(make("f", "deep")));
    CHECK_STR(content("f"), "deep");
    CHECK_OK(unlink("f"));
    for (int i = 0; i < 25; i++) {
        CHECK_OK(chdir(".."));
        CHECK_OK(rmdir(name));
    }
}

CASE(not_a_directory_or_absent) {
    enter();
    CHECK_OK(close(make("f", "")));
    CHECK_OK(symlink("f", "l"));
    struct stat st;
    CHECK_ERRNO(stat("f/x", &st), ENOTDIR);
    CHECK_ERRNO(stat("l/x", &st), ENOTDIR);
    CHECK_ERRNO(stat("none/x", &st), ENOENT);
    CHECK_ERRNO(stat("", &st), ENOENT);
    CHECK_ERRNO(mkdir("", 0755), ENOENT);
    CHECK_ERRNO(mkdir("none/x", 0755), ENOENT);
    CHECK_ERRNO(mkdir("f/x", 0755), ENOTDIR);
    CHECK_ERRNO(rename("", "x"), ENOENT);
    CHECK_ERRNO(chdir(""), ENOENT);
    CHECK_ERRNO(chdir("f"), ENOTDIR);
    CHECK_ERRNO(access("", F_OK), ENOENT);
    CHECK_ERRNO(stat((char *)1, &st), EFAULT);
    CHECK_ERRNO(access("/proc/self/exe/x", F_OK), ENOTDIR);
}

CASE(search_permission) {
    enter_as_user();
    CHECK_OK(mkdir("d", 0755));
    CHECK_OK(mkdir("d/e", 0755));
    CHECK_OK(close(make("d/f", "x")));
    CHECK_OK(symlink("d/f", "l"));
    struct stat st;
    CHECK_OK(chmod("d", 0600));
    CHECK_ERRNO(stat("d/f", &st), EACCES);
    CHECK_ERRNO(stat("d/none", &st), EACCES);
    CHECK_ERRNO(stat("d/.", &st), EACCES);
    CHECK_ERRNO(stat("d/..", &st), EACCES);
    CHECK_ERRNO(stat("l", &st), EACCES);
    CHECK_ERRNO(chdir("d"), EACCES);
    CHECK_ERRNO(mkdir("d/x", 0755), EACCES);
    CHECK_ERRNO(unlink("d/f"), EACCES);
    CHECK_ERRNO(rename("d/f", "g"), EACCES);
    CHECK_ERRNO(link("d/f", "g"), EACCES);
    CHECK_OK(lstat("l", &st));
    CHECK_OK(stat("d", &st));
    CHECK_OK(stat("d/", &st));
    // Write without search is of no use either, search without write only looks.
    CHECK_OK(chmod("d", 0500));
    CHECK_OK(stat("d/f", &st));
    CHECK_ERRNO(unlink("d/f"), EACCES);
    CHECK_ERRNO(unlink("d/none"), ENOENT);
    CHECK_ERRNO(rmdir("d/e"), EACCES);
    CHECK_ERRNO(rename("d/f", "g"), EACCES);
    CHECK_ERRNO(mkdir("d/e", 0755), EEXIST);
    CHECK_ERRNO(mkdir("d/x", 0755), EACCES);
    CHECK_ERRNO(symlink("x", "d/y"), EACCES);
    CHECK_ERRNO(mkfifo("d/p", 0600), EACCES);
    // A working directory without search permission keeps working only as far as "." itself.
    CHECK_OK(chdir("d"));
    CHECK_OK(chmod(".", 0600));
    CHECK_ERRNO(stat("f", &st), EACCES);
    CHECK_ERRNO(stat(".", &st), EACCES);
    CHECK_ERRNO(chdir(".."), EACCES);
}

MAIN
