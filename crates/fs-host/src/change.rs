//! Changing what is there: attributes, links, removal, renaming.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use abi::{Errno, FileMode, FileType};
use rustix::fd::AsFd;
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};
use rustix::io::Errno as HostErrno;
use rustix::path::DecInt;
use sync::SysResult;
use vfs::{AttributeChange, Caller, Capability, Inode, RenameMode, SetTime};

use crate::HostFs;
use crate::create::host_permissions;
use crate::error::{component, errno, retry, stale};
use crate::node::{Handle, HostNode};
use crate::record::Record;
use crate::side::HIDDEN;
use crate::stat::HostStat;

impl HostFs {
    /// Sets the host's permission bits of what is open as `file`, which is no symbolic link.
    pub(crate) fn chmod(&self, file: impl AsFd, mode: Mode) -> SysResult<()> {
        let number = DecInt::from_fd(&file);
        let change = || rustix::fs::chmodat(&self.proc_fd, number.as_c_str(), mode, AtFlags::empty());
        retry(change).map_err(errno)
    }
}

impl HostNode {
    pub(crate) fn change(&self, this: &Arc<Inode>, change: &AttributeChange) -> SysResult<()> {
        self.must_be_writable()?;
        let handle = self.handle(this)?;
        if change.permissions.is_some() || change.uid.is_some() || change.gid.is_some() {
            self.change_owner_and_mode(this, &handle, change)?;
        }
        if let Some(size) = change.size {
            if this.file_type != FileType::REG {
                return Err(Errno::EINVAL.into());
            }
            let file = self.reopen(this, &handle, OFlags::WRONLY)?;
            retry(|| rustix::fs::ftruncate(&file, size)).map_err(errno)?;
        }
        if change.atime.is_some() || change.mtime.is_some() {
            let times = Timestamps { last_access: time(change.atime), last_modification: time(change.mtime) };
            let number = DecInt::from_fd(&handle);
            let set = || rustix::fs::utimensat(&self.fs.proc_fd, number.as_c_str(), &times, AtFlags::empty());
            retry(set).map_err(errno)?;
        }
        Ok(())
    }

    fn change_owner_and_mode(
        &self,
        this: &Arc<Inode>,
        handle: &Handle,
        change: &AttributeChange,
    ) -> SysResult<()> {
        let _changes = self.changes.lock();
        let stat = HostStat::of(handle).map_err(errno)?;
        let old = self.shown(this, &stat)?;
        let permissions = change.permissions.unwrap_or(old.mode.permissions());
        let new = Record {
            uid: change.uid.unwrap_or(old.uid),
            gid: change.gid.unwrap_or(old.gid),
            mode: old.mode.with_permissions(permissions),
            rdev: old.rdev,
        };
        let mut plain = stat.attributes(0);
        (plain.uid, plain.gid) = self.fs.options.owners.shown(plain.uid, plain.gid);
        let mut changed = Ok(());
        if this.file_type != FileType::LNK && permissions != old.mode.permissions() {
            // A special file's stand-in is nobody else's business.
            let is_stand_in = this.file_type != stat.file_type();
            let mode = host_permissions(stat.file_type(), if is_stand_in { 0 } else { permissions });
            changed = self.fs.chmod(handle, mode);
            plain.mode = stat.mode().with_permissions(mode.bits());
        }
        if !self.fs.keeps_records() {
            changed?;
            // Without records only what the host's file says already can be had.
            let same = (new.uid, new.gid) == (plain.uid, plain.gid);
            return if same { Ok(()) } else { Err(Errno::EPERM.into()) };
        }
        if changed.is_ok() && new == Record::of(&plain) {
            if self.record(this, &stat)?.is_some() {
                self.write_record(handle, None)?;
            } else {
                self.cache_record(HostStat::of(handle).map_err(errno)?.changed(), None);
            }
            return Ok(());
        }
        // A file of another host user may be ours to write to: then the record tells what the host's mode cannot.
        self.write_record(handle, Some(new))
    }

