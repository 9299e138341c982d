//! The seccomp filter of guest processes: what the host lets them do should they ever run natively.
//!
//! Guests are not expected to reach it: their calls are intercepted before seccomp looks (`SYSEMU`), or
//! have become `getpid` by then (`SYSCALL`). It is the second fence. By address: calls from the stub's text
//! page pass if the stub has a use for them, with arguments checked as far as 32-bit comparisons go simply;
//! the vsyscall page, which the host emulates without a stop, may tell the time; elsewhere only `getpid`
//! passes, by either entry. All else kills the process. The architecture is the first test: 32-bit entries
//! can spoof the address.

#![allow(clippy::cast_sign_loss, reason = "constants of the host's ABI")]

use abi::{GUEST_TOP, PAGE_SIZE};

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
const VSYSCALL: u64 = 0xffff_ffff_ff60_0000;

// Offsets in struct seccomp_data.
const NR: u32 = 0;
const ARCH: u32 = 4;
const IP: u32 = 8;
const fn low(argument: u32) -> u32 {
    16 + 8 * argument
}
const fn high(argument: u32) -> u32 {
    low(argument) + 4
}

/// One BPF instruction (`struct sock_filter`): code, jump if true, jump if false, constant.
pub(crate) type Instruction = (u16, u8, u8, u32);

/// A place in the program, set once.
#[derive(Clone, Copy)]
struct Label(usize);

/// What a `JA` to come must reach.
struct Assembler {
    code: Vec<Instruction>,
    labels: Vec<Option<usize>>,
    jumps: Vec<(usize, Label)>,
}

impl Assembler {
    fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    fn place(&mut self, label: Label) {
        self.labels[label.0] = Some(self.code.len());
    }

    fn emit(&mut self, code: u32, constant: u32) {
        self.code.push((code as u16, 0, 0, constant));
    }

    fn load(&mut self, offset: u32) {
        self.emit(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset);
    }

    fn jump(&mut self, to: Label) {
        self.jumps.push((self.code.len(), to));
        self.emit(libc::BPF_JMP | libc::BPF_JA, 0);
    }

    /// Jumps if A compares so with the constant (`kind`: BPF_JEQ, BPF_JGT, BPF_JGE).
    fn jump_if(&mut self, kind: u32, constant: u32, to: Label) {
        self.code.push(((libc::BPF_JMP | kind | libc::BPF_K) as u16, 0, 1, constant));
        self.jump(to);
    }

    fn jump_unless(&mut self, kind: u32, constant: u32, to: Label) {
        self.code.push(((libc::BPF_JMP | kind | libc::BPF_K) as u16, 1, 0, constant));
        self.jump(to);
    }

    /// Goes on if the argument, all 64 bits of it, is one of these.
    fn require_one_of(&mut self, argument: u32, values: &[u32], kill: Label) {
        let found = self.label();
        self.load(high(argument));
        self.jump_unless(libc::BPF_JEQ, 0, kill);
        self.load(low(argument));
        for value in values {
            self.jump_if(libc::BPF_JEQ, *value, found);
        }
        self.jump(kill);
        self.place(found);
    }

    /// Goes on if `[start, start + len)` lies below [`GUEST_TOP`], without wrapping around.
    fn require_below(&mut self, start: u32, len: u32, kill: Label) {
        let top_high = (GUEST_TOP >> 32) as u32;
        let top_low = GUEST_TOP as u32;
        let (carry, compare, good) = (self.label(), self.label(), self.label());
        for argument in [start, len] {
            self.load(high(argument));
            self.jump_if(libc::BPF_JGT, top_high, kill);
        }
        self.load(low(start));
        self.emit(libc::BPF_MISC | libc::BPF_TAX, 0);
        self.load(low(len));
        self.emit(libc::BPF_ALU | libc::BPF_ADD | libc::BPF_X, 0);
        self.emit(libc::BPF_ST, 0);
        // A sum below one of its parts has wrapped around 32 bits.
        self.code.push(((libc::BPF_JMP | libc::BPF_JGE | libc::BPF_X) as u16, 1, 0, 0));
        self.jump(carry);
        self.add_high_words(start, len);
        self.jump(compare);
        self.place(carry);
        self.add_high_words(start, len);
        self.emit(libc::BPF_ALU | libc::BPF_ADD | libc::BPF_K, 1);
        self.place(compare);
        self.jump_if(libc::BPF_JGT, top_high, kill);
        self.jump_unless(libc::BPF_JEQ, top_high, good);
        self.emit(libc::BPF_LD | libc::BPF_MEM, 0);
        self.jump_if(libc::BPF_JGT, top_low, kill);
        self.place(good);
    }

    fn add_high_words(&mut self, start: u32, len: u32) {
        self.load(high(start));
        self.emit(libc::BPF_MISC | libc::BPF_TAX, 0);
        self.load(high(len));
        self.emit(libc::BPF_ALU | libc::BPF_ADD | libc::BPF_X, 0);
    }

    /// Goes on if the instruction pointer lies in the page.
    fn require_page(&mut self, page: u64, otherwise: Label) {
        self.load(IP + 4);
        self.jump_unless(libc::BPF_JEQ, (page >> 32) as u32, otherwise);
        self.load(IP);
        self.jump_unless(libc::BPF_JGE, page as u32, otherwise);
        self.jump_if(libc::BPF_JGT, page as u32 + (PAGE_SIZE as u32 - 1), otherwise);
    }

