//! Making files on the host: without privileges, and whole before a guest can find them.
//!
//! What needs a [record](crate::record) is made without a name, or under a hidden one, and gets its name when the
//! record is there: so no guest can put another file in its place in between.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use abi::{Errno, FileMode, FileType};
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, ResolveFlags};
use rustix::io::Errno as HostErrno;
use sync::SysResult;
use vfs::{Inode, NewNode, NewNodeKind};

use crate::descriptors::DirFd;
use crate::error::{component, errno, retry, stale};
use crate::node::HostNode;
use crate::record::{self, Record};
use crate::stat::HostStat;

/// The host's permission bits for a guest's: no set-id or sticky bits, and never closed to ourselves.
pub(crate) fn host_permissions(file_type: FileType, permissions: u32) -> Mode {
    let least = if file_type == FileType::DIR { 0o700 } else { 0o600 };
    Mode::from_bits_truncate(match file_type {
        FileType::LNK => 0o777,
        _ => permissions & 0o777 | least,
    })
}

impl HostNode {
    pub(crate) fn must_be_writable(&self) -> SysResult<()> {
        if self.fs.options.writable { Ok(()) } else { Err(Errno::EROFS.into()) }
    }

    /// A name that a guest may give to something in this directory.
    pub(crate) fn new_name<'a>(&self, name: &'a [u8]) -> SysResult<&'a [u8]> {
        self.must_be_writable()?;
        let name = component(name)?;
        if self.hides(name) { Err(Errno::EPERM.into()) } else { Ok(name) }
    }

    /// The record that a new file needs; `None` if the host's file tells it all.
    fn record_of(&self, node: &NewNode<'_>, file_type: FileType) -> Option<Record> {
        if !self.fs.keeps_records() {
            return None;
        }
        let rdev = match node.kind {
            NewNodeKind::CharDevice(rdev) | NewNodeKind::BlockDevice(rdev) => rdev,
            _ => 0,
        };
        let permissions = if file_type == FileType::LNK { 0o777 } else { node.permissions };
        let mode = FileMode::new(file_type, permissions);
        let record = Record { uid: node.uid, gid: node.gid, mode, rdev };
        let on_host = match file_type {
            FileType::LNK => permissions,
            FileType::REG | FileType::DIR => host_permissions(file_type, permissions).bits(),
            _ => return Some(record),
        };
        let (uid, gid) = self.fs.own_ids();
        (on_host != permissions || (uid, gid) != (node.uid, node.gid)).then_some(record)
    }

    pub(crate) fn make(&self, this: &Arc<Inode>, name: &[u8], node: &NewNode<'_>) -> SysResult<Arc<Inode>> {
        let name = self.new_name(name)?;
        match self.make_in(this, name, node) {
            Err(error) if error.errno() == Some(Errno::EACCES) && self.fs.keeps_records() => {
                self.open_up(this, &self.handle(this)?)?;
                self.make_in(this, name, node)
            }
            other => other,
        }
    }

    fn make_in(&self, this: &Arc<Inode>, name: &[u8], node: &NewNode<'_>) -> SysResult<Arc<Inode>> {
        let file_type = type_of(&node.kind);
        let is_special = !matches!(file_type, FileType::REG | FileType::DIR | FileType::LNK);
        if is_special && !self.fs.keeps_records() {
            return Err(Errno::EPERM.into());
        }
        let record = self.record_of(node, file_type);
        // A special file's stand-in is nobody else's business.
        let mode = host_permissions(file_type, if is_special { 0 } else { node.permissions });
        let dir = self.dir_fd(this)?;
        if is_special {
            self.mark_special(this)?;
        }
        let stat = match (file_type, record) {
            (FileType::DIR, None) => {
                retry(|| rustix::fs::mkdirat(&dir.fd, name, mode)).map_err(errno)?;
                self.settle(&dir, name, file_type, mode)?
            }
            (FileType::DIR, Some(record)) => self.make_hidden(this, &dir, name, record, |hidden| {
                rustix::fs::mkdirat(&dir.fd, hidden, mode).map(|()| mode)
            })?,
            (FileType::LNK, record) => self.make_link(this, &dir, name, node, record)?,
            (_, record) => self.make_file(this, &dir, name, mode, record)?,
        };
        let inode = self.fs.intern(&stat, file_type, None)?;
        if let Some(node) = inode.downcast::<HostNode>() {
            node.add_place(this, name, inode.is_dir());
            if let Some(record) = record {
                node.cache_record(stat.changed(), Some(record));
            }
        }
        Ok(inode)
    }

    fn make_file(
        &self,
        this: &Arc<Inode>,
        dir: &DirFd,
        name: &[u8],
        mode: Mode,
        record: Option<Record>,
    ) -> SysResult<HostStat> {
        let Some(record) = record else {
            let file = self.create_at(dir, name, mode)?;
            return fix_mode(&file, mode);
        };
        if let Some(file) = self.unnamed(dir, mode)?
            && record::write_new(&self.fs, &file, record)?
        {
            fix_mode(&file, mode)?;
            self.link_open(&file, dir, name)?;
            return HostStat::of(&file).map_err(errno);
        }
        self.make_hidden(this, dir, name, record, |hidden| {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            rustix::fs::openat(&dir.fd, hidden, flags, mode).map(|_| mode)
        })
    }

    /// Creates a regular file.
    fn create_at(&self, dir: &DirFd, name: &[u8], mode: Mode) -> SysResult<OwnedFd> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let create = || rustix::fs::openat2(&dir.fd, name, flags | OFlags::NONBLOCK, mode, resolve);
        self.fs.with_descriptors(create).map_err(errno)
    }

    /// A regular file without a name; `None` where the host's file system has none.
    fn unnamed(&self, dir: &DirFd, mode: Mode) -> SysResult<Option<OwnedFd>> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
        match self.fs.with_descriptors(|| rustix::fs::openat(&dir.fd, ".", flags, mode)) {
            Ok(file) => Ok(Some(file)),
            Err(HostErrno::OPNOTSUPP | HostErrno::ISDIR | HostErrno::INVAL) => Ok(None),
            Err(error) => Err(errno(error)),
        }
    }

    /// Gives what is open as `file` a name.
    pub(crate) fn link_open(&self, file: &OwnedFd, dir: &DirFd, name: &[u8]) -> SysResult<()> {
        let number = rustix::path::DecInt::from_fd(file);
        let link = || {
            rustix::fs::linkat(&self.fs.proc_fd, number.as_c_str(), &dir.fd, name, AtFlags::SYMLINK_FOLLOW)
        };
        retry(link).map_err(errno)
    }

    fn make_link(
        &self,
        this: &Arc<Inode>,
        dir: &DirFd,
        name: &[u8],
        node: &NewNode<'_>,
        record: Option<Record>,
    ) -> SysResult<HostStat> {
        let NewNodeKind::Symlink(target) = node.kind else { return Err(Errno::EINVAL.into()) };
        let Some(record) = record else {
            retry(|| rustix::fs::symlinkat(target, &dir.fd, name)).map_err(errno)?;
            return HostStat::at(&dir.fd, name).map_err(errno);
        };
        self.make_hidden(this, dir, name, record, |hidden| {
            rustix::fs::symlinkat(target, &dir.fd, hidden).map(|()| Mode::empty())
        })
    }

    /// Makes something under a hidden name, writes its record, and then gives it its name. `make` returns the mode
    /// that it should have.
    fn make_hidden(
        &self,
        this: &Arc<Inode>,
        dir: &DirFd,
        name: &[u8],
        record: Record,
        make: impl Fn(&[u8]) -> rustix::io::Result<Mode>,
    ) -> SysResult<HostStat> {
        // Most of what is refused is refused here, before anything is made.
        if HostStat::at(&dir.fd, name).is_ok() {
            return Err(Errno::EEXIST.into());
        }
        let hidden = loop {
            let hidden = hidden_name();
            match retry(|| make(&hidden)) {
                // Left over from another run.
                Err(HostErrno::EXIST) => {}
                Err(error) => return Err(errno(error)),
                Ok(mode) => break (hidden, mode),
            }
        };
        let (hidden, mode) = hidden;
        let made = self.finish_hidden(this, dir, name, &hidden, mode, record);
        if made.is_err() {
            let flags = if record.mode.is_dir() { AtFlags::REMOVEDIR } else { AtFlags::empty() };
            // What cannot be removed stays hidden; removing the directory removes it.
            let _ = rustix::fs::unlinkat(&dir.fd, hidden.as_slice(), flags);
        }
        made
    }

    fn finish_hidden(
        &self,
        this: &Arc<Inode>,
        dir: &DirFd,
        name: &[u8],
        hidden: &[u8],
        mode: Mode,
        record: Record,
    ) -> SysResult<HostStat> {
        let is_link = record.mode.is_symlink();
        let file = self.fs.open_path(&dir.fd, hidden, OFlags::empty(), false).map_err(errno)?;
        let mut stat = HostStat::of(&file).map_err(errno)?;
        if !is_link && stat.mode().permissions() != mode.bits() {
            self.fs.chmod(&file, mode)?;
        }
        let in_side = is_link || !record::write_new(&self.fs, &file, record)?;
        if in_side {
            self.side_put(this, name, stat.id.ino, Some(record))?;
        }
        let renamed =
            retry(|| rustix::fs::renameat_with(&dir.fd, hidden, &dir.fd, name, RenameFlags::NOREPLACE));
        if let Err(error) = renamed {
            if in_side {
                self.side_put(this, name, stat.id.ino, None)?;
            }
            return Err(errno(error));
        }
        stat = HostStat::of(&file).map_err(errno)?;
        Ok(stat)
    }

    /// What was just made as `name`, with the mode it should have: the process's umask, and the directory's own
    /// default attributes, may have changed it.
    fn settle(&self, dir: &DirFd, name: &[u8], file_type: FileType, mode: Mode) -> SysResult<HostStat> {
        let stat = HostStat::at(&dir.fd, name).map_err(errno)?;
        if stat.file_type() != file_type {
            return Err(stale());
        }
        if stat.mode().permissions() == mode.bits() {
            return Ok(stat);
        }
        let file = self.fs.open_path(&dir.fd, name, OFlags::empty(), false).map_err(errno)?;
        if HostStat::of(&file).map_err(errno)?.id != stat.id {
            return Err(stale());
        }
        self.fs.chmod(&file, mode)?;
        HostStat::of(&file).map_err(errno)
    }

    /// A file without a name, for `O_TMPFILE`.
    pub(crate) fn make_unnamed(&self, this: &Arc<Inode>, node: &NewNode<'_>) -> SysResult<Arc<Inode>> {
        self.must_be_writable()?;
        let dir = self.dir_fd(this)?;
        let mode = host_permissions(FileType::REG, node.permissions);
        let file = self.unnamed(&dir, mode)?.ok_or(Errno::EOPNOTSUPP)?;
        let record = self.record_of(node, FileType::REG);
        if let Some(record) = record
            && !record::write_new(&self.fs, &file, record)?
        {
            // It has no place where a side file could know it.
            return Err(Errno::EOPNOTSUPP.into());
        }
        let stat = fix_mode(&file, mode)?;
        let inode = self.fs.intern_unnamed(&stat, Arc::new(file))?;
        if let Some(node) = inode.downcast::<HostNode>() {
            node.cache_record(stat.changed(), record);
        }
        Ok(inode)
    }
}

fn fix_mode(file: &OwnedFd, mode: Mode) -> SysResult<HostStat> {
    let stat = HostStat::of(file).map_err(errno)?;
    if stat.mode().permissions() == mode.bits() {
        return Ok(stat);
    }
    rustix::fs::fchmod(file, mode).map_err(errno)?;
    HostStat::of(file).map_err(errno)
}

fn type_of(kind: &NewNodeKind<'_>) -> FileType {
    match kind {
        NewNodeKind::File => FileType::REG,
        NewNodeKind::Directory => FileType::DIR,
        NewNodeKind::Symlink(_) => FileType::LNK,
        NewNodeKind::Fifo => FileType::FIFO,
        NewNodeKind::Socket => FileType::SOCK,
        NewNodeKind::CharDevice(_) => FileType::CHR,
        NewNodeKind::BlockDevice(_) => FileType::BLK,
    }
}

fn hidden_name() -> Vec<u8> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let count = NEXT.fetch_add(1, Ordering::Relaxed);
    format!(".umlaut.new.{}.{count:x}", std::process::id()).into_bytes()
}
