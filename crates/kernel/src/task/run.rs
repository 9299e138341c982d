//! The whole life of a guest thread: take signals, run the guest, serve what it asks, until it ends.

use std::panic::AssertUnwindSafe;

use abi::{Errno, Signal};
use platform::{Event, Place, SyscallEntry, Trap};
use sync::{Interrupts, Restart, SysError, SysResult};

use crate::profile::What;
use crate::signal::Delivery;
use crate::syscall::{Outcome, Row, table};
use crate::task::{CurrentTask, GroupExit, exit};

/// A system call that a signal interrupted: it starts again unless a handler runs that says otherwise.
#[derive(Clone, Copy, Debug)]
pub struct InterruptedCall {
    entry: SyscallEntry,
    restart: Restart,
}

/// How a call with a relative time-out goes on by `restart_syscall`: data, so that it can be looked at and kept.
#[derive(Clone, Copy, Debug, Default)]
pub enum RestartBlock {
    #[default]
    None,
    Sleep(crate::time::SleepRestart),
    Futex(crate::futex::FutexRestart),
    Poll(crate::fs::poll::PollRestart),
}

/// What the last fault of the guest was, for its signal frame.
#[derive(Clone, Copy, Debug, Default)]
pub struct LastFault {
    pub address: u64,
    pub trap_number: u64,
    pub error_code: u64,
}

/// Bytes of the `syscall` instruction (and of `int 0x80`): where to go back to, to make a call again.
const SYSCALL_INSTRUCTION: u64 = 2;

/// Runs a task until it has ended and is gone. A panic while it is served, whether by a system call's handler or outside of
/// one (signals, faults), ends its process with a report (an oops), never the kernel. This is the one place for that.
pub(crate) fn run(mut task: CurrentTask) {
    loop {
        match std::panic::catch_unwind(AssertUnwindSafe(|| task.step())) {
            Ok(true) => {}
            Ok(false) => break,
            Err(_) => {
                task.oops();
                break;
            }
        }
    }
    exit::end_task(task);
}

impl CurrentTask {
    /// Runs the guest once and sees to why it stopped. `false`: the task ends.
    fn step(&mut self) -> bool {
        if !self.prepare_for_guest() {
            return false;
        }
        match self.enter_guest() {
            Trap::Syscall(entry) => self.system_call(entry),
            Trap::Exception(exception) if self.stepped_into_trampoline(&exception) => {}
            Trap::Exception(exception) => {
                let exception = self.leave_trampoline_by(exception);
                self.exception(&exception);
            }
            // Stepped: nobody asks for that yet; a tracer inside the guest will. Without a kick: what the guest blocks has
            // changed.
            Trap::Interrupted | Trap::Stepped => {
                self.must_look.set(true);
                self.leave_trampoline();
            }
            Trap::Died(status) => self.died(status),
        }
        true
    }

    /// The kernel failed on behalf of this task: its process ends, with a report.
    fn oops(&mut self) {
        let call = match self.serving {
            Some(number) => table::row(number).map_or("an unknown system call", |row| row.name),
            None => "between system calls",
        };
        tracing::error!(pid = self.pid(), call, "oops: the kernel failed; the process ends");
        self.counters.add(Event::Oops, 1);
        self.exit_group(GroupExit::Signal { signal: Signal::KILL, core: false });
    }

    /// Whether there may be something to see to before the guest goes on. Whoever has something for this task kicks it,
    /// so this looks at what nobody else writes meanwhile, without a lock (Linux: `exit_to_user_mode_loop` looks at the
    /// thread's flags alone). A kick that comes after this look is seen by [`enter_guest`](Self::enter_guest), or by the
    /// platform.
    fn has_work(&self) -> bool {
        self.waiter.parker().is_interrupted(Interrupts::ANY)
            || self.must_look.get()
            || self.interrupted.is_some()
            || self.exit_code.is_some()
            || self.saved_mask.is_some()
    }

