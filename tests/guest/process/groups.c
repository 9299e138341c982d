// build: static
// Process groups and sessions: setpgid and setsid with their errors, group kills, orphaned groups.
#include "clone.h"
#include <sys/prctl.h>

static pid_t sleeper(void) {
    pid_t p = CHECK_OK(fork());
    if (p == 0)
        for (;;) pause();
    return p;
}
static void end(pid_t p) {
    CHECK_OK(kill(p, SIGKILL));
    CHECK_KILLED(p, SIGKILL);
}

CASE(getters) {
    CHECK_EQ(getpgrp(), getpgid(0));
    CHECK_EQ(getpgid(0), getpgid(pid()));
    CHECK_EQ(getsid(0), getsid(pid()));
    CHECK_EQ(getpgrp(), stat_field(pid(), 5));
    CHECK_EQ(getsid(0), stat_field(pid(), 6));
    CHECK_ERRNO(getpgid(-1), ESRCH);
    CHECK_ERRNO(getsid(-1), ESRCH);
    CHECK_ERRNO(getpgid(0x3fffffff), ESRCH);
    CHECK_ERRNO(getsid(0x3fffffff), ESRCH);
}

CASE(setpgid_in_both_manners) {
    // As shells do: parent and child both, whoever comes first.
    pid_t p = sleeper();
    CHECK_OK(setpgid(p, p));
    CHECK_EQ(getpgid(p), p);
    pid_t q = sleeper();
    CHECK_OK(setpgid(q, p));  // joins the group
    CHECK_EQ(getpgid(q), p);
    CHECK_OK(setpgid(q, 0));  // 0: its own pid
    CHECK_EQ(getpgid(q), q);
    CHECK_OK(setpgid(q, getpgrp()));
    CHECK_EQ(getpgid(q), getpgrp());
    IN_CHILD({
        CHECK_OK(setpgid(0, 0));
        CHECK_EQ(getpgrp(), pid());
        CHECK_OK(setpgid(0, 0));
    });
    end(p);
    end(q);
}

CASE(setpgid_errors) {
    CHECK_ERRNO(setpgid(0, -1), EINVAL);
    CHECK_ERRNO(setpgid(-5, 0), EINVAL);  // the group defaults to the pid
    CHECK_ERRNO(setpgid(-5, 1), ESRCH);
    CHECK_ERRNO(setpgid(0x3fffffff, 0), ESRCH);
    CHECK_ERRNO(setpgid(ppid(), 0), ESRCH);  // not a child
    pid_t p = sleeper();
    CHECK_ERRNO(setpgid(p, 0x3fffffff), EPERM);  // no such group in the session
    int fds[2];
    CHECK_OK(pipe(fds));
    pid_t q = CHECK_OK(fork());
    if (q == 0) {
        CHECK_OK(setsid());
        CHECK_ERRNO(setpgid(0, 0), EPERM);  // a session leader
        CHECK_EQ(write(fds[1], "s", 1), 1);
        for (;;) pause();
    }
    char c;
    CHECK_EQ(read(fds[0], &c, 1), 1);
    CHECK_ERRNO(setpgid(q, 0), EPERM);  // in another session
    CHECK_ERRNO(setpgid(p, q), EPERM);  // to a group of another session
    end(p);
    end(q);
}

HELPER(pause) {
    write(1, "x", 1);
    for (;;) pause();
}

CASE(setpgid_after_exec_is_eacces) {
    int fds[2];
    CHECK_OK(pipe(fds));
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        dup2(fds[1], 1);
        execl(check_self, "x", "@pause", NULL);
        FAIL("exec");
    }
    char c;
    CHECK_EQ(read(fds[0], &c, 1), 1);
    CHECK_ERRNO(setpgid(p, p), EACCES);
    end(p);
}

CASE(setsid_rules) {
    pid_t old = getsid(0);
    CHECK_ERRNO(setsid(), EPERM);  // a case is a group leader
    IN_CHILD({
        CHECK_EQ(setsid(), pid());
        CHECK_EQ(getsid(0), pid());
        CHECK_EQ(getpgrp(), pid());
        CHECK_ERRNO(setsid(), EPERM);
        IN_CHILD({
            CHECK_EQ(getsid(0), ppid());
            CHECK_EQ(getsid(ppid()), ppid());
        });
        // No terminal in a new session.
        CHECK_ERRNO(open("/dev/tty", O_RDWR), ENXIO);
        CHECK_EQ(stat_field(pid(), 7), 0);
    });
    CHECK_EQ(getsid(0), old);
}

CASE(a_group_outlives_its_leader) {
    pid_t leader = sleeper(), member = sleeper();
    CHECK_OK(setpgid(leader, leader));
    CHECK_OK(setpgid(member, leader));
    end(leader);
    CHECK_EQ(getpgid(member), leader);
    CHECK_OK(kill(-leader, 0));
    pid_t late = sleeper();
    CHECK_OK(setpgid(late, leader));
    CHECK_OK(kill(-leader, SIGTERM));
    CHECK_KILLED(member, SIGTERM);
    CHECK_KILLED(late, SIGTERM);
    CHECK_ERRNO(kill(-leader, 0), ESRCH);
}

