//! Copy-up: a file of a lower layer is made in the upper one, with all that belongs to it, before its first change.
//!
//! It is made without a name (or in `work`) and linked into place when it is whole. The node then switches to it.

use std::sync::Arc;

use abi::{Errno, FileType, OpenFlags};
use sync::SysResult;
use vfs::{
    AttributeChange, Attributes, FileDescription, Inode, KernelCaller, NewNode, NewNodeKind, OpenHow,
    RenameMode, Seek, SetTime, SliceSink, SliceSource, XattrMode,
};

use crate::Overlay;
use crate::marks;
use crate::node::OverlayNode;
use crate::overlay::Upper;

/// Bytes copied at once.
const CHUNK: usize = 128 * 1024;
/// Deeper trees than this have lost their way.
const DEEPEST: usize = 1 << 16;

impl OverlayNode {
    /// The file's inode in the upper layer, made now if need be. Not to be called with the tree locked.
    pub(crate) fn copy_up(&self, this: &Arc<Inode>) -> SysResult<Arc<Inode>> {
        self.copy_up_part(this, u64::MAX)
    }

    /// The same with only the first `size` bytes of its content, since the rest is about to be cut off.
    pub(crate) fn copy_up_part(&self, this: &Arc<Inode>, size: u64) -> SysResult<Arc<Inode>> {
        if let Some(upper) = self.upper() {
            return Ok(upper);
        }
        self.overlay.upper()?;
        // Its directories first, from the top down. Trees can be deep: no recursion.
        let mut missing = Vec::new();
        let mut at = if self.is_removed() { None } else { self.place() };
        while let Some((dir, _)) = at {
            let node = dir.downcast::<OverlayNode>().ok_or(Errno::EIO)?;
            if node.upper().is_some() {
                break;
            }
            at = node.place();
            missing.push(dir);
            if missing.len() > DEEPEST {
                return Err(Errno::ESTALE.into());
            }
        }
        for dir in missing.iter().rev() {
            dir.downcast::<OverlayNode>().ok_or(Errno::EIO)?.copy_up_one(dir, u64::MAX)?;
        }
        self.copy_up_one(this, size)
    }

    /// Copies up a file whose directory is in the upper layer.
    fn copy_up_one(&self, this: &Arc<Inode>, size: u64) -> SysResult<Arc<Inode>> {
        let (lower, is_upper) = self.real()?;
        if is_upper {
            return Ok(lower);
        }
        let attributes = lower.ops.attributes(&lower)?;
        let number = self.number(&lower, &attributes)?;
        let upper = self.overlay.upper()?;
        let made = upper.make(&lower, &attributes, size)?;
        if !lower.is_dir() && attributes.nlink > 1 {
            // The link is broken; the copy is a file of its own.
            self.forget_number();
        } else {
            marks::set_origin(&made.inode, number)?;
        }
        self.put_in_place(this, upper, made)
    }

    /// Gives the copy its name, and switches to it.
    fn put_in_place(&self, this: &Arc<Inode>, upper: &Upper, made: Made) -> SysResult<Arc<Inode>> {
        let _tree = self.overlay.tree.lock();
        if let Some(other) = self.upper() {
            // Somebody was faster.
            upper.discard(&made);
            return Ok(other);
        }
        // Known before it can be found.
        self.overlay.publish(this, &made.inode);
        self.set_upper(made.inode.clone());
        let placed = match self.place() {
            Some((dir, name)) if !self.is_removed() => {
                let dir =
                    dir.downcast::<OverlayNode>().and_then(OverlayNode::upper).ok_or(Errno::ESTALE.into());
                dir.and_then(|dir| upper.place_unnoticed(&made, &dir, &name))
            }
            _ => upper.forget_name(&made),
        };
        if let Err(error) = placed {
            self.unset_upper();
            upper.discard(&made);
            // Something else is there by now.
            let is_taken = error.errno() == Some(Errno::EEXIST);
            return Err(if is_taken { Errno::ESTALE.into() } else { error });
        }
        self.overlay.note_copy_up();
        Ok(made.inode)
    }
}

/// A file made in the upper layer that has not got its place yet.
pub(crate) struct Made {
    pub(crate) inode: Arc<Inode>,
    /// Its name in `work`, if it has one.
    name: Option<Vec<u8>>,
}

