//! The seccomp filter of guest processes: what the host lets them do should they ever run natively.
//!
//! Guests are not expected to reach it: their calls are intercepted before seccomp looks (`SYSEMU`), or
//! have become `getpid` by then (`SYSCALL`). It is the second fence. By address: calls from the stub's text
//! page pass if the stub has a use for them, with arguments checked as far as 32-bit comparisons go simply;
//! the vsyscall page, which the host emulates without a stop, may tell the time; elsewhere only `getpid`
//! passes, by either entry. All else kills the process. The architecture is the first test: 32-bit entries
//! can spoof the address.

#![allow(clippy::cast_sign_loss, reason = "constants of the host's ABI")]

use abi::GUEST_TOP;
use guest_process::ADVICE;
use guest_process::bpf::{ARCH, Assembler, Instruction, Label, NR, high};

use crate::stub::{CONTROL_FD, FIRST_PASSED_FD};

/// Flags of a fork, as the stub's `clone` makes it: the exit signal is the parent's (`CLONE_PARENT`).
pub(crate) const CLONE_FORK: u32 = (libc::CLONE_PARENT | libc::CLONE_UNTRACED).cast_unsigned();
/// Flags of a process that shares memory.
pub(crate) const CLONE_SHARING: u32 = CLONE_FORK | libc::CLONE_VM.cast_unsigned();
/// Flags of a thread.
pub(crate) const CLONE_THREAD: u32 = (libc::CLONE_VM
    | libc::CLONE_FS
    | libc::CLONE_FILES
    | libc::CLONE_SIGHAND
    | libc::CLONE_THREAD
    | libc::CLONE_SYSVSEM
    | libc::CLONE_UNTRACED)
    .cast_unsigned();

const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;
const AUDIT_ARCH_I386: u32 = 0x4000_0003;
/// `getpid` of 32-bit code, what a call of its kind becomes under `SYSCALL`.
const GETPID_32: u32 = 20;

/// How the arguments of a call from the stub are checked.
enum Check {
    None,
    /// `[first, first + second)` below the guest's top; for mremap also the new range.
    Range {
        mremap: bool,
        mmap: bool,
    },
    /// The range, and what is advised.
    Advise,
    /// The argument is one of these.
    OneOf(u32, &'static [u32]),
    /// Two of the kind.
    Both((u32, &'static [u32]), (u32, &'static [u32])),
    Futex,
}

/// Barriers for the threads of the process itself, and what they take: PRIVATE_EXPEDITED (8, registered by 16), its
/// SYNC_CORE form (32, 64), the registration for others' GLOBAL_EXPEDITED (4).
const MEMBARRIERS: [u32; 5] = [8, 16, 32, 64, 4];

const FROM_STUB: &[(libc::c_long, Check)] = &[
    // What a call of a guest that has jumped here becomes under SYSCALL.
    (libc::SYS_getpid, Check::None),
    (libc::SYS_pause, Check::None),
    (libc::SYS_futex, Check::Futex),
    (libc::SYS_futex_waitv, Check::OneOf(2, &[0])),
    (libc::SYS_membarrier, Check::Both((0, &MEMBARRIERS), (1, &[0]))),
    (libc::SYS_mmap, Check::Range { mremap: false, mmap: true }),
    (libc::SYS_munmap, Check::Range { mremap: false, mmap: false }),
    (libc::SYS_mprotect, Check::Range { mremap: false, mmap: false }),
    (libc::SYS_mremap, Check::Range { mremap: true, mmap: false }),
    (libc::SYS_madvise, Check::Advise),
    (libc::SYS_recvmsg, Check::OneOf(0, &[CONTROL_FD])),
    (libc::SYS_close_range, Check::OneOf(0, &[FIRST_PASSED_FD])),
    (libc::SYS_clone, Check::OneOf(0, &[CLONE_FORK, CLONE_SHARING, CLONE_THREAD])),
    (libc::SYS_dup2, Check::Both((0, &[FIRST_PASSED_FD]), (1, &[CONTROL_FD]))),
    (libc::SYS_write, Check::Both((0, &[CONTROL_FD]), (2, &[1]))),
    (libc::SYS_prctl, Check::Both((0, &[libc::PR_SET_PDEATHSIG as u32]), (1, &[libc::SIGKILL as u32]))),
    (libc::SYS_getppid, Check::None),
    (libc::SYS_exit, Check::None),
    (libc::SYS_exit_group, Check::None),
    // The host's own way of going on with a futex wait that a signal interrupted.
    (libc::SYS_restart_syscall, Check::None),
];

/// The filter for a stub whose text page is at `text`.
pub(crate) fn filter(text: u64) -> Vec<Instruction> {
    let mut a = Assembler::default();
    let (kill, allow, native, elsewhere) = (a.label(), a.label(), a.label(), a.label());
    a.load(ARCH);
    a.jump_if(libc::BPF_JEQ, AUDIT_ARCH_X86_64, native);
    a.jump_unless(libc::BPF_JEQ, AUDIT_ARCH_I386, kill);
    a.load(NR);
    a.jump_if(libc::BPF_JEQ, GETPID_32, allow);
    a.jump(kill);
    a.place(native);
    a.require_page(text, elsewhere);
    a.load(NR);
    let checks: Vec<Label> = FROM_STUB
        .iter()
        .map(|(number, _)| {
            let label = a.label();
            a.jump_if(libc::BPF_JEQ, *number as u32, label);
            label
        })
        .collect();
    a.jump(kill);
    for (label, (_, check)) in checks.into_iter().zip(FROM_STUB) {
        a.place(label);
        match check {
            Check::None => {}
            Check::OneOf(argument, values) => a.require_one_of(*argument, values, kill),
            Check::Both(first, second) => {
                a.require_one_of(first.0, first.1, kill);
                a.require_one_of(second.0, second.1, kill);
            }
            Check::Range { mremap, mmap } => {
                a.require_below(0, 1, kill);
                if *mremap {
                    a.require_below(4, 2, kill);
                }
                if *mmap {
                    a.require_map_flags(kill);
                }
            }
            Check::Advise => {
                a.require_below(0, 1, kill);
                a.require_one_of(2, ADVICE, kill);
            }
            Check::Futex => futex(&mut a, kill),
        }
        a.jump(allow);
    }
    a.place(elsewhere);
    a.load(NR);
    a.jump_if(libc::BPF_JEQ, libc::SYS_getpid as u32, allow);
    a.allow_vsyscall_time(allow, kill);
    a.place(kill);
    a.emit(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_KILL_PROCESS);
    a.place(allow);
    a.emit(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW);
    a.finish()
}

/// Goes on if the operation is none of PI and FD, on a word that can be the guest's.
fn futex(a: &mut Assembler, kill: Label) {
    a.load(high(0));
    a.jump_if(libc::BPF_JGT, (GUEST_TOP >> 32) as u32, kill);
    a.require_futex(kill);
}

#[cfg(test)]
mod tests;
