//! `ptrace`: requests, options, events, registers (`linux/ptrace.h`, `asm/ptrace-abi.h`, `sys/user.h`).

use crate::macros::{flags, layout, names};
use crate::seccomp::AuditArch;

names! {
    /// What `ptrace` does.
    PtraceRequest: i64, "PTRACE_" {
        TRACEME = 0;
        PEEKTEXT = 1;
        PEEKDATA = 2;
        PEEKUSR = 3;
        POKETEXT = 4;
        POKEDATA = 5;
        POKEUSR = 6;
        CONT = 7;
        KILL = 8;
        SINGLESTEP = 9;
        GETREGS = 12;
        SETREGS = 13;
        GETFPREGS = 14;
        SETFPREGS = 15;
        ATTACH = 16;
        DETACH = 17;
        GETFPXREGS = 18;
        SETFPXREGS = 19;
        OLDSETOPTIONS = 21;
        SYSCALL = 24;
        GET_THREAD_AREA = 25;
        SET_THREAD_AREA = 26;
        ARCH_PRCTL = 30;
        SYSEMU = 31;
        SYSEMU_SINGLESTEP = 32;
        SINGLEBLOCK = 33;
        SETOPTIONS = 0x4200;
        GETEVENTMSG = 0x4201;
        GETSIGINFO = 0x4202;
        SETSIGINFO = 0x4203;
        GETREGSET = 0x4204;
        SETREGSET = 0x4205;
        SEIZE = 0x4206;
        INTERRUPT = 0x4207;
        LISTEN = 0x4208;
        PEEKSIGINFO = 0x4209;
        GETSIGMASK = 0x420a;
        SETSIGMASK = 0x420b;
        SECCOMP_GET_FILTER = 0x420c;
        SECCOMP_GET_METADATA = 0x420d;
        GET_SYSCALL_INFO = 0x420e;
        GET_RSEQ_CONFIGURATION = 0x420f;
        SET_SYSCALL_USER_DISPATCH_CONFIG = 0x4210;
        GET_SYSCALL_USER_DISPATCH_CONFIG = 0x4211;
        SET_SYSCALL_INFO = 0x4212;
    }

    /// An event stop: what lies above the signal in the status word of `wait4`.
    PtraceEvent: i32, "PTRACE_EVENT_" {
        FORK = 1;
        VFORK = 2;
        CLONE = 3;
        EXEC = 4;
        VFORK_DONE = 5;
        EXIT = 6;
        SECCOMP = 7;
        STOP = 128;
    }

    /// What a system call stop is about.
    PtraceSyscallOp: u8, "PTRACE_SYSCALL_INFO_" {
        NONE = 0;
        ENTRY = 1;
        EXIT = 2;
        SECCOMP = 3;
    }

    /// A set of registers, as `PTRACE_GETREGSET` and core files number it.
    ElfNoteType: u32, "NT_" {
        PRSTATUS = 1;
        PRFPREG = 2;
        PRPSINFO = 3;
        AUXV = 6;
        X86_XSTATE = 0x202;
        X86_SHSTK = 0x204;
        SIGINFO = 0x5349_4749;
        FILE = 0x4649_4c45;
    }
}

flags! {
    /// Options (`PTRACE_SETOPTIONS`, `PTRACE_SEIZE`).
    PtraceOptions: u32, "PTRACE_O_" {
        TRACESYSGOOD = 0x1;
        TRACEFORK = 0x2;
        TRACEVFORK = 0x4;
        TRACECLONE = 0x8;
        TRACEEXEC = 0x10;
        TRACEVFORKDONE = 0x20;
        TRACEEXIT = 0x40;
        TRACESECCOMP = 0x80;
        EXITKILL = 0x10_0000;
        SUSPEND_SECCOMP = 0x20_0000;
    }

    /// Flags of [`PtracePeeksiginfoArgs`].
    PeeksiginfoFlags: u32, "PTRACE_PEEKSIGINFO_" {
        SHARED = 1;
    }
}

layout! {
    /// `struct user_regs_struct`: what `PTRACE_GETREGS` and `NT_PRSTATUS` give.
    struct UserRegs: 216 {
        0 r15: u64,
        8 r14: u64,
        16 r13: u64,
        24 r12: u64,
        32 rbp: u64,
        40 rbx: u64,
        48 r11: u64,
        56 r10: u64,
        64 r9: u64,
        72 r8: u64,
        80 rax: u64,
        88 rcx: u64,
        96 rdx: u64,
        104 rsi: u64,
        112 rdi: u64,
        /// The number of the system call; -1 outside of one.
        120 orig_rax: u64,
        128 rip: u64,
        136 cs: u64,
        144 eflags: u64,
        152 rsp: u64,
        160 ss: u64,
        168 fs_base: u64,
        176 gs_base: u64,
        184 ds: u64,
        192 es: u64,
        200 fs: u64,
        208 gs: u64,
    }

    /// `struct ptrace_peeksiginfo_args`.
    struct PtracePeeksiginfoArgs: 16 {
        0 off: u64,
        8 flags: PeeksiginfoFlags,
        12 nr: i32,
    }

    /// `struct ptrace_syscall_info`. By `op`, `data` is: number and six arguments (entry); result and
    /// `is_error` (exit); number, six arguments and the filter's data (seccomp).
    struct PtraceSyscallInfo: 88 {
        0 op: PtraceSyscallOp,
        1 reserved: u8,
        2 flags: u16,
        4 arch: AuditArch,
        8 instruction_pointer: u64,
        16 stack_pointer: u64,
        24 data: [u64; 8],
    }

    /// `struct ptrace_rseq_configuration`.
    struct PtraceRseqConfiguration: 24 {
        0 rseq_abi_pointer: u64,
        8 rseq_abi_size: u32,
        12 signature: u32,
        16 flags: u32,
        20 pad: u32,
    }

    /// `struct ptrace_sud_config`.
    struct PtraceSudConfig: 32 {
        0 mode: u64,
        8 selector: u64,
        16 offset: u64,
        24 len: u64,
    }

    /// `struct seccomp_metadata`.
    struct SeccompMetadata: 16 {
        0 filter_off: u64,
        8 flags: u64,
    }

    /// `struct elf_prstatus`, of a core file.
    struct ElfPrstatus: 336 {
        0 si_signo: i32,
        4 si_code: i32,
        8 si_errno: i32,
        12 cursig: i16,
        14 pad0: u16,
        16 sigpend: u64,
        24 sighold: u64,
        32 pid: i32,
        36 ppid: i32,
        40 pgrp: i32,
        44 sid: i32,
        48 utime: crate::time::Timeval,
        64 stime: crate::time::Timeval,
        80 cutime: crate::time::Timeval,
        96 cstime: crate::time::Timeval,
        112 reg: UserRegs,
        328 fpvalid: i32,
        332 pad1: u32,
    }

    /// `struct elf_prpsinfo`, of a core file.
    struct ElfPrpsinfo: 136 {
        0 state: u8,
        1 sname: u8,
        2 zomb: u8,
        3 nice: i8,
        4 pad: u32,
        8 flag: u64,
        16 uid: u32,
        20 gid: u32,
        24 pid: i32,
        28 ppid: i32,
        32 pgrp: i32,
        36 sid: i32,
        40 fname: [u8; 16],
        56 psargs: [u8; 80],
    }
}

/// Bytes of `struct user`, which `PTRACE_PEEKUSR` reads.
pub const USER_SIZE: u64 = 912;
/// Where the debug registers lie in it.
pub const USER_DEBUGREG_OFFSET: u64 = 848;
