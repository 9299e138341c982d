// build: static
// #! scripts: what the interpreter is given, how deep they nest, what is refused.
#include "../check.h"

// What a script's interpreter saw: check_self's helper writes its arguments, each with a newline, to descriptor 1. The
// helper is chosen by argv[1], so scripts name it as their optional argument.
HELPER(show) {
    for (int i = 0; i < argc; i++) dprintf(1, "%s\n", argv[i]);
}

static const char *script(const char *name, const char *text, size_t len) {
    const char *path = TMP(name);
    unlink(path);
    int fd = CHECK_OK(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755));
    CHECK_EQ(write(fd, text, len), (ssize_t)len);
    CHECK_OK(fchmod(fd, 0755));
    CHECK_OK(close(fd));
    return path;
}
static char text[1000], out[5000], want[5000];
#define SCRIPT(NAME, ...) (snprintf(text, sizeof text, __VA_ARGS__), script(NAME, text, strlen(text)))

// The exit status or -errno; what it wrote is in `out`.
static int run(const char *path, char *const argv[]) {
    int fds[2], failed[2], e, status;
    CHECK_OK(pipe(fds));
    CHECK_OK(pipe2(failed, O_CLOEXEC));
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        dup2(fds[1], 1);
        dup2(open("/dev/null", O_WRONLY), 2);
        char *env[] = {NULL};
        syscall(SYS_execve, path, argv, env);
        e = errno;
        write(failed[1], &e, sizeof e);
        _exit(1);
    }
    close(fds[1]);
    close(failed[1]);
    size_t n = 0;
    ssize_t got;
    while ((got = read(fds[0], out + n, sizeof out - 1 - n)) > 0) n += got;
    out[n] = 0;
    got = read(failed[0], &e, sizeof e);
    close(fds[0]);
    close(failed[0]);
    CHECK_EQ(waitpid(p, &status, 0), p);
    return got > 0 ? -e : WEXITSTATUS(status);
}
#define SHOWS(...)                                  \
    do {                                            \
        snprintf(want, sizeof want, __VA_ARGS__);   \
        CHECK_STR(out, want);                       \
    } while (0)

CASE(arguments) {
    char *argv[] = {"lost", "one", "two", NULL};
    const char *path = SCRIPT("s", "#!%s @show\nrest\n", check_self);
    CHECK_EQ(run(path, argv), 0);
    // The interpreter, its one argument, the script's path, then the arguments after the first.
    SHOWS("%s\n@show\n%s\none\ntwo\n", check_self, path);
    char *alone[] = {"x", NULL};
    CHECK_EQ(run(path, alone), 0);
    SHOWS("%s\n@show\n%s\n", check_self, path);
}

CASE(white_space) {
    char *argv[] = {"x", NULL};
    const char *path = SCRIPT("s", "#! \t %s \t @show  \t\n", check_self);
    CHECK_EQ(run(path, argv), 0);
    SHOWS("%s\n@show\n%s\n", check_self, path);  // trailing blanks go
    // No newline at the end of the file.
    path = SCRIPT("s", "#!%s @show", check_self);
    CHECK_EQ(run(path, argv), 0);
    SHOWS("%s\n@show\n%s\n", check_self, path);
}

CASE(one_argument_only) {
    // All the rest of the line is a single argument, inner blanks included: this one is no helper's name.
    char *argv[] = {"x", NULL};
    const char *path = SCRIPT("s", "#!/bin/sh -c echo a  b\nexit 3\n");
    struct stat st;
    if (stat("/bin/sh", &st) == -1) SKIP("no /bin/sh");
    CHECK_EQ(run(path, argv), 2);  // sh: illegal option
    path = SCRIPT("s", "#!/bin/sh -e\nfalse\nexit 0\n");
    CHECK_EQ(run(path, argv), 1);
    path = SCRIPT("s", "#!/bin/sh\necho \"$0 $#:$1:$2\"\nexit 5\n");
    char *more[] = {"x", "a b", "", NULL};
    CHECK_EQ(run(path, more), 5);
    SHOWS("%s 2:a b:\n", path);
}

CASE(nesting) {
    char *argv[] = {"x", "end", NULL}, name[16];
    static char kept[7][250];
    strcpy(kept[0], SCRIPT("0", "#!%s @show\n", check_self));
    for (int i = 1; i < 7; i++) {
        snprintf(name, sizeof name, "%d", i);
        strcpy(kept[i], SCRIPT(name, "#!%.249s arg%d\n", kept[i - 1], i));
    }
    CHECK_EQ(run(kept[1], argv), 0);
    SHOWS("%s\n@show\n%s\narg1\n%s\nend\n", check_self, kept[0], kept[1]);
    CHECK_EQ(run(kept[4], argv), 0);  // five levels
    CHECK_EQ(run(kept[5], argv), -ELOOP);
}

