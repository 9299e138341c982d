    // Calls on what is the thread's own: which CPU it is on, advice about its memory, what it blocks, its alternate signal
    // stack. rax: the number; it,
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

    // sigaltstack, on the words that the kernel pushes frames by. What fails on Linux is handed over before anything has changed,
    // AUTODISARM too. All of the new one is read first, to KEPT, since the old one may go to the same place; that lies in one
    // page, so that nothing of it is written if any of it faults. Nothing fails after it, and a kick moves nobody out of the three
    // stores: the kernel never sees half of them.
umlaut_leaf_sigaltstack:
    mov     r11, [rip + umlaut_guest_top]
    sub     r11, 24
    cmp     rdi, r11
    ja      umlaut_enter_full
    cmp     rsi, r11
    ja      umlaut_enter_full
    lea     r11, [rsi + 23]
    xor     r11, rsi
    cmp     r11, 4096
    jae     umlaut_enter_full
    mov     dword ptr gs:[{KEPT} + 16], eax
    test    dword ptr gs:[{ALTERNATE} + 8], -4
    jnz     umlaut_leaf_failed
    // ecx: the flags as they are reported.
    mov     ecx, 2                          // SS_DISABLE
    cmp     qword ptr gs:[{ALTERNATE} + 16], 0
    je      2f
    dec     ecx                             // SS_ONSTACK
    mov     rax, rsp
    sub     rax, gs:[{ALTERNATE}]
    jbe     1f
    cmp     rax, gs:[{ALTERNATE} + 16]
    jbe     2f
1:  xor     ecx, ecx
2:  test    rdi, rdi
    jz      5f
    cmp     ecx, 1
    je      umlaut_leaf_failed
    mov     rax, [rdi]
    mov     gs:[{KEPT} + 8], rax
    mov     rax, [rdi + 16]
    mov     r11d, [rdi + 8]
    cmp     r11d, 2
    ja      umlaut_leaf_failed
    je      3f
    cmp     rax, {MIN_ALTERNATE}
    jb      umlaut_leaf_failed
    jmp     4f
3:  xor     eax, eax
    mov     gs:[{KEPT} + 8], rax
4:  mov     gs:[{KEPT} + 24], r11
    mov     gs:[{KEPT} + 32], rax
5:  test    rsi, rsi
    jz      6f
    mov     rax, gs:[{ALTERNATE}]
    mov     [rsi], rax
    mov     [rsi + 8], rcx
    mov     rax, gs:[{ALTERNATE} + 16]
    mov     [rsi + 16], rax
6:  test    rdi, rdi
    jz      7f
    mov     rax, gs:[{KEPT} + 8]
    mov     gs:[{ALTERNATE}], rax
    mov     rax, gs:[{KEPT} + 24]
    mov     gs:[{ALTERNATE} + 8], rax
    mov     rax, gs:[{KEPT} + 32]
    mov     gs:[{ALTERNATE} + 16], rax
7:  xor     eax, eax
    inc     qword ptr gs:[{SERVED} + 8 * 20]
    jmp     umlaut_leave
umlaut_own_end:
