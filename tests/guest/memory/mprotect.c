// build: static -pthread
// mprotect: splits and merges, holes with partial effect, faults and their codes, system calls on protected memory.
#include "maps.h"
#include <pthread.h>

#define RW (PROT_READ | PROT_WRITE)
#define PA (MAP_PRIVATE | MAP_ANONYMOUS)

CASE(splits_and_merges) {
    // Guard pages keep neighbours from merging with it.
    char *area = CHECK_MAP(raw_mmap(NULL, 12 * PAGE, PROT_NONE, PA, -1, 0)), *p = area + PAGE;
    CHECK_OK(mprotect(p, 10 * PAGE, RW));
    CHECK_EQ(maps_count(p, 10 * PAGE), 1);
    CHECK_OK(mprotect(p + 3 * PAGE, 2 * PAGE, PROT_READ));
    CHECK_EQ(maps_count(p, 10 * PAGE), 3);
    struct maps_entry m;
    CHECK(maps_find(p + 3 * PAGE, &m));
    CHECK_EQ(m.start, (unsigned long)p + 3 * PAGE);
    CHECK_EQ(m.end, (unsigned long)p + 5 * PAGE);
    CHECK_STR(m.perms, "r--p");
    CHECK_OK(mprotect(p + 3 * PAGE, 2 * PAGE, RW));
    CHECK_EQ(maps_count(p, 10 * PAGE), 1);
}

CASE(effect_on_content_and_access) {
    char *p = anon(4 * PAGE);
    memset(p, 'm', 4 * PAGE);
    CHECK_OK(mprotect(p + PAGE, PAGE, PROT_NONE));
    CHECK_FAULT(p + PAGE, 0, SIGSEGV, SEGV_ACCERR);
    CHECK_FAULT(p + PAGE + 4000, 1, SIGSEGV, SEGV_ACCERR);
    CHECK_OK(mprotect(p + PAGE, PAGE, PROT_READ));
    CHECK_EQ(p[PAGE], 'm');
    CHECK_FAULT(p + PAGE, 1, SIGSEGV, SEGV_ACCERR);
    CHECK_OK(mprotect(p, 4 * PAGE, PROT_NONE));
    CHECK_OK(mprotect(p, 4 * PAGE, RW));
    CHECK_EQ(p[3 * PAGE], 'm');
    p[3 * PAGE] = 1;
}

CASE(a_hole_gives_enomem_after_partial_effect) {
    char *p = anon(6 * PAGE);
    CHECK_OK(munmap(p + 3 * PAGE, PAGE));
    CHECK_ERRNO(mprotect(p, 6 * PAGE, PROT_READ), ENOMEM);
    CHECK_FAULT(p, 1, SIGSEGV, SEGV_ACCERR);
    CHECK_FAULT(p + 2 * PAGE, 1, SIGSEGV, SEGV_ACCERR);
    CHECK_WRITES(p + 4 * PAGE);  // beyond the hole: untouched
    // A hole at the start: nothing at all happens.
    CHECK_ERRNO(mprotect(p + 3 * PAGE, 3 * PAGE, PROT_READ), ENOMEM);
    CHECK_WRITES(p + 4 * PAGE);
}

CASE(errors) {
    char *p = anon(2 * PAGE);
    CHECK_ERRNO(mprotect(p + 1, PAGE, RW), EINVAL);
    CHECK_ERRNO(mprotect(p, PAGE, RW | 0x40), EINVAL);
    CHECK_ERRNO(mprotect(p, PAGE, -1), EINVAL);
    CHECK_OK(mprotect(p, 0, PROT_NONE));  // no effect
    CHECK_READS(p);
    CHECK_OK(mprotect((void *)(1ul << 46), 0, PROT_NONE));
    CHECK_ERRNO(mprotect(p, -PAGE, RW), ENOMEM);
    CHECK_ERRNO(mprotect((void *)(1ul << 47), PAGE, RW), ENOMEM);
    CHECK_ERRNO(mprotect((void *)-PAGE, PAGE, RW), ENOMEM);
    CHECK_OK(munmap(p, 2 * PAGE));
    CHECK_ERRNO(mprotect(p, PAGE, RW), ENOMEM);
    // The length is rounded up.
    p = anon(2 * PAGE);
    CHECK_OK(mprotect(p, PAGE + 1, PROT_READ));
    CHECK_FAULT(p + PAGE, 1, SIGSEGV, SEGV_ACCERR);
}

CASE(syscalls_respect_protection) {
    char *p = anon(2 * PAGE);
    int fds[2];
    CHECK_OK(pipe(fds));
    CHECK_EQ(write(fds[1], "12345678", 8), 8);
    CHECK_OK(mprotect(p, PAGE, PROT_READ));
    CHECK_ERRNO(read(fds[0], p, 4), EFAULT);
    CHECK_EQ(write(fds[1], p, 1), 1);
    CHECK_OK(mprotect(p, PAGE, PROT_NONE));
    CHECK_ERRNO(write(fds[1], p, 1), EFAULT);
    CHECK_ERRNO(read(fds[0], p, 4), EFAULT);
    // Read-only code and the vDSO's neighbours are as closed to the kernel as to the program.
    CHECK_ERRNO(read(fds[0], (void *)maps_find, 4), EFAULT);
    CHECK_OK(mprotect(p, PAGE, RW));
    CHECK_EQ(read(fds[0], p, 9), 9);
    CHECK_EQ(memcmp(p, "12345678\0", 9), 0);
}

