// maps.h: /proc/self/maps and statm as the memory programs read them: without malloc, which would change what they show.
#ifndef MAPS_H
#define MAPS_H
#include "../check.h"

#define PAGE 4096ul

struct maps_entry {
    unsigned long start, end, offset, ino;
    unsigned major, minor;
    char perms[5], name[256];
};

static char maps_text[1 << 20];

// Read a whole /proc file into maps_text; the length.
CHECK_USED static size_t proc_read(const char *path) {
    int fd = CHECK_OK(open(path, O_RDONLY | O_CLOEXEC));
    size_t n = 0;
    ssize_t got;
    while ((got = CHECK_OK(read(fd, maps_text + n, sizeof maps_text - 1 - n))) > 0) n += got;
    close(fd);
    maps_text[n] = 0;
    return n;
}

// One line of maps; the start of the next, or NULL at the end.
CHECK_USED static char *maps_line(char *at, struct maps_entry *m) {
    if (!*at) return NULL;
    char *end = strchr(at, '\n');
    CHECK(end != NULL);
    m->name[0] = 0;
    int got = sscanf(at, "%lx-%lx %4s %lx %x:%x %lu", &m->start, &m->end, m->perms, &m->offset, &m->major, &m->minor, &m->ino);
    if (got != 7) FAIL("maps line: %.*s", (int)(end - at), at);
    // The name, if there is one, begins in column 73 (proc(5) pads to it).
    if (end - at > 73) snprintf(m->name, sizeof m->name, "%.*s", (int)(end - at - 73), at + 73);
    return end + 1;
}

// The mapping that holds addr; 0 if none does.
CHECK_USED static int maps_find(const void *addr, struct maps_entry *m) {
    proc_read("/proc/self/maps");
    for (char *at = maps_text; (at = maps_line(at, m));)
        if (m->start <= (unsigned long)addr && (unsigned long)addr < m->end) return 1;
    return 0;
}

// The number of mappings that meet [addr, addr + len).
CHECK_USED static int maps_count(const void *addr, size_t len) {
    struct maps_entry m;
    int n = 0;
    proc_read("/proc/self/maps");
    for (char *at = maps_text; (at = maps_line(at, &m));)
        n += m.start < (unsigned long)addr + len && m.end > (unsigned long)addr;
    return n;
}

struct statm { unsigned long size, resident, shared, text, lib, data, dirty; };
CHECK_USED static struct statm statm_read(void) {
    struct statm s;
    proc_read("/proc/self/statm");
    CHECK_EQ(sscanf(maps_text, "%lu %lu %lu %lu %lu %lu %lu", &s.size, &s.resident, &s.shared, &s.text, &s.lib, &s.data, &s.dirty), 7);
    return s;
}

// A field of /proc/self/status or smaps in KiB, such as "VmLck:"; -1 if it is not there.
CHECK_USED static long status_kib(const char *field) {
    proc_read("/proc/self/status");
    char *at = strstr(maps_text, field);
    return at ? atol(at + strlen(field)) : -1;
}

// mmap without libc's own checks.
CHECK_USED static void *raw_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset) {
    return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, offset);
}
CHECK_USED static char *anon(size_t len) {
    return CHECK_MAP(raw_mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

// What touching an address does: 0, or the signal, with its code and address in touch_info.
static sigjmp_buf touch_back;
static siginfo_t touch_info;
static void touch_on(int sig, siginfo_t *info, void *context CHECK_USED) {
    touch_info = *info;
    siglongjmp(touch_back, sig);
}
CHECK_USED static int touch(volatile void *addr, int write) {
    struct sigaction act = {.sa_sigaction = touch_on, .sa_flags = SA_SIGINFO}, old_segv, old_bus;
    sigaction(SIGSEGV, &act, &old_segv);
    sigaction(SIGBUS, &act, &old_bus);
    int sig = sigsetjmp(touch_back, 1);
    if (sig == 0) {
        if (write) *(volatile char *)addr = 77;
        else (void)*(volatile char *)addr;
    }
    sigaction(SIGSEGV, &old_segv, NULL);
    sigaction(SIGBUS, &old_bus, NULL);
    return sig;
}
#define CHECK_READS(P) CHECK_EQ(touch((void *)(P), 0), 0)
#define CHECK_WRITES(P) CHECK_EQ(touch((void *)(P), 1), 0)
#define CHECK_FAULT(P, WRITE, SIG, CODE)                      \
    do {                                                      \
        CHECK_EQ(touch((void *)(P), WRITE), SIG);             \
        CHECK_EQ(touch_info.si_code, CODE);                   \
        CHECK_EQ((long)touch_info.si_addr, (long)(P));        \
    } while (0)

// A file of n pages in the case's directory, page i filled with 'a' + i % 26; open read-write, already unlinked.
CHECK_USED static int file_of_pages(int n) {
    const char *path = TMP("pages");
    int fd = CHECK_OK(open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    char page[PAGE];
    for (int i = 0; i < n; i++) {
        memset(page, 'a' + i % 26, PAGE);
        CHECK_EQ(write(fd, page, PAGE), PAGE);
    }
    CHECK_OK(unlink(path));
    return fd;
}
#endif