    /// Opens this regular file or directory again. One that the host closes to us, its owner, is opened up first.
    pub(crate) fn reopen(&self, this: &Arc<Inode>, handle: &Handle, flags: OFlags) -> SysResult<OwnedFd> {
        match self.fs.reopen(handle, flags) {
            Err(HostErrno::ACCESS) if self.fs.options.writable && self.fs.keeps_records() => {
                self.open_up(this, handle)?;
                self.fs.reopen(handle, flags).map_err(errno)
            }
            other => other.map_err(errno),
        }
    }

    /// Gives the owner, us, the host's permissions that we need, and keeps the mode in a record.
    pub(crate) fn open_up(&self, this: &Arc<Inode>, handle: &Handle) -> SysResult<()> {
        let _changes = self.changes.lock();
        let stat = HostStat::of(handle).map_err(errno)?;
        let shown = self.shown(this, &stat)?;
        let mode = host_permissions(this.file_type, stat.mode().permissions());
        if mode.bits() == stat.mode().permissions() & 0o777 {
            return Err(Errno::EACCES.into());
        }
        self.fs.chmod(handle, mode).map_err(|_| Errno::EACCES)?;
        self.write_record(handle, Some(Record::of(&shown)))
    }

    /// Runs a change of this directory; one that the host closes to us, its owner, is opened up first.
    fn changing<T>(
        &self,
        this: &Arc<Inode>,
        act: impl Fn() -> rustix::io::Result<T>,
    ) -> rustix::io::Result<T> {
        match retry(&act) {
            Err(HostErrno::ACCESS) if self.fs.keeps_records() => {
                let opened = self.handle(this).and_then(|handle| self.open_up(this, &handle));
                if opened.is_err() {
                    return Err(HostErrno::ACCESS);
                }
                retry(&act)
            }
            other => other,
        }
    }

    /// Clears set-id bits before `caller` writes to this file, as Linux does unless it has CAP_FSETID.
    pub(crate) fn before_write(&self, this: &Arc<Inode>, caller: &dyn Caller) -> SysResult<()> {
        if !self.has_set_id() || caller.cred().capable(Capability::FSETID) {
            return Ok(());
        }
        let stat = self.stat()?;
        let permissions = self.shown(this, &stat)?.mode.permissions();
        let mut without = permissions & !FileMode::SUID.bits();
        if permissions & FileMode::XGRP.bits() != 0 {
            without &= !FileMode::SGID.bits();
        }
        if without == permissions {
            return Ok(());
        }
        self.change(this, &AttributeChange { permissions: Some(without), ..AttributeChange::default() })
    }

    pub(crate) fn add_link(&self, this: &Arc<Inode>, name: &[u8], target: &Arc<Inode>) -> SysResult<()> {
        let name = self.new_name(name)?;
        let node = target.downcast::<HostNode>().filter(|node| Arc::ptr_eq(&node.fs, &self.fs));
        let node = node.ok_or(Errno::EXDEV)?;
        let dir = self.dir_fd(this)?;
        let handle = node.handle(target)?;
        let stat = HostStat::of(&handle).map_err(errno)?;
        if !matches!(target.file_type, FileType::REG | FileType::DIR | FileType::LNK) {
            self.mark_special(this)?;
        }
        let _changes = node.changes.lock();
        let record = node.record(target, &stat)?;
        let number = DecInt::from_fd(&handle);
        let link = || {
            rustix::fs::linkat(&self.fs.proc_fd, number.as_c_str(), &dir.fd, name, AtFlags::SYMLINK_FOLLOW)
        };
        retry(link).map_err(errno)?;
        node.add_place(this, name, false);
        node.unpin();
        if let Some(record) = record {
            // Where the record is an attribute this changes nothing; a side file learns the new name.
            node.write_record(&handle, Some(record))?;
        }
        Ok(())
    }

    /// Makes sure that `name` in this directory still is `child`.
    fn must_still_be(&self, this: &Arc<Inode>, name: &[u8], child: &Arc<Inode>) -> SysResult<()> {
        let dir = self.dir_fd(this)?;
        let stat = HostStat::at(&dir.fd, name).map_err(errno)?;
        match child.downcast::<HostNode>() {
            Some(node) if node.id == stat.id => Ok(()),
            Some(_) => Err(stale()),
            // A stand-in: something is mounted there.
            None => Err(Errno::EBUSY.into()),
        }
    }

