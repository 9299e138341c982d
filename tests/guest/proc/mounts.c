// build: static
// /proc/mounts, /proc/PID/mounts, mountinfo, and /proc/filesystems.
#include "procs.h"
#include <linux/stat.h>
#include <sys/sysmacros.h>

struct mount {
    int id, parent;
    unsigned major_no, minor_no;
    char root[300], point[300], options[300], type[60], source[300], super[600];
};
static struct mount mounts[500];
static int count;

static void load(void) {
    char *text = slurp("/proc/self/mountinfo");
    count = 0;
    for (char *line = text; *line;) {
        char *end_of = strchr(line, '\n');
        CHECK(end_of != NULL);
        *end_of = 0;
        struct mount *m = &mounts[count++];
        int at = 0;
        CHECK_EQ(sscanf(line, "%d %d %u:%u %299s %299s %299s%n", &m->id, &m->parent, &m->major_no, &m->minor_no, m->root,
                        m->point, m->options, &at), 7);
        char *rest = strstr(line + at, " - ");  // behind any optional fields
        CHECK(rest != NULL);
        CHECK_EQ(sscanf(rest + 3, "%59s %299s %599s", m->type, m->source, m->super), 3);
        CHECK(m->root[0] == '/' || strchr(m->root, ':'));
        CHECK_EQ(m->point[0], '/');
        CHECK(!memcmp(m->options, "rw", 2) || !memcmp(m->options, "ro", 2));
        CHECK(!memcmp(m->super, "rw", 2) || !memcmp(m->super, "ro", 2));
        line = end_of + 1;
    }
}

static struct mount *point(const char *name) {
    struct mount *found = NULL;
    for (int i = 0; i < count; i++)
        if (!strcmp(mounts[i].point, name)) found = &mounts[i];  // the last is on top
    return found;
}

CASE(mountinfo) {
    load();
    CHECK_GT(count, 2);
    CHECK(point("/") != NULL);
    struct mount *proc = point("/proc");
    CHECK(proc != NULL);
    CHECK_STR(proc->type, "proc");
    CHECK_STR(proc->root, "/");
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < i; k++) CHECK_NE(mounts[i].id, mounts[k].id);
        CHECK_GT(mounts[i].id, 0);
    }
    CHECK_EQ(proc->parent, point("/")->id);
}

CASE(device_numbers_agree_with_stat) {
    load();
    const char *names[] = {"/", "/proc", "/dev", "/dev/pts"};
    for (int i = 0; i < 4; i++) {
        struct mount *m = point(names[i]);
        if (!m) continue;
        struct stat st;
        CHECK_OK(stat(names[i], &st));
        CHECK_EQ(makedev(m->major_no, m->minor_no), st.st_dev);
    }
}

CASE(ids_agree_with_statx) {
    load();
    const char *names[] = {"/", "/proc"};
    for (int i = 0; i < 2; i++) {
        struct statx x;
        CHECK_OK(syscall(SYS_statx, AT_FDCWD, names[i], 0, 0x1000 /* STATX_MNT_ID */, &x));
        CHECK(x.stx_mask & 0x1000);
        CHECK_EQ(*(uint64_t *)((char *)&x + 0x90), point(names[i])->id);
    }
    struct statx x;
    CHECK_OK(syscall(SYS_statx, AT_FDCWD, "/proc/self/stat", 0, 0x1000, &x));
    CHECK_EQ(*(uint64_t *)((char *)&x + 0x90), point("/proc")->id);
    char name[64];
    snprintf(name, sizeof name, "/proc/self/fdinfo/%lld", CHECK_OK(open("/proc/stat", O_RDONLY)));
    CHECK_EQ(number(slurp(name), "mnt_id"), point("/proc")->id);
}

CASE(mounts) {
    load();
    char *text = slurp("/proc/mounts");
    int lines = 0, proc = 0, root = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), lines++) {
        char source[300], where[300], type[60], options[600];
        int dump, pass, at = 0;
        CHECK_EQ(sscanf(line, "%299s %299s %59s %599s %d %d%n", source, where, type, options, &dump, &pass, &at), 6);
        CHECK_EQ(line[at], 0);
        CHECK_EQ(dump | pass, 0);
        proc += !strcmp(where, "/proc") && !strcmp(type, "proc");
        root += !strcmp(where, "/");
    }
    CHECK_EQ(lines, count);
    CHECK_GE(proc, 1);
    CHECK_GE(root, 1);
    CHECK_STR(link_of("/proc/mounts"), "self/mounts");
    char *again = slurp("/proc/self/mounts");
    CHECK_STR(again, slurp("/proc/mounts"));
    pid_t pid = sleeper();
    CHECK_STR(slurp(of_pid(pid, "mounts")), slurp("/proc/self/mounts"));
    end(pid);
    if (access("/etc/mtab", F_OK) == 0) CHECK_STR(slurp("/etc/mtab"), slurp("/proc/mounts"));
}

CASE(of_the_dead) {
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) _exit(0);
    siginfo_t info;
    CHECK_OK(waitid(P_PID, pid, &info, WEXITED | WNOWAIT));
    CHECK_ERRNO(open(of_pid(pid, "mounts"), O_RDONLY), EINVAL);
    CHECK_ERRNO(open(of_pid(pid, "mountinfo"), O_RDONLY), EINVAL);
    CHECK_EXIT(pid, 0);
}

CASE(filesystems) {
    char *text = slurp("/proc/filesystems");
    CHECK(strstr(text, "nodev\tproc\n") != NULL);
    CHECK(strstr(text, "nodev\ttmpfs\n") != NULL);
    CHECK(strstr(text, "nodev\tsysfs\n") != NULL);
    CHECK(strstr(text, "nodev\tdevpts\n") != NULL);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) CHECK(!memcmp(line, "nodev\t", 6) || line[0] == '\t');
}

MAIN
