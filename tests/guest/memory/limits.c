// build: static
// brk, and the limits on address space: RLIMIT_DATA, RLIMIT_AS, what ENOMEM leaves behind.
#include "maps.h"
#include <sys/resource.h>

#define RW (PROT_READ | PROT_WRITE)
#define PA (MAP_PRIVATE | MAP_ANONYMOUS)

static char *raw_brk(void *to) { return (char *)syscall(SYS_brk, to); }

static void limit(int what, rlim_t soft) {
    struct rlimit lim;
    CHECK_OK(getrlimit(what, &lim));
    lim.rlim_cur = soft;
    CHECK_OK(setrlimit(what, &lim));
}

CASE(brk_grows_and_shrinks) {
    char *at = raw_brk(NULL);
    CHECK_EQ((long)raw_brk(NULL), (long)at);
    char *up = raw_brk(at + 10 * PAGE);
    CHECK_EQ((long)up, (long)at + 10 * PAGE);
    CHECK_EQ(up[-1], 0);
    memset(at, 'b', 10 * PAGE);
    // Not rounded: the break is exact, the memory is whole pages.
    CHECK_EQ((long)raw_brk(at + 10 * PAGE + 5), (long)at + 10 * PAGE + 5);
    CHECK_EQ((long)raw_brk(at + PAGE), (long)at + PAGE);
    CHECK_EQ((long)raw_brk(at + 10 * PAGE), (long)at + 10 * PAGE);
    // What was given back comes back as zeroes.
    char *page = (char *)(((unsigned long)at + 2 * PAGE) & -PAGE);
    CHECK_EQ(page[0], 0);
    CHECK_EQ(at[1], 'b');
    CHECK_EQ((long)raw_brk(at), (long)at);
}

CASE(brk_below_the_start_is_refused) {
    char *at = raw_brk(NULL);
    CHECK_EQ((long)raw_brk((void *)1), (long)at);
    CHECK_EQ((long)raw_brk((void *)0x1000), (long)at);
    CHECK_EQ((long)raw_brk((void *)-1ul), (long)at);
    CHECK_EQ((long)raw_brk((void *)(1ul << 47)), (long)at);
}

CASE(brk_does_not_run_into_a_mapping) {
    char *at = raw_brk(NULL);
    char *wall = (char *)(((unsigned long)at + 40 * PAGE) & -PAGE);
    CHECK_EQ((long)raw_mmap(wall, PAGE, RW, PA | MAP_FIXED_NOREPLACE, -1, 0), (long)wall);
    CHECK_EQ((long)raw_brk(at + 60 * PAGE), (long)at);
    CHECK_EQ((long)raw_brk(at + 8 * PAGE), (long)at + 8 * PAGE);
    wall[5] = 1;
    CHECK_OK(munmap(wall, PAGE));
    CHECK_EQ((long)raw_brk(at + 60 * PAGE), (long)at + 60 * PAGE);
}

CASE(brk_shows_as_heap) {
    char *at = raw_brk(NULL);
    CHECK_EQ((long)raw_brk(at + 4 * PAGE), (long)at + 4 * PAGE);
    struct maps_entry m;
    CHECK(maps_find(at, &m));
    CHECK_STR(m.name, "[heap]");
    CHECK_STR(m.perms, "rw-p");
    CHECK_EQ(m.end, ((unsigned long)at + 5 * PAGE - 1) & -PAGE);
}

CASE(brk_in_a_forked_child) {
    char *at = raw_brk(NULL);
    raw_brk(at + 4 * PAGE);
    at[PAGE] = 'p';
    IN_CHILD({
        CHECK_EQ((long)raw_brk(NULL), (long)at + 4 * PAGE);
        CHECK_EQ(at[PAGE], 'p');
        at[PAGE] = 'c';
        CHECK_EQ((long)raw_brk(at + 9 * PAGE), (long)at + 9 * PAGE);
    });
    CHECK_EQ((long)raw_brk(NULL), (long)at + 4 * PAGE);
    CHECK_EQ(at[PAGE], 'p');
}

CASE(brk_and_munmap_of_the_heap) {
    char *at = (char *)(((unsigned long)raw_brk(NULL) + PAGE - 1) & -PAGE);
    CHECK_EQ((long)raw_brk(at + 8 * PAGE), (long)at + 8 * PAGE);
    CHECK_OK(munmap(at + 2 * PAGE, 2 * PAGE));
    CHECK_FAULT(at + 2 * PAGE, 1, SIGSEGV, SEGV_MAPERR);
    CHECK_EQ((long)raw_brk(at + 9 * PAGE), (long)at + 9 * PAGE);
    CHECK_WRITES(at + 8 * PAGE);
    CHECK_EQ((long)raw_brk(at), (long)at);
    CHECK_FAULT(at + 4 * PAGE, 1, SIGSEGV, SEGV_MAPERR);
}

