//! Files that a guest thread was handed: host descriptors of its own process, which `stub/delegate.s` uses.
//!
//! Each thread has a table in its channel, by the guest's numbers, and host descriptors that no other thread knows of. So
//! taking one away is one store to the table, from any thread: a call that has looked before goes on with what it found, as
//! a call does on Linux while another thread closes its number. The host descriptor is closed by its own thread's stub when
//! it is next in the kernel's hands; until then nobody else can have got its number. A thread that takes it away from another
//! one of its process makes it lead to nothing before its own call returns, so that the host's file is closed by then: the
//! number stays the other's ([`Claim`]).

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use abi::Errno;
use parking_lot::Mutex;
use platform::{CallShape, DelegatedFile, DelegatedIo, Delegations, ExitStatus, HostCallError, Place};

use crate::channel::Channel;
use crate::layout::*;
use crate::marshal;
use crate::thread::{Gone, Guest};

/// Bytes of one call at most: no kick ends a call on a regular file, and a thread that does not answer one is killed.
pub(crate) const LONGEST: u64 = 64 << 20;
/// Descriptors that a process's threads hold at most. Its host limit is above that, for what it is handed for mappings.
const MOST: u32 = 160;
/// Descriptors closed by one order.
const BATCH: usize = 32;
/// Host numbers are below this.
const NUMBERS: u32 = 1 << 20;

/// What one thread holds.
pub(crate) struct Handed {
    tgid: i32,
    channel: Arc<Channel>,
    numbers: Arc<Numbers>,
    /// Others can make its descriptors lead to nothing.
    may_be_shut: bool,
    /// How many all threads of the process hold.
    of_process: Arc<AtomicU32>,
    io: Mutex<DelegatedIo>,
}

/// The numbers that it holds.
#[derive(Default)]
struct Numbers {
    state: Mutex<State>,
    /// Some are to be closed.
    leaving: AtomicBool,
}

impl Numbers {
    /// The thread closes these when it is next in the kernel's hands. `leaving`: of its state.
    fn leave(&self, leaving: &mut Vec<u32>, numbers: &[u32]) {
        leaving.extend_from_slice(numbers);
        self.leaving.store(true, Ordering::Release);
    }
}

/// A descriptor that the call which is being served has taken away from another thread.
pub(crate) struct Claim {
    from: Arc<Numbers>,
    /// The host's number.
    number: u32,
}

#[derive(Default)]
struct State {
    /// The guest's numbers and the host's.
    held: Vec<(u32, u32)>,
    /// The host's numbers of what was withdrawn.
    leaving: Vec<u32>,
    /// The thread has ended: its channel may be another's.
    ended: bool,
}

impl Handed {
    /// For a thread that holds nothing, with this channel.
    pub(crate) fn new(
        tgid: i32,
        channel: &Arc<Channel>,
        of_process: &Arc<AtomicU32>,
        may_be_shut: bool,
    ) -> Handed {
        channel.set32(HANDED_COUNT, 0);
        let handed = Handed {
            tgid,
            channel: Arc::clone(channel),
            numbers: Arc::default(),
            may_be_shut,
            of_process: Arc::clone(of_process),
            io: Mutex::default(),
        };
        // A channel that another thread had before keeps that one's counts.
        handed.take_io();
        handed
    }

    fn entry(descriptor: u32) -> u64 {
        HANDED + u64::from(descriptor) * 4
    }

    /// Clears entries. Returns whether the thread itself is left something to close.
    fn take_away(&self, which: impl Fn(u32) -> bool) -> bool {
        let mut state = self.numbers.state.lock();
        let State { held, leaving, ended } = &mut *state;
        if *ended {
            return false;
        }
        let mut taken = Vec::new();
        held.retain(|(descriptor, number)| {
            let goes = which(*descriptor);
            if goes {
                // Seen by whatever the thread begins after it has heard of this: stores are not reordered here.
                self.channel.word(Handed::entry(*descriptor)).store(0, Ordering::SeqCst);
                taken.push(*number);
            }
            !goes
        });
        if taken.is_empty() || self.is_claimed(&taken) {
            return false;
        }
        self.numbers.leave(leaving, &taken);
        true
    }

    /// Leaves them to the guest thread that the calling thread serves, if that is another one of the process.
    fn is_claimed(&self, taken: &[u32]) -> bool {
        let claim = |window: &marshal::Window| {
            if !self.may_be_shut || window.is_of(&self.channel) {
                return false;
            }
            let claims =
                taken.iter().map(|number| Claim { from: Arc::clone(&self.numbers), number: *number });
            window.claims.borrow_mut().extend(claims);
            true
        };
        marshal::here(self.tgid, claim).unwrap_or(false)
    }

    /// Puts an entry into the table.
    fn put(&self, file: &DelegatedFile<'_>, number: u32, shapes: &[CallShape]) {
        if self.channel.get32(HANDED_COUNT) == 0 {
            self.channel.write(HANDED, &[0; (STACK - HANDED) as usize]);
            crate::leaf::enable(&self.channel, Place::Delegated, shapes);
            self.channel.set32(HANDED_COUNT, DelegatedFile::NUMBERS);
        }
        let bit = |set: bool, bit: u32| if set { bit } else { 0 };
        let bits = bit(file.read, MAY_READ)
            | bit(file.write, MAY_WRITE)
            | bit(file.write && file.budget.is_some(), PAID);
        self.numbers.state.lock().held.push((file.descriptor, number));
        self.channel.set32(Handed::entry(file.descriptor), number << HANDED_SHIFT | bits);
    }

