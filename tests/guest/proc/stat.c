// build: static -pthread
// /proc/PID/stat and statm: 52 fields, odd names, states, times, sizes.
#include "procs.h"
#include <pthread.h>
#include <sys/resource.h>

// The numbers after the name: values[3] is the parent, as proc(5) counts; the state letter is returned.
static unsigned long long values[60];
static char name_of[64];
static int fields;
static char parse(const char *file) {
    char *text = slurp(file);
    CHECK_EQ(text[slurped - 1], '\n');
    CHECK(strchr(text, '\n') == text + slurped - 1);
    char *open_at = strchr(text, '('), *close_at = strrchr(text, ')');
    CHECK(open_at && close_at && close_at > open_at);
    values[1] = strtoull(text, NULL, 10);
    snprintf(name_of, sizeof name_of, "%.*s", (int)(close_at - open_at - 1), open_at + 1);
    CHECK_EQ(close_at[1], ' ');
    char state = close_at[2], *at = close_at + 3;
    fields = 3;
    while (*at == ' ') {
        char *next;
        values[++fields] = strtoll(at, &next, 10);
        if (at[1] != '-') values[fields] = strtoull(at, &next, 10);
        CHECK(next != at);
        at = next;
    }
    CHECK_EQ(*at, '\n');
    return state;
}

CASE(fields_of_self) {
    CHECK_EQ(parse("/proc/self/stat"), 'R');
    CHECK_EQ(fields, 52);
    CHECK_EQ(values[1], getpid());
    CHECK_EQ(values[4], getppid());
    CHECK_EQ(values[5], getpgrp());
    CHECK_EQ(values[6], getsid(0));
    CHECK_EQ((long long)values[18], 20);  // priority
    CHECK_EQ((long long)values[19], 0);   // nice
    CHECK_EQ(values[20], 1);              // threads
    CHECK_EQ(values[21], 0);
    CHECK_GT(values[22], 0);              // start
    CHECK_GT(values[23], 100000);         // bytes of memory
    CHECK_GT(values[24], 10);             // pages resident
    CHECK_EQ(values[25], RLIM_INFINITY);
    CHECK_EQ(values[38], SIGCHLD);        // what the parent gets at its end
    CHECK_LT(values[39], 4096);           // processor
    int local;
    CHECK_GE(values[28], (unsigned long)&local);  // the stack's start, shown to oneself
    CHECK_LE(values[26], (unsigned long)parse);   // the code's
    CHECK_GE(values[27], (unsigned long)parse);
    CHECK_LT(values[48], values[49]);  // arguments
    CHECK_LE(values[49], values[50]);  // environment
    CHECK_LE(values[50], values[51]);
}

CASE(name) {
    const char *names[] = {"plain", "two words", ") R 1 (", "a)b(c", "fifteen letters", "\\"};
    for (int i = 0; i < 6; i++) {
        CHECK_OK(prctl(PR_SET_NAME, names[i]));
        CHECK_EQ(parse("/proc/self/stat"), 'R');
        CHECK_STR(name_of, names[i]);
        CHECK_EQ(values[4], getppid());
    }
    CHECK_OK(prctl(PR_SET_NAME, "longer than fifteen letters"));
    parse("/proc/self/stat");
    CHECK_STR(name_of, "longer than fif");
    CHECK_STR(slurp("/proc/self/comm"), "longer than fif\n");
}

static char state_soon(pid_t pid, char want) {
    char got = 0;
    for (int i = 0; i < 400; i++) {
        got = parse(of_pid(pid, "stat"));
        if (got == want) break;
        usleep(5000);
    }
    return got;
}

CASE(states) {
    pid_t pid = sleeper();
    CHECK_EQ(state_soon(pid, 'S'), 'S');
    CHECK_EQ(values[1], pid);
    CHECK_EQ(values[4], getpid());
    CHECK_OK(kill(pid, SIGSTOP));
    CHECK_EQ(state_soon(pid, 'T'), 'T');
    CHECK_OK(kill(pid, SIGCONT));
    CHECK_EQ(state_soon(pid, 'S'), 'S');
    CHECK_OK(kill(pid, SIGKILL));
    CHECK_EQ(state_soon(pid, 'Z'), 'Z');
    CHECK_EQ(fields, 52);
    CHECK_EQ(values[4], getpid());
    CHECK_EQ(values[23], 0);  // its memory has gone
    CHECK_EQ(values[24], 0);
    CHECK_KILLED(pid, SIGKILL);
    pid = CHECK_OK(fork());
    if (pid == 0)
        for (;;) {}
    CHECK_EQ(state_soon(pid, 'R'), 'R');
    end(pid);
}

