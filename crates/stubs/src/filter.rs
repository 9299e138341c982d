//! The seccomp filter of guest processes: which host calls pass, from which instruction of the stub, with which
//! arguments. All else traps: it is the guest's, and the kernel's to serve.
//!
//! By address: a slot's instruction may make its one call and no other. That only routes; the protection is
//! the set of numbers and arguments that pass from anywhere at all. The architecture is the first test, since
//! 32-bit entries can spoof the address. What is to be cloned waits for the kernel's consent ([`crate::consent`]), where
//! the host can ask for that.

use abi::GUEST_TOP;
use guest_process::bpf::{ARCH, Assembler, IP, Instruction, Label as Place, NR, high, low};
use guest_process::{ADVICE, CONTROL_FD, FREE_ADVICE};

use crate::layout::Layout;
use crate::stub::Label;

const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;

/// Flags of a fork: no exit signal of its own.
pub(crate) const CLONE_FORK: u32 = libc::CLONE_PARENT.cast_unsigned();
/// Flags of a process that shares memory.
pub(crate) const CLONE_SHARING: u32 = CLONE_FORK | libc::CLONE_VM.cast_unsigned();
/// Flags of a thread.
pub(crate) const CLONE_THREAD: u32 = (libc::CLONE_VM
    | libc::CLONE_FS
    | libc::CLONE_FILES
    | libc::CLONE_SIGHAND
    | libc::CLONE_THREAD
    | libc::CLONE_SYSVSEM
    | libc::CLONE_CHILD_CLEARTID)
    .cast_unsigned();

/// How the arguments of a call are checked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Check {
    None,
    /// `[first, first + second)` lies below the guest's top.
    Below,
    /// The same, and the flags of a mapping have a fixed place, and no huge or locked pages.
    Map,
    /// The same for the old and the new range, and the old one is not empty, which would alias.
    Remap,
    /// The same, and the advice is harmless to others.
    Advise,
    /// The same, and the advice is one that the kernel keeps no record of.
    AdviseFreely,
    /// The argument is one of these.
    OneOf(u32, &'static [u32]),
    Both((u32, u32), (u32, u32)),
    /// A barrier for the process's own threads, or its registration.
    Membarrier,
    /// A futex operation on words below the guest's top.
    Futex,
    /// WAIT or WAKE on any word: the hand-over's.
    HandOver,
    /// The channels of a fork child: their exact place.
    Channels,
    /// The descriptor is not the control socket.
    Handed,
    /// Neither is the second.
    BothHanded,
    /// A new thread: its flags, no parent's tid and no TLS.
    Thread,
}

impl Check {
    /// What passes, and why that is safe, in words.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Check::None => ("any", "only its own state"),
            Check::Below => ("the range lies below the guest's end", "its own memory"),
            Check::Map => (
                "the range lies below the guest's end; MAP_FIXED or MAP_FIXED_NOREPLACE, no MAP_HUGETLB, no MAP_LOCKED",
                "its own memory; only descriptors that the kernel hands it for the call, at their access",
            ),
            Check::Remap => (
                "old and new range below the guest's end, the old one not empty",
                "its own memory; no alias of a channel",
            ),
            Check::Advise => (
                "the range below the guest's end; no REMOVE, HWPOISON, SOFT_OFFLINE, MERGEABLE",
                "no effect beyond its own memory",
            ),
            Check::AdviseFreely => (
                "the range below the guest's end; NORMAL, RANDOM, SEQUENTIAL, WILLNEED, DONTNEED, FREE, COLD",
                "no effect beyond its own memory",
            ),
            Check::OneOf(0, &[CONTROL_FD]) => ("the control socket", "it is one-way: the kernel sends"),
            Check::OneOf(0, _) => (
                "flags of a fork or a vfork, CLONE_PARENT among them; with the kernel's consent, where the host has USER_NOTIF",
                "the child is the kernel's, and one that it has ordered",
            ),
            Check::OneOf(1, _) => ("onto the control socket", "a child's own socket"),
            Check::OneOf(..) => ("flags 0", "only its own descriptors or waits"),
            Check::Both((0, CONTROL_FD), _) => {
                ("the control socket, one byte", "has the host stamp credentials on it")
            }
            Check::Both(..) => ("PR_SET_PDEATHSIG, SIGKILL", "can only arm what ends it"),
            Check::Membarrier => ("private barriers and registrations, flags 0", "its own threads"),
            Check::Futex => (
                "WAIT, WAKE, REQUEUE, CMP_REQUEUE, WAKE_OP and the bitset forms, words below the guest's end; no PI, \
                 which tells host thread ids",
                "words that it may write anyway",
            ),
            Check::HandOver => ("WAIT and WAKE, any word", "words that it may write anyway"),
            Check::Channels => {
                ("the channels' exact place, length, protection and flags", "a fork child's own channels")
            }
            Check::Handed => (
                "descriptors other than the control socket",
                "only what the kernel hands it, regular files, at their access",
            ),
            Check::BothHanded => (
                "between descriptors other than the control socket",
                "only what the kernel hands it, which it may use anyway",
            ),
            Check::Thread => (
                "flags of a thread, no parent's tid, no TLS; with the kernel's consent, where the host has USER_NOTIF",
                "a thread of the same process that the kernel has ordered",
            ),
        }
    }
}