CASE(write_protection_survives_fork) {
    char *p = anon(PAGE);
    *p = 1;
    CHECK_OK(mprotect(p, PAGE, PROT_READ));
    IN_CHILD({
        CHECK_FAULT(p, 1, SIGSEGV, SEGV_ACCERR);
        CHECK_OK(mprotect(p, PAGE, RW));
        CHECK_WRITES(p);
    });
    CHECK_FAULT(p, 1, SIGSEGV, SEGV_ACCERR);
    CHECK_EQ(*p, 1);
}

CASE(jit_flip) {
    char *p = anon(PAGE);
    for (int i = 0; i < 100; i++) {
        CHECK_OK(mprotect(p, PAGE, RW));
        memcpy(p, "\xb8\0\0\0\0\xc3", 6);
        p[1] = i;
        CHECK_OK(mprotect(p, PAGE, PROT_READ | PROT_EXEC));
        CHECK_EQ(((int (*)(void))p)(), i);
    }
}

// A collector's barrier: the handler opens the page and returns, the access is done again.
static char *barrier_page;
static volatile int barrier_hits;
static void barrier(int sig CHECK_USED, siginfo_t *info, void *c CHECK_USED) {
    barrier_hits++;
    if ((char *)info->si_addr < barrier_page || (char *)info->si_addr >= barrier_page + 64 * PAGE) _exit(9);
    mprotect((void *)((unsigned long)info->si_addr & -PAGE), PAGE, RW);
}

CASE(fault_handler_repairs) {
    struct sigaction act = {.sa_sigaction = barrier, .sa_flags = SA_SIGINFO};
    CHECK_OK(sigaction(SIGSEGV, &act, NULL));
    barrier_page = CHECK_MAP(raw_mmap(NULL, 64 * PAGE, PROT_NONE, PA, -1, 0));
    for (int i = 0; i < 64; i++) barrier_page[i * PAGE + i] = i;
    CHECK_EQ(barrier_hits, 64);
    for (int i = 0; i < 64; i++) CHECK_EQ(barrier_page[i * PAGE + i], i);
    CHECK_EQ(barrier_hits, 64);
}

static void *barrier_thread(void *arg) {
    for (int i = 0; i < 64; i++) __atomic_add_fetch((int *)(barrier_page + i * PAGE), 1, __ATOMIC_RELAXED);
    return arg;
}

CASE(fault_handler_repairs_in_threads) {
    struct sigaction act = {.sa_sigaction = barrier, .sa_flags = SA_SIGINFO};
    CHECK_OK(sigaction(SIGSEGV, &act, NULL));
    barrier_page = CHECK_MAP(raw_mmap(NULL, 64 * PAGE, PROT_NONE, PA, -1, 0));
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) CHECK_EQ(pthread_create(&threads[i], NULL, barrier_thread, NULL), 0);
    for (int i = 0; i < 4; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < 64; i++) CHECK_EQ(*(int *)(barrier_page + i * PAGE), 4);
}

static void *seen_by_thread(void *arg) {
    char *p = arg;
    CHECK_OK(mprotect(p, PAGE, PROT_READ));
    char *q = anon(PAGE);
    *q = 'q';
    return q;
}

CASE(threads_share_mappings) {
    char *p = anon(PAGE);
    pthread_t t;
    void *q;
    CHECK_EQ(pthread_create(&t, NULL, seen_by_thread, p), 0);
    CHECK_EQ(pthread_join(t, &q), 0);
    CHECK_FAULT(p, 1, SIGSEGV, SEGV_ACCERR);
    CHECK_EQ(*(char *)q, 'q');
}

static void *map_and_unmap(void *arg) {
    for (int i = 0; i < 300; i++) {
        char *p = anon((1 + i % 7) * PAGE);
        memset(p, (long)arg, PAGE);
        if (i % 3 == 0) CHECK_OK(mprotect(p, PAGE, PROT_READ));
        CHECK_EQ(*p, (long)arg);
        CHECK_OK(munmap(p, (1 + i % 7) * PAGE));
    }
    return NULL;
}

CASE(threads_map_at_once) {
    pthread_t threads[6];
    for (long i = 0; i < 6; i++) CHECK_EQ(pthread_create(&threads[i], NULL, map_and_unmap, (void *)(i + 1)), 0);
    for (int i = 0; i < 6; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
}

CASE(pkey_mprotect_without_key) {
    char *p = anon(PAGE);
    long r = syscall(SYS_pkey_mprotect, p, PAGE, PROT_READ, -1);
    if (r == -1 && errno == ENOSYS) SKIP("no pkey_mprotect");
    CHECK_EQ(r, 0);
    CHECK_FAULT(p, 1, SIGSEGV, SEGV_ACCERR);
    CHECK_ERRNO(syscall(SYS_pkey_mprotect, p, PAGE, PROT_READ, 14), EINVAL);
}

MAIN
