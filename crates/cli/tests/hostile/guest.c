// A hostile guest: each case tries one thing and says what came of it. Built static, run by ../hostile.rs.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <ucontext.h>
#include <unistd.h>

static void say(const char *what, long result) {
    printf("%s %ld\n", what, result);
    fflush(stdout);
}

// Runs a case in a child: its wait status.
static int in_child(void (*run)(long), long arg) {
    int status = 0;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(10);
        run(arg);
        _exit(0);
    }
    waitpid(pid, &status, 0);
    return status;
}

static char *low_path(const char *path) {
    char *low = mmap((void *)0x10000000, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    return strcpy(low, path);
}

static void int80(long path) {
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "0"(39L), "b"(path), "c"(0755L) : "memory", "r8", "r9", "r10", "r11");
    say("int80 mkdir", result);
}

static void sysenter(long path) {
    __asm__ volatile("mov %%rsp, %%rbp; sysenter" : : "a"(39L), "b"(path), "c"(0755L) : "memory");
}

static void x32(long path) {
    say("x32 mkdir", syscall(0x40000000 | SYS_mkdir, path, 0755) < 0 ? -errno : 0);
    say("high mkdir", syscall(0x100000000 | SYS_mknod, 0, 0, 0) < 0 ? -errno : 0);
}

static void vsyscall(long at) {
    long (*call)(void *, void *) = (void *)at;
    long time[2] = {0};
    call(time, NULL);
}

// What the handler changes in its frame before it returns.
static const struct { int reg; uint64_t clear, set; } forgeries[] = {
    {REG_CSGSFS, 0xffff, 0x10},           // the host kernel's code
    {REG_CSGSFS, 0xffff, 0x23},           // 32-bit code
    {REG_CSGSFS, 0xffff, 0x2b},           // data as code
    {REG_CSGSFS, 0xffff, 0},
    {REG_CSGSFS, 0xffffULL << 48, 0x18ULL << 48}, // the host kernel's stack segment
    {REG_CSGSFS, 0xffffULL << 48, 0},
    {REG_EFL, 0, 0x100},                  // TF
    {REG_EFL, 0, 0x400},                  // DF
    {REG_EFL, 0, 0x4000},                 // NT
    {REG_EFL, 0, 0x40000},                // AC
    {REG_EFL, 0, 0x3000},                 // IOPL
    {REG_EFL, 0x200, 0},                  // IF
    {REG_EFL, 0, 0x20000},                // VM
    {REG_EFL, 0, ~0ULL},
    {REG_RIP, ~0ULL, 0x8000000000000000}, // not canonical
    {REG_RIP, ~0ULL, 0xffffffff81000000}, // the host kernel's text
    {REG_RIP, ~0ULL, 0x7fffffffe000},     // above the guest's range
    {REG_RSP, ~0ULL, 0x8000000000000000},
};

static long chosen;

static void forge(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    greg_t *reg = &((ucontext_t *)context)->uc_mcontext.gregs[forgeries[chosen].reg];
    *reg = (*reg & ~forgeries[chosen].clear) | forgeries[chosen].set;
}

static void forged_frame(long which) {
    struct sigaction action = {.sa_sigaction = forge, .sa_flags = SA_SIGINFO};
    chosen = which;
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    // A call with whatever flags there are now.
    syscall(SYS_getppid);
}

// Every kind of privilege that a file can have.
static void privileges(void) {
    int fd = open("/file", O_CREAT | O_RDWR, 0755);
    say("open", fd < 0 ? -errno : 0);
    say("fchmod", fchmod(fd, 06755) ? -errno : 0);
    say("chown", chown("/file", 1234, 5678) ? -errno : 0);
    say("chmod", chmod("/file", 06755) ? -errno : 0);
    static const unsigned char caps[20] = {1, 0, 0, 2, 0xff, 0xff, 0xff, 0xff};
    say("setxattr", setxattr("/file", "security.capability", caps, sizeof caps, 0) ? -errno : 0);
    say("mknod", mknod("/device", S_IFCHR | 0666, makedev(1, 1)) ? -errno : 0);
    say("mkfifo", mkfifo("/fifo", 0666) ? -errno : 0);
    say("mkdir", mkdir("/set-id", 02777) ? -errno : 0);
    chmod("/set-id", 03777);
    struct stat s;
    if (stat("/file", &s) == 0) printf("inside: mode %o owner %u:%u\n", s.st_mode & 07777, s.st_uid, s.st_gid);
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    if (strcmp(argv[1], "entries") == 0) {
        long path = (long)low_path(argv[2]);
        in_child(int80, path);
        in_child(sysenter, path);
        in_child(x32, path);
        for (long at = 0xffffffffff600000; at < (long)0xffffffffff601000; at += 0x400) in_child(vsyscall, at);
        say("there", access(argv[2], F_OK) == 0);
    } else if (strcmp(argv[1], "frames") == 0) {
        for (unsigned n = 0; n < sizeof forgeries / sizeof *forgeries; n++) {
            int status = in_child(forged_frame, n);
            printf("frame %u: %s %d\n", n, WIFSIGNALED(status) ? "signal" : "exit",
                   WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        }
    } else if (strcmp(argv[1], "privileges") == 0) {
        privileges();
    } else if (strcmp(argv[1], "pause") == 0) {
        printf("ready\n");
        fflush(stdout);
        fork();
        fork();
        pause();
    }
    printf("alive\n");
    return 0;
}
