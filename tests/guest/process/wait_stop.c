// build: static
// Stop and continue: what stops, what continues, what wait reports, which SIGCHLD comes.
#include "clone.h"

static pid_t child_sleeping(void) {
    pid_t p = CHECK_OK(fork());
    if (p == 0)
        for (;;) pause();
    return p;
}
static void end(pid_t p) {
    CHECK_OK(kill(p, SIGKILL));
    CHECK_KILLED(p, SIGKILL);
}

CASE(stop_and_continue_by_wait4) {
    pid_t p = child_sleeping();
    int status;
    CHECK_OK(kill(p, SIGSTOP));
    CHECK_EQ(waitpid(p, &status, WUNTRACED), p);
    CHECK_EQ(status, 0x137f);
    CHECK(WIFSTOPPED(status));
    CHECK_EQ(WSTOPSIG(status), SIGSTOP);
    CHECK_EQ(stat_field(p, 3), 'T');
    // Reported once.
    CHECK_EQ(waitpid(p, &status, WUNTRACED | WNOHANG), 0);
    CHECK_OK(kill(p, SIGCONT));
    CHECK_EQ(waitpid(p, &status, WCONTINUED), p);
    CHECK_EQ(status, 0xffff);
    CHECK(WIFCONTINUED(status));
    CHECK_EQ(waitpid(p, &status, WCONTINUED | WUNTRACED | WNOHANG), 0);
    wait_for_state(p, 'S');
    end(p);
}

CASE(without_the_option_stops_are_not_seen) {
    pid_t p = child_sleeping();
    CHECK_OK(kill(p, SIGSTOP));
    wait_for_state(p, 'T');
    CHECK_EQ(waitpid(p, NULL, WNOHANG), 0);
    siginfo_t info = {0};
    CHECK_OK(waitid(P_PID, p, &info, WEXITED | WCONTINUED | WNOHANG));
    CHECK_EQ(info.si_pid, 0);
    // It is still there for who asks.
    CHECK_OK(waitid(P_PID, p, &info, WSTOPPED));
    CHECK_EQ(info.si_code, CLD_STOPPED);
    end(p);
}

CASE(siginfo_of_stop_and_continue) {
    pid_t p = child_sleeping();
    siginfo_t info;
    CHECK_OK(kill(p, SIGTSTP));
    memset(&info, 0xff, sizeof info);
    CHECK_OK(waitid(P_PID, p, &info, WSTOPPED | WNOWAIT));
    CHECK_EQ(info.si_signo, SIGCHLD);
    CHECK_EQ(info.si_code, CLD_STOPPED);
    CHECK_EQ(info.si_status, SIGTSTP);
    CHECK_EQ(info.si_pid, p);
    CHECK_EQ(info.si_uid, getuid());
    CHECK_OK(waitid(P_PID, p, &info, WSTOPPED));
    CHECK_EQ(info.si_status, SIGTSTP);
    CHECK_OK(kill(p, SIGCONT));
    CHECK_OK(waitid(P_PID, p, &info, WCONTINUED | WNOWAIT));
    CHECK_OK(waitid(P_PID, p, &info, WCONTINUED));
    CHECK_EQ(info.si_code, CLD_CONTINUED);
    CHECK_EQ(info.si_status, SIGCONT);
    end(p);
}

CASE(each_stop_signal) {
    static const int sigs[] = {SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU};
    pid_t p = child_sleeping();
    int status;
    for (int i = 0; i < 4; i++) {
        CHECK_OK(kill(p, sigs[i]));
        CHECK_EQ(waitpid(p, &status, WUNTRACED), p);
        CHECK_EQ(status, sigs[i] << 8 | 0x7f);
        CHECK_OK(kill(p, SIGCONT));
        CHECK_EQ(waitpid(p, &status, WCONTINUED), p);
    }
    end(p);
}

CASE(continue_of_a_running_process_is_silent) {
    pid_t p = child_sleeping();
    CHECK_OK(kill(p, SIGCONT));
    sleep_ms(20);
    CHECK_EQ(waitpid(p, NULL, WCONTINUED | WNOHANG), 0);
    end(p);
}

CASE(kill_ends_a_stopped_process) {
    pid_t p = child_sleeping();
    CHECK_OK(kill(p, SIGSTOP));
    wait_for_state(p, 'T');
    end(p);
    // Other signals stay pending until it continues.
    p = child_sleeping();
    CHECK_OK(kill(p, SIGSTOP));
    wait_for_state(p, 'T');
    CHECK_OK(kill(p, SIGTERM));
    sleep_ms(30);
    CHECK_EQ(stat_field(p, 3), 'T');
    CHECK_OK(kill(p, SIGCONT));
    CHECK_KILLED(p, SIGTERM);
}

static volatile int conts, tstps;
static void count_cont(int sig CHECK_USED) { conts++; }
static void count_tstp(int sig CHECK_USED) { tstps++; }

CASE(handled_continue_and_tstp) {
    int fds[2];
    CHECK_OK(pipe(fds));
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        signal(SIGCONT, count_cont);
        signal(SIGTSTP, count_tstp);
        CHECK_EQ(write(fds[1], "r", 1), 1);
        while (!conts) pause();
        CHECK_EQ(tstps, 1);
        _exit(4);
    }
    char c;
    CHECK_EQ(read(fds[0], &c, 1), 1);
    CHECK_OK(kill(p, SIGTSTP));  // handled: does not stop
    sleep_ms(30);
    CHECK_EQ(waitpid(p, NULL, WUNTRACED | WNOHANG), 0);
    CHECK_OK(kill(p, SIGSTOP));
    wait_for_state(p, 'T');
    CHECK_OK(kill(p, SIGCONT));
    CHECK_EXIT(p, 4);
}

CASE(blocked_continue_still_continues) {
    int fds[2];
    CHECK_OK(pipe(fds));
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        sigset_t set;
        sigfillset(&set);
        sigprocmask(SIG_BLOCK, &set, NULL);
        raise(SIGSTOP);
        sigpending(&set);
        // Not before the parent has waited for the continuation: an end would hide it.
        char c;
        close(fds[1]);
        if (read(fds[0], &c, 1) != 0) _exit(3);
        _exit(sigismember(&set, SIGCONT) ? 1 : 2);
    }
    int status;
    CHECK_EQ(waitpid(p, &status, WUNTRACED), p);
    CHECK_OK(kill(p, SIGCONT));
    CHECK_EQ(waitpid(p, &status, WCONTINUED), p);
    CHECK_OK(close(fds[1]));
    // SIGCONT's default action is nothing, but blocked it stays pending.
    CHECK_EXIT(p, 1);
}

CASE(stop_and_cont_cancel_each_other) {
    // A pending stop signal is discarded by SIGCONT, a pending SIGCONT by a stop signal.
    sigset_t set, got;
    sigemptyset(&set);
    sigaddset(&set, SIGTSTP);
    sigaddset(&set, SIGCONT);
    CHECK_OK(sigprocmask(SIG_BLOCK, &set, NULL));
    kill(pid(), SIGTSTP);
    sigpending(&got);
    CHECK_EQ(sigismember(&got, SIGTSTP), 1);
    kill(pid(), SIGCONT);
    sigpending(&got);
    CHECK_EQ(sigismember(&got, SIGTSTP), 0);
    CHECK_EQ(sigismember(&got, SIGCONT), 1);
    kill(pid(), SIGTSTP);
    sigpending(&got);
    CHECK_EQ(sigismember(&got, SIGTSTP), 1);
    CHECK_EQ(sigismember(&got, SIGCONT), 0);
    kill(pid(), SIGCONT);
}

CASE(ignored_stop_signals_do_not_stop) {
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        signal(SIGTSTP, SIG_IGN);
        signal(SIGTTIN, SIG_IGN);
        kill(pid(), SIGTSTP);
        kill(pid(), SIGTTIN);
        _exit(5);
    }
    int status;
    CHECK_EQ(waitpid(p, &status, WUNTRACED), p);
    CHECK_EQ(status, 0x500);
}

static volatile siginfo_t chld[8];
static volatile int chlds;
static void on_chld(int sig CHECK_USED, siginfo_t *info, void *c CHECK_USED) {
    if (chlds < 8) chld[chlds] = *info;
    chlds++;
}
static void wait_chlds(int n) {
    for (int i = 0; i < 400 && chlds < n; i++) sleep_ms(5);
    CHECK_EQ(chlds, n);
}

CASE(sigchld_for_stop_continue_exit) {
    struct sigaction act = {.sa_sigaction = on_chld, .sa_flags = SA_SIGINFO};
    CHECK_OK(sigaction(SIGCHLD, &act, NULL));
    pid_t p = child_sleeping();
    CHECK_OK(kill(p, SIGSTOP));
    wait_chlds(1);
    CHECK_EQ(chld[0].si_code, CLD_STOPPED);
    CHECK_EQ(chld[0].si_status, SIGSTOP);
    CHECK_EQ(chld[0].si_pid, p);
    CHECK_OK(kill(p, SIGCONT));
    wait_chlds(2);
    CHECK_EQ(chld[1].si_code, CLD_CONTINUED);
    CHECK_EQ(chld[1].si_status, SIGCONT);
    CHECK_OK(kill(p, SIGTERM));
    wait_chlds(3);
    CHECK_EQ(chld[2].si_code, CLD_KILLED);
    CHECK_EQ(chld[2].si_status, SIGTERM);
    CHECK_EQ(chld[2].si_uid, getuid());
    CHECK_KILLED(p, SIGTERM);
    CHECK_EQ(chlds, 3);
}

CASE(nocldstop_keeps_quiet) {
    struct sigaction act = {.sa_sigaction = on_chld, .sa_flags = SA_SIGINFO | SA_NOCLDSTOP};
    CHECK_OK(sigaction(SIGCHLD, &act, NULL));
    pid_t p = child_sleeping();
    int status;
    CHECK_OK(kill(p, SIGSTOP));
    CHECK_EQ(waitpid(p, &status, WUNTRACED), p);  // wait sees it all the same
    CHECK_OK(kill(p, SIGCONT));
    CHECK_EQ(waitpid(p, &status, WCONTINUED), p);
    CHECK_EQ(chlds, 0);
    CHECK_OK(kill(p, SIGKILL));
    wait_chlds(1);
    CHECK_EQ(chld[0].si_code, CLD_KILLED);
    CHECK_KILLED(p, SIGKILL);
}

static volatile int *counter;
static int spin(void *arg) {
    for (;;) {
        __atomic_add_fetch(&counter[(long)arg], 1, __ATOMIC_RELAXED);
        syscall(SYS_sched_yield);
    }
    return 0;
}

CASE(all_threads_stop) {
    counter = CHECK_MAP(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        for (int i = 0; i < 3; i++) CLONE(THREAD_FLAGS, new_stack(), NULL, NULL, 0, spin, i);
        spin((void *)3);
    }
    for (int i = 0; i < 4; i++)
        while (!__atomic_load_n(&counter[i], __ATOMIC_RELAXED)) sleep_ms(1);
    int status, before[4];
    CHECK_OK(kill(p, SIGSTOP));
    CHECK_EQ(waitpid(p, &status, WUNTRACED), p);
    memcpy(before, (void *)counter, sizeof before);
    sleep_ms(60);
    CHECK_EQ(memcmp(before, (void *)counter, sizeof before), 0);
    CHECK_OK(kill(p, SIGCONT));
    CHECK_EQ(waitpid(p, &status, WCONTINUED), p);
    for (int i = 0; i < 4; i++)
        while (__atomic_load_n(&counter[i], __ATOMIC_RELAXED) == before[i]) sleep_ms(1);
    end(p);
}

CASE(stopped_in_a_system_call_goes_on) {
    int fds[2];
    CHECK_OK(pipe(fds));
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        char c;
        // No handler runs, so the read is restarted, not interrupted.
        ssize_t n = read(fds[0], &c, 1);
        _exit(n == 1 && c == 'g' ? 0 : 1);
    }
    wait_for_state(p, 'S');
    for (int i = 0; i < 3; i++) {
        CHECK_OK(kill(p, SIGSTOP));
        wait_for_state(p, 'T');
        CHECK_OK(kill(p, SIGCONT));
        wait_for_state(p, 'S');
    }
    CHECK_EQ(write(fds[1], "g", 1), 1);
    CHECK_EXIT(p, 0);
}

CASE(sigcont_cancels_a_stop_that_has_hardly_begun) {
    volatile long *count = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(count != MAP_FAILED);
    pid_t p = CHECK_OK(fork());
    if (p == 0)
        for (;;) {
            ++*count;
            usleep(1);
        }
    for (int i = 0; i < 300; i++) {
        long before = *count;
        CHECK_OK(kill(p, SIGTSTP));
        CHECK_OK(kill(p, SIGCONT));
        // It would stand still for ever.
        for (int ms = 0; *count == before; ms++) {
            CHECK_LT(ms, 10000);
            sleep_ms(1);
        }
    }
    end(p);
}

CASE(a_sleep_goes_on_after_a_stop) {
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        struct timespec t = {0, 150000000}, a, b;
        clock_gettime(CLOCK_MONOTONIC, &a);
        CHECK_OK(nanosleep(&t, &t));
        clock_gettime(CLOCK_MONOTONIC, &b);
        long ms = (b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000;
        CHECK_GE(ms, 149);
        CHECK_LT(ms, 5000);
        _exit(0);
    }
    sleep_ms(40);
    CHECK_OK(kill(p, SIGSTOP));
    sleep_ms(40);
    CHECK_OK(kill(p, SIGCONT));
    CHECK_EXIT(p, 0);
}

MAIN
