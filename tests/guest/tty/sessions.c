// build: static
// Controlling terminals and job control: TIOCSCTTY and its kin, SIGTTIN and SIGTTOU, orphans.
#include "ptys.h"

CASE(getting_a_terminal) {
    open_pair();
    int v = -1;
    CHECK_ERRNO(ioctl(slave, TIOCGPGRP, &v), ENOTTY);  // not ours
    CHECK_ERRNO(ioctl(slave, TIOCGSID, &v), ENOTTY);
    CHECK_OK(ioctl(master, TIOCGPGRP, &v));
    CHECK_EQ(v, 0);
    CHECK_ERRNO(ioctl(slave, TIOCSCTTY, 0), EPERM);  // not a session leader
    IN_CHILD({
        lead();
        CHECK_EQ(foreground(), getpid());
        int sid = -1;
        CHECK_OK(ioctl(slave, TIOCGSID, &sid));
        CHECK_EQ(sid, getpid());
        int seen = -1;
        CHECK_OK(ioctl(master, TIOCGPGRP, &seen));
        CHECK_EQ(seen, getpid());
        CHECK_OK(ioctl(master, TIOCGSID, &seen));
        CHECK_EQ(seen, getpid());
        CHECK_OK(ioctl(slave, TIOCSCTTY, 0));  // again
        int other = CHECK_OK(open("/dev/ptmx", O_RDWR | O_NOCTTY));
        int off = 0;
        CHECK_OK(ioctl(other, TIOCSPTLCK, &off));
        int peer = CHECK_OK(ioctl(other, TIOCGPTPEER, O_RDWR));  // one is enough: this one does not become ours
        CHECK_ERRNO(ioctl(peer, TIOCSCTTY, 0), EPERM);
        CHECK_ERRNO(ioctl(peer, TIOCGPGRP, &seen), ENOTTY);
    });
}

CASE(a_terminal_has_one_session) {
    open_pair();
    int ready_pipe[2];
    CHECK_OK(pipe(ready_pipe));
    pid_t owner = CHECK_OK(fork());
    if (owner == 0) {
        lead();
        CHECK_EQ(write(ready_pipe[1], "x", 1), 1);
        for (;;) pause();
    }
    char c;
    CHECK_EQ(read(ready_pipe[0], &c, 1), 1);
    IN_CHILD({
        CHECK_OK(prctl(PR_SET_PDEATHSIG, SIGKILL));
        CHECK_OK(setsid());
        CHECK_ERRNO(ioctl(slave, TIOCSCTTY, 0), EPERM);
        CHECK_OK(open(pty_name(), O_RDWR));  // opens, but is not taken over
        CHECK_ERRNO(open("/dev/tty", O_RDWR), ENXIO);
        if (geteuid() == 0) {
            CHECK_OK(ioctl(slave, TIOCSCTTY, 1));  // root may steal it
            CHECK_OK(open("/dev/tty", O_RDWR));
        } else {
            CHECK_ERRNO(ioctl(slave, TIOCSCTTY, 1), EPERM);
        }
    });
    CHECK_OK(kill(owner, SIGKILL));
    CHECK_KILLED(owner, SIGKILL);
}

CASE(setting_the_foreground_group) {
    open_pair();
    IN_CHILD({
        lead();
        int v = -1;
        CHECK_ERRNO(ioctl(slave, TIOCSPGRP, &v), EINVAL);
        v = 0x3fffffff;
        CHECK_ERRNO(ioctl(slave, TIOCSPGRP, &v), ESRCH);
        v = getppid();
        CHECK_ERRNO(ioctl(slave, TIOCSPGRP, &v), EPERM);  // a group of another session
        CHECK_ERRNO(ioctl(slave, TIOCSPGRP, nowhere), EFAULT);
        v = getpid();
        CHECK_OK(ioctl(slave, TIOCSPGRP, &v));
    });
}

