// build: dynamic -pthread
// What a process was started from: cmdline, environ, auxv, exe, cwd, root, comm.
#include "procs.h"
#include <elf.h>
#include <pthread.h>
#include <sys/auxv.h>

static int out_fd, go_fd;
// Starts this program's helper "@hold" with these arguments and environment, waiting until it runs.
static pid_t start(const char *file, char **argv, char **env) {
    int ready[2], go[2];
    CHECK_OK(pipe(ready));
    CHECK_OK(pipe(go));
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        CHECK_OK(dup2(ready[1], 60));
        CHECK_OK(dup2(go[0], 61));
        execve(file, argv, env);
        FAIL("execve %s: %d", file, errno);
    }
    char c;
    CHECK_EQ(read(ready[0], &c, 1), 1);
    out_fd = ready[0], go_fd = go[1];
    return pid;
}

HELPER(hold) {
    char c;
    CHECK_EQ(write(60, "r", 1), 1);
    if (read(61, &c, 1) == 1 && c == 'w') {
        memset(argv[0], 'X', strlen(argv[0]));  // as programs that retitle themselves
        CHECK_EQ(write(60, "w", 1), 1);
        (void)!read(61, &c, 1);
    }
}

CASE(cmdline) {
    char *argv[] = {"zero", "@hold", "", "two words", "last", NULL}, *env[] = {NULL};
    pid_t pid = start(check_self, argv, env);
    char *text = slurp(of_pid(pid, "cmdline"));
    static const char want[] = "zero\0@hold\0\0two words\0last";
    CHECK_EQ(slurped, sizeof want);
    CHECK_EQ(memcmp(text, want, sizeof want), 0);
    char part[6] = {0};
    int fd = CHECK_OK(open(of_pid(pid, "cmdline"), O_RDONLY));
    CHECK_EQ(pread(fd, part, 5, 5), 5);
    CHECK_STR(part, "@hold");
    CHECK_EQ(pread(fd, part, 5, 1000), 0);
    char c;
    CHECK_EQ(write(go_fd, "w", 1), 1);
    CHECK_EQ(read(out_fd, &c, 1), 1);
    CHECK_EQ(memcmp(slurp(of_pid(pid, "cmdline")), "XXXX\0@hold", 10), 0);
    end(pid);
}

CASE(cmdline_when_dead) {
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) _exit(0);
    siginfo_t info;
    CHECK_OK(waitid(P_PID, pid, &info, WEXITED | WNOWAIT));
    slurp(of_pid(pid, "cmdline"));
    CHECK_EQ(slurped, 0);
    CHECK_ERRNO(open(of_pid(pid, "environ"), O_RDONLY), geteuid() == 0 ? ESRCH : EACCES);  // owned by root now
    char buf[8];
    CHECK_ERRNO(readlink(of_pid(pid, "exe"), buf, 8), ENOENT);
    CHECK_ERRNO(readlink(of_pid(pid, "cwd"), buf, 8), ENOENT);
    slurp(of_pid(pid, "maps"));
    CHECK_EQ(slurped, 0);
    CHECK_STR(slurp(of_pid(pid, "comm")) + slurped - 1, "\n");
    CHECK_EXIT(pid, 0);
}

CASE(environ_as_at_the_start) {
    char *argv[] = {"x", "@hold", NULL}, *env[] = {"FIRST=1", "SECOND=two words", "EMPTY=", NULL};
    pid_t pid = start(check_self, argv, env);
    char *text = slurp(of_pid(pid, "environ"));
    static const char want[] = "FIRST=1\0SECOND=two words\0EMPTY=";
    CHECK_EQ(slurped, sizeof want);
    CHECK_EQ(memcmp(text, want, sizeof want), 0);
    end(pid);
    CHECK_OK(setenv("ADDED_LATER", "yes", 1));
    text = slurp("/proc/self/environ");
    CHECK(memmem(text, slurped, "ADDED_LATER", 11) == NULL);
}

CASE(long_command_line) {
    static char big[100000];
    memset(big, 'l', sizeof big - 1);
    char *argv[] = {"x", "@hold", big, "end", NULL}, *env[] = {NULL};
    pid_t pid = start(check_self, argv, env);
    char *text = slurp(of_pid(pid, "cmdline"));
    CHECK_EQ(slurped, 2 + 6 + sizeof big + 4);
    CHECK_STR(text + slurped - 4, "end");
    end(pid);
}

CASE(auxiliary_vector) {
    const Elf64_auxv_t *v = (const void *)slurp("/proc/self/auxv");
    CHECK_EQ(slurped % sizeof *v, 0);
    int n = slurped / sizeof *v, seen = 0;
    for (int i = 0; i < n && v[i].a_type != AT_NULL; i++) {
        unsigned long type = v[i].a_type;
        if (type != AT_PAGESZ && type != AT_ENTRY && type != AT_RANDOM && type != AT_CLKTCK) continue;
        CHECK_EQ(v[i].a_un.a_val, getauxval(type));
        seen++;
    }
    CHECK_EQ(seen, 4);
}

static void copy_self(const char *to) {
    static char buf[65536];
    int in = CHECK_OK(open("/proc/self/exe", O_RDONLY)), out = CHECK_OK(open(to, O_WRONLY | O_CREAT | O_EXCL, 0755));
    for (long n; (n = CHECK_OK(read(in, buf, sizeof buf))) > 0;) CHECK_EQ(write(out, buf, n), n);
    CHECK_OK(close(in));
    CHECK_OK(close(out));
}

