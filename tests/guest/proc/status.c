// build: static -pthread
// /proc/PID/status and limits, as ps, top and container tools read them.
#include "procs.h"
#include <pthread.h>
#include <sys/resource.h>

CASE(identity) {
    char *s = slurp("/proc/self/status"), want[100];
    CHECK_EQ(number(s, "Pid"), getpid());
    CHECK_EQ(number(s, "Tgid"), getpid());
    CHECK_EQ(number(s, "PPid"), getppid());
    CHECK_EQ(number(s, "TracerPid"), 0);
    CHECK_STR(field(s, "State"), "R (running)");
    snprintf(want, sizeof want, "%d\t%d\t%d\t%d", getuid(), geteuid(), geteuid(), geteuid());
    CHECK_STR(field(s, "Uid"), want);
    snprintf(want, sizeof want, "%d\t%d\t%d\t%d", getgid(), getegid(), getegid(), getegid());
    CHECK_STR(field(s, "Gid"), want);
    CHECK_EQ(number(s, "Threads"), 1);
    CHECK_EQ(number(s, "NSpid"), getpid());
    CHECK_GE(number(s, "FDSize"), 64);
}

CASE(order_of_lines) {
    const char *keys[] = {"Name", "Umask", "State", "Tgid", "Ngid", "Pid", "PPid", "TracerPid", "Uid", "Gid", "FDSize", "Groups",
                          "VmPeak", "VmSize", "VmHWM", "VmRSS", "VmData", "VmStk", "VmExe", "Threads", "SigQ", "SigPnd",
                          "ShdPnd", "SigBlk", "SigIgn", "SigCgt", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb",
                          "NoNewPrivs", "Seccomp", "Cpus_allowed", "Cpus_allowed_list"};
    char *s = slurp("/proc/self/status"), *last = s - 1;
    for (unsigned i = 0; i < sizeof keys / sizeof *keys; i++) {
        char want[40];
        snprintf(want, sizeof want, "%s%s:", i ? "\n" : "", keys[i]);
        char *at = strstr(s, want);
        if (!at) FAIL("no line %s", keys[i]);
        if (at <= last) FAIL("%s is out of place", keys[i]);
        last = at;
        CHECK_EQ(at[strlen(want)], '\t');
    }
    CHECK_EQ(s[slurped - 1], '\n');
}

CASE(name_and_umask) {
    CHECK_OK(prctl(PR_SET_NAME, "odd\\\nname"));
    CHECK_STR(field(slurp("/proc/self/status"), "Name"), "odd\\\\\\nname");  // backslash and newline are escaped here
    umask(037);
    CHECK_STR(field(slurp("/proc/self/status"), "Umask"), "0037");
}

CASE(states) {
    pid_t pid = sleeper();
    const char *want[] = {"S (sleeping)", "T (stopped)", "Z (zombie)"};
    int sig[] = {0, SIGSTOP, SIGKILL};
    for (int i = 0; i < 3; i++) {
        if (sig[i]) CHECK_OK(kill(pid, sig[i]));
        const char *got = "";
        for (int k = 0; k < 400; k++) {
            got = field(slurp(of_pid(pid, "status")), "State");
            if (!strcmp(got, want[i])) break;
            usleep(5000);
        }
        CHECK_STR(got, want[i]);
    }
    char *s = slurp(of_pid(pid, "status"));
    CHECK_EQ(number(s, "PPid"), getpid());
    CHECK(strstr(s, "\nVmSize:") == NULL);  // a zombie has no memory to tell of
    CHECK_KILLED(pid, SIGKILL);
}

static void on_signal(int sig) { (void)sig; }

CASE(signals) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGRTMAX);
    CHECK_OK(sigprocmask(SIG_SETMASK, &set, NULL));
    CHECK_OK(syscall(SYS_tgkill, getpid(), getpid(), SIGUSR1));
    CHECK_OK(kill(getpid(), SIGRTMAX));
    signal(SIGUSR2, SIG_IGN);
    struct sigaction act = {.sa_handler = on_signal};
    CHECK_OK(sigaction(SIGTERM, &act, NULL));
    char *s = slurp("/proc/self/status");
    CHECK_STR(field(s, "SigPnd"), "0000000000000200");
    CHECK_STR(field(s, "ShdPnd"), "8000000000000000");
    CHECK_STR(field(s, "SigBlk"), "8000000000000200");
    CHECK_EQ(strtoull(field(s, "SigIgn"), NULL, 16) >> (SIGUSR2 - 1) & 1, 1);
    CHECK_EQ(strtoull(field(s, "SigCgt"), NULL, 16) >> (SIGTERM - 1) & 1, 1);
    CHECK_EQ(strtoull(field(s, "SigCgt"), NULL, 16) >> (SIGUSR2 - 1) & 1, 0);
    unsigned queued, limit;
    CHECK_EQ(sscanf(field(s, "SigQ"), "%u/%u", &queued, &limit), 2);
    CHECK_GE(queued, 1);
}

CASE(credentials) {
    NEED_ROOT();
    gid_t groups[3] = {30, 10, 20};
    CHECK_OK(setgroups(3, groups));
    CHECK_OK(setresgid(11, 12, 13));
    CHECK_OK(setresuid(21, 22, 23));
    char *s = slurp("/proc/self/status");
    CHECK_STR(field(s, "Uid"), "21\t22\t23\t22");
    CHECK_STR(field(s, "Gid"), "11\t12\t13\t12");
    CHECK_STR(field(s, "Groups"), "10 20 30 ");
    CHECK_STR(field(s, "CapEff"), "0000000000000000");
    CHECK_OK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    CHECK_EQ(number(slurp("/proc/self/status"), "NoNewPrivs"), 1);
}

