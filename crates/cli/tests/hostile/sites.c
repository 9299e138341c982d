// A hostile guest of the platform stub that makes every host call from every system-call instruction of the stub: it jumps there
// with any number and arguments, and with a channel of its own making by which the stub's code comes back. What the host lets
// through, ../hostile_calls.rs sees. Arguments: of how many numbers one is tried (1: all). Built static.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>

#include "enter.h"

enum { PATTERNS = 14, NUMBERS = 601, X32 = 60, ODD = 4, ALL = NUMBERS + X32 + ODD, AT_ONCE = 4, HUNG = 3 };

static unsigned char *scratch;
// Of each site: how far its process has come, and what has come back.
static struct { volatile uint64_t next, back; } *progress;

static uint64_t number(int index) {
    static const uint64_t odd[ODD] = {-1, 1ul << 31, 1ul << 32 | SYS_getpid, 1ul << 32 | SYS_kill};
    if (index < NUMBERS) return index;
    // x32: those that it shares, and its own.
    if (index < NUMBERS + X32) return 0x40000000 + (index - NUMBERS < 20 ? index - NUMBERS : 512 - 20 + index - NUMBERS);
    return odd[index - NUMBERS - X32];
}

static void call(int site, uint64_t nr, int pattern) {
    const uint64_t at = (uint64_t)scratch, kernels_pid = *(volatile uint64_t *)(own_channel + KERNELS_PID);
    const uint64_t patterns[PATTERNS][6] = {
        {0},
        {at, 4096, 3, 0x32, -1, 0},
        {at, 4096, 4, at, 1, at},
        {3, at, 16, 0, 0, 0},
        {0x8000, 0, 0, 0, 0, 0},
        {0x250f00, 0, 0, own_channel, 0, 0},
        {1, 9, 0, 0, 0, 0},
        {0, at, 1, 0, 0, 0},
        {kernels_pid, 9, at, 0, 0, 0},
        {-1, -1, -1, -1, -1, -1},
        {(uint64_t)text + TEXT, CHANNELS, 3, 0x11, 3, 0},
        {8, 0, 0, 0, 0, 0},
        {at, 129, 1, 0, 0, 0},
        {-100, (uint64_t)"/etc/passwd", 0, 0, 0, 0},
    };
    call_at(site, nr, patterns[pattern]);
}

// One after the other from where the last process came to; the number that the stub itself uses there always.
static void work(int slot, int site, int stride) {
    uint32_t own;
    memcpy(&own, text + site - 4, 4);
    while (progress[slot].next < (uint64_t)ALL * PATTERNS) {
        uint64_t index = progress[slot].next++;
        uint64_t nr = number(index / PATTERNS);
        if (nr != own && (index / PATTERNS + site) % stride != 0) continue;
        call(site, nr, index % PATTERNS);
        progress[slot].back++;
    }
}

static void pause_ms(long ms) { nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL); }

// Whenever a process ends, or does not come back, another takes over behind the call that did it.
static void drive(int slot, int site, int stride) {
    // Behind some sites the code has no way back: a few tries there.
    int hung = 0;
    while (hung < HUNG && progress[slot].next < (uint64_t)ALL * PATTERNS) {
        pid_t pid = fork();
        if (pid == 0) {
            own_channel = (uint64_t)channel();
            use_made(slot);
            work(slot, site, stride);
            _exit(0);
        }
        if (pid < 0) exit(3);
        uint64_t seen = progress[slot].next;
        for (int still = 0; waitpid(pid, NULL, WNOHANG) == 0; pause_ms(10)) {
            still = progress[slot].next == seen ? still + 1 : 0;
            seen = progress[slot].next;
            if (still < 60) continue;
            // Not waited for: the kernel has patience with it.
            kill(pid, SIGKILL);
            hung++;
            break;
        }
    }
    exit(0);
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IONBF, 0);
    if (argc < 2 || channel() == NULL) return 2;
    look_around();
    scratch = mmap(NULL, 0x10000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    progress = mmap(NULL, SITES * sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    printf("text %lx\n", (long)text);
    int at[SITES], sites = find_sites(at);
    for (int slot = 0; slot < sites; slot++) {
        if (slot >= AT_ONCE) wait(NULL);
        if (fork() == 0) drive(slot, at[slot], atoi(argv[1]));
    }
    while (wait(NULL) > 0) {}
    stop_giving_orders();
    uint64_t tried = 0, back = 0;
    for (int slot = 0; slot < sites; slot++) {
        tried += progress[slot].next == (uint64_t)ALL * PATTERNS;
        back += progress[slot].back;
    }
    printf("sites %d, to their end %d, calls that came back %d\nalive\n", sites, (int)tried, (int)back);
    return 0;
}
