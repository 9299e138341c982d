    // Guest memory that goes along with a call, and that comes back with its result (marshal.rs), so that the
    // kernel need not copy it across processes. A fault here is never the guest's: what cannot be brought is left to
    // the kernel, which knows what that means.

    // To umlaut_hand_over with the call that the channel's registers make. What is brought: a header (address, length)
    // and the bytes, filled up to 8; a header without length ends it.
    .globl umlaut_bring_copy, umlaut_bring_string, umlaut_bring_failed, umlaut_answer_copy, umlaut_answer_failed, umlaut_plans
umlaut_bring:
    lea     rbx, [r15 + {BROUGHT}]
    mov     qword ptr [rbx + 8], 0
    mov     rax, [r15 + {REGS} + 80]
    cmp     rax, {DISPATCHED}
    jae     9f
    test    dword ptr [r15 + {REGS} + 144], 0x400 // the guest copies backwards
    jnz     9f
    lea     rcx, [rip + umlaut_plans]
    movzx   ebp, word ptr [rcx + rax * 2]
    lea     rdx, [rip + umlaut_argument_places]
1:  mov     eax, ebp                        // low byte: kind (5 bits), register (3 bits)
    and     eax, 31
    jz      9f
    movzx   ecx, bpl
    shr     ecx, 5
    movzx   r8d, byte ptr [rdx + rcx]
    movzx   r9d, byte ptr [rdx + rcx + 1]
    mov     rsi, [r15 + r8 + {REGS}]
    cmp     rsi, 0x10000                    // nothing is ever there
    jb      8f
    cmp     eax, {STRING_KIND}
    ja      3f
    je      2f
    lea     ecx, [rax * 8]
    jmp     4f
2:  mov     ecx, esi                        // a string: to its end, not across a page
    neg     ecx
    and     ecx, 4095
    mov     eax, {STRING_MAX}
    jz      5f
    cmp     ecx, eax
    cmovb   eax, ecx
5:  mov     [rbx], rsi
    xor     r10d, r10d
    lea     rdi, [rbx + 16]
    movabs  r11, 0x0101010101010101
    movabs  r12, 0x8080808080808080
6:  lea     ecx, [r10 + 8]
    cmp     ecx, eax
    ja      8f                              // the end of the page is too near
umlaut_bring_string:
    mov     r13, [rsi + r10]
    mov     [rdi + r10], r13
    mov     r10d, ecx
    mov     r14, r13                        // a zero byte among them?
    sub     r13, r11
    not     r14
    and     r13, r14
    test    r13, r12
    jz      6b
    mov     [rbx + 8], r10
    lea     rbx, [rbx + r10 + 16]
    mov     qword ptr [rbx + 8], 0
    jmp     8f
3:  lea     ecx, [rax - {STRING_KIND} - 1]  // elements: their count is the next argument
    mov     rax, [r15 + r9 + {REGS}]
    cmp     rax, {BYTES_MAX}
    ja      8f
    shl     rax, cl
    jz      8f
    cmp     rax, {BYTES_MAX}
    ja      8f
    mov     ecx, eax
4:  mov     [rbx], rsi
    mov     r10d, ecx
    lea     rdi, [rbx + 16]
umlaut_bring_copy:
    rep movsb
    mov     [rbx + 8], r10
    lea     rbx, [rbx + r10 + 16 + 7]
    and     rbx, -8
    mov     qword ptr [rbx + 8], 0
umlaut_bring_failed:
8:  shr     ebp, 8
    jmp     1b
9:  mov     rax, [r15 + {REGS} + 80]
    mov     ecx, {DISPATCHED}
    cmp     rax, rcx
    cmova   rax, rcx
    shl     eax, {REASON_BITS}
    or      eax, {CALLED}
    jmp     umlaut_hand_over

    // The places of argument registers among the channel's; the last one's neighbour is never looked at.
umlaut_argument_places:
    .byte   112, 104, 96, 56, 72, 64, 64
    .balign 8
umlaut_plans:
    .space  {DISPATCHED} * 2

    // Writes what the kernel answers. To r12's target. The guest's registers lie in the channel.
umlaut_answer:
    cld
    lea     rbx, [r15 + {ANSWERS}]
    mov     ebp, [r15 + {ANSWER_COUNT}]
    mov     dword ptr [r15 + {ANSWER_COUNT}], 0
1:  sub     ebp, 1
    jb      2f
    mov     rdi, [rbx]
    mov     r10d, [rbx + 8]
    mov     ecx, r10d
    lea     rsi, [rbx + 16]
umlaut_answer_copy:
    rep movsb
    lea     rbx, [rbx + r10 + 16 + 7]
    and     rbx, -8
    jmp     1b
2:  test    dword ptr [r15 + {REGS} + 144], 0x400
    jz      3f
    std
3:  jmp     r12
umlaut_answer_failed:
    mov     eax, {UNANSWERED}
    jmp     umlaut_hand_over
