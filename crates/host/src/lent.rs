//! Memory files (memfds) that guest processes map, or are handed descriptors of.
//!
//! What they hold is nobody's on the host: no process's size shows it, unless it is mapped there and was touched. And a
//! guest that has taken over its own stub may keep one that it was told to let go, and fill it. So each [`Lent`] file is
//! in a register that can be added up ([`bytes`]); and where somebody does ([`watch`]), one that the kernel has done
//! with stays there until it was seen that no guest process holds it ([`dropped`], [`held_by`], [`forget`]).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::fs::Stat;

/// Files that the kernel has done with between two looks at them, at most: each takes a descriptor.
pub const MOST_DROPPED: usize = 64;

/// All of this process.
static REGISTER: Mutex<Register> = Mutex::new(Register { files: BTreeMap::new(), dropped: 0, wake_at: 0 });
static MANY_DROPPED: Condvar = Condvar::new();
static IS_WATCHED: AtomicBool = AtomicBool::new(false);

struct Register {
    /// By our descriptor.
    files: BTreeMap<RawFd, Entry>,
    /// How many of them the kernel has done with, and at how many whoever watches wakes.
    dropped: usize,
    wake_at: usize,
}

struct Entry {
    file: Arc<OwnedFd>,
    /// The kernel has done with it.
    is_dropped: bool,
}

/// Which file it is, for the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    dev: u64,
    ino: u64,
}

/// A memory file that guest processes may hold.
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
            let entry = Entry { file: self.file.clone(), is_dropped: false };
            register().files.insert(self.file.as_raw_fd(), entry);
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
        if !self.is_lent() {
            return;
        }
        let mut register = register();
        if !IS_WATCHED.load(Ordering::Relaxed) {
            register.files.remove(&self.file.as_raw_fd());
        } else if let Some(entry) = register.files.get_mut(&self.file.as_raw_fd()) {
            entry.is_dropped = true;
            register.dropped += 1;
            if register.dropped == register.wake_at {
                MANY_DROPPED.notify_all();
            }
        }
    }
}

fn register() -> MutexGuard<'static, Register> {
    REGISTER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on the register keeps what is dropped. Whoever says so calls [`forget`] from time to time.
pub fn watch() {
    IS_WATCHED.store(true, Ordering::Relaxed);
}

/// Sleeps for so long, or until the kernel has done with [`MOST_DROPPED`] more files.
pub fn wait_for_dropped(period: Duration) {
    let mut register = register();
    register.wake_at = register.dropped + MOST_DROPPED;
    // Both ends of the wait are as good.
    let _ = MANY_DROPPED.wait_timeout_while(register, period, |now| now.dropped < now.wake_at);
}

/// Bytes of memory in all that are registered.
pub fn bytes() -> u64 {
    register().files.values().map(|entry| stat(&entry.file).map_or(0, |stat| allocated(&stat))).sum()
}

/// Which are registered, with their bytes of memory.
pub fn all() -> HashMap<FileId, u64> {
    let register = register();
    let stats = register.files.values().filter_map(|entry| stat(&entry.file));
    stats.map(|stat| (FileId::of(&stat), allocated(&stat))).collect()
}

/// Those that the kernel has done with, with their bytes of memory.
pub fn dropped() -> HashMap<FileId, u64> {
    let register = register();
    let dropped = register.files.values().filter(|entry| entry.is_dropped);
    let stats = dropped.filter_map(|entry| stat(&entry.file));
    stats.map(|stat| (FileId::of(&stat), allocated(&stat))).collect()
}

/// Closes, of those that the kernel has done with, the ones of which `is_held` says that nobody holds them.
pub fn forget(is_held: impl Fn(FileId) -> bool) {
    let is_kept = |entry: &Entry| stat(&entry.file).is_some_and(|stat| is_held(FileId::of(&stat)));
    let mut register = register();
    register.files.retain(|_, entry| !entry.is_dropped || is_kept(entry));
    register.dropped = register.files.values().filter(|entry| entry.is_dropped).count();
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
    use super::*;

    fn memory_file() -> OwnedFd {
        rustix::fs::memfd_create(c"lent", rustix::fs::MemfdFlags::CLOEXEC).expect("a memory file")
    }

    #[test]
    fn what_was_dropped_stays_until_nobody_holds_it() {
        watch();
        let file = memory_file();
        let id = FileId::of(&stat(&file).expect("a stat"));
        let kept = rustix::io::fcntl_dupfd_cloexec(&file, 0).expect("a descriptor");
        let lent = Lent::later(file);
        assert!(!all().contains_key(&id));
        assert!(lent.lend() && !lent.lend());
        rustix::io::pwrite(&kept, &[1; 8192], 0).expect("written");
        assert_eq!(all().get(&id), Some(&8192));
        assert!(bytes() >= 8192 && !dropped().contains_key(&id));
        drop(lent);
        rustix::io::pwrite(&kept, &[1; 4096], 1 << 20).expect("written");
        assert_eq!(dropped().get(&id), Some(&12288));
        let held = held_by(std::process::id().cast_signed()).expect("of ourselves");
        assert!(held.contains(&id));
        forget(|file| held.contains(&file));
        assert_eq!(dropped().get(&id), Some(&12288));
        forget(|file| file != id);
        assert!(!all().contains_key(&id));
    }

    #[test]
    fn many_that_were_dropped_end_the_wait() {
        watch();
        let waiter = std::thread::spawn(|| wait_for_dropped(Duration::from_secs(600)));
        while !waiter.is_finished() {
            drop(Lent::new(memory_file()));
        }
    }

    #[test]
    fn what_is_never_lent_is_closed() {
        watch();
        let file = memory_file();
        let id = FileId::of(&stat(&file).expect("a stat"));
        drop(Lent::later(file));
        assert!(!all().contains_key(&id));
        assert!(!held_by(std::process::id().cast_signed()).expect("of ourselves").contains(&id));
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
