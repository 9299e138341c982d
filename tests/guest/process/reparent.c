// build: static -pthread
// Orphans, subreapers, zombies, parent-death signals.
#include "clone.h"
#include <pthread.h>
#include <sys/prctl.h>

CASE(zombie_is_visible_until_reaped) {
    pid_t p = CHECK_OK(fork());
    if (p == 0) _exit(0);
    wait_for_state(p, 'Z');
    CHECK_OK(kill(p, 0));
    CHECK_OK(kill(p, SIGKILL));  // no effect, no error
    CHECK_EQ(stat_field(p, 4), pid());
    char path[64], text[64];
    snprintf(path, sizeof path, "/proc/%d/cmdline", p);
    int fd = CHECK_OK(open(path, O_RDONLY));
    CHECK_EQ(read(fd, text, sizeof text), 0);
    CHECK_EQ(getpgid(p), getpgrp());
    CHECK_EXIT(p, 0);
    CHECK_ERRNO(kill(p, 0), ESRCH);
    CHECK_ERRNO(getpgid(p), ESRCH);
    CHECK_ERRNO(open(path, O_RDONLY), ENOENT);
}

CASE(zombie_has_no_memory_or_files) {
    int fds[2];
    CHECK_OK(pipe(fds));
    pid_t p = CHECK_OK(fork());
    if (p == 0) _exit(0);
    wait_for_state(p, 'Z');
    CHECK_EQ(stat_field(p, 23), 0);  // vsize
    CHECK_OK(close(fds[1]));
    char c;
    CHECK_EQ(read(fds[0], &c, 1), 0);  // its copy of the write end is closed
    CHECK_EXIT(p, 0);
}

// A grandchild whose parent has exited; it runs `body` then. Its pid comes back.
static pid_t orphan(void (*body)(pid_t was)) {
    int fds[2];
    CHECK_OK(pipe(fds));
    pid_t p = CHECK_OK(fork()), q;
    if (p == 0) {
        pid_t was = pid();
        q = CHECK_OK(fork());
        if (q == 0) {
            for (int i = 0; i < 1000 && ppid() == was; i++) sleep_ms(2);
            body(was);
            _exit(0);
        }
        CHECK_EQ(write(fds[1], &q, sizeof q), sizeof q);
        _exit(0);
    }
    CHECK_EXIT(p, 0);
    CHECK_EQ(read(fds[0], &q, sizeof q), sizeof q);
    close(fds[0]);
    close(fds[1]);
    return q;
}

static pid_t expected_parent;
static void check_parent(pid_t was CHECK_USED) {
    if (expected_parent) CHECK_EQ(ppid(), expected_parent);
    CHECK_NE(ppid(), was);
    _exit(6);
}

CASE(orphans_go_to_an_ancestor) {
    // To init, or to the nearest subreaper: not to us.
    pid_t q = orphan(check_parent);
    CHECK_ERRNO(waitpid(q, NULL, 0), ECHILD);
    for (int i = 0; i < 1000 && kill(q, 0) == 0 && stat_field(q, 3) != 'Z'; i++) sleep_ms(2);
}

CASE(subreaper_gets_orphans) {
    int got = -1;
    CHECK_OK(prctl(PR_GET_CHILD_SUBREAPER, &got));
    CHECK_EQ(got, 0);
    CHECK_OK(prctl(PR_SET_CHILD_SUBREAPER, 1));
    CHECK_OK(prctl(PR_GET_CHILD_SUBREAPER, &got));
    CHECK_EQ(got, 1);
    expected_parent = pid();
    pid_t q = orphan(check_parent);
    CHECK_EXIT(q, 6);
    // The attribute is not inherited.
    IN_CHILD({
        int v = -1;
        CHECK_OK(prctl(PR_GET_CHILD_SUBREAPER, &v));
        CHECK_EQ(v, 0);
    });
    CHECK_OK(prctl(PR_SET_CHILD_SUBREAPER, 0));
    CHECK_OK(prctl(PR_GET_CHILD_SUBREAPER, &got));
    CHECK_EQ(got, 0);
}

static volatile int chlds;
static void on_chld(int sig CHECK_USED) { chlds++; }

CASE(subreaper_gets_dead_orphans_too) {
    CHECK_OK(prctl(PR_SET_CHILD_SUBREAPER, 1));
    signal(SIGCHLD, on_chld);
    int fds[2], status;
    CHECK_OK(pipe(fds));
    pid_t p = CHECK_OK(fork()), q;
    if (p == 0) {
        q = CHECK_OK(fork());
        if (q == 0) _exit(9);
        wait_for_state(q, 'Z');
        CHECK_EQ(write(fds[1], &q, sizeof q), sizeof q);
        _exit(1);  // leaves a zombie behind
    }
    CHECK_EQ(read(fds[0], &q, sizeof q), sizeof q);
    CHECK_EXIT(p, 1);
    CHECK_EQ(waitpid(q, &status, 0), q);
    CHECK_EQ(status, 0x900);
    CHECK_GE(chlds, 1);
}

CASE(nearest_subreaper_wins) {
    CHECK_OK(prctl(PR_SET_CHILD_SUBREAPER, 1));
    IN_CHILD({
        CHECK_OK(prctl(PR_SET_CHILD_SUBREAPER, 1));
        expected_parent = pid();
        CHECK_EXIT(orphan(check_parent), 6);
    });
    CHECK_ERRNO(wait(NULL), ECHILD);
}

