// How a hostile guest runs code of the stub of the platform stub by itself: it jumps to an instruction of it with registers and a
// channel of its own making, by which that code comes back.
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// Where things lie in a channel is told by who compiles this: crates/stubs/src/layout.rs, PLACES.
enum { SITES = 128 };

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

static unsigned char *text, *made;
static uint64_t own_channel, registers[8];

void *come_back_to, *site_to_jump_to;
// What a thread that is made there begins with as its channel.
uint64_t channel_of_child;
void jump(const uint64_t *registers);
void landing(void);
__asm__(".text\n"
        "jump: push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
        "mov %rsp, come_back_to(%rip)\n"
        "mov 8(%rdi), %rsi; mov 16(%rdi), %rdx; mov 24(%rdi), %r10; mov 32(%rdi), %r8; mov 40(%rdi), %r9\n"
        "mov 48(%rdi), %rax; mov 56(%rdi), %r15; mov (%rdi), %rdi\n"
        "lea landing(%rip), %r12; mov %r12, %rcx; mov %r12, %r11; mov channel_of_child(%rip), %rbx\n"
        "xor %ebp, %ebp; xor %r13d, %r13d; xor %r14d, %r14d\n"
        "jmp *site_to_jump_to(%rip)\n"
        "landing: mov come_back_to(%rip), %rsp\n"
        "pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx; cld; ret\n");

// Makes a call there. Comes back if the code behind the site does.
static void call_with_child(int site, uint64_t nr, const uint64_t arguments[6], uint64_t child) {
    channel_of_child = child;
    memcpy(registers, arguments, 6 * sizeof *arguments);
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

static void call_at(int site, uint64_t nr, const uint64_t arguments[6]) {
    call_with_child(site, nr, arguments, (uint64_t)made + 0x1000);
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

// Channels of our own making, one for each process that jumps, and whether all is over. The stub empties the word by which it is
// given orders when it hands over, so another process writes that there is one, again and again.
enum { MADE = 128 };
static unsigned char *all_made;

static void give_orders(void) {
    for (volatile uint32_t *over = (void *)(all_made + MADE * CHANNEL); !*over;) {
        for (int i = 0; i < MADE; i++) {
            uint32_t *word = (void *)(all_made + i * CHANNEL + TO_GUEST);
            // 2: it sleeps.
            if (__atomic_exchange_n(word, 1, __ATOMIC_SEQ_CST) == 2) syscall(SYS_futex, word, 1, 1, NULL, NULL, 0);
        }
        __asm__ volatile("pause");
    }
    _exit(0);
}

static void stop_giving_orders(void) { *(volatile uint32_t *)(all_made + MADE * CHANNEL) = 1; }

// The channel that this process is to use.
static void use_made(int slot) { made = all_made + slot * CHANNEL; }

// Finds where everything is.
static void look_around(void) {
    own_channel = (uint64_t)channel();
    text = channel() - TEXT;
    all_made = mmap(NULL, (MADE + 2) * CHANNEL, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    all_made += -(uint64_t)all_made % CHANNEL;
    // Not our child: those are waited for. By this the channel also tells the kernel's pid.
    if (fork() == 0) {
        if (fork() == 0) give_orders();
        _exit(0);
    }
    wait(NULL);
}

// Playing our code, in the place of the kernel's word to it.

// A call that is handed over. (A thread that is made now begins behind it: it goes where its stack says.)
void hand_over(void);
__asm__(".text\n"
        "hand_over: mov $146, %eax; syscall; ret\n");

enum { CALLED = 1, DONE = 4, TO_KERNEL = 0 };

// The site at which the stub wakes the kernel.
static int wakes;

static void post(uint32_t reason) {
    unsigned char *own = (unsigned char *)own_channel;
    *(volatile uint32_t *)(own + REASON) = reason;
    *(volatile uint32_t *)(own + TO_GUEST) = 0;
    // 2: the kernel's thread sleeps.
    if (__atomic_exchange_n((uint32_t *)(own + TO_KERNEL), 1, __ATOMIC_SEQ_CST) == 2) {
        call_at(wakes, SYS_futex, (uint64_t[6]){own_channel + TO_KERNEL, 1, 1, 0, 0, 0});
    }
}

static void await_order(void) {
    for (;;) {
        if (*(volatile uint32_t *)(own_channel + TO_GUEST) == 1) return;
        __asm__ volatile("pause");
    }
}

static int ordered(void) { return *(volatile uint32_t *)(own_channel + ORDER) & 255; }
