//! Why a guest thread has stopped: what its stub posted, as the kernel's traps.

use abi::{Errno, UserAddr};
use platform::{Event, Exception, SyscallEntry, Trap};

use super::Guest;
use crate::layout::*;

const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;

impl Guest {
    /// A signal of the host's, in guest code.
    pub(super) fn trapped(&mut self) -> Trap {
        let signal = self.channel.get32(SIGNAL).cast_signed();
        let code = self.channel.get32(SIGNAL + 4).cast_signed();
        match signal {
            libc::SIGSYS => {
                self.counters.add(Event::ByTrap, 1);
                let arch = self.channel.get32(SIGNAL + 16);
                self.trapped_call(arch == AUDIT_ARCH_X86_64)
            }
            libc::SIGSEGV | libc::SIGBUS | libc::SIGFPE | libc::SIGILL | libc::SIGTRAP if code > 0 => {
                let addr = UserAddr(self.channel.get(SIGNAL + 8));
                let (error_code, trap) = (self.channel.get(SIGNAL + 24), self.channel.get(SIGNAL + 32));
                Trap::Exception(Exception { signal, code, addr, trap, error_code })
            }
            // Sent by somebody, not raised by the guest's code.
            _ => Trap::Interrupted,
        }
    }

    /// A system call by a patched site, `number` as the stub tells it.
    pub(super) fn call(&mut self, number: u32) -> Trap {
        self.by_call = true;
        self.value = Errno::ENOSYS.as_result();
        let number = u64::from(number);
        let number = if number < DISPATCHED { number } else { self.channel.get(REGS + 10 * 8) };
        let args = [0, 1, 2, 3, 4, 5].map(|index| self.channel.get(CALL + index * 8));
        // What came with it.
        if let Some(shape) = self.shared.shapes.get(number as usize) {
            self.window.arrived(*shape);
        }
        Trap::Syscall(SyscallEntry { number, args, native: true })
    }

    /// A system call by SIGSYS, its registers in the channel.
    fn trapped_call(&mut self, native: bool) -> Trap {
        let word = |index: u64| self.channel.get(REGS + index * 8);
        let entry = SyscallEntry {
            number: word(10),
            args: [word(14), word(13), word(12), word(7), word(9), word(8)],
            native,
        };
        self.channel.set(REGS + 10 * 8, Errno::ENOSYS.as_result());
        Trap::Syscall(entry)
    }
}