CASE(sbrk_and_malloc) {
    char *was = sbrk(0);
    CHECK_EQ((long)sbrk(100000), (long)was);
    memset(was, 1, 100000);
    CHECK_EQ((long)sbrk(-100000), (long)was + 100000);
    CHECK_EQ((long)sbrk(0), (long)was);
}

CASE(rlimit_data) {
    struct statm s = statm_read();
    limit(RLIMIT_DATA, s.data * PAGE + 100 * PAGE);
    char *at = raw_brk(NULL);
    CHECK_EQ((long)raw_brk(at + (1 << 30)), (long)at);
    // Since 4.7 private writable memory counts as data, whatever call made it.
    CHECK_ERRNO(raw_mmap(NULL, 1 << 30, RW, PA, -1, 0), ENOMEM);
    char *p = CHECK_MAP(raw_mmap(NULL, 1 << 30, PROT_READ, PA, -1, 0));
    CHECK_ERRNO(mprotect(p, 1 << 30, RW), ENOMEM);
    CHECK_OK(mprotect(p, PAGE, RW));
    CHECK_MAP(raw_mmap(NULL, 1 << 30, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    CHECK_MAP(raw_mmap(NULL, 10 * PAGE, RW, PA, -1, 0));
}

CASE(rlimit_as) {
    struct statm s = statm_read();
    limit(RLIMIT_AS, (s.size + 1000) * PAGE);
    CHECK_ERRNO(raw_mmap(NULL, 2000 * PAGE, RW, PA, -1, 0), ENOMEM);
    CHECK_ERRNO(raw_mmap(NULL, 2000 * PAGE, PROT_NONE, PA | MAP_NORESERVE, -1, 0), ENOMEM);
    CHECK_ERRNO(raw_mmap(NULL, 2000 * PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0), ENOMEM);
    char *p = CHECK_MAP(raw_mmap(NULL, 600 * PAGE, RW, PA, -1, 0));
    CHECK_ERRNO(mremap(p, 600 * PAGE, 1600 * PAGE, MREMAP_MAYMOVE), ENOMEM);
    memset(p, 1, 600 * PAGE);
    char *at = raw_brk(NULL);
    CHECK_EQ((long)raw_brk(at + 1000 * PAGE), (long)at);
    CHECK_EQ((long)raw_brk(at + 10 * PAGE), (long)at + 10 * PAGE);
    // Replacing counts only the difference.
    CHECK_MAP(raw_mmap(p, 600 * PAGE, RW, PA | MAP_FIXED, -1, 0));
    CHECK_EQ(p[0], 0);
    CHECK(malloc(1 << 30) == NULL);
    CHECK_EQ(errno, ENOMEM);
    CHECK_OK(munmap(p, 600 * PAGE));
    CHECK_MAP(raw_mmap(NULL, 900 * PAGE, RW, PA, -1, 0));
}

CASE(rlimit_as_stops_the_stack) {
    struct statm s = statm_read();
    limit(RLIMIT_AS, (s.size + 100) * PAGE);
    char here;
    CHECK_FAULT((unsigned long)&here - 500 * PAGE, 1, SIGSEGV, SEGV_MAPERR);
    CHECK_WRITES((unsigned long)&here - 50 * PAGE);
}

CASE(rlimit_as_below_use_stops_only_growth) {
    char *p = anon(4 * PAGE);
    limit(RLIMIT_AS, PAGE);
    CHECK_WRITES(p);
    CHECK_ERRNO(raw_mmap(NULL, PAGE, RW, PA, -1, 0), ENOMEM);
    CHECK_OK(mprotect(p, PAGE, PROT_READ));
    CHECK_OK(munmap(p + 2 * PAGE, PAGE));
    IN_CHILD(CHECK_READS(p));  // fork is not growth
}

CASE(limits_are_inherited) {
    struct statm s = statm_read();
    limit(RLIMIT_AS, (s.size + 300) * PAGE);
    IN_CHILD({
        CHECK_ERRNO(raw_mmap(NULL, 500 * PAGE, RW, PA, -1, 0), ENOMEM);
        CHECK_MAP(raw_mmap(NULL, 100 * PAGE, RW, PA, -1, 0));
    });
    // The child's mappings were its own.
    CHECK_MAP(raw_mmap(NULL, 250 * PAGE, RW, PA, -1, 0));
}

CASE(absurd_sizes_are_enomem) {
    // More than any machine has, without MAP_NORESERVE: refused by overcommit or by the address space.
    CHECK_ERRNO(raw_mmap(NULL, 100ul << 40, RW, PA, -1, 0), ENOMEM);
    errno = 0;
    CHECK(malloc(1ul << 62) == NULL);
    CHECK_EQ(errno, ENOMEM);
}

MAIN
