//! Channel memory, as the kernel has it mapped: the only module that touches it.
//!
//! The guest may write all of it at any time. So it is only read and written as atomics and by copies of
//! bytes, never referred to as data; what is read is checked by who uses it.
//!
//! # Safety
//! A [`Channel`] owns one mapping of [`SIZE`] bytes of a file that is sealed against shrinking, so every access
//! at a checked offset is to mapped memory, for as long as it lives.
#![allow(unsafe_code, reason = "memory shared with a guest process, and futexes on it")]

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use guest_process::Slots;
use parking_lot::Mutex;
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};

use crate::layout::*;
use crate::protocol::{self, SLEEPING};

/// The channels of one address space: a memory file, and which are taken. The file is as long as the channels that have
/// been mapped need; the guest's mapping of it has room for all.
pub(crate) struct Channels {
    file: OwnedFd,
    /// Its length. Guests have no call that could change it.
    len: Mutex<u64>,
    pub(crate) slots: Arc<Slots>,
    /// The one that was left last, mapped still.
    spare: Mutex<Option<(u32, Arc<Channel>)>>,
}

/// The channel of a process that shares its parent's memory, and so its channels. Free again when this is dropped: once
/// that process is gone.
pub(crate) struct Lease {
    channels: Arc<Channels>,
    slot: u32,
    channel: Arc<Channel>,
}

impl Lease {
    /// `slot` is taken, and `channel` is there.
    pub(crate) fn new(channels: &Arc<Channels>, slot: u32, channel: &Arc<Channel>) -> Lease {
        Lease { channels: Arc::clone(channels), slot, channel: Arc::clone(channel) }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // All that a thread relies on to be zero; the rest is written before it is looked at. The pages stay, since a shell
        // needs them for its next command.
        self.channel.write(0, &[0; WORDS as usize]);
        *self.channels.spare.lock() = Some((self.slot, Arc::clone(&self.channel)));
        self.channels.slots.give_back(self.slot);
    }
}

impl Channels {
    /// In a file that no guest process has ever held; all free but `slot`.
    ///
    /// # Errors
    /// What making the file gives.
    pub(crate) fn new(slot: u32) -> io::Result<Channels> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        // MFD_NOEXEC_SEAL since Linux 6.3.
        let file = match rustix::fs::memfd_create(c"umlaut-channels", flags | MemfdFlags::NOEXEC_SEAL) {
            Err(rustix::io::Errno::INVAL) => rustix::fs::memfd_create(c"umlaut-channels", flags)?,
            other => other?,
        };
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::SEAL)?;
        Ok(Channels {
            file,
            len: Mutex::new(0),
            slots: Arc::new(Slots::with(SLOTS as u32, slot)),
            spare: Mutex::default(),
        })
    }

    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Maps one.
    ///
    /// # Errors
    /// What the mapping gives.
    pub(crate) fn map(&self, slot: u32) -> io::Result<Arc<Channel>> {
        let spare = self.spare.lock().take();
        if let Some((_, channel)) = spare.filter(|(of, _)| *of == slot) {
            return Ok(channel);
        }
        let offset = u64::from(slot) * SIZE;
        {
            let mut len = self.len.lock();
            if *len < offset + SIZE {
                rustix::fs::ftruncate(&self.file, offset + SIZE)?;
                *len = offset + SIZE;
            }
        }
        // SAFETY: a fresh mapping at a place that the host chooses.
        let memory = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                SIZE as usize,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                &self.file,
                offset,
            )?
        };
        let memory = NonNull::new(memory.cast()).ok_or(rustix::io::Errno::NOMEM)?;
        Ok(Arc::new(Channel { memory }))
    }

    /// Forgets what a channel held, so that a later thread finds zeros.
    pub(crate) fn clear(&self, slot: u32) {
        let offset = u64::from(slot) * SIZE;
        let flags = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
        // An error leaves old bytes of the same process there.
        let _ = rustix::fs::fallocate(&self.file, flags, offset, SIZE);
    }
}

/// One channel.
pub(crate) struct Channel {
    memory: NonNull<u8>,
}

// SAFETY: nothing but atomics and copies, which any thread may make.
unsafe impl Send for Channel {}
// SAFETY: as above.
unsafe impl Sync for Channel {}

/// What may be looked at as such: atomics, for which all bits are good.
trait Cell {}
impl Cell for AtomicU8 {}
impl Cell for AtomicU32 {}
impl Cell for AtomicU64 {}

impl Channel {
    /// The place of `len` bytes; offsets are constants of the layout or checked against it.
    fn at(&self, offset: u64, len: usize) -> NonNull<u8> {
        #[cfg(feature = "testing")]
        crate::adversary::touched(self, offset);
        let end = (offset as usize).checked_add(len);
        assert!(end.is_some_and(|end| end <= SIZE as usize), "an offset of a channel");
        // SAFETY: within the mapping, as just checked.
        unsafe { self.memory.add(offset as usize) }
    }

