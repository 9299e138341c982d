//! What fuzzers feed: guest input of any kind into the kernel on the mock platform, or into the kernel's side of the
//! platform `stub` ([`channel`]), where nothing may panic, hang or be left behind.
//!
//! Each target is one function of bytes, `decode::run` and its like; it panics where something does not hold. libFuzzer
//! drives them from `fuzz/` (`cargo xtask fuzz TARGET`), the tests of this crate from fixed seeds and from what fuzzers
//! found before (`fuzz/corpus`). [`TARGETS`] lists them.
//!
//! [`Machine`] is a kernel with file systems, [`guest`] the program it runs, [`Input`] takes the bytes apart.
//! Neighbours: the kernel and its file systems, which are tested; nothing depends on this crate.

pub mod channel;
pub mod decode;
pub mod dispatch;
pub mod elf;
pub mod guest;
mod input;
mod machine;
pub mod paths;
pub mod sigframe;

pub use input::Input;
pub use machine::Machine;

/// A target: its name, and what runs one input.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 6] = [
    ("channel", channel::run),
    ("decode", decode::run),
    ("dispatch", dispatch::run),
    ("elf", elf::run),
    ("paths", paths::run),
    ("sigframe", sigframe::run),
];
