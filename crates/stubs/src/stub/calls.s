    // Host calls on the kernel's order. Each number has its own instruction: the filter allows it there only.
    .globl umlaut_order_calls, umlaut_order_block, umlaut_order_xsave, umlaut_order_exchange
    .globl umlaut_exchange, umlaut_exchange_failed, umlaut_order_exit, umlaut_check_block, umlaut_check_block_end
    .globl umlaut_receive_call, umlaut_close_call, umlaut_block_call, umlaut_exit_call
    .globl umlaut_mmap_call, umlaut_munmap_call, umlaut_mprotect_call, umlaut_mremap_call, umlaut_madvise_call
    .globl umlaut_futex_call, umlaut_membarrier_call, umlaut_block_waitv_call
    .globl umlaut_check_waitv, umlaut_check_waitv_end

    // Receives the descriptors that the kernel has sent: their numbers come to lie in the channel. To r12's
    // target; rax below 0: failed.
umlaut_receive:
    lea     rsi, [r15 + {MESSAGE}]
    lea     rax, [rsi + 64]
    mov     qword ptr [rsi], 0              // msg_name
    mov     qword ptr [rsi + 8], 0          // msg_namelen
    mov     [rsi + 16], rax                 // msg_iov
    mov     qword ptr [rsi + 24], 1         // msg_iovlen
    lea     rcx, [r15 + {MESSAGE_CONTROL}]
    mov     [rsi + 32], rcx                 // msg_control
    mov     qword ptr [rsi + 40], 160       // msg_controllen: 36 descriptors
    mov     qword ptr [rsi + 48], 0         // msg_flags
    lea     rcx, [rsi + 80]
    mov     [rax], rcx                      // iov_base
    mov     qword ptr [rax + 8], 1          // iov_len
    xor     edi, edi
    mov     edx, 0x40000040                 // MSG_CMSG_CLOEXEC | MSG_DONTWAIT
    mov     eax, 47
umlaut_receive_call:
    syscall
    jmp     r12

    // Closes the received ones. To r12's target. Uses r13, r14 must be kept.
umlaut_close_received:
    mov     r13d, [r15 + {FILES}]
1:  sub     r13d, 1
    jb      2f
    cmp     r13d, 36
    jae     1b
    mov     edi, [r15 + r13 * 4 + {PASSED}]
    mov     eax, 3
umlaut_close_call:
    syscall
    jmp     1b
2:  jmp     r12

    // A list of calls, records of 64 bytes: which, six arguments, 1 + index of a received descriptor.
umlaut_order_calls:
    xor     r14d, r14d
    lea     rbx, [r15 + {RECORDS}]
    mov     ebp, [r15 + {CALLS}]
    shl     rbp, 6
    add     rbp, rbx
    cmp     dword ptr [r15 + {FILES}], 0
    je      2f
    lea     r12, [rip + 1f]
    jmp     umlaut_receive
1:  cmp     rax, -4095
    jae     5f
2:  cmp     rbx, rbp
    jae     6f
    mov     rdi, [rbx + 8]
    mov     rsi, [rbx + 16]
    mov     rdx, [rbx + 24]
    mov     r10, [rbx + 32]
    mov     r8, [rbx + 40]
    mov     r9, [rbx + 48]
    mov     rax, [rbx + 56]
    test    rax, rax
    jz      3f
    mov     r8d, [r15 + rax * 4 + {PASSED} - 4]
3:  mov     rax, [rbx]
    lea     rcx, [rip + umlaut_slots]
    movsxd  rax, dword ptr [rcx + rax * 4]
    add     rax, rcx
    jmp     rax
    .balign 8
umlaut_slots:
    .long   umlaut_slot_mmap - umlaut_slots
    .long   umlaut_slot_munmap - umlaut_slots
    .long   umlaut_slot_mprotect - umlaut_slots
    .long   umlaut_slot_mremap - umlaut_slots
    .long   umlaut_slot_madvise - umlaut_slots
    .long   umlaut_slot_futex - umlaut_slots
    .long   umlaut_slot_membarrier - umlaut_slots
