// build: static
// Anonymous mappings: placement, MAP_FIXED and its relatives, sharing across fork, the errno table of mmap(2).
#include "maps.h"

#define RW (PROT_READ | PROT_WRITE)
#define PA (MAP_PRIVATE | MAP_ANONYMOUS)

CASE(fresh_memory_is_zero) {
    char *p = anon(64 * PAGE);
    for (size_t i = 0; i < 64 * PAGE; i += 511) CHECK_EQ(p[i], 0);
    CHECK_EQ((unsigned long)p % PAGE, 0);
    p[0] = 1;
    p[64 * PAGE - 1] = 2;
    CHECK_OK(munmap(p, 64 * PAGE));
    CHECK_FAULT(p, 0, SIGSEGV, SEGV_MAPERR);
}

CASE(length_is_rounded_up) {
    char *p = anon(1);
    CHECK_WRITES(p + PAGE - 1);
    struct maps_entry m;
    CHECK(maps_find(p, &m));
    // It may have been merged with a neighbour, but it holds the whole page.
    CHECK_GE(m.end, (unsigned long)p + PAGE);
    CHECK_OK(munmap(p, 1));
    CHECK_FAULT(p + PAGE - 1, 1, SIGSEGV, SEGV_MAPERR);
}

CASE(protections) {
    char *p = CHECK_MAP(raw_mmap(NULL, PAGE, PROT_NONE, PA, -1, 0));
    CHECK_FAULT(p + 5, 0, SIGSEGV, SEGV_ACCERR);
    CHECK_FAULT(p + 5, 1, SIGSEGV, SEGV_ACCERR);
    p = CHECK_MAP(raw_mmap(NULL, PAGE, PROT_READ, PA, -1, 0));
    CHECK_READS(p);
    CHECK_FAULT(p + 9, 1, SIGSEGV, SEGV_ACCERR);
    p = CHECK_MAP(raw_mmap(NULL, PAGE, PROT_WRITE, PA, -1, 0));
    CHECK_WRITES(p);
    CHECK_READS(p);  // x86 has no write-only pages
    p = CHECK_MAP(raw_mmap(NULL, PAGE, RW | PROT_EXEC, PA, -1, 0));
    memcpy(p, "\xb8\x2a\0\0\0\xc3", 6);  // mov $42,%eax; ret
    CHECK_EQ(((int (*)(void))p)(), 42);
}

CASE(no_exec_is_enforced) {
    char *p = anon(PAGE);
    *p = '\xc3';
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        ((void (*)(void))p)();
        _exit(0);
    }
    CHECK_KILLED(pid, SIGSEGV);
}

CASE(hint_is_taken_when_free) {
    char *p = anon(16 * PAGE);
    CHECK_OK(munmap(p, 16 * PAGE));
    char *q = CHECK_MAP(raw_mmap(p + 3 * PAGE, PAGE, RW, PA, -1, 0));
    CHECK_EQ((long)q, (long)p + 3 * PAGE);
    // Taken: another place, and the old content stays.
    *q = 5;
    char *r = CHECK_MAP(raw_mmap(q, PAGE, RW, PA, -1, 0));
    CHECK_NE((long)r, (long)q);
    CHECK_EQ(*q, 5);
    // Not aligned: rounded down to a page.
    r = CHECK_MAP(raw_mmap(p + 8 * PAGE + 1, PAGE, RW, PA, -1, 0));
    CHECK_EQ((long)r, (long)p + 8 * PAGE);
    // A hint beyond the end of user space is ignored.
    r = CHECK_MAP(raw_mmap((void *)0xffff800000000000ul, PAGE, RW, PA, -1, 0));
    CHECK_LT((unsigned long)r, 1ul << 47);
}

CASE(placement_is_top_down) {
    char *a = anon(64 * PAGE), *b = anon(64 * PAGE);
    CHECK_LT((unsigned long)b, (unsigned long)a);
    int here;
    CHECK_LT((unsigned long)a, (unsigned long)&here);
    CHECK_LT((unsigned long)&here, 0x7ffffffff000ul);
}

CASE(fixed_replaces) {
    char *p = anon(8 * PAGE);
    memset(p, 'x', 8 * PAGE);
    CHECK_EQ((long)raw_mmap(p + 2 * PAGE, 3 * PAGE, RW, PA | MAP_FIXED, -1, 0), (long)p + 2 * PAGE);
    for (int i = 0; i < 8; i++) CHECK_EQ(p[i * PAGE], i >= 2 && i < 5 ? 0 : 'x');
    // A failing MAP_FIXED for bad arguments leaves the old mapping alone.
    CHECK_ERRNO(raw_mmap(p, PAGE, RW, MAP_PRIVATE | MAP_FIXED, -1, 0), EBADF);
    CHECK_EQ(*p, 'x');
}