    pub(crate) fn remove(&self, this: &Arc<Inode>, name: &[u8], child: &Arc<Inode>) -> SysResult<()> {
        let name = self.new_name(name)?;
        self.must_still_be(this, name, child)?;
        let dir = self.dir_fd(this)?;
        if child.is_dir() {
            let remove = || rustix::fs::unlinkat(&dir.fd, name, AtFlags::REMOVEDIR);
            match self.changing(this, remove) {
                Err(HostErrno::NOTEMPTY | HostErrno::EXIST) if self.empty_of_ours(child)? => {
                    self.changing(this, remove).map_err(errno)?;
                }
                other => other.map_err(errno)?,
            }
        } else {
            self.changing(this, || rustix::fs::unlinkat(&dir.fd, name, AtFlags::empty())).map_err(errno)?;
        }
        self.name_is_gone(this, name, child)
    }

    /// Notes that `name` is no longer `child`'s.
    fn name_is_gone(&self, this: &Arc<Inode>, name: &[u8], child: &Arc<Inode>) -> SysResult<()> {
        if let Some(node) = child.downcast::<HostNode>() {
            node.remove_place(this, name);
            if child.is_dir() {
                node.give_up_dir_fd();
                node.forget_side();
            }
        }
        if self.fs.keeps_records() { self.side_put(this, name, 0, None) } else { Ok(()) }
    }

    /// Removes our hidden files from a directory that has nothing else; whether it had only those.
    fn empty_of_ours(&self, child: &Arc<Inode>) -> SysResult<bool> {
        let Some(node) = child.downcast::<HostNode>().filter(|_| self.fs.keeps_records() && child.is_dir())
        else {
            return Ok(false);
        };
        let dir = node.dir_fd(child)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let file = self.fs.with_descriptors(|| rustix::fs::openat(&dir.fd, ".", flags, Mode::empty()));
        let mut ours = Vec::new();
        for entry in rustix::fs::Dir::read_from(file.map_err(errno)?).map_err(errno)? {
            let entry = entry.map_err(errno)?;
            match entry.file_name().to_bytes() {
                b"." | b".." => {}
                name if name.starts_with(HIDDEN) => ours.push(name.to_vec()),
                _ => return Ok(false),
            }
        }
        for name in &ours {
            let removed = rustix::fs::unlinkat(&dir.fd, name.as_slice(), AtFlags::empty());
            if matches!(removed, Err(HostErrno::ISDIR)) {
                // A directory that was not finished: empty.
                rustix::fs::unlinkat(&dir.fd, name.as_slice(), AtFlags::REMOVEDIR).map_err(errno)?;
            }
        }
        node.forget_side();
        Ok(!ours.is_empty())
    }

    pub(crate) fn move_name(
        &self,
        this: &Arc<Inode>,
        name: &[u8],
        to_dir: &Arc<Inode>,
        to_name: &[u8],
        mode: RenameMode,
    ) -> SysResult<()> {
        let to_node = to_dir.downcast::<HostNode>().filter(|node| Arc::ptr_eq(&node.fs, &self.fs));
        let to_node = to_node.ok_or(Errno::EXDEV)?;
        let (name, to_name) = (self.new_name(component(name)?)?, to_node.new_name(to_name)?);
        let (from, to) = (self.dir_fd(this)?, to_node.dir_fd(to_dir)?);
        let known = |dir: &OwnedFd, name: &[u8]| match HostStat::at(dir, name) {
            Ok(stat) => Ok(Some((stat, self.fs.known(stat.id)))),
            Err(HostErrno::NOENT) => Ok(None),
            Err(error) => Err(errno(error)),
        };
        let (moved_stat, moved) = known(&from.fd, name)?.ok_or(Errno::ENOENT)?;
        let target = known(&to.fd, to_name)?;
        if self.fs.keeps_records() {
            self.carry_mark(this, to_node, to_dir, moved.as_ref())?;
            if mode == RenameMode::Exchange {
                let target = target.as_ref().and_then(|(_, inode)| inode.as_ref());
                self.carry_mark(to_dir, self, this, target)?;
            }
        }
        let target_stat = target.as_ref().map(|(stat, _)| *stat);
        let flags = match mode {
            RenameMode::Replace => RenameFlags::empty(),
            RenameMode::NoReplace => RenameFlags::NOREPLACE,
            RenameMode::Exchange => RenameFlags::EXCHANGE,
        };
        let same_file = target.as_ref().is_some_and(|(stat, _)| stat.id == moved_stat.id);
        let (moved, target) = (End { dir: this, name }, End { dir: to_dir, name: to_name });
        let step = || {
            self.fs.moves.during(|| {
                retry(|| rustix::fs::renameat_with(&from.fd, name, &to.fd, to_name, flags))?;
                // Of two names of one file nothing happened.
                if !same_file {
                    // Those that are in use by now: one that comes to be later was found later.
                    let known = |stat: &HostStat| self.fs.known(stat.id);
                    moved.places_moved(
                        &target,
                        known(&moved_stat),
                        target_stat.as_ref().and_then(known),
                        mode,
                    );
                }
                Ok(())
            })
        };
        let rename_and_note = || to_node.changing(to_dir, || self.changing(this, step));
        match rename_and_note() {
            Err(HostErrno::NOTEMPTY | HostErrno::EXIST) if mode == RenameMode::Replace => {
                let over = vfs::InodeOps::lookup(to_node, to_dir, to_name)?;
                if !self.empty_of_ours(&over)? {
                    return Err(Errno::ENOTEMPTY.into());
                }
                rename_and_note().map_err(errno)?;
            }
            other => other.map_err(errno)?,
        }
        if same_file || !self.fs.keeps_records() {
            return Ok(());
        }
        moved.records_moved(&target, mode)
    }

