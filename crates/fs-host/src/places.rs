//! Where a file was found: names in directories, as far as they are known. Renames by guests keep them true (`moves`).

use std::sync::Arc;

use smallvec::SmallVec;
use sync::SysResult;
use vfs::Inode;

use crate::descriptors::DirFd;
use crate::error::errno;
use crate::moves::Moment;
use crate::node::HostNode;
use crate::stat::HostStat;

/// A name in a directory.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) dir: Arc<Inode>,
    pub(crate) name: Box<[u8]>,
}

impl Place {
    fn is(&self, dir: &Arc<Inode>, name: &[u8]) -> bool {
        Arc::ptr_eq(&self.dir, dir) && *self.name == *name
    }
}

/// One place for a directory, one for each known name of another file; the newest, which is the likeliest to hold, first.
pub(crate) type Places = SmallVec<[Place; 1]>;

/// What it replaces.
fn add(places: &mut Places, dir: &Arc<Inode>, name: &[u8], is_dir: bool) -> Places {
    if places.iter().any(|place| place.is(dir, name)) {
        return Places::new();
    }
    let old = if is_dir { std::mem::take(places) } else { Places::new() };
    places.insert(0, Place { dir: dir.clone(), name: name.into() });
    old
}

fn remove(places: &mut Places, dir: &Arc<Inode>, name: &[u8]) -> Option<Place> {
    let index = places.iter().position(|place| place.is(dir, name))?;
    Some(places.remove(index))
}

impl HostNode {
    /// Notes that the file is `name` in `dir`: nobody renames it meanwhile.
    pub(crate) fn add_place(&self, dir: &Arc<Inode>, name: &[u8], is_dir: bool) {
        self.add_place_if(dir, name, is_dir, || true);
    }

    /// The same if `is_so` still: before a rename that begins later notes the file's new place.
    fn add_place_if(
        &self,
        dir: &Arc<Inode>,
        name: &[u8],
        is_dir: bool,
        is_so: impl FnOnce() -> bool,
    ) -> bool {
        if self.is_root() {
            return true;
        }
        let old = self.with_places(|places| is_so().then(|| add(places, dir, name, is_dir)));
        old.is_some()
    }

    /// Notes that this file was found as `name` in `dir`, open as `fd`, after `moment`. `false`: it is not any more.
    pub(crate) fn note_found(
        &self,
        (dir, fd): (&Arc<Inode>, &DirFd),
        name: &[u8],
        is_dir: bool,
        moment: Moment,
    ) -> SysResult<bool> {
        let moves = &self.fs.moves;
        if self.add_place_if(dir, name, is_dir, || moves.none_since(moment)) {
            return Ok(true);
        }
        let _none = moves.hold();
        let is_still = match HostStat::at(&fd.fd, name) {
            Ok(stat) => stat.id == self.id,
            Err(rustix::io::Errno::NOENT) => false,
            Err(error) => return Err(errno(error)),
        };
        if is_still {
            self.add_place(dir, name, is_dir);
        }
        Ok(is_still)
    }

    /// Notes that a rename has moved the file, in one step: it is always somewhere.
    pub(crate) fn move_place(
        &self,
        (dir, name): (&Arc<Inode>, &[u8]),
        (to_dir, to_name): (&Arc<Inode>, &[u8]),
        is_dir: bool,
    ) {
        let old =
            self.with_places(|places| (remove(places, dir, name), add(places, to_dir, to_name, is_dir)));
        drop(old);
    }

    /// Notes that `name` in `dir` is this file's no more.
    pub(crate) fn remove_place(&self, dir: &Arc<Inode>, name: &[u8]) {
        let removed = self.with_places(|places| remove(places, dir, name));
        drop(removed);
        self.fs.kept.forget(&self.opens, self.id);
    }

    pub(crate) fn places(&self) -> Places {
        self.with_places(|places| places.clone())
    }

    /// The directory that it was found in last; `None` for the root.
    pub(crate) fn parent(&self) -> Option<Arc<Inode>> {
        self.with_places(|places| places.first().map(|place| place.dir.clone()))
    }
}

#[cfg(test)]
mod tests {
    use vfs::{FileSystem, RenameMode};

    use crate::{HostFs, HostFsOptions, OwnerMap};

    use super::*;

    /// What was found before a rename, and is noted after it, is found no more: where it is now it is found anew.
    #[test]
    fn a_file_found_before_a_rename_is_not_noted_after_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let make = |name: &str| std::fs::create_dir(dir.path().join(name));
        make("old").expect("made");
        std::fs::write(dir.path().join("file"), b"").expect("made");
        let options = HostFsOptions::named(true, OwnerMap::own_as_root());
        let fs = HostFs::open(dir.path(), options).expect("served");
        let root = fs.root();
        let root_fd = fs.root_fd.clone();
        for (name, new, is_dir) in [(b"old".as_slice(), b"new".as_slice(), true), (b"file", b"moved", false)]
        {
            let moment = fs.moves.now();
            let stat = HostStat::at(&root_fd.fd, name).expect("found");
            root.ops.rename(&root, name, &root, new, RenameMode::Replace).expect("renamed");
            let inode = fs.intern(&stat, stat.file_type(), None).expect("known");
            let node = inode.downcast::<HostNode>().expect("of the host");
            assert!(!node.note_found((&root, &root_fd), name, is_dir, moment).expect("looked"));
            assert!(node.places().is_empty());
            // Another rename in between, of something else, does no harm.
            let found = root.ops.lookup(&root, new).expect("found");
            assert!(Arc::ptr_eq(&found, &inode));
            assert!(node.note_found((&root, &root_fd), new, is_dir, moment).expect("looked"));
            assert_eq!(node.places().len(), 1);
            assert!(inode.ops.attributes(&inode).is_ok());
        }
    }
}