CASE(fixed_noreplace) {
    char *p = anon(8 * PAGE);
    memset(p, 'x', 8 * PAGE);
    CHECK_ERRNO(raw_mmap(p, PAGE, RW, PA | MAP_FIXED_NOREPLACE, -1, 0), EEXIST);
    CHECK_ERRNO(raw_mmap(p, PAGE, RW, PA | MAP_FIXED_NOREPLACE | MAP_FIXED, -1, 0), EEXIST);
    CHECK_OK(munmap(p + 2 * PAGE, 2 * PAGE));
    CHECK_ERRNO(raw_mmap(p + 2 * PAGE, 3 * PAGE, RW, PA | MAP_FIXED_NOREPLACE, -1, 0), EEXIST);
    CHECK_ERRNO(raw_mmap(p + PAGE, 2 * PAGE, RW, PA | MAP_FIXED_NOREPLACE, -1, 0), EEXIST);
    CHECK_FAULT(p + 2 * PAGE, 0, SIGSEGV, SEGV_MAPERR);
    CHECK_EQ((long)raw_mmap(p + 2 * PAGE, 2 * PAGE, RW, PA | MAP_FIXED_NOREPLACE, -1, 0), (long)p + 2 * PAGE);
    CHECK_EQ(p[2 * PAGE], 0);
    CHECK_EQ(p[4 * PAGE], 'x');
    CHECK_ERRNO(raw_mmap(p + 1, PAGE, RW, PA | MAP_FIXED_NOREPLACE, -1, 0), EINVAL);
}

CASE(errno_table) {
    int null = CHECK_OK(open("/dev/null", O_RDONLY));
    CHECK_ERRNO(raw_mmap(NULL, 0, RW, PA, -1, 0), EINVAL);
    CHECK_ERRNO(raw_mmap(NULL, PAGE, RW, MAP_ANONYMOUS, -1, 0), EINVAL);
    CHECK_ERRNO(raw_mmap(NULL, PAGE, RW, MAP_ANONYMOUS | 0x0f, -1, 0), EINVAL);
    CHECK_ERRNO(raw_mmap(NULL, PAGE, RW, MAP_ANONYMOUS | MAP_SHARED_VALIDATE, -1, 0), EINVAL);
    CHECK_ERRNO(raw_mmap(NULL, PAGE, RW, PA, -1, 1), EINVAL);
    CHECK_ERRNO(raw_mmap(NULL, PAGE, RW, PA, -1, 2048), EINVAL);
    CHECK_ERRNO(raw_mmap(NULL, PAGE, RW, MAP_PRIVATE, -1, 0), EBADF);
    CHECK_ERRNO(raw_mmap(NULL, 0, RW, MAP_PRIVATE, -1, 0), EBADF);     // before the length
    CHECK_ERRNO(raw_mmap(NULL, 0, RW, MAP_PRIVATE, -1, 1), EINVAL);    // after the alignment
    CHECK_ERRNO(raw_mmap(NULL, PAGE, RW, MAP_PRIVATE, 9999999, 0), EBADF);
    CHECK_ERRNO(raw_mmap(NULL, -1ul, RW, PA, -1, 0), ENOMEM);
    CHECK_ERRNO(raw_mmap(NULL, 1ul << 47, RW, PA | MAP_NORESERVE, -1, 0), ENOMEM);
    CHECK_ERRNO(raw_mmap(NULL, -PAGE, RW, PA, -1, 0), ENOMEM);
    CHECK_ERRNO(raw_mmap(NULL, 3 * PAGE, RW, MAP_PRIVATE, null, -(off_t)PAGE), EOVERFLOW);
    CHECK_ERRNO(raw_mmap((void *)0x10001, PAGE, RW, PA | MAP_FIXED, -1, 0), EINVAL);
    CHECK_ERRNO(raw_mmap((void *)(1ul << 47), PAGE, RW, PA | MAP_FIXED, -1, 0), ENOMEM);
    CHECK_ERRNO(raw_mmap((void *)((1ul << 47) - PAGE), PAGE, RW, PA | MAP_FIXED, -1, 0), ENOMEM);
    CHECK_ERRNO(raw_mmap((void *)-PAGE, PAGE, RW, PA | MAP_FIXED, -1, 0), ENOMEM);
    CHECK_ERRNO(raw_mmap(NULL, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0), EINVAL);
    // An offset is ignored for private anonymous memory, a descriptor for all anonymous memory.
    CHECK_MAP(raw_mmap(NULL, PAGE, RW, PA, 9999, 0));
    CHECK_MAP(raw_mmap(NULL, PAGE, RW, PA, null, 16 * PAGE));
    // Unknown protection bits are ignored by mmap, and unknown flags without SHARED_VALIDATE.
    CHECK_MAP(raw_mmap(NULL, PAGE, RW | 0x40, PA, -1, 0));
    CHECK_MAP(raw_mmap(NULL, PAGE, RW, PA | MAP_DENYWRITE | MAP_EXECUTABLE | 0x40000000, -1, 0));
}

