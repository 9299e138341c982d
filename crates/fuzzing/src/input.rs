//! Bytes of a fuzzer, taken apart.

use abi::{GUEST_TOP, PAGE_SIZE};

use crate::guest;

/// What is left of the bytes. Where they end, zeros follow.
pub struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    pub fn new(bytes: &'a [u8]) -> Input<'a> {
        Input { rest: bytes }
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// All that is left.
    pub fn rest(self) -> &'a [u8] {
        self.rest
    }

    /// The next `count` bytes, fewer at the end.
    pub fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(count.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let taken = self.bytes(N);
        std::array::from_fn(|index| taken.get(index).copied().unwrap_or(0))
    }

    pub fn byte(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    pub fn half(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    pub fn word(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    /// A register as a hostile guest would fill it: mostly what leads far into a handler (descriptors, places in its
    /// memory, sizes), else edges, else anything.
    pub fn register(&mut self) -> u64 {
        let (kind, detail) = (self.byte(), self.byte());
        let small = u64::from(detail);
        match kind % 16 {
            0 | 1 => small,
            2 => small % 24,
            3 => u64::from(u32::MAX - u32::from(detail % 8)),
            4 => (small % 128).wrapping_neg(),
            5 | 6 => guest::PATHS + small % guest::PATH_COUNT * guest::STRIDE,
            7 | 8 => guest::STRUCTURES + small % guest::STRUCTURE_COUNT * guest::STRIDE,
            9 | 10 => guest::FREE + small * 16,
            11 => guest::DATA_END - small % 32,
            12 => 1 << (detail % 64),
            13 => [0, GUEST_TOP - 1, GUEST_TOP, 1 << 47, u64::MAX, i64::MAX as u64, 1 << 63, PAGE_SIZE]
                [usize::from(detail % 8)],
            14 => u64::from(u32::from_le_bytes(self.array())),
            _ => self.word(),
        }
    }
}
