//! A copy of a program's text, to be looked through and patched, in the memory file that guests are going to map: it is
//! written once, and its pages are nobody's but that file's.
//!
//! # Safety
//! A [`Copy`] owns one mapping of `len` bytes of a memory file that no guest process has, and that nothing shortens: it was
//! written in full, and its descriptor leaves this module only when the mapping is gone, behind the seals.
#![allow(unsafe_code, reason = "a mapping of a memory file of its own")]

use std::fs::File;
use std::io::{self, Write};
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};

use super::read_at;

/// Bytes that are read at a time, by way of the stack.
const PART: usize = 16 << 10;

/// See the module's head.
pub(super) struct Copy {
    file: File,
    mapping: Mapping,
}

struct Mapping {
    memory: NonNull<u8>,
    len: usize,
}

impl Copy {
    /// Of `len` bytes of `file` from `offset` on, zeros where it ends before; and how many bytes it had.
    ///
    /// # Errors
    /// What reading gives, or the memory file.
    pub(super) fn of(file: BorrowedFd<'_>, offset: u64, len: usize) -> io::Result<(Copy, usize)> {
        let mut memory = memory_file()?;
        let mut part = [0; PART];
        let (mut done, mut read) = (0, 0);
        // A file is written faster than a fresh mapping, where each page is a fault.
        while done < len {
            let part = part.get_mut(..PART.min(len - done)).unwrap_or_default();
            let got = if read == done { read_at(file, part, offset + done as u64)? } else { 0 };
            part.get_mut(got..).unwrap_or_default().fill(0);
            memory.write_all(part)?;
            read += got;
            done += part.len();
        }
        let mapping = Mapping::of(&memory, len)?;
        Ok((Copy { file: memory, mapping }, read))
    }

    /// The memory file, with `code` behind the text: nobody can change it any more, and the descriptor cannot write.
    ///
    /// # Errors
    /// What the host gives.
    pub(super) fn seal(self, code: &[u8]) -> io::Result<OwnedFd> {
        let Copy { mut file, mapping } = self;
        drop(mapping);
        file.write_all(code)?;
        rustix::fs::fcntl_add_seals(
            &file,
            // FUTURE_WRITE, as nobody has it mapped: WRITE waits, often 10 ms, for pages that the host has on its own
            // lists.
            SealFlags::FUTURE_WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL,
        )?;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        match rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) {
            Ok(reader) => Ok(reader),
            // Without /proc the seals alone must do.
            Err(_) => Ok(file.into()),
        }
    }
}

impl Deref for Copy {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: as many bytes as are mapped, which only this refers to.
        unsafe { std::slice::from_raw_parts(self.mapping.memory.as_ptr(), self.mapping.len) }
    }
}

impl DerefMut for Copy {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: the same, and `self` is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.mapping.memory.as_ptr(), self.mapping.len) }
    }
}

impl Mapping {
    /// Of the first `len` bytes, which are there.
    fn of(file: &File, len: usize) -> io::Result<Mapping> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh mapping at a place that the host chooses.
        let memory =
            unsafe { rustix::mm::mmap(std::ptr::null_mut(), len, access, MapFlags::SHARED, file, 0)? };
        let memory = NonNull::new(memory.cast()).ok_or(rustix::io::Errno::NOMEM)?;
        Ok(Mapping { memory, len })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this mapping, which nothing refers to any more.
        let _ = unsafe { rustix::mm::munmap(self.memory.as_ptr().cast(), self.len) };
    }
}

fn memory_file() -> io::Result<File> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // MFD_NOEXEC_SEAL forbids execve only; since Linux 6.3.
    let file = match rustix::fs::memfd_create(c"umlaut-text", flags | MemfdFlags::NOEXEC_SEAL) {
        Err(rustix::io::Errno::INVAL) => rustix::fs::memfd_create(c"umlaut-text", flags)?,
        other => other?,
    };
    Ok(File::from(file))
}