    fn finish(mut self) -> Vec<Instruction> {
        for (at, label) in self.jumps {
            let target = self.labels[label.0].unwrap_or(at + 1);
            self.code[at].3 = (target - at - 1) as u32;
        }
        self.code
    }
}

/// How the arguments of a call from the stub are checked.
enum Check {
    None,
    /// `[first, first + second)` below the guest's top; for mremap also the new range.
    Range {
        mremap: bool,
        mmap: bool,
    },
    /// The argument is one of these.
    OneOf(u32, &'static [u32]),
    /// Two of the kind.
    Both((u32, u32), (u32, u32)),
    Futex,
}

const FROM_STUB: &[(libc::c_long, Check)] = &[
    // What a call of a guest that has jumped here becomes under SYSCALL.
    (libc::SYS_getpid, Check::None),
    (libc::SYS_pause, Check::None),
    (libc::SYS_futex, Check::Futex),
    (libc::SYS_mmap, Check::Range { mremap: false, mmap: true }),
    (libc::SYS_munmap, Check::Range { mremap: false, mmap: false }),
    (libc::SYS_mprotect, Check::Range { mremap: false, mmap: false }),
    (libc::SYS_mremap, Check::Range { mremap: true, mmap: false }),
    (libc::SYS_madvise, Check::Range { mremap: false, mmap: false }),
    (libc::SYS_recvmsg, Check::OneOf(0, &[CONTROL_FD])),
    (libc::SYS_close_range, Check::OneOf(0, &[FIRST_PASSED_FD])),
    (libc::SYS_clone, Check::OneOf(0, &[CLONE_FORK, CLONE_SHARING, CLONE_THREAD])),
    (libc::SYS_dup2, Check::Both((0, FIRST_PASSED_FD), (1, CONTROL_FD))),
    (libc::SYS_write, Check::Both((0, CONTROL_FD), (2, 1))),
    (libc::SYS_prctl, Check::Both((0, libc::PR_SET_PDEATHSIG as u32), (1, libc::SIGKILL as u32))),
    (libc::SYS_getppid, Check::None),
    (libc::SYS_exit, Check::None),
    (libc::SYS_exit_group, Check::None),
    // The host's own way of going on with a futex wait that a signal interrupted.
    (libc::SYS_restart_syscall, Check::None),
];

/// The filter for a stub whose text page is at `text`.
pub(crate) fn filter(text: u64) -> Vec<Instruction> {
    let mut a = Assembler { code: Vec::new(), labels: Vec::new(), jumps: Vec::new() };
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
                a.require_one_of(first.0, &[first.1], kill);
                a.require_one_of(second.0, &[second.1], kill);
            }
            Check::Range { mremap, mmap } => {
                a.require_below(0, 1, kill);
                if *mremap {
                    a.require_below(4, 2, kill);
                }
                if *mmap {
                    mmap_flags(&mut a, kill);
                }
            }
            Check::Futex => futex(&mut a, kill),
        }
        a.jump(allow);
    }
    a.place(elsewhere);
    a.load(NR);
    a.jump_if(libc::BPF_JEQ, libc::SYS_getpid as u32, allow);
    a.require_page(VSYSCALL, kill);
    a.load(NR);
    for number in [libc::SYS_gettimeofday, libc::SYS_time, libc::SYS_getcpu] {
        a.jump_if(libc::BPF_JEQ, number as u32, allow);
    }
    a.place(kill);
    a.emit(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_KILL_PROCESS);
    a.place(allow);
    a.emit(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW);
    a.finish()
}

/// Goes on if a mapping has a fixed place and takes no huge or locked pages.
fn mmap_flags(a: &mut Assembler, kill: Label) {
    let fixed = libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE;
    let refused = libc::MAP_HUGETLB | libc::MAP_LOCKED;
    a.load(low(3));
    a.code.push(((libc::BPF_JMP | libc::BPF_JSET) as u16, 1, 0, fixed.cast_unsigned()));
    a.jump(kill);
    a.code.push(((libc::BPF_JMP | libc::BPF_JSET) as u16, 0, 1, refused.cast_unsigned()));
    a.jump(kill);
}

/// Goes on if the operation is none of PI and FD, on words of the guest's.
fn futex(a: &mut Assembler, kill: Label) {
    let known = a.label();
    a.load(high(0));
    a.jump_if(libc::BPF_JGT, (GUEST_TOP >> 32) as u32, kill);
    a.load(low(1));
    let command = !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME).cast_unsigned();
    a.emit(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, command);
    for operation in [
        libc::FUTEX_WAIT,
        libc::FUTEX_WAKE,
        libc::FUTEX_REQUEUE,
        libc::FUTEX_CMP_REQUEUE,
        libc::FUTEX_WAKE_OP,
        libc::FUTEX_WAIT_BITSET,
        libc::FUTEX_WAKE_BITSET,
    ] {
        a.jump_if(libc::BPF_JEQ, operation.cast_unsigned(), known);
    }
    a.jump(kill);
    a.place(known);
}

#[cfg(test)]
mod tests;
