// build: static -pthread
// rt_sigprocmask: its errors and their order, delivery at the return of the very call, which thread takes a group's signal
// while masks change, and who inherits a mask.
#include "../check.h"
#include <pthread.h>
#include <sys/signalfd.h>
#include <ucontext.h>

#define SIZE 8  // of the kernel's sigset_t
#define BIT(sig) (1ul << ((sig)-1))

static long mask_call(int how, const void *set, void *old, unsigned long size) {
    return syscall(SYS_rt_sigprocmask, how, set, old, size);
}

static unsigned long blocked_now(void) {
    unsigned long set = ~0ul;
    CHECK_OK(mask_call(SIG_BLOCK, NULL, &set, SIZE));
    return set;
}

static void set_mask(unsigned long set) {
    CHECK_OK(mask_call(SIG_SETMASK, &set, NULL, SIZE));
}

static volatile sig_atomic_t handled;

static void note(int sig) {
    (void)sig;
    handled++;
}

static void handle(int sig) {
    struct sigaction action = {.sa_handler = note};
    CHECK_OK(sigaction(sig, &action, NULL));
}

// Two pages, the second one unmapped.
static char *edge(void) {
    char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK_MAP(p);
    CHECK_OK(munmap(p + 4096, 4096));
    return p + 4096;
}

CASE(errors_and_their_order) {
    unsigned long set = BIT(SIGUSR1), old = 77;
    // The size first, then the new set, then how, then the old set.
    CHECK_ERRNO(mask_call(SIG_BLOCK, &set, &old, 4), EINVAL);
    CHECK_ERRNO(mask_call(SIG_BLOCK, &set, &old, 16), EINVAL);
    CHECK_ERRNO(mask_call(SIG_BLOCK, (void *)1, &old, 0), EINVAL);
    CHECK_ERRNO(mask_call(99, (void *)1, &old, SIZE), EFAULT);
    CHECK_ERRNO(mask_call(99, (void *)-8, &old, SIZE), EFAULT);
    CHECK_ERRNO(mask_call(99, &set, (void *)1, SIZE), EINVAL);
    CHECK_ERRNO(mask_call(3, &set, &old, SIZE), EINVAL);
    CHECK_ERRNO(mask_call(-1, &set, &old, SIZE), EINVAL);
    CHECK_EQ(old, 77);
    CHECK_EQ(blocked_now(), 0);
    // Nobody asks how when there is no new set; how is 32 bits wide.
    CHECK_OK(mask_call(99, NULL, &old, SIZE));
    CHECK_EQ(old, 0);
    CHECK_OK(mask_call(99, NULL, NULL, SIZE));
    CHECK_OK(syscall(SYS_rt_sigprocmask, 1L << 32 | SIG_SETMASK, &set, NULL, SIZE));
    CHECK_EQ(blocked_now(), set);
}

CASE(a_bad_place_for_the_old_set_comes_too_late) {
    unsigned long set = BIT(SIGUSR1);
    CHECK_ERRNO(mask_call(SIG_BLOCK, &set, (void *)1, SIZE), EFAULT);
    CHECK_EQ(blocked_now(), BIT(SIGUSR1));
    set = BIT(SIGUSR2);
    char *end = edge();
    CHECK_ERRNO(mask_call(SIG_BLOCK, &set, end - 4, SIZE), EFAULT);
    CHECK_EQ(blocked_now(), BIT(SIGUSR1) | BIT(SIGUSR2));
    CHECK_ERRNO(mask_call(SIG_BLOCK, NULL, end - 4, SIZE), EFAULT);
    CHECK_ERRNO(mask_call(SIG_SETMASK, end - 4, NULL, SIZE), EFAULT);
    CHECK_OK(mask_call(SIG_UNBLOCK, &set, end - 8, SIZE));
    CHECK_EQ(blocked_now(), BIT(SIGUSR1));
    // Read only.
    CHECK_OK(mprotect(end - 4096, 4096, PROT_READ));
    set = BIT(SIGHUP);
    CHECK_ERRNO(mask_call(SIG_SETMASK, &set, end - 8, SIZE), EFAULT);
    CHECK_EQ(blocked_now(), BIT(SIGHUP));
}

