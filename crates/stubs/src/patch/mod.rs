//! Patching: the system-call sites of a program made to jump to the stub.
//!
//! A site is an instruction of five bytes or more that loads the number, and the `syscall` behind it. The first
//! becomes a jump to a trampoline, which does what it did and enters the stub; the `syscall` stays, and no boundary
//! of instructions moves, so a stray jump to it still works, by SIGSYS. Trampolines lie behind the file's last
//! segment, so their distance is the same in every process, and one sealed memory file serves them all.
//!
//! `sites` finds, `trampoline` writes, `elf` says where the text is, `copy` holds it meanwhile, `explain` tells the user;
//! [`Patcher`] keeps what it has done: by the file's identity and times, or by its bytes where guests may write to it.

mod copy;
mod elf;
mod explain;
mod sites;
mod trampoline;

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use abi::PAGE_SIZE;
use parking_lot::Mutex;
use platform::PatchedProgram;

use copy::Copy;
pub use explain::{ExplainedSite, Shape, explain};
pub use sites::Left;
pub(crate) use sites::prepare;

/// Text longer than this is left alone: looking through it would delay the program's start.
const MAX_TEXT: u64 = 16 << 20;
/// Programs that are kept, patched or not.
const MAX_KEPT: usize = 256;
/// Bytes of patched text that are kept.
const MAX_BYTES: u64 = 128 << 20;
/// Bytes of text that are copied at the same time; what comes beside them is left alone.
const MAX_IN_WORK: u64 = 2 * MAX_TEXT;
/// Where memory is limited, the part of it that patched text may ever take: one in so many. Nobody knows who still has it mapped.
const PART_OF_LIMIT: u64 = 8;

/// What tells a version of a file from others, where nobody inside can write to it behind the back of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Version {
    dev: u64,
    ino: u64,
    size: i64,
    mtime: (i64, u64),
    ctime: (i64, u64),
}

/// What a patched program is kept by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    Version(Version),
    /// Of the very bytes that were patched, and of what the headers say about them; keyed, so that nobody can look for two
    /// programs with the same.
    Digest(u64),
}

/// The platform's patched programs.
pub(crate) struct Patcher {
    /// Where trampolines jump to.
    entry: u64,
    kept: Mutex<HashMap<Key, Arc<Kept>>>,
    digest: RandomState,
    /// Bytes that are being copied.
    in_work: AtomicU64,
    /// Bytes that may still be patched, where memory is limited.
    left: Option<AtomicU64>,
}

/// Takes bytes of a number, which get free when this is dropped.
struct InWork<'a>(&'a AtomicU64, u64);

impl Drop for InWork<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(self.1, Ordering::Relaxed);
    }
}

/// What came of one program: whoever asks while it is being patched waits.
type Kept = OnceLock<Option<Arc<PatchedProgram>>>;

impl Patcher {
    /// `limit`: bytes of memory that all guests may use.
    pub(crate) fn new(entry: u64, limit: Option<u64>) -> Patcher {
        Patcher {
            entry,
            kept: Mutex::default(),
            digest: RandomState::new(),
            in_work: AtomicU64::new(0),
            left: limit.map(|limit| AtomicU64::new(limit / PART_OF_LIMIT)),
        }
    }

    /// The program in `file`, patched; `None` if there is nothing to patch.
    pub(crate) fn patch(&self, file: BorrowedFd<'_>) -> Option<Arc<PatchedProgram>> {
        let told = |error: io::Error| tracing::debug!(%error, "a program is not patched");
        let version = version(file).filter(|version| version.tells_of_writes(file));
        if let Some(version) = version
            && let Some(done) = self.done(Key::Version(version))
        {
            return done;
        }
        let _in_work = self.begin(elf::text(file).map_err(told).ok()?.ok()?.len)?;
        let Some(version) = version else {
            let (span, text) = read_text(file).map_err(told).ok()?.ok()?;
            let kept = self.kept(Key::Digest(self.digest.hash_one((span, &text[..]))));
            return kept.get_or_init(|| self.make(span, text).map_err(told).ok()?).clone();
        };
        let kept = self.kept(Key::Version(version));
        let make = || {
            let (span, text) = read_text(file).map_err(told).ok()?.ok()?;
            let made = self.make(span, text).map_err(told).ok()?;
            // Written to meanwhile: what was read is of no version.
            made.filter(|_| self::version(file) == Some(version))
        };
        kept.get_or_init(make).clone()
    }

