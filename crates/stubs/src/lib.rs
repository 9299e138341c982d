//! The platform `stub`: guest code runs in host processes with code of ours inside, which the host's seccomp
//! hands every system call to, and which asks the kernel through shared memory.
//!
//! Main types: [`Stubs`], which is the [`platform::Platform`]; inside, `Guest` (a context) and `Channel` (what
//! a guest thread and its kernel thread share).
//!
//! Modules: `stub` and `stub/*.s` (our code in guest processes), `layout` (where things lie), `filter` (what the
//! host lets it do), `channel` (shared memory), `hand_over` (posting and waiting), `thread` (the run), `marshal` (memory that goes
//! along), `spin` (two CPUs for a pair), `registers`, `kick`, `calls`, `clone`, `leaf` (what is served without the
//! kernel), `delegate` (files that guests use by themselves), `patch` (call sites made to jump to the stub), `state`
//! (x87, SSE, …), `words` (what both sides change), `spawner` (where the first process comes from), `zygote` (which that is: all others are its forks), `reaper` (their deaths),
//! `consent` (to what they clone), `threads` (which a process has), `strays` (processes that nobody knows), `adversary` (a hostile guest, for tests).
//!
//! Neighbours: on `guest-process`; implements the traits of `platform`; the kernel knows only these.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "x86-64 only: usize is u64; the host's constants are small and positive"
)]

#[cfg(feature = "testing")]
pub mod adversary;
/// The atomics of `protocol`, which its model replaces.
mod atomic {
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
}
mod calls;
mod channel;
mod clone;
mod consent;
mod delegate;
mod filter;
mod hand_over;
mod kick;
mod layout;
mod leaf;
mod marshal;
mod patch;
mod protocol;
mod reaper;
mod registers;
mod shared;
mod spawner;
mod spin;
mod state;
mod strays;
mod stub;
mod thread;
mod threads;
mod words;
mod zygote;

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use guest_process::Spawner;
use parking_lot::Mutex;
use platform::{Capabilities, NewProcess, PatchedProgram, Platform, PlatformError};

pub use filter::{host_call_places, reachable_host_calls};
pub use layout::PLACES;
pub use leaf::LEAVES;
pub use patch::{ExplainedSite, Left, Shape, explain as explain_sites};
pub use shared::{Options, host_lacks};

use crate::patch::Patcher;
use crate::shared::Shared;
use crate::stub::Label;
use crate::zygote::Zygote;

/// The platform.
pub struct Stubs {
    capabilities: Capabilities,
    shared: Arc<Shared>,
    zygote: Mutex<Zygote>,
    /// Guest processes end with it.
    spawner: Spawner<Zygote>,
    patcher: Option<Arc<Patcher>>,
}

impl Stubs {
    /// Starts the platform: a spawner thread with a first guest process, a reaper, a ticker for placement.
    ///
    /// # Errors
    /// What the host lacks or forbids: seccomp, FSGSBASE, futex_waitv, executable memory files.
    pub fn new(options: Options) -> Result<Stubs, PlatformError> {
        // An inherited SIG_IGN would have the host reap guest processes behind our back.
        host::signal::quiet_sigchld()
            .map_err(|source| PlatformError { what: "resetting SIGCHLD", source })?;
        let shared = Arc::new(Shared::new(options)?);
        let patcher = options
            .patch
            .then(|| Arc::new(Patcher::new(shared.layout.at(Label::umlaut_enter), options.memory_limit)));
        let ahead = patcher.clone().filter(|_| options.own_programs && shared.guests.placement.cpus() > 1);
        start(&shared, "reaper", |shared| shared.reaper.run())?;
        start(&shared, "strays", |shared| shared.strays.run(&shared.guests, &shared.ending))?;
        let make = Arc::clone(&shared);
        let begin = move || {
            let mut first = Some(spawner::make_zygote(&make)?);
            Ok(move || first.take().map_or_else(|| spawner::make_zygote(&make), Ok))
        };
        let spawner = Spawner::start(begin, || {
            if ahead.is_some() {
                patch::prepare();
            }
        })?;
        let zygote = Mutex::new(spawner.ask()?);
        // Not before: the host puts threads and processes that are new behind it, beside an idle CPU.
        if let Some(patcher) = ahead {
            start(&shared, "patcher", move |_| patcher.patch_own())?;
        }
        if shared.guests.placement.enabled() {
            start(&shared, "placement", |shared| shared.guests.placement.tick())?;
        }
        let capabilities = Capabilities {
            name: "stub",
            xsave_size: shared.state.size,
            xsave_features: shared.state.features,
        };
        Ok(Stubs { capabilities, shared, zygote, spawner, patcher })
    }

    /// Whether no guest process can make a process or a thread that the kernel has not ordered: the host asks it first.
    pub fn asks_consent(&self) -> bool {
        self.shared.consent.is_in_force()
    }
}

/// Starts a thread of the platform.
fn start(
    shared: &Arc<Shared>,
    name: &str,
    work: impl FnOnce(&Shared) + Send + 'static,
) -> Result<(), PlatformError> {
    let shared = Arc::clone(shared);
    let started = std::thread::Builder::new().name(name.into()).spawn(move || work(&shared));
    started.map(drop).map_err(|source| PlatformError { what: "starting a thread of the platform", source })
}

impl Platform for Stubs {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn patch(&self, file: BorrowedFd<'_>) -> Option<Arc<PatchedProgram>> {
        self.patcher.as_ref()?.patch(file)
    }

    fn spawn(&self) -> Result<NewProcess, PlatformError> {
        let mut zygote = self.zygote.lock();
        match zygote.fork() {
            // Somebody outside has killed it. Its descendants live on; take its heir, or a new one.
            Err(error) if zygote.has_died_by(&error) => {
                *zygote = zygote.take_heir().map_or_else(|| self.spawner.ask(), Ok)?;
                zygote.fork()
            }
            answer => answer,
        }
    }
}

impl Drop for Stubs {
    fn drop(&mut self) {
        self.shared.guests.placement.end();
        self.shared.reaper.stop();
        self.shared.strays.stop();
        self.shared.consent.stop();
    }
}
