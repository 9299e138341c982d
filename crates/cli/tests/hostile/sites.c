// A hostile guest of the platform stub that makes every host call from every system-call instruction of the stub: it jumps there
// with any number and arguments, and with a channel of its own making by which the stub's code comes back. What the host lets
// through, ../hostile_calls.rs sees. Arguments: of how many numbers one is tried (1: all). Built static.
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// Of the layout: see crates/stubs/src/layout.rs.
enum { CHANNEL = 0x10000, CHANNELS = 1024 * CHANNEL, TEXT = 0x3000 };
enum { TO_GUEST = 0x4, ORDER = 0xc, GS = 0x40, REGS = 0x100, RECORDS = 0x1000, RESUME_FULL = 1 };
enum { SITES = 128, PATTERNS = 14, NUMBERS = 601, X32 = 60, ODD = 4, ALL = NUMBERS + X32 + ODD, AT_ONCE = 8, HUNG = 3 };

static unsigned char *channel(void) {
    unsigned char *at;
    __asm__ volatile("rdgsbase %0" : "=r"(at));
    return at;
}

static uint64_t fs_base(void) {
    uint64_t at;
    __asm__ volatile("rdfsbase %0" : "=r"(at));
    return at;
}

static unsigned char *text, *made, *scratch;
static uint64_t own_channel, registers[8];
// Of each site: how far its process has come, and what has come back.
static struct { volatile uint64_t next, back; } *progress;

void *come_back_to, *site_to_jump_to;
void jump(const uint64_t *registers);
void landing(void);
__asm__(".text\n"
        "jump: push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
        "mov %rsp, come_back_to(%rip)\n"
        "mov 8(%rdi), %rsi; mov 16(%rdi), %rdx; mov 24(%rdi), %r10; mov 32(%rdi), %r8; mov 40(%rdi), %r9\n"
        "mov 48(%rdi), %rax; mov 56(%rdi), %r15; mov (%rdi), %rdi\n"
        "lea landing(%rip), %r12; mov %r12, %rcx; mov %r12, %r11; lea 0x1000(%r15), %rbx\n"
        "xor %ebp, %ebp; xor %r13d, %r13d; xor %r14d, %r14d\n"
        "jmp *site_to_jump_to(%rip)\n"
        "landing: mov come_back_to(%rip), %rsp\n"
        "pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx; cld; ret\n");

static uint64_t number(int index) {
    static const uint64_t odd[ODD] = {-1, 1ul << 31, 1ul << 32 | SYS_getpid, 1ul << 32 | SYS_kill};
    if (index < NUMBERS) return index;
    // x32: those that it shares, and its own.
    if (index < NUMBERS + X32) return 0x40000000 + (index - NUMBERS < 20 ? index - NUMBERS : 512 - 20 + index - NUMBERS);
    return odd[index - NUMBERS - X32];
}

static void call(int site, uint64_t nr, int pattern) {
    const uint64_t at = (uint64_t)scratch, kernels_pid = *(volatile uint64_t *)(own_channel + 0x58);
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
    memcpy(registers, patterns[pattern], sizeof patterns[pattern]);
    registers[6] = nr;
    registers[7] = (uint64_t)made;
    // An order is there already: to go on with these registers.
    memset(made, 0, REGS + 0x100);
    *(uint32_t *)(made + TO_GUEST) = 1;
    *(uint32_t *)(made + ORDER) = RESUME_FULL;
    *(uint64_t *)(made + GS) = own_channel;
    uint64_t *regs = (uint64_t *)(made + REGS);
    regs[16] = (uint64_t)landing, regs[17] = 0x33, regs[18] = 0x202, regs[20] = 0x2b;
    regs[19] = (uint64_t)made + CHANNEL / 2, regs[21] = fs_base();
    site_to_jump_to = text + site;
    jump(registers);
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

static sigjmp_buf past_the_end;

static void faulted(int signal) { siglongjmp(past_the_end, signal); }

// The distances of all its sites from the text's start.
static int find_sites(int *sites) {
    volatile int count = 0;
    signal(SIGSEGV, faulted);
    if (sigsetjmp(past_the_end, 1) == 0) {
        for (int at = 4; at < TEXT - 1 && count < SITES; at++) {
            if (text[at] == 0x0f && text[at + 1] == 0x05) sites[count++] = at;
        }
    }
    signal(SIGSEGV, SIG_DFL);
    return count;
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IONBF, 0);
    if (argc < 2 || channel() == NULL) return 2;
    own_channel = (uint64_t)channel();
    text = channel() - TEXT;
    scratch = mmap(NULL, 0x10000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    made = mmap(NULL, 2 * CHANNEL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    made += -(uint64_t)made % CHANNEL;
    progress = mmap(NULL, SITES * sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    // So that the channel tells the kernel's pid.
    if (fork() == 0) _exit(0);
    wait(NULL);
    printf("text %lx\n", (long)text);
    int at[SITES], sites = find_sites(at);
    for (int slot = 0; slot < sites; slot++) {
        if (slot >= AT_ONCE) wait(NULL);
        if (fork() == 0) drive(slot, at[slot], atoi(argv[1]));
    }
    while (wait(NULL) > 0) {}
    uint64_t tried = 0, back = 0;
    for (int slot = 0; slot < sites; slot++) {
        tried += progress[slot].next == (uint64_t)ALL * PATTERNS;
        back += progress[slot].back;
    }
    printf("sites %d, to their end %d, calls that came back %d\nalive\n", sites, (int)tried, (int)back);
    return 0;
}