    fn cell<T: Cell>(&self, offset: u64) -> &T {
        debug_assert!(offset.is_multiple_of(size_of::<T>() as u64));
        // SAFETY: mapped for as long as `self`, aligned, and only ever accessed as atomics by us.
        unsafe { self.at(offset, size_of::<T>()).cast().as_ref() }
    }

    pub(crate) fn word(&self, offset: u64) -> &AtomicU32 {
        self.cell(offset)
    }

    pub(crate) fn long(&self, offset: u64) -> &AtomicU64 {
        self.cell(offset)
    }

    pub(crate) fn get32(&self, offset: u64) -> u32 {
        self.word(offset).load(Ordering::Relaxed)
    }

    pub(crate) fn set32(&self, offset: u64, value: u32) {
        self.word(offset).store(value, Ordering::Relaxed);
    }

    pub(crate) fn get(&self, offset: u64) -> u64 {
        self.long(offset).load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, offset: u64, value: u64) {
        self.long(offset).store(value, Ordering::Relaxed);
    }

    pub(crate) fn set_byte(&self, offset: u64, value: u8) {
        self.cell::<AtomicU8>(offset).store(value, Ordering::Relaxed);
    }

    /// The longs that `len` bytes from `offset` on lie in.
    fn longs(&self, offset: u64, len: usize) -> &[AtomicU64] {
        debug_assert!(offset.is_multiple_of(8));
        let count = len.div_ceil(8);
        // SAFETY: mapped for as long as `self`, aligned, and only ever accessed as atomics by us.
        unsafe { std::slice::from_raw_parts(self.at(offset, count * 8).cast().as_ptr(), count) }
    }

    /// Copies out, in longs.
    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) {
        let longs = self.longs(offset, into.len());
        let (whole, rest) = into.as_chunks_mut::<8>();
        for (to, long) in whole.iter_mut().zip(longs) {
            *to = long.load(Ordering::Relaxed).to_ne_bytes();
        }
        if let Some(long) = longs.get(whole.len()) {
            let bytes = long.load(Ordering::Relaxed).to_ne_bytes();
            rest.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
        }
    }

    /// Copies in, in longs; the last one is filled with zeros.
    pub(crate) fn write(&self, offset: u64, from: &[u8]) {
        let longs = self.longs(offset, from.len());
        let (whole, rest) = from.as_chunks::<8>();
        for (from, long) in whole.iter().zip(longs) {
            long.store(u64::from_ne_bytes(*from), Ordering::Relaxed);
        }
        if let Some(long) = longs.get(whole.len()) {
            let mut bytes = [0u8; 8];
            bytes.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            long.store(u64::from_ne_bytes(bytes), Ordering::Relaxed);
        }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // SAFETY: ours, and nothing refers to it any more.
        let _ = unsafe { rustix::mm::munmap(self.memory.as_ptr().cast(), SIZE as usize) };
    }
}

/// A word of the kernel's own by which its threads are woken, whatever guests do to theirs.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    word: AtomicU32,
}

impl Bell {
    /// The guest process is gone.
    pub(crate) const DEAD: u32 = 1;
    /// Counts kicks, above the flag.
    const KICK: u32 = 2;

    pub(crate) fn value(&self) -> u32 {
        self.word.load(Ordering::Acquire)
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.value() & Bell::DEAD != 0
    }

    /// Waits for the death of a process that has been killed, whatever its threads still post.
    pub(crate) fn wait_until_dead(&self) {
        loop {
            let seen = self.value();
            if seen & Bell::DEAD != 0 {
                return;
            }
            // Whatever it says, the word is looked at again.
            let _ =
                rustix::thread::futex::wait(&self.word, rustix::thread::futex::Flags::PRIVATE, seen, None);
        }
    }

    pub(crate) fn ring_dead(&self) {
        self.word.fetch_or(Bell::DEAD, Ordering::AcqRel);
        wake(&self.word, true);
    }

    pub(crate) fn ring_kick(&self) {
        self.word.fetch_add(Bell::KICK, Ordering::AcqRel);
        wake(&self.word, true);
    }
}

/// How a wait for the guest's post ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    Posted,
    /// The bell rang.
    Bell,
    TimedOut,
}

/// Posts to the guest. Returns whether it slept.
pub(crate) fn post(channel: &Channel) -> bool {
    #[cfg(feature = "testing")]
    if !crate::adversary::lets_through(channel) {
        return false;
    }
    let word = channel.word(TO_GUEST);
    let slept = protocol::post(channel.word(TO_KERNEL), word);
    if slept {
        wake(word, false);
    }
    slept
}

/// Watches for the guest's post without sleeping, for `span` at most or until the bell rings.
/// Returns whether it came.
pub(crate) fn watch(channel: &Channel, bell: &Bell, span: Duration) -> bool {
    /// Looks at the words between two at the clock.
    const LOOKS: u32 = 16;
    let word = channel.word(TO_KERNEL);
    let (begun, seen) = (Instant::now(), bell.value());
    loop {
        for _ in 0..LOOKS {
            if protocol::is_posted(word) {
                return true;
            }
            std::hint::spin_loop();
        }
        if bell.value() != seen || begun.elapsed() >= span {
            return false;
        }
    }
}

