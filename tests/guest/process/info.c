// build: static -pthread
// uname, sysinfo, getrusage, times, kcmp, and their agreement with /proc.
#include "clone.h"
#include <pthread.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/times.h>
#include <sys/utsname.h>

static void read_file(const char *path, char *text, int size) {
    int fd = CHECK_OK(open(path, O_RDONLY | O_CLOEXEC));
    int n = CHECK_OK(read(fd, text, size - 1));
    close(fd);
    text[n] = 0;
    text[strcspn(text, "\n")] = 0;
}

CASE(uname_fields) {
    struct utsname u;
    char text[256];
    int a = 0, b = 0;
    memset(&u, 0xff, sizeof u);
    CHECK_OK(uname(&u));
    CHECK_STR(u.sysname, "Linux");
    CHECK_STR(u.machine, "x86_64");
    CHECK_EQ(sscanf(u.release, "%d.%d", &a, &b), 2);
    CHECK_GE(a, 3);
    CHECK_EQ(u.version[0], '#');
    CHECK_GT(strlen(u.nodename), 0);
    char host[65];
    CHECK_OK(gethostname(host, sizeof host));
    CHECK_STR(host, u.nodename);
    read_file("/proc/sys/kernel/hostname", text, sizeof text);
    CHECK_STR(text, u.nodename);
    read_file("/proc/sys/kernel/osrelease", text, sizeof text);
    CHECK_STR(text, u.release);
    read_file("/proc/version", text, sizeof text);
    CHECK_EQ(strncmp(text, "Linux version ", 14), 0);
    CHECK(strstr(text, u.release) != NULL);
    read_file("/proc/sys/kernel/ostype", text, sizeof text);
    CHECK_STR(text, "Linux");
}

CASE(sethostname_rules) {
    if (geteuid() != 0) {
        CHECK_ERRNO(sethostname("x", 1), EPERM);
        CHECK_ERRNO(setdomainname("x", 1), EPERM);
    }
    char was[65];
    CHECK_OK(gethostname(was, sizeof was));
    if (geteuid() == 0) {
        CHECK_ERRNO(syscall(SYS_sethostname, was, -1), EINVAL);
        CHECK_ERRNO(syscall(SYS_sethostname, was, 65), EINVAL);
        CHECK_ERRNO(syscall(SYS_sethostname, (void *)8, 5), EFAULT);
        CHECK_OK(syscall(SYS_sethostname, was, strlen(was)));
    }
}

CASE(sysinfo_agrees_with_meminfo) {
    struct sysinfo s;
    char text[256];
    memset(&s, 0, sizeof s);
    CHECK_OK(sysinfo(&s));
    CHECK_GT(s.uptime, 0);
    CHECK_GT(s.procs, 0);
    CHECK_GE(s.mem_unit, 1);
    unsigned long long total = (unsigned long long)s.totalram * s.mem_unit;
    CHECK_GT(total, 64 << 20);
    CHECK_LE(s.freeram, s.totalram);
    int fd = CHECK_OK(open("/proc/meminfo", O_RDONLY));
    CHECK_GT(read(fd, text, sizeof text - 1), 0);
    unsigned long kib = 0;
    CHECK_EQ(sscanf(text, "MemTotal: %lu kB", &kib), 1);
    CHECK_EQ(kib, total >> 10);
    double up = 0;
    read_file("/proc/uptime", text, sizeof text);
    CHECK_EQ(sscanf(text, "%lf", &up), 1);
    CHECK(up > s.uptime - 2 && up < s.uptime + 3);
}

static void burn(long ms) {
    struct timespec t;
    do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    while (t.tv_sec * 1000 + t.tv_nsec / 1000000 < ms);
}
static long us(struct timeval t) { return t.tv_sec * 1000000 + t.tv_usec; }

CASE(rusage_counts_time) {
    struct rusage a, b;
    CHECK_OK(getrusage(RUSAGE_SELF, &a));
    burn(80);
    CHECK_OK(getrusage(RUSAGE_SELF, &b));
    CHECK_GE(us(b.ru_utime) + us(b.ru_stime) - us(a.ru_utime) - us(a.ru_stime), 50000);
    CHECK_GE(us(b.ru_utime), us(a.ru_utime));
    CHECK_GE(us(b.ru_stime), us(a.ru_stime));
    CHECK_GT(b.ru_maxrss, 0);
    CHECK_GT(b.ru_minflt, 0);
    CHECK_ERRNO(getrusage(5, &a), EINVAL);
    CHECK_ERRNO(getrusage(-2, &a), EINVAL);
    CHECK_OK(getrusage(RUSAGE_THREAD, &b));
    CHECK_OK(getrusage(RUSAGE_CHILDREN, &b));
    CHECK_EQ(us(b.ru_utime) + b.ru_maxrss, 0);
}

CASE(rusage_is_monotone) {
    struct rusage a, b;
    CHECK_OK(getrusage(RUSAGE_SELF, &a));
    for (int i = 0; i < 300; i++) {
        CHECK_OK(getrusage(RUSAGE_SELF, &b));
        CHECK_GE(us(b.ru_utime), us(a.ru_utime));
        CHECK_GE(us(b.ru_stime), us(a.ru_stime));
        CHECK_GE(b.ru_nvcsw, a.ru_nvcsw);
        a = b;
    }
    sleep_ms(5);
    CHECK_OK(getrusage(RUSAGE_SELF, &b));
    CHECK_GT(b.ru_nvcsw, a.ru_nvcsw);
}

