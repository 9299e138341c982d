//! Host calls in a guest's host thread: records in its channel, carried out by the stub as one order.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use abi::{Errno, UserAddr};
use guest_process::{Encoded, Process, answer, blocks, encode, guest_range, in_batches};
use platform::{HostCall, HostCallError, HostCallFailure};

use crate::channel::Channel;
use crate::layout::*;
use crate::thread::{Gone, Guest};

/// The index of `futex_waitv`, which only ever blocks: behind the stub's table.
pub(crate) const WAITV: u64 = 7;

/// The stub's table of calls.
fn index(number: u64) -> Option<u64> {
    let numbers = [
        libc::SYS_mmap,
        libc::SYS_munmap,
        libc::SYS_mprotect,
        libc::SYS_mremap,
        libc::SYS_madvise,
        libc::SYS_futex,
        libc::SYS_membarrier,
        libc::SYS_futex_waitv,
    ];
    (0u64..).zip(numbers).find(|(_, known)| known.cast_unsigned() == number).map(|(index, _)| index)
}

impl Guest {
    pub(crate) fn make_host_calls(&mut self, calls: &[HostCall<'_>]) -> Result<u64, HostCallFailure> {
        in_batches(calls, RECORD_COUNT, |batch| self.make_batch(batch))
    }

    fn make_batch(&mut self, calls: &[HostCall<'_>]) -> Result<u64, HostCallFailure> {
        let fail = |index, error| HostCallFailure { index, error };
        let mut files: Vec<BorrowedFd<'_>> = Vec::new();
        for (index, call) in calls.iter().enumerate() {
            match encode(call, &mut files) {
                Ok(encoded) if self.write_record(index as u64, &encoded) => {}
                refused => {
                    let error = refused.err().unwrap_or(Errno::ENOSYS);
                    // Those before it are done, as the host would.
                    if index > 0 {
                        self.make_batch(calls.get(..index).unwrap_or(&[]))?;
                    }
                    return Err(fail(index, HostCallError::Failed(error)));
                }
            }
        }
        let died = |_| fail(0, HostCallError::Died);
        if let [only] = calls
            && blocks(only)
        {
            match self.block() {
                Ok(()) => {}
                Err(Gone::Died(_)) => return Err(fail(0, HostCallError::Died)),
                Err(Gone::Kicked) => return Err(fail(0, HostCallError::Interrupted)),
            }
        } else {
            self.channel.set32(CALLS, u32::try_from(calls.len()).unwrap_or(0));
            self.with_files(&files, |guest| guest.done(Order::Calls))
                .map_err(|error| fail(0, error))?
                .map_err(died)?;
        }
        match answer(self.channel.get(RESULT)) {
            Ok(result) => Ok(result),
            Err(error) => {
                let index = (self.channel.get(FAILED) / RECORD) as usize;
                let index = if calls.len() == 1 { 0 } else { index.min(calls.len().saturating_sub(1)) };
                Err(fail(index, HostCallError::Failed(error)))
            }
        }
    }

    /// `false`: the stub has no such call.
    fn write_record(&mut self, index: u64, encoded: &Encoded<'_>) -> bool {
        let at = RECORDS + index * RECORD;
        let mut call = encoded.call;
        // Which received descriptor takes the place of the fifth argument.
        let file = if encoded.takes_file { call.args[4] + 1 } else { 0 };
        if let Some(timeout) = encoded.timeout {
            self.channel.write(TIMEOUT, &timeout);
            call.args[3] = self.channel_address() + TIMEOUT;
        }
        if !encoded.array.is_empty() {
            self.channel.write(WINDOW, encoded.array);
            call.args[0] = self.channel_address() + WINDOW;
        }
        let Some(which) = crate::calls::index(call.number) else { return false };
        self.channel.set(at, which);
        for (place, word) in (at + 8..).step_by(8).zip(call.args.into_iter().chain([file])) {
            self.channel.set(place, word);
        }
        true
    }

    /// Sends descriptors with an order.
    pub(crate) fn with_files<T>(
        &mut self,
        files: &[BorrowedFd<'_>],
        order: impl FnOnce(&mut Guest) -> T,
    ) -> Result<T, HostCallError> {
        let (process, channel) = (Arc::clone(&self.inside.process), Arc::clone(&self.channel));
        let sent = with_files(&process, &channel, files, || order(self))?;
        // One that says it is done without having received them would have ever more in flight, of which the host
        // allows the whole user so many (unix(7): ETOOMANYREFS).
        if sent.is_left && !self.is_dead() {
            self.escaped();
            return Err(HostCallError::Died);
        }
        Ok(sent.done)
    }

    pub(crate) fn exchange(&mut self, at: UserAddr, old: u32, new: u32) -> Result<u32, Errno> {
        if !guest_range(at, 4) || !at.0.is_multiple_of(4) {
            return Err(Errno::EFAULT);
        }
        self.channel.set(ARGS, at.0);
        self.channel.set(ARGS + 8, old.into());
        self.channel.set(ARGS + 16, new.into());
        self.done(Order::Exchange).map_err(|_| Errno::EFAULT)?;
        if self.channel.get(FAILED) != 0 { Err(Errno::EFAULT) } else { Ok(self.channel.get(RESULT) as u32) }
    }
}

/// What came of an order with descriptors.
pub(crate) struct Sent<T> {
    pub(crate) done: T,
    /// They have not been received.
    pub(crate) is_left: bool,
}

/// Sends descriptors with an order. The socket is the process's: held until they are received.
pub(crate) fn with_files<T>(
    process: &Process,
    channel: &Channel,
    files: &[BorrowedFd<'_>],
    order: impl FnOnce() -> T,
) -> Result<Sent<T>, HostCallError> {
    channel.set32(FILES, u32::try_from(files.len()).unwrap_or(0));
    if files.is_empty() {
        return Ok(Sent { done: order(), is_left: false });
    }
    let control = process.control.lock();
    match guest_process::send(&control, files) {
        Ok(()) => {
            let done = order();
            Ok(Sent { done, is_left: host::descriptors::is_unreceived(control.as_fd()).unwrap_or(true) })
        }
        Err(rustix::io::Errno::PIPE | rustix::io::Errno::CONNRESET) => Err(HostCallError::Died),
        Err(error) => Err(HostCallError::Failed(Errno::from_raw(error.raw_os_error()))),
    }
}
