//! New guest processes and threads: cloned by the stub of one that sleeps, on the kernel's order.
//!
//! A process clones with `CLONE_PARENT`, so every guest process is a child of the kernel. The child has
//! registers only until it has mapped channels of its own; it takes its control socket, arms PDEATHSIG, checks
//! its parent and checks in. No pid told by a guest is used: the check-in carries the credentials that the host
//! stamped on it, and they must be those of an unreaped, unregistered child. Whoever shares memory begins by an
//! `rt_sigreturn` frame that the kernel has put into the new channel: it brings the alternate signal stack with it. A
//! fork's is where its parent's was, so all that the kernel writes for it lies in one page.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use abi::Errno;
use guest_process::{Process, answer, check_in, control_socket, wait_no_longer};
use platform::{
    AddressSpace, Context, ExitStatus, HostCallError, NewContext, NewProcess, PlatformError, Registers,
};

use crate::channel::{Channel, Channels, Lease};
use crate::filter::{CLONE_FORK, CLONE_SHARING, CLONE_THREAD};
use crate::hand_over;
use crate::layout::*;
use crate::shared::Shared;
use crate::stub::Label;
use crate::thread::{Guest, Inside, in_seconds};
use crate::threads::Threads;

/// A thread that has not gone so long after its order to exit takes its process with it.
const EXIT_PATIENCE: i64 = 20;

/// How long a child may take to check in whose parent says that there is none.
const STILLBORN: Duration = Duration::from_secs(1);

/// How often a clone is ordered that something breaks off behind the kernel's consent.
const MOST_TRIES: u32 = 16;

/// A guest thread that waits for its first order.
pub(crate) struct Parked {
    /// Taken by `bind`.
    inside: Option<(Arc<Shared>, Inside)>,
    tid: i32,
    slot: u32,
    channel: Arc<Channel>,
    regs: Registers,
    /// The one CPU where it may run now, if that is known.
    at: Option<i32>,
}

impl Parked {
    /// The first thread of a process.
    pub(crate) fn first(
        shared: Arc<Shared>,
        inside: Inside,
        slot: u32,
        channel: Arc<Channel>,
        regs: Registers,
        at: Option<i32>,
    ) -> NewProcess {
        let space = Arc::clone(&inside.process);
        let tid = inside.process.tgid;
        let thread = Box::new(Parked { inside: Some((shared, inside)), tid, slot, channel, regs, at });
        NewProcess { space, thread }
    }

    fn take(&mut self) -> Option<Guest> {
        let (shared, inside) = self.inside.take()?;
        let channel = Arc::clone(&self.channel);
        Some(Guest::bind(shared, inside, self.tid, self.slot, channel, self.regs, self.at))
    }
}

impl NewContext for Parked {
    fn bind(mut self: Box<Self>) -> Result<Box<dyn Context>, PlatformError> {
        match self.take() {
            Some(guest) => Ok(Box::new(guest)),
            None => Err(error("taking over a guest thread", Errno::ESRCH)),
        }
    }
}

impl Drop for Parked {
    fn drop(&mut self) {
        // A thread that nobody has bound ends here; a process ends with its address space.
        if self.inside.as_ref().is_some_and(|(_, inside)| self.tid != inside.process.tgid) {
            drop(self.take());
        }
    }
}

impl Guest {
    pub(crate) fn clone_process(&mut self, share_memory: bool) -> Result<NewProcess, PlatformError> {
        const WHAT: &str = "making a guest process";
        let failed = |source| PlatformError { what: WHAT, source };
        let (channels, slot) = if share_memory {
            let channels = Arc::clone(&self.inside.channels);
            let slot = channels.slots.take().ok_or(error(WHAT, Errno::EAGAIN))?;
            (channels, slot)
        } else {
            (Arc::new(Channels::new(self.slot).map_err(failed)?), self.slot)
        };
        let channel = channels.map(slot).inspect_err(|_| {
            if share_memory {
                channels.slots.give_back(slot);
            }
        });
        let channel = channel.map_err(failed)?;
        let lease = share_memory.then(|| Lease::new(&channels, slot, &channel));
        let parent = Parent {
            shared: Arc::clone(&self.shared),
            process: Arc::clone(&self.inside.process),
            tid: self.tid,
            channel: Arc::clone(&self.channel),
        };
        let order = |files: &[BorrowedFd<'_>]| {
            self.settle_kicks();
            self.with_files(files, |guest| guest.done(Order::Fork))
        };
        let inside = make_process(&parent, order, &channels, &channel, slot, lease).map_err(failed)?;
        self.copy_state_to(&channel, slot).map_err(failed)?;
        let (shared, regs, at) = (Arc::clone(&self.shared), *self.fetch(), self.at());
        Ok(Parked::first(shared, inside, slot, channel, regs, at))
    }

