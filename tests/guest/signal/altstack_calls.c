// build: static -pthread
// sigaltstack called often and in all ways: what it reports, where it fails and what it has done then, and who inherits it.
#include "sig.h"
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/time.h>

#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1u << 31)
#endif
static char first[65536] __attribute__((aligned(4096))), second[32768] __attribute__((aligned(4096)));

// Not the C library's, for what is in the padding.
static long call(const void *new, void *old) { return syscall(SYS_sigaltstack, new, old); }
static stack_t make(void *sp, size_t size, unsigned flags) {
    stack_t ss;
    memset(&ss, 0x55, sizeof ss);
    ss.ss_sp = sp;
    ss.ss_size = size;
    ss.ss_flags = flags;
    return ss;
}
static long set(void *sp, size_t size, unsigned flags) {
    stack_t ss = make(sp, size, flags);
    return call(&ss, NULL) == -1 ? -errno : 0;
}
#define NOW_IS(SP, SIZE, FLAGS)                                  \
    do {                                                         \
        stack_t now_;                                            \
        memset(&now_, 0x55, sizeof now_);                        \
        CHECK_EQ(call(NULL, &now_), 0);                          \
        SHOWN(now_, SP, SIZE, FLAGS);                            \
    } while (0)
#define SHOWN(SS, SP, SIZE, FLAGS)                               \
    do {                                                         \
        CHECK_EQ((long)(SS).ss_sp, (long)(SP));                  \
        CHECK_EQ((SS).ss_size, (size_t)(SIZE));                  \
        CHECK_EQ((unsigned)(SS).ss_flags, (unsigned)(FLAGS));    \
        CHECK_EQ(((int *)&(SS))[3], 0);                          \
    } while (0)

CASE(many_calls) {
    for (int i = 0; i < 2000; i++) {
        stack_t a = make(first, sizeof first, 0), b = make(second, sizeof second - i, 0), old;
        CHECK_EQ(call(&a, NULL), 0);
        CHECK_EQ(call(&b, &old), 0);
        SHOWN(old, first, sizeof first, 0);
        NOW_IS(second, sizeof second - i, 0);
        CHECK_EQ(set(NULL, 0, SS_DISABLE), 0);
        NOW_IS(0, 0, SS_DISABLE);
    }
    CHECK_EQ(call(NULL, NULL), 0);
}

CASE(old_and_new_in_one_place) {
    CHECK_EQ(set(first, sizeof first, 0), 0);
    for (int i = 0; i < 10; i++) {
        stack_t ss = make(second, sizeof second, 0);
        CHECK_EQ(call(&ss, &ss), 0);
        SHOWN(ss, first, sizeof first, 0);
        CHECK_EQ(call(&ss, &ss), 0);
        SHOWN(ss, second, sizeof second, 0);
    }
    // They overlap, at any address.
    char room[64];
    for (int apart = -23; apart < 24; apart++) {
        stack_t ss = make(second, sizeof second, 0);
        memcpy(room + 23, &ss, sizeof ss);
        CHECK_EQ(call(room + 23, room + 23 + apart), 0);
        memcpy(&ss, room + 23 + apart, sizeof ss);
        SHOWN(ss, first, sizeof first, 0);
        NOW_IS(second, sizeof second, 0);
        CHECK_EQ(set(first, sizeof first, 0), 0);
    }
}

CASE(all_flags) {
    static const unsigned ored[] = {0, SS_AUTODISARM, 1 << 30, 4, 8, 256};
    for (unsigned k = 0; k < sizeof ored / sizeof *ored; k++)
        for (unsigned low = 0; low < 4; low++) {
            CHECK_EQ(set(second, sizeof second, 0), 0);
            unsigned flags = ored[k] | low;
            int ok = k < 2 && low < 3;
            CHECK_EQ(set(first, sizeof first, flags), ok ? 0 : -EINVAL);
            if (!ok)
                NOW_IS(second, sizeof second, 0);
            else if (low == SS_DISABLE)
                NOW_IS(0, 0, flags);
            else
                NOW_IS(first, sizeof first, flags & SS_AUTODISARM);
        }
}

CASE(sizes) {
    CHECK_EQ(set(first, sizeof first, 0), 0);
    for (size_t size = 0; size < 2048; size += 89) CHECK_EQ(set(second, size, 0), -ENOMEM);
    CHECK_EQ(set(second, 2047, 0), -ENOMEM);
    CHECK_EQ(set(second, 2047, SS_ONSTACK), -ENOMEM);
    CHECK_EQ(set(second, 2047, SS_AUTODISARM), -ENOMEM);
    NOW_IS(first, sizeof first, 0);
    CHECK_EQ(set(second, 1, SS_DISABLE), 0);
    NOW_IS(0, 0, SS_DISABLE);
    // Nothing else is looked at.
    CHECK_EQ(set((void *)-1, -1, 0), 0);
    NOW_IS(-1, -1, 0);
    CHECK_EQ(set((void *)0xffff800000000000, 1ul << 63, 0), 0);
    NOW_IS(0xffff800000000000, 1ul << 63, 0);
}

