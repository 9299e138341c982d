// build: static -pthread
// sigaltstack: its rules, flags, errors, and stack overflow handled on it.
#include "sig.h"
#include <pthread.h>
#include <sys/resource.h>

#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1u << 31)
#endif
static char stack[65536] __attribute__((aligned(4096)));

static void *where;
static stack_t inside;
static int change_result, change_errno;
static void on_alt(int sig CHECK_USED) {
    int here;
    where = &here;
    hits++;
    sigaltstack(NULL, &inside);
    stack_t other = {.ss_sp = stack, .ss_size = 32768};
    change_result = sigaltstack(&other, NULL);
    change_errno = errno;
}
static int on_stack(void *p) { return (char *)p >= stack && (char *)p < stack + sizeof stack; }
static void set_stack(int flags) {
    stack_t ss = {.ss_sp = stack, .ss_size = sizeof stack, .ss_flags = flags};
    CHECK_OK(sigaltstack(&ss, NULL));
}

CASE(used_only_with_the_flag) {
    set_stack(0);
    handle(SIGUSR1, on_alt, 0);
    raise(SIGUSR1);
    CHECK(!on_stack(where));
    CHECK_EQ(change_result, 0);
    set_stack(0);
    handle(SIGUSR1, on_alt, SA_ONSTACK);
    raise(SIGUSR1);
    CHECK(on_stack(where));
    CHECK_EQ(inside.ss_flags, SS_ONSTACK);
    CHECK_EQ((long)inside.ss_sp, (long)stack);
    CHECK_EQ(inside.ss_size, sizeof stack);
    CHECK_EQ(change_result, -1);  // not while it is in use
    CHECK_EQ(change_errno, EPERM);
    CHECK_EQ(hits, 2);
}

CASE(without_a_stack_the_flag_does_nothing) {
    handle(SIGUSR1, on_alt, SA_ONSTACK);
    raise(SIGUSR1);
    CHECK(!on_stack(where));
    CHECK_EQ(hits, 1);
}

CASE(queries_and_errors) {
    stack_t ss, old;
    CHECK_OK(sigaltstack(NULL, &old));
    CHECK_EQ(old.ss_flags, SS_DISABLE);
    set_stack(0);
    CHECK_OK(sigaltstack(NULL, &old));
    CHECK_EQ(old.ss_flags, 0);
    ss = (stack_t){.ss_sp = stack, .ss_size = 2047};
    CHECK_ERRNO(sigaltstack(&ss, NULL), ENOMEM);
    ss.ss_size = 0;
    CHECK_ERRNO(sigaltstack(&ss, NULL), ENOMEM);
    ss = (stack_t){.ss_sp = stack, .ss_size = 65536, .ss_flags = 4};
    CHECK_ERRNO(sigaltstack(&ss, NULL), EINVAL);
    ss.ss_flags = -1;
    CHECK_ERRNO(sigaltstack(&ss, NULL), EINVAL);
    CHECK_ERRNO(sigaltstack((void *)8, NULL), EFAULT);
    // SS_ONSTACK is taken for 0 (as 4.2BSD did), SS_DISABLE looks at nothing else.
    ss.ss_flags = SS_ONSTACK;
    CHECK_OK(sigaltstack(&ss, &old));
    CHECK_EQ(old.ss_size, sizeof stack);
    ss = (stack_t){.ss_sp = (void *)8, .ss_size = 1, .ss_flags = SS_DISABLE};
    CHECK_OK(sigaltstack(&ss, NULL));
    CHECK_OK(sigaltstack(NULL, &old));
    CHECK_EQ(old.ss_flags, SS_DISABLE);
    CHECK_EQ((long)old.ss_sp, 0);
    CHECK_EQ(old.ss_size, 0);
    // Where it lies is not looked at before it is needed.
    ss = (stack_t){.ss_sp = (void *)0x10000, .ss_size = 65536};
    CHECK_OK(sigaltstack(&ss, NULL));
}

CASE(an_unmapped_alternate_stack_kills) {
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        stack_t ss = {.ss_sp = (void *)0x10000, .ss_size = 65536};
        CHECK_OK(sigaltstack(&ss, NULL));
        handle(SIGUSR1, on_alt, SA_ONSTACK);
        raise(SIGUSR1);
        _exit(0);
    }
    CHECK_KILLED(p, SIGSEGV);
}

CASE(a_frame_that_does_not_fit_kills) {
    // MINSIGSTKSZ is too small for AVX-512 state: Linux refuses such a stack (since 5.14) or fails at delivery.
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        handle(SIGUSR1, on_alt, SA_ONSTACK);
        stack_t ss = {.ss_sp = stack + 40000, .ss_size = 2048};
        if (sigaltstack(&ss, NULL) == -1) {
            CHECK_EQ(errno, ENOMEM);
            kill(getpid(), SIGSEGV);
        }
        memset(stack, 0x55, sizeof stack);
        raise(SIGUSR1);
        // Small frame after all (no AVX-512): then it must have stayed within its stack.
        for (int i = 0; i < 40000; i++) CHECK_EQ(stack[i], 0x55);
        kill(getpid(), SIGSEGV);
    }
    CHECK_KILLED(p, SIGSEGV);
}

static void *nested_where;
static void nested(int sig CHECK_USED) {
    int here;
    nested_where = &here;
}
static void outer(int sig CHECK_USED) {
    int here;
    where = &here;
    raise(SIGUSR2);
}

CASE(nested_handlers_stay_on_it) {
    set_stack(0);
    handle(SIGUSR1, outer, SA_ONSTACK);
    handle(SIGUSR2, nested, SA_ONSTACK);
    raise(SIGUSR1);
    CHECK(on_stack(where));
    CHECK(on_stack(nested_where));
    CHECK_LT((long)nested_where, (long)where);  // further down, not from the top again
    handle(SIGUSR2, nested, 0);
    raise(SIGUSR1);
    CHECK(on_stack(nested_where));
    CHECK_LT((long)nested_where, (long)where);
}