/// Waits for the guest's post, while the bell has the value `seen`.
pub(crate) fn wait(channel: &Channel, bell: &Bell, seen: u32, limit: Option<libc::timespec>) -> Waited {
    #[cfg(feature = "testing")]
    let limit = match crate::adversary::awaited(channel, limit) {
        Some(limit) => limit,
        None => return Waited::TimedOut,
    };
    let word = channel.word(TO_KERNEL);
    let mut first = true;
    loop {
        if protocol::is_posted(word) {
            return Waited::Posted;
        }
        if bell.value() != seen {
            return Waited::Bell;
        }
        // A guest that writes to the word all the time keeps the host from ever seeing the limit.
        if !first && limit.is_some_and(has_passed) {
            return Waited::TimedOut;
        }
        first = false;
        if !protocol::mark_sleeping(word) {
            continue;
        }
        if wait_for_either(word, &bell.word, seen, limit) == Err(libc::ETIMEDOUT) {
            return Waited::TimedOut;
        }
    }
}

/// Waits until the host has cleared a thread's word, or until `limit`.
pub(crate) fn wait_until_clear(channel: &Channel, bell: &Bell, limit: libc::timespec) -> bool {
    #[cfg(feature = "testing")]
    let limit = match crate::adversary::awaited(channel, Some(limit)) {
        Some(Some(limit)) => limit,
        _ => return false,
    };
    let word = channel.word(ALIVE);
    loop {
        let value = word.load(Ordering::Acquire);
        if value == 0 || bell.is_dead() {
            return true;
        }
        // As in `wait`.
        if has_passed(limit) {
            return false;
        }
        // SAFETY: a word of a mapping that `channel` keeps; an absolute time.
        let result = unsafe {
            libc::syscall(
                libc::SYS_futex,
                word.as_ptr(),
                libc::FUTEX_WAIT_BITSET,
                value,
                &raw const limit,
                0,
                u32::MAX,
            )
        };
        if result < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ETIMEDOUT) {
            return false;
        }
    }
}

/// `limit`: CLOCK_MONOTONIC.
fn has_passed(limit: libc::timespec) -> bool {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    (now.tv_sec, now.tv_nsec) >= (limit.tv_sec, limit.tv_nsec)
}

fn wake(word: &AtomicU32, private: bool) {
    let flag = if private { libc::FUTEX_PRIVATE_FLAG } else { 0 };
    // SAFETY: wakes whoever waits on the word; touches nothing else.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | flag, i32::MAX, 0, 0, 0) };
}

#[repr(C)]
struct FutexWaitv {
    val: u64,
    uaddr: u64,
    flags: u32,
    reserved: u32,
}

/// `limit`: CLOCK_MONOTONIC.
fn wait_for_either(
    shared: &AtomicU32,
    private: &AtomicU32,
    seen: u32,
    limit: Option<libc::timespec>,
) -> Result<(), i32> {
    /// `FUTEX2_SIZE_U32`.
    const U32: u32 = 2;
    let waiters = [
        FutexWaitv { val: SLEEPING.into(), uaddr: shared.as_ptr().addr() as u64, flags: U32, reserved: 0 },
        FutexWaitv {
            val: seen.into(),
            uaddr: private.as_ptr().addr() as u64,
            flags: U32 | libc::FUTEX_PRIVATE_FLAG.cast_unsigned(),
            reserved: 0,
        },
    ];
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: both words outlive the call; the array and the time are read only.
    let result = unsafe {
        libc::syscall(libc::SYS_futex_waitv, waiters.as_ptr(), waiters.len(), 0, limit, libc::CLOCK_MONOTONIC)
    };
    if result >= 0 {
        return Ok(());
    }
    Err(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
}

/// Whether the host has `futex_waitv`.
pub(crate) fn host_can_wait() -> bool {
    let word = AtomicU32::new(0);
    // EAGAIN: the values differ.
    wait_for_either(&word, &word, 1, None) == Err(libc::EAGAIN)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    /// Whatever a guest writes to its words meanwhile, waits end at their limit.
    #[test]
    fn a_scribbling_guest_does_not_keep_the_kernel_waiting() {
        let channels = Channels::new(0).unwrap();
        let (channel, theirs) = (channels.map(0).unwrap(), channels.map(0).unwrap());
        let bell = Bell::default();
        let stop = AtomicBool::new(false);
        let soon = || {
            let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
            libc::timespec { tv_sec: now.tv_sec + 1, tv_nsec: now.tv_nsec }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut value = 3u32;
                while !stop.load(Ordering::Relaxed) {
                    theirs.set32(TO_KERNEL, value);
                    theirs.set32(ALIVE, value);
                    value = value.wrapping_add(1).max(3);
                    std::hint::spin_loop();
                }
            });
            let waited = wait(&channel, &bell, bell.value(), Some(soon()));
            let cleared = wait_until_clear(&channel, &bell, soon());
            stop.store(true, Ordering::Relaxed);
            assert_eq!((waited, cleared), (Waited::TimedOut, false));
        });
    }
}