static void *burning(void *arg) {
    burn((long)arg);
    struct rusage r;
    CHECK_OK(getrusage(RUSAGE_THREAD, &r));
    CHECK_GE(us(r.ru_utime) + us(r.ru_stime), (long)arg * 500);
    return NULL;
}

CASE(thread_time_adds_up) {
    struct rusage self, thread;
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, burning, (void *)120), 0);
    CHECK_EQ(pthread_join(t, NULL), 0);
    CHECK_OK(getrusage(RUSAGE_SELF, &self));
    CHECK_OK(getrusage(RUSAGE_THREAD, &thread));
    CHECK_GE(us(self.ru_utime) + us(self.ru_stime), 60000);  // the dead thread's time stays
    CHECK_LT(us(thread.ru_utime) + us(thread.ru_stime), 60000);
}

CASE(times_call) {
    struct tms a, b;
    clock_t t0 = CHECK_OK(times(&a)), t1;
    CHECK_GT(t0, 0);
    burn(80);
    IN_CHILD(burn(80));
    CHECK_GE((t1 = CHECK_OK(times(&b))), t0 + 8);
    CHECK_GE(b.tms_utime + b.tms_stime - a.tms_utime - a.tms_stime, 4);
    CHECK_GE(b.tms_cutime + b.tms_cstime, 4);
    CHECK_EQ(a.tms_cutime + a.tms_cstime, 0);
    CHECK_GE((clock_t)CHECK_OK(times(NULL)), t1);
    CHECK_EQ(sysconf(_SC_CLK_TCK), 100);
}

CASE(start_time_is_now) {
    // Field 22 of stat is in ticks since boot, as is CLOCK_BOOTTIME.
    struct timespec t;
    CHECK_OK(clock_gettime(CLOCK_BOOTTIME, &t));
    long now = t.tv_sec * 100 + t.tv_nsec / 10000000, start = stat_field(pid(), 22);
    CHECK_LE(start, now + 1);
    CHECK_GE(start, now - 500);
    CHECK_EQ(stat_field(pid(), 20), 1);  // threads
}

CASE(kcmp_may_be_missing) {
    int fd = CHECK_OK(dup(0)), other = CHECK_OK(open("/", O_RDONLY));
    long same = syscall(SYS_kcmp, pid(), pid(), 0, 0, fd);
    if (same == -1) {
        CHECK(errno == ENOSYS || errno == EPERM);
        SKIP("no kcmp");
    }
    CHECK_EQ(same, 0);
    CHECK_NE(syscall(SYS_kcmp, pid(), pid(), 0, 0, other), 0);
    CHECK_EQ(syscall(SYS_kcmp, pid(), pid(), 1, 0, 0), 0);
    CHECK_ERRNO(syscall(SYS_kcmp, pid(), pid(), 99, 0, 0), EINVAL);
    CHECK_ERRNO(syscall(SYS_kcmp, pid(), pid(), 0, 0, 900), EBADF);
}

CASE(unknown_system_calls) {
    CHECK_ERRNO(syscall(9999), ENOSYS);
    CHECK_ERRNO(syscall(-1), ENOSYS);
    CHECK_ERRNO(syscall(0x40000000 | 39), ENOSYS);  // x32
    CHECK_ERRNO(syscall(SYS_afs_syscall), ENOSYS);
    CHECK_ERRNO(syscall(SYS_create_module), ENOSYS);
    CHECK_ERRNO(syscall(SYS_nfsservctl), ENOSYS);
}

CASE(registers_over_a_system_call) {
    // Only rax, rcx and r11 change: rcx is the return address, r11 the flags.
    long rax = SYS_getppid, rcx, r11, rbx = 1, rdx = 2, rsi = 3, rdi = 4, r8v, r9v, r10v, r12v;
    __asm__ volatile("mov $0x88, %%r8; mov $0x99, %%r9; mov $0xaa, %%r10; mov $0xcc, %%r12\n\t"
                     "syscall\n1:\tlea 1b(%%rip), %%r13\n\tsub %%r13, %%rcx\n\t"
                     "mov %%r8, %5; mov %%r9, %6; mov %%r10, %7; mov %%r12, %8; mov %%r11, %9"
                     : "+a"(rax), "=&c"(rcx), "+d"(rdx), "+S"(rsi), "+D"(rdi), "=m"(r8v), "=m"(r9v), "=m"(r10v), "=m"(r12v),
                       "=m"(r11), "+b"(rbx)
                     :
                     : "r8", "r9", "r10", "r11", "r12", "r13", "memory", "cc");
    CHECK_EQ(rax, getppid());
    CHECK_EQ(rcx, 0);
    CHECK_EQ(rbx, 1);
    CHECK_EQ(rdx, 2);
    CHECK_EQ(rsi, 3);
    CHECK_EQ(rdi, 4);
    CHECK_EQ(r8v, 0x88);
    CHECK_EQ(r9v, 0x99);
    CHECK_EQ(r10v, 0xaa);
    CHECK_EQ(r12v, 0xcc);
    CHECK_EQ(r11 & 0x202, 0x202);
}

MAIN