    /// Sees to signals, interrupted calls and other work. `false`: the task ends.
    fn prepare_for_guest(&mut self) -> bool {
        while self.has_work() {
            if self.exit_code.is_some() {
                return false;
            }
            self.waiter.clear(Interrupts::SIGNAL);
            self.must_look.set(false);
            self.follow_scheduling();
            match self.handle_signals() {
                Delivery::Exit => return false,
                Delivery::Continue { .. } => {}
            }
            // No handler ran for it: the call goes on as if nothing had been.
            match self.interrupted.take() {
                Some(call) if call.restart.is_block() => self.continue_restart_block(call.entry),
                Some(call) => self.system_call(call.entry),
                None => {}
            }
        }
        true
    }

    /// Serves one system call.
    fn system_call(&mut self, entry: SyscallEntry) {
        self.serving = Some(entry.number);
        let result = self.dispatch(&entry);
        self.finish_call(entry, result);
    }

    fn continue_restart_block(&mut self, entry: SyscallEntry) {
        let block = std::mem::take(&mut self.restart_block);
        self.serving = Some(entry.number);
        let result = self.trace_restart(entry.number, |task| match block {
            RestartBlock::None => Err(Errno::EINTR.into()),
            RestartBlock::Sleep(sleep) => crate::time::restart_sleep(task, sleep),
            RestartBlock::Futex(futex) => crate::futex::restart_wait(task, futex),
            RestartBlock::Poll(poll) => crate::fs::poll::restart_poll(task, poll),
        });
        self.finish_call(entry, result);
    }

    /// Finds the row and calls the handler.
    fn dispatch(&mut self, entry: &SyscallEntry) -> SysResult<Outcome> {
        let Some(row) = table::row(entry.number).filter(|_| entry.native) else {
            self.counters.add(Event::UnknownCall, 1);
            self.trace_unknown(entry);
            return Err(Errno::ENOSYS.into());
        };
        self.counters.add_calls(Place::Kernel, row.number, 1);
        // One branch for all observers: without any there is nothing between the row and its handler.
        match row.call {
            Some(call) if !self.is_observed => call(self, &entry.args),
            _ => self.observed_call(row, entry),
        }
    }

    /// Calls the handler, for those who observe calls (the profile, the trace), or says that there is none.
    #[cold]
    fn observed_call(&mut self, row: &'static Row, entry: &SyscallEntry) -> SysResult<Outcome> {
        let began = self.profile_begin();
        let result = self.trace_call(row, &entry.args, |task| match (row.call, row.needs) {
            (Some(call), _) => call(task, &entry.args),
            (None, Some(capability)) if !task.cred.capable(capability) => Err(Errno::EPERM.into()),
            (None, _) => Err(Errno::ENOSYS.into()),
        });
        self.profile_end(began, || What::Call {
            number: row.number,
            place: Place::Kernel,
            result: match &result {
                Ok(Outcome::Value(value) | Outcome::Address(value)) => Some(*value),
                Err(SysError::Errno(errno)) => Some(errno.as_result()),
                Ok(Outcome::Resumed | Outcome::Exited) | Err(SysError::Restart(_)) => None,
            },
        });
        result
    }

    fn finish_call(&mut self, entry: SyscallEntry, result: SysResult<Outcome>) {
        self.serving = None;
        match result {
            Ok(Outcome::Value(value) | Outcome::Address(value)) => self.context.set_result(value),
            Ok(Outcome::Resumed | Outcome::Exited) => {}
            Err(SysError::Errno(errno)) => self.context.set_result(errno.as_result()),
            Err(SysError::Restart(restart)) => self.interrupted = Some(InterruptedCall { entry, restart }),
        }
    }

    /// Decides, before a handler's frame is pushed, how the interrupted call will look behind it.
    pub(crate) fn resolve_interrupted_call(&mut self, handler_restarts: Option<bool>) {
        let Some(call) = self.interrupted.take() else { return };
        if handler_restarts.is_some_and(|restarts| call.restart.after_handler(restarts)) {
            let registers = self.context.registers_mut();
            registers.rip = registers.rip.wrapping_sub(SYSCALL_INSTRUCTION);
            registers.rax = call.entry.number;
        } else {
            self.context.set_result(Errno::EINTR.as_result());
        }
    }
}
