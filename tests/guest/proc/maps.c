// build: static
// /proc/PID/maps: the format, and that it follows every change of the address space.
#include "procs.h"

struct area {
    unsigned long start, end, offset, ino;
    char perms[8], dev[16], name[600];
};
static struct area areas[2000];
static int count;

static void load(const char *file) {
    char *text = slurp(file);
    count = 0;
    unsigned long last = 0;
    for (char *line = text; *line;) {
        char *end_of = strchr(line, '\n');
        CHECK(end_of != NULL);
        *end_of = 0;
        struct area *a = &areas[count++];
        int at = 0;
        memset(a, 0, sizeof *a);
        CHECK_EQ(sscanf(line, "%lx-%lx %7s %lx %15s %lu%n", &a->start, &a->end, a->perms, &a->offset, a->dev, &a->ino, &at), 6);
        CHECK(a->start >= last);  // in order, none over another
        CHECK(a->start < a->end);
        CHECK_EQ((a->start | a->end) & 4095, 0);
        CHECK_EQ(strlen(a->perms), 4);
        CHECK(strchr("r-", a->perms[0]) && strchr("w-", a->perms[1]) && strchr("x-", a->perms[2]) && strchr("ps", a->perms[3]));
        CHECK_EQ(a->dev[2], ':');
        CHECK_EQ(line[at], ' ');
        if (line[at + 1]) {  // the name begins in column 74, or one blank behind a long number; without one a blank stays
            while (line[at] == ' ') at++;
            CHECK_GE(at, 73);
            snprintf(a->name, sizeof a->name, "%s", line + at);
        }
        if (!a->ino) CHECK_STR(a->dev, "00:00");
        last = a->end;
        line = end_of + 1;
    }
}

static struct area *at(const void *address) {
    for (int i = 0; i < count; i++)
        if (areas[i].start <= (unsigned long)address && (unsigned long)address < areas[i].end) return &areas[i];
    return NULL;
}

static int variable = 5;

CASE(own_image) {
    load("/proc/self/maps");
    int local;
    struct stat st;
    CHECK_OK(stat("/proc/self/exe", &st));
    struct area *code = at(load), *data = at(&variable), *stack = at(&local);
    CHECK(code && data && stack);
    CHECK_STR(code->perms, "r-xp");
    CHECK_STR(code->name, link_of("/proc/self/exe"));
    CHECK_EQ(code->ino, st.st_ino);
    CHECK_STR(data->perms, "rw-p");
    CHECK_STR(stack->name, "[stack]");
    CHECK_STR(stack->perms, "rw-p");
    CHECK_EQ(stack->ino, 0);
    struct area *heap = at(sbrk(0) - 1);
    if (!heap) {
        CHECK_NE(brk(sbrk(0) + 65536), -1);
        load("/proc/self/maps");
        heap = at(sbrk(0) - 1);
    }
    CHECK(heap != NULL);
    CHECK_STR(heap->name, "[heap]");
    unsigned major_no, minor_no;
    CHECK_EQ(sscanf(code->dev, "%x:%x", &major_no, &minor_no), 2);
}

CASE(vdso) {
    load("/proc/self/maps");
    int seen = 0;
    for (int i = 0; i < count; i++) {
        if (strcmp(areas[i].name, "[vdso]")) continue;
        CHECK_STR(areas[i].perms, "r-xp");
        CHECK_EQ(*(unsigned *)areas[i].start, 0x464c457f);
        seen++;
    }
    CHECK_EQ(seen, 1);
}

