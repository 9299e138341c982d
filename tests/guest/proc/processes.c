// build: static
// /proc as a directory of processes: listing, the dead and the zombies, owners and permissions.
#include "procs.h"

static int listed(pid_t pid) {
    DIR *d = opendir("/proc");
    CHECK(d != NULL);
    int found = 0;
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] < '0' || e->d_name[0] > '9') continue;
        char *rest;
        long n = strtol(e->d_name, &rest, 10);
        CHECK_EQ(*rest, 0);
        CHECK_EQ(e->d_type, DT_DIR);
        found += n == pid;
    }
    closedir(d);
    CHECK_LE(found, 1);
    return found;
}

CASE(listing) {
    CHECK_EQ(listed(getpid()), 1);
    CHECK_EQ(listed(getppid()), 1);
    CHECK_EQ(listed(1), 1);
    pid_t pids[5];
    for (int i = 0; i < 5; i++) pids[i] = sleeper();
    for (int i = 0; i < 5; i++) CHECK_EQ(listed(pids[i]), 1);
    for (int i = 0; i < 5; i++) end(pids[i]);
    for (int i = 0; i < 5; i++) CHECK_EQ(listed(pids[i]), 0);
}

CASE(in_ascending_order) {
    pid_t pids[20];
    for (int i = 0; i < 20; i++) pids[i] = sleeper();
    DIR *d = opendir("/proc");
    long last = 0, others_behind = 0;
    for (struct dirent *e; (e = readdir(d));) {
        long n = strtol(e->d_name, NULL, 10);
        if (n == 0) {
            if (last && e->d_name[0] != '.') others_behind++;
            continue;
        }
        CHECK_GT(n, last);
        last = n;
    }
    CHECK_EQ(others_behind, 0);  // the fixed names come first
    closedir(d);
    for (int i = 0; i < 20; i++) end(pids[i]);
}

CASE(fixed_names) {
    static const char *names[] = {"self", "thread-self", "cpuinfo", "meminfo", "stat", "uptime", "loadavg", "version",
                                  "filesystems", "mounts", "sys", "cmdline"};
    struct stat st;
    CHECK_OK(chdir("/proc"));
    for (int i = 0; i < 12; i++) CHECK_OK(lstat(names[i], &st));
    CHECK_OK(lstat("self", &st));
    CHECK_EQ(st.st_mode, S_IFLNK | 0777);
    CHECK_OK(lstat("stat", &st));
    CHECK_EQ(st.st_mode, S_IFREG | 0444);
    CHECK_EQ(st.st_size, 0);
    CHECK_OK(lstat(".", &st));
    CHECK_EQ(st.st_mode, S_IFDIR | 0555);
    CHECK_ERRNO(lstat("none", &st), ENOENT);
    CHECK_ERRNO(lstat("0", &st), ENOENT);
    CHECK_ERRNO(lstat("00001", &st), ENOENT);
    CHECK_ERRNO(lstat("1x", &st), ENOENT);
    CHECK_ERRNO(lstat("99999999999999", &st), ENOENT);
    CHECK_ERRNO(open("new", O_CREAT | O_WRONLY, 0644), ENOENT);
    CHECK_ERRNO(unlink("stat"), geteuid() == 0 ? EPERM : EACCES);
    CHECK_ERRNO(rmdir("self"), geteuid() == 0 ? ENOTDIR : EACCES);
}

CASE(the_dead) {
    pid_t pid = sleeper();
    char text[400];
    CHECK_OK(chdir(of_pid(pid, ".")));
    int dir = CHECK_OK(open(".", O_RDONLY | O_DIRECTORY)), stat_fd = CHECK_OK(open("stat", O_RDONLY));
    int comm_fd = CHECK_OK(open("comm", O_RDONLY)), task = CHECK_OK(open("task", O_RDONLY));
    CHECK_GT(pread(stat_fd, text, 10, 0), 0);
    end(pid);
    CHECK_ERRNO(access(of_pid(pid, "."), F_OK), ENOENT);
    CHECK_ERRNO(open(of_pid(pid, "stat"), O_RDONLY), ENOENT);
    // What is still held answers that there is no such process.
    CHECK_ERRNO(pread(stat_fd, text, 100, 0), ESRCH);
    CHECK_ERRNO(read(comm_fd, text, 100), ESRCH);
    CHECK_ERRNO(openat(dir, "stat", O_RDONLY), ESRCH);
    CHECK_ERRNO(open("status", O_RDONLY), ESRCH);
    CHECK_ERRNO(syscall(SYS_getdents64, dir, text, sizeof text), ENOENT);
    CHECK_ERRNO(syscall(SYS_getdents64, task, text, sizeof text), ENOENT);
    CHECK_OK(chdir("/"));
}

CASE(zombies) {
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) _exit(0);
    siginfo_t info;
    CHECK_OK(waitid(P_PID, pid, &info, WEXITED | WNOWAIT));
    CHECK_EQ(listed(pid), 1);
    CHECK(strstr(slurp(of_pid(pid, "stat")), ") Z ") != NULL);
    CHECK_STR(slurp(of_pid(pid, "statm")), "0 0 0 0 0 0 0\n");
    slurp(of_pid(pid, "maps"));
    CHECK_EQ(slurped, 0);
    if (geteuid() == 0) {
        DIR *d = opendir(of_pid(pid, "fd"));
        CHECK(d != NULL);
        int n = 0;
        while (readdir(d)) n++;
        CHECK_EQ(n, 2);  // nothing is open any more
        closedir(d);
    }
    CHECK_EXIT(pid, 0);
    CHECK_EQ(listed(pid), 0);
}

