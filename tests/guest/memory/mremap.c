// build: static
// munmap's splitting and mremap with every flag.
#include "maps.h"

#define RW (PROT_READ | PROT_WRITE)
#define PA (MAP_PRIVATE | MAP_ANONYMOUS)

static void *raw_mremap(void *old, size_t old_len, size_t new_len, int flags, void *new) {
    return (void *)syscall(SYS_mremap, old, old_len, new_len, flags, new);
}

// n pages, page i filled with i + 1, with nothing mapped for `room` pages above and one page below.
static char *numbered(int n, int room) {
    char *area = CHECK_MAP(raw_mmap(NULL, (n + room + 2) * PAGE, PROT_NONE, PA, -1, 0));
    CHECK_OK(munmap(area, (n + room + 2) * PAGE));
    char *p = CHECK_MAP(raw_mmap(area + PAGE, n * PAGE, RW, PA | MAP_FIXED, -1, 0));
    for (int i = 0; i < n; i++) memset(p + i * PAGE, i + 1, PAGE);
    return p;
}

CASE(munmap_splits) {
    char *p = numbered(10, 0);
    CHECK_OK(munmap(p + 3 * PAGE, 2 * PAGE));
    CHECK_EQ(maps_count(p, 10 * PAGE), 2);
    for (int i = 0; i < 10; i++) {
        if (i == 3 || i == 4) CHECK_FAULT(p + i * PAGE, 0, SIGSEGV, SEGV_MAPERR);
        else CHECK_EQ(p[i * PAGE], i + 1);
    }
    // Over a hole, over the ends: no error.
    CHECK_OK(munmap(p + 2 * PAGE, 4 * PAGE));
    CHECK_OK(munmap(p - PAGE, 2 * PAGE));
    CHECK_FAULT(p, 0, SIGSEGV, SEGV_MAPERR);
    CHECK_EQ(p[PAGE], 2);
    CHECK_OK(munmap(p, 10 * PAGE));
    CHECK_OK(munmap(p, 10 * PAGE));
    CHECK_EQ(maps_count(p, 10 * PAGE), 0);
}

CASE(munmap_errors) {
    char *p = anon(PAGE);
    CHECK_ERRNO(munmap(p + 1, PAGE), EINVAL);
    CHECK_ERRNO(munmap(p, 0), EINVAL);
    CHECK_ERRNO(munmap(p, -1ul), EINVAL);
    CHECK_ERRNO(munmap((void *)(1ul << 47), PAGE), EINVAL);
    CHECK_ERRNO(munmap(p, 1ul << 47), EINVAL);
    CHECK_ERRNO(munmap((void *)-PAGE, PAGE), EINVAL);
    CHECK_READS(p);
}

CASE(munmap_of_file_keeps_offsets) {
    int fd = file_of_pages(6);
    char *p = CHECK_MAP(raw_mmap(NULL, 6 * PAGE, PROT_READ, MAP_PRIVATE, fd, 0));
    CHECK_OK(munmap(p + 2 * PAGE, PAGE));
    struct maps_entry m;
    CHECK(maps_find(p + 4 * PAGE, &m));
    CHECK_EQ(m.start, (unsigned long)p + 3 * PAGE);
    CHECK_EQ(m.offset, 3 * PAGE);
    CHECK_EQ(p[3 * PAGE], 'd');
}

CASE(shrink_in_place) {
    char *p = numbered(6, 0);
    CHECK_EQ((long)raw_mremap(p, 6 * PAGE, 2 * PAGE, 0, NULL), (long)p);
    CHECK_EQ(p[PAGE], 2);
    CHECK_FAULT(p + 2 * PAGE, 0, SIGSEGV, SEGV_MAPERR);
    CHECK_EQ((long)raw_mremap(p, 2 * PAGE, 2 * PAGE, 0, NULL), (long)p);
}

CASE(grow_in_place) {
    char *p = numbered(2, 6);
    CHECK_EQ((long)raw_mremap(p, 2 * PAGE, 5 * PAGE, 0, NULL), (long)p);
    CHECK_EQ(p[PAGE], 2);
    CHECK_EQ(p[4 * PAGE], 0);
    CHECK_WRITES(p + 5 * PAGE - 1);
    CHECK_FAULT(p + 5 * PAGE, 0, SIGSEGV, SEGV_MAPERR);
    // Lengths are rounded up.
    CHECK_EQ((long)raw_mremap(p, 5 * PAGE - 7, 5 * PAGE + 1, 0, NULL), (long)p);
    CHECK_WRITES(p + 5 * PAGE);
}

