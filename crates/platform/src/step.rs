//! Steps by the processor's trap flag (TF), for platforms whose host does not step guests for them.
//!
//! The platform sets TF in the guest's registers ([`FLAG`]), lets the guest go on, and asks [`Step::end`] what came of
//! it, which hides TF from the guest's registers again. What the instruction itself puts into memory or other registers
//! is not hidden, since Linux does not either: `pushf` stores the TF of a `PTRACE_SINGLESTEP`, and `syscall` leaves it in
//! r11.

use abi::UserAddr;

use crate::{AddressSpace, Exception, GuestRange, Reach, Registers, Trap};

/// The trap flag in `rflags`.
pub const FLAG: u64 = 0x100;
/// Bytes of the longest instruction.
const LONGEST: usize = 15;
const TRAP_TRACE: i32 = 2;

/// A step of a guest whose own TF is clear.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// The instruction loads the flags.
    sets_flag: bool,
}

impl Step {
    /// Before the instruction at `rip`.
    pub fn at(space: &dyn AddressSpace, rip: u64) -> Step {
        let mut bytes = [0; LONGEST];
        let page = usize::try_from(abi::PAGE_SIZE - rip % abi::PAGE_SIZE).unwrap_or(LONGEST);
        let first = LONGEST.min(page);
        // In two parts: the next page may not be there.
        let parts = [
            GuestRange { start: UserAddr(rip), len: first },
            GuestRange { start: UserAddr(rip.wrapping_add(first as u64)), len: LONGEST - first },
        ];
        let parts = if first == LONGEST { parts.split_at(1).0 } else { &parts };
        let count = space.read(parts, &mut bytes, Reach::Mapped);
        Step { sets_flag: bytes.get(..count).is_some_and(sets_flag) }
    }

    /// What the step came to, with TF in `regs` made the guest's own.
    pub fn end(self, trap: Trap, regs: &mut Registers) -> Trap {
        let done = matches!(trap, Trap::Exception(exception) if is_step(&exception));
        if !(done && self.sets_flag) {
            regs.rflags &= !FLAG;
        }
        if done { Trap::Stepped } else { trap }
    }
}

/// Whether it is the trap behind an instruction that began with TF set.
pub fn is_step(exception: &Exception) -> bool {
    exception.signal == abi::Signal::TRAP.0 && exception.code == TRAP_TRACE
}

/// Whether an instruction of 64-bit code loads the flags: `popf` and `iret` behind any prefixes (Linux:
/// `is_setting_trap_flag`, `arch/x86/kernel/step.c`).
fn sets_flag(instruction: &[u8]) -> bool {
    let prefix =
        |byte: u8| matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x40..=0x4f | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3);
    matches!(instruction.iter().find(|byte| !prefix(**byte)), Some(0x9d | 0xcf))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_that_load_the_flags_are_known() {
        for loads in [&[0x9d][..], &[0x66, 0x9d], &[0x48, 0xcf], &[0xf3, 0x2e, 0x4f, 0x9d, 0x90]] {
            assert!(sets_flag(loads), "{loads:x?}");
        }
        for others in [&[][..], &[0x66], &[0x9c], &[0x90, 0x9d], &[0x0f, 0x9d], &[0xcd, 0x80]] {
            assert!(!sets_flag(others), "{others:x?}");
        }
    }

    #[test]
    fn the_flag_is_the_guests_own_only_behind_an_instruction_that_loads_it() {
        let step = Trap::Exception(Exception::of_signal(5, TRAP_TRACE, UserAddr(1)));
        let fault = Trap::Exception(Exception::of_signal(11, 1, UserAddr(1)));
        for (sets_flag, trap, end, flags) in [
            (false, step, Trap::Stepped, 0x202),
            (true, step, Trap::Stepped, 0x302),
            (true, fault, fault, 0x202),
            (true, Trap::Interrupted, Trap::Interrupted, 0x202),
        ] {
            let mut regs = Registers { rflags: 0x302, ..Registers::default() };
            assert_eq!((Step { sets_flag }.end(trap, &mut regs), regs.rflags), (end, flags));
        }
    }
}
