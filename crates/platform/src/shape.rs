//! The shape of a system call: which guest memory goes along with it, and whether some comes back with its result.

use crate::counters::Place;

/// What an argument points at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pointee {
    /// A string with a zero byte at its end.
    String,
    /// So many bytes.
    Bytes(usize),
    /// Elements of so many bytes; their count is in the next register.
    Elements(usize),
}

/// Of a call's arguments, what a platform may bring to the kernel together with the call. A platform that cannot
/// ignores it: the kernel asks for guest memory in the same way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallShape {
    /// The register (0 to 5) that points at it.
    pub brings: [Option<(u8, Pointee)>; 2],
    /// What the call writes to guest memory may be written when the guest goes on, with the result.
    pub answers: bool,
    /// The nearest place where it may be served.
    pub place: Place,
}

/// The shape of each call, by its number.
pub type CallShapes = fn(u16) -> CallShape;
