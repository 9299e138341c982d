//! The zygote: the first guest process, in which no guest code ever runs. Every fresh guest process is a fork of it.
//!
//! Any kernel thread may have it fork: the one that needs a process does so itself, since to wake a thread for that costs
//! as much as the fork. Its parent is the spawner's thread, and so is its children's (`CLONE_PARENT`).

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use guest_process::Process;
use platform::{AddressSpace, ExitStatus, HostCallError, NewProcess, PlatformError, Registers};

use crate::calls::with_files;
use crate::channel::{self, Bell, Channel, Channels, Waited};
use crate::clone::{Parent, Parked, make_process};
use crate::layout::*;
use crate::shared::Shared;
use crate::thread::{Inside, PATIENCE, in_seconds};

/// See the module's head.
pub(crate) struct Zygote {
    shared: Arc<Shared>,
    inside: Inside,
    channel: Arc<Channel>,
    bell: Arc<Bell>,
    /// The one CPU where it may run.
    at: Option<i32>,
}

impl Zygote {
    /// A process that waits for its first order.
    pub(crate) fn new(shared: &Arc<Shared>, inside: Inside, channel: Arc<Channel>) -> Zygote {
        let bell = Arc::new(Bell::default());
        inside.watch.add(&bell);
        Zygote { shared: Arc::clone(shared), inside, channel, bell, at: None }
    }

    /// Whether its process is gone.
    pub(crate) fn is_dead(&self) -> bool {
        self.bell.is_dead()
    }

    /// A fresh guest process.
    ///
    /// # Errors
    /// What the host gives; `ESRCH` if this one is gone.
    pub(crate) fn fork(&mut self) -> Result<NewProcess, PlatformError> {
        let failed = |source| PlatformError { what: "making a guest process", source };
        let channels = Arc::new(Channels::new(0).map_err(failed)?);
        let channel = channels.map(0).map_err(failed)?;
        self.shared.guests.placement.bring(self.inside.process.tgid, &mut self.at);
        let inside = make_process(self, &channels, &channel, 0, None).map_err(failed)?;
        channel.write(XSTATE, &self.shared.state.fresh());
        channel.set(FP, self.shared.layout.channel(0) + XSTATE);
        let regs = Registers::for_new_image(0, 0);
        Ok(Parked::first(Arc::clone(&self.shared), inside, 0, channel, regs, self.at))
    }

    /// Gives an order, and waits until it is carried out.
    fn order(&self, order: Order) -> Result<(), ExitStatus> {
        self.channel.set32(ORDER, order as u32);
        channel::post(&self.channel);
        let mut limit = Some(in_seconds(PATIENCE));
        loop {
            let seen = self.bell.value();
            if seen & Bell::DEAD != 0 {
                return Err(self.inside.process.exit_status());
            }
            match channel::wait(&self.channel, &self.bell, seen, limit) {
                Waited::Posted if self.channel.get32(REASON) == reason::DONE => return Ok(()),
                Waited::Bell => {}
                Waited::Posted | Waited::TimedOut => {
                    tracing::warn!("the first guest process does not answer; killed it");
                    self.inside.process.kill();
                    limit = None;
                }
            }
        }
    }
}

impl Parent for Zygote {
    fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    fn process(&self) -> &Arc<Process> {
        &self.inside.process
    }

    fn channel(&self) -> &Arc<Channel> {
        &self.channel
    }

    fn fork(&mut self, files: &[BorrowedFd<'_>]) -> Result<Result<(), ExitStatus>, HostCallError> {
        let (process, channel) = (Arc::clone(&self.inside.process), Arc::clone(&self.channel));
        with_files(&process, &channel, files, || self.order(Order::Fork)).map(|sent| sent.done)
    }
}
