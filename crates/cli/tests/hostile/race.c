// A hostile guest in a writable directory whose names move while it walks them, by its own doing and by the host's: it looks
// for what lies outside. Built static, run by ../hostile.rs: race DIR SECONDS CANARY.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

static const char *canary;
static atomic_int seen, done;
static atomic_long rounds, opened;

static void look(int fd) {
    char bytes[64] = {0};
    if (fd < 0) return;
    atomic_fetch_add(&opened, 1);
    if (pread(fd, bytes, sizeof bytes - 1, 0) > 0 && strstr(bytes, canary)) atomic_store(&seen, 1);
    close(fd);
}

static void harm(int at, const char *path) {
    int fd = openat(at, path, O_WRONLY | O_CREAT, 0666);
    if (fd >= 0) {
        if (write(fd, "spoiled", 7) < 0) {}
        fchmod(fd, 04777);
        fsetxattr(fd, "user.mark", "1", 1, 0);
        close(fd);
    }
    fchmodat(at, path, 04666, 0);
    fchownat(at, path, 7, 7, 0);
    if (at == AT_FDCWD) {
        truncate(path, 3);
        setxattr(path, "user.mark", "1", 1, 0);
    }
}

static void list(int at, const char *path) {
    int fd = openat(at, path, O_RDONLY | O_DIRECTORY);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) return;
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (strcmp(entry->d_name, "only-outside") == 0) atomic_store(&seen, 2);
        if (entry->d_type != DT_DIR) look(openat(fd, entry->d_name, O_RDONLY | O_NONBLOCK));
    }
    closedir(dir);
}

// By names from the start, and from a directory that is held while it wanders.
static void *poke(void *unused) {
    int held = open("dir", O_RDONLY | O_DIRECTORY);
    char name[32];
    for (long round = 0; !atomic_load(&done); round++) {
        static const char *const paths[] = {"dir/file", "dir/sub/../file", "dir/sub/../../dir/file", "link/file", "dir/made"};
        for (int i = 0; i < 5; i++) {
            look(open(paths[i], O_RDONLY | O_NONBLOCK));
            look(openat(held, i & 1 ? "file" : "sub/../file", O_RDONLY));
        }
        harm(AT_FDCWD, "dir/file");
        harm(AT_FDCWD, "dir/sub/new");
        harm(held, "file");
        harm(held, "sub/../../outside/file");
        list(AT_FDCWD, "dir");
        list(AT_FDCWD, "dir/sub/..");
        list(held, "..");
        snprintf(name, sizeof name, "dir/hard-%ld", round % 3);
        linkat(AT_FDCWD, "dir/file", AT_FDCWD, name, AT_SYMLINK_FOLLOW);
        look(open(name, O_RDONLY));
        unlink(name);
        mkdir("dir/sub/deep", 0777);
        rename("dir/sub/deep", "dir/deep");
        rmdir("dir/deep");
        symlink("/", "dir/made");
        unlink("dir/made");
        mkfifo("dir/made", 04666);
        rename("dir/made", "dir/sub/made");
        unlink("dir/sub/made");
        if (round % 16 == 0) {
            close(held);
            held = open("dir", O_RDONLY | O_DIRECTORY);
        }
        atomic_fetch_add(&rounds, 1);
    }
    return unused;
}

static void *exchange(void *unused) {
    while (!atomic_load(&done)) {
        syscall(SYS_renameat2, AT_FDCWD, "dir", AT_FDCWD, "link", 2);
        rename("dir/sub", "sub");
        rename("sub", "dir/sub");
        usleep(200);
    }
    return unused;
}

int main(int argc, char **argv) {
    if (argc < 4 || chdir(argv[1])) return 2;
    canary = argv[3];
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, i < 2 ? poke : exchange, NULL);
    sleep(atoi(argv[2]));
    atomic_store(&done, 1);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    printf("rounds %d opened %d\nseen %d\nalive\n", rounds > 3, opened > 3, seen);
    return 0;
}
