//! Open directories: the entries of all layers, merged when they are first read and kept with the description, so that
//! positions are stable (a position is an entry's index).

use std::any::Any;
use std::collections::HashSet;
use std::sync::Arc;

use abi::{Errno, FileType, OpenFlags};
use sync::order::File as FileLevel;
use sync::{Mutex, SysResult};
use vfs::{Caller, DirSink, FileDescription, FileOps, Inode, KernelCaller, OpenHow, Seek, UserWrite};

use crate::marks;
use crate::node::OverlayNode;

/// A merged entry.
struct Entry {
    name: Box<[u8]>,
    ino: u64,
    file_type: FileType,
}

/// An open directory.
pub(crate) struct OverlayDir {
    inode: Arc<Inode>,
    state: Mutex<FileLevel, State>,
}

#[derive(Default)]
struct State {
    position: u64,
    /// The entries, from the first read after the start on.
    entries: Option<Arc<[Entry]>>,
}

impl OverlayDir {
    pub(crate) fn new(inode: Arc<Inode>) -> OverlayDir {
        OverlayDir { inode, state: Mutex::default() }
    }

    fn node(&self) -> SysResult<&OverlayNode> {
        self.inode.downcast::<OverlayNode>().ok_or(Errno::EIO.into())
    }
}

impl FileOps for OverlayDir {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn read(&self, _: &FileDescription, _: &dyn Caller, _: &mut dyn UserWrite) -> SysResult<usize> {
        Err(Errno::EISDIR.into())
    }

    fn read_at(
        &self,
        _: &FileDescription,
        _: &dyn Caller,
        _: u64,
        _: &mut dyn UserWrite,
    ) -> SysResult<usize> {
        Err(Errno::EISDIR.into())
    }

    fn seek(&self, _: &FileDescription, to: Seek) -> SysResult<u64> {
        let mut state = self.state.lock();
        let to = match to {
            Seek::Set(at) => Some(at),
            Seek::Current(by) => state.position.checked_add_signed(by).and_then(|at| i64::try_from(at).ok()),
            _ => None,
        };
        let to = to.and_then(|at| u64::try_from(at).ok()).ok_or(Errno::EINVAL)?;
        state.position = to;
        if to == 0 {
            // rewinddir: what changed shows.
            state.entries = None;
        }
        Ok(to)
    }

    fn read_dir(&self, _: &FileDescription, _: &dyn Caller, to: &mut dyn DirSink) -> SysResult<()> {
        let (known, mut position) = {
            let state = self.state.lock();
            (state.entries.clone(), state.position)
        };
        let entries = match known {
            Some(entries) => entries,
            None => {
                let entries: Arc<[Entry]> = self.node()?.entries(&self.inode)?.into();
                self.state.lock().entries = Some(entries.clone());
                entries
            }
        };
        let start = usize::try_from(position).unwrap_or(usize::MAX);
        for entry in entries.iter().skip(start) {
            if !to.entry(&entry.name, entry.ino, entry.file_type, position + 1) {
                break;
            }
            position += 1;
        }
        self.state.lock().position = position;
        Ok(())
    }

    fn sync(&self, _data_only: bool) -> SysResult<()> {
        // The upper layer's directory is what could be lost.
        let Some(upper) = self.node()?.upper() else { return Ok(()) };
        let file = upper.ops.open(&upper, READ, &KernelCaller::new())?;
        file.sync(false)
    }
}

const READ: OpenHow = OpenHow { flags: OpenFlags::RDONLY };