CASE(anonymous) {
    char *m = CHECK_MAP(mmap(NULL, 10 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    CHECK_OK(mprotect(m, 4096, PROT_NONE));  // apart from what lies below
    CHECK_OK(mprotect(m + 9 * 4096, 4096, PROT_NONE));
    load("/proc/self/maps");
    struct area *a = at(m + 4096);
    CHECK(a != NULL);
    CHECK_EQ(a->start, m + 4096);
    CHECK_EQ(a->end, m + 9 * 4096);
    CHECK_STR(a->perms, "rw-p");
    CHECK_STR(a->name, "");
    CHECK_EQ(a->offset, 0);
    CHECK_STR(at(m)->perms, "---p");
    CHECK_OK(mprotect(m + 3 * 4096, 4096, PROT_READ));  // one becomes three
    load("/proc/self/maps");
    CHECK_EQ(at(m + 4096)->end, m + 3 * 4096);
    CHECK_STR(at(m + 3 * 4096)->perms, "r--p");
    CHECK_EQ(at(m + 3 * 4096)->end, m + 4 * 4096);
    CHECK_OK(mprotect(m + 3 * 4096, 4096, PROT_READ | PROT_WRITE));  // and one again
    load("/proc/self/maps");
    CHECK_EQ(at(m + 4096)->end, m + 9 * 4096);
    CHECK_OK(munmap(m + 5 * 4096, 4096));
    load("/proc/self/maps");
    CHECK(at(m + 5 * 4096) == NULL);
    CHECK_EQ(at(m + 4096)->end, m + 5 * 4096);
    CHECK_EQ(at(m + 6 * 4096)->start, m + 6 * 4096);
}

CASE(files) {
    int fd = CHECK_OK(open(TMP("file name"), O_RDWR | O_CREAT, 0644));
    CHECK_OK(ftruncate(fd, 65536));
    char want[600];
    struct stat st;
    CHECK_OK(fstat(fd, &st));
    char *m = CHECK_MAP(mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 3 * 4096));
    char *p = CHECK_MAP(mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, fd, 0));
    load("/proc/self/maps");
    struct area *a = at(m), *b = at(p);
    CHECK_STR(a->perms, "rw-s");
    CHECK_EQ(a->offset, 3 * 4096);
    CHECK_EQ(a->ino, st.st_ino);
    CHECK_STR(a->name, TMP("file name"));
    CHECK_STR(b->perms, "r--p");
    CHECK_STR(b->dev, a->dev);
    CHECK_OK(rename(TMP("file name"), TMP("line\nbreak")));
    snprintf(want, sizeof want, "%s", TMP("line\\012break"));
    load("/proc/self/maps");
    CHECK_STR(at(m)->name, want);  // a newline cannot stand in a line
    CHECK_OK(unlink(TMP("line\nbreak")));
    load("/proc/self/maps");
    strcat(want, " (deleted)");
    CHECK_STR(at(m)->name, want);
    CHECK_OK(mprotect(m + 4096, 4096, PROT_READ));
    load("/proc/self/maps");
    CHECK_EQ(at(m + 4096)->offset, 4 * 4096);  // the offset goes along when one is split
    CHECK_STR(at(m + 4096)->perms, "r--s");
}

CASE(without_files) {
    int fd = CHECK_OK(memfd_create("a memory", 0));
    CHECK_OK(ftruncate(fd, 8192));
    char *m = CHECK_MAP(mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    char *s = CHECK_MAP(mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    load("/proc/self/maps");
    CHECK_STR(at(m)->name, "/memfd:a memory (deleted)");
    CHECK_STR(at(s)->name, "/dev/zero (deleted)");
    CHECK_STR(at(s)->perms, "rw-s");
    CHECK_NE(at(s)->ino, 0);
}

CASE(follows_brk) {
    char *old = sbrk(0);
    CHECK_NE(brk(old + 40 * 4096), -1);
    load("/proc/self/maps");
    struct area *heap = at(old + 39 * 4096);
    CHECK(heap != NULL);
    CHECK_STR(heap->name, "[heap]");
    CHECK_EQ(heap->end, ((unsigned long)old + 40 * 4096 + 4095) & ~4095ul);
    CHECK_NE(brk(old), -1);
    load("/proc/self/maps");
    CHECK(at(old + 39 * 4096) == NULL);
}

CASE(of_another_process) {
    char *m = CHECK_MAP(mmap(NULL, 3 * 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    pid_t pid = sleeper();
    load(of_pid(pid, "maps"));
    CHECK(at(m) != NULL);
    CHECK(at(load) != NULL);
    end(pid);
}

CASE(size_agrees_with_statm) {
    unsigned long pages, sum = 0;
    load("/proc/self/maps");
    CHECK_EQ(sscanf(slurp("/proc/self/statm"), "%lu", &pages), 1);
    for (int i = 0; i < count; i++)
        if (areas[i].start < 1ul << 63) sum += (areas[i].end - areas[i].start) / 4096;  // not [vsyscall]
    CHECK_EQ(sum, pages);
}

CASE(small_reads) {
    char whole[60000];
    strcpy(whole, slurp("/proc/self/maps"));
    long total = slurped, got = 0;
    char pieces[60000], part[7];
    int fd = CHECK_OK(open("/proc/self/maps", O_RDONLY));
    for (long n; (n = CHECK_OK(read(fd, part, sizeof part))) > 0; got += n) memcpy(pieces + got, part, n);
    CHECK_EQ(got, total);
    CHECK_EQ(memcmp(pieces, whole, total), 0);
}

CASE(many_areas) {
    // More than one buffer of text: each line comes once.
    char *m = CHECK_MAP(mmap(NULL, 1200 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    for (int i = 0; i < 1200; i += 2) CHECK_OK(mprotect(m + i * 4096, 4096, PROT_READ));
    load("/proc/self/maps");
    for (int i = 1; i < 1199; i++) {
        struct area *a = at(m + i * 4096);
        CHECK(a != NULL);
        CHECK_EQ(a->start, m + i * 4096);
        CHECK_EQ(a->perms[1], i % 2 ? 'w' : '-');
    }
}

MAIN
