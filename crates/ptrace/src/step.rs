//! One instruction of a guest thread.
//!
//! Where the platform is `sysemu` and the host has `PTRACE_SYSEMU_SINGLESTEP`, the host steps: it sets TF, hides it from
//! the registers, and stops at a system call without executing it. Elsewhere the step is by TF that we set, under the
//! request that guest code always runs under: `PTRACE_SINGLESTEP` would have the host execute a `syscall`.

use platform::{Registers, Trap, step};

use crate::context::{KICK, Tracee};
use crate::host_call::in_stub;
use crate::shared::Mode;
use crate::stop::Stop;
use crate::sys::{self, Resume};

impl Tracee {
    pub(crate) fn step_once(&mut self) -> Trap {
        let regs = *self.fetch();
        if self.is_dead() || regs.rflags & step::FLAG != 0 {
            return self.enter(self.shared.options.mode.resume());
        }
        let step = step::Step::at(&*self.process, regs.rip);
        let how = if self.host_steps() { Resume::SysemuStep } else { self.shared.options.mode.resume() };
        if how != Resume::SysemuStep {
            self.borrow_thread();
            self.fetch().rflags |= step::FLAG;
        }
        let trap = self.enter(how);
        let shown = self.fetch().rflags;
        let trap = step.end(trap, self.fetch());
        // The host shows its own TF if an instruction that loads the flags came to nothing.
        if self.fetch().rflags != shown {
            self.borrow_thread();
        }
        trap
    }

    /// Whether the host steps guests up to their system calls. Nobody can tell without trying: the first thread that is
    /// stepped tries it on a call of the stub's, which is not executed.
    fn host_steps(&mut self) -> bool {
        let options = &self.shared.options;
        if options.mode != Mode::Sysemu || !options.steps_by_host {
            return false;
        }
        if let Some(known) = self.shared.host_steps.get() {
            return *known;
        }
        let regs = Registers { rax: libc::SYS_getpid.cast_unsigned(), ..self.borrow_thread() };
        if sys::set_registers(self.tid, &in_stub(regs, self.shared.layout.call().start)).is_err() {
            return false; // it has died, which the next run tells
        }
        loop {
            match sys::resume(self.tid, Resume::SysemuStep) {
                Ok(()) => {}
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return false,
                Err(_) => break,
            }
            match crate::stop::next(self.tid) {
                Stop::Syscall => return *self.shared.host_steps.get_or_init(|| true),
                Stop::Signal(KICK) => self.kick_owed = true,
                Stop::Signal(libc::SIGTRAP) | Stop::Escaped => break,
                Stop::Signal(_) | Stop::Event => {}
                Stop::Dead => return false,
            }
        }
        *self.shared.host_steps.get_or_init(|| false)
    }
}