CASE(pointers_that_fault) {
    char *page = CHECK_MAP(mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    CHECK_OK(mprotect(page + 4096, 4096, PROT_READ));
    CHECK_OK(munmap(page + 8192, 4096));
    void *bad[] = {(void *)8, (void *)0x7fffffffefe9, (void *)0x7ffffffff000, (void *)-24, (void *)-1,
                   (void *)0x800000000000, page + 8192, page + 8192 - 8, page + 8192 - 23};
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        stack_t old = make(0, 0, 0);
        CHECK_EQ(set(first, sizeof first, 0), 0);
        CHECK_ERRNO(call(bad[i], NULL), EFAULT);
        CHECK_ERRNO(call(bad[i], &old), EFAULT);
        CHECK_EQ(old.ss_flags, 0);
        CHECK_EQ(((int *)&old)[3], 0x55555555);  // nothing written
        NOW_IS(first, sizeof first, 0);
        // The old one comes last: the new one is set by then.
        stack_t ss = make(second, sizeof second, 0);
        CHECK_ERRNO(call(NULL, bad[i]), EFAULT);
        CHECK_ERRNO(call(&ss, bad[i]), EFAULT);
        NOW_IS(second, sizeof second, 0);
    }
    // Partly or wholly where it cannot be written, also in the place of the new one.
    for (int at = 4096 - 23; at < 4096 + 24; at++) {
        stack_t ss = make(second, sizeof second, 0);
        CHECK_EQ(set(first, sizeof first, 0), 0);
        CHECK_ERRNO(call(&ss, page + at), EFAULT);
        NOW_IS(second, sizeof second, 0);
        CHECK_EQ(set(first, sizeof first, 0), 0);
        CHECK_OK(mprotect(page + 4096, 4096, PROT_READ | PROT_WRITE));
        memcpy(page + at, &ss, sizeof ss);
        CHECK_OK(mprotect(page + 4096, 4096, PROT_READ));
        CHECK_ERRNO(call(page + at, page + at), EFAULT);
        NOW_IS(second, sizeof second, 0);
    }
    // What fails otherwise has precedence.
    stack_t ss = make(first, 1, 0);
    CHECK_ERRNO(call(&ss, (void *)8), ENOMEM);
    ss = make(first, sizeof first, 3);
    CHECK_ERRNO(call(&ss, (void *)8), EINVAL);
    NOW_IS(second, sizeof second, 0);
}

// One whose stack pointer is known: what it was, and what to take it for.
static __attribute__((noinline)) long call_at(const void *new, void *old, unsigned long *sp) {
    long result;
    __asm__ volatile("mov %%rsp, %1; syscall"
                     : "=a"(result), "=&r"(*sp)
                     : "0"(SYS_sigaltstack), "D"(new), "S"(old)
                     : "rcx", "r11", "memory");
    return result;
}
static void stands(long below, unsigned long size, int on) {
    stack_t ss, old;
    unsigned long sp, again;
    CHECK_EQ(call_at(NULL, &old, &sp), 0);
    ss = make((char *)sp - below, size, 0);
    CHECK_EQ(call_at(&ss, NULL, &again), 0);
    CHECK_EQ(call_at(NULL, &old, &again), 0);
    CHECK_EQ(sp, again);
    SHOWN(old, (char *)sp - below, size, on ? SS_ONSTACK : 0);
    CHECK_EQ(call_at(&ss, &old, &again), on ? -EPERM : 0);
    ss.ss_flags = SS_DISABLE;
    CHECK_EQ(call_at(&ss, &old, &again), on ? -EPERM : 0);
    ss = make(0, 1, 77);
    CHECK_EQ(call_at(&ss, &old, &again), on ? -EPERM : -EINVAL);
    CHECK_EQ(call_at((void *)8, &old, &again), -EFAULT);
}

CASE(in_use_by_the_stack_pointer) {
    // Not at its start, but at its end. Numbers that overflow hold nothing more.
    static const struct { long below; unsigned long size; int on; } kinds[] = {
        {-1, 4096, 0}, {0, 4096, 0},   {1, 4096, 1},   {4095, 4096, 1},        {4096, 4096, 1},    {4097, 4096, 0},
        {0, -1, 0},    {1, -1, 1},     {-1, -1, 0},    {-(1l << 40), -1, 0},   {4096, 1ul << 63, 1}, {-4096, -4096, 0},
    };
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
        IN_CHILD({ stands(kinds[i].below, kinds[i].size, kinds[i].on); });
}

static unsigned seen[2];
static stack_t inside;
static long change;
static void look(int sig, siginfo_t *info CHECK_USED, void *context) {
    ucontext_t *uc = context;
    seen[hits] = uc->uc_stack.ss_flags;
    if (hits++ == 0) {
        call(NULL, &inside);
        change = set(second, sizeof second, 0);
        raise(sig);
    }
}

