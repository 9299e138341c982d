    // The image's entry. Until the filter stands, the kernel drives the first guest process by records of 64
    // bytes on the control socket (number, six arguments, channel), each answered by its result. A record with a channel
    // installs the filter, and is the last one unless it fails: its result goes to the channel, it is answered by one byte,
    // which the filter lets pass, and the thread becomes an ordinary one.
    // A number of -1 moves the record's place to the first argument. Without a control socket it sleeps for ever: the
    // init of a pid namespace.
    .globl umlaut_boot
umlaut_boot:
    lea     rbp, [rsp - 1024]
1:  xor     eax, eax                        // read
    xor     edi, edi
    mov     rsi, rbp
    mov     edx, 64
    syscall
    cmp     rax, -9                         // EBADF
    je      5f
    cmp     rax, 64
    jne     3f
    mov     rax, [rbp]
    mov     rdi, [rbp + 8]
    cmp     rax, -1
    je      2f
    mov     rsi, [rbp + 16]
    mov     rdx, [rbp + 24]
    mov     r10, [rbp + 32]
    mov     r8, [rbp + 40]
    mov     r9, [rbp + 48]
    syscall
    mov     r15, [rbp + 56]
    test    r15, r15
    jz      6f
    cmp     rax, -4095
    jb      4f
6:  mov     [rbp], rax
    mov     eax, 1                          // write
    xor     edi, edi
    mov     rsi, rbp
    mov     edx, 8
    syscall
    jmp     1b
2:  mov     rbp, rdi
    jmp     1b
3:  mov     eax, 231                        // exit_group
    mov     edi, 1
    syscall
    jmp     3b
4:  mov     [r15 + {RESULT}], rax
    mov     r14d, 2                         // parked behind it
    jmp     umlaut_check_in
5:  mov     eax, 34                         // pause
    syscall
    jmp     5b
