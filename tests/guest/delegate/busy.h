// Files that are read and written so often that umlaut hands them to the guest (natively nothing special).
#ifndef BUSY_H
#define BUSY_H
#include "../check.h"
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/uio.h>

enum { BUSY = 40 };

// Uses a descriptor until the thread does so by itself; the offset and the content stay.
static void CHECK_USED busy_reading(int fd) {
    char byte;
    for (int i = 0; i < BUSY; i++) CHECK_LE(0, pread(fd, &byte, 1, 0));
}

static void CHECK_USED busy_writing(int fd) {
    char byte = 0;
    CHECK_LE(0, pread(fd, &byte, 1, 0));
    for (int i = 0; i < BUSY; i++) CHECK_EQ(pwrite(fd, &byte, 1, 0), 1);
}

// A file of `size` bytes, the n-th being `first + n % 32`.
static int CHECK_USED make(const char *path, char first, int size) {
    int fd = CHECK_OK(open(path, O_RDWR | O_CREAT | O_TRUNC, 0644));
    for (int i = 0; i < size; i++) {
        char byte = first + i % 32;
        CHECK_EQ(write(fd, &byte, 1), 1);
    }
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}
#endif
