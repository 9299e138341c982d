//! The auxiliary vector that a new program finds above its environment (`linux/auxvec.h`).

use crate::macros::names;

names! {
    /// The key of an entry of the auxiliary vector.
    AuxvKey: u32, "AT_" {
        NULL = 0;
        IGNORE = 1;
        EXECFD = 2;
        PHDR = 3;
        PHENT = 4;
        PHNUM = 5;
        PAGESZ = 6;
        BASE = 7;
        FLAGS = 8;
        ENTRY = 9;
        NOTELF = 10;
        UID = 11;
        EUID = 12;
        GID = 13;
        EGID = 14;
        PLATFORM = 15;
        HWCAP = 16;
        CLKTCK = 17;
        SECURE = 23;
        BASE_PLATFORM = 24;
        RANDOM = 25;
        HWCAP2 = 26;
        RSEQ_FEATURE_SIZE = 27;
        RSEQ_ALIGN = 28;
        HWCAP3 = 29;
        HWCAP4 = 30;
        EXECFN = 31;
        SYSINFO_EHDR = 33;
        MINSIGSTKSZ = 51;
    }
}

/// `HWCAP2_RING3MWAIT`, in `AT_HWCAP2` of x86.
pub const HWCAP2_RING3MWAIT: u64 = 1;
/// `HWCAP2_FSGSBASE`: programs may use `wrfsbase` and its kin.
pub const HWCAP2_FSGSBASE: u64 = 2;
