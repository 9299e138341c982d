// build: static -pthread
// fork, vfork, exit statuses, forks from threads, deep and wide trees, and who ends when a thread exits.
#include "clone.h"
#include <pthread.h>

CASE(ids) {
    pid_t me = pid();
    CHECK_EQ(me, getpid());
    CHECK_EQ(tid(), me);
    pid_t child = CHECK_OK(fork());
    if (child == 0) {
        CHECK_NE(pid(), me);
        CHECK_EQ(ppid(), me);
        CHECK_EQ(tid(), pid());
        CHECK_EQ(getpgid(0), getpgid(me));
        CHECK_EQ(getsid(0), getsid(me));
        _exit(0);
    }
    CHECK_GT(child, 1);
    CHECK_EXIT(child, 0);
}

CASE(exit_statuses) {
    static const int codes[] = {0, 1, 42, 127, 128, 255, 256, 257, -1, 0x1234};
    for (unsigned i = 0; i < sizeof codes / sizeof *codes; i++) {
        pid_t p = CHECK_OK(fork());
        if (p == 0) {
            if (i & 1) syscall(SYS_exit, codes[i]);
            syscall(SYS_exit_group, codes[i]);
        }
        int status = 0;
        CHECK_EQ(waitpid(p, &status, 0), p);
        CHECK_EQ(status, (codes[i] & 255) << 8);
        CHECK(WIFEXITED(status));
        CHECK_EQ(WEXITSTATUS(status), codes[i] & 255);
    }
}

CASE(killed_statuses) {
    for (int sig = 1; sig < 65; sig++) {
        if (sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU || sig == SIGCHLD || sig == SIGCONT ||
            sig == SIGURG || sig == SIGWINCH || sig == 32 || sig == 33)
            continue;
        pid_t p = CHECK_OK(fork());
        if (p == 0) {
            signal(sig, SIG_DFL);
            kill(pid(), sig);
            _exit(0);
        }
        CHECK_KILLED(p, sig);
    }
}

CASE(memory_and_offsets_after_fork) {
    static int word = 1;
    int fd = CHECK_OK(open(TMP("f"), O_RDWR | O_CREAT, 0600)), local = 1;
    CHECK_EQ(write(fd, "0123456789", 10), 10);
    CHECK_OK(lseek(fd, 2, SEEK_SET));
    IN_CHILD({
        word = local = 2;
        char c;
        CHECK_EQ(read(fd, &c, 1), 1);
        CHECK_EQ(c, '2');
        CHECK_OK(close(fd));
    });
    CHECK_EQ(word + local, 2);
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), 3);  // the offset is the description's
}

CASE(vfork_suspends_the_parent_and_shares_memory) {
    volatile int shared = 0;
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    pid_t p = vfork();
    if (p == 0) {
        struct timespec t = {0, 100000000};
        syscall(SYS_nanosleep, &t, NULL);
        shared = 5;
        _exit(7);
    }
    clock_gettime(CLOCK_MONOTONIC, &b);
    CHECK_GT(p, 0);
    CHECK_EQ(shared, 5);
    CHECK_GE((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000, 95);
    CHECK_EXIT(p, 7);
}

CASE(vfork_as_often_as_one_likes) {
    // More children, one after the other, than a process may have threads.
    for (int i = 0; i < 1500; i++) {
        pid_t p = vfork();
        if (p == 0) _exit(i & 0xff);
        CHECK_GT(p, 0);
        CHECK_EXIT(p, i & 0xff);
    }
}

CASE(vfork_child_killed) {
    pid_t p = vfork();
    if (p == 0) {
        kill(syscall(SYS_getpid), SIGKILL);
        _exit(0);
    }
    CHECK_KILLED(p, SIGKILL);
}

CASE(vfork_child_has_own_descriptors_and_signals) {
    int fd = CHECK_OK(open("/", O_RDONLY));
    pid_t p = vfork();
    if (p == 0) {
        close(fd);
        chdir("/");
        _exit(0);
    }
    CHECK_EXIT(p, 0);
    CHECK_OK(fcntl(fd, F_GETFD));
}

CASE(vfork_does_not_stop_other_threads) {
    // The parent's other threads run on: one of them lets the child go.
    static int fds[2];
    CHECK_OK(pipe(fds));
    pthread_t t;
    extern void *let_go(void *);
    CHECK_EQ(pthread_create(&t, NULL, let_go, fds), 0);
    pid_t p = vfork();
    if (p == 0) {
        char c;
        _exit(read(fds[0], &c, 1) == 1 ? 3 : 4);
    }
    CHECK_EXIT(p, 3);
    CHECK_EQ(pthread_join(t, NULL), 0);
}
void *let_go(void *arg) {
    sleep_ms(50);
    CHECK_EQ(write(((int *)arg)[1], "x", 1), 1);
    return NULL;
}

CASE(fork_leaves_pending_signals_and_alarms_behind) {
    sigset_t set, pending;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGALRM);
    CHECK_OK(sigprocmask(SIG_BLOCK, &set, NULL));
    raise(SIGUSR1);
    alarm(100);
    IN_CHILD({
        CHECK_OK(sigpending(&pending));
        CHECK_EQ(sigismember(&pending, SIGUSR1), 0);
        CHECK_EQ(alarm(0), 0);
        sigset_t mask;
        sigprocmask(SIG_BLOCK, NULL, &mask);
        CHECK_EQ(sigismember(&mask, SIGUSR1), 1);  // the mask is inherited
    });
    CHECK_OK(sigpending(&pending));
    CHECK_EQ(sigismember(&pending, SIGUSR1), 1);
    CHECK_GT(alarm(0), 90);
}