    /// Some of those that are to be closed, and whether there are more.
    fn take_leaving(&self) -> (Vec<u32>, bool) {
        let mut state = self.numbers.state.lock();
        let keep = state.leaving.len().saturating_sub(BATCH);
        let batch = state.leaving.split_off(keep);
        self.numbers.leaving.store(keep > 0, Ordering::Relaxed);
        self.of_process.fetch_sub(batch.len() as u32, Ordering::Relaxed);
        (batch, keep > 0)
    }
}

impl Delegations for Handed {
    fn withdraw(&self, descriptor: u32) -> bool {
        self.take_away(|held| held == descriptor)
    }

    fn withdraw_all(&self) -> bool {
        self.take_away(|_| true)
    }

    fn holds(&self, descriptor: u32) -> bool {
        self.numbers.state.lock().held.iter().any(|(held, _)| *held == descriptor)
    }

    fn take_io(&self) -> DelegatedIo {
        const READS: [libc::c_long; 4] =
            [libc::SYS_read, libc::SYS_pread64, libc::SYS_readv, libc::SYS_preadv];
        const WRITES: [libc::c_long; 4] =
            [libc::SYS_write, libc::SYS_pwrite64, libc::SYS_writev, libc::SYS_pwritev];
        let now = DelegatedIo {
            read_calls: crate::leaf::served(&self.channel, &READS),
            read_chars: self.channel.get(READ_CHARS),
            write_calls: crate::leaf::served(&self.channel, &WRITES),
            written_chars: self.channel.get(WRITTEN_CHARS),
        };
        let before = std::mem::replace(&mut *self.io.lock(), now);
        DelegatedIo {
            read_calls: now.read_calls.wrapping_sub(before.read_calls),
            read_chars: now.read_chars.wrapping_sub(before.read_chars),
            write_calls: now.write_calls.wrapping_sub(before.write_calls),
            written_chars: now.written_chars.wrapping_sub(before.written_chars),
        }
    }
}

impl Guest {
    pub(crate) fn hand(&mut self, file: &DelegatedFile<'_>) -> Result<(), HostCallError> {
        if file.descriptor >= DelegatedFile::NUMBERS {
            return Err(HostCallError::Failed(Errno::EBADF));
        }
        if let Some(budget) = file.budget {
            self.channel.set(BUDGET, budget);
        }
        if self.handed.holds(file.descriptor) {
            return Ok(());
        }
        if self.handed.of_process.load(Ordering::Relaxed) >= MOST {
            return Err(HostCallError::Failed(Errno::EMFILE));
        }
        self.channel.set32(PASSED, 0);
        self.with_files(&[file.file], |guest| guest.done(Order::Keep))?.map_err(|_| HostCallError::Died)?;
        // The guest's word: it names no more than a descriptor of its own process.
        let number = self.channel.get32(PASSED);
        if guest_process::answer(self.channel.get(RESULT)).is_err() || !(1..NUMBERS).contains(&number) {
            return Err(HostCallError::Failed(Errno::EMFILE));
        }
        self.handed.of_process.fetch_add(1, Ordering::Relaxed);
        self.handed.put(file, number, &self.shared.shapes);
        Ok(())
    }

    /// The order by which the guest goes on, with what is to be closed closed on the way.
    pub(crate) fn closing(&mut self, order: Order) -> Result<Order, Gone> {
        self.shut_claimed().map_err(Gone::Died)?;
        if !self.handed.numbers.leaving.load(Ordering::Acquire) {
            return Ok(order);
        }
        loop {
            let (batch, more) = self.handed.take_leaving();
            self.put_numbers(&batch);
            if !more {
                break;
            }
            self.done(Order::Close).map_err(Gone::Died)?;
        }
        Ok(if order == Order::ResumeCall { Order::CloseResumeCall } else { Order::CloseResumeFull })
    }

    /// Closes all; the thread ends.
    pub(crate) fn close_handed(&mut self) {
        if self.shut_claimed().is_err() {
            return;
        }
        self.handed.withdraw_all();
        self.handed.numbers.state.lock().ended = true;
        while self.handed.numbers.leaving.load(Ordering::Acquire) {
            let (batch, _) = self.handed.take_leaving();
            self.put_numbers(&batch);
            if self.done(Order::Close).is_err() {
                return;
            }
        }
    }

    /// Makes what the call has taken away from other threads lead to nothing, and gives them the numbers back to close.
    fn shut_claimed(&mut self) -> Result<(), ExitStatus> {
        let claims = self.window.claims.take();
        if claims.is_empty() {
            return Ok(());
        }
        let shared = Arc::clone(&self.shared);
        for batch in claims.chunks(BATCH) {
            for (place, claim) in (RECORDS..).step_by(4).zip(batch) {
                self.channel.set32(place, claim.number);
            }
            self.channel.set32(CALLS, batch.len() as u32);
            // If none is received after all: the control socket, which the filter refuses.
            self.channel.set32(PASSED, 0);
            let Some(nothing) = &shared.nothing else { break };
            match self.with_files(&[nothing.as_fd()], |guest| guest.done(Order::Shut)) {
                Ok(done) => done?,
                Err(HostCallError::Died) => return Err(self.died()),
                // They are closed when their threads come by.
                Err(_) => {}
            }
        }
        for Claim { from, number } in claims {
            let mut theirs = from.state.lock();
            if !theirs.ended {
                from.leave(&mut theirs.leaving, &[number]);
                continue;
            }
            drop(theirs);
            // Nobody uses it any more.
            let own = &self.handed.numbers;
            own.leave(&mut own.state.lock().leaving, &[number]);
        }
        Ok(())
    }

    /// Where received descriptors lie.
    fn put_numbers(&self, numbers: &[u32]) {
        for (place, number) in (PASSED..).step_by(4).zip(numbers) {
            self.channel.set32(place, *number);
        }
        self.channel.set32(FILES, numbers.len() as u32);
    }
}
