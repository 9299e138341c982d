//! Host processes that hold guests: what every platform needs whose guest threads are host threads.
//!
//! Main types: [`Process`], one guest host process (an address space); [`Guests`], what all of a platform
//! share; [`Placement`], which keeps a guest thread on its kernel thread's CPU; [`Deadlines`], for what it must
//! do at once; [`bpf::Assembler`], for the seccomp filter that each has.
//!
//! Modules: `launch` and `image` (the only fork and exec), `namespace` (a pid namespace around them), `first`, `control` (the socket by which descriptors
//! reach a guest process), `encode` (host calls as numbers), `slots`, `meter`, `ticker` (a thread that looks
//! every so often).
//!
//! Neighbours: `ptrace` and `stub` are built on it; it implements `AddressSpace` and `Meter` of `platform`.
#![allow(clippy::cast_possible_truncation, reason = "x86-64 only: usize is u64")]

pub mod bpf;
mod control;
mod deadline;
mod encode;
mod first;
mod guests;
mod image;
mod launch;
mod meter;
mod namespace;
mod passage;
mod placement;
mod process;
mod slots;
mod spawner;
mod ticker;

pub use control::{PASSED, check_in, control_socket, receive_descriptor, send, wait_no_longer};
pub use deadline::{Deadlines, Vigil, is_zombie};
pub use encode::{ADVICE, Encoded, FREE_ADVICE, LONGEST_ARRAY, RawCall, answer, blocks, encode, in_batches};
pub use first::{Map, read_maps, set_limits, settle_vdso, try_copying};
pub use guests::Guests;
pub use image::{executable, exiting_image};
pub use launch::{executable_file, launch};
pub use meter::{Doubled, ThreadMeter};
pub use namespace::{Launch, Namespace, launch_in_namespace, make_in_namespace};
pub use passage::Passage;
pub use placement::{Pin, Placement, confine, set_nice};
pub use process::{Process, guest_range};
pub use slots::Slots;
pub use spawner::{Spawner, Zygote, forks_of};

/// The descriptor of the control socket in every guest process. The lowest number, so that those which host
/// calls receive into a process without others are known: they follow it.
pub const CONTROL_FD: u32 = 0;

/// What everything of ours above [`abi::GUEST_TOP`] must stay below: with ADDR_NO_RANDOMIZE and a stack limit
/// of 8 MiB the host puts the vdso just below 0x7fff_f800_0000.
pub const CEILING: u64 = 0x7fff_f000_0000;
