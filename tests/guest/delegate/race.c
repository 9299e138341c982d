// build: static -pthread
// Threads close, reopen and replace numbers while others read by them: no byte ever comes from a wrong file.
#include "busy.h"
#include <pthread.h>

enum { READERS = 2, ROUNDS = 20, FEW = 5, PAGE = 4096 };
static int number;
// Even: the number leads to the file of this round, whose bytes are all alike; odd: nobody knows.
static unsigned turn;

static int make_full(const char *path, char byte) {
    char page[PAGE];
    memset(page, byte, sizeof page);
    int fd = CHECK_OK(open(path, O_RDWR | O_CREAT | O_TRUNC, 0644));
    // Large: umlaut keeps it in a memory file of the host's from the start.
    for (int i = 0; i < 20; i++) CHECK_EQ(pwrite(fd, page, sizeof page, i * PAGE), PAGE);
    return fd;
}

static unsigned now(void) {
    return __atomic_load_n(&turn, __ATOMIC_SEQ_CST);
}

// If the turn is the same before and after, what was read in between is of its file.
static void *reader(void *none) {
    (void)none;
    for (;;) {
        unsigned before = now();
        if (before >= 2 * ROUNDS) return NULL;
        char buf[200];
        ssize_t got = pread(number, buf, sizeof buf, 100);
        unsigned after = now();
        if (before % 2 == 1 || before != after) continue;
        CHECK_EQ(got, (int)sizeof buf);
        for (unsigned i = 0; i < sizeof buf; i++) CHECK_EQ(buf[i], 'A' + (int)(before / 2 % 4));
    }
}

static void let_them_read(void) {
    char buf[16];
    for (int i = 0; i < FEW; i++) CHECK_LE(0, pread(number, buf, sizeof buf, 0));
    usleep(200);
}

static void race(void (*change)(int round)) {
    turn = 1;
    change(0);
    __atomic_store_n(&turn, 0, __ATOMIC_SEQ_CST);
    pthread_t threads[READERS];
    for (int i = 0; i < READERS; i++) CHECK_EQ(pthread_create(&threads[i], NULL, reader, NULL), 0);
    for (int round = 1; round <= ROUNDS; round++) {
        let_them_read();
        __atomic_store_n(&turn, 2 * round - 1, __ATOMIC_SEQ_CST);
        change(round);
        __atomic_store_n(&turn, 2 * round, __ATOMIC_SEQ_CST);
    }
    for (int i = 0; i < READERS; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
}

static char paths[4][300];
static int files[4];
static void make_files(void) {
    for (int i = 0; i < 4; i++) {
        snprintf(paths[i], sizeof paths[i], "%s%d", TMP("f"), i);
        files[i] = make_full(paths[i], 'A' + i);
    }
}

static void by_dup2(int round) {
    CHECK_EQ(dup2(files[round % 4], number), number);
}
CASE(replacing) {
    make_files();
    number = CHECK_OK(dup(files[0]));
    race(by_dup2);
}

static void by_close(int round) {
    if (number >= 0) CHECK_OK(close(number));
    // The lowest number is the one that has just become free.
    int fd = CHECK_OK(open(paths[round % 4], O_RDONLY));
    if (number < 0) number = fd;
    CHECK_EQ(fd, number);
}
CASE(closing_and_opening) {
    make_files();
    number = -1;
    race(by_close);
}

// Threads that end leave nothing behind, and their successors begin with nothing.
static void *short_life(void *none) {
    for (int i = 0; i < FEW; i++) {
        char byte;
        CHECK_EQ(pread(number, &byte, 1, 0), 1);
        CHECK_EQ(byte, (char)(intptr_t)none);
    }
    return NULL;
}
CASE(threads_come_and_go) {
    make_files();
    number = CHECK_OK(dup(files[0]));
    for (int round = 0; round < 8; round++) {
        pthread_t threads[4];
        CHECK_EQ(dup2(files[round % 4], number), number);
        for (int i = 0; i < 4; i++)
            CHECK_EQ(pthread_create(&threads[i], NULL, short_life, (void *)(intptr_t)('A' + round % 4)), 0);
        for (int i = 0; i < 4; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
}

// Appends of several threads are each whole.
enum { APPENDS = 60 };
static void *appender(void *letter) {
    char line[16];
    memset(line, (int)(intptr_t)letter, sizeof line);
    for (int i = 0; i < APPENDS; i++) CHECK_EQ(write(number, line, sizeof line), (int)sizeof line);
    return NULL;
}
CASE(appending_together) {
    number = CHECK_OK(open(TMP("f"), O_RDWR | O_CREAT | O_APPEND, 0644));
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) CHECK_EQ(pthread_create(&threads[i], NULL, appender, (void *)(intptr_t)('a' + i)), 0);
    for (int i = 0; i < 3; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_EQ(lseek(number, 0, SEEK_END), 3 * APPENDS * 16);
    int of[3] = {0};
    for (int i = 0; i < 3 * APPENDS; i++) {
        char line[16];
        CHECK_EQ(pread(number, line, sizeof line, i * 16L), 16);
        for (int j = 1; j < 16; j++) CHECK_EQ(line[j], line[0]);
        CHECK(line[0] >= 'a' && line[0] <= 'c');
        of[line[0] - 'a']++;
    }
    for (int i = 0; i < 3; i++) CHECK_EQ(of[i], APPENDS);
}
MAIN
