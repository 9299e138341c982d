//! What Linux puts on a stack when it delivers a signal: return address, `ucontext`, `siginfo`, and above
//! them the processor's extended state (`asm/sigcontext.h`, `asm/ucontext.h`).

use crate::macros::{flags, layout};
use crate::siginfo::Siginfo;
use crate::signal::{SigSet, Sigaltstack};

layout! {
    /// `struct rt_sigframe`: lies at the handler's first stack pointer, which is 8 below a multiple of 16.
    struct RtSigframe: 440 {
        /// The restorer: where the handler returns to.
        0 pretcode: u64,
        8 uc: Ucontext,
        312 info: Siginfo,
    }

    /// `struct ucontext`.
    struct Ucontext: 304 {
        0 flags: UcFlags,
        8 link: u64,
        16 stack: Sigaltstack,
        40 mcontext: Sigcontext,
        296 sigmask: SigSet,
    }

    /// `struct sigcontext` (`sigcontext_64`): the interrupted registers.
    struct Sigcontext: 256 {
        0 r8: u64,
        8 r9: u64,
        16 r10: u64,
        24 r11: u64,
        32 r12: u64,
        40 r13: u64,
        48 r14: u64,
        56 r15: u64,
        64 rdi: u64,
        72 rsi: u64,
        80 rbp: u64,
        88 rbx: u64,
        96 rdx: u64,
        104 rax: u64,
        112 rcx: u64,
        120 rsp: u64,
        128 rip: u64,
        136 eflags: u64,
        144 cs: u16,
        146 gs: u16,
        148 fs: u16,
        150 ss: u16,
        /// The processor's error code of the last fault.
        152 err: u64,
        160 trapno: u64,
        168 oldmask: u64,
        176 cr2: u64,
        /// Where the [`Fpstate`] is; 0 for none.
        184 fpstate: u64,
        192 reserved1: [u64; 8],
    }

    /// `struct _fpstate_64`: the FXSAVE image of 512 bytes. In a frame its last 48 bytes are
    /// [`FpxSwBytes`], and with [`FpxSwBytes::MAGIC1`] an [`XstateHeader`] follows.
    struct Fpstate: 512 {
        0 cwd: u16,
        2 swd: u16,
        4 twd: u16,
        6 fop: u16,
        8 rip: u64,
        16 rdp: u64,
        24 mxcsr: u32,
        28 mxcsr_mask: u32,
        32 st_space: [u32; 32],
        160 xmm_space: [u32; 64],
        416 reserved2: [u32; 12],
        464 sw_reserved: FpxSwBytes,
    }

    /// `struct _fpx_sw_bytes`: says what of the extended state a frame holds.
    struct FpxSwBytes: 48 {
        /// [`FpxSwBytes::MAGIC1`] where extended state follows.
        0 magic1: u32,
        /// Of the whole area with [`FpxSwBytes::MAGIC2`] at its end, in bytes.
        4 extended_size: u32,
        8 xfeatures: u64,
        /// Of the XSAVE area without the magic number, in bytes.
        16 xstate_size: u32,
        20 padding: [u32; 7],
    }

    /// `struct _header`: the XSAVE header, at offset 512 of the area.
    struct XstateHeader: 64 {
        0 xfeatures: u64,
        8 xcomp_bv: u64,
        16 reserved: [u64; 6],
    }
}

impl RtSigframe {
    /// Alignment of the frame's XSAVE area on the stack.
    pub const XSTATE_ALIGN: u64 = 64;
}

impl FpxSwBytes {
    /// `FP_XSTATE_MAGIC1`.
    pub const MAGIC1: u32 = 0x4650_5853;
    /// `FP_XSTATE_MAGIC2`: the four bytes after the XSAVE area.
    pub const MAGIC2: u32 = 0x4650_5845;
}

flags! {
    /// `uc_flags`.
    UcFlags: u64, "UC_" {
        FP_XSTATE = 0x1;
        SIGCONTEXT_SS = 0x2;
        STRICT_RESTORE_SS = 0x4;
    }
}
