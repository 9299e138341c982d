//! A buffer of the thread's own, between file data and guest memory.

use std::cell::Cell;

/// Most bytes that go through it at once.
pub(crate) const CHUNK: usize = 64 * 1024;

thread_local! {
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Runs `work` with a buffer of `len` bytes (at most [`CHUNK`]), whose contents are whatever was there before.
pub(crate) fn with_buffer<R>(len: usize, work: impl FnOnce(&mut [u8]) -> R) -> R {
    let len = len.min(CHUNK);
    let mut buffer = BUFFER.take();
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
    let result = work(buffer.get_mut(..len).unwrap_or_default());
    BUFFER.set(buffer);
    result
}
