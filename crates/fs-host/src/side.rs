//! Side files: records of files that cannot carry attributes of their own, in a hidden file of their directory.
//!
//! `.umlaut.side` is a log of lines, the last of a name counts:
//!
//! ```text
//! INODE UID GID MODE RDEV NAME       a record; NAME with bytes outside of `!`..`~`, and `%`, as %XX
//! - NAME                             the record is gone
//! ```
//!
//! The inode number ties a record to the file: one that was replaced behind our back has none. The file is read once
//! for each directory in use and appended to; when most of it is out of date it is written anew. One kernel at a time
//! is expected to change a root.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

use abi::FileMode;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags};
use rustix::io::Errno as HostErrno;
use sync::SysResult;
use vfs::Inode;

use crate::descriptors::DirFd;
use crate::error::{errno, retry, stale};
use crate::node::HostNode;
use crate::record::Record;
use crate::stat::HostStat;

/// All names of ours in directories begin like this; guests neither see nor make them.
pub(crate) const HIDDEN: &[u8] = b".umlaut.";
const FILE: &str = ".umlaut.side";
const NEW_FILE: &str = ".umlaut.side.new";
/// Larger side files are not ours.
const LARGEST: u64 = 64 << 20;

/// The side file of one directory, read.
#[derive(Default)]
pub(crate) struct Side {
    records: HashMap<Box<[u8]>, (u64, Record)>,
    lines: usize,
}

impl Side {
    fn parse(text: &[u8]) -> Side {
        let mut side = Side::default();
        for line in text.split(|byte| *byte == b'\n') {
            let Ok(line) = std::str::from_utf8(line) else { continue };
            side.lines += 1;
            if let Some(name) = line.strip_prefix("- ") {
                side.records.remove(&*unescape(name));
            } else if let Some((name, ino, record)) = parse_record(line) {
                side.records.insert(name, (ino, record));
            }
        }
        side
    }

    fn is_mostly_old(&self) -> bool {
        self.lines > 64 && self.lines > 4 * self.records.len()
    }

    fn text(&self) -> String {
        self.records.iter().map(|(name, (ino, record))| record_line(name, *ino, record)).collect()
    }
}

fn record_line(name: &[u8], ino: u64, record: &Record) -> String {
    let Record { uid, gid, mode, rdev } = record;
    format!("{ino} {uid} {gid} {:o} {rdev:x} {}\n", mode.bits(), escape(name))
}

/// The name, the inode number and the record of a line.
fn parse_record(line: &str) -> Option<(Box<[u8]>, u64, Record)> {
    let mut fields = line.split(' ');
    let mut next = || fields.next();
    let ino = next()?.parse().ok()?;
    let record = Record {
        uid: next()?.parse().ok()?,
        gid: next()?.parse().ok()?,
        mode: FileMode::from_bits_retain(u32::from_str_radix(next()?, 8).ok()?),
        rdev: u64::from_str_radix(next()?, 16).ok()?,
    };
    Some((unescape(next()?).into(), ino, record))
}

fn escape(name: &[u8]) -> String {
    name.iter().fold(String::new(), |mut text, byte| {
        if (b'!'..=b'~').contains(byte) && *byte != b'%' {
            text.push(char::from(*byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(text, "%{byte:02X}");
        }
        text
    })
}

fn unescape(text: &str) -> Vec<u8> {
    let mut parts = text.split('%');
    let mut name: Vec<u8> = parts.next().unwrap_or_default().into();
    for part in parts {
        match part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                name.push(byte);
                name.extend_from_slice(part.get(2..).unwrap_or_default().as_bytes());
            }
            None => name.extend_from_slice(part.as_bytes()),
        }
    }
    name
}

/// Opens a side file; never anything else than a regular file.
fn open(dir: &DirFd, name: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::NO_XDEV;
    let mode = if flags.contains(OFlags::CREATE) { Mode::RUSR | Mode::WUSR } else { Mode::empty() };
    let file = retry(|| rustix::fs::openat2(&dir.fd, name, flags, mode, resolve))?;
    if HostStat::of(&file)?.mode().is_regular() { Ok(file) } else { Err(HostErrno::PERM) }
}

fn load(dir: &DirFd) -> SysResult<Side> {
    let file = match open(dir, FILE, OFlags::RDONLY) {
        Ok(file) => file,
        Err(HostErrno::NOENT | HostErrno::LOOP | HostErrno::PERM | HostErrno::ACCESS) => {
            return Ok(Side::default());
        }
        Err(error) => return Err(errno(error)),
    };
    let mut text = Vec::new();
    let reading = std::io::Read::take(std::fs::File::from(file), LARGEST);
    std::io::Read::read_to_end(&mut std::io::BufReader::new(reading), &mut text)
        .map_err(|error| errno(HostErrno::from_io_error(&error).unwrap_or(HostErrno::IO)))?;
    Ok(Side::parse(&text))
}

