// build: static -pthread
// prctl's simple settings, the name of a task, personality, and arguments that must be refused.
#include "clone.h"
#include <pthread.h>
#include <sys/personality.h>
#include <sys/prctl.h>

static int read_file(const char *path, char *text, int size) {
    int fd = CHECK_OK(open(path, O_RDONLY | O_CLOEXEC));
    int n = CHECK_OK(read(fd, text, size - 1));
    close(fd);
    text[n] = 0;
    return n;
}

CASE(name) {
    char text[64];
    CHECK_OK(prctl(PR_GET_NAME, text));
    CHECK_EQ(strncmp("process-prctl", text, 5) == 0 || text[0] != 0, 1);
    CHECK_OK(prctl(PR_SET_NAME, "short"));
    CHECK_OK(prctl(PR_GET_NAME, text));
    CHECK_STR(text, "short");
    // Cut to 15 bytes, the buffer always has 16.
    memset(text, 'x', sizeof text);
    CHECK_OK(prctl(PR_SET_NAME, "a-name-that-is-too-long"));
    CHECK_OK(prctl(PR_GET_NAME, text));
    CHECK_STR(text, "a-name-that-is-");
    CHECK_EQ(text[16], 'x');
    CHECK_ERRNO(prctl(PR_SET_NAME, 8), EFAULT);
    CHECK_ERRNO(prctl(PR_GET_NAME, 8), EFAULT);
}

CASE(name_in_proc) {
    char text[512];
    CHECK_OK(prctl(PR_SET_NAME, "odd ) (name"));
    read_file("/proc/self/comm", text, sizeof text);
    CHECK_STR(text, "odd ) (name\n");
    read_file("/proc/self/stat", text, sizeof text);
    CHECK(strstr(text, " (odd ) (name) R ") != NULL);
    read_file("/proc/self/status", text, sizeof text);
    CHECK_EQ(strncmp(text, "Name:\todd ) (name\n", 18), 0);
    // Writing comm is the same as PR_SET_NAME.
    int fd = CHECK_OK(open("/proc/self/comm", O_WRONLY));
    CHECK_EQ(write(fd, "written", 7), 7);
    CHECK_OK(prctl(PR_GET_NAME, text));
    CHECK_STR(text, "written");
    IN_CHILD({
        char t[16];
        CHECK_OK(prctl(PR_GET_NAME, t));
        CHECK_STR(t, "written");
    });
}

static void *named_thread(void *arg) {
    char text[64], path[64];
    CHECK_OK(prctl(PR_GET_NAME, text));
    CHECK_STR(text, "leader");
    CHECK_OK(prctl(PR_SET_NAME, "worker"));
    snprintf(path, sizeof path, "/proc/self/task/%d/comm", tid());
    read_file(path, text, sizeof text);
    CHECK_STR(text, "worker\n");
    return arg;
}

CASE(name_is_per_thread) {
    char text[64];
    pthread_t t;
    CHECK_OK(prctl(PR_SET_NAME, "leader"));
    CHECK_EQ(pthread_create(&t, NULL, named_thread, NULL), 0);
    CHECK_EQ(pthread_join(t, NULL), 0);
    CHECK_OK(prctl(PR_GET_NAME, text));
    CHECK_STR(text, "leader");
}

CASE(dumpable) {
    CHECK_EQ(prctl(PR_GET_DUMPABLE), 1);
    CHECK_OK(prctl(PR_SET_DUMPABLE, 0));
    CHECK_EQ(prctl(PR_GET_DUMPABLE), 0);
    IN_CHILD(CHECK_EQ(prctl(PR_GET_DUMPABLE), 0));
    CHECK_ERRNO(prctl(PR_SET_DUMPABLE, 2), EINVAL);
    CHECK_ERRNO(prctl(PR_SET_DUMPABLE, 3), EINVAL);
    CHECK_OK(prctl(PR_SET_DUMPABLE, 1));
    CHECK_EQ(prctl(PR_GET_DUMPABLE), 1);
}

CASE(keepcaps) {
    CHECK_EQ(prctl(PR_GET_KEEPCAPS), 0);
    CHECK_OK(prctl(PR_SET_KEEPCAPS, 1));
    CHECK_EQ(prctl(PR_GET_KEEPCAPS), 1);
    IN_CHILD(CHECK_EQ(prctl(PR_GET_KEEPCAPS), 1));
    CHECK_ERRNO(prctl(PR_SET_KEEPCAPS, 2), EINVAL);
    CHECK_OK(prctl(PR_SET_KEEPCAPS, 0));
}

CASE(no_new_privs) {
    char text[4096];
    if (geteuid() == 0) CHECK_EQ(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 0);
    CHECK_ERRNO(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0), EINVAL);
    CHECK_ERRNO(prctl(PR_SET_NO_NEW_PRIVS, 1, 1, 0, 0), EINVAL);
    CHECK_ERRNO(prctl(PR_GET_NO_NEW_PRIVS, 1, 0, 0, 0), EINVAL);
    CHECK_OK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    CHECK_EQ(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 1);
    IN_CHILD(CHECK_EQ(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 1));
    read_file("/proc/self/status", text, sizeof text);
    CHECK(strstr(text, "\nNoNewPrivs:\t1\n") != NULL);
}

