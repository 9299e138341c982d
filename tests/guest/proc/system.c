// build: static
// Files about the whole system: meminfo, stat, cpuinfo, uptime, loadavg, version, and their agreement with calls.
#include "procs.h"
#include <sched.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

CASE(meminfo) {
    char *text = slurp("/proc/meminfo");
    static const char *keys[] = {"MemTotal", "MemFree", "MemAvailable", "Buffers", "Cached", "SwapCached", "Active", "Inactive",
                                 "SwapTotal", "SwapFree", "Dirty", "AnonPages", "Mapped", "Shmem", "Slab"};
    const char *last = text - 1;
    for (unsigned i = 0; i < sizeof keys / sizeof *keys; i++) {
        char want[40];
        snprintf(want, sizeof want, "%s%s:", i ? "\n" : "", keys[i]);
        const char *at = strstr(text, want);
        if (!at || at <= last) FAIL("%s is missing or out of place", keys[i]);
        last = at;
        CHECK(strstr(field(text, keys[i]), " kB") != NULL);
        CHECK_GE(number(text, keys[i]), 0);
    }
    long total = number(text, "MemTotal"), available = number(text, "MemAvailable");
    CHECK_GT(total, 10000);
    CHECK_LE(number(text, "MemFree"), total);
    CHECK_LE(available, total);
    CHECK_GT(available, 0);
    struct sysinfo si;
    CHECK_OK(sysinfo(&si));
    CHECK_LE(llabs((long long)(si.totalram * si.mem_unit / 1024) - total), total / 100);
    CHECK_EQ(si.mem_unit, 1);
    // The first line's form, as free(1) and many scripts cut it.
    CHECK_EQ(memcmp(text, "MemTotal:       ", 16), 0);
}

static int cpus_in(const char *text, const char *prefix) {
    int n = 0;
    for (const char *at = text; (at = strstr(at, prefix)); at++)
        if ((at == text || at[-1] == '\n') && at[strlen(prefix)] != ' ') n++;
    return n;
}

CASE(stat) {
    char *text = slurp("/proc/stat");
    unsigned long long v[10], first;
    CHECK_EQ(sscanf(text, "cpu  %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu", v, v + 1, v + 2, v + 3, v + 4, v + 5, v + 6,
                    v + 7, v + 8, v + 9), 10);
    int cpus = cpus_in(text, "cpu");
    CHECK_EQ(cpus, sysconf(_SC_NPROCESSORS_ONLN));
    first = v[0] + v[1] + v[2] + v[3] + v[4];
    CHECK_GT(first, 0);
    static const char *keys[] = {"\nctxt ", "\nbtime ", "\nprocesses ", "\nprocs_running ", "\nprocs_blocked "};
    for (int i = 0; i < 5; i++) CHECK(strstr(text, keys[i]) != NULL);
    long long btime = atoll(strstr(text, "\nbtime ") + 7);
    double up = strtod(slurp("/proc/uptime"), NULL);
    CHECK_LE(llabs((long long)time(NULL) - (long long)up - btime), 3);
    long long processes = atoll(strstr(slurp("/proc/stat"), "\nprocesses ") + 11);
    for (int i = 0; i < 5; i++) IN_CHILD({});
    CHECK_GE(atoll(strstr(slurp("/proc/stat"), "\nprocesses ") + 11), processes + 5);
    CHECK_GE(atoll(strstr(slurp("/proc/stat"), "\nprocs_running ") + 15), 1);
    usleep(60000);
    CHECK_EQ(sscanf(slurp("/proc/stat"), "cpu  %llu %llu %llu %llu %llu", v, v + 1, v + 2, v + 3, v + 4), 5);
    CHECK_GT(v[0] + v[1] + v[2] + v[3] + v[4], first);  // time passes, busy or idle
}

