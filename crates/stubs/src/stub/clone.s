    // New guest processes and threads. The arguments: clone flags, the kernel's pid, the new thread's channel.
    // Received: the child's control socket, and, unless memory is shared, the file of its channels.
    .globl umlaut_order_fork, umlaut_order_thread
    .globl umlaut_fork_call, umlaut_thread_call, umlaut_remap_call, umlaut_dup_call, umlaut_close_range_call
    .globl umlaut_pdeathsig_call, umlaut_getppid_call, umlaut_check_in_call, umlaut_give_up_call
    // Extended state that is in the processor the child has as well.
umlaut_order_fork:
    lea     r12, [rip + 2f]
    jmp     umlaut_receive
2:  mov     r14, rax
    cmp     rax, -4095
    jae     4f
    mov     rdi, [r15 + {ARGS}]
    mov     rbp, [r15 + {ARGS} + 8]
    mov     rbx, [r15 + {ARGS} + 16]
    mov     r12d, [r15 + {PASSED}]
    mov     r13d, [r15 + {PASSED} + 4]
    mov     r14d, [r15 + {FILES}]
    xor     esi, esi
    xor     edx, edx
    xor     r10d, r10d
    xor     r8d, r8d
1:  mov     eax, 56
umlaut_fork_call:
    syscall
    test    rax, rax
    jz      5f
    cmp     rax, -4                         // EINTR: a kick, before the kernel had answered
    je      1b
    mov     r14, rax
4:  mov     [r15 + {RESULT}], r14
    lea     r12, [rip + umlaut_done]
    jmp     umlaut_close_received

    // The child: registers only, until it has channels of its own.
5:  mov     r15, rbx
    cmp     r14d, 2
    jb      6f
    mov     rdi, [rip + umlaut_channels]
    mov     esi, {CHANNELS_SIZE}
    mov     edx, 3                          // PROT_READ | PROT_WRITE
    mov     r10d, 0x11                      // MAP_SHARED | MAP_FIXED
    mov     r8d, r13d
    xor     r9d, r9d
    mov     eax, 9
umlaut_remap_call:
    syscall
    cmp     rax, [rip + umlaut_channels]
    jne     8f
6:  mov     edi, r12d
    xor     esi, esi
    mov     eax, 33                         // dup2
umlaut_dup_call:
    syscall
    test    rax, rax
    jnz     8f
    mov     edi, 1
    mov     esi, 0xffffffff
    xor     edx, edx
    mov     eax, 436                        // close_range
umlaut_close_range_call:
    syscall
    mov     edi, 1                          // PR_SET_PDEATHSIG
    mov     esi, 9
    xor     edx, edx
    xor     r10d, r10d
    xor     r8d, r8d
    mov     eax, 157
umlaut_pdeathsig_call:
    syscall
    mov     eax, 110                        // getppid: armed too late if the kernel is gone
umlaut_getppid_call:
    syscall
    cmp     rax, rbp
    jne     8f
umlaut_check_in:
    xor     edi, edi
    lea     rsi, [rip + umlaut_text]
    mov     edx, 1
    mov     eax, 1                          // write: the host stamps our credentials on it
umlaut_check_in_call:
    syscall
    cmp     r14d, 2                         // memory of its own: the alternate stack is where the parent's is
    jae     umlaut_parked
7:  lea     rdx, [r15 + {FRAME}]
    jmp     umlaut_sigreturn
8:  mov     edi, 1
    mov     eax, 231                        // exit_group
umlaut_give_up_call:
    syscall
    jmp     8b

umlaut_order_thread:
    mov     rdi, [r15 + {ARGS}]
    mov     rbx, [r15 + {ARGS} + 16]
    lea     r10, [rbx + {ALIVE}]            // cleared when the thread is gone
    xor     esi, esi
    xor     edx, edx
    xor     r8d, r8d
1:  mov     eax, 56
umlaut_thread_call:
    syscall
    test    rax, rax
    jz      2f
    cmp     rax, -4
    je      1b
    mov     [r15 + {RESULT}], rax
    jmp     umlaut_done
2:  mov     r15, rbx
    jmp     7b