CASE(grow_blocked) {
    char *p = numbered(3, 0);
    CHECK_MAP(raw_mmap(p + 3 * PAGE, PAGE, PROT_NONE, PA | MAP_FIXED, -1, 0));
    CHECK_ERRNO(raw_mremap(p, 3 * PAGE, 4 * PAGE, 0, NULL), ENOMEM);
    CHECK_EQ(p[2 * PAGE], 3);
    char *q = CHECK_MAP(raw_mremap(p, 3 * PAGE, 40 * PAGE, MREMAP_MAYMOVE, NULL));
    CHECK_NE((long)q, (long)p);
    for (int i = 0; i < 3; i++) CHECK_EQ(q[i * PAGE], i + 1);
    CHECK_EQ(q[39 * PAGE], 0);
    CHECK_FAULT(p, 0, SIGSEGV, SEGV_MAPERR);
}

CASE(grow_from_the_middle_is_blocked) {
    char *p = numbered(6, 4);
    // The second and third page cannot grow over the fourth.
    CHECK_ERRNO(raw_mremap(p + PAGE, 2 * PAGE, 3 * PAGE, 0, NULL), ENOMEM);
    char *q = CHECK_MAP(raw_mremap(p + PAGE, 2 * PAGE, 8 * PAGE, MREMAP_MAYMOVE, NULL));
    CHECK_EQ(q[0], 2);
    CHECK_EQ(q[PAGE], 3);
    CHECK_FAULT(p + PAGE, 0, SIGSEGV, SEGV_MAPERR);
    CHECK_EQ(p[0], 1);
    CHECK_EQ(p[3 * PAGE], 4);
}

CASE(move_to_fixed) {
    char *p = numbered(4, 0), *q = numbered(8, 0);
    CHECK_EQ((long)raw_mremap(p, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, q + 2 * PAGE), (long)q + 2 * PAGE);
    int want[] = {1, 2, 1, 2, 3, 4, 7, 8};
    for (int i = 0; i < 8; i++) CHECK_EQ(q[i * PAGE], want[i]);
    CHECK_FAULT(p, 0, SIGSEGV, SEGV_MAPERR);
    // Shrinking and growing on the way.
    p = numbered(4, 0);
    CHECK_EQ((long)raw_mremap(p, 4 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, q), (long)q);
    CHECK_EQ(q[PAGE], 2);
    CHECK_EQ(q[2 * PAGE], 1);
    CHECK_EQ(maps_count(p, 4 * PAGE), 0);
    p = numbered(1, 0);
    CHECK_EQ((long)raw_mremap(p, PAGE, 3 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, q), (long)q);
    CHECK_EQ(q[0], 1);
    CHECK_EQ(q[PAGE], 0);
    CHECK_EQ(q[2 * PAGE], 0);
    CHECK_EQ(q[3 * PAGE], 2);
}

CASE(dontunmap) {
    char *p = numbered(4, 0);
    char *q = CHECK_MAP(raw_mremap(p, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL));
    CHECK_NE((long)p, (long)q);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(q[i * PAGE], i + 1);
        CHECK_EQ(p[i * PAGE], 0);  // still mapped, empty
    }
    p[0] = 9;
    CHECK_EQ(q[0], 1);
    CHECK_ERRNO(raw_mremap(p, 4 * PAGE, 5 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL), EINVAL);
    CHECK_ERRNO(raw_mremap(p, 4 * PAGE, 4 * PAGE, MREMAP_DONTUNMAP, NULL), EINVAL);
}

