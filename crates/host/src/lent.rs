//! Memory files (memfds) that guest processes map, or are handed descriptors of.
//!
//! What they hold is nobody's on the host: no process's size shows it, unless it is mapped there and was touched. So each
//! [`Lent`] file is in a register that can be added up ([`bytes`]). And a guest that has taken over its own stub may keep
//! one that it was told to let go: so one that the kernel has done with is emptied, and grows no more, whoever holds it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{FallocateFlags, SealFlags, Stat};

/// All of this process, by our descriptor.
static REGISTER: Mutex<BTreeMap<RawFd, Arc<OwnedFd>>> = Mutex::new(BTreeMap::new());

/// Which file it is, for the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    dev: u64,
    ino: u64,
}

/// A memory file that guest processes may hold. It can be sealed (`MFD_ALLOW_SEALING`), and nobody has done so for good.
#[derive(Debug)]
pub struct Lent {
    file: Arc<OwnedFd>,
    is_lent: AtomicBool,
}

impl Lent {
    /// One that guest processes may hold from now on.
    pub fn new(file: OwnedFd) -> Lent {
        let lent = Lent::later(file);
        lent.lend();
        lent
    }

    /// One that no guest process holds before [`Lent::lend`].
    pub fn later(file: OwnedFd) -> Lent {
        Lent { file: Arc::new(file), is_lent: AtomicBool::new(false) }
    }

    /// Guest processes may hold it from now on. False if they might before.
    pub fn lend(&self) -> bool {
        let is_first = !self.is_lent.swap(true, Ordering::Relaxed);
        if is_first {
            register().insert(self.file.as_raw_fd(), self.file.clone());
        }
        is_first
    }

    /// Whether guest processes may hold it.
    pub fn is_lent(&self) -> bool {
        self.is_lent.load(Ordering::Relaxed)
    }
}

impl AsFd for Lent {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl AsRawFd for Lent {
    fn as_raw_fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if self.is_lent() {
            register().remove(&self.file.as_raw_fd());
            empty(&self.file);
        }
    }
}

/// Takes all memory from a file, for good. One that is sealed against shrinking keeps its length, within which who has it
/// mapped may still write.
fn empty(file: &OwnedFd) {
    // What fails has been done by the one before, or is not to be had: an old host lacks FUTURE_WRITE (Linux 5.1).
    let _ = rustix::fs::fcntl_add_seals(file, SealFlags::GROW);
    if rustix::fs::ftruncate(file, 0).is_err() {
        let len = stat(file).map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0));
        let all = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let _ = rustix::fs::fallocate(file, all, 0, len);
    }
    let _ = rustix::fs::fcntl_add_seals(file, SealFlags::FUTURE_WRITE);
}

fn register() -> MutexGuard<'static, BTreeMap<RawFd, Arc<OwnedFd>>> {
    REGISTER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes of memory in all that are registered.
pub fn bytes() -> u64 {
    register().values().filter_map(|file| stat(file)).map(|stat| allocated(&stat)).sum()
}

/// Which are registered, with their bytes of memory.
pub fn all() -> HashMap<FileId, u64> {
    let register = register();
    let stats = register.values().filter_map(|file| stat(file));
    stats.map(|stat| (FileId::of(&stat), allocated(&stat))).collect()
}

/// The files that a process has mapped, or has descriptors of.
///
/// # Errors
/// If `/proc` does not tell, as of a process that is gone.
pub fn held_by(pid: i32) -> io::Result<HashSet<FileId>> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let mut held: HashSet<FileId> = maps.lines().filter_map(FileId::in_maps).collect();
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd"))? {
        // One that was closed meanwhile is held no more.
        if let Ok(stat) = entry.and_then(|entry| Ok(rustix::fs::stat(entry.path())?)) {
            held.insert(FileId::of(&stat));
        }
    }
    Ok(held)
}

impl FileId {
    fn of(stat: &Stat) -> FileId {
        FileId { dev: stat.st_dev, ino: stat.st_ino }
    }

    /// Of a line of `/proc/PID/maps`: range, rights, offset, device, inode, name.
    fn in_maps(line: &str) -> Option<FileId> {
        let mut words = line.split_ascii_whitespace().skip(3);
        let (major, minor) = words.next()?.split_once(':')?;
        let number = |hex| u32::from_str_radix(hex, 16).ok();
        let dev = rustix::fs::makedev(number(major)?, number(minor)?);
        let ino = words.next()?.parse().ok().filter(|ino| *ino != 0)?;
        Some(FileId { dev, ino })
    }
}

fn stat(file: &OwnedFd) -> Option<Stat> {
    rustix::fs::fstat(file).ok()
}

fn allocated(stat: &Stat) -> u64 {
    u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512)
}

#[cfg(test)]
mod tests {
    use rustix::fs::MemfdFlags;

    use super::*;

    fn memory_file() -> OwnedFd {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        rustix::fs::memfd_create(c"lent", flags).expect("a memory file")
    }

    #[test]
    fn what_is_lent_is_registered_and_in_the_end_emptied_for_all() {
        let file = memory_file();
        let id = FileId::of(&stat(&file).expect("a stat"));
        let kept = rustix::io::fcntl_dupfd_cloexec(&file, 0).expect("a descriptor");
        let lent = Lent::later(file);
        assert!(!all().contains_key(&id));
        assert!(lent.lend() && !lent.lend());
        rustix::io::pwrite(&kept, &[1; 8192], 0).expect("written");
        assert_eq!(all().get(&id), Some(&8192));
        assert!(bytes() >= 8192);
        assert!(held_by(std::process::id().cast_signed()).expect("of ourselves").contains(&id));
        drop(lent);
        assert!(!all().contains_key(&id));
        assert_eq!(allocated(&stat(&kept).expect("a stat")), 0);
        let refused = Err(rustix::io::Errno::PERM);
        assert_eq!(rustix::io::pwrite(&kept, b"x", 0), refused);
        assert_eq!(rustix::io::pwrite(&kept, b"x", 1 << 20), refused);
        assert_eq!(rustix::fs::ftruncate(&kept, 4096).map(|()| 0), refused);
    }

    #[test]
    fn what_must_not_shrink_is_emptied_within_its_length() {
        let file = memory_file();
        rustix::io::pwrite(&file, &[1; 8192], 0).expect("written");
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK).expect("sealed");
        let kept = rustix::io::fcntl_dupfd_cloexec(&file, 0).expect("a descriptor");
        drop(Lent::new(file));
        let stat = stat(&kept).expect("a stat");
        assert_eq!((allocated(&stat), stat.st_size), (0, 8192));
        assert_eq!(rustix::io::pwrite(&kept, b"x", 0), Err(rustix::io::Errno::PERM));
    }

    #[test]
    fn what_is_never_lent_stays_as_it_is() {
        let file = memory_file();
        rustix::io::pwrite(&file, b"whole", 0).expect("written");
        let kept = rustix::io::fcntl_dupfd_cloexec(&file, 0).expect("a descriptor");
        drop(Lent::later(file));
        assert_eq!(stat(&kept).expect("a stat").st_size, 5);
    }

    #[test]
    fn lines_of_maps() {
        let line = "7f00-7f10 rw-s 00000000 00:01 1027  /memfd:umlaut-shared (deleted)";
        let id = FileId { dev: rustix::fs::makedev(0, 1), ino: 1027 };
        assert_eq!(FileId::in_maps(line), Some(id));
        assert_eq!(FileId::in_maps("7f00-7f10 rw-p 00000000 00:00 0  [heap]"), None);
        assert_eq!(FileId::in_maps(""), None);
    }
}
