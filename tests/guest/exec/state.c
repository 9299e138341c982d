// build: static -pthread
// What an exec keeps and what it resets; exec from threads and after vfork.
#include "../check.h"
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>

static void sleep_ms(long ms) {
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&t, &t) == -1 && errno == EINTR) {}
}
static void handler(int sig CHECK_USED) {}
#define EXEC_SELF(...) execl(check_self, "x", __VA_ARGS__, NULL)
// Exec the helper in a child after `...` there; it must succeed.
#define AFTER_EXEC(HELPER_, ...)           \
    do {                                   \
        pid_t p_ = CHECK_OK(fork());       \
        if (p_ == 0) {                     \
            __VA_ARGS__;                   \
            EXEC_SELF(HELPER_);            \
            FAIL("exec");                  \
        }                                  \
        CHECK_EXIT(p_, 0);                 \
    } while (0)

HELPER(cloexec) {
    CHECK_OK(fcntl(50, F_GETFD));
    CHECK_ERRNO(fcntl(51, F_GETFD), EBADF);
    CHECK_OK(fcntl(52, F_GETFD));
    CHECK_ERRNO(fcntl(53, F_GETFD), EBADF);
    char c;
    CHECK_EQ(lseek(50, 0, SEEK_CUR), 3);
    CHECK_EQ(read(50, &c, 1), 1);
}

CASE(descriptors) {
    int fd = CHECK_OK(open(TMP("f"), O_RDWR | O_CREAT, 0600));
    CHECK_EQ(write(fd, "0123456789", 10), 10);
    CHECK_OK(lseek(fd, 3, SEEK_SET));
    AFTER_EXEC("@cloexec", {
        CHECK_OK(dup2(fd, 50));
        CHECK_OK(dup3(fd, 51, O_CLOEXEC));
        CHECK_OK(dup3(fd, 52, O_CLOEXEC));
        CHECK_OK(fcntl(52, F_SETFD, 0));
        CHECK_OK(dup2(fd, 53));
        CHECK_OK(fcntl(53, F_SETFD, FD_CLOEXEC));
    });
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), 4);
}

HELPER(signals) {
    struct sigaction act;
    CHECK_OK(sigaction(SIGUSR1, NULL, &act));
    CHECK(act.sa_handler == SIG_DFL);
    CHECK_EQ(act.sa_flags & SA_RESTART, 0);
    CHECK_OK(sigaction(SIGUSR2, NULL, &act));
    CHECK(act.sa_handler == SIG_IGN);
    CHECK_OK(sigaction(SIGCHLD, NULL, &act));
    CHECK(act.sa_handler == SIG_IGN);
    sigset_t set;
    CHECK_OK(sigprocmask(SIG_BLOCK, NULL, &set));
    CHECK_EQ(sigismember(&set, SIGTERM), 1);
    CHECK_EQ(sigismember(&set, SIGUSR1), 0);
    CHECK_OK(sigpending(&set));
    CHECK_EQ(sigismember(&set, SIGTERM), 1);
    stack_t ss;
    CHECK_OK(sigaltstack(NULL, &ss));
    CHECK_EQ(ss.ss_flags, SS_DISABLE);
    siginfo_t info;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGRTMIN);
    CHECK_EQ(sigwaitinfo(&set, &info), SIGTERM);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(sigwaitinfo(&set, &info), SIGRTMIN);
        CHECK_EQ(info.si_value.sival_int, i);
    }
}

CASE(signal_state) {
    AFTER_EXEC("@signals", {
        struct sigaction act = {.sa_handler = handler, .sa_flags = SA_RESTART};
        sigaction(SIGUSR1, &act, NULL);
        signal(SIGUSR2, SIG_IGN);
        signal(SIGCHLD, SIG_IGN);
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGTERM);
        sigaddset(&set, SIGRTMIN);
        sigprocmask(SIG_BLOCK, &set, NULL);
        raise(SIGTERM);
        for (int i = 0; i < 3; i++) CHECK_OK(sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = i}));
        static char alt[65536];
        stack_t ss = {.ss_sp = alt, .ss_size = sizeof alt};
        CHECK_OK(sigaltstack(&ss, NULL));
    });
}

