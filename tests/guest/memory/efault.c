// build: static
// Bad pointers at every kind of call: EFAULT, partial transfers, and nothing lost from streams.
#include "maps.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/vfs.h>

#define BAD ((void *)8)                     // never mapped
#define HIGH ((void *)0xffff888000000000ul) // the kernel's half
#define ODD ((void *)0x8000000000000000ul)  // not canonical

// Two pages, the second one gone; the address of the border.
static char *edge(void) {
    char *p = anon(2 * PAGE);
    memset(p, 'e', PAGE);
    CHECK_OK(munmap(p + PAGE, PAGE));
    return p + PAGE;
}

static const void *bad[] = {BAD, HIGH, ODD, (void *)-1ul, (void *)(1ul << 47), NULL};
#define EACH_BAD(P) for (void *P, **at_ = (void **)bad; at_ < (void **)bad + 5 && (P = *at_, 1); at_++)

CASE(reads_and_writes) {
    int fds[2], fd = file_of_pages(1);
    CHECK_OK(pipe(fds));
    CHECK_EQ(write(fds[1], "data", 4), 4);
    EACH_BAD(p) {
        CHECK_ERRNO(read(fds[0], p, 4), EFAULT);
        CHECK_ERRNO(write(fds[1], p, 4), EFAULT);
        CHECK_ERRNO(pread(fd, p, 4, 0), EFAULT);
        CHECK_ERRNO(pwrite(fd, p, 4, 0), EFAULT);
        CHECK_ERRNO(readv(fds[0], p, 1), EFAULT);
        CHECK_ERRNO(writev(fds[1], p, 1), EFAULT);
        struct iovec v = {p, 4};
        CHECK_ERRNO(readv(fds[0], &v, 1), EFAULT);
        CHECK_ERRNO(writev(fds[1], &v, 1), EFAULT);
    }
    char text[5] = "";
    CHECK_EQ(read(fds[0], text, 5), 4);
    CHECK_STR(text, "data");
    // A length of zero looks at no address, except that it must be a user's.
    CHECK_EQ(read(fds[0], BAD, 0), 0);
    CHECK_EQ(write(fds[1], BAD, 0), 0);
}

CASE(half_mapped_buffer_loses_nothing) {
    static char data[2 * PAGE], rest[2 * PAGE];
    char *e = edge();
    int fds[2];
    CHECK_OK(pipe(fds));
    for (int i = 0; i < 2 * (int)PAGE; i++) data[i] = i * 7;
    CHECK_EQ(write(fds[1], data, 2 * PAGE), 2 * PAGE);
    CHECK_EQ(read(fds[0], e - PAGE, 2 * PAGE), PAGE);
    CHECK_EQ(memcmp(e - PAGE, data, PAGE), 0);
    CHECK_ERRNO(read(fds[0], e, 10), EFAULT);
    CHECK_EQ(read(fds[0], rest, sizeof rest), PAGE);
    CHECK_EQ(memcmp(rest, data + PAGE, PAGE), 0);
}

CASE(pipe_transfer_across_an_edge) {
    // Linux moves a pipe by whole page buffers: what does not fit whole is EFAULT and stays. A count of what fits would do
    // as well; what must not happen is that bytes are lost or doubled.
    static char data[PAGE], rest[PAGE];
    char *e = edge();
    int fds[2];
    CHECK_OK(pipe(fds));
    for (int i = 0; i < (int)PAGE; i++) data[i] = i * 7;
    CHECK_EQ(write(fds[1], data, PAGE), PAGE);
    ssize_t got = read(fds[0], e - 100, PAGE);
    if (got == -1) CHECK_EQ(errno, EFAULT);
    else CHECK_EQ(got, 100);
    got = got == -1 ? 0 : got;
    CHECK_EQ(read(fds[0], rest, sizeof rest), PAGE - got);
    CHECK_EQ(memcmp(rest, data + got, PAGE - got), 0);
    memset(e - 100, 'w', 100);
    got = write(fds[1], e - 100, 300);
    if (got == -1) CHECK_EQ(errno, EFAULT);
    else CHECK_EQ(got, 100);
    got = got == -1 ? 0 : got;
    CHECK_EQ(write(fds[1], "!", 1), 1);
    CHECK_EQ(read(fds[0], rest, sizeof rest), got + 1);
    CHECK_EQ(rest[got], '!');
}

CASE(half_mapped_source_of_a_file) {
    char *e = edge();
    int fd = CHECK_OK(open(TMP("f"), O_RDWR | O_CREAT, 0600));
    CHECK_EQ(write(fd, e - 100, 300), 100);
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), 100);
    CHECK_EQ(pread(fd, e - 50, 100, 0), 50);
    CHECK_ERRNO(write(fd, e, 300), EFAULT);
    struct stat st;
    CHECK_OK(fstat(fd, &st));
    CHECK_EQ(st.st_size, 100);
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), 100);
}

