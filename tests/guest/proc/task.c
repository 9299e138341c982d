// build: static -pthread
// Threads in /proc: task, thread-self, names by tid; children; what goes when a thread ends.
#include "procs.h"
#include <pthread.h>

static int tids[2], hold[2];

static void *work(void *arg) {
    int tid = syscall(SYS_gettid);
    CHECK_OK(prctl(PR_SET_NAME, arg));
    CHECK_EQ(write(tids[1], &tid, sizeof tid), sizeof tid);
    char c;
    (void)!read(hold[0], &c, 1);
    return NULL;
}

static int start(pthread_t *t, const char *name) {
    int tid;
    if (!tids[1]) {
        CHECK_OK(pipe(tids));
        CHECK_OK(pipe(hold));
    }
    CHECK_EQ(pthread_create(t, NULL, work, (void *)name), 0);
    CHECK_EQ(read(tids[0], &tid, sizeof tid), sizeof tid);
    return tid;
}

static int entries(const char *dir, int wanted) {
    DIR *d = opendir(dir);
    CHECK(d != NULL);
    int n = 0, found = 0;
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.') continue;
        CHECK_EQ(e->d_type, DT_DIR);
        found += atoi(e->d_name) == wanted;
        n++;
    }
    closedir(d);
    CHECK_EQ(found, 1);
    return n;
}

static const char *of_task(int tid, const char *file) {
    static char names[4][80];
    static int which;
    char *name = names[++which % 4];
    snprintf(name, sizeof names[0], "/proc/self/task/%d/%s", tid, file);
    return name;
}

CASE(one_directory_for_each) {
    pthread_t a, b;
    CHECK_EQ(entries("/proc/self/task", getpid()), 1);
    int one = start(&a, "first"), two = start(&b, "second");
    CHECK_EQ(entries("/proc/self/task", one), 3);
    CHECK_EQ(entries("/proc/self/task", two), 3);
    CHECK_STR(slurp(of_task(one, "comm")), "first\n");
    CHECK_STR(slurp(of_task(two, "comm")), "second\n");
    CHECK_STR(field(slurp(of_task(two, "status")), "Name"), "second");
    CHECK_EQ(number(slurp(of_task(two, "status")), "Pid"), two);
    CHECK_EQ(number(slurp(of_task(two, "status")), "Tgid"), getpid());
    CHECK_EQ(number(slurp(of_task(two, "status")), "Threads"), 3);
    char *stat_text = slurp(of_task(one, "stat"));
    CHECK_EQ(atoi(stat_text), one);
    CHECK(strstr(stat_text, "(first) ") != NULL);
    struct stat st;
    CHECK_OK(stat("/proc/self/task", &st));
    CHECK_EQ(st.st_nlink, 5);  // two and the threads
    CHECK_EQ(write(hold[1], "xx", 2), 2);
    CHECK_EQ(pthread_join(a, NULL), 0);
    CHECK_EQ(pthread_join(b, NULL), 0);
    for (int i = 0; i < 200 && access(of_task(one, "stat"), F_OK) == 0; i++) usleep(5000);
    CHECK_ERRNO(open(of_task(one, "stat"), O_RDONLY), ENOENT);
    for (int i = 0; i < 200 && access(of_task(two, "stat"), F_OK) == 0; i++) usleep(5000);
    CHECK_EQ(entries("/proc/self/task", getpid()), 1);
}

CASE(threads_by_number) {
    pthread_t t;
    int tid = start(&t, "hidden");
    char name[64], listed = 0;
    snprintf(name, sizeof name, "/proc/%d/status", tid);
    CHECK_EQ(number(slurp(name), "Tgid"), getpid());  // can be named
    DIR *d = opendir("/proc");
    for (struct dirent *e; (e = readdir(d));) listed |= atoi(e->d_name) == tid;
    CHECK_EQ(listed, 0);  // but is not listed
    closedir(d);
    snprintf(name, sizeof name, "/proc/self/task/%d", getppid());
    CHECK_ERRNO(access(name, F_OK), ENOENT);  // other processes are no threads of ours
    snprintf(name, sizeof name, "/proc/%d/task/%d", tid, getpid());
    CHECK_OK(access(name, F_OK));
}