/// Of all instructions of the stub that may make a host call: which, the call's number, what passes, why that is safe.
pub fn reachable_host_calls() -> impl Iterator<Item = (String, u64, &'static str, &'static str)> {
    SLOTS_OF_CALLS.iter().map(|slot| {
        let (limits, reason) = slot.check.words();
        (format!("{:?}", slot.label), slot.number.cast_unsigned(), limits, reason)
    })
}

/// The same instructions: where each lies from the start of the stub's text, and the call's number.
pub fn host_call_places() -> impl Iterator<Item = (u64, u64)> {
    SLOTS_OF_CALLS.iter().map(|slot| (slot.label.offset(), slot.number.cast_unsigned()))
}

/// One instruction of the stub that may make a host call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub(crate) label: Label,
    pub(crate) number: libc::c_long,
    pub(crate) check: Check,
}

const fn slot(label: Label, number: libc::c_long, check: Check) -> Slot {
    Slot { label, number, check }
}

const PDEATHSIG: Check = Check::Both((0, libc::PR_SET_PDEATHSIG as u32), (1, libc::SIGKILL.cast_unsigned()));

/// All host calls of guest processes.
pub(crate) const SLOTS_OF_CALLS: &[Slot] = &[
    slot(Label::umlaut_wake_call, libc::SYS_futex, Check::HandOver),
    slot(Label::umlaut_sleep_call, libc::SYS_futex, Check::HandOver),
    slot(Label::umlaut_sigreturn_call, libc::SYS_rt_sigreturn, Check::None),
    slot(Label::umlaut_yield_call, libc::SYS_sched_yield, Check::None),
    slot(Label::umlaut_futex_wait_call, libc::SYS_futex, Check::Futex),
    slot(Label::umlaut_futex_wake_call, libc::SYS_futex, Check::Futex),
    slot(Label::umlaut_advise_call, libc::SYS_madvise, Check::AdviseFreely),
    slot(Label::umlaut_read_call, libc::SYS_read, Check::Handed),
    slot(Label::umlaut_write_call, libc::SYS_write, Check::Handed),
    slot(Label::umlaut_pread_call, libc::SYS_pread64, Check::Handed),
    slot(Label::umlaut_pwrite_call, libc::SYS_pwrite64, Check::Handed),
    slot(Label::umlaut_lseek_call, libc::SYS_lseek, Check::Handed),
    slot(Label::umlaut_readv_call, libc::SYS_readv, Check::Handed),
    slot(Label::umlaut_writev_call, libc::SYS_writev, Check::Handed),
    slot(Label::umlaut_preadv_call, libc::SYS_preadv, Check::Handed),
    slot(Label::umlaut_pwritev_call, libc::SYS_pwritev, Check::Handed),
    slot(Label::umlaut_futex_call, libc::SYS_futex, Check::Futex),
    slot(Label::umlaut_block_call, libc::SYS_futex, Check::Futex),
    slot(Label::umlaut_block_waitv_call, libc::SYS_futex_waitv, Check::OneOf(2, &[0])),
    slot(Label::umlaut_membarrier_call, libc::SYS_membarrier, Check::Membarrier),
    slot(Label::umlaut_mmap_call, libc::SYS_mmap, Check::Map),
    slot(Label::umlaut_munmap_call, libc::SYS_munmap, Check::Below),
    slot(Label::umlaut_mprotect_call, libc::SYS_mprotect, Check::Below),
    slot(Label::umlaut_mremap_call, libc::SYS_mremap, Check::Remap),
    slot(Label::umlaut_madvise_call, libc::SYS_madvise, Check::Advise),
    slot(Label::umlaut_receive_call, libc::SYS_recvmsg, Check::OneOf(0, &[CONTROL_FD])),
    slot(Label::umlaut_close_call, libc::SYS_close, Check::None),
    slot(Label::umlaut_close_range_call, libc::SYS_close_range, Check::OneOf(2, &[0])),
    slot(Label::umlaut_fork_call, libc::SYS_clone, Check::OneOf(0, &[CLONE_FORK, CLONE_SHARING])),
    slot(Label::umlaut_thread_call, libc::SYS_clone, Check::Thread),
    slot(Label::umlaut_remap_call, libc::SYS_mmap, Check::Channels),
    slot(Label::umlaut_dup_call, libc::SYS_dup2, Check::OneOf(1, &[CONTROL_FD])),
    slot(Label::umlaut_shut_call, libc::SYS_dup2, Check::BothHanded),
    slot(Label::umlaut_pdeathsig_call, libc::SYS_prctl, PDEATHSIG),
    slot(Label::umlaut_getppid_call, libc::SYS_getppid, Check::None),
    slot(Label::umlaut_check_in_call, libc::SYS_write, Check::Both((0, CONTROL_FD), (2, 1))),
    slot(Label::umlaut_exit_call, libc::SYS_exit, Check::None),
    slot(Label::umlaut_give_up_call, libc::SYS_exit_group, Check::None),
];