HELPER(attributes) {
    char text[4096];
    CHECK_EQ(getpid(), atoi(getenv("PID")));
    CHECK_EQ(getppid(), atoi(getenv("PPID")));
    CHECK_EQ(syscall(SYS_gettid), getpid());
    CHECK_EQ(getpgrp(), getpid());
    CHECK_STR(getcwd(text, sizeof text), "/proc");
    CHECK_EQ(umask(0), 0123);
    struct rlimit l;
    CHECK_OK(getrlimit(RLIMIT_CORE, &l));
    CHECK_EQ(l.rlim_max, 4321);
    CHECK_EQ(getpriority(PRIO_PROCESS, 0), atoi(getenv("NICE")));
    CHECK_EQ(prctl(PR_GET_TIMERSLACK), 54321);
    CHECK_EQ(prctl(PR_GET_KEEPCAPS), 0);   // cleared
    CHECK_EQ(prctl(PR_GET_DUMPABLE), 1);   // set again
    int sig = 0;
    CHECK_OK(prctl(PR_GET_PDEATHSIG, &sig));
    CHECK_EQ(sig, SIGUSR1);                // kept, no set-id program being involved
    CHECK_OK(prctl(PR_GET_CHILD_SUBREAPER, &sig));
    CHECK_EQ(sig, 1);
    CHECK_OK(prctl(PR_GET_NAME, text));
    CHECK_EQ(strncmp(text, strrchr(check_self, '/') ? strrchr(check_self, '/') + 1 : "", 15) == 0 || check_self[1] == 'p', 1);
    CHECK_EQ(sched_getscheduler(0), SCHED_BATCH);
    CHECK_EQ(getuid(), atoi(getenv("UID_")));
}

CASE(process_attributes) {
    char text[64];
    AFTER_EXEC("@attributes", {
        CHECK_OK(setpgid(0, 0));
        CHECK_OK(chdir("/proc"));
        umask(0123);
        struct rlimit l = {0, 4321};
        CHECK_OK(setrlimit(RLIMIT_CORE, &l));
        CHECK_OK(setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + 1));
        CHECK_OK(prctl(PR_SET_TIMERSLACK, 54321));
        CHECK_OK(prctl(PR_SET_KEEPCAPS, 1));
        CHECK_OK(prctl(PR_SET_DUMPABLE, 0));
        CHECK_OK(prctl(PR_SET_PDEATHSIG, SIGUSR1));
        CHECK_OK(prctl(PR_SET_CHILD_SUBREAPER, 1));
        CHECK_OK(prctl(PR_SET_NAME, "other"));
        struct sched_param param = {0};
        CHECK_OK(sched_setscheduler(0, SCHED_BATCH, &param));
#define ENV(NAME, VALUE) (snprintf(text, sizeof text, "%d", (int)(VALUE)), setenv(NAME, text, 1))
        ENV("PID", getpid());
        ENV("PPID", getppid());
        ENV("NICE", getpriority(PRIO_PROCESS, 0));
        ENV("UID_", getuid());
    });
}

HELPER(memory) {
    // Nothing of the old image: the marked page has gone, and the break is new.
    int fds[2];
    CHECK_OK(pipe(fds));
    CHECK_ERRNO(write(fds[1], (void *)0x200000000000, 1), EFAULT);
    char text[4096] = "", *at;
    int fd = CHECK_OK(open("/proc/self/status", O_RDONLY));
    CHECK_GT(read(fd, text, sizeof text - 1), 0);
    CHECK((at = strstr(text, "\nVmLck:")) != NULL);
    CHECK_EQ(atol(at + 7), 0);
    CHECK((at = strstr(text, "\nThreads:")) != NULL);
    CHECK_EQ(atol(at + 9), 1);
}