CASE(setsid_fails_while_the_group_exists) {
    // The pid is still in use as a group id: EPERM, though the caller has left that group.
    IN_CHILD({
        CHECK_OK(setpgid(0, 0));
        pid_t me = pid();
        pid_t member = sleeper();  // in our group
        CHECK_OK(setpgid(0, getpgid(ppid())));
        CHECK_EQ(getpgid(member), me);
        CHECK_ERRNO(setsid(), EPERM);
        end(member);
        CHECK_EQ(setsid(), me);
    });
}

CASE(kill_reaches_a_group) {
    pid_t p[4];
    for (int i = 0; i < 4; i++) {
        p[i] = sleeper();
        CHECK_OK(setpgid(p[i], p[i & 1]));
    }
    CHECK_OK(kill(-p[1], SIGUSR1));
    CHECK_KILLED(p[1], SIGUSR1);
    CHECK_KILLED(p[3], SIGUSR1);
    CHECK_EQ(waitpid(p[0], NULL, WNOHANG), 0);
    CHECK_OK(kill(-p[0], SIGUSR2));
    CHECK_KILLED(p[0], SIGUSR2);
    CHECK_KILLED(p[2], SIGUSR2);
}

static volatile int usr1;
static void on_usr1(int sig CHECK_USED) { usr1++; }

CASE(kill_zero_is_the_own_group) {
    signal(SIGUSR1, on_usr1);
    pid_t in = CHECK_OK(fork());
    if (in == 0) {
        while (!usr1) sleep_ms(1);
        _exit(3);
    }
    pid_t out = sleeper();
    CHECK_OK(setpgid(out, out));
    sleep_ms(20);
    CHECK_OK(kill(0, SIGUSR1));
    CHECK_EQ(usr1, 1);
    CHECK_EXIT(in, 3);
    CHECK_EQ(waitpid(out, NULL, WNOHANG), 0);
    end(out);
}

static volatile int hups, conts;
static void on_hup(int sig CHECK_USED) { hups++; }
static void on_cont(int sig CHECK_USED) { conts++; }

// The middle process dies; its stopped child, in a group of its own, is told.
static void orphaned_group(int stop, int want_hup) {
    CHECK_OK(prctl(PR_SET_CHILD_SUBREAPER, 1));
    int fds[2];
    CHECK_OK(pipe(fds));
    pid_t middle = CHECK_OK(fork()), q;
    if (middle == 0) {
        // The reaper must not be of this session, or the group would not be orphaned.
        CHECK_OK(setsid());
        q = CHECK_OK(fork());
        if (q == 0) {
            CHECK_OK(setpgid(0, 0));
            signal(SIGHUP, on_hup);
            signal(SIGCONT, on_cont);
            if (stop) raise(SIGSTOP);
            for (int i = 0; i < 60 && !hups; i++) sleep_ms(5);
            _exit(hups * 2 + conts);
        }
        if (stop) {
            int status;
            CHECK_EQ(waitpid(q, &status, WUNTRACED), q);
            CHECK_EQ(WSTOPSIG(status), SIGSTOP);
        } else {
            while (getpgid(q) != q) sleep_ms(1);
        }
        CHECK_EQ(write(fds[1], &q, sizeof q), sizeof q);
        _exit(0);
    }
    CHECK_EXIT(middle, 0);
    CHECK_EQ(read(fds[0], &q, sizeof q), sizeof q);
    CHECK_EXIT(q, want_hup ? 3 : 0);
}

CASE(orphaned_stopped_group_gets_hup_and_cont) { orphaned_group(1, 1); }
CASE(orphaned_running_group_is_left_alone) { orphaned_group(0, 0); }

CASE(tty_stop_signals_do_not_stop_an_orphaned_group) {
    // SIGTSTP, SIGTTIN and SIGTTOU by default do nothing there; SIGSTOP still stops.
    IN_CHILD({
        CHECK_OK(setsid());  // its parent is in another session: orphaned
        kill(pid(), SIGTSTP);
        kill(pid(), SIGTTIN);
        kill(pid(), SIGTTOU);
    });
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        setsid();
        raise(SIGSTOP);
        _exit(0);
    }
    int status;
    CHECK_EQ(waitpid(p, &status, WUNTRACED), p);
    CHECK_EQ(status, 0x137f);
    CHECK_OK(kill(p, SIGCONT));
    CHECK_EXIT(p, 0);
}

CASE(wait_by_group_follows_setpgid) {
    pid_t p = sleeper();
    pid_t g = getpgrp();
    CHECK_EQ(waitpid(-g, NULL, WNOHANG), 0);
    CHECK_OK(setpgid(p, p));
    CHECK_ERRNO(waitpid(-g, NULL, WNOHANG), ECHILD);
    CHECK_OK(kill(p, SIGKILL));
    CHECK_EQ(waitpid(-p, NULL, 0), p);
}

MAIN