CASE(times_grow) {
    parse("/proc/self/stat");
    unsigned long long before = values[14] + values[15];
    struct timespec now;
    do clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    while (now.tv_sec == 0 && now.tv_nsec < 150000000);
    parse("/proc/self/stat");
    CHECK_GE(values[14] + values[15], before + 5);
    struct rusage usage;
    CHECK_OK(getrusage(RUSAGE_SELF, &usage));
    long long ticks = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 100 +
                      (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 10000;
    CHECK_LE(llabs(ticks - (long long)(values[14] + values[15])), 5);
}

CASE(children_times) {
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        struct timespec now;
        do clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
        while (now.tv_sec == 0 && now.tv_nsec < 150000000);
        _exit(0);
    }
    parse("/proc/self/stat");
    CHECK_EQ(values[16] + values[17], 0);
    CHECK_EXIT(pid, 0);
    parse("/proc/self/stat");
    CHECK_GE(values[16] + values[17], 5);  // once it has been waited for
}

CASE(start_times) {
    parse("/proc/self/stat");
    unsigned long long own = values[22];
    usleep(30000);
    pid_t pid = sleeper();
    parse(of_pid(pid, "stat"));
    unsigned long long child = values[22];
    CHECK_GT(child, own);  // hundredths of a second since the start
    double up = strtod(slurp("/proc/uptime"), NULL);
    CHECK_LE(llabs((long long)(up * 100) - (long long)child), 300);
    usleep(20000);
    parse(of_pid(pid, "stat"));
    CHECK_EQ(values[22], child);
    end(pid);
}

CASE(nice) {
    CHECK_OK(setpriority(PRIO_PROCESS, 0, 7));
    parse("/proc/self/stat");
    CHECK_EQ((long long)values[19], 7);
    CHECK_EQ((long long)values[18], 27);
}

static void *waits(void *arg) {
    for (;;) pause();
    return arg;
}

CASE(threads) {
    pthread_t t;
    for (int i = 0; i < 4; i++) CHECK_EQ(pthread_create(&t, NULL, waits, NULL), 0);
    parse("/proc/self/stat");
    CHECK_EQ(values[20], 5);
}

CASE(statm) {
    unsigned long m[7], n[7];
    CHECK_EQ(sscanf(slurp("/proc/self/statm"), "%lu %lu %lu %lu %lu %lu %lu", m, m + 1, m + 2, m + 3, m + 4, m + 5, m + 6), 7);
    parse("/proc/self/stat");
    CHECK_EQ(m[0] * 4096, values[23]);
    CHECK_GE(m[0], m[1]);
    CHECK_GE(m[1], m[2]);
    CHECK_EQ(m[4], 0);
    CHECK_EQ(m[6], 0);
    CHECK_MAP(mmap(NULL, 100 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    char *touched = CHECK_MAP(mmap(NULL, 300 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0));
    memset(touched, 1, 300 * 4096);
    CHECK_EQ(sscanf(slurp("/proc/self/statm"), "%lu %lu %lu %lu %lu %lu %lu", n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6), 7);
    CHECK_EQ(n[0], m[0] + 400);
    CHECK_GE(n[1], m[1] + 200);
    CHECK_GE(n[5], m[5] + 400);
}

CASE(signal_masks) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGHUP);
    CHECK_OK(sigprocmask(SIG_SETMASK, &set, NULL));
    signal(SIGUSR2, SIG_IGN);
    CHECK_OK(raise(SIGUSR1));
    parse("/proc/self/stat");
    CHECK_EQ(values[31], 1ull << (SIGUSR1 - 1));
    CHECK_EQ(values[32], 1ull << (SIGUSR1 - 1) | 1ull << (SIGHUP - 1));
    CHECK_EQ(values[33] & 1ull << (SIGUSR2 - 1), 1ull << (SIGUSR2 - 1));
}

MAIN
