// build: static -pthread
// run: root-only
// Credentials as root: the set*id family, groups, capabilities and how they are lost, permission to signal.
#include "clone.h"
#include <grp.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>

struct caps { uint64_t e, p, i; };
static struct caps get_caps(void) {
    struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct d[2];
    CHECK_OK(syscall(SYS_capget, &h, d));
    return (struct caps){d[0].effective | (uint64_t)d[1].effective << 32, d[0].permitted | (uint64_t)d[1].permitted << 32,
                         d[0].inheritable | (uint64_t)d[1].inheritable << 32};
}
static int set_caps(struct caps c) {
    struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct d[2] = {{c.e, c.p, c.i}, {c.e >> 32, c.p >> 32, c.i >> 32}};
    return syscall(SYS_capset, &h, d);
}
static uint64_t bit(int cap) { return 1ull << cap; }
static int set_uids(int r, int e, int s) { return syscall(SYS_setresuid, r, e, s); }

#define UIDS(R, E, S)                                            \
    do {                                                         \
        uid_t r_, e_, s_;                                        \
        CHECK_OK(getresuid(&r_, &e_, &s_));                      \
        CHECK_EQ(r_, R);                                         \
        CHECK_EQ(e_, E);                                         \
        CHECK_EQ(s_, S);                                         \
        CHECK_EQ(getuid(), R);                                   \
        CHECK_EQ(geteuid(), E);                                  \
    } while (0)

CASE(setuid_sets_all_three) {
    NEED_ROOT();
    UIDS(0, 0, 0);
    CHECK_OK(syscall(SYS_setuid, 1000));
    UIDS(1000, 1000, 1000);
    CHECK_ERRNO(syscall(SYS_setuid, 0), EPERM);
    CHECK_ERRNO(set_uids(0, -1, -1), EPERM);
    CHECK_OK(syscall(SYS_setuid, 1000));
}

CASE(setresuid_and_back) {
    NEED_ROOT();
    CHECK_OK(set_uids(1000, 1001, 0));
    UIDS(1000, 1001, 0);
    // Any of the three may become any of the three.
    CHECK_ERRNO(set_uids(-1, 1002, -1), EPERM);
    CHECK_OK(set_uids(1001, 1000, -1));
    UIDS(1001, 1000, 0);
    CHECK_OK(syscall(SYS_setuid, 0));  // not privileged now: only the effective one changes
    UIDS(1001, 0, 0);
    CHECK_OK(set_uids(5, 6, 7));
    UIDS(5, 6, 7);
    CHECK_ERRNO(set_uids(5, 6, 8), EPERM);
    CHECK_OK(set_uids(-1, -1, -1));
    UIDS(5, 6, 7);
}

CASE(setreuid_moves_the_saved_one) {
    NEED_ROOT();
    CHECK_OK(syscall(SYS_setreuid, 1000, -1));  // the real one set: saved follows the effective
    UIDS(1000, 0, 0);
    CHECK_OK(syscall(SYS_setreuid, -1, 1000));  // equal to the real one: the saved one stays
    UIDS(1000, 1000, 0);
    CHECK_OK(syscall(SYS_setreuid, -1, 0));
    CHECK_OK(syscall(SYS_setreuid, -1, 2000));  // unlike the real one: saved follows
    UIDS(1000, 2000, 2000);
    CHECK_OK(syscall(SYS_setreuid, 2000, 1000));  // swapped
    UIDS(2000, 1000, 1000);
    CHECK_ERRNO(syscall(SYS_setreuid, 0, -1), EPERM);
}

