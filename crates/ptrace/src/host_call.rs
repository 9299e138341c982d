//! Host calls in a guest's host thread.
//!
//! Its registers are set to an entry of the stub, and it goes on natively until the `int3` behind. One call
//! travels in registers; several, or one that needs a descriptor, as records on the slot's request page,
//! which the guest has mapped read-only and only the kernel can write. Descriptors are sent to the control
//! socket first, received by the stub into the numbers from [`FIRST_PASSED_FD`] on (it has no others, so
//! these are known), and closed by it when the batch ends, whatever happened.

use std::os::fd::{BorrowedFd, OwnedFd};

use abi::{Errno, PAGE_SIZE, UserAddr};
use guest_process::{Encoded, LONGEST_ARRAY, RawCall, answer, blocks, encode, guest_range, in_batches};
use platform::{Event, ExitStatus, HostCall, HostCallError, HostCallFailure, Registers};

use crate::context::{KICK, Tracee, errno, restarts};
use crate::stop::Stop;
use crate::stub::{Entry, FIRST_PASSED_FD};
use crate::sys::{self, Resume};

/// Calls in one batch: what fits on the request page, with room for a futex timeout.
const BATCH: usize = 60;
const RECORD: usize = 64;
/// Where a futex timeout lies on the request page.
const TIMEOUT: u64 = PAGE_SIZE - 64;
/// Where the array of a call that goes alone lies on it.
const ARRAY: u64 = RECORD as u64;
const _: () = assert!(ARRAY as usize + LONGEST_ARRAY <= TIMEOUT as usize);

/// Why the stub did not come to its end.
pub(crate) enum Cut {
    Died(ExitStatus),
    /// A kick ended a call that may block.
    Kicked,
    /// The stub's access to guest memory faulted.
    Fault,
    /// What it needs could not be sent.
    Failed(Errno),
}

impl Tracee {
    /// Lets the thread run natively from an entry of the stub to its end, with these registers. `blocks`:
    /// a kick may cut it off; else it comes back soon, or its process is killed.
    pub(crate) fn run_stub(&mut self, entry: Entry, regs: Registers, blocks: bool) -> Result<Registers, Cut> {
        if self.is_dead() {
            return Err(Cut::Died(self.died()));
        }
        if blocks && std::mem::take(&mut self.kick_owed) {
            self.kick.reported();
            return Err(Cut::Kicked);
        }
        self.borrow_thread();
        let regs = in_stub(regs, entry.start);
        if sys::set_registers(self.tid, &regs).is_err() {
            return Err(Cut::Died(self.finish()));
        }
        loop {
            let stop = if blocks { self.resume(Resume::Native) } else { self.resume_soon(Resume::Native) };
            match stop {
                Stop::Signal(libc::SIGTRAP) => match sys::registers(self.tid) {
                    Ok(regs) if regs.rip == entry.done => return Ok(regs),
                    Ok(_) => return Err(Cut::Died(self.escaped())),
                    Err(_) => return Err(Cut::Died(self.died())),
                },
                Stop::Signal(KICK) => {
                    if blocks && self.cut_off(entry) {
                        self.kick.reported();
                        return Err(Cut::Kicked);
                    }
                    self.kick_owed = true;
                }
                Stop::Signal(libc::SIGSEGV | libc::SIGBUS) => {
                    if matches!(sys::signal_info(self.tid), Ok((_, code, _)) if code > 0) {
                        return Err(Cut::Fault);
                    }
                }
                Stop::Signal(_) | Stop::Event => {}
                Stop::Syscall | Stop::Escaped => return Err(Cut::Died(self.escaped())),
                Stop::Dead => return Err(Cut::Died(self.died())),
            }
        }
    }

    /// Whether a kick found the single call of `entry` not yet made or cut off, rather than done.
    fn cut_off(&self, entry: Entry) -> bool {
        match sys::registers(self.tid) {
            Ok(regs) => regs.rip == entry.start || restarts(regs.rax) || regs.rax == Errno::EINTR.as_result(),
            Err(_) => false,
        }
    }

    /// One host call of any kind: the platform's own, for set-up and for ending threads.
    pub(crate) fn raw_call(&mut self, call: RawCall, blocks: bool) -> Result<u64, Cut> {
        let [rdi, rsi, rdx, r10, r8, r9] = call.args;
        let regs = Registers { rax: call.number, rdi, rsi, rdx, r10, r8, r9, ..self.borrow_thread() };
        let entry = self.shared.layout.call();
        self.counters.add(Event::HostCall, 1);
        self.run_stub(entry, regs, blocks).map(|regs| regs.rax)
    }