static void *look_at_self(void *arg) {
    char want[64];
    int tid = syscall(SYS_gettid);
    snprintf(want, sizeof want, "%d/task/%d", getpid(), tid);
    CHECK_STR(link_of("/proc/thread-self"), want);
    CHECK_OK(prctl(PR_SET_NAME, "looker"));
    CHECK_STR(slurp("/proc/thread-self/comm"), "looker\n");
    snprintf(want, sizeof want, "%d", getpid());
    CHECK_STR(link_of("/proc/self"), want);
    return arg;
}

CASE(self_and_thread_self) {
    pthread_t t;
    char want[64];
    snprintf(want, sizeof want, "%d", getpid());
    CHECK_STR(link_of("/proc/self"), want);
    snprintf(want, sizeof want, "%d/task/%d", getpid(), getpid());
    CHECK_STR(link_of("/proc/thread-self"), want);
    CHECK_EQ(pthread_create(&t, NULL, look_at_self, NULL), 0);
    CHECK_EQ(pthread_join(t, NULL), 0);
    IN_CHILD({
        char child[64];
        snprintf(child, sizeof child, "%d", getpid());
        CHECK_STR(link_of("/proc/self"), child);
    });
}

CASE(shared_parts) {
    pthread_t t;
    int tid = start(&t, "thread");
    CHECK_STR(link_of(of_task(tid, "exe")), link_of("/proc/self/exe"));
    CHECK_STR(link_of(of_task(tid, "cwd")), link_of("/proc/self/cwd"));
    char *a = slurp(of_task(tid, "cmdline"));
    long n = slurped;
    CHECK_EQ(memcmp(a, slurp("/proc/self/cmdline"), n), 0);
    CHECK_EQ(slurped, n);
    int fd = CHECK_OK(open("/dev/null", O_RDONLY));
    char name[32];
    snprintf(name, sizeof name, "fd/%d", fd);
    CHECK_STR(link_of(of_task(tid, name)), "/dev/null");
}

static void *sets_its_mask(void *arg) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
    return work(arg);
}

CASE(own_parts) {
    pthread_t t;
    int tid;
    CHECK_OK(pipe(tids));
    CHECK_OK(pipe(hold));
    CHECK_EQ(pthread_create(&t, NULL, sets_its_mask, "masked"), 0);
    CHECK_EQ(read(tids[0], &tid, sizeof tid), sizeof tid);
    CHECK_STR(field(slurp(of_task(tid, "status")), "SigBlk"), "0000000000000800");
    CHECK_STR(field(slurp("/proc/self/status"), "SigBlk"), "0000000000000000");
    CHECK_EQ(syscall(SYS_tgkill, getpid(), tid, SIGUSR2), 0);
    CHECK_STR(field(slurp(of_task(tid, "status")), "SigPnd"), "0000000000000800");
    CHECK_STR(field(slurp("/proc/self/status"), "SigPnd"), "0000000000000000");
}

CASE(children) {
    char name[64], *at;
    snprintf(name, sizeof name, "/proc/self/task/%d/children", getpid());
    if (access(name, F_OK) == -1) SKIP("no children files here");
    slurp(name);
    CHECK_EQ(slurped, 0);
    pid_t a = sleeper(), b = sleeper();
    char *text = slurp(name);
    CHECK_EQ(strtol(text, &at, 10), a);
    CHECK_EQ(strtol(at, &at, 10), b);
    CHECK_STR(at, " ");
    end(a);
    end(b);
}

static void *ends_first(void *arg) {
    usleep(100000);
    char *text = slurp("/proc/thread-self/status");
    CHECK_EQ(number(text, "Tgid"), getpid());
    // The leader has gone, the process has not: it shows as a zombie with a living thread.
    char leader[64];
    snprintf(leader, sizeof leader, "/proc/%d/status", getpid());
    CHECK_STR(field(slurp(leader), "State"), "Z (zombie)");
    CHECK_EQ(number(slurp(leader), "Threads"), 2);
    CHECK_STR(link_of("/proc/thread-self/root"), "/");
    syscall(SYS_exit_group, 3);
    return arg;
}

CASE(leader_ends_first) {
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        pthread_t t;
        CHECK_EQ(pthread_create(&t, NULL, ends_first, NULL), 0);
        syscall(SYS_exit, 0);
    }
    CHECK_EXIT(pid, 3);
}

MAIN