CASE(giving_it_up) {
    open_pair();
    CHECK_ERRNO(ioctl(slave, TIOCNOTTY), ENOTTY);
    IN_CHILD({
        lead();
        signal(SIGHUP, SIG_IGN);
        pid_t pid = CHECK_OK(fork());
        if (pid == 0) {
            CHECK_OK(ioctl(slave, TIOCNOTTY));  // a member gives up only its own
            CHECK_ERRNO(open("/dev/tty", O_RDWR), ENXIO);
            _exit(0);
        }
        CHECK_EXIT(pid, 0);
        CHECK_OK(open("/dev/tty", O_RDWR));
        catch_signal(SIGCONT);
        catch_signal(SIGHUP);
        CHECK_OK(ioctl(slave, TIOCNOTTY));  // the leader gives up everybody's
        CHECK_ERRNO(open("/dev/tty", O_RDWR), ENXIO);
        CHECK_NE(caught, 0);  // the foreground group is told by SIGHUP and SIGCONT
        int v = -1;
        CHECK_ERRNO(ioctl(slave, TIOCGPGRP, &v), ENOTTY);
        CHECK_OK(ioctl(slave, TIOCSCTTY, 0));  // and may take it back
    });
}

// In the foreground a leader; in the background a child of it, in a group of its own, that runs `body`.
#define BACKGROUND(BODY, AFTER)                               \
    IN_CHILD({                                                \
        lead();                                               \
        pid_t pid = CHECK_OK(fork());                         \
        if (pid == 0) {                                       \
            CHECK_OK(prctl(PR_SET_PDEATHSIG, SIGKILL));       \
            CHECK_OK(setpgid(0, 0));                          \
            BODY;                                             \
            _exit(0);                                         \
        }                                                     \
        AFTER;                                                \
    })

#define STOPPED_BY(SIG)                                       \
    do {                                                      \
        int status = 0;                                       \
        CHECK_EQ(waitpid(pid, &status, WUNTRACED), pid);      \
        CHECK_EQ(status, (SIG) << 8 | 0x7f);                  \
    } while (0)

CASE(background_reading_stops) {
    open_pair();
    BACKGROUND({
        char c;
        CHECK_EQ(read(slave, &c, 1), 1);
        _exit(c);
    }, {
        STOPPED_BY(SIGTTIN);
        type("Z\n");
        set_foreground(pid);
        CHECK_OK(kill(-pid, SIGCONT));
        CHECK_EXIT(pid, 'Z');  // the read is made again, now from the foreground
    });
}

CASE(background_reading_refused) {
    open_pair();
    BACKGROUND({
        char c;
        signal(SIGTTIN, SIG_IGN);
        CHECK_ERRNO(read(slave, &c, 1), EIO);
        signal(SIGTTIN, SIG_DFL);
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGTTIN);
        CHECK_OK(sigprocmask(SIG_BLOCK, &set, NULL));
        CHECK_ERRNO(read(slave, &c, 1), EIO);
    }, CHECK_EXIT(pid, 0));
}

CASE(background_reading_caught) {
    open_pair();
    BACKGROUND({
        char c;
        catch_signal(SIGTTIN);
        CHECK_ERRNO(read(slave, &c, 1), EINTR);
        CHECK_EQ(caught, SIGTTIN);
    }, CHECK_EXIT(pid, 0));
}

CASE(background_writing) {
    open_pair();
    BACKGROUND({
        write_all(slave, "allowed");
        local_flags(0, 0);
    }, {
        EXPECT(master, "allowed");  // writing is free, but changing settings is not
        STOPPED_BY(SIGTTOU);
        set_foreground(pid);
        CHECK_OK(kill(-pid, SIGCONT));
        CHECK_EXIT(pid, 0);
    });
}

CASE(background_writing_with_tostop) {
    open_pair();
    local_flags(TOSTOP, 0);
    BACKGROUND(write_all(slave, "x"), {
        STOPPED_BY(SIGTTOU);
        quiet(master);
        local_flags(0, TOSTOP);
        CHECK_OK(kill(-pid, SIGCONT));
        EXPECT(master, "x");
        CHECK_EXIT(pid, 0);
    });
    local_flags(TOSTOP, 0);
    BACKGROUND({
        signal(SIGTTOU, SIG_IGN);
        write_all(slave, "y");  // ignoring it is leave to write
    }, {
        EXPECT(master, "y");
        CHECK_EXIT(pid, 0);
    });
}

