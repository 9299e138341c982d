    // Calls on files that the thread was handed, each served by one host call on the host's own descriptor. What is in
    // doubt is handed over: a number that is not in the thread's table, or not for this; memory that does not lie below
    // the guest's end; more bytes than a call should take that no kick ends; a call that the host broke off; a host descriptor
    // that leads to nothing by now.
    // rax: the number; it, rcx and r11 are lost by a call. rdi is the host's number meanwhile.
    .globl umlaut_guest_top, umlaut_vector_loads, umlaut_vector_loads_end, umlaut_leaf_failed
    .globl umlaut_order_keep, umlaut_order_close, umlaut_order_close_call, umlaut_order_close_full, umlaut_order_shut
    .globl umlaut_shut_call
    .balign 8
umlaut_guest_top: .quad {GUEST_TOP}

    // The entry to eax.
    .macro  umlaut_find_handed may
    cmp     edi, gs:[{HANDED_COUNT}]
    jae     8f
    mov     eax, edi
    mov     eax, gs:[{HANDED} + rax * 4]
    test    al, \may
    jz      8f
    .endm
    // One buffer.
    .macro  umlaut_check_buffer
    cmp     rdx, {LONGEST}
    ja      8f
    mov     r11, [rip + umlaut_guest_top]
    sub     r11, rsi
    jb      8f
    cmp     r11, rdx
    jb      8f
    .endm
    // Takes the bytes in `amount` of the budget.
    .macro  umlaut_pay amount
    test    al, {PAID}
    jz      1f
    mov     r11, gs:[{BUDGET}]
    sub     r11, \amount
    jb      8f
    mov     gs:[{BUDGET}], r11
1:
    .endm
    // The host call, and what follows.
    .macro  umlaut_host_call name, number, index, chars
    .globl  umlaut_\name\()_call
    mov     gs:[{KEPT} + 8], rdi
    shr     eax, {HANDED_SHIFT}
    mov     edi, eax
    mov     eax, \number
umlaut_\name\()_call:
    syscall
    mov     rdi, gs:[{KEPT} + 8]
    cmp     rax, -4                         // EINTR
    je      8f
    cmp     rax, -9                         // EBADF
    je      8f
    inc     qword ptr gs:[{SERVED} + 8 * \index]
    .ifnb   \chars
    test    rax, rax
    js      1f
    add     gs:[\chars], rax
1:
    .endif
    jmp     umlaut_leave
8:  mov     eax, \number
    jmp     umlaut_enter_full
    .endm

umlaut_leaf_read:
    umlaut_find_handed {MAY_READ}
    umlaut_check_buffer
    umlaut_host_call read, 0, 7, {READ_CHARS}
umlaut_leaf_write:
    umlaut_find_handed {MAY_WRITE}
    umlaut_check_buffer
    umlaut_pay rdx
    umlaut_host_call write, 1, 8, {WRITTEN_CHARS}
umlaut_leaf_pread:
    umlaut_find_handed {MAY_READ}
    umlaut_check_buffer
    umlaut_host_call pread, 17, 9, {READ_CHARS}
umlaut_leaf_pwrite:
    umlaut_find_handed {MAY_WRITE}
    umlaut_check_buffer
    umlaut_pay rdx
    umlaut_host_call pwrite, 18, 10, {WRITTEN_CHARS}
umlaut_leaf_lseek:
    umlaut_find_handed {MAY_READ}+{MAY_WRITE}
    umlaut_host_call lseek, 8, 11

    // A few buffers, looked at one by one, before the host does so for good; more are handed over. Their bytes are added up
    // in the channel, which has the number, and where to go on here.
umlaut_look_at_vector:
    cmp     rdx, 16
    ja      umlaut_leaf_failed
    mov     rax, [rip + umlaut_guest_top]
    sub     rax, 16 * 16
    cmp     rsi, rax
    ja      umlaut_leaf_failed
    mov     qword ptr gs:[{KEPT} + 24], 0
    mov     ecx, edx
1:  sub     ecx, 1
    js      2f
    mov     r11d, ecx
    shl     r11d, 4
umlaut_vector_loads:
    mov     rax, [rsi + r11]
    mov     r11, [rsi + r11 + 8]
umlaut_vector_loads_end:
    cmp     r11, {LONGEST}
    ja      umlaut_leaf_failed
    add     gs:[{KEPT} + 24], r11
    add     rax, r11
    jc      umlaut_leaf_failed
    cmp     rax, [rip + umlaut_guest_top]
    jbe     1b
    // What a leaf cannot do is handed over, as it came: the kernel knows what that means.
umlaut_leaf_failed:
    mov     eax, gs:[{KEPT} + 16]
    jmp     umlaut_enter_full
2:  jmp     qword ptr gs:[{KEPT} + 32]

    .macro  umlaut_vector_leaf name, number, may, index, chars
umlaut_leaf_\name:
    umlaut_find_handed \may
    mov     dword ptr gs:[{KEPT} + 16], \number
    lea     rax, [rip + 7f]
    mov     gs:[{KEPT} + 32], rax
    jmp     umlaut_look_at_vector
7:  cmp     qword ptr gs:[{KEPT} + 24], {LONGEST}
    ja      8f
    umlaut_find_handed \may
    .if     \may - {MAY_READ}
    umlaut_pay gs:[{KEPT} + 24]
    .endif
    umlaut_host_call \name, \number, \index, \chars
    .endm
    umlaut_vector_leaf readv, 19, {MAY_READ}, 12, {READ_CHARS}
    umlaut_vector_leaf writev, 20, {MAY_WRITE}, 13, {WRITTEN_CHARS}
    umlaut_vector_leaf preadv, 295, {MAY_READ}, 14, {READ_CHARS}
    umlaut_vector_leaf pwritev, 296, {MAY_WRITE}, 15, {WRITTEN_CHARS}

    // Receives a descriptor, which stays open: its number lies among the received ones.
umlaut_order_keep:
    lea     r12, [rip + 1f]
    jmp     umlaut_receive
1:  mov     [r15 + {RESULT}], rax
    jmp     umlaut_done

    // Closes those in the place of received ones. Then the kernel hears of it, or the guest goes on.
umlaut_order_close:
    lea     r12, [rip + umlaut_done]
    jmp     umlaut_close_received
umlaut_order_close_call:
    lea     r12, [rip + umlaut_resume_call]
    jmp     umlaut_close_received
umlaut_order_close_full:
    lea     r12, [rip + umlaut_resume_full]
    jmp     umlaut_close_received

    // Host descriptors of other threads, u32 each among the records, lead from now on where the received one does: to nothing.
    // Their numbers stay taken, since a thread may have looked and not called yet.
umlaut_order_shut:
    lea     r12, [rip + 1f]
    jmp     umlaut_receive
1:  mov     [r15 + {RESULT}], rax
    cmp     rax, -4095
    jae     umlaut_done
    lea     rbx, [r15 + {RECORDS}]
    mov     ebp, [r15 + {CALLS}]
    lea     rbp, [rbx + rbp * 4]
2:  cmp     rbx, rbp
    jae     3f
    mov     edi, [r15 + {PASSED}]
    mov     esi, [rbx]
    mov     eax, 33                         // dup2
umlaut_shut_call:
    syscall
    add     rbx, 4
    jmp     2b
3:  lea     r12, [rip + umlaut_done]
    jmp     umlaut_close_received