CASE(vectors_across_a_hole) {
    char *e = edge(), a[8] = "", b[8] = "";
    int fd = CHECK_OK(open(TMP("v"), O_RDWR | O_CREAT, 0600));
    CHECK_EQ(write(fd, "0123456789abcdef", 16), 16);
    CHECK_OK(lseek(fd, 0, SEEK_SET));
    struct iovec v[] = {{a, 4}, {e - 2, 4}, {b, 4}};
    CHECK_EQ(readv(fd, v, 3), 6);
    CHECK_EQ(memcmp(a, "0123", 4), 0);
    CHECK_EQ(memcmp(e - 2, "45", 2), 0);
    CHECK_EQ(b[0], 0);
    CHECK_EQ(read(fd, a, 8), 8);
    CHECK_EQ(memcmp(a, "6789abcd", 8), 0);
    CHECK_EQ(writev(fd, v, 3), 6);
    // The vector itself over the edge.
    CHECK_ERRNO(writev(fd, (struct iovec *)(e - sizeof *v), 2), EFAULT);
    CHECK_ERRNO(readv(fd, v, -1), EINVAL);
    CHECK_ERRNO(readv(fd, v, 1025), EINVAL);
    v[0].iov_len = -1;
    CHECK_ERRNO(readv(fd, v, 1), EINVAL);
}

CASE(eventfd_and_socket_lose_nothing) {
    uint64_t count = 0;
    int ev = CHECK_OK(eventfd(5, EFD_NONBLOCK)), sv[2];
    CHECK_ERRNO(read(ev, BAD, 8), EFAULT);
    CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
    CHECK_EQ(write(sv[0], "stream", 6), 6);
    CHECK_ERRNO(read(sv[1], BAD, 6), EFAULT);
    char text[8] = "", *e = edge();
    CHECK_EQ(recv(sv[1], text, 8, 0), 6);
    CHECK_STR(text, "stream");
    CHECK_ERRNO(send(sv[0], BAD, 1, 0), EFAULT);
    CHECK_ERRNO(write(ev, BAD, 8), EFAULT);
    CHECK_OK(write(ev, &(uint64_t){2}, 8));
    CHECK_EQ(read(ev, &count, 8), 8);
    CHECK(count == 2 || count == 7);  // Linux itself takes the count before it copies
    CHECK_ERRNO(write(ev, e - 4, 8), EFAULT);
}

CASE(paths) {
    char *e = edge();
    struct stat st;
    EACH_BAD(p) {
        CHECK_ERRNO(open(p, O_RDONLY), EFAULT);
        CHECK_ERRNO(syscall(SYS_newfstatat, AT_FDCWD, p, &st, 0), EFAULT);
        CHECK_ERRNO(access(p, 0), EFAULT);
        CHECK_ERRNO(chdir(p), EFAULT);
        CHECK_ERRNO(mkdir(p, 0700), EFAULT);
        CHECK_ERRNO(unlink(p), EFAULT);
        CHECK_ERRNO(rename("/x", p), EFAULT);
        CHECK_ERRNO(readlink(p, (char *)&st, 10), EFAULT);
        CHECK_ERRNO(syscall(SYS_execve, p, NULL, NULL), EFAULT);
        CHECK_ERRNO(syscall(SYS_newfstatat, AT_FDCWD, "/", p, 0), EFAULT);
        CHECK_ERRNO(statfs("/", p), EFAULT);
        CHECK_ERRNO(syscall(SYS_getcwd, p, 100), EFAULT);
    }
    // A path that ends just before the edge is whole; one without its NUL there is not.
    strcpy(e - 2, "/");
    CHECK_OK(access(e - 2, 0));
    memcpy(e - 2, "/t", 2);
    CHECK_ERRNO(access(e - 2, 0), EFAULT);
    memset(e - PAGE, 'x', PAGE);
    CHECK_ERRNO(access(e - PAGE, 0), ENAMETOOLONG);  // PATH_MAX bytes without a NUL: not read further
}

CASE(structures_out) {
    EACH_BAD(p) {
        CHECK_ERRNO(syscall(SYS_uname, p), EFAULT);
        CHECK_ERRNO(syscall(SYS_sysinfo, p), EFAULT);
        CHECK_ERRNO(syscall(SYS_getrusage, RUSAGE_SELF, p), EFAULT);
        CHECK_ERRNO(syscall(SYS_getrlimit, RLIMIT_NOFILE, p), EFAULT);
        CHECK_ERRNO(syscall(SYS_setrlimit, RLIMIT_NOFILE, p), EFAULT);
        CHECK_ERRNO(syscall(SYS_times, p), EFAULT);
        CHECK_ERRNO(syscall(SYS_pipe, p), EFAULT);
        CHECK_ERRNO(syscall(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, p), EFAULT);
        CHECK_ERRNO(syscall(SYS_clock_gettime, CLOCK_REALTIME, p), EFAULT);
        CHECK_ERRNO(syscall(SYS_gettimeofday, p, NULL), EFAULT);
        CHECK_ERRNO(syscall(SYS_getitimer, ITIMER_REAL, p), EFAULT);
        CHECK_ERRNO(syscall(SYS_getresuid, p, p, p), EFAULT);
        CHECK_ERRNO(syscall(SYS_sched_getaffinity, 0, 128, p), EFAULT);
        CHECK_ERRNO(syscall(SYS_rt_sigpending, p, 8), EFAULT);
        CHECK_ERRNO(syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, p, 8), EFAULT);
        CHECK_ERRNO(syscall(SYS_rt_sigprocmask, SIG_BLOCK, p, NULL, 8), EFAULT);
        CHECK_ERRNO(syscall(SYS_rt_sigaction, SIGUSR1, p, NULL, 8), EFAULT);
        CHECK_ERRNO(syscall(SYS_rt_sigaction, SIGUSR1, NULL, p, 8), EFAULT);
        CHECK_ERRNO(syscall(SYS_sigaltstack, p, NULL), EFAULT);
        CHECK_ERRNO(syscall(SYS_sigaltstack, NULL, p), EFAULT);
        CHECK_ERRNO(syscall(SYS_nanosleep, p, NULL), EFAULT);
        CHECK_ERRNO(syscall(SYS_getrandom, p, 16, 0), EFAULT);
        CHECK_ERRNO(syscall(SYS_prctl, 16 /* PR_GET_NAME */, p), EFAULT);
        CHECK_ERRNO(syscall(SYS_prctl, 15 /* PR_SET_NAME */, p), EFAULT);
    }
    // A failing pipe leaves no descriptors.
    int a = CHECK_OK(dup(0));
    CHECK_ERRNO(syscall(SYS_pipe, BAD), EFAULT);
    CHECK_EQ(dup(0), a + 1);
}

