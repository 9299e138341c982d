// /proc/PID/smaps, smaps_rollup and io: what is counted of memory and of reading and writing.
#include "../check.h"
#include <sys/mman.h>
#include <sys/sendfile.h>

// A value `name: N` behind the line that begins with `head` (anywhere if that is NULL); -1: there is none.
static long value_in(const char *path, const char *head, const char *name) {
    FILE *file = fopen(path, "r");
    CHECK(file != NULL);
    char line[4096];
    long value = -1;
    int there = head == NULL;
    while (fgets(line, sizeof line, file)) {
        if (head && strchr(line, '-') && strchr(line, '-') < strchr(line, ' ')) there = strncmp(line, head, strlen(head)) == 0;
        if (there && strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':') {
            value = strtol(line + strlen(name) + 1, NULL, 10);
            break;
        }
    }
    fclose(file);
    return value;
}

CASE(smaps_tell_what_is_resident) {
    size_t size = 1 << 20;
    char *area = CHECK_MAP(mmap(NULL, size + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    char *map = area + 4096;  // with neighbours that it does not merge with
    CHECK_OK(mprotect(map, size, PROT_READ | PROT_WRITE));
    CHECK_OK(madvise(map, size, MADV_NOHUGEPAGE));
    char head[32];
    snprintf(head, sizeof head, "%lx-%lx ", (long)map, (long)(map + size));
    CHECK_EQ(value_in("/proc/self/smaps", head, "Size"), 1024);
    CHECK_EQ(value_in("/proc/self/smaps", head, "Rss"), 0);
    CHECK_EQ(value_in("/proc/self/smaps", head, "KernelPageSize"), 4);
    memset(map + 8192, 1, 64 << 10);
    CHECK_EQ(value_in("/proc/self/smaps", head, "Rss"), 64);
    CHECK_EQ(value_in("/proc/self/smaps", head, "Pss"), 64);
    CHECK_EQ(value_in("/proc/self/smaps", head, "Private_Dirty"), 64);
    CHECK_EQ(value_in("/proc/self/smaps", head, "Anonymous"), 64);
    CHECK_GE(value_in("/proc/self/smaps_rollup", NULL, "Private_Dirty"), 64);
    pid_t p = CHECK_OK(fork());
    if (p == 0)
        for (;;) pause();
    // Two have it now.
    CHECK_EQ(value_in("/proc/self/smaps", head, "Shared_Dirty"), 64);
    CHECK_EQ(value_in("/proc/self/smaps", head, "Pss"), 32);
    kill(p, SIGKILL);
    CHECK_KILLED(p, SIGKILL);
    CHECK_OK(madvise(map, size, MADV_DONTNEED));
    CHECK_EQ(value_in("/proc/self/smaps", head, "Rss"), 0);
    CHECK_OK(munmap(area, size + 8192));
    CHECK_EQ(value_in("/proc/self/smaps", head, "Rss"), -1);
}

CASE(io_counts_calls_and_bytes) {
    int fd = CHECK_OK(open(TMP("file"), O_RDWR | O_CREAT, 0600)), out = CHECK_OK(open(TMP("out"), O_RDWR | O_CREAT, 0600));
    long wrote = value_in("/proc/self/io", NULL, "wchar"), calls = value_in("/proc/self/io", NULL, "syscw");
    CHECK_GE(wrote, 0);
    static char buf[1000];
    CHECK_EQ(write(fd, buf, sizeof buf), 1000);
    CHECK_EQ(pwrite(fd, buf, 10, 5000), 10);
    CHECK_EQ(value_in("/proc/self/io", NULL, "wchar"), wrote + 1010);
    CHECK_EQ(value_in("/proc/self/io", NULL, "syscw"), calls + 2);
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    CHECK_EQ(sendfile(out, fd, NULL, 600), 600);
    CHECK_EQ(value_in("/proc/self/io", NULL, "wchar"), wrote + 1610);
    CHECK_EQ(value_in("/proc/self/io", NULL, "syscw"), calls + 3);
    // What a child did counts once it has been waited for.
    IN_CHILD({ CHECK_EQ(write(out, buf, 400), 400); });
    CHECK_GE(value_in("/proc/self/io", NULL, "wchar"), wrote + 2010);
    long read_calls = value_in("/proc/self/io", NULL, "syscr");
    for (int i = 0; i < 10; i++) CHECK_EQ(pread(fd, buf, 7, 0), 7);
    CHECK_GE(value_in("/proc/self/io", NULL, "syscr"), read_calls + 10);
    CHECK_GE(value_in("/proc/self/io", NULL, "read_bytes"), 0);
}

MAIN
