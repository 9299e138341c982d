// build: static
// execve's and execveat's errors, PT_INTERP's among them; ETXTBSY; execveat's flags.
#include "elf.h"

static char *argv[] = {"x", NULL}, *envp[] = {NULL};
#define EXEC(PATH) run_path(PATH, argv, envp)

static const char *file(const char *name, const char *content, size_t len, int mode) {
    const char *path = TMP(name);
    unlink(path);
    int fd = CHECK_OK(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700));
    CHECK_EQ(write(fd, content, len), (ssize_t)len);
    CHECK_OK(fchmod(fd, mode));
    CHECK_OK(close(fd));
    return path;
}

CASE(path_errors) {
    char name[5000];
    CHECK_EQ(EXEC("/no/such/file"), -ENOENT);
    CHECK_EQ(EXEC(""), -ENOENT);
    CHECK_EQ(EXEC("/proc/self/status/x"), -ENOTDIR);
    memset(name, 'n', sizeof name);
    name[0] = '/';
    name[4999] = 0;
    CHECK_EQ(EXEC(name), -ENAMETOOLONG);
    name[300] = 0;
    CHECK_EQ(EXEC(name), -ENAMETOOLONG);
    CHECK_OK(symlink("loop", TMP("loop")));
    CHECK_EQ(EXEC(TMP("loop")), -ELOOP);
    CHECK_EQ(EXEC("/"), -EACCES);
    CHECK_EQ(EXEC(TMP(".")), -EACCES);
    CHECK_OK(mkfifo(TMP("fifo"), 0777));
    CHECK_EQ(EXEC(TMP("fifo")), -EACCES);
    CHECK_EQ(EXEC("/dev/null"), -EACCES);
}

CASE(permissions) {
    SIMPLE(ET_EXEC, exit7);
    const char *path = image_write("p");
    CHECK_EQ(EXEC(path), 7 << 8);
    CHECK_OK(chmod(path, 0644));
    CHECK_EQ(EXEC(path), -EACCES);  // for root as well: no x bit at all
    CHECK_OK(chmod(path, 0100));
    CHECK_EQ(EXEC(path), 7 << 8);   // x without r is enough
    CHECK_OK(chmod(path, 0001));
    CHECK_EQ(EXEC(path), geteuid() == 0 ? 7 << 8 : -EACCES);
    CHECK_OK(mkdir(TMP("d"), 0700));
    const char *inner = image_write("d/q");
    CHECK_OK(chmod(TMP("d"), 0600));
    CHECK_EQ(EXEC(inner), geteuid() == 0 ? 7 << 8 : -EACCES);
    CHECK_OK(chmod(TMP("d"), 0700));
}

CASE(formats) {
    CHECK_EQ(EXEC(file("empty", "", 0, 0755)), -ENOEXEC);
    CHECK_EQ(EXEC(file("text", "hello, world\n", 13, 0755)), -ENOEXEC);
    CHECK_EQ(EXEC(file("zero", "\0\0\0\0", 4, 0755)), -ENOEXEC);
    CHECK_EQ(EXEC(file("magic", "\x7f""ELF", 4, 0755)), -ENOEXEC);
    CHECK_EQ(EXEC(file("aout", "\x07\x01\x64\x00", 4, 0755)), -ENOEXEC);
}

CASE(symlinks_and_relative_paths) {
    SIMPLE(ET_EXEC, exit7);
    image_write("target");
    CHECK_OK(symlink("target", TMP("link")));
    CHECK_EQ(EXEC(TMP("link")), 7 << 8);
    CHECK_OK(chdir(TMP(".")));
    CHECK_EQ(EXEC("./target"), 7 << 8);
    CHECK_EQ(EXEC("target"), 7 << 8);
    CHECK_EQ(EXEC("link/"), -ENOTDIR);
}

CASE(text_file_busy) {
    SIMPLE(ET_EXEC, exit7);
    const char *path = image_write("busy");
    int fd = CHECK_OK(open(path, O_WRONLY | O_CLOEXEC));
    CHECK_EQ(EXEC(path), -ETXTBSY);
    CHECK_OK(close(fd));
    CHECK_EQ(EXEC(path), 7 << 8);
    // Open for reading is fine, and so is open for writing by another name that was closed.
    fd = CHECK_OK(open(path, O_RDONLY | O_CLOEXEC));
    CHECK_EQ(EXEC(path), 7 << 8);
}