    pub(crate) fn clone_thread(&mut self) -> Result<Box<dyn NewContext>, PlatformError> {
        const WHAT: &str = "making a guest thread";
        let channels = Arc::clone(&self.inside.channels);
        let slot = channels.slots.take().ok_or(error(WHAT, Errno::EAGAIN))?;
        match self.make_thread(&channels, slot) {
            Ok((tid, channel)) => {
                let (regs, at) = (*self.fetch(), self.at());
                let inside = Some((Arc::clone(&self.shared), self.inside.clone()));
                Ok(Box::new(Parked { inside, tid, slot, channel, regs, at }))
            }
            Err(source) => {
                channels.slots.give_back(slot);
                Err(PlatformError { what: WHAT, source })
            }
        }
    }

    fn make_thread(&mut self, channels: &Channels, slot: u32) -> io::Result<(i32, Arc<Channel>)> {
        let channel = channels.map(slot)?;
        prepare(&self.shared, &channel, slot);
        put_frame(&self.shared, &channel, slot);
        channel.set32(ALIVE, 1);
        self.channel.set(ARGS, u64::from(CLONE_THREAD));
        self.channel.set(ARGS + 16, self.shared.layout.channel(slot));
        let threads = Arc::clone(&self.inside.threads);
        let making = threads.make();
        let tid = self.order_thread(&threads)?;
        drop(making);
        self.copy_state_to(&channel, slot)?;
        Ok((tid, channel))
    }

    /// Has a thread cloned as its channel says; nothing else is.
    fn order_thread(&mut self, threads: &Threads) -> io::Result<i32> {
        let shared = Arc::clone(&self.shared);
        for tries in 1.. {
            self.settle_kicks();
            let permit = shared.consent.permit(self.tid, CLONE_THREAD);
            self.done(Order::Thread).map_err(|_| rustix::io::Errno::SRCH)?;
            let again = permit.is_some_and(|permit| permit.is_asked_again());
            let told = answer(self.channel.get(RESULT));
            let honest = match told.map(i32::try_from) {
                Ok(Ok(tid)) => match self.inside.process.thread(tid) {
                    Ok(tid) if threads.add(tid) => return Ok(tid),
                    Err(error) if error.raw_os_error() != Some(libc::ESRCH) => return Err(error),
                    _ => false,
                },
                Ok(Err(_)) => false,
                Err(errno) => match threads.are_all() {
                    Ok(true) if again && tries < MOST_TRIES => true,
                    Ok(false) => false,
                    // Where that cannot be told, it need not be a lie.
                    _ => return Err(from_errno(errno)),
                },
            };
            if !honest {
                self.escaped();
                return Err(rustix::io::Errno::SRCH.into());
            }
        }
        Err(rustix::io::Errno::AGAIN.into())
    }

    /// A new thread begins with a copy of this one's extended state: what is in the processor the host has copied.
    fn copy_state_to(&mut self, channel: &Channel, slot: u32) -> io::Result<()> {
        if self.channel.get(FP) == 0 {
            return Ok(());
        }
        let image = self.fp_state().map_err(from_errno)?;
        // What a hostile guest has scribbled there the processor may not take: then it is as after a reset.
        let image = if self.shared.state.check(&image).is_ok() { image } else { self.shared.state.fresh() };
        channel.write(XSTATE, &image);
        channel.set(FP, self.shared.layout.channel(slot) + XSTATE);
        Ok(())
    }

    /// Ends the host thread; a leader sleeps on instead, since its process needs it.
    pub(crate) fn end(&mut self) {
        // Its descriptors would stay with the process's other threads.
        if !self.is_dead() && Arc::strong_count(&self.inside.process) > 2 {
            self.close_handed();
        }
        let process = &self.inside.process;
        let leader = self.tid == process.tgid;
        // Two references are this thread's own.
        if self.is_dead() || leader || Arc::strong_count(process) <= 2 {
            if !leader && self.is_dead() {
                self.inside.channels.slots.give_back(self.slot);
            }
            return;
        }
        self.channel.set32(ORDER, Order::Exit as u32);
        hand_over::post(&self.channel);
        if !hand_over::wait_until_clear(&self.channel, &self.bell, in_seconds(EXIT_PATIENCE)) {
            self.inside.process.kill();
        }
        self.inside.threads.end(self.tid, &self.shared.ending);
        self.inside.channels.clear(self.slot);
        self.inside.channels.slots.give_back(self.slot);
    }
}

/// A thread that has processes cloned: a guest's that sleeps, or the zygote's.
pub(crate) struct Parent {
    pub(crate) shared: Arc<Shared>,
    pub(crate) process: Arc<Process>,
    pub(crate) tid: i32,
    pub(crate) channel: Arc<Channel>,
}

