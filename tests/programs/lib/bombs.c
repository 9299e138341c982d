// Bombs: programs that take as much as they get of one thing. Run inside umlaut only, by lib/bombs.py.
//
//     bombs NAME SIZE [UID]
//
// A second process answers pings while the bomb takes what it can, while it holds it, and after it was killed; it
// must answer in time. Each bomb checks that the end comes with Linux's errno. Exit status 0: all is well.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DIE(...) (fprintf(stderr, __VA_ARGS__), fprintf(stderr, " (errno %d)\n", errno), _exit(1))
#define WANT(COND) do { if (!(COND)) DIE("%s:%d: %s", name, __LINE__, #COND); } while (0)
#define FAILS(EXPR, E) do { errno = 0; if ((long)(EXPR) != -1 || errno != (E)) DIE("%s:%d: %s is not %s", name, __LINE__, #EXPR, #E); } while (0)

static const char *name;
static long size;
static int uid;
static int status_fd;

// The bomb has all it can get: the parent looks at it, and then kills it.
static void hold(void) {
    WANT(write(status_fd, "h", 1) == 1);
    for (;;) pause();
}

static void limit(int which, rlim_t to) {
    struct rlimit r;
    WANT(getrlimit(which, &r) == 0);
    r.rlim_cur = to;
    if (r.rlim_max < to) r.rlim_max = to;
    WANT(setrlimit(which, &r) == 0);
}

static void b_fork(void) {
    long made = 0;
    for (;;) {
        pid_t pid = fork();
        if (pid == 0) for (;;) pause();
        if (pid == -1) break;
        made++;
    }
    WANT(errno == EAGAIN && made > 30);
    hold();
}

// Children fork as well, and nobody keeps count.
static void b_fork_tree(void) {
    time_t end = time(NULL) + (size ? size : 2);
    while (time(NULL) < end)
        if (fork() == -1) WANT(errno == EAGAIN);
    hold();
}

static void *idle(void *arg) { for (;;) pause(); return arg; }
static void b_threads(void) {
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 16384);
    pthread_t thread;
    long made = 0;
    int error;
    while ((error = pthread_create(&thread, &small, idle, NULL)) == 0) made++;
    WANT(error == EAGAIN && made > 30);
    hold();
}

static int make_fd(int kind, int *second) {
    int two[2] = {-1, -1};
    *second = -1;
    switch (kind) {
    case 0: if (pipe(two) == -1) return -1; break;
    case 1: if (socketpair(AF_UNIX, SOCK_STREAM, 0, two) == -1) return -1; break;
    case 2: return memfd_create("m", 0);
    case 3: return epoll_create1(0);
    case 4: return open("/etc/passwd", O_PATH);
    case 5: return open("/etc/passwd", O_RDONLY);
    case 6: return eventfd(0, 0);
    case 7: return open("/proc/self/status", O_RDONLY);
    case 8: return open("/dev/shm/descriptor", O_RDWR | O_CREAT, 0666);
    case 9: return socket(AF_UNIX, SOCK_DGRAM, 0);
    }
    *second = two[1];
    return two[0];
}

// One process takes descriptors of each kind up to its limit.
static void b_fds(void) {
    limit(RLIMIT_NOFILE, size);
    for (int kind = 0; kind < 10; kind++) {
        int second, fd, last = 0;
        while ((fd = make_fd(kind, &second)) != -1) last = fd > second ? fd : second;
        WANT(errno == EMFILE && last >= size - 2);
        for (fd = status_fd + 1; fd <= last; fd++) close(fd);
    }
    hold();
}

