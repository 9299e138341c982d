// Threads that use a file by themselves, in several states, when another one closes it, in several ways. Tells of each step and
// waits for a line before the next.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static int fd, ends[2], other;
static volatile int ready, go, word;

static void must(int done, const char *what) {
    if (!done) {
        perror(what);
        exit(1);
    }
}

static void *holder(void *state) {
    char byte;
    for (int i = 0; i < 60; i++) {
        must(pread(fd, &byte, 1, 0) == 1, "pread");
        must(pwrite(fd, "x", 1, 0) == 1, "pwrite");
    }
    ready = 1;
    switch ((long)state) {
    case 0: while (!go) pread(fd, &byte, 1, 0); break;
    case 1: while (!go) {} break;
    case 2: must(read(ends[0], &byte, 1) == 1, "read"); break;
    case 3: while (!go) syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0); break;
    }
    return NULL;
}

static void release(int way) {
    switch (way) {
    case 0: must(close(fd) == 0, "close"); break;
    case 1: must(dup2(other, fd) == fd, "dup2"); break;
    case 2: must(syscall(SYS_close_range, fd, fd, 0) == 0, "close_range"); break;
    }
}

static void tell(const char *what) {
    char line[8];
    puts(what);
    fflush(stdout);
    must(fgets(line, sizeof line, stdin) != NULL, "fgets");
}

static void round_of(const char *path, long state, int way, int is_told) {
    pthread_t thread;
    fd = open(path, O_RDWR | O_CREAT, 0600);
    must(fd >= 0 && write(fd, "x", 1) == 1 && pipe(ends) == 0, "a file and a pipe");
    ready = go = word = 0;
    must(pthread_create(&thread, NULL, holder, (void *)state) == 0, "pthread_create");
    while (!ready) usleep(100);
    if (is_told) tell("open");
    release(way);
    if (is_told) tell("closed");
    go = word = 1;
    syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0);
    must(write(ends[1], "x", 1) == 1, "write");
    must(pthread_join(thread, NULL) == 0, "pthread_join");
    if (way == 1) close(fd);
    close(ends[0]);
    close(ends[1]);
}

int main(int count, char **arguments) {
    must(count == 2, "one argument");
    other = open("/dev/null", O_RDONLY);
    for (long state = 0; state < 4; state++)
        for (int way = 0; way < 3; way++) round_of(arguments[1], state, way, 1);
    // What each leaves behind, if anything, would be too much by now.
    for (int i = 0; i < 200; i++) round_of(arguments[1], i % 4, i % 3, 0);
    round_of(arguments[1], 0, 0, 1);
    puts("done");
    return 0;
}
