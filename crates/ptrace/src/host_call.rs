//! Host calls in a guest's host thread.
//!
//! Its registers are set to an entry of the stub, and it goes on natively until the `int3` behind. One call
//! travels in registers; several, or one that needs a descriptor, as records on the slot's request page,
//! which the guest has mapped read-only and only the kernel can write. Descriptors are sent to the control
//! socket first, received by the stub into the numbers from [`FIRST_PASSED_FD`] on (it has no others, so
//! these are known), and closed by it when the batch ends, whatever happened.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use abi::{Errno, GUEST_TOP, PAGE_SIZE, UserAddr};
use platform::{ExitStatus, FutexCall, HostCall, HostCallError, HostCallFailure, Registers};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

use crate::context::{KICK, Tracee, errno, restarts};
use crate::process::guest_range;
use crate::stop::Stop;
use crate::stub::{Entry, FIRST_PASSED_FD};
use crate::sys::{self, Resume};

/// Calls in one batch: what fits on the request page, with room for a futex timeout.
const BATCH: usize = 60;
/// Descriptors in one batch: what fits into the slot's scratch area.
const PASSED: usize = 32;
const RECORD: usize = 64;
/// Where a futex timeout lies on the request page.
const TIMEOUT: u64 = PAGE_SIZE - 64;

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

/// A host call in registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RawCall {
    pub(crate) number: u64,
    pub(crate) args: [u64; 6],
}

impl RawCall {
    pub(crate) fn new(number: libc::c_long, args: [u64; 6]) -> RawCall {
        RawCall { number: number.cast_unsigned(), args }
    }
}

impl Tracee {
    /// Lets the thread run natively from an entry of the stub to its end, with these registers. `blocks`:
    /// a kick may cut it off.
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
            match self.resume(Resume::Native) {
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
        let entry = self.process.shared.layout.call();
        self.run_stub(entry, regs, blocks).map(|regs| regs.rax)
    }