CASE(gids_likewise) {
    NEED_ROOT();
    gid_t r, e, s;
    CHECK_OK(syscall(SYS_setresgid, 10, 20, 30));
    CHECK_OK(getresgid(&r, &e, &s));
    CHECK_EQ(r * 10000 + e * 100 + s, 102030);
    CHECK_OK(syscall(SYS_setgid, 40));  // uid 0 has CAP_SETGID
    CHECK_OK(getresgid(&r, &e, &s));
    CHECK_EQ(r * 10000 + e * 100 + s, 404040);
    CHECK_OK(syscall(SYS_setregid, 1, 2));
    CHECK_OK(getresgid(&r, &e, &s));
    CHECK_EQ(r * 10000 + e * 100 + s, 10202);
    CHECK_OK(syscall(SYS_setuid, 1000));
    CHECK_ERRNO(syscall(SYS_setgid, 40), EPERM);
    CHECK_OK(syscall(SYS_setgid, 1));
    CHECK_OK(getresgid(&r, &e, &s));
    CHECK_EQ(r * 10000 + e * 100 + s, 10102);
    CHECK_EQ(getegid(), 1);
}

CASE(groups) {
    NEED_ROOT();
    gid_t want[] = {70, 5, 30, 5}, got[10];
    CHECK_OK(syscall(SYS_setgroups, 4, want));
    CHECK_EQ(syscall(SYS_getgroups, 0, NULL), 4);
    CHECK_EQ(syscall(SYS_getgroups, 10, got), 4);
    CHECK(got[0] == 5 && got[1] == 5 && got[2] == 30 && got[3] == 70);  // sorted
    CHECK_ERRNO(syscall(SYS_getgroups, 3, got), EINVAL);
    CHECK_ERRNO(syscall(SYS_getgroups, -1, got), EINVAL);
    CHECK_ERRNO(syscall(SYS_getgroups, 4, (void *)8), EFAULT);
    CHECK_ERRNO(syscall(SYS_setgroups, 65537, want), EINVAL);
    CHECK_ERRNO(syscall(SYS_setgroups, 2, (void *)8), EFAULT);
    gid_t invalid = -1;
    CHECK_ERRNO(syscall(SYS_setgroups, 1, &invalid), EINVAL);
    IN_CHILD(CHECK_EQ(getgroups(0, NULL), 4));
    CHECK_OK(syscall(SYS_setgroups, 0, NULL));
    CHECK_EQ(getgroups(0, NULL), 0);
    CHECK_OK(syscall(SYS_setuid, 1000));
    CHECK_ERRNO(syscall(SYS_setgroups, 1, want), EPERM);
}

CASE(group_membership_gives_access) {
    NEED_ROOT();
    const char *path = TMP("f");
    int fd = CHECK_OK(open(path, O_RDWR | O_CREAT, 0640));
    CHECK_OK(fchmod(fd, 0640));
    CHECK_OK(fchown(fd, 0, 777));
    gid_t group = 777;
    IN_CHILD({
        CHECK_OK(syscall(SYS_setgroups, 1, &group));
        CHECK_OK(set_uids(1000, 1000, 1000));
        CHECK_OK(open(path, O_RDONLY));
        CHECK_ERRNO(open(path, O_RDWR), EACCES);
    });
    IN_CHILD({
        CHECK_OK(syscall(SYS_setgroups, 0, NULL));
        CHECK_OK(syscall(SYS_setresgid, 5, 5, 5));
        CHECK_OK(set_uids(1000, 1000, 1000));
        CHECK_ERRNO(open(path, O_RDONLY), EACCES);
    });
}

CASE(fsuid) {
    NEED_ROOT();
    const char *path = TMP("g");
    int fd = CHECK_OK(open(path, O_RDWR | O_CREAT, 0600));
    CHECK_OK(fchown(fd, 1000, 1000));
    CHECK_EQ(setfsuid(2000), 0);
    CHECK_EQ(setfsuid(-1), 2000);
    CHECK_ERRNO(open(path, O_RDONLY), EACCES);  // the file capabilities went with it
    CHECK_EQ(setfsuid(1000), 2000);
    CHECK_OK(open(path, O_RDONLY));
    CHECK_EQ(setfsuid(0), 1000);
    CHECK_EQ(setfsgid(3000), 0);
    CHECK_EQ(setfsgid(-1), 3000);
    // The effective uid carries it along.
    CHECK_OK(set_uids(-1, 1500, -1));
    CHECK_EQ(setfsuid(-1), 1500);
}

