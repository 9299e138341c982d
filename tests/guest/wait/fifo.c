// build: static
// FIFOs: who waits for whom at open, ENXIO, end of file, hang-up, interruption.
#include "waits.h"

static char buf[100];

static void enter(void) {
    umask(022);
    CHECK_OK(chdir(TMP(".")));
    CHECK_OK(mkfifo("p", 0600));
}

CASE(open_waits_for_the_other_side) {
    enter();
    pid_t pid = CHECK_OK(fork());
    if (pid == 0) {
        usleep(30000);
        int w = CHECK_OK(open("p", O_WRONLY));
        CHECK_EQ(write(w, "hi", 2), 2);
        _exit(0);
    }
    int r = CHECK_OK(open("p", O_RDONLY));
    CHECK_EQ(read(r, buf, 10), 2);
    CHECK_EQ(read(r, buf, 10), 0);
    CHECK_EXIT(pid, 0);
    CHECK_OK(close(r));
    pid = CHECK_OK(fork());
    if (pid == 0) {
        usleep(30000);
        r = CHECK_OK(open("p", O_RDONLY));
        CHECK_EQ(read(r, buf, 10), 2);
        _exit(0);
    }
    int w = CHECK_OK(open("p", O_WRONLY));
    CHECK_EQ(write(w, "ho", 2), 2);
    CHECK_EXIT(pid, 0);
}

CASE(nonblocking_open) {
    enter();
    CHECK_ERRNO(open("p", O_WRONLY | O_NONBLOCK), ENXIO);
    int r = CHECK_OK(open("p", O_RDONLY | O_NONBLOCK));
    CHECK_EQ(read(r, buf, 1), 0);          // no writer: end of file, not EAGAIN
    CHECK_EQ(events_of(r, POLLIN), 0);     // but no hang-up before there ever was one
    int w = CHECK_OK(open("p", O_WRONLY | O_NONBLOCK));
    CHECK_ERRNO(read(r, buf, 1), EAGAIN);
    CHECK_EQ(write(w, "x", 1), 1);
    CHECK_EQ(events_of(r, POLLIN), POLLIN);
    CHECK_OK(close(w));
    CHECK_EQ(events_of(r, POLLIN), POLLIN | POLLHUP);
    CHECK_EQ(read(r, buf, 10), 1);
    CHECK_EQ(read(r, buf, 10), 0);
    CHECK_EQ(events_of(r, POLLIN), POLLHUP);
    w = CHECK_OK(open("p", O_WRONLY));  // there is a reader: no wait
    CHECK_EQ(events_of(r, POLLIN), 0);
    CHECK_ERRNO(read(r, buf, 1), EAGAIN);
}

CASE(read_write_open_never_waits) {
    enter();
    int fd = CHECK_OK(open("p", O_RDWR));
    CHECK_EQ(write(fd, "self", 4), 4);
    CHECK_EQ(read(fd, buf, 10), 4);
    CHECK_EQ(events_of(fd, POLLIN | POLLOUT), POLLOUT);
    CHECK_OK(open("p", O_WRONLY | O_NONBLOCK));
    CHECK_OK(open("p", O_RDONLY));
}

CASE(one_object_behind_every_name) {
    enter();
    CHECK_OK(link("p", "q"));
    int r = CHECK_OK(open("p", O_RDONLY | O_NONBLOCK)), w = CHECK_OK(open("q", O_WRONLY));
    CHECK_EQ(write(w, "abc", 3), 3);
    CHECK_OK(rename("p", "moved"));
    CHECK_OK(unlink("q"));
    CHECK_EQ(read(r, buf, 10), 3);
    int w2 = CHECK_OK(open("moved", O_WRONLY));
    CHECK_OK(unlink("moved"));
    CHECK_EQ(write(w2, "de", 2), 2);
    CHECK_EQ(read(r, buf, 10), 2);
    struct stat st;
    CHECK_OK(fstat(r, &st));
    CHECK(S_ISFIFO(st.st_mode));
    CHECK_EQ(st.st_nlink, 0);
}

CASE(content_goes_with_the_last_descriptor) {
    enter();
    int fd = CHECK_OK(open("p", O_RDWR));
    CHECK_EQ(write(fd, "lost", 4), 4);
    int r = CHECK_OK(open("p", O_RDONLY | O_NONBLOCK));
    CHECK_OK(close(fd));
    CHECK_EQ(read(r, buf, 2), 2);  // still there while anybody holds it
    CHECK_OK(close(r));
    r = CHECK_OK(open("p", O_RDONLY | O_NONBLOCK));
    CHECK_EQ(read(r, buf, 10), 0);
}

CASE(interrupted_open) {
    enter();
    catch_signal(SIGUSR1);
    pid_t pid = signal_later(SIGUSR1, 30);
    CHECK_ERRNO(open("p", O_RDONLY), EINTR);
    CHECK_EXIT(pid, 0);
    pid = signal_later(SIGUSR1, 30);
    CHECK_ERRNO(open("p", O_WRONLY), EINTR);
    CHECK_EXIT(pid, 0);
    CHECK_ERRNO(open("p", O_WRONLY | O_NONBLOCK), ENXIO);  // the interrupted reader is gone
}

CASE(kinds_of_refusal) {
    enter();
    int r = CHECK_OK(open("p", O_RDONLY | O_NONBLOCK)), w = CHECK_OK(open("p", O_WRONLY));
    CHECK_ERRNO(lseek(r, 0, SEEK_SET), ESPIPE);
    CHECK_ERRNO(ftruncate(w, 0), EINVAL);
    CHECK_ERRNO(open("p", O_RDONLY | O_DIRECTORY), ENOTDIR);
    CHECK_ERRNO(write(r, "x", 1), EBADF);
    CHECK_ERRNO(read(w, buf, 1), EBADF);
    CHECK_EQ(fcntl(r, F_GETPIPE_SZ), 65536);
    signal(SIGPIPE, SIG_IGN);
    CHECK_OK(close(r));
    CHECK_ERRNO(write(w, "x", 1), EPIPE);
    CHECK_EQ(events_of(w, POLLOUT), POLLOUT | POLLERR);
    r = CHECK_OK(open("p", O_RDONLY | O_NONBLOCK));
    CHECK_EQ(write(w, "x", 1), 1);  // a new reader heals it
    struct stat st;
    CHECK_OK(stat("p", &st));
    CHECK_EQ(st.st_size, 0);
}

CASE(several_waiters_at_open) {
    enter();
    pid_t pids[3];
    for (int i = 0; i < 3; i++) {
        pids[i] = CHECK_OK(fork());
        if (pids[i] == 0) {
            int r = CHECK_OK(open("p", O_RDONLY));
            char c;
            while (read(r, &c, 1) == 1) {}
            _exit(0);
        }
    }
    usleep(30000);
    int w = CHECK_OK(open("p", O_WRONLY));  // one writer lets all readers in
    usleep(30000);
    CHECK_OK(close(w));
    for (int i = 0; i < 3; i++) CHECK_EXIT(pids[i], 0);
}

MAIN