static int tree(int depth) {
    // A binary tree of processes; the number of leaves comes back as the exit status.
    if (depth == 0) return 1;
    pid_t p[2];
    int sum = 0;
    for (int i = 0; i < 2; i++) {
        p[i] = fork();
        if (p[i] == -1) _exit(200);
        if (p[i] == 0) _exit(tree(depth - 1));
    }
    for (int i = 0; i < 2; i++) {
        int status;
        if (waitpid(p[i], &status, 0) != p[i] || !WIFEXITED(status)) _exit(201);
        sum += WEXITSTATUS(status);
    }
    return sum;
}

CASE(tree_of_processes) { CHECK_EQ(tree(6), 64); }

CASE(chain_of_processes) {
    // 60 generations, each waiting for the next.
    int depth = 0;
    pid_t p = 0;
    while (depth < 60 && (p = CHECK_OK(fork())) == 0) depth++;
    if (depth == 60) _exit(60);
    int status;
    CHECK_EQ(waitpid(p, &status, 0), p);
    CHECK_EQ(WEXITSTATUS(status), 60);
    if (depth) _exit(60);
}

CASE(many_children_at_once) {
    static pid_t p[100];
    int go[2];
    CHECK_OK(pipe(go));
    for (int i = 0; i < 100; i++) {
        p[i] = CHECK_OK(fork());
        if (p[i] == 0) {
            char c;
            close(go[1]);
            if (read(go[0], &c, 1) != 0) _exit(255);  // end of file when the parent closes
            _exit(i);
        }
    }
    close(go[1]);
    for (int i = 99; i >= 0; i--) CHECK_EXIT(p[i], i);
    CHECK_ERRNO(wait(NULL), ECHILD);
}

CASE(forks_one_after_another) {
    for (int i = 0; i < 300; i++) {
        pid_t p = CHECK_OK(fork());
        if (p == 0) _exit(i & 127);
        CHECK_EXIT(p, i & 127);
    }
}

static void *fork_in_thread(void *arg) {
    for (int i = 0; i < 10; i++) {
        pid_t p = CHECK_OK(fork());
        if (p == 0) {
            // One thread only, and it is the leader.
            CHECK_EQ(pid(), tid());
            _exit((long)arg);
        }
        CHECK_EXIT(p, (long)arg);
    }
    return NULL;
}

CASE(fork_from_threads) {
    pthread_t t[8];
    for (long i = 0; i < 8; i++) CHECK_EQ(pthread_create(&t[i], NULL, fork_in_thread, (void *)(i + 1)), 0);
    for (int i = 0; i < 8; i++) CHECK_EQ(pthread_join(t[i], NULL), 0);
}

static void *wait_for_siblings_child(void *arg) {
    CHECK_EXIT(*(pid_t *)arg, 9);  // children belong to the process, not to the thread
    return NULL;
}

CASE(any_thread_may_wait) {
    pid_t p = CHECK_OK(fork());
    if (p == 0) _exit(9);
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, wait_for_siblings_child, &p), 0);
    CHECK_EQ(pthread_join(t, NULL), 0);
}

static void *just_wait(void *arg) {
    for (;;) pause();
    return arg;
}
static void *end_group(void *arg) {
    sleep_ms(30);
    syscall(SYS_exit_group, (long)arg);
    return NULL;
}

CASE(exit_group_from_a_thread) {
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        pthread_t t;
        for (int i = 0; i < 4; i++) pthread_create(&t, NULL, just_wait, NULL);
        pthread_create(&t, NULL, end_group, (void *)33);
        for (;;) pause();
    }
    CHECK_EXIT(p, 33);
}

CASE(leader_exits_first) {
    // The process lives on as a zombie leader until its last thread ends; whose status counts is the last exit_group's.
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        pthread_t t;
        pthread_create(&t, NULL, end_group, (void *)44);
        syscall(SYS_exit, 5);
    }
    CHECK_EQ(waitpid(p, NULL, WNOHANG), 0);
    CHECK_EXIT(p, 44);
    // All threads by plain exit: the last one's code (since 5.19; synchronize_group_exit).
    p = CHECK_OK(fork());
    if (p == 0) {
        pthread_t t;
        extern void *plain_exit(void *);
        pthread_create(&t, NULL, plain_exit, NULL);
        syscall(SYS_exit, 5);
    }
    CHECK_EXIT(p, 6);
}
void *plain_exit(void *arg) {
    sleep_ms(30);
    syscall(SYS_exit, 6);
    return arg;
}

CASE(signal_kills_all_threads) {
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        pthread_t t;
        for (int i = 0; i < 5; i++) pthread_create(&t, NULL, just_wait, NULL);
        syscall(SYS_exit, 0);  // even with a dead leader
    }
    sleep_ms(30);
    CHECK_OK(kill(p, SIGTERM));
    CHECK_KILLED(p, SIGTERM);
}

MAIN