static void *raw_set(void *arg) {
    CHECK_OK(set_uids(1234, 1234, 1234));
    UIDS(1234, 1234, 1234);
    char text[4096];
    snprintf(text, sizeof text, "/proc/self/task/%d/status", tid());
    int fd = CHECK_OK(open(text, O_RDONLY));
    CHECK_GT(read(fd, text, sizeof text - 1), 0);
    CHECK(strstr(text, "\nUid:\t1234\t1234\t1234\t1234\n") != NULL);
    return arg;
}

CASE(raw_setresuid_is_per_thread) {
    NEED_ROOT();
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, raw_set, NULL), 0);
    CHECK_EQ(pthread_join(t, NULL), 0);
    UIDS(0, 0, 0);
}

static pthread_barrier_t barrier;
static void *follow(void *arg) {
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    UIDS(4321, 4321, 4321);
    return arg;
}

CASE(libc_setuid_is_for_all_threads) {
    NEED_ROOT();
    pthread_t t[5];
    pthread_barrier_init(&barrier, NULL, 6);
    for (int i = 0; i < 5; i++) CHECK_EQ(pthread_create(&t[i], NULL, follow, NULL), 0);
    pthread_barrier_wait(&barrier);
    CHECK_OK(setuid(4321));  // signals every thread
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 5; i++) CHECK_EQ(pthread_join(t[i], NULL), 0);
}

CASE(capabilities_are_lost_with_the_uids) {
    NEED_ROOT();
    struct caps all = get_caps(), c;
    CHECK_NE(all.e & bit(CAP_CHOWN), 0);
    // Effective 0 -> other: the effective set goes, back to 0: it returns.
    CHECK_OK(set_uids(-1, 1000, -1));
    c = get_caps();
    CHECK_EQ(c.e, 0);
    CHECK_EQ(c.p, all.p);
    CHECK_OK(set_uids(-1, 0, -1));
    CHECK_EQ(get_caps().e, all.p);
    // All three away from 0: permitted goes as well.
    CHECK_OK(set_uids(1000, 1000, 1000));
    c = get_caps();
    CHECK_EQ(c.e | c.p, 0);
}

CASE(keepcaps_keeps_the_permitted_set) {
    NEED_ROOT();
    struct caps all = get_caps();
    CHECK_OK(prctl(PR_SET_KEEPCAPS, 1));
    CHECK_OK(set_uids(1000, 1000, 1000));
    struct caps c = get_caps();
    CHECK_EQ(c.p, all.p);
    CHECK_EQ(c.e, 0);
    c.e = bit(CAP_SETUID);
    CHECK_OK(set_caps(c));
    CHECK_OK(set_uids(2000, 2000, 2000));
}

CASE(capset_rules) {
    NEED_ROOT();
    struct caps all = get_caps(), c = all;
    c.p &= ~bit(CAP_KILL);
    CHECK_ERRNO(set_caps(c), EPERM);  // effective beyond permitted
    c.e = c.p;
    CHECK_OK(set_caps(c));
    CHECK_EQ(get_caps().p, all.p & ~bit(CAP_KILL));
    CHECK_ERRNO(set_caps(all), EPERM);  // never back
    c.e = 0;
    CHECK_OK(set_caps(c));
    CHECK_ERRNO(chown(TMP("x"), 1, 1), ENOENT);
    CHECK_ERRNO(set_uids(5, 5, 5), EPERM);
    c.i = bit(CAP_CHOWN);
    CHECK_OK(set_caps(c));
    CHECK_EQ(get_caps().i, bit(CAP_CHOWN));
    CHECK_OK(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_CHOWN, 0, 0));
    CHECK_EQ(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_CHOWN, 0, 0), 1);
    c.i = 0;  // ambient follows inheritable down
    CHECK_OK(set_caps(c));
    CHECK_EQ(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_CHOWN, 0, 0), 0);
}

