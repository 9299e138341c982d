// What the programs of this family share: reading small files whole and finding fields in them.
#ifndef PROCS_H
#define PROCS_H
#include "../check.h"
#include <grp.h>
#include <sys/prctl.h>

// An address where nothing is mapped; volatile, so that gcc does not argue.
static void *volatile nowhere CHECK_USED = (void *)8;

// The whole file, with a zero behind it; the length goes to `slurped`. The last two results stay valid.
static long slurped CHECK_USED;
CHECK_USED static char *slurp(const char *name) {
    enum { ROOM = 1 << 20 };
    static char texts[2][ROOM];  // not from malloc: reading must not change what is read
    static int which;
    char *text = texts[which ^= 1];
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd == -1) FAIL("open(%s): %s", name, strerror(errno));
    long n = 0, r;
    while ((r = read(fd, text + n, ROOM - 1 - n)) > 0) n += r;
    if (r == -1) FAIL("read(%s): %s", name, strerror(errno));
    text[n] = 0;
    slurped = n;
    close(fd);
    return text;
}

CHECK_USED static const char *of_pid(pid_t pid, const char *file) {
    static char names[4][64];
    static int which;
    char *name = names[++which % 4];
    snprintf(name, sizeof names[0], "/proc/%d/%s", pid, file);
    return name;
}

// What follows "KEY:" and blanks on the line that begins with it.
CHECK_USED static const char *field(const char *text, const char *key) {
    static char values[4][400];
    static int which;
    size_t len = strlen(key);
    for (const char *line = text; *line;) {
        const char *end = strchr(line, '\n');
        if (!end) end = line + strlen(line);
        const char *colon = memchr(line, ':', end - line);
        if (colon && colon - line >= (long)len && !memcmp(line, key, len)) {
            const char *k = line + len;
            while (k < colon && (*k == '\t' || *k == ' ')) k++;
            if (k == colon) {
                const char *v = colon + 1;
                while (v < end && (*v == ' ' || *v == '\t')) v++;
                char *out = values[++which % 4];
                snprintf(out, sizeof values[0], "%.*s", (int)(end - v), v);
                return out;
            }
        }
        line = *end ? end + 1 : end;
    }
    FAIL("no line \"%s:\"", key);
}

CHECK_USED static long long number(const char *text, const char *key) {
    const char *v = field(text, key);
    char *end;
    long long n = strtoll(v, &end, 10);
    if (end == v) FAIL("%s is \"%s\"", key, v);
    return n;
}

CHECK_USED static const char *link_of(const char *name) {
    static char targets[2][4100];
    static int which;
    char *target = targets[which ^= 1];
    long n = readlink(name, target, sizeof targets[0] - 1);
    if (n == -1) FAIL("readlink(%s): %s", name, strerror(errno));
    target[n] = 0;
    return target;
}

CHECK_USED static void be_user(void) {
    if (geteuid() != 0) return;
    CHECK_OK(setgroups(0, NULL));
    CHECK_OK(setresgid(65534, 65534, 65534));
    CHECK_OK(setresuid(65534, 65534, 65534));
}

// A child that only waits, and ends with its parent.
CHECK_USED static pid_t sleeper(void) {
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) pause();
    }
    return pid;
}

CHECK_USED static void end(pid_t pid) {
    CHECK_OK(kill(pid, SIGKILL));
    CHECK_KILLED(pid, SIGKILL);
}

#endif
