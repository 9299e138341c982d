    // Futex waits and wakes, by the host's futex on the guest's own word. What is in doubt is handed over: other operations,
    // words that do not lie below the guest's end (the filter looks at the second one too), relative time-outs, which could
    // not be made again. rax: the number; it, rcx and r11 are lost by a call. From the check of `pending`
    // to the wait everything is restartable, and a wait that is broken off is made again by the kernel, which
    // knows what for.
    .globl umlaut_check_futex, umlaut_check_futex_end
umlaut_leaf_futex:
    mov     r11, [rip + umlaut_guest_top]
    cmp     rdi, r11
    jae     8f
    cmp     r8, r11
    jae     8f
    mov     r11d, esi
    and     r11d, -129                      // FUTEX_PRIVATE_FLAG
    jz      1f                              // FUTEX_WAIT
    cmp     r11d, 1                         // FUTEX_WAKE
    je      3f
    cmp     r11d, 10                        // FUTEX_WAKE_BITSET
    je      3f
    and     r11d, -257                      // FUTEX_CLOCK_REALTIME
    cmp     r11d, 9                         // FUTEX_WAIT_BITSET: an absolute time
    je      2f
    jmp     8f
1:  test    r10, r10
    jnz     8f
2:
umlaut_check_futex:
    cmp     dword ptr gs:[{PENDING}], 0
    jne     8f
    mov     eax, 202
    .globl  umlaut_futex_wait_call
umlaut_futex_wait_call:
    syscall
umlaut_check_futex_end:
    cmp     rax, -4                         // EINTR
    jne     4f
8:  mov     eax, 202
    jmp     umlaut_enter_full
3:  mov     eax, 202
    .globl  umlaut_futex_wake_call
umlaut_futex_wake_call:
    syscall
4:  inc     qword ptr gs:[{SERVED} + 8 * 16]
    jmp     umlaut_leave
