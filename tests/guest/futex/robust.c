// build: static -pthread
// Robust lists: what becomes of a lock word when its owner dies, by every manner of death.
#include "futex.h"
#include <linux/futex.h>

struct entry { struct robust_list link; volatile unsigned word; };
#define OFFSET ((long)offsetof(struct entry, word))

static int gettid_(void) { return syscall(SYS_gettid); }
static long set_list(struct robust_list_head *head, size_t size) { return syscall(SYS_set_robust_list, head, size); }

CASE(set_and_get) {
    struct robust_list_head head = {{&head.list}, OFFSET, NULL}, *got = NULL;
    size_t size = 0;
    CHECK_ERRNO(set_list(&head, 8), EINVAL);
    CHECK_OK(set_list(&head, sizeof head));
    CHECK_OK(syscall(SYS_get_robust_list, 0, &got, &size));
    CHECK_EQ((long)got, (long)&head);
    CHECK_EQ(size, sizeof head);
    got = NULL;
    CHECK_OK(syscall(SYS_get_robust_list, gettid_(), &got, &size));
    CHECK_EQ((long)got, (long)&head);
    CHECK_ERRNO(syscall(SYS_get_robust_list, 0x3fffffff, &got, &size), ESRCH);
    CHECK_ERRNO(syscall(SYS_get_robust_list, 0, 8, &size), EFAULT);
    CHECK_ERRNO(syscall(SYS_get_robust_list, 0, &got, 8), EFAULT);
    if (foreign_init()) CHECK_ERRNO(syscall(SYS_get_robust_list, 1, &got, &size), EPERM);
    IN_CHILD({
        struct robust_list_head *c = (void *)1;
        CHECK_OK(syscall(SYS_get_robust_list, 0, &c, &size));
        CHECK_NE((long)c, (long)&head);  // not inherited (libc may set its own again)
    });
}

static struct robust_list_head *head;
static struct entry *entries;
static void prepare(void) {
    char *p = CHECK_MAP(mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    head = (void *)p;
    entries = (void *)(p + 4096);
    *head = (struct robust_list_head){{&head->list}, OFFSET, NULL};
}
// Hold n locks, linked as the ABI says.
static void hold(int n) {
    for (int i = 0; i < n; i++) {
        entries[i].word = gettid_() | FUTEX_WAITERS;
        entries[i].link.next = i + 1 < n ? &entries[i + 1].link : &head->list;
    }
    head->list.next = n ? &entries[0].link : &head->list;
    CHECK_OK(set_list(head, sizeof *head));
}
static void segfault(void) { *(volatile int *)16 = 0; }
static void be_killed(void) { kill(getpid(), SIGKILL); }
static void exit_call(void) { syscall(SYS_exit, 0); }
static void exit_group_call(void) { syscall(SYS_exit_group, 0); }
static void exec_call(void) { execl(check_self, "x", "@nothing", NULL); }
HELPER(nothing) {}

static void dies_by(void (*how)(void)) {
    prepare();
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        hold(3);
        how();
        _exit(99);
    }
    int status;
    CHECK_EQ(waitpid(p, &status, 0), p);
    for (int i = 0; i < 3; i++) CHECK_EQ(entries[i].word, FUTEX_OWNER_DIED | FUTEX_WAITERS);
}

CASE(owner_exits) { dies_by(exit_call); }
CASE(owner_exits_the_group) { dies_by(exit_group_call); }
CASE(owner_is_killed) { dies_by(be_killed); }
CASE(owner_faults) { dies_by(segfault); }
CASE(owner_executes) { dies_by(exec_call); }

CASE(words_of_others_are_left_alone) {
    prepare();
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        hold(3);
        entries[1].word = 12345;
        _exit(0);
    }
    CHECK_EXIT(p, 0);
    CHECK_EQ(entries[0].word & FUTEX_OWNER_DIED, FUTEX_OWNER_DIED);
    CHECK_EQ(entries[1].word, 12345);
    CHECK_EQ(entries[2].word & FUTEX_OWNER_DIED, FUTEX_OWNER_DIED);
}

