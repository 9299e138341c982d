//! Taking signals before the guest goes on.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use abi::{ChldCode, DefaultAction, Errno, SaFlags, SigSet, Sigaction, Siginfo, Signal};

use crate::signal::StopState;
use crate::signal::send::{Target, send};
use crate::task::{CurrentTask, GroupExit};

/// What came of looking for signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The guest goes on; a frame was pushed or not.
    Continue { handler: bool },
    /// The group ends.
    Exit,
}

impl CurrentTask {
    /// Takes all signals that are to be taken now: stops, ends, or pushes frames for handlers.
    pub(crate) fn handle_signals(&mut self) -> Delivery {
        let mut handler = false;
        loop {
            if self.group().signals.lock().ends(self.tid()) {
                return Delivery::Exit;
            }
            self.take_part_in_stop();
            let Some(info) = self.next_signal(self.task.blocked().complement()) else { break };
            let signal = info.signo;
            let action = self.handlers.get(signal);
            self.trace_signal(&info);
            match action.handler {
                Sigaction::IGN if !SigSet::UNBLOCKABLE.contains(signal) => {}
                Sigaction::DFL | Sigaction::IGN => self.default_action(&info),
                _ => {
                    self.run_handler(&action, &info);
                    handler = true;
                }
            }
        }
        if handler {
            self.saved_mask = None;
        } else if let Some(mask) = self.saved_mask.take() {
            self.set_blocked(mask);
        }
        self.choose_again(self.task.blocked());
        match self.group().signals.lock().ends(self.tid()) {
            true => Delivery::Exit,
            false => Delivery::Continue { handler },
        }
    }

    /// Takes the next pending signal of these out of the task's and the group's sets.
    pub(crate) fn next_signal(&self, among: SigSet) -> Option<Siginfo> {
        loop {
            // A timer may know that its signal has become untrue.
            if let Some(info) = self.group().timer_signal_taken(self.take_signal(among)?) {
                return Some(info);
            }
        }
    }

    fn take_signal(&self, among: SigSet) -> Option<Siginfo> {
        let mut state = self.group().signals.lock();
        if state.ends(self.tid()) {
            return None;
        }
        let mut own = self.task.pending.lock();
        let taken = own
            .take(among.intersection(SigSet::SYNCHRONOUS))
            .or_else(|| own.take(among))
            .or_else(|| state.pending.take(among));
        self.continuations_seen.set(state.continuations);
        // Senders tell of more under the same lock.
        self.task.words().set_pending(own.set().union(state.pending.set()).0);
        taken
    }

    /// Puts a signal back that could not be given to the guest.
    pub(crate) fn put_signal_back(&self, info: Siginfo) {
        let signal = info.signo;
        self.task.pending.lock().put_back(info);
        self.task.words().add_pending(signal.mask().0);
    }

    /// Whether a signal waits that is not blocked.
    pub(crate) fn has_signal(&self) -> bool {
        let state = self.group().signals.lock();
        let pending = state.pending.set().union(self.task.pending.lock().set());
        state.ends(self.tid())
            || state.stop != StopState::Running
            || pending.intersects(self.task.blocked().complement())
    }

    /// Replaces the blocked signals; what is unblocked by it is taken before the guest goes on.
    pub(crate) fn set_blocked(&self, set: SigSet) {
        let newly_blocked = set.difference(self.task.blocked());
        self.task.set_blocked(set);
        self.choose_again(newly_blocked);
        self.task.kick();
    }

    /// Signals for the group that this thread was perhaps chosen to take, and blocks by now, are another's, if there is one
    /// that does not (Linux: `retarget_shared_pending`). One that blocks it meanwhile chooses again in its turn.
    fn choose_again(&self, blocked: SigSet) {
        let shared = self.group().signals.lock().pending.set().intersection(blocked);
        if shared.is_empty() {
            return;
        }
        for thread in self.kernel().tasks.threads(self.group().pid) {
            if !Arc::ptr_eq(&thread, &self.task) && shared.intersects(thread.blocked().complement()) {
                thread.kick();
            }
        }
    }

    fn default_action(&mut self, info: &Siginfo) {
        let signal = info.signo;
        let unkillable = self.group().unkillable.load(Ordering::Relaxed);
        match signal.default_action() {
            DefaultAction::Ignore => {}
            DefaultAction::Stop => {
                let orphaned = || {
                    let tasks = self.kernel().tasks.lock();
                    let own = tasks.groups.get(&self.group().pid).map_or(0, |own| own.pgid);
                    let orphaned = tasks.is_orphaned(own, None);
                    drop(tasks);
                    orphaned && !self.kernel().is_job_outside(own)
                };
                if !unkillable && (signal == Signal::STOP || !orphaned()) {
                    self.begin_stop(signal);
                }
            }
            DefaultAction::Terminate | DefaultAction::Core => {
                if unkillable && !is_own_fault(info) {
                    return;
                }
                if signal.default_action() == DefaultAction::Core && self.dump_core(info) {
                    return;
                }
                self.exit_group_unless_execing(GroupExit::Signal { signal, core: false });
            }
        }
    }

