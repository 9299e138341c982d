//! A buffer of the thread's own, between host files and guest memory.

use std::cell::Cell;

/// Most bytes that go through the buffer at once.
pub(crate) const CHUNK: usize = 256 * 1024;
/// Larger buffers are not kept: a kernel has many threads.
const KEPT: usize = 64 * 1024;

thread_local! {
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Runs `work` with a buffer of `len` bytes, whose contents are whatever was there before.
pub(crate) fn with_buffer<R>(len: usize, work: impl FnOnce(&mut [u8]) -> R) -> R {
    let mut buffer = BUFFER.take();
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
    let result = work(buffer.get_mut(..len).unwrap_or_default());
    if buffer.len() <= KEPT {
        BUFFER.set(buffer);
    }
    result
}