    pub(crate) fn make_host_calls(&mut self, calls: &[HostCall<'_>]) -> Result<u64, HostCallFailure> {
        in_batches(calls, BATCH, |batch| self.make_batch(batch))
    }

    fn make_batch(&mut self, calls: &[HostCall<'_>]) -> Result<u64, HostCallFailure> {
        let fail = |index, error| HostCallFailure { index, error };
        let mut raw = Vec::with_capacity(calls.len());
        let mut files: Vec<BorrowedFd<'_>> = Vec::new();
        for (index, call) in calls.iter().enumerate() {
            match encode(call, &mut files).and_then(|encoded| self.place(encoded)) {
                Ok(call) => raw.push(call),
                Err(error) => {
                    // Those before it are done, as the host would.
                    if index > 0 {
                        self.make_batch(calls.get(..index).unwrap_or(&[]))?;
                    }
                    return Err(fail(index, HostCallError::Failed(error)));
                }
            }
        }
        if let ([call], [only]) = (raw.as_slice(), calls)
            && files.is_empty()
        {
            return self
                .raw_call(*call, blocks(only))
                .map_err(|cut| fail(0, cut.into()))
                .and_then(|result| answer(result).map_err(|error| fail(0, HostCallError::Failed(error))));
        }
        self.run_records(&raw, &files).map_err(|(index, error)| fail(index, error))
    }

    /// Puts into the request page and into the call what it lacks.
    fn place(&mut self, encoded: Encoded<'_>) -> Result<RawCall, Errno> {
        let mut call = encoded.call;
        if encoded.takes_file {
            call.args[4] += u64::from(FIRST_PASSED_FD);
        }
        if let Some(timeout) = encoded.timeout {
            let at = self.shared.layout.request(self.slot) + TIMEOUT;
            self.write_ours(at, &timeout).map_err(errno)?;
            call.args[3] = at;
        }
        if !encoded.array.is_empty() {
            let at = self.shared.layout.request(self.slot) + ARRAY;
            self.write_ours(at, encoded.array).map_err(errno)?;
            call.args[0] = at;
        }
        Ok(call)
    }

    fn run_records(
        &mut self,
        calls: &[RawCall],
        files: &[BorrowedFd<'_>],
    ) -> Result<u64, (usize, HostCallError)> {
        let layout = self.shared.layout;
        let first = layout.request(self.slot);
        let mut bytes = Vec::with_capacity(calls.len() * RECORD);
        for call in calls {
            bytes.extend_from_slice(&call.number.to_ne_bytes());
            for word in call.args.into_iter().chain([0]) {
                bytes.extend_from_slice(&word.to_ne_bytes());
            }
        }
        let past = first + bytes.len() as u64;
        let failed = |error| (0, HostCallError::Failed(errno(error)));
        self.write_ours(first, &bytes).map_err(failed)?;
        let regs = Registers {
            rbx: first,
            rbp: past,
            r12: u64::from(!files.is_empty()),
            r13: layout.scratch(self.slot),
            ..self.borrow_thread()
        };
        self.counters.add(Event::HostCall, calls.len() as u64);
        let process = std::sync::Arc::clone(&self.process);
        let control = (!files.is_empty()).then(|| process.control.lock());
        if let Some(control) = &control {
            self.send(control, files).map_err(|cut| (0, cut.into()))?;
        }
        let regs = self.run_stub(layout.batch(), regs, false).map_err(|cut| (0, cut.into()))?;
        drop(control);
        match answer(regs.r14) {
            Ok(result) => Ok(result),
            Err(error) => {
                let index = (regs.rbx.saturating_sub(first) / RECORD as u64) as usize;
                Err((index.min(calls.len().saturating_sub(1)), HostCallError::Failed(error)))
            }
        }
    }

    /// Sends descriptors to the guest process, for the stub to receive. Never blocks: the queue is empty
    /// between host calls. It fails if the process is dying, whose end of the socket is closed.
    pub(crate) fn send(&mut self, control: &OwnedFd, files: &[BorrowedFd<'_>]) -> Result<(), Cut> {
        match guest_process::send(control, files) {
            Ok(()) => Ok(()),
            Err(rustix::io::Errno::PIPE | rustix::io::Errno::CONNRESET) => Err(Cut::Died(self.finish())),
            // ETOOMANYREFS: more descriptors in flight than this user may have.
            Err(error) => Err(Cut::Failed(errno(error.into()))),
        }
    }

    pub(crate) fn exchange(&mut self, at: UserAddr, old: u32, new: u32) -> Result<u32, Errno> {
        if !guest_range(at, 4) || !at.0.is_multiple_of(4) {
            return Err(Errno::EFAULT);
        }
        let regs = Registers { rax: u64::from(old), rsi: u64::from(new), rdi: at.0, ..self.borrow_thread() };
        let entry = self.shared.layout.exchange();
        match self.run_stub(entry, regs, false) {
            Ok(regs) => Ok(regs.rax as u32),
            Err(_) => Err(Errno::EFAULT),
        }
    }
}

/// These registers for running the stub's text at `rip`: whatever the guest had made of the rest.
pub(crate) fn in_stub(regs: Registers, rip: u64) -> Registers {
    Registers {
        rip,
        // No call of the host's to restart.
        orig_rax: u64::MAX,
        cs: Registers::USER_CS,
        ss: Registers::USER_SS,
        rflags: 0x202,
        ..regs
    }
}

impl From<Cut> for HostCallError {
    fn from(cut: Cut) -> HostCallError {
        match cut {
            Cut::Died(_) => HostCallError::Died,
            Cut::Kicked => HostCallError::Interrupted,
            Cut::Fault => HostCallError::Failed(Errno::EFAULT),
            Cut::Failed(error) => HostCallError::Failed(error),
        }
    }
}
