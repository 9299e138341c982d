// What the programs of this family share: the case's own directory, small files, dropping to an unprivileged user.
#ifndef TREE_H
#define TREE_H
#include "../check.h"
#include <grp.h>

// An address where nothing is mapped; volatile, so that gcc does not argue.
static void *volatile nowhere CHECK_USED = (void *)8;

// Stand in the case's own empty directory, umask 022.
CHECK_USED static void enter(void) {
    umask(022);
    CHECK_OK(chdir(TMP(".")));
}

// As root become nobody for the rest of this process; else nothing.
CHECK_USED static void be_user(void) {
    if (geteuid() != 0) return;
    CHECK_OK(setgroups(0, NULL));
    CHECK_OK(setresgid(65534, 65534, 65534));
    CHECK_OK(setresuid(65534, 65534, 65534));
}

// Stand in that directory as an unprivileged user who owns it. The way there may be closed to this user: relative names only.
CHECK_USED static void enter_as_user(void) {
    enter();
    if (geteuid() == 0) CHECK_OK(chown(".", 65534, 65534));
    be_user();
}

// A new file (0644) with this text; its descriptor, open for both, at the text's end.
CHECK_USED static int make(const char *name, const char *text) {
    int fd = CHECK_OK(open(name, O_RDWR | O_CREAT | O_EXCL, 0644));
    CHECK_EQ(write(fd, text, strlen(text)), strlen(text));
    return fd;
}

CHECK_USED static struct stat look(const char *name) {
    struct stat st;
    CHECK_OK(lstat(name, &st));
    return st;
}

CHECK_USED static struct stat flook(int fd) {
    struct stat st;
    CHECK_OK(fstat(fd, &st));
    return st;
}

CHECK_USED static const char *proc_fd(int fd) {
    static char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return path;
}

// The whole content, as a string of at most 255 bytes.
CHECK_USED static const char *content(const char *name) {
    static char text[256];
    int fd = CHECK_OK(open(name, O_RDONLY));
    int n = CHECK_OK(read(fd, text, 255));
    text[n] = 0;
    CHECK_OK(close(fd));
    return text;
}

#endif