CASE(capabilities) {
    char *s = slurp("/proc/self/status");
    const char *eff = field(s, "CapEff"), *bnd = field(s, "CapBnd");
    CHECK_EQ(strlen(eff), 16);
    CHECK_EQ(strlen(bnd), 16);
    if (geteuid() == 0)
        CHECK_NE(strtoull(eff, NULL, 16), 0);
    else
        CHECK_EQ(strtoull(eff, NULL, 16), 0);
    CHECK_EQ(strtoull(field(s, "CapAmb"), NULL, 16), 0);
}

CASE(memory) {
    char *s = slurp("/proc/self/status");
    long size = number(s, "VmSize"), data = number(s, "VmData"), peak = number(s, "VmPeak"), rss = number(s, "VmRSS");
    CHECK(strstr(field(s, "VmSize"), " kB") != NULL);
    CHECK_GE(peak, size);
    CHECK_GE(number(s, "VmHWM"), rss);
    CHECK_GE(number(s, "VmStk"), 4);
    char *m = CHECK_MAP(mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    memset(m, 1, 4 << 20);
    s = slurp("/proc/self/status");
    CHECK_EQ(number(s, "VmSize"), size + (8 << 10));
    CHECK_EQ(number(s, "VmData"), data + (8 << 10));
    CHECK_GE(number(s, "VmRSS"), rss + (3 << 10));
    CHECK_OK(munmap(m, 8 << 20));
    s = slurp("/proc/self/status");
    CHECK_EQ(number(s, "VmSize"), size);
    CHECK_GE(number(s, "VmPeak"), size + (8 << 10));  // the peak is kept
    CHECK_LE(number(s, "VmRSS"), rss + (1 << 10));
}

static void *waits(void *arg) {
    for (;;) pause();
    return arg;
}

CASE(threads_and_cpus) {
    pthread_t t;
    for (int i = 0; i < 3; i++) CHECK_EQ(pthread_create(&t, NULL, waits, NULL), 0);
    char *s = slurp("/proc/self/status");
    CHECK_EQ(number(s, "Threads"), 4);
    CHECK_NE(strtoull(field(s, "Cpus_allowed"), NULL, 16), 0);
    CHECK(field(s, "Cpus_allowed_list")[0] >= '0');
    CHECK_GE(number(s, "voluntary_ctxt_switches"), 0);
    CHECK_GE(number(s, "nonvoluntary_ctxt_switches"), 0);
}

// A row of /proc/self/limits: both limits as text.
static void row(const char *text, const char *name, char soft[32], char hard[32]) {
    const char *at = strstr(text, name);
    if (!at) FAIL("no row %s", name);
    CHECK_EQ(sscanf(at + 26, "%31s %31s", soft, hard), 2);
}

static void compare(const char *text, const char *name, int which) {
    struct rlimit limit;
    char soft[32], hard[32], want[32];
    CHECK_OK(getrlimit(which, &limit));
    row(text, name, soft, hard);
    snprintf(want, sizeof want, "%llu", (unsigned long long)limit.rlim_cur);
    CHECK_STR(soft, limit.rlim_cur == RLIM_INFINITY ? "unlimited" : want);
    snprintf(want, sizeof want, "%llu", (unsigned long long)limit.rlim_max);
    CHECK_STR(hard, limit.rlim_max == RLIM_INFINITY ? "unlimited" : want);
}

CASE(limits) {
    struct rlimit limit;
    CHECK_OK(getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = 333;
    CHECK_OK(setrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = limit.rlim_max = 123456789;
    CHECK_OK(setrlimit(RLIMIT_FSIZE, &limit));
    char *text = slurp("/proc/self/limits");
    CHECK_EQ(memcmp(text, "Limit                     Soft Limit           Hard Limit           Units     \n", 79), 0);
    static const struct { const char *name; int which; } rows[] = {
        {"Max cpu time", RLIMIT_CPU}, {"Max file size", RLIMIT_FSIZE}, {"Max data size", RLIMIT_DATA},
        {"Max stack size", RLIMIT_STACK}, {"Max core file size", RLIMIT_CORE}, {"Max resident set", RLIMIT_RSS},
        {"Max processes", RLIMIT_NPROC}, {"Max open files", RLIMIT_NOFILE}, {"Max locked memory", RLIMIT_MEMLOCK},
        {"Max address space", RLIMIT_AS}, {"Max file locks", RLIMIT_LOCKS}, {"Max pending signals", RLIMIT_SIGPENDING},
        {"Max msgqueue size", RLIMIT_MSGQUEUE}, {"Max nice priority", RLIMIT_NICE},
        {"Max realtime priority", RLIMIT_RTPRIO}, {"Max realtime timeout", RLIMIT_RTTIME}};
    const char *last = text;
    for (int i = 0; i < 16; i++) {
        compare(text, rows[i].name, rows[i].which);
        CHECK(strstr(text, rows[i].name) > last);
        last = strstr(text, rows[i].name);
    }
    CHECK(strstr(text, "333                  ") != NULL);
    pid_t pid = sleeper();
    CHECK(strstr(slurp(of_pid(pid, "limits")), "123456789") != NULL);
    end(pid);
}

MAIN