    pub(crate) fn make_host_calls(&mut self, calls: &[HostCall<'_>]) -> Result<u64, HostCallFailure> {
        let mut result = 0;
        let mut done = 0usize;
        while let Some(rest) = calls.get(done..).filter(|rest| !rest.is_empty()) {
            let count = batch_len(rest);
            let batch = rest.get(..count).unwrap_or(rest);
            result = self
                .make_batch(batch)
                .map_err(|failure| HostCallFailure { index: failure.index + done, ..failure })?;
            done += count;
        }
        Ok(result)
    }

    fn make_batch(&mut self, calls: &[HostCall<'_>]) -> Result<u64, HostCallFailure> {
        let fail = |index, error| HostCallFailure { index, error };
        let mut raw = Vec::with_capacity(calls.len());
        let mut files: Vec<BorrowedFd<'_>> = Vec::new();
        for (index, call) in calls.iter().enumerate() {
            match self.encode(call, &mut files) {
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

    fn run_records(
        &mut self,
        calls: &[RawCall],
        files: &[BorrowedFd<'_>],
    ) -> Result<u64, (usize, HostCallError)> {
        let layout = self.process.shared.layout;
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
        self.process.write_ours(self.tid, first, &bytes).map_err(failed)?;
        let regs = Registers {
            rbx: first,
            rbp: past,
            r12: u64::from(!files.is_empty()),
            r13: layout.scratch(self.slot),
            ..self.borrow_thread()
        };
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
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(PASSED))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(files));
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        match rustix::net::sendmsg(control, &[IoSlice::new(&[0])], &mut ancillary, flags) {
            Ok(_) => Ok(()),
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
        let entry = self.process.shared.layout.exchange();
        match self.run_stub(entry, regs, false) {
            Ok(regs) => Ok(regs.rax as u32),
            Err(_) => Err(Errno::EFAULT),
        }
    }

    /// A call of the closed list as the host wants it; what the list does not allow is `EINVAL`.
    fn encode<'a>(&mut self, call: &HostCall<'a>, files: &mut Vec<BorrowedFd<'a>>) -> Result<RawCall, Errno> {
        let range = |addr: UserAddr, len: u64| {
            if guest_range(addr, len) { Ok(addr.0) } else { Err(Errno::EINVAL) }
        };
        Ok(match *call {
            HostCall::Map { addr, len, prot, flags, file } => {
                range(addr, len)?;
                check_map_flags(flags)?;
                let (fd, offset) = match file {
                    Some(file) => {
                        files.push(file.fd);
                        (u64::from(FIRST_PASSED_FD) + files.len() as u64 - 1, file.offset)
                    }
                    None if flags & libc::MAP_ANONYMOUS.cast_unsigned() != 0 => (u64::MAX, 0),
                    None => return Err(Errno::EBADF),
                };
                let args = [addr.0, len, u64::from(prot), u64::from(flags), fd, offset];
                RawCall::new(libc::SYS_mmap, args)
            }
            HostCall::Unmap { addr, len } => {
                RawCall::new(libc::SYS_munmap, [range(addr, len)?, len, 0, 0, 0, 0])
            }
            HostCall::Protect { addr, len, prot } => {
                RawCall::new(libc::SYS_mprotect, [range(addr, len)?, len, u64::from(prot), 0, 0, 0])
            }
            HostCall::Remap { addr, old_len, new_len, to, keep_old } => {
                range(addr, old_len)?;
                range(to.unwrap_or(addr), new_len)?;
                if old_len == 0 {
                    return Err(Errno::EINVAL);
                }
                let mut flags = 0;
                if to.is_some() {
                    flags |= libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
                }
                if keep_old {
                    flags |= libc::MREMAP_DONTUNMAP;
                }
                let to = to.unwrap_or(UserAddr::NULL).0;
                let args = [addr.0, old_len, new_len, u64::from(flags.cast_unsigned()), to, 0];
                RawCall::new(libc::SYS_mremap, args)
            }
            HostCall::Advise { addr, len, advice } => {
                range(addr, len)?;
                check_advice(advice)?;
                let advice = u64::from(advice.cast_unsigned());
                RawCall::new(libc::SYS_madvise, [addr.0, len, advice, 0, 0, 0])
            }
            HostCall::Futex(futex) => self.encode_futex(&futex)?,
            HostCall::UnmapAll => RawCall::new(libc::SYS_munmap, [0, GUEST_TOP, 0, 0, 0, 0]),
        })
    }

    fn encode_futex(&mut self, call: &FutexCall) -> Result<RawCall, Errno> {
        let uses_second =
            matches!(command(call.op), libc::FUTEX_REQUEUE | libc::FUTEX_CMP_REQUEUE | libc::FUTEX_WAKE_OP);
        if !known_futex(call.op) {
            return Err(Errno::ENOSYS);
        }
        if !guest_range(call.uaddr, 4) || uses_second && !guest_range(call.uaddr2, 4) {
            return Err(Errno::EFAULT);
        }
        let fourth = match call.timeout {
            Some((seconds, nanoseconds)) if !uses_second => {
                let at = self.process.shared.layout.request(self.slot) + TIMEOUT;
                let mut bytes = [0u8; 16];
                let (first, second) = bytes.split_at_mut(8);
                first.copy_from_slice(&seconds.to_ne_bytes());
                second.copy_from_slice(&nanoseconds.to_ne_bytes());
                self.process.write_ours(self.tid, at, &bytes).map_err(errno)?;
                at
            }
            _ if uses_second => u64::from(call.val2),
            _ => 0,
        };
        let second = if uses_second { call.uaddr2.0 } else { 0 };
        let (mut op, mut val3) = (call.op, call.val3);
        if command(op) == libc::FUTEX_WAIT && call.timeout.is_some() {
            // FUTEX_WAIT would take the time as relative.
            op = op & !FUTEX_COMMANDS | libc::FUTEX_WAIT_BITSET.cast_unsigned();
            val3 = u32::MAX;
        }
        let args = [call.uaddr.0, u64::from(op), u64::from(call.val), fourth, second, u64::from(val3)];
        Ok(RawCall::new(libc::SYS_futex, args))
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

/// A host call's result register.
pub(crate) fn answer(result: u64) -> Result<u64, Errno> {
    match i32::try_from(result.cast_signed()) {
        Ok(number @ -4095..=-1) => Err(Errno::from_raw(-number)),
        _ => Ok(result),
    }
}

/// How many of these go in one hand-over: a call that may block goes alone.
fn batch_len(calls: &[HostCall<'_>]) -> usize {
    let mut files = 0;
    for (index, call) in calls.iter().enumerate() {
        files += usize::from(matches!(call, HostCall::Map { file: Some(_), .. }));
        if blocks(call) {
            return index.max(1);
        }
        if index == BATCH || files > PASSED {
            return index;
        }
    }
    calls.len()
}

/// The bits of a futex operation that are not flags (`FUTEX_CMD_MASK`).
const FUTEX_COMMANDS: u32 = !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME).cast_unsigned();

fn command(op: u32) -> i32 {
    (op & FUTEX_COMMANDS).cast_signed()
}

fn known_futex(op: u32) -> bool {
    matches!(
        command(op),
        libc::FUTEX_WAIT
            | libc::FUTEX_WAKE
            | libc::FUTEX_REQUEUE
            | libc::FUTEX_CMP_REQUEUE
            | libc::FUTEX_WAKE_OP
            | libc::FUTEX_WAIT_BITSET
            | libc::FUTEX_WAKE_BITSET
    )
}

/// Whether it may sleep until somebody else acts.
fn blocks(call: &HostCall<'_>) -> bool {
    matches!(call, HostCall::Futex(futex)
        if matches!(command(futex.op), libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET))
}

/// Mappings have a fixed place and take neither huge nor locked pages.
fn check_map_flags(flags: u32) -> Result<(), Errno> {
    let fixed = (libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE).cast_unsigned();
    let known = (libc::MAP_SHARED
        | libc::MAP_PRIVATE
        | libc::MAP_FIXED
        | libc::MAP_FIXED_NOREPLACE
        | libc::MAP_ANONYMOUS
        | libc::MAP_NORESERVE
        | libc::MAP_POPULATE
        | libc::MAP_NONBLOCK
        | libc::MAP_GROWSDOWN
        | libc::MAP_STACK)
        .cast_unsigned();
    if flags & fixed == 0 || flags & !known != 0 { Err(Errno::EINVAL) } else { Ok(()) }
}

/// Advice without effect outside the process: not REMOVE (punches holes into files), HWPOISON,
/// SOFT_OFFLINE, MERGEABLE.
fn check_advice(advice: i32) -> Result<(), Errno> {
    match advice {
        libc::MADV_NORMAL
        | libc::MADV_RANDOM
        | libc::MADV_SEQUENTIAL
        | libc::MADV_WILLNEED
        | libc::MADV_DONTNEED
        | libc::MADV_FREE
        | libc::MADV_COLD
        | libc::MADV_PAGEOUT
        | libc::MADV_DONTFORK
        | libc::MADV_DOFORK
        | libc::MADV_WIPEONFORK
        | libc::MADV_KEEPONFORK
        | libc::MADV_DONTDUMP
        | libc::MADV_DODUMP
        | libc::MADV_HUGEPAGE
        | libc::MADV_NOHUGEPAGE
        | libc::MADV_POPULATE_READ
        | libc::MADV_POPULATE_WRITE => Ok(()),
        _ => Err(Errno::EINVAL),
    }
}
