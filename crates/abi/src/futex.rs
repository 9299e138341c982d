//! Futexes, robust lists and restartable sequences (`linux/futex.h`, `linux/rseq.h`).

use crate::macros::{flags, layout, names};

names! {
    /// What `futex` does: its operation without the flags of [`FutexFlags`].
    FutexCmd: u32, "FUTEX_" {
        WAIT = 0;
        WAKE = 1;
        FD = 2;
        REQUEUE = 3;
        CMP_REQUEUE = 4;
        WAKE_OP = 5;
        LOCK_PI = 6;
        UNLOCK_PI = 7;
        TRYLOCK_PI = 8;
        WAIT_BITSET = 9;
        WAKE_BITSET = 10;
        WAIT_REQUEUE_PI = 11;
        CMP_REQUEUE_PI = 12;
        LOCK_PI2 = 13;
    }
}

/// The operation word of `futex`: a command and flags.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FutexOp(pub u32);

impl FutexOp {
    /// The command.
    pub const fn cmd(self) -> FutexCmd {
        FutexCmd(self.0 & !FutexFlags::KNOWN.bits())
    }

    /// The flags.
    pub const fn flags(self) -> FutexFlags {
        FutexFlags::from_bits_retain(self.0 & FutexFlags::KNOWN.bits())
    }
}

impl core::fmt::Display for FutexOp {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.cmd().fmt(f)?;
        for (bits, name) in FutexFlags::NAMES {
            if self.0 & bits != 0 {
                write!(f, "|{name}")?;
            }
        }
        Ok(())
    }
}

impl core::fmt::Debug for FutexOp {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(self, f)
    }
}

flags! {
    /// Flags in [`FutexOp`].
    FutexFlags: u32, "FUTEX_" {
        PRIVATE_FLAG = 128;
        CLOCK_REALTIME = 256;
    }

    /// Flags of `futex_wait`, `futex_wake`, `futex_requeue` and of each [`FutexWaitv`]. The two lowest
    /// bits are the size: 2 for 32 bits (`FUTEX2_SIZE_U32`), the only one that Linux has built.
    Futex2Flags: u32, "FUTEX2_" {
        SIZE_U64 = 3;
        SIZE_U32 = 2;
        SIZE_U16 = 1;
        NUMA = 4;
        MPOL = 8;
        PRIVATE = 128;
    }
}

layout! {
    /// `struct futex_waitv`.
    struct FutexWaitv: 24 {
        0 val: u64,
        8 uaddr: u64,
        16 flags: Futex2Flags,
        20 reserved: u32,
    }

    /// `struct robust_list_head`.
    struct RobustListHead: 24 {
        0 list: u64,
        8 futex_offset: i64,
        16 list_op_pending: u64,
    }

    /// `struct rseq`: 32 bytes in its first form; 6.18 uses the first 28 ([`Rseq::FEATURE_SIZE`]).
    struct Rseq: 32 {
        0 cpu_id_start: u32,
        4 cpu_id: u32,
        8 rseq_cs: u64,
        16 flags: u32,
        20 node_id: u32,
        24 mm_cid: u32,
        28 pad: u32,
    }

    /// `struct rseq_cs`: one critical section.
    struct RseqCs: 32 {
        0 version: u32,
        4 flags: u32,
        8 start_ip: u64,
        16 post_commit_offset: u64,
        24 abort_ip: u64,
    }
}

impl FutexWaitv {
    /// Most of them in one call (`FUTEX_WAITV_MAX`).
    pub const MAX: usize = 128;
}

impl RobustListHead {
    /// How many entries Linux walks (`ROBUST_LIST_LIMIT`).
    pub const LIMIT: usize = 2048;
}

impl Rseq {
    /// What `AT_RSEQ_FEATURE_SIZE` says: the bytes in use.
    pub const FEATURE_SIZE: u64 = 28;
    /// What `AT_RSEQ_ALIGN` says.
    pub const ALIGN: u64 = 32;
    /// `cpu_id` before a thread registers.
    pub const CPU_ID_UNINITIALIZED: u32 = 0xffff_ffff;
    /// Flag of the call: unregister.
    pub const FLAG_UNREGISTER: u32 = 1;
}

/// In a futex word: threads wait.
pub const FUTEX_WAITERS: u32 = 0x8000_0000;
/// In a futex word: its owner died.
pub const FUTEX_OWNER_DIED: u32 = 0x4000_0000;
/// In a futex word: the owner's thread id.
pub const FUTEX_TID_MASK: u32 = 0x3fff_ffff;
/// Wakes and waits for any bit.
pub const FUTEX_BITSET_MATCH_ANY: u32 = 0xffff_ffff;

names! {
    /// What `FUTEX_WAKE_OP` does to the second word (bits 28 to 30 of its argument; bit 31 shifts the
    /// operand).
    FutexWakeOp: u32, "FUTEX_OP_" {
        SET = 0;
        ADD = 1;
        OR = 2;
        ANDN = 3;
        XOR = 4;
    }

    /// How `FUTEX_WAKE_OP` compares (bits 24 to 27).
    FutexWakeCmp: u32, "FUTEX_OP_CMP_" {
        EQ = 0;
        NE = 1;
        LT = 2;
        LE = 3;
        GT = 4;
        GE = 5;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn operations_split_into_command_and_flags() {
        assert_eq!(
            FutexOp(128 | 9 | 256).to_string(),
            "FUTEX_WAIT_BITSET|FUTEX_PRIVATE_FLAG|FUTEX_CLOCK_REALTIME"
        );
        assert_eq!(FutexOp(1).cmd(), FutexCmd::WAKE);
        assert_eq!(FutexOp(1 << 20).cmd(), FutexCmd(1 << 20));
    }
}
