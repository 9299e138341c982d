// build: static
// Signals from keys: to whom, what is shown, what is flushed; flow control; TIOCSIG.
#include "ptys.h"

CASE(interrupt_quit_suspend) {
    open_pair();
    IN_CHILD({
        lead();
        catch_signal(SIGINT);
        catch_signal(SIGQUIT);
        catch_signal(SIGTSTP);
        type("\x03");
        AWAIT(SIGINT);
        EXPECT(master, "^C");
        type("\x1c");
        AWAIT(SIGQUIT);
        EXPECT(master, "^\\");
        type("\x1a");
        AWAIT(SIGTSTP);
        EXPECT(master, "^Z");
        quiet(slave);
    });
}

CASE(only_the_foreground_group) {
    open_pair();
    IN_CHILD({
        lead();
        catch_signal(SIGINT);
        signal(SIGTTOU, SIG_IGN);
        pid_t pid = CHECK_OK(fork());
        if (pid == 0) {
            CHECK_OK(prctl(PR_SET_PDEATHSIG, SIGKILL));
            CHECK_OK(setpgid(0, 0));
            signal(SIGINT, SIG_DFL);
            set_foreground(getpid());
            for (;;) pause();
        }
        for (int i = 0; i < 400 && foreground() != pid; i++) usleep(5000);
        CHECK_EQ(foreground(), pid);
        type("\x03");
        CHECK_KILLED(pid, SIGINT);
        CHECK_EQ(caught, 0);
        set_foreground(getpgrp());
        type("\x03");
        AWAIT(SIGINT);
    });
}

CASE(a_whole_group_gets_it) {
    open_pair();
    IN_CHILD({
        lead();
        catch_signal(SIGINT);
        pid_t pids[3];
        for (int i = 0; i < 3; i++) {
            pids[i] = CHECK_OK(fork());
            if (pids[i] == 0) {
                signal(SIGINT, SIG_DFL);
                write_all(slave, ".");
                for (;;) pause();
            }
        }
        EXPECT(master, "...");
        type("\x03");
        AWAIT(SIGINT);
        for (int i = 0; i < 3; i++) CHECK_KILLED(pids[i], SIGINT);
    });
}

CASE(signals_flush) {
    open_pair();
    IN_CHILD({
        lead();
        catch_signal(SIGINT);
        local_flags(0, ECHO);
        type("one\ntwo\x03" "three\n");
        AWAIT(SIGINT);
        READ("three\n");  // both finished lines and the unfinished one have gone
        local_flags(NOFLSH, 0);
        type("four\nfi\x03ve\n");
        AWAIT(SIGINT);
        READ("four\n");
        READ("five\n");
    });
}

CASE(own_keys) {
    open_pair();
    IN_CHILD({
        lead();
        catch_signal(SIGINT);
        struct termios t = get();
        t.c_cc[VINTR] = 'q';
        t.c_cc[VQUIT] = 0;
        set(t);
        type("\x03\x1c");
        EXPECT(master, "^C^\\");
        type("q");
        AWAIT(SIGINT);
        EXPECT(master, "q");
        local_flags(0, ISIG);
        type("q\n");
        EXPECT(master, "q\r\n");
        READ("q\n");
        CHECK_EQ(caught, 0);
        local_flags(ISIG, ICANON);  // signals do not need lines
        type("q");
        AWAIT(SIGINT);
    });
}

CASE(interrupt_ends_a_read) {
    open_pair();
    IN_CHILD({
        lead();
        catch_signal(SIGINT);
        pid_t pid = CHECK_OK(fork());
        if (pid == 0) {
            signal(SIGINT, SIG_IGN);
            usleep(30000);
            type("\x03");
            _exit(0);
        }
        char c;
        CHECK_ERRNO(read(slave, &c, 1), EINTR);
        CHECK_EQ(caught, SIGINT);
        CHECK_EXIT(pid, 0);
    });
}

CASE(suspend_and_continue) {
    open_pair();
    IN_CHILD({
        lead();
        signal(SIGTTOU, SIG_IGN);
        pid_t pid = CHECK_OK(fork());
        if (pid == 0) {
            CHECK_OK(setpgid(0, 0));
            set_foreground(getpid());
            signal(SIGTTOU, SIG_DFL);
            write_all(slave, "go");
            char c;
            CHECK_EQ(read(slave, &c, 1), 1);  // restarted after the stop
            _exit(c);
        }
        EXPECT(master, "go");
        type("\x1a");
        int status = 0;
        CHECK_EQ(waitpid(pid, &status, WUNTRACED), pid);
        CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTSTP);
        CHECK_OK(kill(-pid, SIGCONT));
        CHECK_EQ(waitpid(pid, &status, WCONTINUED), pid);
        CHECK(WIFCONTINUED(status));
        type("A\n");
        CHECK_EXIT(pid, 'A');
    });
}