CASE(securebits_and_seccomp) {
    CHECK_EQ(prctl(PR_GET_SECUREBITS), 0);
    if (geteuid() != 0) CHECK_ERRNO(prctl(PR_SET_SECUREBITS, 1), EPERM);
    CHECK_EQ(prctl(PR_GET_SECCOMP), 0);
}

CASE(timerslack) {
    long was = CHECK_OK(prctl(PR_GET_TIMERSLACK));
    CHECK_GT(was, 0);
    CHECK_OK(prctl(PR_SET_TIMERSLACK, 12345));
    CHECK_EQ(prctl(PR_GET_TIMERSLACK), 12345);
    IN_CHILD({
        CHECK_EQ(prctl(PR_GET_TIMERSLACK), 12345);
        CHECK_OK(prctl(PR_SET_TIMERSLACK, 0));  // back to the default, the value at creation
        CHECK_EQ(prctl(PR_GET_TIMERSLACK), 12345);
    });
}

CASE(thp_and_tsc) {
    int v = 0;
    CHECK_EQ(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0), 0);
    CHECK_OK(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0));
    CHECK_EQ(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0), 1);
    CHECK_OK(prctl(PR_GET_TSC, &v));
    CHECK_EQ(v, PR_TSC_ENABLE);
    CHECK_EQ(prctl(PR_GET_TIMING), PR_TIMING_STATISTICAL);
}

CASE(capability_bounding_reads) {
    for (int cap = 0; cap <= 37; cap++) {
        int v = CHECK_OK(prctl(PR_CAPBSET_READ, cap));
        CHECK(v == 0 || v == 1);
    }
    CHECK_ERRNO(prctl(PR_CAPBSET_READ, 64), EINVAL);
    CHECK_ERRNO(prctl(PR_CAPBSET_READ, -1), EINVAL);
    if (geteuid() != 0) CHECK_ERRNO(prctl(PR_CAPBSET_DROP, 0), EPERM);
    CHECK_ERRNO(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, 64, 0, 0), EINVAL);
    CHECK_EQ(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, 10, 0, 0), 0);
    CHECK_OK(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0));
    CHECK_ERRNO(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, 10, 0, 0), EPERM);  // not inheritable
}

CASE(tid_address) {
    int *addr = NULL;
    CHECK_EQ(syscall(SYS_set_tid_address, &addr), tid());
    if (prctl(PR_GET_TID_ADDRESS, &addr) == 0) CHECK_EQ((long)addr, (long)&addr);
    CHECK_EQ(syscall(SYS_set_tid_address, NULL), tid());
}

CASE(set_vma_name) {
    char *p = CHECK_MAP(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (prctl(0x53564d41 /* PR_SET_VMA */, 0, p, 4096, "a name") == -1) {
        CHECK_EQ(errno, EINVAL);  // CONFIG_ANON_VMA_NAME is off
        SKIP("no names for anonymous memory");
    }
    static char text[1 << 17];
    char want[64];
    snprintf(want, sizeof want, "[anon:a name]");
    read_file("/proc/self/maps", text, sizeof text);
    CHECK(strstr(text, want) != NULL);
}

CASE(unknown_options) {
    CHECK_ERRNO(prctl(0x7777), EINVAL);
    CHECK_ERRNO(prctl(-1), EINVAL);
    CHECK_ERRNO(prctl(0), EINVAL);
}

CASE(personality_get_and_set) {
    int was = CHECK_OK(personality(0xffffffff));
    CHECK_EQ(personality(0xffffffff), was);
    CHECK_EQ(personality(was | ADDR_NO_RANDOMIZE), was);
    CHECK_EQ(personality(0xffffffff), was | ADDR_NO_RANDOMIZE);
    IN_CHILD(CHECK_EQ(personality(0xffffffff), was | ADDR_NO_RANDOMIZE));
    CHECK_EQ(personality(PER_LINUX), was | ADDR_NO_RANDOMIZE);
    CHECK_EQ(personality(0xffffffff), PER_LINUX);
}

HELPER(stack_address) {
    long here = (long)&argc & -4096;
    write(1, &here, sizeof here);
}

CASE(no_randomize_is_kept_over_exec) {
    long seen[3];
    personality(ADDR_NO_RANDOMIZE);
    for (int i = 0; i < 3; i++) {
        int fds[2];
        CHECK_OK(pipe(fds));
        pid_t p = CHECK_OK(fork());
        if (p == 0) {
            dup2(fds[1], 1);
            execl(check_self, "x", "@stack_address", NULL);
            FAIL("exec");
        }
        CHECK_EQ(read(fds[0], &seen[i], 8), 8);
        CHECK_EXIT(p, 0);
    }
    CHECK_EQ(seen[0], seen[1]);
    CHECK_EQ(seen[1], seen[2]);
}

MAIN
