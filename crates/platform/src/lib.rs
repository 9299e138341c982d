//! The platform boundary: how guest code is run and control comes back.
//!
//! A *platform* (`ptrace`, `sysemu`, `stub`, later `kvm`) implements four traits: [`Platform`] makes guest
//! processes, [`AddressSpace`] is one process's memory and life, [`NewContext`] a guest thread nobody
//! drives yet, [`Context`] the thread as its own kernel thread drives it. Nothing of the kernel (tasks,
//! files, errno policy) is below this line, and nothing of ptrace or seccomp above it.
//!
//! Neighbours: `kernel` uses these traits; `ptrace` implements them. With the feature `testing`: `mock`, a
//! deterministic platform for unit tests; `conformance`, what every platform must pass; `code`, the guest
//! code of both.
#![forbid(unsafe_code)]

mod call;
#[cfg(feature = "testing")]
pub mod code;
#[cfg(feature = "testing")]
pub mod conformance;
mod context;
mod counters;
mod delegation;
#[cfg(feature = "testing")]
pub mod mock;
mod registers;
mod shape;
mod space;
pub mod step;
mod text;
mod trap;
mod usage;
mod words;

pub use call::{FUTEX_WAITV_MAX, FutexCall, HostCall, HostCallError, HostCallFailure, MapFile};
pub use context::{
    Capabilities, Context, Identity, Interrupter, NewContext, NewProcess, Platform, PlatformError,
};
pub use counters::{Block, CALLS, Counters, Event, Place};
pub use delegation::{DelegatedFile, DelegatedIo, Delegations};
pub use registers::Registers;
pub use shape::{CallShape, CallShapes, Pointee};
pub use space::{AddressSpace, GuestRange, Reach, Vdso};
pub use text::{Displaced, PatchedProgram, PatchedSite, SiteCode};
pub use trap::{Exception, ExitStatus, SyscallEntry, Trap};
pub use usage::{HostUsage, Meter};
pub use words::{OwnWords, SharedWords};
