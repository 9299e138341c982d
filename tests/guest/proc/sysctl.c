// build: static
// /proc/sys: values that programs read, their agreement with calls, formats, permissions; reading in pieces.
#include "procs.h"
#include <sys/uio.h>
#include <sys/utsname.h>

static long long value(const char *name) {
    char *text = slurp(name), *rest;
    long long n = strtoll(text, &rest, 10);
    if (rest == text || strcmp(rest, "\n")) FAIL("%s says \"%s\"", name, text);
    return n;
}

CASE(names) {
    struct utsname u;
    char want[200];
    CHECK_OK(uname(&u));
    snprintf(want, sizeof want, "%s\n", u.nodename);
    CHECK_STR(slurp("/proc/sys/kernel/hostname"), want);
    snprintf(want, sizeof want, "%s\n", u.domainname);
    CHECK_STR(slurp("/proc/sys/kernel/domainname"), want);
    snprintf(want, sizeof want, "%s\n", u.release);
    CHECK_STR(slurp("/proc/sys/kernel/osrelease"), want);
    snprintf(want, sizeof want, "%s\n", u.version);
    CHECK_STR(slurp("/proc/sys/kernel/version"), want);
    CHECK_STR(slurp("/proc/sys/kernel/ostype"), "Linux\n");
    char name[100];
    CHECK_OK(gethostname(name, sizeof name));
    CHECK_STR(name, u.nodename);
}

CASE(limits) {
    long long pid_max = value("/proc/sys/kernel/pid_max");
    CHECK_GE(pid_max, 301);
    CHECK_LE(pid_max, 1 << 22);
    CHECK_LT(getpid(), pid_max);
    CHECK_GT(value("/proc/sys/kernel/threads-max"), 10);
    CHECK_GT(value("/proc/sys/fs/file-max"), 1000);
    long long nr_open = value("/proc/sys/fs/nr_open");
    CHECK_GE(nr_open, 1024);
    CHECK_EQ(value("/proc/sys/fs/pipe-max-size"), 1 << 20);
    CHECK_EQ(value("/proc/sys/kernel/ngroups_max"), 65536);
    CHECK_GE(value("/proc/sys/kernel/cap_last_cap"), 37);
    CHECK_LE(value("/proc/sys/kernel/cap_last_cap"), 63);
    CHECK_EQ(value("/proc/sys/kernel/overflowuid"), 65534);
    CHECK_EQ(value("/proc/sys/kernel/overflowgid"), 65534);
    CHECK_GE(value("/proc/sys/vm/max_map_count"), 1000);
    long long commit = value("/proc/sys/vm/overcommit_memory");
    CHECK(commit >= 0 && commit <= 2);
    int p[2];
    CHECK_OK(pipe(p));
    CHECK_EQ(fcntl(p[0], F_SETPIPE_SZ, (int)value("/proc/sys/fs/pipe-max-size")), 1 << 20);
}

static void uuid(const char *text) {
    CHECK_EQ(strlen(text), 37);
    for (int i = 0; i < 36; i++) {
        if (i == 8 || i == 13 || i == 18 || i == 23)
            CHECK_EQ(text[i], '-');
        else
            CHECK(strchr("0123456789abcdef", text[i]) != NULL);
    }
    CHECK_EQ(text[14], '4');
    CHECK(strchr("89ab", text[19]) != NULL);
    CHECK_EQ(text[36], '\n');
}

CASE(random) {
    char first[40];
    strcpy(first, slurp("/proc/sys/kernel/random/uuid"));
    uuid(first);
    char *second = slurp("/proc/sys/kernel/random/uuid");
    uuid(second);
    CHECK_NE(strcmp(first, second), 0);  // new for each reader
    strcpy(first, slurp("/proc/sys/kernel/random/boot_id"));
    uuid(first);
    CHECK_STR(slurp("/proc/sys/kernel/random/boot_id"), first);
    CHECK_GT(value("/proc/sys/kernel/random/entropy_avail"), 0);
}

CASE(file_counts) {
    long long used, unused, max;
    CHECK_EQ(sscanf(slurp("/proc/sys/fs/file-nr"), "%lld\t%lld\t%lld\n", &used, &unused, &max), 3);
    CHECK_GT(used, 0);
    CHECK_EQ(unused, 0);
    CHECK_EQ(max, value("/proc/sys/fs/file-max"));
}

CASE(permissions) {
    struct stat st;
    CHECK_OK(stat("/proc/sys/kernel/hostname", &st));
    CHECK_EQ(st.st_mode, S_IFREG | 0644);
    CHECK_EQ(st.st_uid, 0);
    CHECK_OK(stat("/proc/sys/kernel/ostype", &st));
    CHECK_EQ(st.st_mode, S_IFREG | 0444);
    CHECK_OK(stat("/proc/sys/kernel", &st));
    CHECK_EQ(st.st_mode, S_IFDIR | 0555);
    be_user();
    CHECK_ERRNO(open("/proc/sys/kernel/hostname", O_WRONLY), EACCES);
    CHECK_ERRNO(open("/proc/sys/kernel/ostype", O_WRONLY), EACCES);
    CHECK_ERRNO(open("/proc/sys/kernel/new", O_WRONLY | O_CREAT, 0644), ENOENT);
    CHECK_ERRNO(open("/proc/sys/none", O_RDONLY), ENOENT);
    CHECK_ERRNO(access("/proc/sys/kernel/hostname", W_OK), EACCES);
    CHECK_OK(access("/proc/sys/kernel/hostname", R_OK));
    CHECK_ERRNO(access("/proc/sys/kernel/hostname", X_OK), EACCES);
}