HELPER(wait_for_end) {
    char c;
    write(1, "r", 1);
    read(0, &c, 1);
}

CASE(a_running_program_cannot_be_written) {
    const char *copy = TMP("running");
    static char bytes[4 << 20];
    int in = CHECK_OK(open(check_self, O_RDONLY)), out = CHECK_OK(open(copy, O_WRONLY | O_CREAT | O_CLOEXEC, 0755)), fds[2], go[2];
    ssize_t n = CHECK_OK(read(in, bytes, sizeof bytes));
    CHECK_EQ(write(out, bytes, n), n);
    CHECK_OK(close(out));
    CHECK_OK(pipe(fds));
    CHECK_OK(pipe(go));
    pid_t p = CHECK_OK(fork());
    if (p == 0) {
        dup2(go[0], 0);
        dup2(fds[1], 1);
        close(go[1]);
        execl(copy, "x", "@wait_for_end", NULL);
        FAIL("exec");
    }
    char c;
    CHECK_EQ(read(fds[0], &c, 1), 1);
    CHECK_ERRNO(open(copy, O_WRONLY), ETXTBSY);
    CHECK_ERRNO(open(copy, O_RDWR), ETXTBSY);
    CHECK_ERRNO(truncate(copy, 0), ETXTBSY);
    CHECK_OK(open(copy, O_RDONLY));
    CHECK_OK(unlink(copy));  // but removed
    CHECK_OK(close(go[1]));
    CHECK_EXIT(p, 0);
}

static void interp(const char *path, size_t len) {
    image_start(ET_EXEC, exit7, exit7_end - exit7);
    memcpy(image.bytes + 0x800, path, len);
    image.size = 0x800 + len;
    segment(PT_INTERP, PF_R, 0x800, BASE + 0x800, len, len);
    segment(PT_LOAD, PF_R | PF_X, 0, BASE, image.size, image.size);
}
#define INTERP(TEXT) interp(TEXT, strlen(TEXT) + 1)

CASE(interpreters) {
    INTERP("/no/such/loader.so");
    REFUSED(ENOENT);
    INTERP("/");
    REFUSED(EACCES);
    INTERP("/proc/self/status/x");
    REFUSED(ENOTDIR);
    interp("/bin/sh", 7);  // without its NUL
    REFUSED(ENOEXEC);
    interp("x", 1);
    REFUSED(ENOEXEC);
    INTERP("/x");
    image.ph[0].p_filesz = 5000;  // longer than PATH_MAX
    REFUSED(ENOEXEC);
    INTERP("/x");
    image.ph[0].p_offset = 0x100000;
    REFUSED(EIO);
}

CASE(interpreters_that_are_no_elf) {
    const char *text = file("text", "#!/bin/sh\nexit 0\n                                                                ", 80, 0755);
    INTERP(text);
    REFUSED(ELIBBAD);
    text = file("short", "\x7f""ELF", 4, 0755);
    INTERP(text);
    REFUSED(EIO);
    SIMPLE(ET_DYN, exit9);
    image.head->e_machine = EM_ARM;
    const char *arm = image_write("arm");
    INTERP(arm);
    REFUSED(ELIBBAD);
    text = file("no-x", "x", 1, 0644);
    INTERP(text);
    REFUSED(EACCES);
}

CASE(an_interpreter_of_our_own) {
    SIMPLE(ET_DYN, exit9);
    const char *loader = image_write("loader");
    INTERP(loader);
    RUNS(9);  // the interpreter is entered, not the program
    SIMPLE(ET_DYN, dump_stack);
    loader = image_write("loader2");
    INTERP(loader);
    run_dump(argv, envp);
    CHECK_EQ(dumped_aux(AT_ENTRY), BASE + CODE);
    CHECK_EQ(dumped_aux(AT_PHDR), BASE + 64);
    CHECK_NE(dumped_aux(AT_BASE), 0);
    CHECK_EQ(dumped_aux(AT_BASE) % 4096, 0);
    // The first of two counts, and it may be ET_EXEC.
    image_start(ET_EXEC, exit9, exit9_end - exit9);
    image.head->e_entry += 0x1000000;
    segment(PT_LOAD, PF_R | PF_X, 0, BASE + 0x1000000, image.size, image.size);
    loader = image_write("loader3");
    INTERP(loader);
    segment(PT_INTERP, PF_R, 0, 0, 3, 3);
    RUNS(9);
}