CASE(a_script_that_names_itself) {
    char *argv[] = {"x", NULL};
    const char *path = SCRIPT("me", "#!%s\n", TMP("me"));
    CHECK_EQ(run(path, argv), -ELOOP);
}

CASE(bad_interpreters) {
    char *argv[] = {"x", NULL};
    CHECK_EQ(run(SCRIPT("s", "#!/no/such/interpreter\n"), argv), -ENOENT);
    CHECK_EQ(run(SCRIPT("s", "#!/\n"), argv), -EACCES);
    CHECK_EQ(run(SCRIPT("s", "#!/etc/passwd\n"), argv), -EACCES);
    CHECK_EQ(run(SCRIPT("s", "#!\n"), argv), -ENOEXEC);
    CHECK_EQ(run(SCRIPT("s", "#!   \t\n"), argv), -ENOEXEC);
    CHECK_EQ(run(SCRIPT("s", "#!"), argv), -EACCES);  // Linux takes the empty name for the current directory
    CHECK_EQ(run(SCRIPT("s", "# !/bin/sh\n"), argv), -ENOEXEC);
    CHECK_EQ(run(SCRIPT("s", " #!/bin/sh\n"), argv), -ENOEXEC);
    SCRIPT("text", "only text\n");
    CHECK_EQ(run(SCRIPT("s", "#!%s\n", TMP("text")), argv), -ENOEXEC);
    CHECK_EQ(run(SCRIPT("s", "#!/bin/sh\r\n"), argv), -ENOENT);  // the classic
}

CASE(permission_of_the_script) {
    char *argv[] = {"x", NULL};
    const char *path = SCRIPT("s", "#!%s @show\n", check_self);
    CHECK_OK(chmod(path, 0644));
    CHECK_EQ(run(path, argv), -EACCES);
    CHECK_OK(chmod(path, 0111));  // the kernel reads the line, not the caller
    CHECK_EQ(run(path, argv), 0);
}

CASE(long_lines) {
    // 256 bytes are looked at. An interpreter's path that does not end within them is refused, an argument is cut.
    char *argv[] = {"x", NULL};
    int n = snprintf(text, sizeof text, "#!%s ", check_self);
    memset(text + n, 'A', 600);
    memcpy(text + n, "@show", 5);
    strcpy(text + n + 600, "\n");
    const char *path = script("s", text, strlen(text));
    CHECK_EQ(run(path, argv), 125);  // "@showAAA…" is not a helper of ours: so the argument came, cut
    memset(text + 2, '/', 400);
    strcpy(text + 402, "bin/sh\n");
    CHECK_EQ(run(script("s", text, strlen(text)), argv), -ENOEXEC);
}

CASE(binary_rest) {
    char *argv[] = {"x", NULL};
    int n = snprintf(text, sizeof text, "#!%s @show\n", check_self);
    memset(text + n, 0, 100);
    CHECK_EQ(run(script("s", text, n + 100), argv), 0);
    // A NUL ends the line.
    n = snprintf(text, sizeof text, "#!%s", check_self);
    memcpy(text + n, "\0 @show\n", 8);
    CHECK_NE(run(script("s", text, n + 8), argv), -ENOEXEC);
}

HELPER(identity) {
    char name[64] = "", exe[4096] = "";
    int fd = CHECK_OK(open("/proc/self/comm", O_RDONLY));
    CHECK_GT(read(fd, name, sizeof name - 1), 0);
    CHECK_GT(readlink("/proc/self/exe", exe, sizeof exe - 1), 0);
    dprintf(1, "%s%s\n", name, exe);
}

CASE(comm_is_the_scripts_exe_the_interpreters) {
    char *argv[] = {"x", NULL}, exe[4096] = "";
    CHECK_EQ(run(SCRIPT("a-script", "#!%s @identity\n", check_self), argv), 0);
    CHECK_GT(readlink("/proc/self/exe", exe, sizeof exe - 1), 0);
    SHOWS("a-script\n%s\n", exe);
}

CASE(script_by_descriptor) {
    // The interpreter gets /dev/fd/N: so the descriptor must survive the exec.
    const char *path = SCRIPT("s", "#!%s @show\n", check_self);
    int fds[2], fd = CHECK_OK(open(path, O_RDONLY)), closing = CHECK_OK(open(path, O_RDONLY | O_CLOEXEC));
    char *argv[] = {"x", "y", NULL}, *env[] = {NULL};
    CHECK_OK(pipe(fds));
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        dup2(fds[1], 1);
        syscall(SYS_execveat, fd, "", argv, env, AT_EMPTY_PATH);
        FAIL("execveat");
    }
    CHECK_EXIT(p, 0);
    ssize_t n = CHECK_OK(read(fds[0], out, sizeof out - 1));
    out[n] = 0;
    SHOWS("%s\n@show\n/dev/fd/%d\ny\n", check_self, fd);
    CHECK_ERRNO(syscall(SYS_execveat, closing, "", argv, env, AT_EMPTY_PATH), ENOENT);
}

MAIN