CASE(listed) {
    DIR *d = opendir("/proc/sys");
    CHECK(d != NULL);
    int found = 0;
    for (struct dirent *e; (e = readdir(d));) found += !strcmp(e->d_name, "kernel") || !strcmp(e->d_name, "fs") || !strcmp(e->d_name, "vm");
    CHECK_EQ(found, 3);
    closedir(d);
    d = opendir("/proc/sys/kernel");
    CHECK(d != NULL);
    found = 0;
    for (struct dirent *e; (e = readdir(d));) {
        int file = !strcmp(e->d_name, "hostname"), dir = !strcmp(e->d_name, "random");
        if (file || dir) CHECK_EQ(e->d_type, dir ? DT_DIR : DT_REG);
        found += file + dir;
    }
    CHECK_EQ(found, 2);
    closedir(d);
}

// Byte by byte, by position, and after a rewind: always the same text.
static void pieces(const char *name) {
    static char whole[100000], part[100000];
    strcpy(whole, slurp(name));
    long total = slurped, n;
    CHECK_GT(total, 0);
    int fd = CHECK_OK(open(name, O_RDONLY));
    for (long i = 0; i < total; i++) CHECK_EQ(read(fd, part + i, 1), 1);
    CHECK_EQ(read(fd, part, 1), 0);
    part[total] = 0;
    CHECK_STR(part, whole);
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    n = CHECK_OK(read(fd, part, total));
    CHECK_GT(n, 0);
    CHECK_EQ(memcmp(part, whole, n), 0);
    if (total > 8) {
        CHECK_EQ(pread(fd, part, 5, 3), 5);
        CHECK_EQ(memcmp(part, whole + 3, 5), 0);
        CHECK_EQ(lseek(fd, 4, SEEK_SET), 4);
        CHECK_EQ(read(fd, part, 3), 3);
        CHECK_EQ(memcmp(part, whole + 4, 3), 0);
    }
    CHECK_EQ(pread(fd, part, 10, total + 100), 0);
    struct stat st;
    CHECK_OK(fstat(fd, &st));
    CHECK_EQ(st.st_size, 0);
    CHECK_OK(close(fd));
}

CASE(reading_in_pieces) {
    pieces("/proc/version");
    pieces("/proc/filesystems");
    pieces("/proc/self/limits");
    pieces("/proc/self/mounts");
    pieces("/proc/self/comm");
    pieces("/proc/self/cmdline");
}

CASE(a_text_is_made_once_for_each_reading) {
    // A reader that began keeps its text, the next one from the start gets the new one.
    CHECK_OK(prctl(PR_SET_NAME, "before"));
    int fd = CHECK_OK(open("/proc/self/status", O_RDONLY));
    char buf[32] = {0};
    CHECK_EQ(read(fd, buf, 8), 8);
    CHECK_OK(prctl(PR_SET_NAME, "after"));
    CHECK_EQ(read(fd, buf + 8, 4), 4);
    CHECK_STR(buf, "Name:\tbefore");
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    CHECK_EQ(read(fd, buf, 12), 12);
    CHECK_EQ(memcmp(buf, "Name:\tafter\n", 12), 0);
}

CASE(odd_reads) {
    int fd = CHECK_OK(open("/proc/version", O_RDONLY));
    char a[4], b[8];
    struct iovec v[] = {{a, 4}, {b, 8}};
    CHECK_EQ(readv(fd, v, 2), 12);
    CHECK_EQ(memcmp(a, "Linu", 4) | memcmp(b, "x versio", 8), 0);
    CHECK_EQ(read(fd, a, 0), 0);
    CHECK_ERRNO(read(fd, nowhere, 10), EFAULT);
    CHECK_ERRNO(write(fd, "x", 1), EBADF);
    CHECK_ERRNO(ftruncate(fd, 0), EINVAL);
    if (geteuid() != 0) CHECK_ERRNO(open("/proc/version", O_WRONLY), EACCES);
    CHECK_ERRNO(open("/proc/version", O_RDONLY | O_DIRECTORY), ENOTDIR);
    CHECK_ERRNO(open("/proc/self", O_RDWR), EISDIR);
    CHECK_ERRNO(lseek(fd, -1, SEEK_SET), EINVAL);
    struct pollfd p = {fd, POLLIN, 0};
    CHECK_EQ(poll(&p, 1, 0), 1);
    CHECK_EQ(p.revents & POLLIN, POLLIN);
    int copy = CHECK_OK(memfd_create("m", 0));
    CHECK_OK(lseek(fd, 0, SEEK_SET));
    long n = CHECK_OK(read(fd, b, 8));
    CHECK_EQ(write(copy, b, n), n);
}

MAIN