CASE(cpuinfo) {
    char *text = slurp("/proc/cpuinfo");
    CHECK_EQ(memcmp(text, "processor\t: 0\n", 14), 0);
    int n = 0;
    for (char *at = text; (at = strstr(at, "processor\t: ")); at++) n++;
    CHECK_EQ(n, sysconf(_SC_NPROCESSORS_ONLN));
    static const char *keys[] = {"\nvendor_id\t: ", "\ncpu family\t: ", "\nmodel\t\t: ", "\nmodel name\t: ", "\nflags\t\t: ", "\ncpu MHz\t\t: "};
    for (int i = 0; i < 6; i++)
        if (!strstr(text, keys[i])) FAIL("no line %s", keys[i] + 1);
    const char *flags = field(text, "flags");
    CHECK(strstr(flags, "sse2") != NULL);
    CHECK(strstr(flags, "fxsr") != NULL);
    CHECK(strstr(text, "\n\n") != NULL);
    CHECK_STR(text + slurped - 2, "\n\n");
}

CASE(uptime) {
    double up, idle, again;
    char *text = slurp("/proc/uptime");
    CHECK_EQ(sscanf(text, "%lf %lf\n", &up, &idle), 2);
    CHECK(up > 0 && idle >= 0);
    CHECK(strchr(text, '.')[3] == ' ');  // two places
    struct timespec boot;
    clock_gettime(CLOCK_BOOTTIME, &boot);
    CHECK_LE(llabs((long long)(up * 100) - (long long)(boot.tv_sec * 100 + boot.tv_nsec / 10000000)), 100);
    usleep(30000);
    CHECK_EQ(sscanf(slurp("/proc/uptime"), "%lf", &again), 1);
    CHECK(again > up);
    struct sysinfo si;
    CHECK_OK(sysinfo(&si));
    CHECK_LE(labs(si.uptime - (long)up), 2);
}

CASE(loadavg) {
    double a, b, c;
    int running, total, last, at = 0;
    char *text = slurp("/proc/loadavg");
    CHECK_EQ(sscanf(text, "%lf %lf %lf %d/%d %d\n%n", &a, &b, &c, &running, &total, &last, &at), 6);
    CHECK_EQ(text[at], 0);
    CHECK(a >= 0 && b >= 0 && c >= 0);
    CHECK_GE(running, 1);
    CHECK_GE(total, running);
    CHECK_GT(last, 0);
    pid_t pid = sleeper();
    CHECK_EQ(sscanf(slurp("/proc/loadavg"), "%lf %lf %lf %d/%d %d", &a, &b, &c, &running, &total, &last), 6);
    CHECK_GE(total, 2);
    CHECK_GE(last, 1);
    end(pid);
}

CASE(version_and_names) {
    struct utsname u;
    CHECK_OK(uname(&u));
    char want[300];
    snprintf(want, sizeof want, "Linux version %s ", u.release);
    char *text = slurp("/proc/version");
    CHECK_EQ(memcmp(text, want, strlen(want)), 0);
    CHECK(strstr(text, u.version) != NULL);
    CHECK_EQ(text[slurped - 1], '\n');
    CHECK_STR(u.sysname, "Linux");
    CHECK_STR(u.machine, "x86_64");
    int major_no, minor_no;
    CHECK_EQ(sscanf(u.release, "%d.%d", &major_no, &minor_no), 2);
    CHECK_GE(major_no, 5);
}

CASE(cmdline) {
    char *text = slurp("/proc/cmdline");
    CHECK_GE(slurped, 1);
    CHECK_EQ(text[slurped - 1], '\n');
}

CASE(processors_online) {
    cpu_set_t set;
    long n = CHECK_OK(syscall(SYS_sched_getaffinity, 0, sizeof set, &set));
    CHECK_GE(n, 8);
    int from, to;
    char *text = slurp("/sys/devices/system/cpu/online");
    CHECK_GE(sscanf(text, "%d-%d", &from, &to), 1);
    CHECK_EQ(from, 0);
    CHECK_EQ(text[slurped - 1], '\n');
}

MAIN
