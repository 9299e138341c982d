//! `prctl` and `arch_prctl` (`linux/prctl.h`, `asm/prctl.h`).

use crate::macros::{flags, names};

names! {
    /// What `prctl` does.
    PrctlOp: i32, "PR_" {
        SET_PDEATHSIG = 1;
        GET_PDEATHSIG = 2;
        GET_DUMPABLE = 3;
        SET_DUMPABLE = 4;
        GET_UNALIGN = 5;
        SET_UNALIGN = 6;
        GET_KEEPCAPS = 7;
        SET_KEEPCAPS = 8;
        GET_FPEMU = 9;
        SET_FPEMU = 10;
        GET_FPEXC = 11;
        SET_FPEXC = 12;
        GET_TIMING = 13;
        SET_TIMING = 14;
        SET_NAME = 15;
        GET_NAME = 16;
        GET_ENDIAN = 19;
        SET_ENDIAN = 20;
        GET_SECCOMP = 21;
        SET_SECCOMP = 22;
        CAPBSET_READ = 23;
        CAPBSET_DROP = 24;
        GET_TSC = 25;
        SET_TSC = 26;
        GET_SECUREBITS = 27;
        SET_SECUREBITS = 28;
        SET_TIMERSLACK = 29;
        GET_TIMERSLACK = 30;
        TASK_PERF_EVENTS_DISABLE = 31;
        TASK_PERF_EVENTS_ENABLE = 32;
        MCE_KILL = 33;
        MCE_KILL_GET = 34;
        SET_MM = 35;
        SET_CHILD_SUBREAPER = 36;
        GET_CHILD_SUBREAPER = 37;
        SET_NO_NEW_PRIVS = 38;
        GET_NO_NEW_PRIVS = 39;
        GET_TID_ADDRESS = 40;
        SET_THP_DISABLE = 41;
        GET_THP_DISABLE = 42;
        MPX_ENABLE_MANAGEMENT = 43;
        MPX_DISABLE_MANAGEMENT = 44;
        SET_FP_MODE = 45;
        GET_FP_MODE = 46;
        CAP_AMBIENT = 47;
        SVE_SET_VL = 50;
        SVE_GET_VL = 51;
        GET_SPECULATION_CTRL = 52;
        SET_SPECULATION_CTRL = 53;
        PAC_RESET_KEYS = 54;
        SET_TAGGED_ADDR_CTRL = 55;
        GET_TAGGED_ADDR_CTRL = 56;
        SET_IO_FLUSHER = 57;
        GET_IO_FLUSHER = 58;
        SET_SYSCALL_USER_DISPATCH = 59;
        PAC_SET_ENABLED_KEYS = 60;
        PAC_GET_ENABLED_KEYS = 61;
        SCHED_CORE = 62;
        SME_SET_VL = 63;
        SME_GET_VL = 64;
        SET_MDWE = 65;
        GET_MDWE = 66;
        SET_MEMORY_MERGE = 67;
        GET_MEMORY_MERGE = 68;
        RISCV_V_SET_CONTROL = 69;
        RISCV_V_GET_CONTROL = 70;
        RISCV_SET_ICACHE_FLUSH_CTX = 71;
        PPC_GET_DEXCR = 72;
        PPC_SET_DEXCR = 73;
        GET_SHADOW_STACK_STATUS = 74;
        SET_SHADOW_STACK_STATUS = 75;
        LOCK_SHADOW_STACK_STATUS = 76;
        TIMER_CREATE_RESTORE_IDS = 77;
        FUTEX_HASH = 78;
        GET_AUXV = 0x4155_5856;
        SET_VMA = 0x5356_4d41;
        SET_PTRACER = 0x5961_6d61;
    }

    /// What `PR_CAP_AMBIENT` does.
    CapAmbientOp: i32, "PR_CAP_AMBIENT_" {
        IS_SET = 1;
        RAISE = 2;
        LOWER = 3;
        CLEAR_ALL = 4;
    }

    /// Which field `PR_SET_MM` sets.
    PrctlMm: i32, "PR_SET_MM_" {
        START_CODE = 1;
        END_CODE = 2;
        START_DATA = 3;
        END_DATA = 4;
        START_STACK = 5;
        START_BRK = 6;
        BRK = 7;
        ARG_START = 8;
        ARG_END = 9;
        ENV_START = 10;
        ENV_END = 11;
        AUXV = 12;
        EXE_FILE = 13;
        MAP = 14;
        MAP_SIZE = 15;
    }

    /// What `PR_SET_VMA` sets.
    PrctlVma: i32, "PR_SET_VMA_" {
        ANON_NAME = 0;
    }

    /// Argument of `PR_SET_TSC`.
    PrctlTsc: i32, "PR_TSC_" {
        ENABLE = 1;
        SIGSEGV = 2;
    }

    /// First argument of `PR_MCE_KILL`.
    MceKill: i32, "PR_MCE_KILL_" {
        CLEAR = 0;
        SET = 1;
    }

    /// Second argument of `PR_MCE_KILL`, and what `PR_MCE_KILL_GET` returns.
    MceKillPolicy: i32, "PR_MCE_KILL_" {
        LATE = 0;
        EARLY = 1;
        DEFAULT = 2;
    }

    /// Which misfeature `PR_SET_SPECULATION_CTRL` means.
    SpeculationFeature: i32, "PR_SPEC_" {
        STORE_BYPASS = 0;
        INDIRECT_BRANCH = 1;
        L1D_FLUSH = 2;
    }

    /// What `PR_SET_SYSCALL_USER_DISPATCH` does.
    UserDispatchMode: i32, "PR_SYS_DISPATCH_" {
        OFF = 0;
        EXCLUSIVE_ON = 1;
        INCLUSIVE_ON = 2;
    }

    /// What `PR_SCHED_CORE` does.
    SchedCoreOp: i32, "PR_SCHED_CORE_" {
        GET = 0;
        CREATE = 1;
        SHARE_TO = 2;
        SHARE_FROM = 3;
    }

    /// What `PR_FUTEX_HASH` does.
    FutexHashOp: i32, "PR_FUTEX_HASH_" {
        SET_SLOTS = 1;
        GET_SLOTS = 2;
    }

    /// What `PR_TIMER_CREATE_RESTORE_IDS` does.
    TimerRestoreOp: i32, "PR_TIMER_CREATE_RESTORE_IDS_" {
        OFF = 0;
        ON = 1;
        GET = 2;
    }

    /// What `arch_prctl` does.
    ArchPrctlOp: i32, "ARCH_" {
        SET_GS = 0x1001;
        SET_FS = 0x1002;
        GET_FS = 0x1003;
        GET_GS = 0x1004;
        GET_CPUID = 0x1011;
        SET_CPUID = 0x1012;
        GET_XCOMP_SUPP = 0x1021;
        GET_XCOMP_PERM = 0x1022;
        REQ_XCOMP_PERM = 0x1023;
        GET_XCOMP_GUEST_PERM = 0x1024;
        REQ_XCOMP_GUEST_PERM = 0x1025;
        MAP_VDSO_X32 = 0x2001;
        MAP_VDSO_32 = 0x2002;
        MAP_VDSO_64 = 0x2003;
        GET_UNTAG_MASK = 0x4001;
        ENABLE_TAGGED_ADDR = 0x4002;
        GET_MAX_TAG_BITS = 0x4003;
        FORCE_TAGGED_SVA = 0x4004;
        SHSTK_ENABLE = 0x5001;
        SHSTK_DISABLE = 0x5002;
        SHSTK_LOCK = 0x5003;
        SHSTK_UNLOCK = 0x5004;
        SHSTK_STATUS = 0x5005;
    }
}

