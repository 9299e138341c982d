//! The general registers of a guest thread (x86-64).

/// The user registers in the order of the host's `user_regs_struct`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Registers {
    pub r15: u64,
    pub r14: u64,
    pub r13: u64,
    pub r12: u64,
    pub rbp: u64,
    pub rbx: u64,
    pub r11: u64,
    pub r10: u64,
    pub r9: u64,
    pub r8: u64,
    pub rax: u64,
    pub rcx: u64,
    pub rdx: u64,
    pub rsi: u64,
    pub rdi: u64,
    /// The host's record of the call number; platforms own it, the kernel leaves it alone.
    pub orig_rax: u64,
    pub rip: u64,
    pub cs: u64,
    pub rflags: u64,
    pub rsp: u64,
    pub ss: u64,
    pub fs_base: u64,
    pub gs_base: u64,
    pub ds: u64,
    pub es: u64,
    pub fs: u64,
    pub gs: u64,
}

impl Registers {
    /// Code segment of 64-bit user code.
    pub const USER_CS: u64 = 0x33;
    /// Stack segment of user code.
    pub const USER_SS: u64 = 0x2b;
    /// The flags that a guest may set through a signal frame (`FIX_EFLAGS` of Linux: AC OF DF TF SF ZF
    /// AF PF CF RF).
    pub const USER_FLAGS: u64 = 0x5_0dd5;

    /// The registers of a fresh image: everything zero but these.
    pub fn for_new_image(entry: u64, stack: u64) -> Registers {
        Registers {
            rip: entry,
            rsp: stack,
            cs: Registers::USER_CS,
            ss: Registers::USER_SS,
            rflags: 0x202,
            orig_rax: u64::MAX,
            ..Registers::default()
        }
    }
}