// Many processes take so many that the kernel has none left.
static void b_fds_of_all(void) {
    limit(RLIMIT_NOFILE, 512);
    int report[2];
    WANT(pipe(report) == 0);
    for (int i = 0; i < size; i++) {
        pid_t pid = fork();
        WANT(pid != -1);
        if (pid) continue;
        int second, fd;
        // Files cost the kernel a descriptor each.
        while ((fd = make_fd(i % 2 ? 2 : 8, &second)) != -1) {}
        char how = errno == EMFILE ? 'm' : errno == ENFILE ? 'n' : '?';
        if (how == '?') perror("descriptor");
        WANT(write(report[1], &how, 1) == 1);
        for (;;) pause();
    }
    int full = 0;
    for (int i = 0; i < size; i++) {
        char how;
        WANT(read(report[0], &how, 1) == 1);
        WANT(how == 'm' || how == 'n');
        full += how == 'n';
    }
    WANT(full > 0);
    hold();
}

// Ends by SIGKILL.
static void b_page_tables(void) {
    size_t step = 2 << 20, count = size;
    volatile char *at = mmap(NULL, step * count, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    WANT(at != MAP_FAILED);
    for (size_t i = 0; i < count; i++) (void)at[i * step];
    hold();
}

static void b_memory(void) {
    for (;;) {
        char *at = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) { WANT(errno == ENOMEM); for (;;) pause(); }
        memset(at, 1, 1 << 20);
    }
}

static void b_shared_memory(void) {
    for (;;) {
        char *at = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) { WANT(errno == ENOMEM); for (;;) pause(); }
        memset(at, 1, 1 << 20);
    }
}

// What a mapping has let go is still its memory's.
static void b_shared_memory_let_go(void) {
    for (;;) {
        char *at = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) { WANT(errno == ENOMEM); for (;;) pause(); }
        memset(at, 1, 1 << 20);
        WANT(madvise(at, 1 << 20, MADV_DONTNEED) == 0);
    }
}

// What lies in a memfd is nobody's address space.
static void b_memfd(void) {
    int fd = memfd_create("hog", 0);
    static char block[1 << 20];
    memset(block, 1, sizeof block);
    for (;;) WANT(write(fd, block, sizeof block) > 0);
}

