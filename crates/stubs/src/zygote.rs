//! The zygote: the first guest process, in which no guest code ever runs. Every fresh guest process is a fork of it.
//!
//! Any kernel thread may have it fork: the one that needs a process does so itself, since to wake a thread for that costs
//! as much as the fork. Its parent is the spawner's thread, and so is its children's (`CLONE_PARENT`).
//!
//! Once the kernel has confined itself it can execute the stub no more, so one fork more waits to take its place when somebody
//! outside kills it.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use platform::{AddressSpace, ExitStatus, NewProcess, PlatformError, Registers};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::calls::with_files;
use crate::channel::{Channel, Channels};
use crate::clone::{Parent, Parked, make_process};
use crate::hand_over::{self, Bell, Waited};
use crate::layout::*;
use crate::reaper::Watch;
use crate::shared::Shared;
use crate::thread::{Inside, PATIENCE, in_seconds};

/// See the module's head.
pub(crate) struct Zygote {
    itself: Parent,
    /// Its death is told while this lives.
    _watch: Arc<Watch>,
    bell: Arc<Bell>,
    /// The one CPU where it may run.
    at: Option<i32>,
    /// Processes that it has made.
    made: u64,
    heir: Option<Box<Zygote>>,
}

/// How long its death may take.
const DYING: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// The first process of a kernel is waited for; with this one there is time to make an heir as well.
const SECOND: u64 = 2;

impl Zygote {
    /// A process that waits for its first order.
    pub(crate) fn new(shared: &Arc<Shared>, inside: Inside, channel: Arc<Channel>) -> Zygote {
        let bell = Arc::new(Bell::default());
        inside.watch.add(&bell);
        let (shared, process) = (Arc::clone(shared), Arc::clone(&inside.process));
        let tid = process.tgid;
        Zygote {
            itself: Parent { shared, process, tid, channel },
            _watch: inside.watch,
            bell,
            at: None,
            made: 0,
            heir: None,
        }
    }

    /// What takes its place when it is gone.
    pub(crate) fn take_heir(&mut self) -> Option<Zygote> {
        self.heir.take().map(|heir| *heir)
    }

    /// Whether `error` came of its process being gone. One that goes has its socket closed before its death is told.
    pub(crate) fn has_died_by(&self, error: &PlatformError) -> bool {
        const GONE: [i32; 3] = [libc::ESRCH, libc::EPIPE, libc::ECONNRESET];
        let is_silent = error.source.raw_os_error().is_some_and(|errno| GONE.contains(&errno));
        self.bell.is_dead() || is_silent && self.goes()
    }

    /// Waits a while for its death.
    fn goes(&self) -> bool {
        let Some(death) = self.itself.process.death() else { return false };
        poll(&mut [PollFd::from_borrowed_fd(death, PollFlags::IN)], Some(&DYING)) == Ok(1)
    }

    /// A fresh guest process.
    ///
    /// # Errors
    /// What the host gives; `ESRCH` if this one is gone.
    pub(crate) fn fork(&mut self) -> Result<NewProcess, PlatformError> {
        let failed = |source| PlatformError { what: "making a guest process", source };
        self.made += 1;
        let has_heir = self.heir.as_ref().is_some_and(|heir| !heir.bell.is_dead());
        if self.made >= SECOND && !has_heir {
            let (inside, channel) = self.clone_itself().map_err(failed)?;
            self.heir = Some(Box::new(Zygote::new(&self.itself.shared, inside, channel)));
        }
        let (inside, channel) = self.clone_itself().map_err(failed)?;
        let shared = &self.itself.shared;
        channel.write(XSTATE, &shared.state.fresh());
        channel.set(FP, shared.layout.channel(0) + XSTATE);
        let regs = Registers::for_new_image(0, 0);
        Ok(Parked::first(Arc::clone(shared), inside, 0, channel, regs, self.at))
    }

    /// A process like it, which waits for its first order.
    fn clone_itself(&mut self) -> io::Result<(Inside, Arc<Channel>)> {
        let channels = Arc::new(Channels::new(0)?);
        let channel = channels.map(0)?;
        self.itself.shared.guests.placement.bring(self.itself.process.tgid, &mut self.at);
        let Parent { process, channel: words, .. } = &self.itself;
        let order = |files: &[BorrowedFd<'_>]| {
            with_files(process, words, files, || self.order(Order::Fork)).map(|sent| sent.done)
        };
        let inside = make_process(&self.itself, order, &channels, &channel, 0, None)?;
        Ok((inside, channel))
    }

    /// Has it close a descriptor.
    ///
    /// # Errors
    /// `ESRCH` if it is gone.
    pub(crate) fn close(&self, descriptor: u32) -> io::Result<()> {
        self.itself.channel.set32(PASSED, descriptor);
        self.itself.channel.set32(FILES, 1);
        self.order(Order::Close).map_err(|_| rustix::io::Errno::SRCH.into())
    }

    /// Gives an order, and waits until it is carried out.
    fn order(&self, order: Order) -> Result<(), ExitStatus> {
        let Parent { process, channel, .. } = &self.itself;
        channel.set32(ORDER, order as u32);
        hand_over::post(channel);
        let mut limit = Some(in_seconds(PATIENCE));
        loop {
            let seen = self.bell.value();
            if seen & Bell::DEAD != 0 {
                return Err(process.exit_status());
            }
            match hand_over::wait(channel, &self.bell, seen, limit) {
                Waited::Posted if channel.get32(REASON) == reason::DONE => return Ok(()),
                Waited::Bell => {}
                Waited::Posted | Waited::TimedOut => {
                    tracing::warn!("the first guest process does not answer; killed it");
                    process.kill();
                    limit = None;
                }
            }
        }
    }
}
