//! One guest process's memory and life, as any thread of the kernel may use it.

use std::os::fd::BorrowedFd;
use std::sync::{Arc, OnceLock};

use abi::UserAddr;

use crate::HostUsage;

/// `len` bytes of guest memory from `start` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuestRange {
    pub start: UserAddr,
    pub len: usize,
}

/// How far a copy goes to reach a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// What is mapped: a hole or a wrong protection is a fault.
    Mapped,
    /// Also what the host's fault handler would map at an access by the guest itself: the ungrown part of
    /// a stack. It ignores protections, so the caller has checked that the mapping may be accessed so.
    Growing,
}

/// A guest process's memory and life. Dropping the last reference ends the process and reaps it: its host
/// pid is not reused before that.
///
/// All addresses lie below [`abi::GUEST_TOP`]: the caller has checked (the platform checks again).
pub trait AddressSpace: Send + Sync {
    /// Copies from the guest, range after range, into `into` (as long as all of them together).
    /// Returns the bytes copied; fewer than asked means that the next byte faults. A dead process copies 0.
    fn read(&self, from: &[GuestRange], into: &mut [u8], reach: Reach) -> usize;

    /// Appends the string at `from`, without its zero byte, to `into`, if the platform has it at hand; else nothing is done.
    fn read_string(&self, from: UserAddr, into: &mut Vec<u8>) -> bool {
        let _ = (from, into);
        false
    }

    /// Copies to the guest, likewise.
    fn write(&self, from: &[u8], to: &[GuestRange], reach: Reach) -> usize;

    /// Copies to the guest, but not before the thread goes on that the calling thread serves, with the result of its
    /// call. `true`: it will be done; a fault that could not be foreseen makes the result `EFAULT`. `may` says
    /// whether that is improbable, and is asked only where the platform would do it. `false`: nothing is done.
    fn write_later(&self, from: &[u8], to: GuestRange, may: &dyn Fn() -> bool) -> bool {
        let _ = (from, to, may);
        false
    }

    /// Ends the guest process at once, all threads of it. Not waited for.
    fn kill(&self);

    /// A host descriptor that becomes readable when the process has died, for the kernel's event thread.
    fn death(&self) -> Option<BorrowedFd<'_>>;

    /// Where the host's vDSO lies in it, if it has one (for `AT_SYSINFO_EHDR`), and its length in bytes,
    /// with the data pages before it: `(start of the vdso ELF image, first page of vvar, end)`.
    fn vdso(&self) -> Option<Vdso>;

    /// Memory use as the host counts it, in pages: `(resident, shared)`.
    fn resident_pages(&self) -> (u64, u64);

    /// Where the host's mapping that holds `addr` begins; `None` if there is none.
    fn mapping_start(&self, addr: UserAddr) -> Option<UserAddr>;

    /// What all its threads have used, ended ones too.
    fn usage(&self) -> HostUsage;

    /// Where [`usage`](AddressSpace::usage) is put for the last time, when the process has been reaped.
    fn last_usage(&self) -> Arc<OnceLock<HostUsage>>;

    /// How far stacks (mappings that grow down) may grow, in bytes: the host's `RLIMIT_STACK` of the process, as far
    /// as the host's hard limit lets it.
    fn set_stack_limit(&self, bytes: u64);

    /// The host's pid, for diagnostics and for reading the host's `/proc/PID` (maps, smaps, pagemap).
    fn host_pid(&self) -> i32;
}

/// Where the host's vDSO lies in a guest process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vdso {
    /// First data page (`[vvar]`).
    pub vvar: UserAddr,
    /// The ELF image (`[vdso]`).
    pub image: UserAddr,
    /// End of it, exclusive.
    pub end: UserAddr,
}