impl Upper {
    /// Makes a copy of `lower`.
    fn make(&self, lower: &Arc<Inode>, attributes: &Attributes, size: u64) -> SysResult<Made> {
        let target;
        let kind = match lower.file_type {
            FileType::REG => NewNodeKind::File,
            FileType::DIR => NewNodeKind::Directory,
            FileType::LNK => {
                target = lower.ops.read_link(lower)?;
                NewNodeKind::Symlink(&target)
            }
            FileType::FIFO => NewNodeKind::Fifo,
            FileType::SOCK => NewNodeKind::Socket,
            FileType::CHR => NewNodeKind::CharDevice(attributes.rdev),
            FileType::BLK => NewNodeKind::BlockDevice(attributes.rdev),
            _ => return Err(Errno::EIO.into()),
        };
        let permissions = attributes.mode.permissions();
        let node = NewNode { kind, permissions, uid: attributes.uid, gid: attributes.gid };
        let made = self.make_new(&node)?;
        let copied = self.copy_into(&made.inode, lower, attributes, size);
        if let Err(error) = copied {
            self.discard(&made);
            return Err(error);
        }
        Ok(made)
    }

    fn copy_into(
        &self,
        made: &Arc<Inode>,
        lower: &Arc<Inode>,
        attributes: &Attributes,
        size: u64,
    ) -> SysResult<()> {
        if lower.file_type == FileType::REG {
            copy_content(lower, made, attributes.size.min(size))?;
        }
        copy_xattrs(lower, made)?;
        made.ops.set_attributes(made, &times_of(attributes))
    }

    /// Makes a node that nobody finds: a file without a name where that can be, else one in `work`.
    pub(crate) fn make_new(&self, node: &NewNode<'_>) -> SysResult<Made> {
        if matches!(node.kind, NewNodeKind::File) {
            match self.work.ops.create_unnamed(&self.work, node) {
                Err(error) if error.errno() == Some(Errno::EOPNOTSUPP) => {}
                other => return other.map(|inode| Made { inode, name: None }),
            }
        }
        loop {
            let name = self.temporary_name();
            match self.work.ops.create(&self.work, &name, node) {
                // Left over from another run.
                Err(error) if error.errno() == Some(Errno::EEXIST) => {}
                other => return other.map(|inode| Made { inode, name: Some(name) }),
            }
        }
    }

    /// Gives what was made the name `name` in `dir`, where nothing is.
    pub(crate) fn place(&self, made: &Made, dir: &Arc<Inode>, name: &[u8]) -> SysResult<()> {
        match &made.name {
            None => dir.ops.link(dir, name, &made.inode),
            Some(own) => self.work.ops.rename(&self.work, own, dir, name, RenameMode::NoReplace),
        }
    }

    /// The same without a trace in the directory's times: nothing changed that one sees.
    fn place_unnoticed(&self, made: &Made, dir: &Arc<Inode>, name: &[u8]) -> SysResult<()> {
        let before = dir.ops.attributes(dir)?;
        self.place(made, dir, name)?;
        // As overlayfs: if it can be had.
        let _ = dir.ops.set_attributes(dir, &times_of(&before));
        Ok(())
    }

    /// Gives it the name `name` in `dir`, in place of a file that is there.
    pub(crate) fn place_over(&self, made: &Made, dir: &Arc<Inode>, name: &[u8]) -> SysResult<()> {
        let own = self.own_name(made)?;
        let mode = if made.inode.is_dir() { RenameMode::Exchange } else { RenameMode::Replace };
        self.work.ops.rename(&self.work, &own, dir, name, mode)?;
        if mode == RenameMode::Exchange {
            self.clean(&own);
        }
        Ok(())
    }

    /// Its name in `work`, given now if it has none.
    pub(crate) fn own_name(&self, made: &Made) -> SysResult<Vec<u8>> {
        if let Some(own) = &made.name {
            return Ok(own.clone());
        }
        let own = self.temporary_name();
        self.work.ops.link(&self.work, &own, &made.inode)?;
        Ok(own)
    }

    /// Takes its name away, for a file whose own name is gone.
    fn forget_name(&self, made: &Made) -> SysResult<()> {
        match &made.name {
            None => Ok(()),
            Some(own) if made.inode.is_dir() => self.work.ops.rmdir(&self.work, own, &made.inode),
            Some(own) => self.work.ops.unlink(&self.work, own, &made.inode),
        }
    }

    /// Removes what was made and is not wanted.
    pub(crate) fn discard(&self, made: &Made) {
        // What cannot be removed stays in `work`, where nobody sees it.
        let _ = self.forget_name(made);
    }

