    // Calls on what is the thread's own: which CPU it is on, advice about its memory. rax: the number; rcx: where to go on;
    // both and r11 are lost by a call. A fault in here, on memory of the guest's, has the call handed over (signal.s).
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
    mov     gs:[{KEPT}], rcx
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
    jmp     umlaut_check_leaf

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
    mov     gs:[{KEPT}], rcx
umlaut_advise_call:
    syscall
    mov     rcx, gs:[{KEPT}]
    inc     qword ptr gs:[{SERVED} + 8 * 18]
    jmp     umlaut_check_leaf
umlaut_own_end:
