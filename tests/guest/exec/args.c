// build: static
// Arguments and environment: passed unchanged, and their limits.
#include "../check.h"
#include <sys/resource.h>

extern char **environ;

// Prints the number of arguments and strings of the environment, and a sum over all bytes.
static void sum(int argc, char **argv, char **env, unsigned long out[3]) {
    unsigned long s = 0;
    int envc = 0;
    for (int i = 0; i < argc; i++)
        for (char *p = argv[i]; *p; p++) s = s * 31 + (unsigned char)*p + i;
    for (; env[envc]; envc++)
        for (char *p = env[envc]; *p; p++) s = s * 31 + (unsigned char)*p + envc;
    out[0] = argc;
    out[1] = envc;
    out[2] = s;
}
HELPER(sum) {
    unsigned long out[3];
    sum(argc, argv, environ, out);
    write(1, out, sizeof out);
}

// Execute and compare what the other side saw; the errno of the exec if it failed.
static int pass(char **argv, char **env) {
    int fds[2], argc = 0;
    CHECK_OK(pipe(fds));
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        dup2(fds[1], 1);
        syscall(SYS_execve, check_self, argv, env);
        _exit(errno);
    }
    close(fds[1]);
    unsigned long got[3] = {0}, want[3];
    ssize_t n = read(fds[0], got, sizeof got);
    close(fds[0]);
    int status;
    CHECK_EQ(waitpid(p, &status, 0), p);
    if (n == 0) return WEXITSTATUS(status);
    CHECK_EQ(n, sizeof got);
    while (argv[argc]) argc++;
    sum(argc, argv, env, want);
    for (int i = 0; i < 3; i++) CHECK_EQ(got[i], want[i]);
    CHECK_EQ(status, 0);
    return 0;
}

static char *many[200004];
static void fill(int n, char *text) {
    many[0] = "x";
    many[1] = "@sum";
    for (int i = 2; i < n; i++) many[i] = text;
    many[n] = NULL;
}

CASE(ordinary) {
    char *argv[] = {"x", "@sum", "one", "", "three \x80\xff\n", NULL}, *env[] = {"A=1", "B", "=", "", NULL};
    CHECK_EQ(pass(argv, env), 0);
    CHECK_EQ(pass(argv, env + 4), 0);
}

CASE(thousands_of_arguments) {
    fill(5000, "argument");
    CHECK_EQ(pass(many, (char *[]){NULL}), 0);
    // And as environment.
    CHECK_EQ(pass((char *[]){"x", "@sum", NULL}, many), 0);
}

CASE(one_string_of_128_kib) {
    // MAX_ARG_STRLEN is 32 pages, with the NUL.
    static char text[131073 + 1];
    memset(text, 'a', sizeof text);
    text[131071] = 0;
    char *argv[] = {"x", "@sum", text, NULL}, *env[] = {text, NULL};
    CHECK_EQ(pass(argv, env + 1), 0);
    CHECK_EQ(pass((char *[]){"x", "@sum", NULL}, env), 0);
    text[131071] = 'a';
    text[131072] = 0;
    CHECK_EQ(pass(argv, env + 1), E2BIG);
    CHECK_EQ(pass((char *[]){"x", "@sum", NULL}, env), E2BIG);
}

static void stack_limit(rlim_t soft) {
    struct rlimit l;
    CHECK_OK(getrlimit(RLIMIT_STACK, &l));
    l.rlim_cur = soft;
    CHECK_OK(setrlimit(RLIMIT_STACK, &l));
}

CASE(total_is_a_quarter_of_the_stack) {
    stack_limit(8 << 20);
    fill(15, NULL);
    static char text[131000];
    memset(text, 'a', sizeof text - 1);
    fill(17, text);  // 15 * 128 KiB: just below 2 MiB
    CHECK_EQ(pass(many, (char *[]){NULL}), 0);
    fill(20, text);
    CHECK_EQ(pass(many, (char *[]){NULL}), E2BIG);
    // A larger stack takes more, up to 6 MiB (three quarters of _STK_LIM).
    struct rlimit l;
    CHECK_OK(getrlimit(RLIMIT_STACK, &l));
    if (l.rlim_max < 64 << 20) return;
    stack_limit(16 << 20);
    CHECK_EQ(pass(many, (char *[]){NULL}), 0);
    fill(32, text);
    CHECK_EQ(pass(many, (char *[]){NULL}), 0);
    fill(36, text);
    CHECK_EQ(pass(many, (char *[]){NULL}), E2BIG);
    stack_limit(64 << 20);
    fill(47, text);
    CHECK_EQ(pass(many, (char *[]){NULL}), 0);
    fill(52, text);
    CHECK_EQ(pass(many, (char *[]){NULL}), E2BIG);
}

CASE(pointers_count_too) {
    // Each argument costs its pointer besides its string, so 200000 empty ones exceed 1.5 MiB of 2.
    stack_limit(8 << 20);
    fill(200000, "");
    CHECK_EQ(pass(many, (char *[]){NULL}), 0);
    fill(200000, "aa");
    CHECK_EQ(pass(many, (char *[]){NULL}), E2BIG);
}

CASE(at_least_128_kib_with_a_small_stack) {
    stack_limit(256 << 10);
    static char text[30000];
    memset(text, 'a', sizeof text - 1);
    fill(5, text);  // 90 KB: more than a quarter of the stack, but ARG_MAX is a minimum
    CHECK_EQ(pass(many, (char *[]){NULL}), 0);
    fill(8, text);
    CHECK_EQ(pass(many, (char *[]){NULL}), E2BIG);
}

static void on_usr1(int sig CHECK_USED) {}

CASE(a_failed_exec_leaves_everything) {
    static char text[131000];
    memset(text, 'a', sizeof text - 1);
    fill(100, text);
    signal(SIGUSR1, on_usr1);
    int fd = CHECK_OK(open("/", O_RDONLY | O_CLOEXEC));
    CHECK_ERRNO(syscall(SYS_execve, check_self, many, NULL), E2BIG);
    CHECK_OK(fcntl(fd, F_GETFD));
    struct sigaction act;
    CHECK_OK(sigaction(SIGUSR1, NULL, &act));
    CHECK(act.sa_handler == on_usr1);
}

CASE(proc_cmdline_and_environ) {
    int fds[2];
    CHECK_OK(pipe(fds));
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        dup2(fds[1], 1);
        char *argv[] = {"my name", "@cmdline", "", "last", NULL}, *env[] = {"ONE=1", "TWO=2", NULL};
        syscall(SYS_execve, check_self, argv, env);
        _exit(1);
    }
    CHECK_EXIT(p, 0);
    char text[200];
    ssize_t n = CHECK_OK(read(fds[0], text, sizeof text));
    CHECK_EQ(n, 8 + 9 + 1 + 5 + 12);
    CHECK_EQ(memcmp(text, "my name\0@cmdline\0\0last\0ONE=1\0TWO=2", 35), 0);
}
HELPER(cmdline) {
    char text[200];
    int a = CHECK_OK(open("/proc/self/cmdline", O_RDONLY)), b = CHECK_OK(open("/proc/self/environ", O_RDONLY));
    ssize_t n = CHECK_OK(read(a, text, sizeof text));
    n += CHECK_OK(read(b, text + n, sizeof text - n));
    write(1, text, n);
}

MAIN