CASE(the_three_ways) {
    unsigned long set = BIT(SIGUSR1) | BIT(40), old;
    CHECK_OK(mask_call(SIG_BLOCK, &set, &old, SIZE));
    CHECK_EQ(old, 0);
    set = BIT(SIGHUP) | BIT(64);
    CHECK_OK(mask_call(SIG_BLOCK, &set, &old, SIZE));
    CHECK_EQ(old, BIT(SIGUSR1) | BIT(40));
    set = BIT(40) | BIT(SIGTERM);
    CHECK_OK(mask_call(SIG_UNBLOCK, &set, &old, SIZE));
    CHECK_EQ(old, BIT(SIGUSR1) | BIT(40) | BIT(SIGHUP) | BIT(64));
    CHECK_EQ(blocked_now(), BIT(SIGUSR1) | BIT(SIGHUP) | BIT(64));
    // One place for both.
    set = BIT(SIGINT);
    CHECK_OK(mask_call(SIG_SETMASK, &set, &set, SIZE));
    CHECK_EQ(set, BIT(SIGUSR1) | BIT(SIGHUP) | BIT(64));
    CHECK_EQ(blocked_now(), BIT(SIGINT));
    // These two never.
    set = ~0ul;
    CHECK_OK(mask_call(SIG_SETMASK, &set, NULL, SIZE));
    CHECK_EQ(blocked_now(), ~(BIT(SIGKILL) | BIT(SIGSTOP)));
}

CASE(registers_stay) {
    unsigned long set = BIT(SIGUSR1), old = 0;
    for (int i = 0; i < 3; i++) {
        long result;
        register unsigned long di __asm__("rdi") = SIG_BLOCK, si __asm__("rsi") = (long)&set, dx __asm__("rdx") = (long)&old,
                                  r10 __asm__("r10") = 8, r8 __asm__("r8") = 0x8888, r9 __asm__("r9") = 0x9999,
                                  r12 __asm__("r12") = 0x1212, r15 __asm__("r15") = 0x1515;
        __asm__ volatile("mov $14, %%eax\n\tsyscall"
                         : "=a"(result), "+r"(di), "+r"(si), "+r"(dx), "+r"(r10), "+r"(r8), "+r"(r9), "+r"(r12), "+r"(r15)
                         :
                         : "rcx", "r11", "memory");
        unsigned long seen[] = {di, si, dx, r10, r8, r9, r12, r15};
        CHECK_EQ(result, 0);
        CHECK_EQ(seen[0], SIG_BLOCK);
        CHECK(seen[1] == (unsigned long)&set && seen[2] == (unsigned long)&old);
        CHECK(seen[3] == 8 && seen[4] == 0x8888 && seen[5] == 0x9999 && seen[6] == 0x1212 && seen[7] == 0x1515);
    }
}

CASE(delivered_at_the_return_of_the_call) {
    unsigned long set = BIT(SIGUSR1), none = 0, old = 0;
    handle(SIGUSR1);
    for (int i = 1; i <= 200; i++) {
        CHECK_OK(mask_call(SIG_BLOCK, &set, NULL, SIZE));
        if (i & 1)
            CHECK_OK(kill(getpid(), SIGUSR1));
        else
            CHECK_OK(syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR1));
        getpid();
        CHECK_EQ(handled, i - 1);
        long result = i % 3 ? mask_call(SIG_UNBLOCK, &set, &old, SIZE) : mask_call(SIG_SETMASK, &none, &old, SIZE);
        int at_once = handled;
        CHECK_EQ(result, 0);
        CHECK_EQ(at_once, i);
        CHECK_EQ(old, set);
    }
    CHECK_EQ(blocked_now(), 0);
}

static int order[64], ordered;

static void put_down(int sig, siginfo_t *info, void *context) {
    (void)sig, (void)context;
    order[ordered++ & 63] = info->si_value.sival_int;
}