umlaut_slot_mmap:
    mov     eax, 9
umlaut_mmap_call:
    syscall
    jmp     4f
umlaut_slot_munmap:
    mov     eax, 11
umlaut_munmap_call:
    syscall
    jmp     4f
umlaut_slot_mprotect:
    mov     eax, 10
umlaut_mprotect_call:
    syscall
    jmp     4f
umlaut_slot_mremap:
    mov     eax, 25
umlaut_mremap_call:
    syscall
    jmp     4f
umlaut_slot_madvise:
    mov     eax, 28
umlaut_madvise_call:
    syscall
    jmp     4f
umlaut_slot_membarrier:
    mov     eax, 324
umlaut_membarrier_call:
    syscall
    jmp     4f
umlaut_slot_futex:
    mov     eax, 202
umlaut_futex_call:
    syscall
4:  cmp     rax, -4095
    jae     5f
    mov     r14, rax
    add     rbx, 64
    jmp     2b
5:  mov     r14, rax
6:  lea     r12, [rip + 7f]
    jmp     umlaut_close_received
7:  lea     rcx, [r15 + {RECORDS}]
    sub     rbx, rcx
    mov     [r15 + {FAILED}], rbx
    mov     [r15 + {RESULT}], r14
    jmp     umlaut_done

    // One futex or futex_waitv call that may block, in the first record. Restartable from the check to the call.
umlaut_order_block:
    lea     rbx, [r15 + {RECORDS}]
    mov     rdi, [rbx + 8]
    mov     rsi, [rbx + 16]
    mov     rdx, [rbx + 24]
    mov     r10, [rbx + 32]
    mov     r8, [rbx + 40]
    mov     r9, [rbx + 48]
    cmp     qword ptr [rbx], {WAITV}
    je      umlaut_check_waitv
umlaut_check_block:
    cmp     dword ptr [r15 + {PENDING}], 0
    jne     umlaut_pending
    mov     eax, 202
umlaut_block_call:
    syscall
umlaut_check_block_end:
    jmp     umlaut_blocked
umlaut_check_waitv:
    cmp     dword ptr [r15 + {PENDING}], 0
    jne     umlaut_pending
    mov     eax, 449
umlaut_block_waitv_call:
    syscall
umlaut_check_waitv_end:
umlaut_blocked:
    mov     [r15 + {RESULT}], rax
    cmp     rax, -4                         // EINTR: a kick, or something else and once more
    jne     umlaut_done
    cmp     dword ptr [r15 + {PENDING}], 0
    jne     umlaut_pending
    jmp     umlaut_order_block

    // The extended state to the channel.
umlaut_order_xsave:
    lea     r12, [rip + umlaut_done]
umlaut_save_state:
    cmp     qword ptr [r15 + {FP}], 0
    jne     2f
    lea     rcx, [r15 + {XSTATE}]
    xor     eax, eax
    mov     edx, 8
1:  mov     [rcx + rdx * 8 + 504], rax      // the header
    sub     edx, 1
    jnz     1b
    mov     eax, [r15 + {FEATURES}]
    mov     edx, [r15 + {FEATURES} + 4]
    xsave64 [rcx]
    mov     [r15 + {FP}], rcx
2:  jmp     r12

    // An atomic exchange on a guest's word.
umlaut_order_exchange:
    mov     rdi, [r15 + {ARGS}]
    mov     eax, [r15 + {ARGS} + 8]
    mov     esi, [r15 + {ARGS} + 16]
    mov     qword ptr [r15 + {FAILED}], 0
umlaut_exchange:
    lock cmpxchg dword ptr [rdi], esi
    mov     [r15 + {RESULT}], rax
    jmp     umlaut_done
umlaut_exchange_failed:
    mov     qword ptr [r15 + {FAILED}], 1
    jmp     umlaut_done

umlaut_order_exit:
    mov     eax, 60
    xor     edi, edi
umlaut_exit_call:
    syscall
    jmp     umlaut_order_exit
