//! A shorter way to the memory of a guest thread, for the kernel thread that serves it.

use platform::GuestRange;

/// What a platform may put before copies across processes. All of it concerns the guest thread that the calling thread
/// serves; for others nothing happens.
pub trait Passage: Send + Sync {
    /// Fills `into` from these ranges of process `tgid`, or leaves it as it is and returns `false`.
    fn read(&self, tgid: i32, from: &[GuestRange], into: &mut [u8]) -> bool;

    /// As [`platform::AddressSpace::read_string`].
    fn read_string(&self, tgid: i32, at: u64, into: &mut Vec<u8>) -> bool;

    /// These ranges are about to be written by another way.
    fn before_write(&self, tgid: i32, to: &[GuestRange]);

    /// As [`platform::AddressSpace::write_later`].
    fn write_later(&self, tgid: i32, from: &[u8], to: GuestRange, may: &dyn Fn() -> bool) -> bool;
}
