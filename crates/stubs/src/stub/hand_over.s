    // eax: the reason. Posts it to the kernel and waits for an order. r15: the channel. Registers are all
    // free: the guest's lie in the channel. The kernel's word and ours have three states: 0 empty, 1 posted,
    // 2 its reader sleeps; only the sleeper writes 2. Who posts empties the word that it reads itself first: the other
    // side is silent until then.
    .globl umlaut_hand_over, umlaut_parked, umlaut_wake_call, umlaut_sleep_call
umlaut_hand_over:
    mov     [r15 + {REASON}], eax
    mov     dword ptr [r15 + {TO_GUEST}], 0
    mov     eax, 1
    xchg    [r15 + {TO_KERNEL}], eax
    cmp     eax, 2
    jne     umlaut_await
    lea     rdi, [r15 + {TO_KERNEL}]
    mov     esi, 1                          // FUTEX_WAKE
    mov     edx, 1
    xor     r10d, r10d
    xor     r8d, r8d
    xor     r9d, r9d
    mov     eax, 202
umlaut_wake_call:
    syscall
umlaut_await:
    cmp     dword ptr [r15 + {TO_GUEST}], 1
    je      umlaut_ordered
    // Watches for it, if the kernel says that it does so too (spin.rs).
    mov     r8d, [r15 + {SPIN}]
    test    r8d, r8d
    jz      3f
    rdtsc
    shl     rdx, 32
    lea     r9, [rax + rdx]
2:  pause
    cmp     dword ptr [r15 + {TO_GUEST}], 1
    je      umlaut_ordered
    rdtsc
    shl     rdx, 32
    add     rax, rdx
    sub     rax, r9
    cmp     rax, r8
    jb      2b
3:  xor     eax, eax
    mov     ecx, 2
    lock cmpxchg [r15 + {TO_GUEST}], ecx
    je      1f
    cmp     eax, 2
    jne     umlaut_await
1:  lea     rdi, [r15 + {TO_GUEST}]
    xor     esi, esi                        // FUTEX_WAIT
    mov     edx, 2
    xor     r10d, r10d
    xor     r8d, r8d
    xor     r9d, r9d
    mov     eax, 202
umlaut_sleep_call:
    syscall
    jmp     umlaut_await

    // A new thread, behind its rt_sigreturn: waits for its first order.
umlaut_parked:
    wrgsbase r15
    mov     eax, 1
    xchg    [r15 + {ARRIVED}], eax          // from now on kicks may come as signals; those before are in PENDING
    jmp     umlaut_await

    // The order, by its number.
umlaut_ordered:
    mov     eax, [r15 + {ORDER}]
    mov     ecx, eax
    shr     ecx, {ORDER_BITS}
    mov     [r15 + {ANSWER_COUNT}], ecx
    movzx   eax, al
    lea     rcx, [rip + umlaut_orders]
    cmp     eax, {ORDERS}
    jae     umlaut_await
    movsxd  rax, dword ptr [rcx + rax * 4]
    add     rax, rcx
    jmp     rax
    .balign 8
umlaut_orders:
    .long   umlaut_resume_call - umlaut_orders
    .long   umlaut_resume_full - umlaut_orders
    .long   umlaut_order_calls - umlaut_orders
    .long   umlaut_order_block - umlaut_orders
    .long   umlaut_order_xsave - umlaut_orders
    .long   umlaut_order_exchange - umlaut_orders
    .long   umlaut_order_fork - umlaut_orders
    .long   umlaut_order_thread - umlaut_orders
    .long   umlaut_order_exit - umlaut_orders
    .long   umlaut_order_keep - umlaut_orders
    .long   umlaut_order_close - umlaut_orders
    .long   umlaut_order_close_call - umlaut_orders
    .long   umlaut_order_close_full - umlaut_orders
    .long   umlaut_order_shut - umlaut_orders

umlaut_done:
    mov     eax, {DONE}
    jmp     umlaut_hand_over
