//! The platforms `ptrace` and `sysemu`: guest code runs in host processes traced by the kernel's threads,
//! and every system call of theirs stops there. One loop; [`Mode`] decides how it resumes.
//!
//! Main types: [`Ptrace`], which is the [`platform::Platform`]; inside, `Process` (an address space) and
//! `Tracee` (a context).
//!
//! Modules: `stub` (our code in guest processes), `filter` (their seccomp filter), `spawner` (where they come
//! from), `context` (the loop), `step` (one instruction), `fault` (what the processor said), `stop` (typed wait results), `host_call`, `fork`, `sys` (the requests);
//! [`probe`], what the host can do.
//!
//! Neighbours: on `guest-process`; implements the traits of `platform`; the kernel knows only these.
#![allow(
    clippy::cast_possible_truncation,
    reason = "x86-64 only: usize is u64; registers and BPF constants are taken in halves on purpose"
)]

mod context;
mod fault;
mod filter;
mod fork;
mod host_call;
pub mod probe;
mod shared;
mod spawner;
mod step;
mod stop;
mod stub;
mod sys;

use std::sync::Arc;

use guest_process::{Spawner, forks_of};
use platform::{Capabilities, NewProcess, Platform, PlatformError};

pub use shared::{Mode, Options};

use crate::shared::Shared;

/// A platform on ptrace.
pub struct Ptrace {
    capabilities: Capabilities,
    shared: Arc<Shared>,
    /// Guest processes end with it.
    spawner: Spawner<NewProcess>,
}

impl Ptrace {
    /// Starts the platform: a spawner thread with a first guest process, and a ticker for placement.
    ///
    /// # Errors
    /// What the host forbids: ptrace, executable memory files, seccomp.
    pub fn new(options: Options) -> Result<Ptrace, PlatformError> {
        // An inherited SIG_IGN would have the host reap guest processes behind our back.
        host::signal::quiet_sigchld()
            .map_err(|source| PlatformError { what: "resetting SIGCHLD", source })?;
        let shared = Arc::new(Shared::new(options)?);
        start_thread("deadlines", &shared, |shared| shared.guests.deadlines.watch())?;
        let make = Arc::clone(&shared);
        let spawner = Spawner::start(move || forks_of(move || spawner::make_zygote(&make)), || {})?;
        if shared.guests.placement.enabled() {
            start_thread("placement", &shared, |shared| shared.guests.placement.tick())?;
        }
        let fresh = shared.fresh_fp();
        // The features are told in the bytes that software may use (USER_XSTATE_XCR0_WORD).
        let features =
            fresh.get(464..472).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes);
        let capabilities =
            Capabilities { name: options.mode.name(), xsave_size: fresh.len(), xsave_features: features };
        Ok(Ptrace { capabilities, shared, spawner })
    }
}

fn start_thread(
    name: &'static str,
    shared: &Arc<Shared>,
    life: impl FnOnce(&Shared) + Send + 'static,
) -> Result<(), PlatformError> {
    let shared = Arc::clone(shared);
    let thread = std::thread::Builder::new().name(name.into()).stack_size(64 << 10);
    thread
        .spawn(move || life(&shared))
        .map(drop)
        .map_err(|source| PlatformError { what: "starting a thread of the platform", source })
}

impl Platform for Ptrace {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn spawn(&self) -> Result<NewProcess, PlatformError> {
        self.spawner.ask()
    }
}

impl Drop for Ptrace {
    fn drop(&mut self) {
        self.shared.guests.placement.end();
        self.shared.guests.deadlines.end();
    }
}
