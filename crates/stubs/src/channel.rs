//! Channel memory, as the kernel has it mapped: the only module that touches it.
//!
//! The guest may write all of it at any time. So it is only read and written as atomics and by copies of
//! bytes, never referred to as data; what is read is checked by who uses it.
//!
//! # Safety
//! A [`Channel`] owns one mapping of [`SIZE`] bytes of a file that is sealed against shrinking, so every access
//! at a checked offset is to mapped memory, for as long as it lives.
#![allow(unsafe_code, reason = "memory shared with a guest process")]

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use guest_process::Slots;
use host::lent::Lent;
use parking_lot::Mutex;
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};

use crate::layout::*;

/// The channels of one address space: a memory file, and which are taken. The file is as long as the channels that have
/// been mapped need; the guest's mapping of it has room for all.
pub(crate) struct Channels {
    file: Arc<Lent>,
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
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK)?;
        Ok(Channels {
            file: Arc::new(Lent::new(file)),
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
        Ok(Arc::new(Channel { memory, _file: Arc::clone(&self.file) }))
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
    /// It is emptied when neither the kernel's mappings nor [`Channels`] are left.
    _file: Arc<Lent>,
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
