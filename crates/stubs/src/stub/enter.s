    // From a patched site, by way of its trampoline. rax: the number; rcx: where to go on, behind the site's
    // `syscall`. No stack of the guest's is touched (red zone). As by a real `syscall`, all registers but rcx and r11
    // survive, and all flags. Where to go on lies in the channel from then on (KEPT), the arithmetic flags above it: what
    // `lahf` gives in the last byte, the overflow flag in the one before.
    .globl umlaut_enter, umlaut_check_leaf, umlaut_check_leaf_end

    // All that the guest has, rax as it is to be, to the channel (r15; the guest's r15 is there). rax and rcx are lost.
    .macro  umlaut_save
    mov     [r15 + {REGS} + 8], r14
    mov     [r15 + {REGS} + 16], r13
    mov     [r15 + {REGS} + 24], r12
    mov     [r15 + {REGS} + 32], rbp
    mov     [r15 + {REGS} + 40], rbx
    mov     [r15 + {REGS} + 56], r10
    mov     [r15 + {REGS} + 64], r9
    mov     [r15 + {REGS} + 72], r8
    mov     [r15 + {REGS} + 80], rax
    mov     [r15 + {REGS} + 96], rdx
    mov     [r15 + {REGS} + 104], rsi
    mov     [r15 + {REGS} + 112], rdi
    mov     rcx, [r15 + {KEPT}]
    movzx   eax, word ptr [r15 + {KEPT} + 6]
    shl     rcx, 16
    shr     rcx, 16
    mov     [r15 + {REGS} + 88], rcx
    mov     [r15 + {REGS} + 128], rcx
    movzx   ecx, ah
    and     eax, 1
    shl     eax, 11
    or      eax, ecx
    mov     qword ptr [r15 + {REGS} + 136], 0x33
    mov     [r15 + {REGS} + 152], rsp
    lea     rsp, [r15 + {REGS} + 152]
    pushfq                                  // to rflags
    mov     rsp, [r15 + {REGS} + 152]
    mov     rcx, [r15 + {REGS} + 144]
    and     rcx, -0x8d6                     // the arithmetic ones are ours by now
    or      rcx, rax
    mov     [r15 + {REGS} + 144], rcx
    mov     [r15 + {REGS} + 48], rcx
    mov     qword ptr [r15 + {REGS} + 160], 0x2b
    rdfsbase r11
    mov     [r15 + {REGS} + 168], r11
    mov     [r15 + {REGS} + 176], r15
    mov     qword ptr [r15 + {FP}], 0
    .endm

    .balign 64
umlaut_enter:
    mov     r11, rax
    lahf
    seto    al
    shl     rax, 48
    or      rcx, rax
    mov     rax, r11
    rdgsbase r11
    sub     r11, [rip + umlaut_channels]
    cmp     r11, {CHANNELS_SIZE}
    jae     1f
    mov     gs:[{KEPT}], rcx
    mov     r11d, eax
    cmp     r11d, {DISPATCHED}
    jae     umlaut_enter_full
    movzx   r11d, byte ptr gs:[r11 + {DISPATCH}]
    shl     r11d, 5
    add     r11, [rip + umlaut_leaves]
    jmp     r11
    // GS is the guest's: the site's own `syscall` traps.
1:  mov     r11, rax
    mov     rax, rcx
    shr     rax, 48
    shl     rcx, 16
    shr     rcx, 16
    sub     rcx, 2
    add     al, 0x7f
    sahf
    mov     rax, r11
    jmp     rcx

    // 32 bytes each, by the number in the dispatch table.
    .balign 32
umlaut_leaf_table:
    jmp     umlaut_enter_full
    .balign 32
    .macro  umlaut_identity index
    mov     r11d, gs:[{IDENTITY} + 4 * \index]
    inc     qword ptr gs:[{SERVED} + 8 * \index]
    jmp     umlaut_check_leaf
    .balign 32
    .endm
    umlaut_identity 0
    umlaut_identity 1
    umlaut_identity 2
    umlaut_identity 3
    umlaut_identity 4
    umlaut_identity 5
    jmp     umlaut_leaf_yield
    .balign 32
    .irp    name, read, write, pread, pwrite, lseek, readv, writev, preadv, pwritev, futex, getcpu, madvise, sigprocmask, sigaltstack
    jmp     umlaut_leaf_\name
    .balign 32
    .endr

    // Back to the guest, the result in rax. Restartable from the check on: then it lies in r11.
umlaut_leave:
    mov     r11, rax
umlaut_check_leaf:
    cmp     dword ptr gs:[{PENDING}], 0
    jne     1f
    mov     rcx, gs:[{KEPT}]
    movzx   eax, word ptr gs:[{KEPT} + 6]
    shl     rcx, 16
    shr     rcx, 16
    add     al, 0x7f                        // 0x80 overflows
    sahf
    mov     rax, r11
    jmp     rcx
umlaut_check_leaf_end:
    // A kick came meanwhile: the call is done.
1:  mov     rax, r11
    mov     gs:[{REGS}], r15
    mov     r15, gs:[{SELF}]
    umlaut_save
    jmp     umlaut_pending

    // sched_yield keeps everything but rax, rcx and r11.
    .globl umlaut_yield_call
umlaut_leaf_yield:
    inc     qword ptr gs:[{SERVED} + 8 * 6]
    mov     eax, 24
umlaut_yield_call:
    syscall
    jmp     umlaut_leave

umlaut_enter_full:
    mov     gs:[{REGS}], r15
    mov     r15, gs:[{SELF}]
    mov     [r15 + {CALL}], rdi
    mov     [r15 + {CALL} + 8], rsi
    mov     [r15 + {CALL} + 16], rdx
    mov     [r15 + {CALL} + 24], r10
    mov     [r15 + {CALL} + 32], r8
    mov     [r15 + {CALL} + 40], r9
    umlaut_save
    jmp     umlaut_bring