CASE(background_settings) {
    open_pair();
    // Asking is free; each change is held up.
    BACKGROUND({
        struct termios t = get();
        struct winsize w;
        int v = foreground();
        CHECK_EQ(v, getppid());
        CHECK_OK(ioctl(slave, TIOCGWINSZ, &w));
        CHECK_OK(ioctl(slave, FIONREAD, &v));
        catch_signal(SIGTTOU);
        CHECK_ERRNO(ioctl(slave, TCSETS, &t), EINTR);
        AWAIT(SIGTTOU);
        CHECK_ERRNO(ioctl(slave, TCFLSH, TCIFLUSH), EINTR);
        AWAIT(SIGTTOU);
        v = getpid();
        CHECK_ERRNO(ioctl(slave, TIOCSPGRP, &v), EINTR);
        AWAIT(SIGTTOU);
        CHECK_ERRNO(ioctl(slave, TCSBRK, 1), EINTR);
        AWAIT(SIGTTOU);
        signal(SIGTTOU, SIG_IGN);
        CHECK_OK(ioctl(slave, TCSETS, &t));
        CHECK_OK(ioctl(slave, TIOCSPGRP, &v));  // how a shell takes the terminal back
        CHECK_EQ(foreground(), getpid());
    }, CHECK_EXIT(pid, 0));
}

CASE(orphaned_groups) {
    open_pair();
    // The group's only link to the session, its parent, ends: nobody could continue it, so it is not stopped.
    int result[2];
    CHECK_OK(pipe(result));
    IN_CHILD({
        lead();
        pid_t middle = CHECK_OK(fork());
        if (middle == 0) {
            pid_t pid = CHECK_OK(fork());
            if (pid == 0) {
                CHECK_OK(prctl(PR_SET_PDEATHSIG, 0));
                CHECK_OK(setpgid(0, 0));
                pid_t parent = getppid();
                CHECK_EQ(write(result[1], "r", 1), 1);
                for (int i = 0; i < 400 && getppid() == parent; i++) usleep(5000);
                char c;
                CHECK_ERRNO(read(slave, &c, 1), EIO);
                struct termios t = get();
                CHECK_ERRNO(ioctl(slave, TCSETS, &t), EIO);
                int v = getpid();
                CHECK_ERRNO(ioctl(slave, TIOCSPGRP, &v), ENOTTY);  // Linux: this one call says so
                write_all(slave, "o");
                CHECK_EQ(write(result[1], "d", 1), 1);
                _exit(0);
            }
            char c;
            CHECK_EQ(read(result[0], &c, 1), 1);
            _exit(0);
        }
        CHECK_EXIT(middle, 0);
        struct pollfd p = {result[0], POLLIN, 0};
        CHECK_EQ(poll(&p, 1, 5000), 1);
        EXPECT(master, "o");
    });
}

CASE(group_orphaned_while_stopped) {
    // POSIX: a stopped group that becomes orphaned gets SIGHUP and SIGCONT.
    open_pair();
    int result[2];
    CHECK_OK(pipe(result));
    IN_CHILD({
        lead();
        pid_t middle = CHECK_OK(fork());
        if (middle == 0) {
            pid_t pid = CHECK_OK(fork());
            if (pid == 0) {
                CHECK_OK(setpgid(0, 0));
                catch_signal(SIGHUP);
                raise(SIGSTOP);
                for (int i = 0; i < 400 && !caught; i++) usleep(5000);
                CHECK_EQ(caught, SIGHUP);
                CHECK_EQ(write(result[1], "h", 1), 1);
                _exit(0);
            }
            int status;
            CHECK_EQ(waitpid(pid, &status, WUNTRACED), pid);
            CHECK(WIFSTOPPED(status));
            _exit(0);
        }
        CHECK_EXIT(middle, 0);
        struct pollfd p = {result[0], POLLIN, 0};
        CHECK_EQ(poll(&p, 1, 5000), 1);
    });
}

CASE(setsid_leaves_the_terminal) {
    open_pair();
    IN_CHILD({
        lead();
        CHECK_ERRNO(setsid(), EPERM);
        IN_CHILD({
            CHECK_OK(open("/dev/tty", O_RDWR));
            CHECK_OK(setsid());
            CHECK_ERRNO(open("/dev/tty", O_RDWR), ENXIO);
            char text[1000] = {0};
            CHECK_OK(read(CHECK_OK(open("/proc/self/stat", O_RDONLY)), text, 999));
            int a; int b; int c; int tty; int front;
            CHECK_EQ(sscanf(strrchr(text, ')') + 4, "%d %d %d %d %d", &a, &b, &c, &tty, &front), 5);
            CHECK_EQ(tty, 0);
            CHECK_EQ(front, -1);
        });
    });
}

MAIN
