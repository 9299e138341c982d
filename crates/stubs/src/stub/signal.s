    // The handler of all signals that are not ignored, on the alternate stack, which is the end of the
    // thread's channel. rdi: signal; rsi: siginfo; rdx: ucontext, whose registers begin at 40.
    .globl umlaut_signal, umlaut_sigreturn, umlaut_sigreturn_call
umlaut_signal:
    mov     r15, rsp
    and     r15, -{SIZE}
    mov     rax, [rdx + 40 + 128]           // where it was
    lea     rcx, [rip + umlaut_text]
    cmp     rax, rcx
    jb      1f
    lea     rcx, [rip + umlaut_text_end]
    cmp     rax, rcx
    jb      umlaut_in_stub
1:
    // In guest code: its registers go to the channel, and the kernel hears of it.
    mov     rax, [rdx + 40]
    mov     [r15 + {REGS} + 72], rax        // r8
    mov     rax, [rdx + 40 + 8]
    mov     [r15 + {REGS} + 64], rax        // r9
    mov     rax, [rdx + 40 + 16]
    mov     [r15 + {REGS} + 56], rax        // r10
    mov     rax, [rdx + 40 + 24]
    mov     [r15 + {REGS} + 48], rax        // r11
    mov     rax, [rdx + 40 + 32]
    mov     [r15 + {REGS} + 24], rax        // r12
    mov     rax, [rdx + 40 + 40]
    mov     [r15 + {REGS} + 16], rax        // r13
    mov     rax, [rdx + 40 + 48]
    mov     [r15 + {REGS} + 8], rax         // r14
    mov     rax, [rdx + 40 + 56]
    mov     [r15 + {REGS}], rax             // r15
    mov     rax, [rdx + 40 + 64]
    mov     [r15 + {REGS} + 112], rax       // rdi
    mov     rax, [rdx + 40 + 72]
    mov     [r15 + {REGS} + 104], rax       // rsi
    mov     rax, [rdx + 40 + 80]
    mov     [r15 + {REGS} + 32], rax        // rbp
    mov     rax, [rdx + 40 + 88]
    mov     [r15 + {REGS} + 40], rax        // rbx
    mov     rax, [rdx + 40 + 96]
    mov     [r15 + {REGS} + 96], rax        // rdx
    mov     rax, [rdx + 40 + 104]
    mov     [r15 + {REGS} + 80], rax        // rax
    mov     rax, [rdx + 40 + 112]
    mov     [r15 + {REGS} + 88], rax        // rcx
    mov     rax, [rdx + 40 + 120]
    mov     [r15 + {REGS} + 152], rax       // rsp
    mov     rax, [rdx + 40 + 128]
    mov     [r15 + {REGS} + 128], rax       // rip
    mov     rax, [rdx + 40 + 136]
    mov     [r15 + {REGS} + 144], rax       // flags
    movzx   eax, word ptr [rdx + 40 + 144]
    mov     [r15 + {REGS} + 136], rax       // cs
    movzx   eax, word ptr [rdx + 40 + 150]
    mov     [r15 + {REGS} + 160], rax       // ss
    rdfsbase rax
    mov     [r15 + {REGS} + 168], rax
    rdgsbase rax
    mov     [r15 + {REGS} + 176], rax
    mov     rax, [rdx + 40 + 184]
    mov     [r15 + {FP}], rax
    mov     [r15 + {SIGNAL}], edi
    mov     eax, [rsi + 8]
    mov     [r15 + {SIGNAL} + 4], eax       // si_code
    mov     rax, [rsi + 16]
    mov     [r15 + {SIGNAL} + 8], rax       // si_addr
    mov     eax, [rsi + 28]
    mov     [r15 + {SIGNAL} + 16], eax      // si_arch
    mov     rax, [rdx + 40 + 152]
    mov     [r15 + {SIGNAL} + 24], rax      // error code
    mov     rax, [rdx + 40 + 160]
    mov     [r15 + {SIGNAL} + 32], rax      // trap number
    mov     rax, [rdx + 40 + 176]
    mov     [r15 + {SIGNAL} + 40], rax      // cr2
    mov     eax, {TRAPPED}
    cmp     edi, {KICK}
    jne     umlaut_hand_over
    mov     eax, {KICKED}
    jmp     umlaut_hand_over

    // In the stub. rax: where.
umlaut_in_stub:
    cmp     edi, {KICK}
    je      5f
    cmp     edi, 31                         // SIGSYS: the filter refuses a call
    je      6f
    // A fault: of the few instructions that may, or of a stub that is broken.
    .irp    place, vector_loads, own
    lea     rcx, [rip + umlaut_\place]
    lea     r8, [rip + umlaut_\place\()_end]
    cmp     rax, rcx
    jb      1f
    cmp     rax, r8
    jae     1f
    lea     r8, [rip + umlaut_leaf_failed]
    mov     [rdx + 40 + 128], r8            // r15 is the guest's there
    jmp     umlaut_sigreturn
1:
    .endr
    lea     rcx, [rip + umlaut_exchange]
    lea     r8, [rip + umlaut_exchange_failed]
    cmp     rax, rcx
    je      4f
    lea     rcx, [rip + umlaut_bring_copy]
    lea     r8, [rip + umlaut_bring_failed]
    cmp     rax, rcx
    je      4f
    lea     rcx, [rip + umlaut_bring_string]
    cmp     rax, rcx
    je      4f
    lea     rcx, [rip + umlaut_answer_copy]
    lea     r8, [rip + umlaut_answer_failed]
    cmp     rax, rcx
    je      4f
    lea     rcx, [rip + umlaut_xrstor]
    lea     r8, [rip + umlaut_xrstor_failed]
    cmp     rax, rcx
    je      4f
    mov     eax, {BROKEN}
    jmp     umlaut_hand_over

    .macro  umlaut_rewind from, to, then=4f
    lea     r8, [rip + \from]
    lea     r9, [rip + \to]
    cmp     rax, r8
    jb      3f
    cmp     rax, r9
    jb      \then
3:
    .endm
5:  mov     dword ptr [r15 + {PENDING}], 1
    umlaut_rewind umlaut_check_leaf, umlaut_check_leaf_end, 7f
    umlaut_rewind umlaut_check_futex, umlaut_check_futex_end, 7f
    umlaut_rewind umlaut_check_call, umlaut_check_call_end
    umlaut_rewind umlaut_check_full, umlaut_check_full_end
    umlaut_rewind umlaut_check_block, umlaut_check_block_end
    umlaut_rewind umlaut_check_waitv, umlaut_check_waitv_end
    jmp     umlaut_sigreturn
4:  mov     [rdx + 40 + 56], r15
7:  mov     [rdx + 40 + 128], r8            // only: r15 is the guest's there
    jmp     umlaut_sigreturn
6:  mov     qword ptr [rdx + 40 + 104], -1
umlaut_sigreturn:
    mov     rsp, rdx
    mov     eax, 15
umlaut_sigreturn_call:
    syscall
    ud2