CASE(low_addresses_are_refused_to_users) {
    NEED_USER();
    CHECK_ERRNO(raw_mmap((void *)0, PAGE, RW, PA | MAP_FIXED, -1, 0), EPERM);
    // As a hint it is moved up, to vm.mmap_min_addr at least.
    CHECK_GE((unsigned long)CHECK_MAP(raw_mmap((void *)1, PAGE, RW, PA, -1, 0)), PAGE);
}

CASE(map_32bit) {
    char *p = CHECK_MAP(raw_mmap(NULL, PAGE, RW, PA | MAP_32BIT, -1, 0));
    CHECK_LT((unsigned long)p, 1ul << 31);
    CHECK_WRITES(p);
}

CASE(private_is_copied_by_fork) {
    char *p = anon(4 * PAGE);
    p[0] = 1;
    IN_CHILD({
        CHECK_EQ(p[0], 1);
        p[0] = 2;
        p[PAGE] = 3;
        CHECK_OK(munmap(p + 2 * PAGE, PAGE));
    });
    CHECK_EQ(p[0], 1);
    CHECK_EQ(p[PAGE], 0);
    CHECK_WRITES(p + 2 * PAGE);
}

CASE(shared_is_shared_by_fork) {
    char *p = CHECK_MAP(raw_mmap(NULL, 4 * PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    CHECK_EQ(p[PAGE], 0);
    p[0] = 1;
    IN_CHILD({
        CHECK_EQ(p[0], 1);
        p[0] = 2;
        p[PAGE] = 3;
        IN_CHILD(p[2 * PAGE] = 4);  // and by the child's child, untouched before
    });
    CHECK_EQ(p[0], 2);
    CHECK_EQ(p[PAGE], 3);
    CHECK_EQ(p[2 * PAGE], 4);
    // Content outlives the process that wrote it, and a partial unmapping.
    CHECK_OK(munmap(p, PAGE));
    CHECK_EQ(p[PAGE], 3);
}

CASE(populate) {
    char *p = CHECK_MAP(raw_mmap(NULL, 64 * PAGE, RW, PA | MAP_POPULATE, -1, 0));
    unsigned char vec[64];
    CHECK_OK(mincore(p, 64 * PAGE, vec));
    for (int i = 0; i < 64; i++) CHECK_EQ(vec[i] & 1, 1);
    // Populating what may not be touched is not an error.
    CHECK_MAP(raw_mmap(NULL, PAGE, PROT_NONE, PA | MAP_POPULATE, -1, 0));
    CHECK_MAP(raw_mmap(NULL, PAGE, RW, PA | MAP_POPULATE | MAP_NONBLOCK, -1, 0));
}

CASE(noreserve_huge_and_sparse) {
    size_t len = 1ul << 40;
    char *p = CHECK_MAP(raw_mmap(NULL, len, RW, PA | MAP_NORESERVE, -1, 0));
    for (int i = 0; i < 64; i++) p[i * (len / 64)] = i + 1;
    for (int i = 0; i < 64; i++) CHECK_EQ(p[i * (len / 64)], i + 1);
    IN_CHILD(CHECK_EQ(p[len / 64 * 63], 64));
    CHECK_OK(munmap(p, len));
    CHECK_FAULT(p, 0, SIGSEGV, SEGV_MAPERR);
}

CASE(a_thousand_mappings) {
    // Alternating protections, so that nothing merges.
    char *p = CHECK_MAP(raw_mmap(NULL, 2000 * PAGE, PROT_NONE, PA, -1, 0));
    for (int i = 0; i < 1000; i++) CHECK_MAP(raw_mmap(p + 2 * i * PAGE, PAGE, RW, PA | MAP_FIXED, -1, 0));
    for (int i = 0; i < 1000; i++) *(int *)(p + 2 * i * PAGE) = i;
    CHECK_EQ(maps_count(p, 2000 * PAGE), 2000);
    IN_CHILD({
        for (int i = 0; i < 1000; i++) CHECK_EQ(*(int *)(p + 2 * i * PAGE), i);
        CHECK_EQ(maps_count(p, 2000 * PAGE), 2000);
    });
    for (int i = 0; i < 1000; i += 2) CHECK_OK(munmap(p + 2 * i * PAGE, PAGE));
    CHECK_EQ(maps_count(p, 2000 * PAGE), 1500);
    CHECK_FAULT(p, 0, SIGSEGV, SEGV_MAPERR);
    CHECK_EQ(*(int *)(p + 2 * PAGE), 1);
    CHECK_OK(munmap(p, 2000 * PAGE));
    CHECK_EQ(maps_count(p, 2000 * PAGE), 0);
}

CASE(malloc_and_big_memset) {
    for (size_t n = 1; n < 32 << 20; n *= 3) {
        char *p = malloc(n);
        CHECK(p != NULL);
        memset(p, 7, n);
        CHECK_EQ(p[n - 1], 7);
        free(p);
    }
}

MAIN