// No mapping may be larger than the machine.
static void b_overcommit(void) {
    size_t huge = size << 20;
    FAILS(mmap(NULL, huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), ENOMEM);
    WANT(mmap(NULL, huge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
    WANT(mmap(NULL, huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED);
    hold();
}

static void b_tmpfs_space(void) {
    static char block[1 << 20];
    memset(block, 1, sizeof block);
    int fd = open("/dev/shm/hog", O_RDWR | O_CREAT, 0600);
    long done = 0, n;
    while ((n = write(fd, block, sizeof block)) > 0) done += n;
    WANT(n == -1 && errno == ENOSPC && done > 0);
    WANT(unlink("/dev/shm/hog") == 0 && close(fd) == 0);
    hold();
}

static void b_inodes(void) {
    char path[64];
    long i;
    for (i = 0;; i++) {
        snprintf(path, sizeof path, "/dev/shm/i%ld", i);
        if (mknod(path, S_IFREG | 0600, 0) == -1) break;
    }
    WANT(errno == ENOSPC && i > 100);
    while (i-- > 0) {
        snprintf(path, sizeof path, "/dev/shm/i%ld", i);
        WANT(unlink(path) == 0);
    }
    hold();
}

static void b_sparse(void) {
    const char *places[] = {"/dev/shm/sparse", "/var/tmp/sparse", "/tmp/sparse"};
    for (int i = 0; i < 3; i++) {
        int fd = open(places[i], O_RDWR | O_CREAT, 0600);
        WANT(fd != -1);
        for (long k = 0; k < size; k++) WANT(pwrite(fd, "x", 1, (1L << 40) - k * (1L << 30)) == 1);
        struct stat st;
        WANT(fstat(fd, &st) == 0 && st.st_size == (1L << 40) + 1 && st.st_blocks <= size * 8 + 64);
        char c = 1;
        WANT(pread(fd, &c, 1, 1L << 39) == 1 && (c == 0 || c == 'x'));
        WANT(lseek(fd, 0, SEEK_DATA) >= 0);
        WANT(ftruncate(fd, 0) == 0 && close(fd) == 0 && unlink(places[i]) == 0);
    }
    hold();
}

struct node { struct robust_list list; int lock; int pad[3]; };
static void b_robust_list(void) {
    struct node *nodes = calloc(size, sizeof *nodes);
    static struct robust_list_head head;
    // A real child, so that its exit walks the list; it ends soon though the list is long, and even where it is a ring.
    for (int ring = 0; ring < 2; ring++) {
        pid_t pid = fork();
        if (pid == 0) {
            for (long i = 0; i + 1 < size; i++) nodes[i].list.next = &nodes[i + 1].list;
            nodes[size - 1].list.next = ring ? &nodes[0].list : &head.list;
            head.list.next = &nodes[0].list;
            head.futex_offset = offsetof(struct node, lock);
            int self = getpid();
            for (long i = 0; i < size; i++) nodes[i].lock = self;
            WANT(syscall(SYS_set_robust_list, &head, sizeof head) == 0);
            _exit(7);
        }
        int status;
        WANT(waitpid(pid, &status, 0) == pid && status == 7 << 8);
    }
    hold();
}

static void b_epoll(void) {
    int ring[3];
    for (int i = 0; i < 3; i++) WANT((ring[i] = epoll_create1(0)) != -1);
    struct epoll_event event = {.events = EPOLLIN};
    WANT(epoll_ctl(ring[0], EPOLL_CTL_ADD, ring[1], &event) == 0);
    WANT(epoll_ctl(ring[1], EPOLL_CTL_ADD, ring[2], &event) == 0);
    FAILS(epoll_ctl(ring[2], EPOLL_CTL_ADD, ring[0], &event), ELOOP);
    FAILS(epoll_ctl(ring[0], EPOLL_CTL_ADD, ring[0], &event), EINVAL);
    // EP_MAX_NESTS is 4.
    int deep[8], at = 0;
    WANT((deep[0] = epoll_create1(0)) != -1);
    for (at = 1; at < 8; at++) {
        WANT((deep[at] = epoll_create1(0)) != -1);
        if (epoll_ctl(deep[at], EPOLL_CTL_ADD, deep[at - 1], &event) == -1) break;
    }
    WANT(errno == ELOOP && at == 5);
    // Many that watch many: a wake-up must not run along all paths.
    int source = eventfd(0, 0), wide[64];
    for (int i = 0; i < 64; i++) {
        WANT((wide[i] = epoll_create1(0)) != -1);
        WANT(epoll_ctl(wide[i], EPOLL_CTL_ADD, source, &event) == 0);
    }
    for (int i = 0; i < 1000; i++) WANT(eventfd_write(source, 1) == 0);
    hold();
}

static void b_exec_arguments(void) {
    // A single string of 128 KiB, and together more than a quarter of the stack limit (8 MiB).
    char *one = malloc(131073);
    memset(one, 'a', 131072);
    one[131072] = 0;
    char *argv[] = {"true", one, NULL}, *none[] = {NULL};
    FAILS(execve("/proc/self/exe", argv, none), E2BIG);
    one[131071] = 0;
    long many = 17;
    char **all = calloc(1 << 21, sizeof *all);
    for (long i = 0; i < many; i++) all[i] = one;
    FAILS(execve("/proc/self/exe", all, none), E2BIG);
    FAILS(execve("/proc/self/exe", none, all), E2BIG);
    // Empty strings cost their pointers.
    for (long i = 0; i < (1 << 21) - 1; i++) all[i] = "";
    FAILS(execve("/proc/self/exe", all, none), E2BIG);
    // One array over and over, for ever.
    size_t page = 4096, len = 1 << 30;
    int fd = memfd_create("ring", 0);
    WANT(ftruncate(fd, page) == 0);
    char *area = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (size_t i = 0; i < 4096; i++)
        WANT(mmap(area + i * page, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED);
    char **endless = (char **)area;
    for (size_t i = 0; i < page / 8; i++) endless[i] = "word";
    WANT(execve("/proc/self/exe", endless, none) == -1 && (errno == EFAULT || errno == E2BIG));
    WANT(mmap(area + 4096 * page, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
    FAILS(execve("/proc/self/exe", endless, none), E2BIG);
    hold();
}

static void b_vectors(void) {
    static struct iovec v[2048];
    size_t each = 64 << 20;
    char *room = mmap(NULL, each, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (int i = 0; i < 2048; i++) v[i] = (struct iovec){room, each};
    int null = open("/dev/null", O_RDWR), file = open("/dev/shm/vector", O_RDWR | O_CREAT, 0600), two[2];
    WANT(pipe(two) == 0 && fcntl(two[0], F_SETFL, O_NONBLOCK) == 0 && fcntl(two[1], F_SETFL, O_NONBLOCK) == 0);
    FAILS(writev(null, v, 1025), EINVAL);
    FAILS(readv(two[0], v, 1025), EINVAL);
    FAILS(syscall(SYS_process_vm_readv, getpid(), v, 1025, v, 1, 0), EINVAL);
    WANT(writev(null, v, 1024) == 0x7ffff000);
    WANT(writev(two[1], v, 1024) == 65536);
    WANT(readv(two[0], v, 1024) == 65536);
    WANT(pwrite(file, "x", 1, 1 << 20) == 1);
    WANT(preadv(file, v, 1024, 0) == (1 << 20) + 1);
    v[7].iov_len = -1;
    FAILS(writev(null, v, 1024), EINVAL);
    struct msghdr message = {.msg_iov = v, .msg_iovlen = 1025};
    int pair[2];
    WANT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    FAILS(sendmsg(pair[0], &message, MSG_DONTWAIT), EMSGSIZE);
    v[7].iov_len = each;
    message.msg_iovlen = 1024;
    WANT(sendmsg(pair[0], &message, MSG_DONTWAIT) > 0);
    // A control area of 2 GiB is refused by length.
    message.msg_iovlen = 1;
    v[0].iov_len = 1;
    message.msg_control = room;
    message.msg_controllen = 1 << 30;
    FAILS(sendmsg(pair[0], &message, MSG_DONTWAIT), ENOBUFS);
    // What a call takes by a length of its own.
    struct pollfd *fds = calloc(100, sizeof *fds);
    FAILS(syscall(SYS_poll, fds, 1 << 30, 0), EINVAL);
    FAILS(syscall(SYS_getgroups, -1, room), EINVAL);
    FAILS(setgroups(65537, (gid_t *)room), uid ? EPERM : EINVAL);
    WANT(unlink("/dev/shm/vector") == 0);
    hold();
}

static void b_pipes(void) {
    // Beyond pipe-user-pages-soft (16384) a user's new pipes have two pages, and none may be made larger.
    limit(RLIMIT_NOFILE, 4096);
    int two[2];
    static char block[65536];
    long pages = 0;
    for (int i = 0; i < size; i++) {
        WANT(pipe2(two, O_NONBLOCK) == 0);
        int slots = fcntl(two[1], F_GETPIPE_SZ) / 4096;
        WANT(slots == (pages + 16 > 16384 ? 2 : 16));
        pages += slots;
        WANT(write(two[1], block, sizeof block) == slots * 4096);
    }
    WANT(pages >= 16384);
    FAILS(fcntl(two[1], F_SETPIPE_SZ, 1 << 20), EPERM);
    FAILS(fcntl(two[1], F_SETPIPE_SZ, 1 << 21), EPERM);
    hold();
}

static int send_fd(int to, int fd) {
    char control[CMSG_SPACE(sizeof fd)] = {0}, byte = 0;
    struct iovec v = {&byte, 1};
    struct msghdr message = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(part), &fd, sizeof fd);
    return sendmsg(to, &message, MSG_DONTWAIT);
}

static void b_in_flight(void) {
    limit(RLIMIT_NOFILE, 256);
    long sent = 0;
    int pair[2];
    for (;;) {
        // A pair that is sent through itself and closed: only a collector finds it.
        WANT(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0);
        int done = send_fd(pair[0], pair[1]) == 1 && send_fd(pair[1], pair[0]) == 1;
        int why = errno;
        close(pair[0]);
        close(pair[1]);
        sent += 2;
        if (!done) { errno = why; break; }
        if (sent > 100 * size) hold();  // collected all the way
    }
    WANT(errno == ETOOMANYREFS && sent >= 256);
    hold();
}

static void b_in_flight_held(void) {
    limit(RLIMIT_NOFILE, 256);
    int pair[2], fd = open("/dev/null", O_RDONLY);
    long sent = 0;
    for (;;) {
        WANT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
        while (send_fd(pair[0], fd) == 1) sent++;
        if (errno != EAGAIN) break;
    }
    WANT(errno == ETOOMANYREFS && sent >= 256 && sent <= 300);
    hold();
}

static void b_signals(void) {
    limit(RLIMIT_SIGPENDING, size);
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    union sigval value = {0};
    long sent = 0;
    while (sigqueue(getpid(), SIGRTMIN, value) == 0) sent++;
    // The user may have some elsewhere.
    WANT(errno == EAGAIN && sent <= size && sent > size - 100);
    // kill() needs no memory of its own: it arrives.
    WANT(kill(getpid(), SIGUSR1) == 0);
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
    FAILS(timer_create(CLOCK_MONOTONIC, &event, &timer), EAGAIN);
    siginfo_t info;
    for (long i = 0; i < sent; i++) WANT(sigwaitinfo(&all, &info) > 0);
    hold();
}

static void b_timers(void) {
    limit(RLIMIT_SIGPENDING, size);
    timer_t timer;
    struct itimerspec often = {{0, 1}, {0, 1}};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    long made = 0;
    while (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0) {
        // As often as there is a clock to tell.
        WANT(timer_settime(timer, 0, &often, NULL) == 0);
        made++;
    }
    WANT(errno == EAGAIN && made <= size && made > size - 100);
    hold();
}

static void b_names(void) {
    char path[80];
    struct stat st;
    const char *places[] = {"/usr", "/tmp", "/dev/shm", "/proc"};
    for (long i = 0; i < size; i++) {
        snprintf(path, sizeof path, "%s/absent-%ld-with-a-name-of-some-length", places[i % 4], i);
        FAILS(stat(path, &st), ENOENT);
    }
    hold();
}

static void b_locks(void) {
    int fd = open("/dev/shm/locks", O_RDWR | O_CREAT, 0600);
    WANT(fd != -1);
    long i;
    for (i = 0; i < size; i++) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 2 * i, .l_len = 1};
        if (fcntl(fd, F_SETLK, &lock) == -1) break;
    }
    WANT(i == size || errno == ENOLCK);
    WANT(unlink("/dev/shm/locks") == 0);
    hold();
}

static void b_depth(void) {
    WANT(mkdir("/dev/shm/deep", 0700) == 0 && chdir("/dev/shm/deep") == 0);
    for (long i = 0; i < size; i++) WANT(mkdir("d", 0700) == 0 && chdir("d") == 0);
    char path[4096];
    FAILS(syscall(SYS_getcwd, path, sizeof path), ENAMETOOLONG);
    // A walk goes through a path of 4095 bytes at most.
    memset(path, 0, sizeof path);
    for (int i = 0; i + 2 < 4095; i += 3) memcpy(path + i, "../", 3);
    WANT(chdir(path) == 0);
    for (int i = 0; i + 1 < 4094; i += 2) memcpy(path + i, "d/", 2);
    int fd = open(path, O_PATH);
    WANT(fd != -1 || errno == ENOENT);
    WANT(chdir("/dev/shm/deep") == 0);
    // Moved into itself: refused, however deep.
    FAILS(rename("/dev/shm/deep", "d/x"), EINVAL);
    // As `rm -r`: down, then up, removing.
    for (long i = 0; i < size; i++) WANT(chdir("d") == 0);
    for (long i = 0; i < size; i++) WANT(chdir("..") == 0 && rmdir("d") == 0);
    hold();
}

// All of a deep tree goes at once, with its file system's last user.
static void b_depth_dropped(void) {
    WANT(mkdir("/dev/shm/left", 0700) == 0 && chdir("/dev/shm/left") == 0);
    for (long i = 0; i < size; i++) WANT(mkdir("d", 0700) == 0 && chdir("d") == 0);
    hold();
}

static void b_mappings(void) {
    size_t page = 4096;
    // 65530 mappings (vm.max_map_count), made by changing the protection of every second page.
    char *area = mmap(NULL, page * 140000, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    WANT(area != MAP_FAILED);
    long made = 0;
    for (long i = 1; i < 139999; i += 2) {
        if (mprotect(area + i * page, page, PROT_READ) == -1) break;
        made += 2;
    }
    WANT(errno == ENOMEM && made > 65000 && made <= 65530);
    // A new one needs one place only, a split two.
    int more = 0, prots[] = {PROT_READ, PROT_WRITE | PROT_READ, PROT_EXEC, PROT_READ};
    errno = 0;
    while (more < 4 && mmap(NULL, page, prots[more], MAP_SHARED | MAP_ANONYMOUS, -1, 0) != MAP_FAILED) more++;
    WANT(errno == ENOMEM && more <= 3);
    WANT(munmap(area, page * 140000) == 0);
    hold();
}

static void b_sockets_full(void) {
    limit(RLIMIT_NOFILE, size);
    static char block[65536];
    int pair[2];
    while (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0)
        for (int i = 0; i < 2; i++)
            while (write(pair[i], block, sizeof block) > 0) {}
    WANT(errno == EMFILE);
    hold();
}

// Pipes full of bytes, without end: the kernel's own memory.
static void b_full_pipes(void) {
    limit(RLIMIT_NOFILE, 4096);
    static char block[65536];
    int two[2];
    for (;;) {
        // At the limit of one process another goes on.
        if (pipe2(two, O_NONBLOCK) == -1) {
            WANT(errno == EMFILE);
            pid_t pid = fork();
            WANT(pid != -1);
            if (pid) for (;;) pause();
            continue;
        }
        memset(block, 1, sizeof block);
        WANT(write(two[1], block, sizeof block) > 0);
    }
}

static struct bomb { const char *name; void (*run)(void); int killed; int no_exec; } bombs[] = {
    {"fork", b_fork, 0, 1}, {"fork_tree", b_fork_tree, 0, 1}, {"threads", b_threads, 0, 1},
    {"fds", b_fds, 0, 0}, {"fds_of_all", b_fds_of_all, 0, 0},
    {"page_tables", b_page_tables, 1, 0}, {"memory", b_memory, 1, 0}, {"shared_memory", b_shared_memory, 1, 0},
    {"shared_memory_let_go", b_shared_memory_let_go, 1, 0},
    {"memfd", b_memfd, 1, 0}, {"full_pipes", b_full_pipes, 1, 0}, {"overcommit", b_overcommit, 0, 0}, {"tmpfs_space", b_tmpfs_space, 0, 0},
    {"inodes", b_inodes, 0, 0}, {"sparse", b_sparse, 0, 0}, {"robust_list", b_robust_list, 0, 0},
    {"epoll", b_epoll, 0, 0}, {"exec_arguments", b_exec_arguments, 0, 0}, {"vectors", b_vectors, 0, 0},
    {"pipes", b_pipes, 0, 0}, {"in_flight", b_in_flight, 0, 0}, {"in_flight_held", b_in_flight_held, 0, 0},
    {"signals", b_signals, 0, 0}, {"timers", b_timers, 0, 0}, {"names", b_names, 0, 0}, {"locks", b_locks, 0, 0},
    {"depth", b_depth, 0, 0}, {"depth_dropped", b_depth_dropped, 0, 0}, {"mappings", b_mappings, 0, 0},
    {"sockets_full", b_sockets_full, 0, 0},
};

// Answers each byte with one, after a round through the kernel: 'p' some calls, 'x' a whole new program.
static void answer(int from, int to) {
    char byte;
    // Larger than a bomb whose memory is elsewhere: it is not the one to be killed.
    static char own[4 << 20];
    memset(own, 1, sizeof own);
    while (read(from, &byte, 1) == 1) {
        struct stat st;
        if (stat("/etc", &st) == -1) DIE("stat /etc");
        if (byte == 'x') {
            pid_t pid = fork();
            if (pid == 0) {
                execl("/proc/self/exe", "bombs", "true", NULL);
                _exit(9);
            }
            int status = 1;
            if (pid == -1 || waitpid(pid, &status, 0) != pid || status != 0) DIE("no program runs beside the bomb: %#x", status);
        }
        if (write(to, &byte, 1) != 1) break;
    }
    _exit(0);
}

static long now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int to_answerer, from_answerer;
static long slowest;
static void ping(char how, const char *when) {
    long start = now_ms();
    char byte;
    WANT(write(to_answerer, &how, 1) == 1);
    struct pollfd fd = {from_answerer, POLLIN, 0};
    if (poll(&fd, 1, 30000) != 1 || read(from_answerer, &byte, 1) != 1) DIE("%s: no answer %s", name, when);
    long took = now_ms() - start;
    if (took > slowest) slowest = took;
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "true")) return 0;
    if (argc < 3) return 2;
    name = argv[1];
    size = atol(argv[2]);
    uid = argc > 3 ? atoi(argv[3]) : 0;
    struct bomb *bomb = NULL;
    for (size_t i = 0; i < sizeof bombs / sizeof *bombs; i++)
        if (!strcmp(bombs[i].name, name)) bomb = &bombs[i];
    if (!bomb) return 2;
    int there[2], back[2], state[2];
    if (pipe2(there, O_CLOEXEC) || pipe2(back, O_CLOEXEC) || pipe2(state, O_CLOEXEC)) return 2;
    pid_t answerer = fork();
    if (answerer == 0) {
        // The other ends go, or it would wait for itself.
        close(there[1]);
        close(back[0]);
        close(state[0]);
        close(state[1]);
        answer(there[0], back[1]);
    }
    close(there[0]);
    close(back[1]);
    to_answerer = there[1];
    from_answerer = back[0];
    ping('x', "before");
    pid_t pid = fork();
    if (pid == 0) {
        setsid();
        close(to_answerer);
        close(from_answerer);
        status_fd = dup2(state[1], 3);
        for (int fd = 4; fd < 20; fd++) close(fd);
        if (uid && (setresgid(uid, uid, uid) || setresuid(uid, uid, uid))) DIE("setresuid");
        bomb->run();
        _exit(0);
    }
    close(state[1]);
    long start = now_ms(), pings = 0;
    for (;;) {
        struct pollfd fd = {state[0], POLLIN, 0};
        char byte;
        int ready = poll(&fd, 1, 20);
        if (ready == 1) {
            if (read(state[0], &byte, 1) == 1 && byte == 'h') break;
            if (!bomb->killed) { int status; waitpid(pid, &status, 0); DIE("%s: ended early, status %#x", name, status); }
            break;
        }
        ping('p', "while it runs");
        pings++;
    }
    long took = now_ms() - start;
    for (int i = 0; i < 3; i++) ping(bomb->no_exec ? 'p' : 'x', "while it is held");
    kill(-pid, SIGKILL);
    int status;
    WANT(waitpid(pid, &status, 0) == pid);
    if (status != SIGKILL) DIE("%s: status %#x", name, status);
    // A fork bomb's children may take a moment to go.
    for (int i = 0; i < 200; i++) {
        if (kill(-pid, SIGKILL) == -1 && errno == ESRCH) break;
        usleep(50000);
    }
    errno = 0;
    WANT(kill(-pid, 0) == -1 && errno == ESRCH);
    ping('x', "afterwards");
    close(to_answerer);
    WANT(waitpid(answerer, &status, 0) == answerer && status == 0);
    printf("%s %ld: %ld ms, %ld pings, slowest %ld ms\n", name, size, took, pings, slowest);
    return 0;
}