CASE(wait_status_pointer) {
    // The child is reaped even though its status could not be stored.
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) _exit(3);
    CHECK_ERRNO(syscall(SYS_wait4, pid, BAD, 0, NULL), EFAULT);
    CHECK_ERRNO(syscall(SYS_wait4, pid, NULL, 0, NULL), ECHILD);
    pid = CHECK_OK(fork());
    if (pid == 0) _exit(3);
    CHECK_ERRNO(syscall(SYS_waitid, P_PID, pid, BAD, WEXITED, NULL), EFAULT);
    CHECK_ERRNO(syscall(SYS_wait4, pid, NULL, 0, NULL), ECHILD);
}

CASE(waiting_calls) {
    int fds[2];
    CHECK_OK(pipe(fds));
    EACH_BAD(p) {
        CHECK_ERRNO(syscall(SYS_poll, p, 1, 0), EFAULT);
        CHECK_ERRNO(syscall(SYS_select, 1, p, NULL, NULL, NULL), EFAULT);
        CHECK_ERRNO(syscall(SYS_select, 0, NULL, NULL, NULL, p), EFAULT);
        CHECK_ERRNO(syscall(SYS_ppoll, NULL, 0, p, NULL, 8), EFAULT);
        CHECK_ERRNO(syscall(SYS_ppoll, NULL, 0, NULL, p, 8), EFAULT);
        CHECK_ERRNO(syscall(SYS_futex, p, 0, 0, NULL, NULL, 0), p == (void *)-1ul ? EINVAL : EFAULT);
        CHECK_ERRNO(syscall(SYS_rt_sigtimedwait, p, NULL, NULL, 8), EFAULT);
        CHECK_ERRNO(syscall(SYS_rt_sigsuspend, p, 8), EFAULT);
    }
    int ep = CHECK_OK(epoll_create1(0));
    struct epoll_event ev = {.events = EPOLLOUT};
    CHECK_ERRNO(syscall(SYS_epoll_ctl, ep, EPOLL_CTL_ADD, fds[1], BAD), EFAULT);
    CHECK_OK(epoll_ctl(ep, EPOLL_CTL_ADD, fds[1], &ev));
    CHECK_ERRNO(syscall(SYS_epoll_wait, ep, BAD, 1, 0), EFAULT);
    CHECK_EQ(epoll_wait(ep, &ev, 1, 0), 1);
}

CASE(directory_entries_are_not_lost) {
    int fd = CHECK_OK(open("/", O_RDONLY | O_DIRECTORY));
    static char a[32768], b[32768];
    CHECK_ERRNO(syscall(SYS_getdents64, fd, BAD, sizeof a), EFAULT);
    long n = CHECK_OK(syscall(SYS_getdents64, fd, a, sizeof a));
    CHECK_OK(lseek(fd, 0, SEEK_SET));
    CHECK_EQ(syscall(SYS_getdents64, fd, b, sizeof b), n);
    CHECK_GT(n, 0);
}

CASE(exec_vectors) {
    char *e = edge(), *argv[] = {"x", BAD, NULL};
    CHECK_ERRNO(syscall(SYS_execve, check_self, BAD, NULL), EFAULT);
    CHECK_ERRNO(syscall(SYS_execve, check_self, argv, NULL), EFAULT);
    CHECK_ERRNO(syscall(SYS_execve, check_self, NULL, argv), EFAULT);
    char **at_edge = (char **)e - 1;
    *at_edge = "x";
    CHECK_ERRNO(syscall(SYS_execve, check_self, at_edge, NULL), EFAULT);
    memset(e - 3, 'x', 3);
    char *unended[] = {e - 3, NULL};
    CHECK_ERRNO(syscall(SYS_execve, check_self, unended, NULL), EFAULT);
}

MAIN
