// build: static
// run: root-only
// Set-user-id and set-group-id programs, and what they change besides the ids.
#include "../check.h"
#include <sys/auxv.h>
#include <sys/prctl.h>

enum { USER = 54321, OTHER = 54322 };

struct seen { uid_t r, e, s; gid_t rg, eg, sg; unsigned long secure, auid, aeuid; int dumpable; unsigned cap_e, cap_p; int pdeath; };
HELPER(show) {
    struct seen v = {0};
    getresuid(&v.r, &v.e, &v.s);
    getresgid(&v.rg, &v.eg, &v.sg);
    v.secure = getauxval(AT_SECURE);
    v.auid = getauxval(AT_UID);
    v.aeuid = getauxval(AT_EUID);
    v.dumpable = prctl(PR_GET_DUMPABLE);
    prctl(PR_GET_PDEATHSIG, &v.pdeath);
    unsigned h[2] = {0x20080522, 0}, d[6] = {0};
    syscall(SYS_capget, h, d);
    v.cap_e = d[0];
    v.cap_p = d[1];
    write(1, &v, sizeof v);
}

// A copy of this program below a directory that everybody may enter, with this owner and mode.
static const char *copy(const char *name, int uid, int gid, int mode) {
    static char bytes[4 << 20];
    CHECK_OK(chmod(TMP("."), 0755));
    const char *path = TMP(name);
    int in = CHECK_OK(open(check_self, O_RDONLY)), out = CHECK_OK(open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755));
    ssize_t n = CHECK_OK(read(in, bytes, sizeof bytes));
    CHECK_EQ(write(out, bytes, n), n);
    CHECK_OK(fchown(out, uid, gid));
    CHECK_OK(fchmod(out, mode));
    close(in);
    close(out);
    return path;
}

static struct seen run(const char *path, int as, void (*before)(void)) {
    int fds[2];
    struct seen v;
    CHECK_OK(pipe(fds));
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        if (as) {
            CHECK_OK(syscall(SYS_setresgid, as, as, as));
            CHECK_OK(syscall(SYS_setgroups, 0, NULL));
            CHECK_OK(syscall(SYS_setresuid, as, as, as));
        }
        if (before) before();
        dup2(fds[1], 1);
        execl(path, "x", "@show", NULL);
        FAIL("exec: %s", check_errno_name(errno));
    }
    CHECK_EXIT(p, 0);
    CHECK_EQ(read(fds[0], &v, sizeof v), sizeof v);
    close(fds[0]);
    close(fds[1]);
    return v;
}

// Without set-id support on the file system (nosuid) there is nothing to test.
static void need_setid(void) {
    NEED_ROOT();
    if (run(copy("probe", OTHER, 0, 04755), USER, NULL).e != OTHER) SKIP("set-id bits are not honoured below TMPDIR");
}

CASE(set_user_id_of_an_ordinary_user) {
    need_setid();
    struct seen v = run(copy("p", OTHER, 0, 04755), USER, NULL);
    CHECK_EQ(v.r, USER);
    CHECK_EQ(v.e, OTHER);
    CHECK_EQ(v.s, OTHER);  // saved, so that it can go back and forth
    CHECK_EQ(v.eg, USER);
    CHECK_EQ(v.secure, 1);
    CHECK_EQ(v.auid, USER);
    CHECK_EQ(v.aeuid, OTHER);
    CHECK_NE(v.dumpable, 1);
    CHECK_EQ(v.cap_e | v.cap_p, 0);
}

CASE(set_user_id_root) {
    need_setid();
    struct seen v = run(copy("p", 0, 0, 04755), USER, NULL);
    CHECK_EQ(v.r, USER);
    CHECK_EQ(v.e, 0);
    CHECK_EQ(v.s, 0);
    CHECK_EQ(v.secure, 1);
    CHECK_NE(v.cap_e & 1, 0);  // CAP_CHOWN, and the rest
    CHECK_EQ(v.cap_e, v.cap_p);
}

CASE(set_group_id) {
    need_setid();
    struct seen v = run(copy("p", 0, OTHER, 02755), USER, NULL);
    CHECK_EQ(v.e, USER);
    CHECK_EQ(v.rg, USER);
    CHECK_EQ(v.eg, OTHER);
    CHECK_EQ(v.sg, OTHER);
    CHECK_EQ(v.secure, 1);
    // Without group execute permission the bit means mandatory locking, not set-gid.
    v = run(copy("p", 0, OTHER, 02745), USER, NULL);
    CHECK_EQ(v.eg, USER);
    CHECK_EQ(v.secure, 0);
}

CASE(its_own_owner_changes_nothing) {
    need_setid();
    struct seen v = run(copy("p", USER, USER, 06755), USER, NULL);
    CHECK_EQ(v.e, USER);
    CHECK_EQ(v.secure, 0);
    CHECK_EQ(v.dumpable, 1);
}

