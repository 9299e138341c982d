//! What all guest processes of one platform share.

use std::collections::HashSet;
use std::sync::OnceLock;

use parking_lot::Mutex;
use platform::{PlatformError, Vdso};

use crate::placement::Placement;
use crate::stub::Layout;
use crate::sys::Resume;

/// How guest code is resumed: the only difference between the two platforms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// `PTRACE_SYSCALL`: two stops a call. Works everywhere ptrace does.
    Syscall,
    /// `PTRACE_SYSEMU`: one stop a call.
    Sysemu,
}

impl Mode {
    /// As `--platform` names it.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Syscall => "ptrace",
            Mode::Sysemu => "sysemu",
        }
    }

    pub(crate) fn resume(self) -> Resume {
        match self {
            Mode::Syscall => Resume::Syscall,
            Mode::Sysemu => Resume::Sysemu,
        }
    }
}

/// The switches of the platform. All but `mode` change speed only, and exist to be measured.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub mode: Mode,
    /// Copy guest memory vectored, not word by word.
    pub batch: bool,
    /// Fetch all registers at each stop, not when they are first asked for.
    pub eager_registers: bool,
    /// Keep a guest thread on the CPU of the kernel thread that serves it.
    pub placement: bool,
}

impl Options {
    /// Everything on that makes it fast.
    pub fn new(mode: Mode) -> Options {
        Options { mode, batch: true, eager_registers: false, placement: true }
    }
}

/// What all guest processes of one platform share.
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) layout: Layout,
    /// The kernel's pid: what guest processes' `getppid` gives.
    pub(crate) kernel: u32,
    /// Set by the spawner once its first guest process stands.
    pub(crate) found: OnceLock<Found>,
    /// The tgids of all guest processes that are not reaped yet.
    pub(crate) processes: Mutex<HashSet<i32>>,
    pub(crate) placement: Placement,
}

impl Shared {
    /// With a base for the stub drawn anew.
    pub(crate) fn new(options: Options) -> Result<Shared, PlatformError> {
        let layout = Layout::random()
            .map_err(|source| PlatformError { what: "drawing the stub's address", source })?;
        Ok(Shared {
            options,
            layout,
            kernel: std::process::id(),
            found: OnceLock::new(),
            processes: Mutex::default(),
            placement: Placement::new(options.placement),
        })
    }

    /// Bytes of the extended state.
    pub(crate) fn fp_size(&self) -> usize {
        self.found.get().map_or(0, |found| found.fresh_fp.len())
    }
}

/// What the first guest process showed of this host.
pub(crate) struct Found {
    pub(crate) vdso: Option<Vdso>,
    /// The extended state of a fresh process.
    pub(crate) fresh_fp: Vec<u8>,
}