    /// Where `moved` is a special file, its new directory is marked.
    fn carry_mark(
        &self,
        this: &Arc<Inode>,
        to_node: &HostNode,
        to_dir: &Arc<Inode>,
        moved: Option<&Arc<Inode>>,
    ) -> SysResult<()> {
        let plain = moved
            .is_some_and(|inode| matches!(inode.file_type, FileType::REG | FileType::DIR | FileType::LNK));
        if plain || Arc::ptr_eq(this, to_dir) {
            return Ok(());
        }
        if moved.is_some() || self.may_have_special(this, &self.dir_fd(this)?.fd)? {
            to_node.mark_special(to_dir)?;
        }
        Ok(())
    }
}

/// A name that took part in a rename.
struct End<'a> {
    dir: &'a Arc<Inode>,
    name: &'a [u8],
}

impl End<'_> {
    /// Takes over the places that a rename of `moved` to `to`, where `target` was, changed.
    fn places_moved(
        &self,
        to: &End<'_>,
        moved: Option<Arc<Inode>>,
        target: Option<Arc<Inode>>,
        mode: RenameMode,
    ) {
        let (from, to) = ((self.dir, self.name), (to.dir, to.name));
        if let Some(inode) = moved
            && let Some(node) = inode.downcast::<HostNode>()
        {
            node.move_place(from, to, inode.is_dir());
        }
        if let Some(inode) = target
            && let Some(node) = inode.downcast::<HostNode>()
        {
            match mode {
                RenameMode::Exchange => node.move_place(to, from, inode.is_dir()),
                _ => node.remove_place(to.0, to.1),
            }
        }
    }

    /// Moves the records in side files.
    fn records_moved(&self, to: &End<'_>, mode: RenameMode) -> SysResult<()> {
        let (Some(dir), Some(to_dir)) = (self.dir.downcast::<HostNode>(), to.dir.downcast::<HostNode>())
        else {
            return Ok(());
        };
        let moved = dir.side_of(self.dir, self.name)?;
        let target = to_dir.side_of(to.dir, to.name)?;
        let put = |dir: &HostNode, at: &End<'_>, record: Option<(u64, Record)>| match record {
            Some((ino, record)) => dir.side_put(at.dir, at.name, ino, Some(record)),
            None => dir.side_put(at.dir, at.name, 0, None),
        };
        put(to_dir, to, moved)?;
        put(dir, self, if mode == RenameMode::Exchange { target } else { None })
    }
}

fn time(set: Option<SetTime>) -> Timespec {
    match set {
        None => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        Some(SetTime::Now) => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
        Some(SetTime::At(time)) => Timespec { tv_sec: time.sec, tv_nsec: time.nsec },
    }
}