/// Has a process cloned whose first thread has `channel`. `lease`: it shares its parent's memory. `order` sends the parent
/// what a child is to be given, and has it clone.
pub(crate) fn make_process(
    parent: &Parent,
    mut order: impl FnMut(&[BorrowedFd<'_>]) -> Result<Result<(), ExitStatus>, HostCallError>,
    channels: &Arc<Channels>,
    channel: &Channel,
    slot: u32,
    lease: Option<Lease>,
) -> io::Result<Inside> {
    let Parent { shared, process, channel: words, .. } = parent;
    let share_memory = lease.is_some();
    prepare(shared, channel, slot);
    if share_memory {
        put_frame(shared, channel, slot);
    }
    let (ours, theirs) = control_socket()?;
    let flags = if share_memory { CLONE_SHARING } else { CLONE_FORK };
    words.set(ARGS, u64::from(flags));
    words.set(ARGS + 8, u64::from(process.parent()));
    words.set(ARGS + 16, shared.layout.channel(slot));
    let both = [theirs.as_fd(), channels.file()];
    let files: &[BorrowedFd<'_>] = if share_memory { &both[..1] } else { &both };
    let (mut birth, mut tries) = (shared.strays.birth(), 1);
    let cloned = loop {
        let permit = shared.consent.permit(parent.tid, flags);
        let cloned = match order(files) {
            Ok(Ok(())) => answer(words.get(RESULT)).map_err(from_errno),
            Ok(Err(_)) => Err(rustix::io::Errno::SRCH.into()),
            Err(HostCallError::Failed(errno)) => Err(from_errno(errno)),
            Err(_) => Err(rustix::io::Errno::SRCH.into()),
        };
        let again = cloned.is_err() && permit.is_some_and(|permit| permit.is_asked_again());
        if !again || tries == MOST_TRIES {
            break cloned;
        }
        drop(birth);
        let are_none = shared.strays.are_none(&shared.guests);
        birth = shared.strays.birth();
        if !are_none {
            break cloned;
        }
        tries += 1;
    };
    drop(theirs);
    // Also if the parent died on the way: a child that it has made by then is ours to end. If there is
    // none, nobody holds the other end of the socket, or a hostile parent does.
    if cloned.is_err() {
        wait_no_longer(&ours, STILLBORN)?;
    }
    #[cfg(feature = "testing")]
    crate::adversary::hurry(&ours)?;
    let checked_in = check_in(&ours);
    // One that died before is known by its parent's word only: enough for reaping what is no guest's.
    let told = || process.sibling(i32::try_from(*cloned.as_ref().ok()?).ok()?);
    let pid = checked_in.as_ref().ok().copied().or_else(told).ok_or(rustix::io::Errno::SRCH)?;
    // Ours, whether it lives still or not; only a pid that is not of a child of ours is an error.
    host::wait::wait(pid, libc::WEXITED | libc::WNOWAIT | libc::WNOHANG)?;
    let (guests, slots) = (Arc::clone(&shared.guests), Arc::clone(&channels.slots));
    let made = Process::register(guests, pid, ours, slots, process.namespace.clone())?;
    drop(birth);
    if let Some(lease) = lease {
        made.keep(lease);
    }
    cloned?;
    checked_in?;
    let made = Arc::new(made);
    let watch = Arc::new(shared.reaper.watch(&made)?);
    Ok(Inside::new(made, Arc::clone(channels), watch))
}

/// What a channel holds before its thread begins.
pub(crate) fn prepare(shared: &Shared, channel: &Channel, slot: u32) {
    let address = shared.layout.channel(slot);
    channel.set(SELF, address);
    channel.set(GS, address);
    channel.set(FEATURES, shared.state.features);
    channel.set32(ARRIVED, 0);
}

fn put_frame(shared: &Shared, channel: &Channel, slot: u32) {
    channel.write(FRAME, &frame(shared, shared.layout.channel(slot)));
}

/// The `ucontext` by whose `rt_sigreturn` a thread begins: at the stub's waiting place, with the channel in
/// r15, no signal blocked, and the channel's end as its alternate signal stack.
fn frame(shared: &Shared, channel: u64) -> Vec<u8> {
    use abi::{SigSet, Sigaltstack, Sigcontext, SsFlags, UcFlags, Ucontext};
    use zerocopy::IntoBytes;
    let context = Ucontext {
        flags: UcFlags::SIGCONTEXT_SS | UcFlags::STRICT_RESTORE_SS,
        link: 0,
        stack: Sigaltstack {
            sp: channel + STACK,
            flags: SsFlags::empty(),
            size: SIZE - STACK,
            ..Sigaltstack::default()
        },
        mcontext: Sigcontext {
            r15: channel,
            rip: shared.layout.at(Label::umlaut_parked),
            rsp: channel + FRAME,
            eflags: 0x202,
            cs: 0x33,
            ss: 0x2b,
            ..Sigcontext::default()
        },
        sigmask: SigSet::default(),
    };
    context.as_bytes().to_vec()
}

fn from_errno(errno: Errno) -> io::Error {
    io::Error::from_raw_os_error(errno.raw())
}

fn error(what: &'static str, errno: Errno) -> PlatformError {
    PlatformError { what, source: from_errno(errno) }
}