/// [`FREE_ADVICE`] as bits, for the stub.
pub(crate) const fn free_advice_bits() -> u32 {
    let (mut bits, mut index) = (0, 0);
    while index < FREE_ADVICE.len() {
        bits |= 1 << FREE_ADVICE[index];
        index += 1;
    }
    bits
}

/// PRIVATE_EXPEDITED (8, registered by 16), its SYNC_CORE form (32, 64), the registration for others'
/// GLOBAL_EXPEDITED (4).
const MEMBARRIERS: &[u32] = &[8, 16, 32, 64, 4];

/// What becomes of a clone as the kernel orders them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clones {
    /// The kernel is asked.
    Asked,
    /// It is made: the host cannot ask, or another filter has it ask.
    Made,
}

/// The filter for a stub laid out so.
pub(crate) fn filter(layout: Layout, clones: Clones) -> Vec<Instruction> {
    let mut a = Assembler::default();
    let (trap, allow, ask, elsewhere) = (a.label(), a.label(), a.label(), a.label());
    a.load(ARCH);
    a.jump_unless(libc::BPF_JEQ, AUDIT_ARCH_X86_64, trap);
    a.load(IP + 4);
    a.jump_unless(libc::BPF_JEQ, (layout.text() >> 32) as u32, elsewhere);
    a.load(IP);
    let places: Vec<Place> = SLOTS_OF_CALLS
        .iter()
        .map(|slot| {
            let place = a.label();
            // The host reports the address behind the instruction.
            a.jump_if(libc::BPF_JEQ, (layout.at(slot.label) + 2) as u32, place);
            place
        })
        .collect();
    a.jump(trap);
    for (place, slot) in places.into_iter().zip(SLOTS_OF_CALLS) {
        a.place(place);
        number(&mut a, slot, allow, trap);
        check(&mut a, layout, slot.check, trap);
        let is_asked = slot.number == libc::SYS_clone && clones == Clones::Asked;
        a.jump(if is_asked { ask } else { allow });
    }
    a.place(elsewhere);
    a.allow_vsyscall_time(allow, trap);
    a.place(trap);
    a.emit(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_TRAP);
    a.place(ask);
    a.emit(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_USER_NOTIF);
    a.place(allow);
    a.emit(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW);
    a.finish()
}

/// A filter beside one with [`Clones::Made`], which has the kernel asked. It costs all other calls some nanoseconds each.
pub(crate) fn asking_filter(layout: Layout) -> Vec<Instruction> {
    let mut a = Assembler::default();
    let (allow, ask) = (a.label(), a.label());
    a.load(NR);
    a.jump_unless(libc::BPF_JEQ, libc::SYS_clone as u32, allow);
    a.load(IP + 4);
    a.jump_unless(libc::BPF_JEQ, (layout.text() >> 32) as u32, allow);
    a.load(IP);
    for slot in SLOTS_OF_CALLS.iter().filter(|slot| slot.number == libc::SYS_clone) {
        a.jump_if(libc::BPF_JEQ, (layout.at(slot.label) + 2) as u32, ask);
    }
    a.place(allow);
    a.emit(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW);
    a.place(ask);
    a.emit(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_USER_NOTIF);
    a.finish()
}