CASE(frames_have_the_flags_as_they_were_set) {
    static const unsigned flags[] = {0, SS_ONSTACK, SS_DISABLE, SS_AUTODISARM, SS_AUTODISARM | SS_ONSTACK};
    handle_info(SIGUSR1, look, SA_ONSTACK | SA_NODEFER);
    for (unsigned i = 0; i < 5; i++) {
        hits = 0;
        CHECK_EQ(set(first, sizeof first, flags[i]), 0);
        raise(SIGUSR1);
        CHECK_EQ(hits, 2);
        CHECK_EQ(seen[0], flags[i]);
        CHECK_EQ(change, i < 2 ? -EPERM : 0);
        // The second has what the first handler has set, if it could.
        CHECK_EQ(seen[1], i < 2 ? flags[i] : 0);
        CHECK_EQ(inside.ss_flags, i < 2 ? SS_ONSTACK : SS_DISABLE);
        if (i == 2)
            NOW_IS(0, 0, SS_DISABLE);
        else
            NOW_IS(first, sizeof first, flags[i] & SS_AUTODISARM);
    }
}

static void interrupts(int sig CHECK_USED, siginfo_t *info CHECK_USED, void *context) {
    ucontext_t *uc = context;
    stack_t *ss = &uc->uc_stack;
    char *here = (char *)&uc;
    if (ss->ss_flags == SS_DISABLE)
        CHECK(ss->ss_sp == NULL && ss->ss_size == 0);
    else if (ss->ss_sp == first)
        CHECK(ss->ss_size == sizeof first && here >= first && here < first + sizeof first);
    else
        CHECK(ss->ss_sp == second && ss->ss_size == sizeof second && here >= second && here < second + sizeof second);
    hits++;
}

CASE(a_signal_finds_it_whole) {
    handle_info(SIGALRM, interrupts, SA_ONSTACK);
    struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    CHECK_OK(setitimer(ITIMER_REAL, &often, NULL));
    while (hits < 200) {
        CHECK_EQ(set(first, sizeof first, 0), 0);
        CHECK_EQ(set(second, sizeof second, 0), 0);
        CHECK_EQ(set(NULL, 0, SS_DISABLE), 0);
    }
    CHECK_OK(setitimer(ITIMER_REAL, &never, NULL));
}

static void *thread(void *arg CHECK_USED) {
    NOW_IS(0, 0, SS_DISABLE);
    for (int i = 0; i < 500; i++) {
        CHECK_EQ(set(second, 4096 + i, 0), 0);
        NOW_IS(second, 4096 + i, 0);
    }
    return NULL;
}
static char others_stack[65536] __attribute__((aligned(16)));
static int others(void *arg CHECK_USED) {
    NOW_IS(0, 0, SS_DISABLE);
    CHECK_EQ(set(second, sizeof second, 0), 0);
    _exit(7);
}

CASE(each_thread_and_process_has_its_own) {
    CHECK_EQ(set(first, sizeof first, SS_ONSTACK), 0);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) CHECK_EQ(pthread_create(&threads[i], NULL, thread, NULL), 0);
    for (int i = 0; i < 500; i++) NOW_IS(first, sizeof first, 0);
    for (int i = 0; i < 4; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    NOW_IS(first, sizeof first, 0);
    IN_CHILD({
        NOW_IS(first, sizeof first, 0);
        CHECK_EQ(set(second, sizeof second, 0), 0);
    });
    NOW_IS(first, sizeof first, 0);
    // A vfork child has its parent's, and changes its own.
    pid_t p = vfork();
    if (p == 0) {
        stack_t c;
        int right = call(NULL, &c) == 0 && c.ss_sp == first && set(second, sizeof second, 0) == 0 && call(NULL, &c) == 0;
        _exit(right && c.ss_sp == second ? 0 : 1);
    }
    CHECK_EXIT(p, 0);
    NOW_IS(first, sizeof first, 0);
    // One that only shares the memory has none.
    p = CHECK_OK(clone(others, others_stack + sizeof others_stack, CLONE_VM | SIGCHLD, NULL));
    CHECK_EXIT(p, 7);
    NOW_IS(first, sizeof first, 0);
}

HELPER(after_exec) {
    unsigned flags = strtoul(argv[2], NULL, 10);
    NOW_IS(0, 0, SS_DISABLE | (flags & SS_AUTODISARM));
    // What it is already, it may be set to, whatever its size.
    CHECK_EQ(set(NULL, 0, flags), 0);
    CHECK_EQ(set(NULL, 0, flags == SS_ONSTACK ? 0 : SS_ONSTACK), -ENOMEM);
    handle_info(SIGUSR1, look, SA_ONSTACK);
    hits = 1;
    raise(SIGUSR1);
    CHECK_EQ(seen[1], flags);  // they stay
}

CASE(gone_after_exec) {
    static const unsigned flags[] = {0, SS_ONSTACK, SS_DISABLE, SS_AUTODISARM};
    for (unsigned i = 0; i < 4; i++) {
        char text[16];
        snprintf(text, sizeof text, "%u", flags[i]);
        pid_t p = CHECK_OK(fork());
        if (p == 0) {
            CHECK_EQ(set(first, sizeof first, flags[i]), 0);
            execl(check_self, "x", "@after_exec", text, NULL);
            FAIL("exec");
        }
        CHECK_EXIT(p, 0);
    }
}

MAIN