CASE(exe_link) {
    char want[600];
    struct stat a, b;
    CHECK_OK(stat("/proc/self/exe", &a));
    CHECK_OK(stat(link_of("/proc/self/exe"), &b));
    CHECK_EQ(a.st_ino, b.st_ino);
    CHECK(S_ISREG(a.st_mode));
    CHECK_OK(lstat("/proc/self/exe", &b));
    CHECK(S_ISLNK(b.st_mode));
    CHECK_EQ(b.st_size, 0);
    snprintf(want, sizeof want, "%s", TMP("prog"));
    copy_self(want);
    char *argv[] = {"name of no file", "@hold", NULL}, *env[] = {NULL};
    pid_t pid = start(want, argv, env);
    CHECK_STR(link_of(of_pid(pid, "exe")), want);
    CHECK_STR(slurp(of_pid(pid, "comm")), "prog\n");  // the file's name, not the argument's
    CHECK_ERRNO(open(want, O_WRONLY), ETXTBSY);
    CHECK_OK(rename(want, TMP("moved")));
    CHECK_STR(link_of(of_pid(pid, "exe")), TMP("moved"));
    CHECK_OK(unlink(TMP("moved")));
    snprintf(want, sizeof want, "%s (deleted)", TMP("moved"));
    CHECK_STR(link_of(of_pid(pid, "exe")), want);
    CHECK_OK(stat(of_pid(pid, "exe"), &b));  // through the link it can still be reached
    CHECK_EQ(b.st_size, a.st_size);
    CHECK_OK(close(CHECK_OK(open(of_pid(pid, "exe"), O_RDONLY))));
    end(pid);
}

CASE(exe_of_a_script) {
    CHECK_OK(chdir(TMP(".")));
    copy_self("interp");
    char line[600];
    snprintf(line, sizeof line, "#!%s @hold\n", TMP("interp"));
    int fd = CHECK_OK(open("script", O_WRONLY | O_CREAT, 0755));
    CHECK_EQ(write(fd, line, strlen(line)), strlen(line));
    CHECK_OK(close(fd));
    char *argv[] = {"x", "arg", NULL}, *env[] = {NULL};
    pid_t pid = start("./script", argv, env);
    CHECK_STR(strrchr(link_of(of_pid(pid, "exe")), '/'), "/interp");
    CHECK_STR(slurp(of_pid(pid, "comm")), "script\n");
    char want[700];
    int n = snprintf(want, sizeof want, "%s%c@hold%c./script%carg", TMP("interp"), 0, 0, 0) + 1;
    char *text = slurp(of_pid(pid, "cmdline"));
    CHECK_EQ(slurped, n);
    CHECK_EQ(memcmp(text, want, n), 0);
    end(pid);
}

CASE(cwd_and_root) {
    char want[600];
    CHECK_OK(chdir("/usr/bin"));
    pid_t pid = sleeper();
    CHECK_OK(chdir("/"));
    CHECK_STR(link_of("/proc/self/cwd"), "/");
    CHECK_STR(link_of(of_pid(pid, "cwd")), "/usr/bin");
    CHECK_STR(link_of("/proc/self/root"), "/");
    CHECK_OK(access(of_pid(pid, "cwd/env"), X_OK));
    CHECK_OK(access(of_pid(pid, "root/etc/passwd"), R_OK));
    struct stat a, b;
    CHECK_OK(stat(of_pid(pid, "cwd/.."), &a));
    CHECK_OK(stat("/usr", &b));
    CHECK_EQ(a.st_ino, b.st_ino);
    end(pid);
    CHECK_OK(mkdir(TMP("gone"), 0755));
    snprintf(want, sizeof want, "%s (deleted)", TMP("gone"));
    CHECK_OK(chdir(TMP("gone")));
    CHECK_OK(rmdir(TMP("gone")));
    CHECK_STR(link_of("/proc/self/cwd"), want);
    CHECK_OK(stat("/proc/self/cwd", &a));
    CHECK_EQ(a.st_nlink, 0);
}

static int tid_pipe[2];
static void *report_tid(void *arg) {
    int tid = syscall(SYS_gettid);
    CHECK_EQ(write(tid_pipe[1], &tid, sizeof tid), sizeof tid);
    for (;;) pause();
    return arg;
}

CASE(comm) {
    int fd = CHECK_OK(open("/proc/self/comm", O_RDWR)), tid;
    CHECK_EQ(write(fd, "by writing", 10), 10);
    char name[20] = {0};
    CHECK_OK(prctl(PR_GET_NAME, name));
    CHECK_STR(name, "by writing");
    CHECK_STR(slurp("/proc/self/comm"), "by writing\n");
    CHECK_EQ(write(fd, "much longer than fifteen", 24), 24);
    CHECK_ERRNO(pwrite(fd, "x", 1, 0), ESPIPE);
    CHECK_STR(slurp("/proc/self/comm"), "much longer tha\n");
    CHECK_OK(pipe(tid_pipe));
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, report_tid, NULL), 0);
    CHECK_EQ(read(tid_pipe[0], &tid, sizeof tid), sizeof tid);
    char file[64];
    snprintf(file, sizeof file, "/proc/self/task/%d/comm", tid);
    fd = CHECK_OK(open(file, O_WRONLY));
    CHECK_EQ(write(fd, "thread", 6), 6);
    CHECK_STR(slurp(file), "thread\n");
    CHECK_STR(slurp("/proc/self/comm"), "much longer tha\n");
    pid_t pid = sleeper();
    fd = CHECK_OK(open(of_pid(pid, "comm"), O_WRONLY));
    CHECK_ERRNO(write(fd, "x", 1), EINVAL);  // only one's own
    end(pid);
}

MAIN
