// build: dynamic
// What /proc shows of memory agrees with what was mapped; untouched memory costs nothing.
#include "maps.h"
#include <sys/resource.h>

#define RW (PROT_READ | PROT_WRITE)
#define PA (MAP_PRIVATE | MAP_ANONYMOUS)

static int data_object = 5;

CASE(maps_is_well_formed) {
    struct maps_entry m;
    unsigned long last = 0;
    int n = 0, stack = 0, vdso = 0, text = 0;
    proc_read("/proc/self/maps");
    for (char *at = maps_text; (at = maps_line(at, &m)); n++) {
        CHECK_EQ(m.start % PAGE, 0);
        CHECK_EQ(m.end % PAGE, 0);
        CHECK_LT(m.start, m.end);
        CHECK(m.start >= last);  // sorted, no overlap
        last = m.end;
        CHECK(strchr("r-", m.perms[0]) && strchr("w-", m.perms[1]) && strchr("x-", m.perms[2]) && strchr("ps", m.perms[3]));
        stack += !strcmp(m.name, "[stack]");
        vdso += !strcmp(m.name, "[vdso]");
        if (m.start <= (unsigned long)maps_find && (unsigned long)maps_find < m.end) {
            text++;
            CHECK_STR(m.perms, "r-xp");
            CHECK(strstr(m.name, "proc_maps") != NULL);
            CHECK_NE(m.ino, 0);
        }
        if (m.ino == 0 && m.name[0] != '/') CHECK_EQ(m.major | m.minor, 0);
    }
    CHECK_GT(n, 8);
    CHECK_EQ(stack, 1);
    CHECK_EQ(vdso, 1);
    CHECK_EQ(text, 1);
}

CASE(maps_shows_the_program_and_its_libraries) {
    struct maps_entry m;
    CHECK(maps_find(&data_object, &m));
    CHECK_STR(m.perms, "rw-p");
    CHECK(maps_find((void *)strtol, &m));
    CHECK_STR(m.perms, "r-xp");
    CHECK(strstr(m.name, "libc") != NULL);
    char here;
    CHECK(maps_find(&here, &m));
    CHECK_STR(m.name, "[stack]");
}

CASE(anonymous_maps_come_and_go) {
    char *p = CHECK_MAP(raw_mmap(NULL, 20 * PAGE, PROT_NONE, PA, -1, 0));
    CHECK_MAP(raw_mmap(p + 5 * PAGE, 5 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, PA | MAP_FIXED, -1, 0));
    struct maps_entry m;
    CHECK(maps_find(p + 7 * PAGE, &m));
    CHECK_EQ(m.start, (unsigned long)p + 5 * PAGE);
    CHECK_EQ(m.end, (unsigned long)p + 10 * PAGE);
    CHECK_STR(m.perms, "rwxp");
    CHECK_STR(m.name, "");
    CHECK_EQ(m.ino, 0);
    CHECK_EQ(m.offset, 0);
    CHECK(maps_find(p, &m));
    CHECK_STR(m.perms, "---p");
    CHECK_OK(munmap(p, 20 * PAGE));
    CHECK(!maps_find(p + 7 * PAGE, &m));
}