CASE(smaller_files) {
    pid_t pid = sleeper();
    char *text = slurp(of_pid(pid, "wchan"));  // "0" or a function's name, without an end
    CHECK_GE(slurped, 1);
    CHECK(text[slurped - 1] != '\n');
    CHECK_STR(slurp(of_pid(pid, "oom_score_adj")), slurp("/proc/self/oom_score_adj"));
    CHECK_STR(slurp(of_pid(pid, "personality")), "00000000\n");
    end(pid);
}

CASE(owners) {
    struct stat st;
    CHECK_OK(stat("/proc/self/.", &st));
    CHECK_EQ(st.st_mode, S_IFDIR | 0555);
    CHECK_EQ(st.st_uid, geteuid());
    CHECK_EQ(st.st_gid, getegid());
    CHECK_OK(stat("/proc/self/environ", &st));
    CHECK_EQ(st.st_mode, S_IFREG | 0400);
    CHECK_OK(stat("/proc/self/stat", &st));
    CHECK_EQ(st.st_mode, S_IFREG | 0444);
    CHECK_OK(stat("/proc/self/comm", &st));
    CHECK_EQ(st.st_mode, S_IFREG | 0644);
    CHECK_OK(stat("/proc/self/task", &st));
    CHECK_EQ(st.st_mode, S_IFDIR | 0555);
    CHECK_OK(lstat("/proc/self/exe", &st));
    CHECK_EQ(st.st_mode, S_IFLNK | 0777);
    CHECK_OK(stat("/proc/version", &st));
    CHECK_EQ(st.st_uid, 0);
    if (geteuid() != 0) return;
    pid_t pid = sleeper();
    IN_CHILD({
        be_user();
        CHECK_OK(stat(of_pid(pid, "."), &st));
        CHECK_EQ(st.st_uid, 0);
    });
    end(pid);
}

static void refused(pid_t pid) {
    char buf[64];
    CHECK_ERRNO(open(of_pid(pid, "environ"), O_RDONLY), EACCES);
    CHECK_ERRNO(open(of_pid(pid, "fd"), O_RDONLY), EACCES);
    CHECK_ERRNO(readlink(of_pid(pid, "exe"), buf, sizeof buf), EACCES);
    CHECK_ERRNO(readlink(of_pid(pid, "cwd"), buf, sizeof buf), EACCES);
    CHECK_ERRNO(readlink(of_pid(pid, "root"), buf, sizeof buf), EACCES);
    CHECK_ERRNO(access(of_pid(pid, "root/etc"), F_OK), EACCES);
    CHECK_ERRNO(open(of_pid(pid, "maps"), O_RDONLY), EACCES);
    CHECK_ERRNO(open(of_pid(pid, "mem"), O_RDONLY), EACCES);
    // What ps shows is for everybody.
    slurp(of_pid(pid, "stat"));
    slurp(of_pid(pid, "status"));
    slurp(of_pid(pid, "cmdline"));
    slurp(of_pid(pid, "comm"));
    slurp(of_pid(pid, "statm"));
    slurp(of_pid(pid, "limits"));
}

CASE(others_secrets) {
    NEED_ROOT();
    pid_t pid = sleeper();
    IN_CHILD({
        be_user();
        refused(pid);
    });
    // Root sees everything of a user's process.
    pid_t user = CHECK_OK(fork());
    if (user == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        be_user();
        for (;;) pause();
    }
    for (int i = 0; i < 400 && atoi(field(slurp(of_pid(user, "status")), "Uid")) != 65534; i++) usleep(5000);
    CHECK_STR(link_of(of_pid(user, "cwd")), link_of("/proc/self/cwd"));
    slurp(of_pid(user, "environ"));
    slurp(of_pid(user, "maps"));
    end(user);
    end(pid);
}

CASE(pid_one_is_not_for_users) {
    NEED_USER();
    CHECK_GT(strlen(slurp("/proc/1/stat")), 20);
    if (atoi(field(slurp("/proc/1/status"), "Uid")) == (int)geteuid()) SKIP("process 1 is of the same user");
    refused(1);
}

CASE(changing_the_user_hides) {
    NEED_ROOT();
    be_user();
    // A process that dropped privileges is not dumpable: its files are root's until it executes something.
    CHECK_EQ(prctl(PR_GET_DUMPABLE), 0);
    struct stat st;
    CHECK_OK(stat("/proc/self/environ", &st));
    CHECK_EQ(st.st_uid, 0);
    CHECK_ERRNO(open("/proc/self/environ", O_RDONLY), EACCES);
    CHECK_ERRNO(open("/proc/self/fd/0/../../environ", O_RDONLY), ENOTDIR);
    CHECK_OK(stat("/proc/self/.", &st));
    CHECK_EQ(st.st_uid, 65534);  // the directory itself stays the user's
    CHECK_OK(prctl(PR_SET_DUMPABLE, 1));
    CHECK_OK(stat("/proc/self/environ", &st));
    CHECK_EQ(st.st_uid, 65534);
    slurp("/proc/self/environ");
}

MAIN