CASE(pending_operation_counts) {
    prepare();
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        hold(0);
        entries[5].word = gettid_();
        head->list_op_pending = &entries[5].link;
        CHECK_OK(set_list(head, sizeof *head));
        _exit(0);
    }
    CHECK_EXIT(p, 0);
    CHECK_EQ(entries[5].word, FUTEX_OWNER_DIED);
}

CASE(a_waiter_is_woken) {
    prepare();
    pid_t owner = CHECK_OK(fork());
    if (owner == 0) {
        hold(1);
        sleep_ms(150);
        _exit(0);
    }
    while (!entries[0].word) sched_yield();
    unsigned value = entries[0].word;
    pid_t waiter = CHECK_OK(fork());
    if (waiter == 0) {
        long r = futex(&entries[0].word, FUTEX_WAIT, value, &(struct timespec){10, 0}, NULL, 0);
        _exit(r == 0 || errno == EAGAIN ? 0 : errno);
    }
    CHECK_EXIT(owner, 0);
    CHECK_EXIT(waiter, 0);
    CHECK_EQ(entries[0].word, FUTEX_OWNER_DIED | FUTEX_WAITERS);
}

CASE(a_list_that_lies_does_no_harm) {
    // Endless, out of bounds, unaligned: the process just dies.
    for (int i = 0; i < 4; i++) {
        prepare();
        pid_t p = CHECK_OK(fork());
        if (p == 0) {
            hold(2);
            if (i == 0) entries[1].link.next = &entries[0].link;  // a circle
            if (i == 1) entries[0].link.next = (void *)16;
            if (i == 2) head->futex_offset = 0x7fffffffffff;
            if (i == 3) set_list((void *)16, sizeof *head);
            _exit(3);
        }
        CHECK_EXIT(p, 3);
    }
}

static pthread_mutex_t *mutex;
static void make_mutex(void) {
    pthread_mutexattr_t attr;
    mutex = CHECK_MAP(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    CHECK_EQ(pthread_mutex_init(mutex, &attr), 0);
}

CASE(libc_robust_mutex) {
    make_mutex();
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        pthread_mutex_lock(mutex);
        kill(getpid(), SIGKILL);
    }
    CHECK_KILLED(p, SIGKILL);
    CHECK_EQ(pthread_mutex_lock(mutex), EOWNERDEAD);
    CHECK_EQ(pthread_mutex_consistent(mutex), 0);
    CHECK_EQ(pthread_mutex_unlock(mutex), 0);
    CHECK_EQ(pthread_mutex_lock(mutex), 0);
    CHECK_EQ(pthread_mutex_unlock(mutex), 0);
    // Not made consistent: unusable for good.
    p = CHECK_OK(fork());
    if (p == 0) {
        pthread_mutex_lock(mutex);
        _exit(0);
    }
    CHECK_EXIT(p, 0);
    CHECK_EQ(pthread_mutex_lock(mutex), EOWNERDEAD);
    CHECK_EQ(pthread_mutex_unlock(mutex), 0);
    CHECK_EQ(pthread_mutex_lock(mutex), ENOTRECOVERABLE);
}

static void *lock_and_leave(void *arg) {
    pthread_mutex_lock(mutex);
    return arg;
}

CASE(libc_robust_mutex_of_a_thread) {
    make_mutex();
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, lock_and_leave, NULL), 0);
    CHECK_EQ(pthread_join(t, NULL), 0);
    CHECK_EQ(pthread_mutex_lock(mutex), EOWNERDEAD);
}

CASE(contended_deaths) {
    // Ten processes lock and die in turn; each successor learns of it.
    make_mutex();
    volatile unsigned *deaths = (unsigned *)(mutex + 4);
    pid_t p[10];
    for (int i = 0; i < 10; i++) {
        p[i] = CHECK_OK(fork());
        if (p[i] == 0) {
            int r = pthread_mutex_lock(mutex);
            if (r == EOWNERDEAD) {
                __atomic_add_fetch(deaths, 1, __ATOMIC_SEQ_CST);
                pthread_mutex_consistent(mutex);
            } else if (r) {
                _exit(1);
            }
            kill(getpid(), SIGKILL);
        }
    }
    for (int i = 0; i < 10; i++) CHECK_KILLED(p[i], SIGKILL);
    CHECK_EQ(*deaths, 9);
    CHECK_EQ(pthread_mutex_lock(mutex), EOWNERDEAD);
}

MAIN
