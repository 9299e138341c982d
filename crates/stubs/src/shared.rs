//! What all guest processes of the platform share.

use std::io;
use std::sync::Arc;

use guest_process::Guests;
use platform::PlatformError;

use crate::layout::Layout;
use crate::reaper::Reaper;
use crate::state::{State, has_fsgsbase};

/// The switches of the platform. All but `data_limit` change speed only, and exist to be measured.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Copy guest memory vectored, not word by word.
    pub batch: bool,
    /// Patch the system-call sites of programs; else every call traps.
    pub patch: bool,
    /// Keep a guest thread on the CPU of the kernel thread that serves it.
    pub placement: bool,
    /// Bytes of data (`RLIMIT_DATA`) that each guest process may have at most.
    pub data_limit: Option<u64>,
}

impl Default for Options {
    /// Everything on that makes it fast.
    fn default() -> Options {
        Options { batch: true, patch: true, placement: true, data_limit: None }
    }
}

/// What all guest processes of the platform share.
pub(crate) struct Shared {
    pub(crate) guests: Arc<Guests>,
    pub(crate) layout: Layout,
    pub(crate) state: State,
    pub(crate) reaper: Reaper,
    pub(crate) data_limit: Option<u64>,
}

impl Shared {
    /// With a base for the stub drawn anew.
    ///
    /// # Errors
    /// What this host lacks.
    pub(crate) fn new(options: Options) -> Result<Shared, PlatformError> {
        let lacks = |what, reason: &str| PlatformError { what, source: io::Error::other(reason.to_owned()) };
        let failed = |what| move |source| PlatformError { what, source };
        if !has_fsgsbase() {
            return Err(lacks("using GS base", "no FSGSBASE (Linux 5.9 on a processor that has it)"));
        }
        if !crate::channel::host_can_wait() {
            return Err(lacks("waiting for guests", "no futex_waitv (Linux 5.16)"));
        }
        Ok(Shared {
            guests: Arc::new(Guests::new(options.batch, options.placement)),
            layout: Layout::random().map_err(failed("drawing the stub's address"))?,
            state: State::of_host()
                .ok_or_else(|| lacks("saving the extended state", "more of it than there is room for"))?,
            reaper: Reaper::new().map_err(failed("watching guest processes"))?,
            data_limit: options.data_limit,
        })
    }
}