static void no_new_privs(void) { CHECK_OK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)); }

CASE(no_new_privs_ignores_the_bits) {
    need_setid();
    struct seen v = run(copy("p", 0, OTHER, 06755), USER, no_new_privs);
    CHECK_EQ(v.e, USER);
    CHECK_EQ(v.eg, USER);
    CHECK_EQ(v.secure, 0);
    CHECK_EQ(v.cap_e, 0);
}

static void pdeath(void) { CHECK_OK(prctl(PR_SET_PDEATHSIG, SIGUSR1)); }

CASE(the_parent_death_signal_is_forgotten) {
    need_setid();
    CHECK_EQ(run(copy("p", OTHER, 0, 04755), USER, pdeath).pdeath, 0);
    CHECK_EQ(run(copy("q", OTHER, 0, 0755), USER, pdeath).pdeath, SIGUSR1);
}

static void drop_all(void) {
    unsigned h[2] = {0x20080522, 0}, d[6] = {0};
    CHECK_OK(syscall(SYS_capset, h, d));
}

CASE(root_regains_capabilities_by_exec) {
    NEED_ROOT();
    struct seen v = run(copy("p", 0, 0, 0755), 0, drop_all);
    CHECK_EQ(v.e, 0);
    CHECK_NE(v.cap_e & 1, 0);
    CHECK_EQ(v.secure, 0);
}

static void effective_only(void) { CHECK_OK(syscall(SYS_setresuid, USER, 0, 0)); }
static void real_only(void) { CHECK_OK(syscall(SYS_setresuid, 0, USER, 0)); }

CASE(unequal_ids_at_exec) {
    NEED_ROOT();
    struct seen v = run(copy("p", 0, 0, 0755), 0, effective_only);
    CHECK_EQ(v.r, USER);
    CHECK_EQ(v.e, 0);
    CHECK_EQ(v.secure, 1);  // real and effective differ
    CHECK_NE(v.cap_e & 1, 0);
    v = run(copy("p", 0, 0, 0755), 0, real_only);
    CHECK_EQ(v.r, 0);
    CHECK_EQ(v.e, USER);
    CHECK_EQ(v.s, USER);  // the saved one follows the effective one
    CHECK_NE(v.cap_p & 1, 0);
    CHECK_EQ(v.cap_e & 1, 0);
}

CASE(a_script_is_never_set_id) {
    need_setid();
    char text[400];
    const char *program = copy("p", 0, 0, 0755), *path = TMP("script");
    int n = snprintf(text, sizeof text, "#!%s @show\n", program), fd = CHECK_OK(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755));
    CHECK_EQ(write(fd, text, n), n);
    CHECK_OK(fchown(fd, OTHER, OTHER));
    CHECK_OK(fchmod(fd, 06755));
    CHECK_OK(close(fd));
    struct seen v = run(path, USER, NULL);
    CHECK_EQ(v.e, USER);
    CHECK_EQ(v.eg, USER);
}

CASE(writing_clears_the_bits) {
    NEED_ROOT();
    const char *path = copy("p", OTHER, OTHER, 06777);
    struct stat st;
    CHECK_OK(stat(path, &st));
    CHECK_EQ(st.st_mode & 06000, 06000);
    IN_CHILD({
        CHECK_OK(syscall(SYS_setresuid, USER, USER, USER));
        int fd = CHECK_OK(open(path, O_WRONLY));
        CHECK_EQ(write(fd, "x", 1), 1);
    });
    CHECK_OK(stat(path, &st));
    CHECK_EQ(st.st_mode & 06000, 0);
    CHECK_OK(chmod(path, 06777));
    CHECK_OK(chown(path, USER, USER));  // as does a change of owner
    CHECK_OK(stat(path, &st));
    CHECK_EQ(st.st_mode & 06000, 0);
}

CASE(signals_to_a_set_id_process) {
    need_setid();
    const char *path = copy("p", OTHER, 0, 04755);
    int fds[2];
    CHECK_OK(pipe(fds));
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        CHECK_OK(syscall(SYS_setresuid, USER, USER, USER));
        dup2(fds[1], 1);
        execl(path, "x", "@stay", NULL);
        FAIL("exec");
    }
    char c;
    CHECK_EQ(read(fds[0], &c, 1), 1);
    IN_CHILD({
        // Its real uid is still ours: that is enough to be allowed.
        CHECK_OK(syscall(SYS_setresuid, USER, USER, USER));
        CHECK_OK(kill(p, 0));
    });
    IN_CHILD({
        CHECK_OK(syscall(SYS_setresuid, USER + 9, USER + 9, USER + 9));
        CHECK_ERRNO(kill(p, 0), EPERM);
    });
    CHECK_OK(kill(p, SIGKILL));
    CHECK_KILLED(p, SIGKILL);
}
HELPER(stay) {
    write(1, "x", 1);
    for (;;) pause();
}

MAIN
