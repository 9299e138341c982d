//! Patching: the system-call sites of a program made to jump to the stub.
//!
//! A site is an instruction of five bytes or more that loads the number, and the `syscall` behind it. The first
//! becomes a jump to a trampoline, which does what it did and enters the stub; the `syscall` stays, and no boundary
//! of instructions moves, so a stray jump to it still works, by SIGSYS. Trampolines lie behind the file's last
//! segment, so their distance is the same in every process, and one sealed memory file serves them all.
//!
//! `sites` finds, `trampoline` writes, `elf` says where the text is, `explain` tells the user; [`Patcher`] keeps what
//! it has done, by the file's identity and times.

mod elf;
mod explain;
mod sites;
mod trampoline;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use abi::PAGE_SIZE;
use parking_lot::Mutex;
use platform::PatchedProgram;

pub use explain::{ExplainedSite, Shape, explain};
use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags};
pub use sites::Left;

/// Text longer than this is left alone: looking through it would delay the program's start.
const MAX_TEXT: u64 = 16 << 20;
/// Programs that are kept, patched or not.
const MAX_KEPT: usize = 256;
/// Bytes of patched text that are kept.
const MAX_BYTES: u64 = 128 << 20;

/// What tells a version of a file from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Version {
    dev: u64,
    ino: u64,
    size: i64,
    mtime: (i64, u64),
    ctime: (i64, u64),
}

/// The platform's patched programs.
pub(crate) struct Patcher {
    /// Where trampolines jump to.
    entry: u64,
    kept: Mutex<HashMap<Version, Option<Arc<PatchedProgram>>>>,
}

impl Patcher {
    pub(crate) fn new(entry: u64) -> Patcher {
        Patcher { entry, kept: Mutex::default() }
    }

    /// The program in `file`, patched; `None` if there is nothing to patch.
    pub(crate) fn patch(&self, file: BorrowedFd<'_>) -> Option<Arc<PatchedProgram>> {
        let version = version(file)?;
        if let Some(kept) = self.kept.lock().get(&version) {
            return kept.clone();
        }
        let program = self.make(file).unwrap_or_else(|error| {
            tracing::debug!(%error, "a program is not patched");
            None
        });
        // Written to meanwhile: what was read is of no version.
        if self::version(file) != Some(version) {
            return None;
        }
        let program = program.map(Arc::new);
        let mut kept = self.kept.lock();
        let bytes: u64 = kept.values().flatten().map(|program| program.len).sum();
        if kept.len() >= MAX_KEPT || bytes > MAX_BYTES {
            kept.clear();
        }
        kept.insert(version, program.clone());
        program
    }

    fn make(&self, file: BorrowedFd<'_>) -> io::Result<Option<PatchedProgram>> {
        let Ok((span, mut text, code_len)) = read_text(file)? else { return Ok(None) };
        let found = sites::find(text.get(..code_len).unwrap_or(&[]));
        if found.is_empty() {
            return Ok(None);
        }
        let Some(written) = trampoline::write(&mut text, &found, span.distance, self.entry) else {
            return Ok(None);
        };
        let trampolines = written.code.len() as u64;
        text.extend_from_slice(&written.code);
        Ok(Some(PatchedProgram {
            file: sealed(&text)?,
            offset: span.offset,
            len: span.len,
            distance: span.distance,
            trampolines,
            sites: written.sites,
        }))
    }
}

/// The text of a program: where it is, its bytes, and how many of them are code.
type Text = (elf::Text, Vec<u8>, usize);

/// Reads it, or says why it is left alone.
fn read_text(file: BorrowedFd<'_>) -> io::Result<Result<Text, &'static str>> {
    let span = match elf::text(file)? {
        Ok(span) if span.len <= MAX_TEXT => span,
        Ok(_) => return Ok(Err("its text is longer than 16 MiB")),
        Err(why) => return Ok(Err(why)),
    };
    let mut text = vec![0; usize::try_from(span.len).unwrap_or(0)];
    let read = read_at(file, &mut text, span.offset)?;
    Ok(Ok((span, text, read.min(span.code_len))))
}

fn version(file: BorrowedFd<'_>) -> Option<Version> {
    let stat = rustix::fs::fstat(file).ok()?;
    Some(Version {
        dev: stat.st_dev,
        ino: stat.st_ino,
        size: stat.st_size,
        mtime: (stat.st_mtime, stat.st_mtime_nsec),
        ctime: (stat.st_ctime, stat.st_ctime_nsec),
    })
}

/// Reads until `into` is full or the file ends; returns the bytes read.
fn read_at(file: BorrowedFd<'_>, into: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0usize;
    while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match rustix::io::pread(file, rest, offset + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(done)
}

/// A memory file that nobody can change any more, by a descriptor that cannot write.
fn sealed(bytes: &[u8]) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // MFD_NOEXEC_SEAL forbids execve only; since Linux 6.3.
    let file = match rustix::fs::memfd_create(c"umlaut-text", flags | MemfdFlags::NOEXEC_SEAL) {
        Err(rustix::io::Errno::INVAL) => rustix::fs::memfd_create(c"umlaut-text", flags)?,
        other => other?,
    };
    let mut file = File::from(file);
    file.write_all(bytes)?;
    rustix::fs::fcntl_add_seals(
        &file,
        // FUTURE_WRITE, as nobody has it mapped: WRITE waits, often 10 ms, for pages that the host has on its own lists.
        SealFlags::FUTURE_WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL,
    )?;
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file.as_fd()));
    match rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) {
        Ok(reader) => Ok(reader),
        // Without /proc the seals alone must do.
        Err(_) => Ok(file.into()),
    }
}

/// Rounded up to whole pages.
fn pages(len: u64) -> u64 {
    len.div_ceil(PAGE_SIZE) * PAGE_SIZE
}
