// build: static -pthread
// madvise, msync, mincore, the mlock family with RLIMIT_MEMLOCK.
#include "maps.h"
#include <pthread.h>
#include <sys/resource.h>

#define RW (PROT_READ | PROT_WRITE)
#define PA (MAP_PRIVATE | MAP_ANONYMOUS)
#ifndef MLOCK_ONFAULT
#define MLOCK_ONFAULT 1
#endif

CASE(dontneed_anonymous) {
    char *p = anon(4 * PAGE);
    memset(p, 'd', 4 * PAGE);
    CHECK_OK(madvise(p + PAGE, 2 * PAGE, MADV_DONTNEED));
    CHECK_EQ(p[0], 'd');
    CHECK_EQ(p[PAGE], 0);
    CHECK_EQ(p[3 * PAGE - 1], 0);
    CHECK_EQ(p[3 * PAGE], 'd');
    CHECK_WRITES(p + PAGE);
}

CASE(dontneed_files) {
    int fd = file_of_pages(2);
    char *p = CHECK_MAP(raw_mmap(NULL, 2 * PAGE, RW, MAP_PRIVATE, fd, 0));
    p[0] = 'P';
    CHECK_OK(madvise(p, 2 * PAGE, MADV_DONTNEED));
    CHECK_EQ(p[0], 'a');  // the private copy is gone
    char *q = CHECK_MAP(raw_mmap(NULL, 2 * PAGE, RW, MAP_SHARED, fd, 0));
    q[0] = 'S';
    CHECK_OK(madvise(q, 2 * PAGE, MADV_DONTNEED));
    CHECK_EQ(q[0], 'S');
    char *r = CHECK_MAP(raw_mmap(NULL, 2 * PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    r[0] = 'R';
    CHECK_OK(madvise(r, 2 * PAGE, MADV_DONTNEED));
    CHECK_EQ(r[0], 'R');
}

CASE(dontneed_over_a_hole) {
    char *p = anon(4 * PAGE);
    memset(p, 'd', 4 * PAGE);
    CHECK_OK(munmap(p + PAGE, PAGE));
    CHECK_ERRNO(madvise(p, 4 * PAGE, MADV_DONTNEED), ENOMEM);
    CHECK_EQ(p[0], 0);  // done all the same, on both sides
    CHECK_EQ(p[2 * PAGE], 0);
}

CASE(free_keeps_what_is_written_later) {
    char *p = anon(4 * PAGE);
    memset(p, 'f', 4 * PAGE);
    CHECK_OK(madvise(p, 4 * PAGE, MADV_FREE));
    for (int i = 0; i < 4; i++) CHECK(p[i * PAGE] == 'f' || p[i * PAGE] == 0);
    p[0] = 'w';
    CHECK_EQ(p[0], 'w');
    int fd = file_of_pages(1);
    char *q = CHECK_MAP(raw_mmap(NULL, PAGE, RW, MAP_PRIVATE, fd, 0));
    CHECK_ERRNO(madvise(q, PAGE, MADV_FREE), EINVAL);
}

CASE(harmless_advice) {
    static const int advice[] = {MADV_NORMAL, MADV_RANDOM, MADV_SEQUENTIAL, MADV_WILLNEED, MADV_DONTFORK, MADV_DOFORK,
                                 MADV_DONTDUMP, MADV_DODUMP};
    int fd = file_of_pages(4);
    char *p = anon(4 * PAGE), *q = CHECK_MAP(raw_mmap(NULL, 4 * PAGE, RW, MAP_SHARED, fd, 0));
    memset(p, 'h', 4 * PAGE);
    for (unsigned i = 0; i < sizeof advice / sizeof *advice; i++) {
        CHECK_OK(madvise(p, 4 * PAGE, advice[i]));
        CHECK_OK(madvise(q, 4 * PAGE, advice[i]));
        CHECK_EQ(p[3 * PAGE], 'h');
        CHECK_EQ(q[3 * PAGE], 'd');
    }
}

CASE(dontfork_and_wipeonfork) {
    char *p = anon(PAGE), *q = anon(3 * PAGE);
    p[0] = 'p';
    q[0] = q[2 * PAGE] = 'q';
    CHECK_OK(madvise(q + PAGE, 2 * PAGE, MADV_DONTFORK));
    CHECK_OK(madvise(p, PAGE, MADV_WIPEONFORK));
    IN_CHILD({
        CHECK_EQ(p[0], 0);
        CHECK_EQ(q[0], 'q');
        CHECK_FAULT(q + 2 * PAGE, 0, SIGSEGV, SEGV_MAPERR);
        IN_CHILD(CHECK_EQ(p[0], 0));
    });
    CHECK_EQ(p[0], 'p');
    CHECK_EQ(q[2 * PAGE], 'q');
    CHECK_OK(madvise(p, PAGE, MADV_KEEPONFORK));
    CHECK_OK(madvise(q + PAGE, 2 * PAGE, MADV_DOFORK));
    IN_CHILD({
        CHECK_EQ(p[0], 'p');
        CHECK_EQ(q[2 * PAGE], 'q');
    });
    CHECK_ERRNO(madvise(CHECK_MAP(raw_mmap(NULL, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0)), PAGE, MADV_WIPEONFORK), EINVAL);
}

CASE(madvise_errors) {
    char *p = anon(PAGE);
    CHECK_ERRNO(madvise(p, PAGE, 9999), EINVAL);
    CHECK_ERRNO(madvise(p, PAGE, -1), EINVAL);
    CHECK_ERRNO(madvise(p + 1, PAGE, MADV_DONTNEED), EINVAL);
    CHECK_ERRNO(madvise(p, -1ul, MADV_DONTNEED), EINVAL);
    CHECK_OK(madvise(p, 0, MADV_DONTNEED));
    CHECK_ERRNO(madvise(p, 0, 9999), EINVAL);
    CHECK_OK(munmap(p, PAGE));
    CHECK_ERRNO(madvise(p, PAGE, MADV_DONTNEED), ENOMEM);
    CHECK_ERRNO(madvise(p, PAGE, MADV_NORMAL), ENOMEM);
    CHECK_ERRNO(madvise((void *)-PAGE, PAGE, MADV_NORMAL), EINVAL);  // wraps
    CHECK_ERRNO(madvise((void *)(-2 * PAGE), PAGE, MADV_NORMAL), ENOMEM);
}

CASE(populate_advice) {
    char *p = anon(8 * PAGE);
    unsigned char vec[8];
    CHECK_OK(madvise(p, 8 * PAGE, MADV_POPULATE_WRITE));
    CHECK_OK(mincore(p, 8 * PAGE, vec));
    for (int i = 0; i < 8; i++) CHECK_EQ(vec[i] & 1, 1);
    CHECK_OK(mprotect(p, PAGE, PROT_NONE));
    CHECK_ERRNO(madvise(p, PAGE, MADV_POPULATE_READ), EINVAL);
    int fd = file_of_pages(1);
    char *q = CHECK_MAP(raw_mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE, fd, 0));
    CHECK_ERRNO(madvise(q, 2 * PAGE, MADV_POPULATE_READ), EFAULT);
    CHECK_ERRNO(madvise(q, PAGE, MADV_POPULATE_WRITE), EINVAL);
    CHECK_OK(madvise(q, PAGE, MADV_POPULATE_READ));
}

CASE(mincore_tells_residency) {
    char *p = anon(8 * PAGE);
    unsigned char vec[9];
    memset(vec, 0xff, sizeof vec);
    p[0] = p[3 * PAGE] = 1;
    CHECK_OK(mincore(p, 8 * PAGE, vec));
    for (int i = 0; i < 8; i++) CHECK_EQ(vec[i] & 1, i == 0 || i == 3);
    CHECK_EQ(vec[8], 0xff);
    CHECK_OK(mincore(p, 1, vec));
    CHECK_ERRNO(mincore(p + 1, PAGE, vec), EINVAL);
    CHECK_ERRNO(mincore(p, 8 * PAGE, (void *)8), EFAULT);
    CHECK_ERRNO(mincore(p, 1ul << 60, vec), ENOMEM);
    CHECK_OK(mincore(p, 0, vec));
    CHECK_OK(munmap(p + PAGE, PAGE));
    CHECK_ERRNO(mincore(p, 8 * PAGE, vec), ENOMEM);
    CHECK_ERRNO(mincore((void *)-PAGE, PAGE, vec), ENOMEM);
}

CASE(msync_errors) {
    char *p = anon(3 * PAGE);
    CHECK_OK(msync(p, 3 * PAGE, MS_SYNC));
    CHECK_OK(msync(p, 3 * PAGE, MS_ASYNC | MS_INVALIDATE));
    CHECK_OK(msync(p, 0, MS_SYNC));
    CHECK_OK(msync(p, PAGE, 0));
    CHECK_ERRNO(msync(p + 1, PAGE, MS_SYNC), EINVAL);
    CHECK_ERRNO(msync(p, PAGE, MS_SYNC | MS_ASYNC), EINVAL);
    CHECK_ERRNO(msync(p, PAGE, 0x100), EINVAL);
    CHECK_ERRNO(msync(p, -PAGE, MS_SYNC), ENOMEM);
    CHECK_OK(munmap(p + PAGE, PAGE));
    CHECK_ERRNO(msync(p, 3 * PAGE, MS_SYNC), ENOMEM);
    CHECK_ERRNO(msync(p + PAGE, PAGE, MS_SYNC), ENOMEM);
}

CASE(mlock_and_munlock) {
    char *p = anon(8 * PAGE);
    long before = status_kib("VmLck:");
    CHECK_OK(mlock(p + PAGE, 2 * PAGE));
    CHECK_EQ(status_kib("VmLck:") - before, 8);
    unsigned char vec[8];
    CHECK_OK(mincore(p, 8 * PAGE, vec));
    for (int i = 0; i < 8; i++) CHECK_EQ(vec[i] & 1, i == 1 || i == 2);
    // Not aligned: whole pages.
    CHECK_OK(mlock(p + 4 * PAGE + 1, 1));
    CHECK_EQ(status_kib("VmLck:") - before, 12);
    // Locked memory cannot be given back by DONTNEED.
    CHECK_ERRNO(madvise(p, 8 * PAGE, MADV_DONTNEED), EINVAL);
    CHECK_OK(munlock(p, 8 * PAGE));
    CHECK_EQ(status_kib("VmLck:"), before);
    CHECK_OK(madvise(p, 8 * PAGE, MADV_DONTNEED));
    CHECK_OK(syscall(SYS_mlock2, p, 8 * PAGE, MLOCK_ONFAULT));
    CHECK_EQ(status_kib("VmLck:") - before, 32);
    CHECK_OK(munmap(p, 8 * PAGE));
    CHECK_EQ(status_kib("VmLck:"), before);
}

static char *locked_by_others;

static void *lock_it(void *arg) {
    CHECK_OK(mlock(locked_by_others, 4096));
    return arg;
}

static void check_that_it_stays_locked(void) {
    CHECK_ERRNO(madvise(locked_by_others, 4096, MADV_DONTNEED), EINVAL);
    CHECK_ERRNO(madvise(locked_by_others, 4096, MADV_FREE), EINVAL);
    CHECK_ERRNO(madvise(locked_by_others, 4096, MADV_COLD), EINVAL);
    CHECK_OK(madvise(locked_by_others, 4096, MADV_WILLNEED));
    CHECK_EQ(locked_by_others[0], 5);
}

static void *check_in_a_thread(void *arg) {
    check_that_it_stays_locked();
    return arg;
}

// Threads that had advised freely before, and those that come later, hear of a lock alike.
CASE(locked_by_another_thread) {
    char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK_MAP(p);
    locked_by_others = p;
    p[0] = 1;
    CHECK_OK(madvise(p, 4096, MADV_DONTNEED));
    CHECK_EQ(p[0], 0);
    p[0] = 5;
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, lock_it, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    check_that_it_stays_locked();
    CHECK_EQ(pthread_create(&thread, NULL, check_in_a_thread, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    // A child has no locks.
    IN_CHILD({
        CHECK_OK(madvise(p, 4096, MADV_DONTNEED));
        CHECK_EQ(p[0], 0);
    });
    CHECK_OK(munlock(p, 4096));
    CHECK_OK(madvise(p, 4096, MADV_DONTNEED));
    CHECK_EQ(p[0], 0);
}

CASE(mapped_as_locked) {
    char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, -1, 0);
    CHECK_MAP(p);
    p[0] = 1;
    CHECK_ERRNO(madvise(p, 4096, MADV_DONTNEED), EINVAL);
    CHECK_EQ(p[0], 1);
}

CASE(advice_about_sealed_memory) {
    char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK_MAP(p);
    p[0] = 1;
    CHECK_OK(mprotect(p, 4096, PROT_READ));
    if (syscall(462, p, 4096, 0) == -1 && errno == ENOSYS) SKIP("no mseal");
    for (int i = 0; i < 2; i++) {
        CHECK_ERRNO(madvise(p, 4096, MADV_DONTNEED), EPERM);
        CHECK_EQ(p[0], 1);
        CHECK_OK(madvise(p, 4096, MADV_WILLNEED));
        // Seals are inherited.
        if (i == 0) IN_CHILD({
            CHECK_ERRNO(madvise(p, 4096, MADV_DONTNEED), EPERM);
            CHECK_EQ(p[0], 1);
        });
    }
}

CASE(odd_ranges_of_advice) {
    char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK_MAP(p);
    CHECK_OK(madvise(p, 0, MADV_DONTNEED));
    CHECK_ERRNO(madvise(p + 1, 4096, MADV_DONTNEED), EINVAL);
    CHECK_ERRNO(madvise(p, -1L, MADV_DONTNEED), EINVAL);
    CHECK_ERRNO(madvise(p, -4096L, MADV_DONTNEED), EINVAL);
    CHECK_ERRNO(syscall(SYS_madvise, p, 4096, 5), EINVAL);
    CHECK_ERRNO(syscall(SYS_madvise, p, 4096, -1), EINVAL);
    // The advice is 32 bits wide.
    p[0] = 1;
    CHECK_OK(syscall(SYS_madvise, p, 4096, 1L << 32 | MADV_DONTNEED));
    CHECK_EQ(p[0], 0);
    // All of a page whose beginning is named.
    p[4095] = 1;
    CHECK_OK(madvise(p, 1, MADV_DONTNEED));
    CHECK_EQ(p[4095], 0);
    CHECK_ERRNO(madvise((void *)(1L << 47), 4096, MADV_DONTNEED), ENOMEM);
    CHECK_OK(munmap(p, 8192));
    CHECK_ERRNO(madvise(p, 4096, MADV_DONTNEED), ENOMEM);
    CHECK_ERRNO(madvise(p, 4096, MADV_NORMAL), ENOMEM);
}

CASE(mlock_errors) {
    char *p = anon(4 * PAGE);
    CHECK_OK(mlock(p, 0));
    CHECK_ERRNO(syscall(SYS_mlock2, p, PAGE, 2), EINVAL);
    CHECK_ERRNO(mlockall(0), EINVAL);
    CHECK_ERRNO(mlockall(MCL_ONFAULT), EINVAL);
    CHECK_ERRNO(mlockall(8), EINVAL);
    if (geteuid() == 0) CHECK_ERRNO(mlock(p, -PAGE), EINVAL);  // for others the limit comes first
    else CHECK_ERRNO(mlock(p, -PAGE), ENOMEM);
    CHECK_OK(munmap(p + PAGE, PAGE));
    CHECK_ERRNO(mlock(p, 4 * PAGE), ENOMEM);
    CHECK_ERRNO(munlock(p, 4 * PAGE), ENOMEM);
}

CASE(locks_are_not_inherited) {
    char *p = anon(2 * PAGE);
    CHECK_OK(mlock(p, 2 * PAGE));
    CHECK_GE(status_kib("VmLck:"), 8);
    IN_CHILD(CHECK_EQ(status_kib("VmLck:"), 0));
}

CASE(mlockall_future) {
    struct rlimit lim;
    CHECK_OK(getrlimit(RLIMIT_MEMLOCK, &lim));
    CHECK_OK(mlockall(MCL_FUTURE | MCL_ONFAULT));
    long before = status_kib("VmLck:");
    anon(4 * PAGE);
    CHECK_EQ(status_kib("VmLck:") - before, 16);
    CHECK_OK(munlockall());
    CHECK_EQ(status_kib("VmLck:"), 0);
    anon(4 * PAGE);
    CHECK_EQ(status_kib("VmLck:"), 0);
}

CASE(memlock_limit_holds_for_users) {
    NEED_USER();
    struct rlimit lim;
    CHECK_OK(getrlimit(RLIMIT_MEMLOCK, &lim));
    lim.rlim_cur = 4 * PAGE;
    CHECK_OK(setrlimit(RLIMIT_MEMLOCK, &lim));
    char *p = anon(16 * PAGE);
    CHECK_ERRNO(mlock(p, 5 * PAGE), ENOMEM);
    CHECK_OK(mlock(p, 4 * PAGE));
    CHECK_ERRNO(mlock(p + 8 * PAGE, PAGE), ENOMEM);
    CHECK_OK(mlock(p, 2 * PAGE));  // already locked counts once
    CHECK_OK(munlock(p, PAGE));
    CHECK_OK(mlock(p + 8 * PAGE, PAGE));
    CHECK_ERRNO(raw_mmap(NULL, PAGE, RW, PA | MAP_LOCKED, -1, 0), EAGAIN);
    CHECK_ERRNO(mremap(p + 8 * PAGE, PAGE, 4 * PAGE, MREMAP_MAYMOVE), EAGAIN);
    CHECK_ERRNO(mlockall(MCL_CURRENT), ENOMEM);
    lim.rlim_cur = 0;
    CHECK_OK(munlockall());
    CHECK_OK(setrlimit(RLIMIT_MEMLOCK, &lim));
    CHECK_ERRNO(mlock(p, PAGE), EPERM);
    CHECK_ERRNO(mlockall(MCL_CURRENT), EPERM);
    CHECK_ERRNO(raw_mmap(NULL, PAGE, RW, PA | MAP_LOCKED, -1, 0), EPERM);
    CHECK_OK(munlock(p, PAGE));
}

CASE(memlock_limit_is_not_for_root) {
    NEED_ROOT();
    struct rlimit lim = {0, 0};
    CHECK_OK(setrlimit(RLIMIT_MEMLOCK, &lim));
    char *p = anon(16 * PAGE);
    CHECK_OK(mlock(p, 16 * PAGE));
    CHECK_MAP(raw_mmap(NULL, PAGE, RW, PA | MAP_LOCKED, -1, 0));
}

MAIN
