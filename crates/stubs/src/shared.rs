//! What all guest processes of the platform share.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use guest_process::Guests;
use platform::{CallShape, CallShapes, PlatformError};

use crate::consent::Consent;
use crate::layout::{DISPATCHED, Layout};
use crate::marshal::Marshal;
use crate::reaper::Reaper;
use crate::spin;
use crate::state::{State, has_fsgsbase};
use crate::strays::Strays;
use crate::threads::Ending;

/// The switches of the platform. All but the limits and `namespace` change speed only, and exist to be measured.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// What guest threads bring along with their calls.
    pub shapes: CallShapes,
    /// Copy guest memory vectored, not word by word.
    pub batch: bool,
    /// Patch the system-call sites of programs; else every call traps.
    pub patch: bool,
    /// Guests have the host's programs: patch the C library before one asks, on a CPU that has nothing else to do yet.
    pub own_programs: bool,
    /// Hand regular files that keep being read or written to guest threads, which then use them without the kernel.
    pub delegate: bool,
    /// Keep a guest thread on the CPU of the kernel thread that serves it.
    pub placement: bool,
    /// Let the two sides of a hand-over watch for each other on two CPUs, while the host has one to spare.
    pub spin: bool,
    /// Put guest processes into a pid namespace, where the host allows one: they end with it whatever they do.
    pub namespace: bool,
    /// Bytes of data (`RLIMIT_DATA`) that each guest process may have at most.
    pub data_limit: Option<u64>,
    /// Bytes of memory that all guests may use, where nothing but the kernel bounds it.
    pub memory_limit: Option<u64>,
}

impl Default for Options {
    /// Everything on that makes it fast.
    fn default() -> Options {
        Options {
            shapes: |_| CallShape::default(),
            batch: true,
            patch: true,
            own_programs: false,
            delegate: true,
            placement: true,
            spin: true,
            namespace: true,
            data_limit: None,
            memory_limit: None,
        }
    }
}

/// What this host lacks that the platform cannot do without, if anything, as far as that can be told without trying.
pub fn host_lacks() -> Option<&'static str> {
    state_of_host().err()
}

/// The extended state of a host that lacks nothing.
fn state_of_host() -> Result<State, &'static str> {
    if !has_fsgsbase() {
        return Err("no FSGSBASE (Linux 5.9, and a processor that has it)");
    }
    if !crate::hand_over::host_can_wait() {
        return Err("no futex_waitv (Linux 5.16)");
    }
    State::of_host().ok_or("more extended state than there is room for")
}

/// What all guest processes of the platform share.
pub(crate) struct Shared {
    pub(crate) guests: Arc<Guests>,
    pub(crate) layout: Layout,
    /// By number, below `DISPATCHED`.
    pub(crate) shapes: Vec<CallShape>,
    pub(crate) state: State,
    pub(crate) reaper: Arc<Reaper>,
    pub(crate) strays: Strays,
    pub(crate) consent: Consent,
    pub(crate) ending: Ending,
    pub(crate) delegate: bool,
    /// A descriptor that is good for nothing (`O_PATH`), where the host gives one.
    pub(crate) nothing: Option<OwnedFd>,
    pub(crate) spinning: spin::Host,
    pub(crate) data_limit: Option<u64>,
    pub(crate) namespace: bool,
}

impl Shared {
    /// With a base for the stub drawn anew.
    ///
    /// # Errors
    /// What this host lacks.
    pub(crate) fn new(options: Options) -> Result<Shared, PlatformError> {
        let failed = |what| move |source| PlatformError { what, source };
        let state = state_of_host()
            .map_err(|reason| failed("running guests by a stub of ours")(io::Error::other(reason)))?;
        let mut guests = Guests::new(options.batch, options.placement);
        guests.passage = Some(Box::new(Marshal));
        Ok(Shared {
            spinning: spin::Host::new(options.spin, guests.placement.cpus()),
            guests: Arc::new(guests),
            shapes: (0..DISPATCHED as u16).map(options.shapes).collect(),
            layout: Layout::random().map_err(failed("drawing the stub's address"))?,
            state,
            reaper: Arc::new(Reaper::new().map_err(failed("watching guest processes"))?),
            strays: Strays::default(),
            ending: Ending::default(),
            consent: Consent::new().map_err(failed("watching guest processes"))?,
            delegate: options.delegate,
            nothing: nothing(),
            data_limit: options.data_limit,
            namespace: options.namespace,
        })
    }
}

/// A descriptor by which no call reads or writes: each fails with `EBADF`.
fn nothing() -> Option<OwnedFd> {
    use rustix::fs::{MemfdFlags, Mode, OFlags};
    let file = rustix::fs::memfd_create(c"umlaut-nothing", MemfdFlags::CLOEXEC).ok()?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()
}
