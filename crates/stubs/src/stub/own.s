    // Calls on what is the thread's own: which CPU it is on, advice about its memory, what it blocks. rax: the number; it,
    // rcx and r11 are lost by a call. A fault in here, on memory of the guest's, has the call handed over (signal.s).
    .globl umlaut_own, umlaut_own_end, umlaut_advise_call
umlaut_own:
    // The host keeps CPU and node in the limit of a segment, for its vDSO.
umlaut_leaf_getcpu:
    mov     r11, [rip + umlaut_guest_top]
    sub     r11, 4
    cmp     rdi, r11
    ja      umlaut_enter_full
    cmp     rsi, r11
    ja      umlaut_enter_full
    mov     dword ptr gs:[{KEPT} + 16], eax
    mov     r11d, 0x7b                      // GDT_ENTRY_CPUNODE, for user code
    lsl     r11d, r11d
    jnz     umlaut_leaf_failed
    mov     eax, r11d
    and     eax, 0xfff
    shr     r11d, 12
    test    rdi, rdi
    jz      1f
    mov     [rdi], eax
1:  test    rsi, rsi
    jz      2f
    mov     [rsi], r11d
2:  xor     eax, eax
    inc     qword ptr gs:[{SERVED} + 8 * 17]
    jmp     umlaut_leave

    // Below the guest's end, and of those kinds that the kernel keeps no record of (filter.rs). Not where memory is locked or
    // sealed, of which only the kernel knows.
umlaut_leaf_madvise:
    cmp     dword ptr gs:[{ASKS_ADVICE}], 0
    jne     umlaut_enter_full
    cmp     rdx, 20
    ja      umlaut_enter_full
    mov     r11d, {FREE_ADVICE}
    bt      r11d, edx
    jnc     umlaut_enter_full
    mov     r11, [rip + umlaut_guest_top]
    sub     r11, rdi
    jb      umlaut_enter_full
    cmp     r11, rsi
    jb      umlaut_enter_full
umlaut_advise_call:
    syscall
    inc     qword ptr gs:[{SERVED} + 8 * 18]
    jmp     umlaut_leave

    // rt_sigprocmask, on the mask that the kernel looks at when it chooses who takes a signal. The exchange is a barrier: either
    // the kernel's choice sees the new mask, or we see the signal (kernel: `send_queued`). Whoever changes its mind about one
    // that waits goes to the kernel behind the call, which gives it the signal or chooses another thread. What fails on Linux is
    // handed over before anything has changed; the old mask is written first, since nothing fails after the exchange.
umlaut_leaf_sigprocmask:
    cmp     r10, 8
    jne     umlaut_enter_full
    mov     r11, [rip + umlaut_guest_top]
    sub     r11, 8
    cmp     rsi, r11
    ja      umlaut_enter_full
    cmp     rdx, r11
    ja      umlaut_enter_full
    mov     dword ptr gs:[{KEPT} + 16], eax
    mov     rax, gs:[{BLOCKED}]
    test    rsi, rsi
    jz      4f
    mov     rcx, [rsi]
    cmp     edi, 1                          // SIG_UNBLOCK
    ja      1f
    je      2f
    or      rcx, rax
    jmp     3f
1:  cmp     edi, 2                          // SIG_SETMASK
    jne     umlaut_leaf_failed
    jmp     3f
2:  not     rcx
    and     rcx, rax
3:  and     rcx, {BLOCKABLE}
    mov     r11, rcx
4:  test    rdx, rdx
    jz      5f
    mov     [rdx], rax
5:  inc     qword ptr gs:[{SERVED} + 8 * 19]
    mov     eax, 0
    test    rsi, rsi
    jz      6f
    xchg    gs:[{BLOCKED}], rcx
    xor     r11, rcx
    test    gs:[{WAITING}], r11
    jz      umlaut_leave
    mov     gs:[{REGS}], r15
    mov     r15, gs:[{SELF}]
    umlaut_save
    mov     eax, {MASKED}
    jmp     umlaut_hand_over
6:  jmp     umlaut_leave
umlaut_own_end:
