//! Target `sigframe`: a return from a signal that never came, with any frame.

use std::mem::offset_of;

use abi::RtSigframe;

use crate::{Input, Machine, guest};

/// Where in a frame the instruction pointer, the selectors and the pointer to the floating-point state are.
pub const RIP: usize = offset_of!(RtSigframe, uc.mcontext.rip);
pub const SELECTORS: usize = offset_of!(RtSigframe, uc.mcontext.cs);
const FP_STATE: usize = offset_of!(RtSigframe, uc.mcontext.fpstate);
/// Where the state itself is put, from the frame's start.
const FP_STATE_AT: usize = 512;

/// Frame and memory behind it. The first byte says what of it is made right, so that the rest is looked at.
pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let right = input.byte();
    let mut frame = vec![0; 2048];
    for (to, from) in frame.iter_mut().zip(input.rest()) {
        *to = *from;
    }
    let mut put = |bit: u8, at: usize, bytes: &[u8]| {
        if right & 1 << bit != 0 {
            frame[at..at + bytes.len()].copy_from_slice(bytes);
        }
    };
    put(0, SELECTORS, &[0x33, 0, 0, 0, 0, 0, 0x2b, 0]);
    put(1, FP_STATE, &(guest::FREE + FP_STATE_AT as u64).to_le_bytes());
    // FP_XSTATE_MAGIC1, extended size, features, size; FP_XSTATE_MAGIC2 behind the mock's 576 bytes.
    put(
        2,
        FP_STATE_AT + 464,
        &[0x53, 0x50, 0x58, 0x46, 0x44, 2, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0x40, 2, 0, 0],
    );
    put(2, FP_STATE_AT + 576, &[0x45, 0x50, 0x58, 0x46]);
    put(3, RIP, &guest::FREE.to_le_bytes());
    Machine::new(false).run(&guest::signal_return(&frame));
}