CASE(without_a_session_nothing_happens) {
    open_pair();
    type("ab");
    EXPECT(master, "ab");
    type("\x03");
    EXPECT(master, "^C");
    type("cd\n");
    EXPECT(master, "cd\r\n");
    READ("cd\n");  // flushed all the same
}

CASE(signal_by_master) {
    open_pair();
    IN_CHILD({
        lead();
        catch_signal(SIGINT);
        catch_signal(SIGTSTP);
        CHECK_OK(ioctl(master, TIOCSIG, SIGINT));
        AWAIT(SIGINT);
        CHECK_OK(ioctl(master, TIOCSIG, SIGTSTP));
        AWAIT(SIGTSTP);
        CHECK_ERRNO(ioctl(master, TIOCSIG, SIGUSR1), EINVAL);
        CHECK_ERRNO(ioctl(slave, TIOCSIG, SIGINT), ENOTTY);
        quiet(master);
    });
}

CASE(stop_and_start_keys) {
    open_pair();
    type("\x13");
    usleep(20000);
    quiet(master);  // neither is shown
    CHECK_OK(fcntl(slave, F_SETFL, O_NONBLOCK));
    CHECK_ERRNO(write(slave, "held", 4), EAGAIN);
    CHECK_EQ(ready(slave, POLLOUT, 0) & POLLOUT, 0);
    type("\x11");
    CHECK_EQ(ready(slave, POLLOUT, 2000) & POLLOUT, POLLOUT);
    write_all(slave, "free");
    EXPECT(master, "free");
    quiet(slave);  // nor is it input
    input_flags(0, IXON);
    type("\x13\x11\n");
    READ("\x13\x11\n");
}

CASE(stopped_writer_waits) {
    open_pair();
    type("\x13");
    usleep(20000);
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        write_all(slave, "patience");
        _exit(0);
    }
    quiet(master);
    CHECK_EQ(waitpid(pid, NULL, WNOHANG), 0);
    type("\x11");
    EXPECT(master, "patience");
    CHECK_EXIT(pid, 0);
}

CASE(any_key_starts) {
    open_pair();
    local_flags(0, ECHO);
    input_flags(IXANY, 0);
    CHECK_OK(fcntl(slave, F_SETFL, O_NONBLOCK));
    type("\x13");
    usleep(20000);
    CHECK_ERRNO(write(slave, "x", 1), EAGAIN);
    type("k\n");
    READ("k\n");  // the key is input as well
    write_all(slave, "on");
    EXPECT(master, "on");
}

CASE(flow_by_ioctl) {
    open_pair();
    CHECK_OK(fcntl(slave, F_SETFL, O_NONBLOCK));
    CHECK_OK(ioctl(slave, TCXONC, TCOOFF));
    CHECK_ERRNO(write(slave, "x", 1), EAGAIN);
    CHECK_OK(ioctl(slave, TCXONC, TCOON));
    write_all(slave, "y");
    EXPECT(master, "y");
    CHECK_OK(ioctl(slave, TCXONC, TCIOFF));  // sends the stop key to the other side
    EXPECT(master, "\x13");
    CHECK_OK(ioctl(slave, TCXONC, TCION));
    EXPECT(master, "\x11");
    CHECK_ERRNO(ioctl(slave, TCXONC, 9), EINVAL);
}

CASE(pushed_input) {
    open_pair();
    IN_CHILD({
        lead();
        local_flags(0, ECHO);
        if (ioctl(slave, TIOCSTI, "a") == -1) {
            CHECK(errno == EIO || errno == EPERM);  // hosts may forbid it
            _exit(0);
        }
        CHECK_OK(ioctl(slave, TIOCSTI, "\n"));
        READ("a\n");
    });
    if (geteuid() != 0) {
        CHECK_EQ(ioctl(slave, TIOCSTI, "a"), -1);  // somebody else's terminal
        CHECK(errno == EIO || errno == EPERM);
    }
}

MAIN