    /// Stops the group: each of its threads takes part before it goes on.
    fn begin_stop(&mut self, signal: Signal) {
        {
            let mut state = self.group().signals.lock();
            if state.exit.is_some() || state.stop != StopState::Running {
                return;
            }
            // SIGCONT came since the signal was taken, whatever became of it: it has cancelled the stop.
            if state.continuations != self.continuations_seen.get() {
                return;
            }
            state.stop = StopState::Stopping { signal, stopped: 0 };
        }
        for thread in self.kernel().tasks.threads(self.group().pid) {
            thread.kick();
        }
    }

    /// Waits out a stop of the group. The last thread to stop tells the parent, the first to go on likewise.
    fn take_part_in_stop(&mut self) {
        let threads = self.kernel().tasks.threads(self.group().pid).len();
        let stopped_by = {
            let mut state = self.group().signals.lock();
            match state.stop {
                StopState::Running => return,
                StopState::Stopped { .. } => None,
                StopState::Stopping { signal, stopped } if stopped + 1 >= threads => {
                    state.stop = StopState::Stopped { signal };
                    state.stop_report = Some(signal);
                    state.continue_report = false;
                    Some(signal)
                }
                StopState::Stopping { signal, stopped } => {
                    state.stop = StopState::Stopping { signal, stopped: stopped + 1 };
                    None
                }
            }
        };
        let pid = self.group().pid;
        self.trace_stop();
        if let Some(signal) = stopped_by {
            self.group().events.wake(0);
            self.kernel().tasks.lock().report_to_parent(pid, ChldCode::STOPPED, signal.0);
            self.kernel().group_stopped(pid, signal);
        }
        let group = self.group().clone();
        let tid = self.tid();
        // Only a kill or SIGCONT ends it; both are seen in the state.
        let _ = self.waiter.wait_killable(&[&group.resume], None, || {
            let state = group.signals.lock();
            (state.stop == StopState::Running || state.ends(tid)).then_some(())
        });
        let continued = {
            let mut state = self.group().signals.lock();
            std::mem::take(&mut state.continue_notify)
        };
        if continued {
            self.kernel().tasks.lock().report_to_parent(pid, ChldCode::CONTINUED, Signal::CONT.0);
        }
    }

    /// Pushes the frame for a handler; a stack that cannot take it ends the group by SIGSEGV.
    fn run_handler(&mut self, action: &Sigaction, info: &Siginfo) {
        self.resolve_interrupted_call(Some(action.flags.contains(SaFlags::RESTART)));
        let mask = self.saved_mask.take().unwrap_or_else(|| self.task.blocked());
        if self.push_frame(action, info, mask).is_err() {
            self.force_fatal_segv(info.signo);
            return;
        }
        if action.flags.contains(SaFlags::RESETHAND) {
            self.handlers.set(info.signo, Sigaction { handler: Sigaction::DFL, ..*action });
        }
        let mut blocked = self.task.blocked().union(action.mask);
        if !action.flags.contains(SaFlags::NODEFER) {
            blocked.insert(info.signo);
        }
        self.set_blocked(blocked);
    }

    /// Linux: `signal_setup_done` after a frame that could not be written: SIGSEGV, which kills if it was SIGSEGV's
    /// own frame.
    fn force_fatal_segv(&mut self, failed: Signal) {
        if failed == Signal::SEGV {
            self.handlers.set(Signal::SEGV, Sigaction::default());
        }
        self.force_signal(Siginfo::kill(Signal::SEGV, abi::SiCode::KERNEL, 0, 0));
    }

    /// Sends the task a signal that its own instruction raised: one that is blocked or ignored kills.
    pub(crate) fn force_signal(&mut self, info: Siginfo) {
        let signal = info.signo;
        let blocked = self.task.blocked().contains(signal);
        let action = self.handlers.get(signal);
        if blocked || action.handler == Sigaction::IGN {
            self.handlers.set(signal, Sigaction::default());
            let mut mask = self.task.blocked();
            mask.remove(signal);
            self.task.set_blocked(mask);
        }
        let sent = {
            let tasks = self.kernel().tasks.lock();
            send(self.group(), tasks.threads(self.pid()), Target::Thread(&self.task), info)
        };
        // A full queue only loses the information, not the signal.
        if sent.is_err() {
            self.task.pending.lock().add_bare(signal);
        }
        self.task.kick();
    }

    /// Sends SIGPIPE, SIGXFSZ and their like to the calling thread.
    pub(crate) fn send_to_self(&self, signal: Signal) {
        // Linux: `send_sig` without privilege: as if it had sent it itself.
        let info = Siginfo::kill(signal, abi::SiCode::USER, self.pid(), self.cred.uid);
        let tasks = self.kernel().tasks.lock();
        let threads = tasks.threads(self.pid());
        let _: Result<(), Errno> = send(self.group(), threads, Target::Thread(&self.task), info);
    }
}

fn is_own_fault(info: &Siginfo) -> bool {
    SigSet::SYNCHRONOUS.contains(info.signo) && info.code > 0 && info.code != abi::SiCode::KERNEL.0
}
