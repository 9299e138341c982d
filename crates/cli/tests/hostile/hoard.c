// A hostile guest of the platform stub that keeps a memory file which it was to let go, and fills it without mapping it: of a file that
// is there still, or is not, or of a child's channels: hoard live|gone|child MIB. Played is our code's part: what the kernel sends for a moment is not closed. Built static.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "enter.h"

enum { CONTROL = 0 };

static int receives;

static void find_sites_of_calls(void) {
    int at[SITES], count = find_sites(at);
    for (int i = count - 1; i >= 0; i--) {
        if (memcmp(text + at[i] - 5, "\xb8\xca\0\0\0", 5) == 0) wakes = at[i];
        if (memcmp(text + at[i] - 5, "\xb8\x2f\0\0\0", 5) == 0) receives = at[i];
    }
    if (!wakes || !receives) exit(4);
}

// The last descriptor of those that the kernel has sent.
static int receive(void) {
    static char byte, control[256];
    struct iovec bytes = {&byte, 1};
    struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    call_at(receives, SYS_recvmsg, (uint64_t[6]){CONTROL, (uint64_t)&message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC, 0, 0, 0});
    struct cmsghdr *part = CMSG_FIRSTHDR(&message);
    if (part == NULL) exit(5);
    return ((int *)(control + part->cmsg_len))[-1];
}

int main(int argc, char **argv) {
    static char block[1 << 20];
    setvbuf(stdout, NULL, _IONBF, 0);
    look_around();
    use_made(0);
    find_sites_of_calls();
    int file = open("/tmp/file", O_RDWR | O_CREAT, 0600);
    memset(block, 1, sizeof block);
    // Until the stub writes by itself.
    volatile uint32_t *handed = (uint32_t *)(own_channel + HANDED);
    for (int i = 0; i < 100000 && !handed[file]; i++) pwrite(file, block, 4096, 0);
    if (!handed[file]) return 6;
    ftruncate(file, sizeof block);

    uint64_t *arguments = (uint64_t *)(own_channel + CALL);
    int is_child = strcmp(argv[1], "child") == 0;
    hand_over();
    arguments[0] = 0, arguments[1] = sizeof block, arguments[2] = PROT_READ | PROT_WRITE;
    arguments[3] = MAP_SHARED, arguments[4] = file, arguments[5] = 0;
    post(CALLED | (is_child ? SYS_fork : SYS_mmap) << 8);
    await_order();
    int kept = receive();
    *(int64_t *)(own_channel + RESULT) = is_child ? -EAGAIN : -ENOMEM;
    post(DONE);
    await_order();
    printf("keeps %d after %ld\n", kept > 0, *(long *)(own_channel + CALL));
    if (strcmp(argv[1], "live") != 0) {
        unlink("/tmp/file");
        close(file);
    }
    // For reading and for writing, without a budget.
    handed[file] = (uint32_t)kept << 3 | 3;
    long blocks = 0;
    while (blocks < atol(argv[2]) && pwrite(file, block, sizeof block, blocks << 20) == sizeof block) blocks++;
    printf("filled %d\n", blocks == atol(argv[2]));
    stop_giving_orders();
    sleep(1);
    printf("alive\n");
    return 0;
}
