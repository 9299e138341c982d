    // Back to the guest. From the check of `pending` on to the jump everything is restartable: a kick that
    // interrupts there is sent back to the check (signal.s), and whatever was loaded until then is loaded anew.
    .globl umlaut_resume_call, umlaut_check_call, umlaut_check_call_end
    .globl umlaut_resume_full, umlaut_check_full, umlaut_check_full_end, umlaut_xrstor, umlaut_xrstor_failed
umlaut_resume_call:
    mov     rax, [r15 + {CALL}]             // the result
    mov     [r15 + {REGS} + 80], rax
    cmp     dword ptr [r15 + {ANSWER_COUNT}], 0
    je      umlaut_check_call
    lea     r12, [rip + umlaut_check_call]
    jmp     umlaut_answer
umlaut_check_call:
    cmp     dword ptr [r15 + {PENDING}], 0
    jne     umlaut_pending
    movzx   eax, word ptr [r15 + {KEPT} + 6] // the flags that it came with (enter.s)
    add     al, 0x7f
    sahf
    mov     rax, [r15 + {REGS} + 80]
    mov     rdi, [r15 + {REGS} + 112]
    mov     rsi, [r15 + {REGS} + 104]
    mov     rdx, [r15 + {REGS} + 96]
    mov     r10, [r15 + {REGS} + 56]
    mov     r9, [r15 + {REGS} + 64]
    mov     r8, [r15 + {REGS} + 72]
    mov     rbx, [r15 + {REGS} + 40]
    mov     rbp, [r15 + {REGS} + 32]
    mov     r12, [r15 + {REGS} + 24]
    mov     r13, [r15 + {REGS} + 16]
    mov     r14, [r15 + {REGS} + 8]
    mov     rsp, [r15 + {REGS} + 152]
    mov     r11, [r15 + {REGS} + 144]
    mov     rcx, [r15 + {REGS} + 128]
    mov     r15, [r15 + {REGS}]
    jmp     rcx
umlaut_check_call_end:

umlaut_resume_full:
    lea     r12, [rip + 2f]
    cmp     dword ptr [r15 + {ANSWER_COUNT}], 0
    jne     umlaut_answer
2:  mov     rcx, [r15 + {FP}]
    test    rcx, rcx
    jz      1f
    mov     eax, [r15 + {FEATURES}]
    mov     edx, [r15 + {FEATURES} + 4]
umlaut_xrstor:
    xrstor64 [rcx]
    mov     qword ptr [r15 + {FP}], 0
1:  mov     rax, [r15 + {REGS} + 168]
    wrfsbase rax
    mov     rax, [r15 + {GS}]
    wrgsbase rax
umlaut_check_full:
    cmp     dword ptr [r15 + {PENDING}], 0
    jne     umlaut_pending
    lea     rsp, [r15 + {REGS} + 128]
    mov     r14, [r15 + {REGS} + 8]
    mov     r13, [r15 + {REGS} + 16]
    mov     r12, [r15 + {REGS} + 24]
    mov     rbp, [r15 + {REGS} + 32]
    mov     rbx, [r15 + {REGS} + 40]
    mov     r11, [r15 + {REGS} + 48]
    mov     r10, [r15 + {REGS} + 56]
    mov     r9, [r15 + {REGS} + 64]
    mov     r8, [r15 + {REGS} + 72]
    mov     rax, [r15 + {REGS} + 80]
    mov     rcx, [r15 + {REGS} + 88]
    mov     rdx, [r15 + {REGS} + 96]
    mov     rsi, [r15 + {REGS} + 104]
    mov     rdi, [r15 + {REGS} + 112]
    mov     r15, [r15 + {REGS}]
    iretq
umlaut_check_full_end:

    // Extended state that the processor does not take: the kernel hears of it as a broken stub.
umlaut_xrstor_failed:
    mov     qword ptr [r15 + {FP}], 0
    mov     eax, {BROKEN}
    jmp     umlaut_hand_over

umlaut_pending:
    mov     dword ptr [r15 + {PENDING}], 0
    mov     eax, {KICKED}
    jmp     umlaut_hand_over