static long execveat_(int fd, const char *path, int flags) { return syscall(SYS_execveat, fd, path, argv, envp, flags); }
#define RUNS_AT(FD, PATH, FLAGS)                               \
    do {                                                       \
        pid_t p_ = CHECK_OK(fork());                           \
        if (p_ == 0) {                                         \
            execveat_(FD, PATH, FLAGS);                        \
            FAIL("execveat: %s", check_errno_name(errno));     \
        }                                                      \
        CHECK_EXIT(p_, 7);                                     \
    } while (0)

CASE(execveat_forms) {
    SIMPLE(ET_EXEC, exit7);
    const char *path = image_write("at");
    int dir = CHECK_OK(open(TMP("."), O_RDONLY | O_DIRECTORY)), fd = CHECK_OK(open(path, O_RDONLY | O_CLOEXEC));
    int opath = CHECK_OK(open(path, O_PATH | O_CLOEXEC));
    CHECK_OK(symlink("at", TMP("ln")));
    RUNS_AT(dir, "at", 0);
    RUNS_AT(AT_FDCWD, path, 0);
    RUNS_AT(-1, path, 0);  // absolute: the descriptor is not looked at
    RUNS_AT(fd, "", AT_EMPTY_PATH);
    RUNS_AT(opath, "", AT_EMPTY_PATH);
    RUNS_AT(dir, "ln", 0);
    RUNS_AT(dir, "at", AT_SYMLINK_NOFOLLOW);
    CHECK_ERRNO(execveat_(dir, "ln", AT_SYMLINK_NOFOLLOW), ELOOP);
    CHECK_ERRNO(execveat_(fd, "", 0), ENOENT);
    CHECK_ERRNO(execveat_(dir, "", AT_EMPTY_PATH), EACCES);
    CHECK_ERRNO(execveat_(fd, "at", 0), ENOTDIR);
    CHECK_ERRNO(execveat_(-1, "at", 0), EBADF);
    CHECK_ERRNO(execveat_(-1, "", AT_EMPTY_PATH), EBADF);
    CHECK_ERRNO(execveat_(dir, "none", 0), ENOENT);
    CHECK_ERRNO(execveat_(dir, "at", 0x8000), EINVAL);
    CHECK_ERRNO(execveat_(dir, (char *)8, 0), EFAULT);
    // A memfd has no name but can be executed.
    int m = CHECK_OK(syscall(SYS_memfd_create, "program", MFD_CLOEXEC));
    CHECK_EQ(write(m, image.bytes, image.size), (ssize_t)image.size);
    RUNS_AT(m, "", AT_EMPTY_PATH);  // though open for writing: it was not opened by name
    char name[64];
    snprintf(name, sizeof name, "/proc/self/fd/%d", m);
    int r = CHECK_OK(open(name, O_RDONLY | O_CLOEXEC));
    CHECK_OK(close(m));
    RUNS_AT(r, "", AT_EMPTY_PATH);
}

CASE(execveat_name_for_the_program) {
    // AT_EXECFN is /dev/fd/N, or /dev/fd/N/PATH for a relative path.
    SIMPLE(ET_EXEC, dump_stack);
    const char *path = image_write("named");
    int fds[2], fd = CHECK_OK(open(path, O_RDONLY)), dir = CHECK_OK(open(TMP("."), O_RDONLY));
    static const struct { int by_dir; } t[] = {{0}, {1}};
    for (int i = 0; i < 2; i++) {
        CHECK_OK(pipe(fds));
        pid_t p = CHECK_OK(fork());
        if (p == 0) {
            dup2(fds[1], 1);
            t[i].by_dir ? execveat_(dir, "named", 0) : execveat_(fd, "", AT_EMPTY_PATH);
            _exit(1);
        }
        CHECK_EXIT(p, 0);
        CHECK_GT(read(fds[0], dumped, sizeof dumped), 100);
        char want[64];
        snprintf(want, sizeof want, t[i].by_dir ? "/dev/fd/%d/named" : "/dev/fd/%d", t[i].by_dir ? dir : fd);
        // The strings are not in the dump: the name's length shows in the distance to the end of the stack area.
        CHECK_EQ(((dumped_aux(AT_EXECFN) + strlen(want) + 1) & 4095), 4096 - 8);
    }
}

MAIN