CASE(queued_ones_come_all_at_once_and_in_order) {
    struct sigaction action = {.sa_sigaction = put_down, .sa_flags = SA_SIGINFO | SA_NODEFER};
    CHECK_OK(sigaction(SIGRTMIN + 2, &action, NULL));
    action.sa_flags = SA_SIGINFO;
    CHECK_OK(sigaction(SIGRTMIN + 1, &action, NULL));
    unsigned long set = BIT(SIGRTMIN + 1) | BIT(SIGRTMIN + 2);
    CHECK_OK(mask_call(SIG_BLOCK, &set, NULL, SIZE));
    for (int i = 0; i < 10; i++) CHECK_OK(sigqueue(getpid(), SIGRTMIN + 1, (union sigval){.sival_int = i}));
    CHECK_EQ(ordered, 0);
    CHECK_OK(mask_call(SIG_UNBLOCK, &set, NULL, SIZE));
    CHECK_EQ(ordered, 10);
    for (int i = 0; i < 10; i++) CHECK_EQ(order[i], i);
}

static unsigned long in_handler, in_frame;
static volatile int replaces;

static void look_at_masks(int sig, siginfo_t *info, void *context) {
    (void)sig, (void)info;
    ucontext_t *uc = context;
    in_handler = blocked_now();
    memcpy(&in_frame, &uc->uc_sigmask, SIZE);
    // Lost when the handler returns.
    unsigned long more = BIT(SIGTERM), all = ~0ul;
    CHECK_OK(mask_call(SIG_BLOCK, &more, NULL, SIZE));
    if (replaces) memcpy(&uc->uc_sigmask, &all, SIZE);
}

CASE(a_handler_sees_the_mask_and_may_change_what_comes_back) {
    struct sigaction action = {.sa_flags = SA_SIGINFO, .sa_sigaction = look_at_masks};
    unsigned long sa_mask = BIT(SIGINT);
    memcpy(&action.sa_mask, &sa_mask, SIZE);
    CHECK_OK(sigaction(SIGUSR1, &action, NULL));
    set_mask(BIT(SIGHUP));
    CHECK_OK(kill(getpid(), SIGUSR1));
    CHECK_EQ(in_handler, BIT(SIGHUP) | BIT(SIGINT) | BIT(SIGUSR1));
    CHECK_EQ(in_frame, BIT(SIGHUP));
    CHECK_EQ(blocked_now(), BIT(SIGHUP));
    replaces = 1;
    CHECK_OK(kill(getpid(), SIGUSR1));
    CHECK_EQ(blocked_now(), ~(BIT(SIGKILL) | BIT(SIGSTOP)));
}

CASE(waits_with_other_masks) {
    unsigned long all = ~0ul, none = 0;
    handle(SIGUSR1);
    set_mask(BIT(SIGUSR1) | BIT(SIGHUP));
    CHECK_OK(kill(getpid(), SIGUSR1));
    CHECK_ERRNO(syscall(SYS_rt_sigsuspend, &none, SIZE), EINTR);
    CHECK_EQ(handled, 1);
    CHECK_EQ(blocked_now(), BIT(SIGUSR1) | BIT(SIGHUP));
    CHECK_OK(kill(getpid(), SIGUSR1));
    struct timespec zero = {0, 0};
    CHECK_EQ(syscall(SYS_ppoll, NULL, 0, &zero, &all, SIZE), 0);
    CHECK_EQ(handled, 1);
    CHECK_EQ(blocked_now(), BIT(SIGUSR1) | BIT(SIGHUP));
    CHECK_ERRNO(syscall(SYS_ppoll, NULL, 0, NULL, &none, SIZE), EINTR);
    CHECK_EQ(handled, 2);
    CHECK_EQ(blocked_now(), BIT(SIGUSR1) | BIT(SIGHUP));
}

