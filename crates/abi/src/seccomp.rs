//! seccomp and the classic BPF that its filters are written in (`linux/seccomp.h`, `linux/filter.h`,
//! `linux/bpf_common.h`).

use crate::macros::{flags, layout, names};

names! {
    /// What `seccomp` does.
    SeccompOp: u32, "SECCOMP_" {
        SET_MODE_STRICT = 0;
        SET_MODE_FILTER = 1;
        GET_ACTION_AVAIL = 2;
        GET_NOTIF_SIZES = 3;
    }

    /// The mode of a thread (`PR_GET_SECCOMP`, `/proc/PID/status`).
    SeccompMode: u32, "SECCOMP_MODE_" {
        DISABLED = 0;
        STRICT = 1;
        FILTER = 2;
    }

    /// What a filter decides: the upper half of its result.
    SeccompAction: u32, "SECCOMP_RET_" {
        KILL_PROCESS = 0x8000_0000;
        KILL_THREAD = 0;
        TRAP = 0x0003_0000;
        ERRNO = 0x0005_0000;
        USER_NOTIF = 0x7fc0_0000;
        TRACE = 0x7ff0_0000;
        LOG = 0x7ffc_0000;
        ALLOW = 0x7fff_0000;
    }
}

impl SeccompAction {
    /// The bits of the action (`SECCOMP_RET_ACTION_FULL`); the others are its data.
    pub const MASK: u32 = 0xffff_0000;

    /// The action in a filter's result.
    pub const fn of(result: u32) -> SeccompAction {
        SeccompAction(result & Self::MASK)
    }

    /// The data in a filter's result (`SECCOMP_RET_DATA`).
    pub const fn data(result: u32) -> u16 {
        (result & 0xffff) as u16
    }
}

flags! {
    /// Flags of `SECCOMP_SET_MODE_FILTER`.
    SeccompFilterFlags: u32, "SECCOMP_FILTER_FLAG_" {
        TSYNC = 0x1;
        LOG = 0x2;
        SPEC_ALLOW = 0x4;
        NEW_LISTENER = 0x8;
        TSYNC_ESRCH = 0x10;
        WAIT_KILLABLE_RECV = 0x20;
    }

    /// Flags of [`SeccompNotifResp`].
    SeccompNotifFlags: u32, "SECCOMP_USER_NOTIF_FLAG_" {
        CONTINUE = 1;
    }

    /// Flags of [`SeccompNotifAddfd`].
    SeccompAddfdFlags: u32, "SECCOMP_ADDFD_FLAG_" {
        SETFD = 1;
        SEND = 2;
    }
}

layout! {
    /// `struct seccomp_data`: what a filter sees.
    struct SeccompData: 64 {
        0 nr: i32,
        4 arch: AuditArch,
        8 instruction_pointer: u64,
        16 args: [u64; 6],
    }

    /// `struct seccomp_notif`.
    struct SeccompNotif: 80 {
        0 id: u64,
        8 pid: u32,
        12 flags: u32,
        16 data: SeccompData,
    }

    /// `struct seccomp_notif_resp`.
    struct SeccompNotifResp: 24 {
        0 id: u64,
        8 val: i64,
        16 error: i32,
        20 flags: SeccompNotifFlags,
    }

    /// `struct seccomp_notif_addfd`.
    struct SeccompNotifAddfd: 24 {
        0 id: u64,
        8 flags: SeccompAddfdFlags,
        12 srcfd: u32,
        16 newfd: u32,
        20 newfd_flags: u32,
    }

    /// `struct seccomp_notif_sizes`.
    struct SeccompNotifSizes: 6 {
        0 seccomp_notif: u16,
        2 seccomp_notif_resp: u16,
        4 seccomp_data: u16,
    }

    /// `struct sock_filter`: one instruction.
    struct SockFilter: 8 {
        /// Of the constants of [`crate::cbpf`].
        0 code: u16,
        2 jt: u8,
        3 jf: u8,
        4 k: u32,
    }

    /// `struct sock_fprog`.
    struct SockFprog: 16 {
        0 len: u16,
        2 pad0: u16,
        4 pad1: u32,
        8 filter: u64,
    }
}

names! {
    /// An architecture as seccomp and ptrace name it (`linux/audit.h`).
    AuditArch: u32, "AUDIT_ARCH_" {
        X86_64 = 0xc000_003e;
        I386 = 0x4000_0003;
    }
}

/// Parts of the code of a classic BPF instruction ([`SockFilter`]).
pub mod cbpf {
    /// Most instructions of a filter (`BPF_MAXINSNS`).
    pub const MAXINSNS: usize = 4096;
    /// Words of scratch memory (`BPF_MEMWORDS`).
    pub const MEMWORDS: usize = 16;
    /// The bits of the class.
    pub const CLASS_MASK: u16 = 0x07;
    /// Class: load into A.
    pub const LD: u16 = 0x00;
    /// Class: load into X.
    pub const LDX: u16 = 0x01;
    /// Class: store A.
    pub const ST: u16 = 0x02;
    /// Class: store X.
    pub const STX: u16 = 0x03;
    /// Class: arithmetic.
    pub const ALU: u16 = 0x04;
    /// Class: jump.
    pub const JMP: u16 = 0x05;
    /// Class: return.
    pub const RET: u16 = 0x06;
    /// Class: the rest.
    pub const MISC: u16 = 0x07;
    /// Size: 32 bits.
    pub const W: u16 = 0x00;
    /// Size: 16 bits.
    pub const H: u16 = 0x08;
    /// Size: 8 bits.
    pub const B: u16 = 0x10;
    /// Mode: the constant.
    pub const IMM: u16 = 0x00;
    /// Mode: at the constant.
    pub const ABS: u16 = 0x20;
    /// Mode: at X plus the constant.
    pub const IND: u16 = 0x40;
    /// Mode: scratch memory.
    pub const MEM: u16 = 0x60;
    /// Mode: the length.
    pub const LEN: u16 = 0x80;
    /// Mode: the length of an IP header.
    pub const MSH: u16 = 0xa0;
    /// Addition.
    pub const ADD: u16 = 0x00;
    /// Subtraction.
    pub const SUB: u16 = 0x10;
    /// Multiplication.
    pub const MUL: u16 = 0x20;
    /// Division.
    pub const DIV: u16 = 0x30;
    /// Or.
    pub const OR: u16 = 0x40;
    /// And.
    pub const AND: u16 = 0x50;
    /// Shift left.
    pub const LSH: u16 = 0x60;
    /// Shift right.
    pub const RSH: u16 = 0x70;
    /// Negation.
    pub const NEG: u16 = 0x80;
    /// Remainder.
    pub const MOD: u16 = 0x90;
    /// Exclusive or.
    pub const XOR: u16 = 0xa0;
    /// Jump always.
    pub const JA: u16 = 0x00;
    /// Jump if equal.
    pub const JEQ: u16 = 0x10;
    /// Jump if greater, unsigned.
    pub const JGT: u16 = 0x20;
    /// Jump if greater or equal, unsigned.
    pub const JGE: u16 = 0x30;
    /// Jump if any bit is set in both.
    pub const JSET: u16 = 0x40;
    /// Operand: the constant.
    pub const K: u16 = 0x00;
    /// Operand: X.
    pub const X: u16 = 0x08;
    /// Return value: A.
    pub const A: u16 = 0x10;
    /// X becomes A.
    pub const TAX: u16 = 0x00;
    /// A becomes X.
    pub const TXA: u16 = 0x80;
}