static void *forever(void *arg) {
    for (;;) pause();
    return arg;
}

CASE(memory_and_threads_are_gone) {
    AFTER_EXEC("@memory", {
        CHECK_MAP(mmap((void *)0x200000000000, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0));
        CHECK_OK(mlock((void *)0x200000000000, 4096));
        for (int i = 0; i < 5; i++) {
            pthread_t t;
            CHECK_EQ(pthread_create(&t, NULL, forever, NULL), 0);
        }
    });
}

HELPER(same_pid) {
    CHECK_EQ(getpid(), atoi(argv[2]));
    CHECK_EQ(syscall(SYS_gettid), getpid());
    DIR *d = opendir("/proc/self/task");
    CHECK(d != NULL);
    int n = 0;
    for (struct dirent *e; (e = readdir(d));) n += e->d_name[0] != '.';
    CHECK_EQ(n, 1);
    // Room for threads again.
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, forever, NULL), 0);
}

static void *execs(void *arg) {
    char text[16];
    sleep_ms(20);
    snprintf(text, sizeof text, "%d", getpid());
    EXEC_SELF("@same_pid", text);
    FAIL("exec");
    return arg;
}

CASE(exec_from_a_thread_that_does_not_lead) {
    for (int i = 0; i < 10; i++) {
        pid_t p = CHECK_OK(fork());
        if (p == 0) {
            pthread_t t;
            for (int k = 0; k < 4; k++) pthread_create(&t, NULL, forever, NULL);
            pthread_create(&t, NULL, execs, NULL);
            for (;;) pause();
        }
        CHECK_EXIT(p, 0);
    }
}

CASE(exec_from_a_thread_with_a_dead_leader) {
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        pthread_t t;
        pthread_create(&t, NULL, execs, NULL);
        syscall(SYS_exit, 0);
    }
    CHECK_EXIT(p, 0);
}

static void *execs_too(void *arg) {
    char text[16];
    pthread_barrier_wait(arg);
    snprintf(text, sizeof text, "%d", getpid());
    EXEC_SELF("@same_pid", text);
    _exit(9);
}

static void threads_exec_at_once(int count) {
    // One wins; the others are killed like any siblings, and none comes back from its call.
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        static pthread_barrier_t b;
        pthread_barrier_init(&b, NULL, count);
        pthread_t t;
        for (int k = 1; k < count; k++) CHECK_EQ(pthread_create(&t, NULL, execs_too, &b), 0);
        execs_too(&b);
    }
    CHECK_EXIT(p, 0);
}

CASE(two_threads_exec_at_once) {
    for (int i = 0; i < 30; i++) threads_exec_at_once(2);
}

CASE(many_threads_exec_at_once) {
    for (int i = 0; i < 10; i++) threads_exec_at_once(8);
}

static void *exits(void *arg) {
    pthread_barrier_wait(arg);
    syscall(SYS_exit_group, 7);
    return arg;
}

CASE(exit_group_beside_exec) {
    // Whichever is first; an exec that has begun to end the others is not ended by them.
    for (int i = 0; i < 20; i++) {
        pid_t p = CHECK_OK(fork());
        if (p == 0) {
            static pthread_barrier_t b;
            pthread_barrier_init(&b, NULL, 2);
            pthread_t t;
            CHECK_EQ(pthread_create(&t, NULL, exits, &b), 0);
            execs_too(&b);
        }
        int status;
        CHECK_EQ(waitpid(p, &status, 0), p);
        CHECK(status == 0 || status == 7 << 8);
    }
}

HELPER(exit_with) { _exit(atoi(argv[2])); }