CASE(shared_anonymous_has_a_name) {
    char *p = CHECK_MAP(raw_mmap(NULL, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    struct maps_entry m;
    CHECK(maps_find(p, &m));
    CHECK_STR(m.perms, "rw-s");
    CHECK_STR(m.name, "/dev/zero (deleted)");
    int fd = CHECK_OK(syscall(SYS_memfd_create, "label", 0));
    CHECK_OK(ftruncate(fd, PAGE));
    p = CHECK_MAP(raw_mmap(NULL, PAGE, RW, MAP_SHARED, fd, 0));
    CHECK(maps_find(p, &m));
    CHECK_STR(m.name, "/memfd:label (deleted)");
}

CASE(neighbours_merge) {
    char *p = CHECK_MAP(raw_mmap(NULL, 12 * PAGE, PROT_NONE, PA, -1, 0));
    for (int i = 1; i < 11; i++) CHECK_MAP(raw_mmap(p + i * PAGE, PAGE, RW, PA | MAP_FIXED, -1, 0));
    CHECK_EQ(maps_count(p + PAGE, 10 * PAGE), 1);
    int fd = file_of_pages(4);
    for (int i = 0; i < 4; i++) CHECK_MAP(raw_mmap(p + (i + 2) * PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, i * PAGE));
    CHECK_EQ(maps_count(p + 2 * PAGE, 4 * PAGE), 1);
    // Not in order: no merging.
    for (int i = 0; i < 4; i++) CHECK_MAP(raw_mmap(p + (i + 2) * PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, (3 - i) * PAGE));
    CHECK_EQ(maps_count(p + 2 * PAGE, 4 * PAGE), 4);
}

CASE(maps_read_in_small_pieces) {
    static char whole[1 << 16], pieces[1 << 16];
    int fd = CHECK_OK(open("/proc/self/maps", O_RDONLY));
    ssize_t n = 0, got;
    while ((got = CHECK_OK(read(fd, whole + n, sizeof whole - n))) > 0) n += got;
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    ssize_t m = 0;
    while ((got = CHECK_OK(read(fd, pieces + m, 37))) > 0) m += got;
    CHECK_EQ(n, m);
    CHECK_EQ(memcmp(whole, pieces, n), 0);
}

CASE(maps_of_another_process) {
    int fds[2];
    CHECK_OK(pipe(fds));
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        char *p = CHECK_MAP(raw_mmap((void *)0x200000000000, 3 * PAGE, PROT_READ, PA | MAP_FIXED_NOREPLACE, -1, 0));
        CHECK_EQ(write(fds[1], &p, sizeof p), sizeof p);
        pause();
    }
    char *p, path[64];
    CHECK_EQ(read(fds[0], &p, sizeof p), sizeof p);
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    proc_read(path);
    CHECK(strstr(maps_text, "200000000000-200000003000 r--p ") != NULL);
    kill(pid, SIGKILL);
    CHECK_KILLED(pid, SIGKILL);
}

CASE(statm_size_follows_mappings) {
    struct statm a = statm_read();
    CHECK_GT(a.size, 0);
    CHECK_GT(a.resident, 0);
    CHECK_GT(a.text, 0);
    CHECK_EQ(a.lib, 0);
    CHECK_EQ(a.dirty, 0);
    char *p = anon(1000 * PAGE);
    struct statm b = statm_read();
    CHECK_EQ(b.size - a.size, 1000);
    CHECK_EQ(b.data - a.data, 1000);
    CHECK_LT(b.resident, a.resident + 200);
    memset(p, 1, 1000 * PAGE);
    struct statm c = statm_read();
    CHECK_EQ(c.size, b.size);
    // Counters of resident pages are per thread and lag a little behind.
    CHECK_GE(c.resident, b.resident + 900);
    CHECK_OK(munmap(p, 1000 * PAGE));
    struct statm d = statm_read();
    CHECK_EQ(d.size, a.size);
    CHECK_LE(d.resident, b.resident + 100);
    // The sum of the maps is the size.
    struct maps_entry m;
    unsigned long sum = 0;
    proc_read("/proc/self/maps");
    for (char *at = maps_text; (at = maps_line(at, &m));)
        if (strcmp(m.name, "[vsyscall]")) sum += (m.end - m.start) / PAGE;
    CHECK_EQ(sum, d.size);
}

CASE(status_agrees_with_statm) {
    struct statm s = statm_read();
    CHECK_EQ(status_kib("VmSize:"), s.size * 4);
    CHECK_GE(status_kib("VmPeak:"), s.size * 4);
    CHECK_GT(status_kib("VmStk:"), 0);
    CHECK_GT(status_kib("VmExe:"), 0);
    CHECK_GT(status_kib("VmLib:"), 0);
    CHECK_GT(status_kib("VmRSS:"), 0);
}

CASE(reading_untouched_memory_is_cheap) {
    // 256 MiB read a byte a page: the zero page, so (almost) nothing becomes resident.
    size_t len = 256ul << 20;
    char *p = CHECK_MAP(raw_mmap(NULL, len, RW, PA, -1, 0));
    madvise(p, len, MADV_NOHUGEPAGE);
    unsigned long sum = 0;
    struct statm a = statm_read();
    for (size_t i = 0; i < len; i += PAGE) sum += ((volatile char *)p)[i];
    CHECK_EQ(sum, 0);
    CHECK_LT(statm_read().resident, a.resident + 2000);
    // Reading by a system call as well.
    int null = CHECK_OK(open("/dev/null", O_WRONLY)), fds[2];
    CHECK_OK(pipe(fds));
    for (size_t i = 0; i < len; i += len / 64) {
        char c = 1;
        CHECK_EQ(write(fds[1], p + i, 1), 1);
        CHECK_EQ(read(fds[0], &c, 1), 1);
        CHECK_EQ(c, 0);
    }
    close(null);
    CHECK_LT(statm_read().resident, a.resident + 2000);
}

CASE(rss_rises_and_falls_with_use) {
    size_t len = 64ul << 20;
    long a = status_kib("VmRSS:");
    char *p = anon(len);
    for (size_t i = 0; i < len; i += PAGE) p[i] = 1;
    CHECK_GE(status_kib("VmRSS:"), a + (60 << 10));
    CHECK_GE(status_kib("VmHWM:"), a + (60 << 10));
    CHECK_OK(madvise(p, len, MADV_DONTNEED));
    CHECK_LE(status_kib("VmRSS:"), a + (8 << 10));
    struct rusage use;
    CHECK_OK(getrusage(RUSAGE_SELF, &use));
    CHECK_GE(use.ru_maxrss, a + (60 << 10));
    CHECK_GE(use.ru_minflt, 100);
}

CASE(forked_memory_is_not_copied_at_once) {
    size_t len = 128ul << 20;
    char *p = anon(len);
    memset(p, 1, len);
    for (int i = 0; i < 5; i++) IN_CHILD(p[i * PAGE] = 2);
    CHECK_EQ(p[PAGE], 1);
}

CASE(what_maps_does_not_show_is_not_there) {
    // The upper end of user space, where a kernel in user space would like to hide something.
    struct maps_entry m;
    int fds[2];
    CHECK_OK(pipe(fds));
    for (unsigned long at = 0x7fffe0000000; at < 0x7ffffffff000; at += 0x733000) {
        if (maps_find((void *)at, &m)) continue;
        CHECK_ERRNO(write(fds[1], (void *)at, 1), EFAULT);
        CHECK_ERRNO(syscall(SYS_uname, at), EFAULT);
        CHECK_ERRNO(mprotect((void *)at, PAGE, PROT_READ), ENOMEM);
        CHECK_ERRNO(madvise((void *)at, PAGE, MADV_DONTNEED), ENOMEM);
    }
}

MAIN