/// Goes on if the call is the slot's.
fn number(a: &mut Assembler, slot: &Slot, allow: Place, trap: Place) {
    a.load(NR);
    if [libc::SYS_futex, libc::SYS_futex_waitv].contains(&slot.number) {
        // The host's own way of going on with a wait that a stop interrupted.
        a.jump_if(libc::BPF_JEQ, libc::SYS_restart_syscall as u32, allow);
    }
    a.jump_unless(libc::BPF_JEQ, slot.number as u32, trap);
}

fn check(a: &mut Assembler, layout: Layout, check: Check, trap: Place) {
    match check {
        Check::None => {}
        Check::Below => a.require_below(0, 1, trap),
        Check::Map => {
            a.require_below(0, 1, trap);
            a.require_map_flags(trap);
        }
        Check::Remap => {
            a.require_below(0, 1, trap);
            a.require_below(4, 2, trap);
            not_empty(a, 1, trap);
        }
        Check::Advise => {
            a.require_below(0, 1, trap);
            a.require_one_of(2, ADVICE, trap);
        }
        Check::AdviseFreely => {
            a.require_below(0, 1, trap);
            a.require_one_of(2, FREE_ADVICE, trap);
        }
        Check::OneOf(argument, values) => a.require_one_of(argument, values, trap),
        Check::Both(first, second) => {
            a.require_one_of(first.0, &[first.1], trap);
            a.require_one_of(second.0, &[second.1], trap);
        }
        Check::Membarrier => {
            a.require_one_of(0, MEMBARRIERS, trap);
            a.require_one_of(1, &[0], trap);
        }
        Check::Futex => futex(a, trap),
        Check::HandOver => a.require_one_of(1, &[libc::FUTEX_WAIT as u32, libc::FUTEX_WAKE as u32], trap),
        Check::Channels => {
            equals(a, 0, layout.channels(), trap);
            equals(a, 1, crate::layout::CHANNELS_SIZE, trap);
            a.require_one_of(2, &[(libc::PROT_READ | libc::PROT_WRITE) as u32], trap);
            a.require_one_of(3, &[(libc::MAP_SHARED | libc::MAP_FIXED) as u32], trap);
            a.require_one_of(5, &[0], trap);
        }
        Check::Handed => other_than_control(a, 0, trap),
        Check::BothHanded => {
            other_than_control(a, 0, trap);
            other_than_control(a, 1, trap);
        }
        Check::Thread => {
            a.require_one_of(0, &[CLONE_THREAD], trap);
            a.require_one_of(2, &[0], trap);
            a.require_one_of(4, &[0], trap);
        }
    }
}

/// Goes on if the descriptor is not the control socket.
fn other_than_control(a: &mut Assembler, argument: u32, trap: Place) {
    // Descriptors are 32 bits wide, whatever is above.
    a.load(low(argument));
    a.jump_if(libc::BPF_JEQ, CONTROL_FD, trap);
}

/// Goes on if the argument is this.
fn equals(a: &mut Assembler, argument: u32, value: u64, trap: Place) {
    a.load(high(argument));
    a.jump_unless(libc::BPF_JEQ, (value >> 32) as u32, trap);
    a.load(low(argument));
    a.jump_unless(libc::BPF_JEQ, value as u32, trap);
}

/// Goes on if the argument is not 0.
fn not_empty(a: &mut Assembler, argument: u32, trap: Place) {
    let good = a.label();
    a.load(high(argument));
    a.jump_unless(libc::BPF_JEQ, 0, good);
    a.load(low(argument));
    a.jump_if(libc::BPF_JEQ, 0, trap);
    a.place(good);
}

/// Goes on if the operation is none of PI and FD, on words of the guest's.
fn futex(a: &mut Assembler, trap: Place) {
    // The second word too: a count, where the operation has none.
    for word in [0, 4] {
        below(a, word, trap);
    }
    a.require_futex(trap);
}

/// Goes on if the argument is an address below the guest's top.
fn below(a: &mut Assembler, argument: u32, trap: Place) {
    let good = a.label();
    a.load(high(argument));
    a.jump_if(libc::BPF_JGT, (GUEST_TOP >> 32) as u32, trap);
    a.jump_unless(libc::BPF_JEQ, (GUEST_TOP >> 32) as u32, good);
    a.load(low(argument));
    a.jump_if(libc::BPF_JGE, GUEST_TOP as u32, trap);
    a.place(good);
}

#[cfg(test)]
mod tests;