CASE(exec_after_vfork) {
    for (int i = 0; i < 20; i++) {
        char code[8];
        snprintf(code, sizeof code, "%d", i);
        volatile int before = 1;
        pid_t p = vfork();
        if (p == 0) {
            EXEC_SELF("@exit_with", code);
            _exit(99);
        }
        CHECK_EQ(before, 1);
        CHECK_EXIT(p, i);
    }
    // A failing exec leaves the child in the parent's memory.
    volatile int error = 0;
    pid_t p = vfork();
    if (p == 0) {
        execl("/no/such", "x", NULL);
        error = errno;
        _exit(3);
    }
    CHECK_EXIT(p, 3);
    CHECK_EQ(error, ENOENT);
}

CASE(vfork_parent_runs_on_once_the_child_has_execd) {
    int fds[2];
    CHECK_OK(pipe(fds));
    pid_t p = vfork();
    if (p == 0) {
        dup2(fds[0], 0);
        close(fds[1]);
        EXEC_SELF("@read_byte");
        _exit(99);
    }
    CHECK_EQ(waitpid(p, NULL, WNOHANG), 0);
    CHECK_EQ(write(fds[1], "x", 1), 1);
    CHECK_EXIT(p, 0);
}
HELPER(read_byte) {
    char c;
    CHECK_EQ(read(0, &c, 1), 1);
}

CASE(posix_spawn_like_programs) {
    for (int i = 0; i < 50; i++) {
        pid_t p = CHECK_OK(fork());
        if (p == 0) {
            EXEC_SELF("@exit_with", "17");
            _exit(99);
        }
        CHECK_EXIT(p, 17);
    }
}

HELPER(chain) {
    int n = atoi(argv[2]);
    char text[16];
    if (n == 0) _exit(23);
    snprintf(text, sizeof text, "%d", n - 1);
    execl(check_self, "x", "@chain", text, NULL);
    _exit(99);
}

CASE(chain_of_execs) {
    pid_t p = CHECK_OK(fork());
    if (p == 0) EXEC_SELF("@chain", "100");
    CHECK_EXIT(p, 23);
}

static char shared_stack[65536] __attribute__((aligned(16)));
static int bare_vm_child(void *arg CHECK_USED) {
    EXEC_SELF("@exit_with", "29");
    _exit(99);
}

CASE(exec_beside_a_process_that_shares_the_memory) {
    // CLONE_VM without CLONE_THREAD: the one that execs leaves, the other keeps the memory.
    volatile int word = 77;
    pid_t p = CHECK_OK(clone(bare_vm_child, shared_stack + sizeof shared_stack, CLONE_VM | SIGCHLD, NULL));
    CHECK_EXIT(p, 29);
    CHECK_EQ(word, 77);
    // The other way round: the parent execs while the child goes on.
    AFTER_EXEC("@wait_for_child", {
        extern int bare_vm_waiter(void *);
        CHECK_OK(clone(bare_vm_waiter, shared_stack + sizeof shared_stack, CLONE_VM | SIGCHLD, NULL));
    });
}
int bare_vm_waiter(void *arg CHECK_USED) {
    sleep_ms(60);
    for (int i = 0; i < 60000; i += 4096)
        if (shared_stack[i]) _exit(1);
    _exit(31);
}
HELPER(wait_for_child) {
    int status;
    CHECK_GT(wait(&status), 0);
    CHECK_EQ(status, 31 << 8);
}

static int files_child(void *arg CHECK_USED) {
    EXEC_SELF("@exit_with", "0");
    _exit(99);
}

CASE(exec_unshares_the_descriptors) {
    // A child with CLONE_FILES execs: its close-on-exec closes nothing of ours.
    int fd = CHECK_OK(open("/", O_RDONLY | O_CLOEXEC));
    pid_t p = CHECK_OK(clone(files_child, shared_stack + sizeof shared_stack, CLONE_FILES | CLONE_FS | SIGCHLD, NULL));
    CHECK_EXIT(p, 0);
    CHECK_OK(fcntl(fd, F_GETFD));
}

MAIN
