//! What all guest processes of one platform share.

use std::sync::{Arc, OnceLock};

use guest_process::Guests;
use platform::PlatformError;

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

/// The switches of the platform. All but `mode` and `data_limit` change speed only, and exist to be measured.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub mode: Mode,
    /// Copy guest memory vectored, not word by word.
    pub batch: bool,
    /// Fetch all registers at each stop, not when they are first asked for.
    pub eager_registers: bool,
    /// Keep a guest thread on the CPU of the kernel thread that serves it.
    pub placement: bool,
    /// Step guests by the host's `PTRACE_SYSEMU_SINGLESTEP` where it has it, not by the trap flag.
    pub steps_by_host: bool,
    /// Put guest processes into a pid namespace, where the host allows one: they end with it whatever they do.
    pub namespace: bool,
    /// Bytes of private writable memory that a guest process may map, on the host too (its `RLIMIT_DATA`).
    pub data_limit: Option<u64>,
}

impl Options {
    /// Everything on that makes it fast.
    pub fn new(mode: Mode) -> Options {
        Options {
            mode,
            batch: true,
            eager_registers: false,
            placement: true,
            steps_by_host: true,
            namespace: true,
            data_limit: None,
        }
    }
}

/// What all guest processes of one platform share.
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) layout: Layout,
    pub(crate) guests: Arc<Guests>,
    /// The extended state of a fresh process: set by the spawner once its first guest process stands.
    pub(crate) fresh_fp: OnceLock<Vec<u8>>,
    /// Whether the host steps guests (see [`crate::step`]); found out at the first step.
    pub(crate) host_steps: OnceLock<bool>,
}

impl Shared {
    /// With a base for the stub drawn anew.
    pub(crate) fn new(options: Options) -> Result<Shared, PlatformError> {
        let layout = Layout::random()
            .map_err(|source| PlatformError { what: "drawing the stub's address", source })?;
        let guests = Arc::new(Guests::new(options.batch, options.placement));
        Ok(Shared { options, layout, guests, fresh_fp: OnceLock::new(), host_steps: OnceLock::new() })
    }

    /// The extended state of a fresh process.
    pub(crate) fn fresh_fp(&self) -> &[u8] {
        self.fresh_fp.get().map_or(&[], Vec::as_slice)
    }
}
