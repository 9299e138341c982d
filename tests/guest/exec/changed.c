// Programs whose text is changed between two runs, with the file's size the same and its times hardly others.
#include "elf.h"
#include <stdint.h>
#include <sys/mman.h>

// The status lies four bytes long in `mov $7, %edi`, behind what is skipped.
PROGRAM(status7, ".skip 64, 0x90\n\tmov $7, %edi\n\tmov $231, %eax\n\tsyscall\n\t.skip 64, 0x90\n\t");
PROGRAM(returns, ".skip 64, 0x90\n\tmov $39, %eax\n\tsyscall\n\tret\n\t.skip 64, 0x90\n\t");
enum { IMMEDIATE = CODE + 65 };

static int run(const char *path) {
    char *argv[] = {"changed", NULL}, *envp[] = {NULL};
    return run_path(path, argv, envp);
}

CASE(by_write) {
    SIMPLE(ET_EXEC, status7);
    const char *path = image_write("image");
    for (uint32_t status = 1; status < 50; status++) {
        int fd = CHECK_OK(open(path, O_WRONLY | O_CLOEXEC));
        CHECK_EQ(pwrite(fd, &status, 4, IMMEDIATE), 4);
        CHECK_OK(close(fd));
        CHECK_EQ(run(path), status << 8);
    }
}

CASE(by_a_shared_mapping) {
    SIMPLE(ET_EXEC, status7);
    const char *path = image_write("image");
    CHECK_EQ(run(path), 7 << 8);
    usleep(300000);
    for (uint32_t status = 1; status < 5; status++) {
        int fd = CHECK_OK(open(path, O_RDWR | O_CLOEXEC));
        char *at = CHECK_MAP(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
        CHECK_OK(close(fd));
        memcpy(at + IMMEDIATE, &status, 4);
        CHECK_OK(munmap(at, 4096));
        CHECK_EQ(run(path), status << 8);
    }
}

// A library may be written to while it is mapped; whoever maps it next sees what is there.
CASE(while_it_is_mapped_for_writing) {
    SIMPLE(ET_DYN, returns);
    int fd = CHECK_OK(open(image_write("library"), O_RDWR | O_CLOEXEC));
    char *shared = CHECK_MAP(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    memcpy(shared + IMMEDIATE, &(uint32_t){SYS_getppid}, 4);
    usleep(300000);
    for (int i = 0; i < 6; i++) {
        uint32_t number = i % 2 ? SYS_getppid : SYS_getpid;
        memcpy(shared + IMMEDIATE, &number, 4);
        char *text = CHECK_MAP(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0));
        long (*call)(void) = (long (*)(void))(text + CODE);
        CHECK_EQ(call(), i % 2 ? getppid() : getpid());
        CHECK_OK(munmap(text, 4096));
    }
}
MAIN