static void *exit_thread(void *arg) {
    // This thread's child goes to another thread of the process when the thread ends.
    *(pid_t *)arg = CHECK_OK(fork());
    if (*(pid_t *)arg == 0) {
        pid_t parent = ppid();
        sleep_ms(60);
        _exit(ppid() == parent ? 3 : 4);
    }
    return NULL;
}

CASE(a_threads_children_stay_in_the_process) {
    pthread_t t;
    pid_t p;
    CHECK_EQ(pthread_create(&t, NULL, exit_thread, &p), 0);
    CHECK_EQ(pthread_join(t, NULL), 0);
    CHECK_EXIT(p, 3);
}

CASE(orphan_of_a_killed_parent) {
    CHECK_OK(prctl(PR_SET_CHILD_SUBREAPER, 1));
    int fds[2];
    CHECK_OK(pipe(fds));
    pid_t p = CHECK_OK(fork()), q;
    if (p == 0) {
        pid_t was = pid();
        q = CHECK_OK(fork());
        if (q == 0) {
            for (int i = 0; i < 1000 && ppid() == was; i++) sleep_ms(2);
            _exit(ppid() == was ? 1 : 2);
        }
        CHECK_EQ(write(fds[1], &q, sizeof q), sizeof q);
        for (;;) pause();
    }
    CHECK_EQ(read(fds[0], &q, sizeof q), sizeof q);
    CHECK_OK(kill(p, SIGKILL));
    CHECK_KILLED(p, SIGKILL);
    CHECK_EXIT(q, 2);
}

CASE(pdeathsig_is_sent) {
    CHECK_OK(prctl(PR_SET_CHILD_SUBREAPER, 1));
    int fds[2], status;
    CHECK_OK(pipe(fds));
    pid_t p = CHECK_OK(fork()), q;
    if (p == 0) {
        q = CHECK_OK(fork());
        if (q == 0) {
            int sig = 0;
            CHECK_OK(prctl(PR_SET_PDEATHSIG, SIGUSR2));
            CHECK_OK(prctl(PR_GET_PDEATHSIG, &sig));
            CHECK_EQ(sig, SIGUSR2);
            pid_t me = pid();
            CHECK_EQ(write(fds[1], &me, sizeof me), sizeof me);
            for (;;) pause();
        }
        for (;;) pause();
    }
    CHECK_EQ(read(fds[0], &q, sizeof q), sizeof q);
    sleep_ms(20);
    CHECK_ERRNO(waitpid(q, NULL, 0), ECHILD);
    CHECK_OK(kill(p, SIGKILL));
    CHECK_KILLED(p, SIGKILL);
    CHECK_EQ(waitpid(q, &status, 0), q);
    CHECK_EQ(status, SIGUSR2);
}

CASE(pdeathsig_rules) {
    int sig = -1;
    CHECK_OK(prctl(PR_GET_PDEATHSIG, &sig));
    CHECK_EQ(sig, 0);
    CHECK_ERRNO(prctl(PR_SET_PDEATHSIG, 65), EINVAL);
    CHECK_ERRNO(prctl(PR_SET_PDEATHSIG, -1), EINVAL);
    CHECK_ERRNO(prctl(PR_GET_PDEATHSIG, 8), EFAULT);
    CHECK_OK(prctl(PR_SET_PDEATHSIG, SIGTERM));
    IN_CHILD({
        int v = -1;
        CHECK_OK(prctl(PR_GET_PDEATHSIG, &v));
        CHECK_EQ(v, 0);  // cleared in the child of a fork
    });
    CHECK_OK(prctl(PR_SET_PDEATHSIG, 0));
}

static void *forking_thread(void *arg) {
    *(pid_t *)arg = fork();
    if (*(pid_t *)arg == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        for (;;) pause();
    }
    sleep_ms(60);
    return NULL;
}

CASE(pdeathsig_follows_the_parent_thread) {
    // Linux's oddity: it is the exit of the thread that forked that counts (prctl(2), BUGS).
    pthread_t t;
    pid_t p = 0;
    CHECK_EQ(pthread_create(&t, NULL, forking_thread, &p), 0);
    CHECK_EQ(pthread_join(t, NULL), 0);
    CHECK_GT(p, 0);
    CHECK_KILLED(p, SIGTERM);
}

CASE(double_fork_daemon) {
    CHECK_OK(prctl(PR_SET_CHILD_SUBREAPER, 1));
    int fds[2];
    CHECK_OK(pipe(fds));
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        CHECK_OK(setsid());
        if (CHECK_OK(fork()) == 0) {
            pid_t ids[3] = {pid(), getpgrp(), getsid(0)};
            CHECK_EQ(write(fds[1], ids, sizeof ids), sizeof ids);
            _exit(0);
        }
        _exit(0);
    }
    CHECK_EXIT(p, 0);
    pid_t ids[3];
    CHECK_EQ(read(fds[0], ids, sizeof ids), sizeof ids);
    CHECK_EQ(ids[1], p);
    CHECK_EQ(ids[2], p);
    CHECK_NE(ids[0], p);
    CHECK_EXIT(ids[0], 0);
}

MAIN