flags! {
    /// Flags of `PR_SET_MDWE`.
    MdweFlags: u64, "PR_MDWE_" {
        REFUSE_EXEC_GAIN = 1;
        NO_INHERIT = 2;
    }

    /// Flags of `PR_SET_THP_DISABLE`.
    ThpDisableFlags: u64, "PR_THP_DISABLE_" {
        EXCEPT_ADVISED = 2;
    }

    /// Argument and result of `PR_SET_SPECULATION_CTRL`; 0 is `PR_SPEC_NOT_AFFECTED`.
    SpeculationFlags: u64, "PR_SPEC_" {
        PRCTL = 0x1;
        ENABLE = 0x2;
        DISABLE = 0x4;
        FORCE_DISABLE = 0x8;
        DISABLE_NOEXEC = 0x10;
    }

    /// Features of the shadow stack (`ARCH_SHSTK_ENABLE`).
    ShstkFeatures: u64, "ARCH_SHSTK_" {
        SHSTK = 1;
        WRSS = 2;
    }
}

/// Bytes of a task's name, with its zero (`PR_SET_NAME`).
pub const TASK_COMM_LEN: usize = 16;
/// `PR_SET_PTRACER_ANY`: any process may attach.
pub const PR_SET_PTRACER_ANY: u64 = !0;