    /// Patches what every dynamic program is going to ask for where guests have the host's programs: this process's own
    /// C library and its loader. Gives back the pages of our own program that this has taken.
    pub(crate) fn patch_own(&self) {
        let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else { return };
        let paths: BTreeSet<&str> =
            maps.lines().filter_map(|line| line.split_once('/')).map(|it| it.1).collect();
        for path in paths {
            let name = path.rsplit('/').next().unwrap_or_default();
            if !["ld-", "libc.so"].iter().any(|start| name.starts_with(start)) {
                continue;
            }
            // What cannot be opened is patched when it is asked for.
            if let Ok(file) = File::open(Path::new("/").join(path)) {
                self.patch(file.as_fd());
            }
        }
        // The decoder is hardly needed from now on.
        host::residency::release_programs();
    }

    /// Unless too much is in work.
    fn begin(&self, bytes: u64) -> Option<InWork<'_>> {
        let before = self.in_work.fetch_add(bytes, Ordering::Relaxed);
        let begun = InWork(&self.in_work, bytes);
        (before.saturating_add(bytes) <= MAX_IN_WORK).then_some(begun)
    }

    /// Takes bytes of those that may still be patched.
    fn take(&self, bytes: u64) -> bool {
        let Some(left) = &self.left else { return true };
        let step = |left: u64| left.checked_sub(bytes);
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step).is_ok()
    }

    /// What came of the program of this key, if that is known.
    fn done(&self, key: Key) -> Option<Option<Arc<PatchedProgram>>> {
        self.kept.lock().get(&key)?.get().cloned()
    }

    /// Where the program of this key is, or comes.
    fn kept(&self, key: Key) -> Arc<Kept> {
        let mut kept = self.kept.lock();
        if !kept.contains_key(&key) {
            let bytes: u64 = kept.values().filter_map(|one| one.get()?.as_ref()).map(|one| one.len).sum();
            if kept.len() >= MAX_KEPT || bytes > MAX_BYTES {
                // What memory was taken for stays: there is none for it once more.
                let is_limited = self.left.is_some();
                kept.retain(|_, one| is_limited && one.get().is_some_and(Option::is_some));
            }
        }
        Arc::clone(kept.entry(key).or_default())
    }

    fn make(&self, span: elf::Text, mut text: Copy) -> io::Result<Option<Arc<PatchedProgram>>> {
        let found = sites::find(text.get(..span.code_len).unwrap_or(&[]));
        if found.is_empty() || !self.take(span.len) {
            return Ok(None);
        }
        let Some(written) = trampoline::write(&mut text, &found, span.distance, self.entry) else {
            return Ok(None);
        };
        Ok(Some(Arc::new(PatchedProgram {
            file: text.seal(&written.code)?,
            offset: span.offset,
            len: span.len,
            distance: span.distance,
            trampolines: written.code.len() as u64,
            sites: written.sites,
        })))
    }
}

impl Version {
    /// Whether whatever was written to `file`, of this version, shows in it. Two writes in a row may have the same times,
    /// and what is written to files in memory by mappings changes none.
    fn tells_of_writes(&self, file: BorrowedFd<'_>) -> bool {
        /// Longer than the tick of the host's clock for times of files.
        const TICK: Duration = Duration::from_millis(100);
        const TMPFS: i64 = 0x0102_1994;
        let (seconds, nanoseconds) = self.ctime;
        let since = Duration::new(seconds.try_into().unwrap_or(0), nanoseconds.try_into().unwrap_or(0));
        let is_settled = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .is_ok_and(|now| now.checked_sub(since).is_some_and(|age| age > TICK));
        is_settled && rustix::fs::fstatfs(file).is_ok_and(|fs| fs.f_type != TMPFS)
    }
}

/// Reads the text of a program, or says why it is left alone.
fn read_text(file: BorrowedFd<'_>) -> io::Result<Result<(elf::Text, Copy), &'static str>> {
    let mut span = match elf::text(file)? {
        Ok(span) if span.len <= MAX_TEXT => span,
        Ok(_) => return Ok(Err("its text is longer than 16 MiB")),
        Err(why) => return Ok(Err(why)),
    };
    let (text, read) = Copy::of(file, span.offset, usize::try_from(span.len).unwrap_or(0))?;
    span.code_len = read.min(span.code_len);
    Ok(Ok((span, text)))
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

/// Rounded up to whole pages.
fn pages(len: u64) -> u64 {
    len.div_ceil(PAGE_SIZE) * PAGE_SIZE
}