static stack_t while_armed;
static void disarmed(int sig CHECK_USED) {
    int here;
    where = &here;
    sigaltstack(NULL, &while_armed);
    hits++;
}

CASE(autodisarm) {
    stack_t old;
    set_stack(SS_AUTODISARM);
    CHECK_OK(sigaltstack(NULL, &old));
    CHECK_EQ((unsigned)old.ss_flags, SS_AUTODISARM);
    handle(SIGUSR1, disarmed, SA_ONSTACK);
    raise(SIGUSR1);
    CHECK(on_stack(where));
    CHECK_EQ(while_armed.ss_flags, SS_DISABLE);  // in the handler there is none
    CHECK_OK(sigaltstack(NULL, &old));           // and at its return there is again
    CHECK_EQ((unsigned)old.ss_flags, SS_AUTODISARM);
    CHECK_EQ((long)old.ss_sp, (long)stack);
    // Changing it in the handler is allowed then.
    set_stack(SS_AUTODISARM);
    handle(SIGUSR1, on_alt, SA_ONSTACK);
    raise(SIGUSR1);
    CHECK_EQ(change_result, 0);
}

static sigjmp_buf back;
static siginfo_t overflow;
static void on_overflow(int sig, siginfo_t *info, void *c CHECK_USED) {
    int here;
    where = &here;
    overflow = *info;
    siglongjmp(back, sig);
}
static __attribute__((noinline)) int endless(int n) {
    volatile char page[4096];
    page[0] = n;
    return endless(n + 1) + page[0];
}

CASE(stack_overflow_is_caught) {
    struct rlimit l;
    getrlimit(RLIMIT_STACK, &l);
    l.rlim_cur = 1 << 20;
    CHECK_OK(setrlimit(RLIMIT_STACK, &l));
    set_stack(0);
    handle_info(SIGSEGV, on_overflow, SA_ONSTACK);
    for (int i = 0; i < 3; i++) {
        int here;
        if (sigsetjmp(back, 1) == 0) endless(0);
        CHECK(on_stack(where));
        CHECK_EQ(overflow.si_code, SEGV_MAPERR);
        CHECK_LT((long)overflow.si_addr, (long)&here);
        CHECK_GT((long)overflow.si_addr, (long)&here - (2 << 20));
    }
    stack_t now;
    CHECK_OK(sigaltstack(NULL, &now));  // left by a jump: not in use any more, since it is the sp that counts
    CHECK_EQ(now.ss_flags, 0);
}

CASE(stack_overflow_without_it_kills) {
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        struct rlimit l;
        getrlimit(RLIMIT_STACK, &l);
        l.rlim_cur = 1 << 20;
        setrlimit(RLIMIT_STACK, &l);
        handle_info(SIGSEGV, on_overflow, 0);
        if (sigsetjmp(back, 1) == 0) endless(0);
        _exit(0);
    }
    CHECK_KILLED(p, SIGSEGV);
}

static void *thread(void *arg) {
    stack_t old;
    CHECK_OK(sigaltstack(NULL, &old));
    CHECK_EQ(old.ss_flags, SS_DISABLE);  // a thread begins without one
    static char own[65536];
    stack_t ss = {.ss_sp = own, .ss_size = sizeof own};
    CHECK_OK(sigaltstack(&ss, NULL));
    return arg;
}

CASE(per_thread_and_over_fork) {
    set_stack(0);
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, thread, NULL), 0);
    CHECK_EQ(pthread_join(t, NULL), 0);
    stack_t now;
    CHECK_OK(sigaltstack(NULL, &now));
    CHECK_EQ((long)now.ss_sp, (long)stack);
    IN_CHILD({
        stack_t c;
        CHECK_OK(sigaltstack(NULL, &c));
        CHECK_EQ((long)c.ss_sp, (long)stack);
        handle(SIGUSR1, on_alt, SA_ONSTACK);
        raise(SIGUSR1);
        CHECK(on_stack(where));
    });
    // A vfork child has its parent's too (CLONE_VM with CLONE_VFORK).
    pid_t p = vfork();
    if (p == 0) {
        stack_t c;
        _exit(sigaltstack(NULL, &c) == 0 && c.ss_sp == stack ? 0 : 1);
    }
    CHECK_EXIT(p, 0);
}

CASE(frame_records_the_stack) {
    extern void check_uc(int, siginfo_t *, void *);
    set_stack(0);
    handle_info(SIGUSR1, check_uc, SA_ONSTACK);
    raise(SIGUSR1);
    CHECK_EQ(hits, 1);
    // sigreturn would restore the settings from the frame, but refuses silently while still on that stack.
    stack_t now;
    CHECK_OK(sigaltstack(NULL, &now));
    CHECK_EQ(now.ss_size, sizeof stack);
    handle_info(SIGUSR1, check_uc, 0);
    raise(SIGUSR1);
    CHECK_OK(sigaltstack(NULL, &now));
    CHECK_EQ(now.ss_size, 40960);
    CHECK_EQ((long)now.ss_sp, (long)stack);
}
void check_uc(int sig CHECK_USED, siginfo_t *i CHECK_USED, void *context) {
    ucontext_t *uc = context;
    CHECK_EQ((long)uc->uc_stack.ss_sp, (long)stack);
    CHECK_EQ(uc->uc_stack.ss_size, sizeof stack);
    CHECK_EQ(uc->uc_stack.ss_flags, 0);
    uc->uc_stack.ss_size = 40960;
    hits++;
}

MAIN