CASE(waited_for_and_read_while_blocked) {
    unsigned long set = BIT(SIGUSR1) | BIT(SIGRTMIN + 1);
    set_mask(set);
    CHECK_OK(kill(getpid(), SIGUSR1));
    siginfo_t info;
    CHECK_EQ(syscall(SYS_rt_sigtimedwait, &set, &info, NULL, SIZE), SIGUSR1);
    CHECK_EQ(blocked_now(), set);
    int fd = CHECK_OK(syscall(SYS_signalfd4, -1, &set, SIZE, SFD_NONBLOCK));
    struct signalfd_siginfo read_info;
    CHECK_ERRNO(read(fd, &read_info, sizeof read_info), EAGAIN);
    CHECK_OK(sigqueue(getpid(), SIGRTMIN + 1, (union sigval){.sival_int = 5}));
    CHECK_EQ(read(fd, &read_info, sizeof read_info), sizeof read_info);
    CHECK_EQ(read_info.ssi_int, 5);
    handle(SIGUSR1);
    handle(SIGRTMIN + 1);
    set_mask(0);
    CHECK_EQ(handled, 0);
    // Could not be given away: it still waits.
    set_mask(set);
    CHECK_OK(kill(getpid(), SIGUSR1));
    CHECK_ERRNO(read(fd, (void *)8, sizeof read_info), EFAULT);
    set_mask(0);
    CHECK_LE(handled, 1);
}

static unsigned long status_mask(const char *path, const char *name) {
    char text[8192];
    int fd = CHECK_OK(open(path, O_RDONLY));
    long len = CHECK_OK(read(fd, text, sizeof text - 1));
    text[len] = 0;
    close(fd);
    char *at = strstr(text, name);
    CHECK(at != NULL);
    return strtoul(at + strlen(name), NULL, 16);
}

CASE(others_see_it) {
    set_mask(BIT(SIGUSR1) | BIT(SIGRTMIN + 3));
    CHECK_EQ(status_mask("/proc/self/status", "SigBlk:\t"), BIT(SIGUSR1) | BIT(SIGRTMIN + 3));
    int ready[2];
    CHECK_OK(pipe(ready));
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        set_mask(BIT(SIGHUP));
        CHECK_EQ(write(ready[1], "", 1), 1);
        for (;;) getppid();
    }
    CHECK_EQ(read(ready[0], &(char){0}, 1), 1);
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    CHECK_EQ(status_mask(path, "SigBlk:\t"), BIT(SIGHUP));
    CHECK_OK(kill(pid, SIGHUP));
    CHECK_EQ(status_mask(path, "ShdPnd:\t"), BIT(SIGHUP));
    CHECK_OK(kill(pid, SIGKILL));
    CHECK_KILLED(pid, SIGKILL);
}

HELPER(tell_mask) {
    CHECK_EQ(argc, 3);
    if (blocked_now() != strtoul(argv[2], NULL, 16)) _exit(1);
}

static void *tell(void *arg) {
    *(unsigned long *)arg = blocked_now();
    set_mask(BIT(SIGTERM));
    return NULL;
}

CASE(inherited_by_all) {
    unsigned long set = BIT(SIGUSR1) | BIT(SIGRTMAX), seen = 0;
    set_mask(set);
    IN_CHILD({
        CHECK_EQ(blocked_now(), set);
        set_mask(0);
    });
    CHECK_EQ(blocked_now(), set);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, tell, &seen), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(seen, set);
    CHECK_EQ(blocked_now(), set);
    char text[32];
    snprintf(text, sizeof text, "%lx", set);
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) execl(check_self, check_self, "@tell_mask", text, NULL);
    CHECK_EXIT(pid, 0);
    pid = vfork();
    if (pid == 0) {
        unsigned long own = BIT(SIGHUP);
        mask_call(SIG_BLOCK, &own, NULL, SIZE);
        execl(check_self, check_self, "@tell_mask", text, NULL);
        _exit(9);
    }
    CHECK_EXIT(pid, 1);
    // A vfork child's is its own.
    CHECK_EQ(blocked_now(), set);
    // What waits goes through an exec, and to no child.
    CHECK_OK(kill(getpid(), SIGUSR1));
    IN_CHILD({ CHECK_EQ(status_mask("/proc/self/status", "ShdPnd:\t"), 0); });
}

static pthread_barrier_t both;
static volatile int over;

