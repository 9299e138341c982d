//! New guest processes and threads: cloned from a stopped one, in the stub, and parked there.
//!
//! A process clones with `CLONE_PARENT`, so every guest process is a child of the kernel, with the spawner
//! as the parent whose end kills it. The child uses registers only; it takes its own control socket, arms
//! PDEATHSIG, checks its parent and checks in. No pid told by a guest is used: the check-in carries the
//! credentials that the host stamped on it, and they must be those of an unreaped, unregistered child.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use abi::Errno;
use guest_process::{Process, RawCall, Slots, answer, check_in, control_socket};
use platform::{AddressSpace, Context, Event, NewContext, NewProcess, PlatformError, Registers};

use crate::context::Tracee;
use crate::filter::{CLONE_FORK, CLONE_SHARING, CLONE_THREAD};
use crate::host_call::{Cut, in_stub};
use crate::shared::Shared;
use crate::stub::SLOTS;
use crate::sys;

/// A parked guest thread.
struct Parked {
    /// Taken by `bind`.
    inside: Option<(Arc<Shared>, Arc<Process>, i32, u32)>,
    regs: Registers,
}

impl Parked {
    fn attach(&mut self) -> Result<Tracee, PlatformError> {
        match self.inside.take() {
            Some((shared, process, tid, slot)) => Tracee::attach(shared, process, tid, slot, self.regs),
            None => Err(error("attaching to a guest thread", Errno::ESRCH)),
        }
    }
}

impl NewContext for Parked {
    fn bind(mut self: Box<Self>) -> Result<Box<dyn Context>, PlatformError> {
        Ok(Box::new(self.attach()?))
    }
}

impl Drop for Parked {
    fn drop(&mut self) {
        // A thread that nobody has bound ends here; a process ends with its address space.
        if let Some((_, process, tid, _)) = &self.inside
            && *tid != process.tgid
        {
            drop(self.attach());
        }
    }
}

impl Tracee {
    pub(crate) fn clone_process(&mut self, share_memory: bool) -> Result<NewProcess, PlatformError> {
        const WHAT: &str = "making a guest process";
        let slots = if share_memory {
            Arc::clone(&self.process.slots)
        } else {
            Arc::new(Slots::with(SLOTS as u32, self.slot))
        };
        let slot = if share_memory { slots.take().ok_or(error(WHAT, Errno::EAGAIN))? } else { self.slot };
        let flags = if share_memory { CLONE_SHARING } else { CLONE_FORK };
        let made = self.clone_and_check_in(flags, &slots);
        match made {
            Ok(process) => {
                let process = Arc::new(process);
                let regs = *self.fetch();
                let inside = Some((Arc::clone(&self.shared), Arc::clone(&process), process.tgid, slot));
                Ok(NewProcess { space: process, thread: Box::new(Parked { inside, regs }) })
            }
            Err(source) => {
                if share_memory {
                    slots.give_back(slot);
                }
                Err(PlatformError { what: WHAT, source })
            }
        }
    }

    /// The child, registered.
    fn clone_and_check_in(&mut self, flags: u32, slots: &Arc<Slots>) -> io::Result<Process> {
        let (ours, theirs) = control_socket()?;
        let cloned = self.clone_natively(flags, theirs);
        // Also if the parent died on the way: a child that it has made by then is ours to end. If there is
        // none, nobody holds the other end of the socket.
        let checked_in = check_in(&ours);
        // One that died before is known by its parent's word only: enough for reaping what is no guest's.
        let pid = match (&checked_in, &cloned) {
            (Ok(pid), _) => Some(*pid),
            (Err(_), Ok(pid)) => self.process.sibling(*pid),
            (Err(_), Err(_)) => None,
        };
        let child = pid.ok_or(io::Error::from(rustix::io::Errno::SRCH)).and_then(|pid| {
            // Ours, whether it lives still or not; only a pid that is not of a child of ours is an error.
            host::wait::wait(pid, libc::WEXITED | libc::WNOWAIT | libc::WNOHANG)?;
            let namespace = self.process.namespace.clone();
            Process::register(Arc::clone(&self.shared.guests), pid, ours, Arc::clone(slots), namespace)
        });
        cloned?;
        checked_in?;
        child
    }

    /// Has the stub clone, with `theirs` as the child's control socket; returns what the stub says is its pid.
    fn clone_natively(&mut self, flags: u32, theirs: OwnedFd) -> io::Result<i32> {
        let process = Arc::clone(&self.process);
        let layout = self.shared.layout;
        let regs = Registers {
            rbx: u64::from(flags),
            rbp: u64::from(self.process.parent()),
            r13: layout.scratch(self.slot),
            ..self.borrow_thread()
        };
        let control = process.control.lock();
        self.send(&control, &[theirs.as_fd()]).map_err(gone)?;
        drop(theirs);
        self.counters.add(Event::HostCall, 1);
        let regs = self.run_stub(layout.fork(), regs, false).map_err(gone)?;
        let pid = answer(regs.r14).map_err(|errno| io::Error::from_raw_os_error(errno.raw()))?;
        Ok(i32::try_from(pid).map_err(|_| rustix::io::Errno::SRCH)?)
    }

    pub(crate) fn clone_thread(&mut self) -> Result<Box<dyn NewContext>, PlatformError> {
        const WHAT: &str = "making a guest thread";
        let process = Arc::clone(&self.process);
        let slot = process.slots.take().ok_or(error(WHAT, Errno::EAGAIN))?;
        let regs =
            Registers { rdi: u64::from(CLONE_THREAD), rsi: 0, rdx: 0, r10: 0, r8: 0, ..self.borrow_thread() };
        self.counters.add(Event::HostCall, 1);
        let made = self.run_stub(self.shared.layout.thread(), regs, false).map_err(gone).and_then(|regs| {
            let tid = answer(regs.rax).map_err(|errno| io::Error::from_raw_os_error(errno.raw()))?;
            process.thread(i32::try_from(tid).map_err(|_| rustix::io::Errno::SRCH)?)
        });
        match made {
            Ok(tid) => {
                let regs = *self.fetch();
                Ok(Box::new(Parked { inside: Some((Arc::clone(&self.shared), process, tid, slot)), regs }))
            }
            Err(source) => {
                process.slots.give_back(slot);
                Err(PlatformError { what: WHAT, source })
            }
        }
    }

    /// Ends the host thread; a leader parks instead, since its process needs it, unless nobody does.
    pub(crate) fn end(&mut self) {
        // A tracee holds two references itself.
        let last = Arc::strong_count(&self.process) <= 2;
        if self.is_dead() || last {
            return;
        }
        if self.tid == self.process.tgid {
            let parked = in_stub(self.borrow_thread(), self.shared.layout.text());
            if sys::set_registers(self.tid, &parked).is_err() || sys::detach(self.tid).is_err() {
                // Dead, or in a state that must not run.
                AddressSpace::kill(&*self.process);
            }
            return;
        }
        if let Err(Cut::Died(_)) = self.raw_call(RawCall::new(libc::SYS_exit, [0; 6]), false) {
            return;
        }
        self.escaped();
    }
}

fn gone(cut: Cut) -> io::Error {
    match cut {
        Cut::Died(_) | Cut::Kicked => rustix::io::Errno::SRCH.into(),
        Cut::Fault => rustix::io::Errno::FAULT.into(),
        Cut::Failed(error) => io::Error::from_raw_os_error(error.raw()),
    }
}

fn error(what: &'static str, errno: Errno) -> PlatformError {
    PlatformError { what, source: io::Error::from_raw_os_error(errno.raw()) }
}