CASE(old_length_zero_duplicates_shared) {
    char *p = CHECK_MAP(raw_mmap(NULL, 3 * PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    p[PAGE] = 5;
    char *q = CHECK_MAP(raw_mremap(p, 0, 3 * PAGE, MREMAP_MAYMOVE, NULL));
    CHECK_NE((long)p, (long)q);
    CHECK_EQ(q[PAGE], 5);
    q[2 * PAGE] = 6;
    CHECK_EQ(p[2 * PAGE], 6);
    // Without MAYMOVE there is nowhere to put it; private memory cannot be duplicated.
    CHECK_ERRNO(raw_mremap(p, 0, 3 * PAGE, 0, NULL), ENOMEM);
    CHECK_ERRNO(raw_mremap(anon(PAGE), 0, PAGE, MREMAP_MAYMOVE, NULL), EINVAL);
}

CASE(mremap_errno_table) {
    char *q = anon(8 * PAGE), *p = numbered(4, 1);  // in this order: q must not fill the hole around p
    CHECK_ERRNO(raw_mremap(p + 1, PAGE, PAGE, 0, NULL), EINVAL);
    CHECK_ERRNO(raw_mremap(p, PAGE, 0, 0, NULL), EINVAL);
    CHECK_ERRNO(raw_mremap(p, PAGE, PAGE, 0x80, NULL), EINVAL);
    CHECK_ERRNO(raw_mremap(p, PAGE, PAGE, MREMAP_FIXED, q), EINVAL);
    CHECK_ERRNO(raw_mremap(p, PAGE, PAGE, MREMAP_FIXED | MREMAP_MAYMOVE, q + 1), EINVAL);
    CHECK_ERRNO(raw_mremap(p, 4 * PAGE, 4 * PAGE, MREMAP_FIXED | MREMAP_MAYMOVE, p + PAGE), EINVAL);  // overlap
    CHECK_ERRNO(raw_mremap(p, PAGE, PAGE, MREMAP_FIXED | MREMAP_MAYMOVE, (void *)(1ul << 47)), EINVAL);
    CHECK_ERRNO(raw_mremap(p, PAGE, 0x700000000000, MREMAP_MAYMOVE, NULL), ENOMEM);
    CHECK_ERRNO(raw_mremap(p, PAGE, -1ul, MREMAP_MAYMOVE, NULL), EINVAL);
    CHECK_ERRNO(raw_mremap(p - PAGE, PAGE, 2 * PAGE, MREMAP_MAYMOVE, NULL), EFAULT);
    CHECK_ERRNO(raw_mremap(p, 6 * PAGE, 7 * PAGE, MREMAP_MAYMOVE, NULL), EFAULT);
    CHECK_ERRNO(raw_mremap(p, 5 * PAGE, 6 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, q), EFAULT);
    // Growing a range of two mappings is refused.
    CHECK_OK(mprotect(p, PAGE, PROT_READ));
    CHECK_ERRNO(raw_mremap(p, 2 * PAGE, 8 * PAGE, MREMAP_MAYMOVE, NULL), EFAULT);
    CHECK_EQ(p[0], 1);
    CHECK_EQ(p[PAGE], 2);
}

CASE(file_mappings_grow_and_move) {
    int fd = file_of_pages(6);
    char *p = CHECK_MAP(raw_mmap(NULL, 2 * PAGE, RW, MAP_PRIVATE, fd, PAGE));
    p[0] = 'X';
    char *q = CHECK_MAP(raw_mremap(p, 2 * PAGE, 4 * PAGE, MREMAP_MAYMOVE, NULL));
    CHECK_EQ(q[0], 'X');
    CHECK_EQ(q[PAGE], 'c');
    CHECK_EQ(q[3 * PAGE], 'e');
    struct maps_entry m;
    CHECK(maps_find(q, &m));
    CHECK_EQ(m.offset, PAGE);
    // Growing beyond the file's end: SIGBUS there.
    q = CHECK_MAP(raw_mremap(q, 4 * PAGE, 8 * PAGE, MREMAP_MAYMOVE, NULL));
    CHECK_EQ(q[4 * PAGE], 'f');
    CHECK_FAULT(q + 5 * PAGE, 0, SIGBUS, BUS_ADRERR);
    p = CHECK_MAP(raw_mmap(NULL, 2 * PAGE, RW, MAP_SHARED, fd, 4 * PAGE));
    p = CHECK_MAP(raw_mremap(p, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, q));
    p[0] = 'S';
    char c;
    CHECK_EQ(pread(fd, &c, 1, 4 * PAGE), 1);
    CHECK_EQ(c, 'S');
}

CASE(moved_memory_in_a_forked_child) {
    char *p = numbered(8, 0);
    IN_CHILD({
        char *q = CHECK_MAP(raw_mremap(p, 8 * PAGE, 64 * PAGE, MREMAP_MAYMOVE, NULL));
        for (int i = 0; i < 8; i++) CHECK_EQ(q[i * PAGE], i + 1);
    });
    for (int i = 0; i < 8; i++) CHECK_EQ(p[i * PAGE], i + 1);
}

CASE(realloc_walk) {
    // What a growing vector does: glibc's realloc of large blocks is mremap.
    size_t n = 1 << 20;
    unsigned char *p = malloc(n);
    memset(p, 1, n);
    for (int i = 0; i < 6; i++) {
        p = realloc(p, n * 2);
        CHECK(p != NULL);
        CHECK_EQ(p[n - 1], i + 1);
        memset(p + n, i + 2, n);
        n *= 2;
    }
    p = realloc(p, 1 << 20);
    CHECK_EQ(p[(1 << 20) - 1], 1);
    free(p);
}

MAIN