CASE(capget_versions) {
    NEED_ROOT();
    struct __user_cap_header_struct h = {0x12345, 0};
    struct __user_cap_data_struct d[2];
    CHECK_ERRNO(syscall(SYS_capget, &h, d), EINVAL);
    CHECK_EQ(h.version, _LINUX_CAPABILITY_VERSION_3);
    h.version = 0;
    CHECK_OK(syscall(SYS_capget, &h, NULL));  // a probe for the version
    h = (struct __user_cap_header_struct){_LINUX_CAPABILITY_VERSION_1, 0};
    CHECK_OK(syscall(SYS_capget, &h, d));
    CHECK_NE(d[0].effective & bit(CAP_CHOWN), 0);
    h = (struct __user_cap_header_struct){_LINUX_CAPABILITY_VERSION_3, 0x3fffffff};
    CHECK_ERRNO(syscall(SYS_capget, &h, d), ESRCH);
    h.pid = -1;
    CHECK_ERRNO(syscall(SYS_capget, &h, d), EINVAL);
    h.pid = 1;
    CHECK_ERRNO(syscall(SYS_capset, &h, d), EPERM);  // others cannot be set
}

CASE(bounding_set_drops) {
    NEED_ROOT();
    CHECK_EQ(prctl(PR_CAPBSET_READ, CAP_MKNOD), 1);
    CHECK_OK(prctl(PR_CAPBSET_DROP, CAP_MKNOD));
    CHECK_EQ(prctl(PR_CAPBSET_READ, CAP_MKNOD), 0);
    CHECK_NE(get_caps().e & bit(CAP_MKNOD), 0);  // not yet
    IN_CHILD(CHECK_EQ(prctl(PR_CAPBSET_READ, CAP_MKNOD), 0));
}

CASE(signals_need_matching_uids) {
    NEED_ROOT();
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        CHECK_OK(set_uids(1000, 1001, 1002));
        for (;;) pause();
    }
    char path[64];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d/task", p);
    for (int i = 0; i < 500 && stat(path, &st) == 0 && stat_field(p, 3) != 'S'; i++) sleep_ms(2);
    // Sender's real or effective against the target's real or saved.
    static const struct { int uid, allowed; } t[] = {{1000, 1}, {1002, 1}, {1001, 0}, {1003, 0}};
    for (int i = 0; i < 4; i++)
        for (int how = 0; how < 2; how++) IN_CHILD({
            CHECK_OK(how ? set_uids(t[i].uid, 9999, 9999) : set_uids(9999, t[i].uid, 9999));
            if (t[i].allowed) CHECK_OK(kill(p, 0));
            else CHECK_ERRNO(kill(p, 0), EPERM);
        });
    // SIGCONT within the session is always allowed.
    IN_CHILD({
        CHECK_OK(set_uids(3000, 3000, 3000));
        CHECK_OK(kill(p, SIGCONT));
        CHECK_ERRNO(kill(p, SIGTERM), EPERM);
        CHECK_ERRNO(kill(1, 0), EPERM);
    });
    CHECK_OK(kill(p, SIGKILL));
    CHECK_KILLED(p, SIGKILL);
}

CASE(uid_change_makes_undumpable) {
    NEED_ROOT();
    CHECK_EQ(prctl(PR_GET_DUMPABLE), 1);
    int sig = 0;
    CHECK_OK(prctl(PR_SET_PDEATHSIG, SIGTERM));
    CHECK_OK(set_uids(1000, 1000, 1000));
    CHECK_NE(prctl(PR_GET_DUMPABLE), 1);  // fs.suid_dumpable
    CHECK_OK(prctl(PR_GET_PDEATHSIG, &sig));
    CHECK_EQ(sig, 0);  // and forgets the parent-death signal
}

MAIN