    /// Removes `name` from `work`: a file, or a directory with nothing but whiteouts in it.
    pub(crate) fn clean(&self, name: &[u8]) {
        // As above: a rest in `work` does no harm.
        let _ = self.try_clean(name);
    }

    fn try_clean(&self, name: &[u8]) -> SysResult<()> {
        let rest = self.work.ops.lookup(&self.work, name)?;
        if !rest.is_dir() {
            return self.work.ops.unlink(&self.work, name, &rest);
        }
        for inner in crate::dir::names(&rest)? {
            let whiteout = rest.ops.lookup(&rest, &inner)?;
            if marks::is_whiteout(&whiteout)? {
                rest.ops.unlink(&rest, &inner, &whiteout)?;
            }
        }
        self.work.ops.rmdir(&self.work, name, &rest)
    }
}

/// Sets the times that `attributes` has.
fn times_of(attributes: &Attributes) -> AttributeChange {
    AttributeChange {
        atime: Some(SetTime::At(attributes.atime)),
        mtime: Some(SetTime::At(attributes.mtime)),
        ..AttributeChange::default()
    }
}

/// Copies the first `size` bytes of a file, leaving holes holes.
fn copy_content(from: &Arc<Inode>, to: &Arc<Inode>, size: u64) -> SysResult<()> {
    if size == 0 {
        return Ok(());
    }
    let caller = KernelCaller::new();
    let open = |inode: &Arc<Inode>, flags| -> SysResult<Arc<FileDescription>> {
        let ops = inode.ops.open(inode, OpenHow { flags }, &caller)?;
        Ok(FileDescription::new(ops, None, flags))
    };
    let source = open(from, OpenFlags::RDONLY)?;
    let target = open(to, OpenFlags::WRONLY)?;
    let mut buffer = vec![0; CHUNK];
    let mut at = 0;
    while at < size {
        let (start, end) = data_from(&source, at, size);
        at = start;
        while at < end {
            let want = usize::try_from(end - at).unwrap_or(CHUNK).min(CHUNK);
            let mut sink = SliceSink { bytes: buffer.get_mut(..want).unwrap_or_default(), filled: 0 };
            let got = source.ops.read_at(&source, &caller, at, &mut sink)?;
            if got == 0 {
                // Shorter by now.
                return Ok(());
            }
            let mut rest = SliceSource { bytes: buffer.get(..got).unwrap_or_default(), taken: 0 };
            let mut written = 0;
            while written < got {
                let count = target.ops.write_at(&target, &caller, at + written as u64, &mut rest)?;
                if count == 0 {
                    return Err(Errno::EIO.into());
                }
                written += count;
            }
            at += got as u64;
        }
    }
    // A hole at the end.
    target.ops.truncate(&target, &caller, size)
}

/// The next stretch of data at or behind `at`, up to `size`.
fn data_from(file: &FileDescription, at: u64, size: u64) -> (u64, u64) {
    let Ok(position) = i64::try_from(at) else { return (size, size) };
    match file.ops.seek(file, Seek::Data(position)) {
        Ok(start) => {
            let end = i64::try_from(start).ok().and_then(|start| file.ops.seek(file, Seek::Hole(start)).ok());
            (start.min(size), end.unwrap_or(size).min(size))
        }
        Err(error) if error.errno() == Some(Errno::ENXIO) => (size, size),
        // The layer does not know holes.
        Err(_) => (at, size),
    }
}

fn copy_xattrs(from: &Arc<Inode>, to: &Arc<Inode>) -> SysResult<()> {
    let names = match from.ops.list_xattrs(from) {
        Ok(names) => names,
        Err(error) => return marks::none(error),
    };
    for name in names.iter().filter(|name| !marks::is_private(name)) {
        let value = match from.ops.get_xattr(from, name) {
            Ok(value) => value,
            Err(error) => {
                marks::none(error)?;
                continue;
            }
        };
        to.ops.set_xattr(to, name, &value, XattrMode::Any).or_else(marks::none)?;
    }
    Ok(())
}

/// The overlay's work on its own tree, for the other modules.
impl Overlay {
    /// A whiteout in `work`.
    pub(crate) fn make_whiteout(&self) -> SysResult<Made> {
        let kind = NewNodeKind::CharDevice(0);
        self.upper()?.make_new(&NewNode { kind, permissions: 0, uid: 0, gid: 0 })
    }
}