fn write_all(file: &OwnedFd, mut text: &[u8]) -> rustix::io::Result<()> {
    while !text.is_empty() {
        let count = retry(|| rustix::io::write(file, text))?;
        text = text.get(count..).unwrap_or_default();
    }
    Ok(())
}

fn append(dir: &DirFd, line: &str) -> SysResult<()> {
    let file = open(dir, FILE, OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND).map_err(errno)?;
    write_all(&file, line.as_bytes()).map_err(errno)
}

fn rewrite(dir: &DirFd, side: &mut Side) -> SysResult<()> {
    if side.records.is_empty() {
        side.lines = 0;
        return retry(|| rustix::fs::unlinkat(&dir.fd, FILE, AtFlags::empty())).map_err(errno);
    }
    let file = open(dir, NEW_FILE, OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC).map_err(errno)?;
    write_all(&file, side.text().as_bytes()).map_err(errno)?;
    side.lines = side.records.len();
    retry(|| rustix::fs::renameat(&dir.fd, NEW_FILE, &dir.fd, FILE)).map_err(errno)
}

impl HostNode {
    /// Runs `work` on this directory's side file, which is read first if it was not yet.
    fn with_side<T>(
        &self,
        this: &Arc<Inode>,
        work: impl FnOnce(&mut Side, &DirFd) -> SysResult<T>,
    ) -> SysResult<T> {
        let dir = self.dir_fd(this)?;
        let mut slot = self.side.lock();
        if slot.is_none() {
            *slot = Some(Box::new(load(&dir)?));
        }
        slot.as_mut().ok_or(stale()).and_then(|side| work(side, &dir))
    }

    /// The record that this directory's side file has for `name`, if it is of the file `ino`.
    pub(crate) fn side_get(&self, this: &Arc<Inode>, name: &[u8], ino: u64) -> SysResult<Option<Record>> {
        self.with_side(this, |side, _| {
            Ok(side.records.get(name).filter(|(of, _)| *of == ino).map(|(_, record)| *record))
        })
    }

    /// Writes a record for `name` into this directory's side file, or removes it.
    pub(crate) fn side_put(
        &self,
        this: &Arc<Inode>,
        name: &[u8],
        ino: u64,
        record: Option<Record>,
    ) -> SysResult<()> {
        self.with_side(this, |side, dir| {
            match record {
                Some(record) => {
                    append(dir, &record_line(name, ino, &record))?;
                    side.records.insert(name.into(), (ino, record));
                }
                None if side.records.remove(name).is_none() => return Ok(()),
                None => append(dir, &format!("- {}\n", escape(name)))?,
            }
            side.lines += 1;
            if side.is_mostly_old() { rewrite(dir, side) } else { Ok(()) }
        })
    }

    /// The record that goes with `name`, whatever file it is of.
    pub(crate) fn side_of(&self, this: &Arc<Inode>, name: &[u8]) -> SysResult<Option<(u64, Record)>> {
        self.with_side(this, |side, _| Ok(side.records.get(name).copied()))
    }

    /// Whether the side file knows special files.
    pub(crate) fn side_has_special(&self, this: &Arc<Inode>) -> SysResult<bool> {
        let is_special =
            |record: &Record| !matches!(record.mode.file_type(), abi::FileType::LNK | abi::FileType::REG);
        self.with_side(this, |side, _| Ok(side.records.values().any(|(_, record)| is_special(record))))
    }

    /// Forgets what was read: the directory is being removed.
    pub(crate) fn forget_side(&self) {
        let side = self.side.lock().take();
        drop(side);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_a_name_counts() {
        let record = Record { uid: 5, gid: 6, mode: FileMode::from_bits_retain(0o120777), rdev: 0 };
        let odd = b"a b%\n\xff".as_slice();
        let mut text = record_line(b"plain", 7, &record) + &record_line(odd, 8, &record);
        text += &record_line(b"gone", 9, &record);
        text += "- gone\nnonsense\n1 2 3\n";
        let side = Side::parse(text.as_bytes());
        assert_eq!(side.records.len(), 2);
        assert_eq!(side.records.get(odd), Some(&(8, record)));
        assert_eq!(Side::parse(side.text().as_bytes()).records, side.records);
    }

    #[test]
    fn names_escape_and_come_back() {
        for name in [b"".as_slice(), b"%", b"%4", b"a%zz", b"\x00\xff ", b"plain"] {
            assert_eq!(unescape(&escape(name)), name);
        }
    }
}