impl OverlayNode {
    /// All entries of this directory, `.` and `..` first.
    fn entries(&self, this: &Arc<Inode>) -> SysResult<Vec<Entry>> {
        let number = |inode: &Arc<Inode>| inode.ops.attributes(inode).map(|attributes| attributes.ino);
        let own = number(this)?;
        let parent = self.place().map_or(Ok(own), |(parent, _)| number(&parent))?;
        let dot = |name: &[u8], ino| Entry { name: name.into(), ino, file_type: FileType::DIR };
        let mut merged = Merge { entries: vec![dot(b".", own), dot(b"..", parent)], seen: HashSet::new() };
        let parts = self.parts();
        if let Some(upper) = &parts.upper {
            for raw in list(upper)? {
                let Ok(part) = upper.ops.lookup(upper, &raw.name) else { continue };
                if marks::is_whiteout(&part)? {
                    merged.hide(raw.name);
                    continue;
                }
                let ino = match marks::origin(&part)? {
                    Some(origin) => origin,
                    None => {
                        let attributes = part.ops.attributes(&part)?;
                        self.overlay.numbers.shown(attributes.dev, attributes.ino)
                    }
                };
                merged.add(Entry { ino, file_type: part.file_type, ..raw });
            }
        }
        let count = parts.lowers.len();
        for (index, lower) in parts.lowers.iter().enumerate() {
            let dev = lower.ops.attributes(lower)?.dev;
            for raw in list(lower)? {
                // A device could be a whiteout for the layers below; in the lowest layer it cannot hide anything, but
                // it does not show either.
                let is_device = raw.file_type == FileType::CHR || raw.file_type == FileType(0);
                if is_device
                    && let Ok(part) = lower.ops.lookup(lower, &raw.name)
                    && marks::is_whiteout(&part)?
                {
                    merged.hide(raw.name);
                    continue;
                }
                let ino = self.overlay.numbers.shown(dev, raw.ino);
                let entry = Entry { ino, ..raw };
                if count == 1 && parts.upper.is_none() {
                    merged.entries.push(entry)
                } else {
                    merged.add(entry)
                }
            }
            if index + 1 < count && marks::is_opaque(lower)? {
                break;
            }
        }
        Ok(merged.entries)
    }

    /// The names that this directory shows.
    pub(crate) fn shown_names(&self, this: &Arc<Inode>) -> SysResult<Vec<Box<[u8]>>> {
        Ok(self.entries(this)?.into_iter().skip(2).map(|entry| entry.name).collect())
    }

    /// Whether this directory shows no entry.
    pub(crate) fn is_empty(&self, this: &Arc<Inode>) -> SysResult<bool> {
        Ok(self.entries(this)?.len() <= 2)
    }
}

struct Merge {
    entries: Vec<Entry>,
    /// Names that an upper layer has or hides.
    seen: HashSet<Box<[u8]>>,
}

impl Merge {
    fn add(&mut self, entry: Entry) {
        if self.seen.insert(entry.name.clone()) {
            self.entries.push(entry);
        }
    }

    fn hide(&mut self, name: Box<[u8]>) {
        self.seen.insert(name);
    }
}

/// The entries of a directory of a layer, without `.` and `..`.
fn list(dir: &Arc<Inode>) -> SysResult<Vec<Entry>> {
    struct All(Vec<Entry>);
    impl DirSink for All {
        fn entry(&mut self, name: &[u8], ino: u64, file_type: FileType, _next: u64) -> bool {
            if name != b"." && name != b".." {
                self.0.push(Entry { name: name.into(), ino, file_type });
            }
            true
        }
    }
    let caller = KernelCaller::new();
    let file = FileDescription::new(dir.ops.open(dir, READ, &caller)?, None, READ.flags);
    let mut all = All(Vec::new());
    loop {
        let position = file.ops.seek(&file, Seek::Current(0))?;
        file.ops.read_dir(&file, &caller, &mut all)?;
        if file.ops.seek(&file, Seek::Current(0))? == position {
            return Ok(all.0);
        }
    }
}

/// The names in a directory of a layer.
pub(crate) fn names(dir: &Arc<Inode>) -> SysResult<Vec<Box<[u8]>>> {
    Ok(list(dir)?.into_iter().map(|entry| entry.name).collect())
}