static void *blocks_it(void *arg) {
    set_mask(BIT(SIGUSR1));
    pthread_barrier_wait(&both);
    pthread_barrier_wait(&both);
    // Waits for the group: taken by who unblocks it first.
    set_mask(0);
    *(int *)arg = handled;
    return NULL;
}

CASE(a_groups_signal_waits_for_any_thread) {
    int seen = 0;
    handle(SIGUSR1);
    set_mask(BIT(SIGUSR1));
    pthread_barrier_init(&both, NULL, 2);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, blocks_it, &seen), 0);
    pthread_barrier_wait(&both);
    CHECK_OK(kill(getpid(), SIGUSR1));
    CHECK_EQ(handled, 0);
    pthread_barrier_wait(&both);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(seen, 1);
    set_mask(0);
    CHECK_EQ(handled, 1);
}

// Blocks and unblocks all the time.
static void *changes_its_mind(void *arg) {
    unsigned long set = BIT(SIGRTMIN + 1);
    while (!over) {
        CHECK_OK(mask_call(SIG_BLOCK, &set, NULL, SIZE));
        CHECK_OK(mask_call(SIG_UNBLOCK, &set, NULL, SIZE));
    }
    return arg;
}

static void count(int sig) {
    (void)sig;
    __atomic_add_fetch(&ordered, 1, __ATOMIC_SEQ_CST);
}

// Whoever is chosen may block the signal by then: another takes it, and none is lost or taken twice.
CASE(threads_that_change_their_minds_lose_no_signal) {
    struct sigaction action = {.sa_handler = count};
    CHECK_OK(sigaction(SIGRTMIN + 1, &action, NULL));
    set_mask(BIT(SIGRTMIN + 1));
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) CHECK_EQ(pthread_create(&threads[i], NULL, changes_its_mind, NULL), 0);
    int sent;
    for (sent = 0; sent < 300; sent++) {
        CHECK_OK(sigqueue(getpid(), SIGRTMIN + 1, (union sigval){.sival_int = sent}));
        if (sent % 16 == 0)
            while (__atomic_load_n(&ordered, __ATOMIC_SEQ_CST) <= sent) sched_yield();
    }
    while (__atomic_load_n(&ordered, __ATOMIC_SEQ_CST) < sent) sched_yield();
    over = 1;
    for (int i = 0; i < 3; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_EQ(ordered, sent);
}

// Two hand a signal to each other by what they block; at each moment one wants it.
static void *wants_it_in_turn(void *arg) {
    unsigned long set = BIT(SIGRTMIN + 1);
    while (!over) {
        CHECK_OK(mask_call(SIG_UNBLOCK, &set, NULL, SIZE));
        pthread_barrier_wait(&both);
        pthread_barrier_wait(&both);
        CHECK_OK(mask_call(SIG_BLOCK, &set, NULL, SIZE));
        pthread_barrier_wait(&both);
        pthread_barrier_wait(&both);
    }
    return arg;
}

CASE(one_that_blocks_leaves_the_signal_to_another) {
    struct sigaction action = {.sa_handler = count};
    CHECK_OK(sigaction(SIGRTMIN + 1, &action, NULL));
    unsigned long set = BIT(SIGRTMIN + 1);
    set_mask(set);
    pthread_barrier_init(&both, NULL, 2);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, wants_it_in_turn, NULL), 0);
    for (int i = 0; i < 50; i++) {
        pthread_barrier_wait(&both);
        CHECK_OK(kill(getpid(), SIGRTMIN + 1));
        while (__atomic_load_n(&ordered, __ATOMIC_SEQ_CST) < 2 * i + 1) sched_yield();
        pthread_barrier_wait(&both);
        CHECK_OK(mask_call(SIG_UNBLOCK, &set, NULL, SIZE));
        pthread_barrier_wait(&both);
        CHECK_OK(kill(getpid(), SIGRTMIN + 1));
        while (__atomic_load_n(&ordered, __ATOMIC_SEQ_CST) < 2 * i + 2) sched_yield();
        CHECK_OK(mask_call(SIG_BLOCK, &set, NULL, SIZE));
        if (i == 49) over = 1;
        pthread_barrier_wait(&both);
    }
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

MAIN
