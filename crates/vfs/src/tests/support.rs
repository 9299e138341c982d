//! A small file system in memory for the tests of this crate, which are about names and rights, not content.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use abi::{AT_FDCWD, Errno, FileMode, FileType};
use sync::order::Inode as InodeLevel;
use sync::{Mutex, SysResult};

use crate::test_caller::{TestCaller, TestWorld};
use crate::{
    AttributeChange, Attributes, Caller, Cred, Dentry, FileOps, FileSystem, FsContext, FsStat, Inode,
    InodeOps, Lookup, MagicTarget, NewNode, NewNodeKind, OpenHow, Path, RenameMode,
};

pub(crate) struct TestFs {
    me: Weak<TestFs>,
    last_ino: AtomicU64,
    root: Mutex<sync::order::Leaf, Option<Arc<Inode>>>,
    /// Behaves as a file system that changes outside.
    pub(crate) outside: bool,
    /// The next lookups say ESTALE.
    pub(crate) stale: AtomicBool,
    /// How often a lookup or revalidation was asked for.
    pub(crate) asked: AtomicU64,
}

impl TestFs {
    pub(crate) fn new() -> Arc<TestFs> {
        TestFs::with(false)
    }

    pub(crate) fn with(outside: bool) -> Arc<TestFs> {
        let fs = Arc::new_cyclic(|me| TestFs {
            me: me.clone(),
            last_ino: AtomicU64::new(1),
            root: Mutex::new(None),
            outside,
            stale: AtomicBool::new(false),
            asked: AtomicU64::new(0),
        });
        let node = NewNode { kind: NewNodeKind::Directory, permissions: 0o755, uid: 0, gid: 0 };
        let root = fs.make(&node);
        *fs.root.lock() = Some(root);
        fs
    }

    /// An inode of this kind.
    pub(crate) fn make(&self, node: &NewNode<'_>) -> Arc<Inode> {
        let (file_type, link) = match node.kind {
            NewNodeKind::File => (FileType::REG, Vec::new()),
            NewNodeKind::Directory => (FileType::DIR, Vec::new()),
            NewNodeKind::Symlink(text) => (FileType::LNK, text.to_vec()),
            NewNodeKind::Fifo => (FileType::FIFO, Vec::new()),
            NewNodeKind::Socket => (FileType::SOCK, Vec::new()),
            NewNodeKind::CharDevice(_) => (FileType::CHR, Vec::new()),
            NewNodeKind::BlockDevice(_) => (FileType::BLK, Vec::new()),
        };
        let attributes = Attributes {
            ino: self.last_ino.fetch_add(1, Ordering::Relaxed),
            mode: FileMode::new(file_type, node.permissions),
            nlink: 1,
            uid: node.uid,
            gid: node.gid,
            ..Default::default()
        };
        let state = State { attributes, children: BTreeMap::new(), xattrs: BTreeMap::new(), magic: None };
        let ops = TestInode { fs: self.me.clone(), link, state: Mutex::new(state) };
        Inode::new(self.me.upgrade().unwrap(), file_type, Box::new(ops))
    }
}

impl FileSystem for TestFs {
    fn kind(&self) -> &'static str {
        "testfs"
    }
    fn dev(&self) -> u64 {
        abi::makedev(0, 7)
    }
    fn root(&self) -> Arc<Inode> {
        self.root.lock().clone().unwrap()
    }
    fn stat(&self) -> SysResult<FsStat> {
        Ok(FsStat { name_max: 255, ..Default::default() })
    }
    fn options(&self) -> String {
        "size=1k".into()
    }
    fn changes_outside(&self) -> bool {
        self.outside
    }
}

struct State {
    attributes: Attributes,
    children: BTreeMap<Vec<u8>, Arc<Inode>>,
    xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    magic: Option<MagicTarget>,
}

pub(crate) struct TestInode {
    fs: Weak<TestFs>,
    link: Vec<u8>,
    state: Mutex<InodeLevel, State>,
}

impl TestInode {
    fn fs(&self) -> Arc<TestFs> {
        self.fs.upgrade().unwrap()
    }
    /// Behind the back of the dentries.
    pub(crate) fn put(&self, name: &[u8], child: Option<Arc<Inode>>) {
        let mut state = self.state.lock();
        match child {
            Some(child) => state.children.insert(name.to_vec(), child),
            None => state.children.remove(name),
        };
    }
    pub(crate) fn make_magic(&self, target: MagicTarget) {
        self.state.lock().magic = Some(target);
    }
}

fn test(inode: &Inode) -> &TestInode {
    inode.downcast().unwrap()
}

impl InodeOps for TestInode {
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn attributes(&self, _this: &Arc<Inode>) -> SysResult<Attributes> {
        Ok(self.state.lock().attributes)
    }
    fn set_attributes(&self, _this: &Arc<Inode>, change: &AttributeChange) -> SysResult<()> {
        let now = &mut self.state.lock().attributes;
        now.mode = now.mode.with_permissions(change.permissions.unwrap_or(now.mode.permissions()));
        now.uid = change.uid.unwrap_or(now.uid);
        now.gid = change.gid.unwrap_or(now.gid);
        now.size = change.size.unwrap_or(now.size);
        Ok(())
    }
    fn open(&self, _this: &Arc<Inode>, _how: OpenHow, _caller: &dyn Caller) -> SysResult<Box<dyn FileOps>> {
        Ok(Box::new(Opened))
    }
    fn lookup(&self, _this: &Arc<Inode>, name: &[u8]) -> SysResult<Arc<Inode>> {
        let fs = self.fs();
        fs.asked.fetch_add(1, Ordering::Relaxed);
        if fs.stale.swap(false, Ordering::Relaxed) {
            return Err(Errno::ESTALE.into());
        }
        Ok(self.state.lock().children.get(name).ok_or(Errno::ENOENT)?.clone())
    }
    fn revalidate(&self, _this: &Arc<Inode>, name: &[u8], child: &Arc<Inode>) -> bool {
        self.fs().asked.fetch_add(1, Ordering::Relaxed);
        self.state.lock().children.get(name).is_some_and(|now| Arc::ptr_eq(now, child))
    }
    fn create(&self, _this: &Arc<Inode>, name: &[u8], node: &NewNode<'_>) -> SysResult<Arc<Inode>> {
        let inode = self.fs().make(node);
        let mut state = self.state.lock();
        if state.children.contains_key(name) {
            return Err(Errno::EEXIST.into());
        }
        state.children.insert(name.to_vec(), inode.clone());
        Ok(inode)
    }
    fn create_unnamed(&self, _this: &Arc<Inode>, node: &NewNode<'_>) -> SysResult<Arc<Inode>> {
        let inode = self.fs().make(node);
        test(&inode).state.lock().attributes.nlink = 0;
        Ok(inode)
    }
    fn link(&self, _this: &Arc<Inode>, name: &[u8], target: &Arc<Inode>) -> SysResult<()> {
        test(target).state.lock().attributes.nlink += 1;
        self.put(name, Some(target.clone()));
        Ok(())
    }
    fn unlink(&self, _this: &Arc<Inode>, name: &[u8], child: &Arc<Inode>) -> SysResult<()> {
        self.state.lock().children.remove(name).ok_or(Errno::ENOENT)?;
        test(child).state.lock().attributes.nlink -= 1;
        Ok(())
    }
    fn rmdir(&self, _this: &Arc<Inode>, name: &[u8], child: &Arc<Inode>) -> SysResult<()> {
        if !test(child).state.lock().children.is_empty() {
            return Err(Errno::ENOTEMPTY.into());
        }
        self.state.lock().children.remove(name).ok_or(Errno::ENOENT)?;
        Ok(())
    }
    fn rename(
        &self,
        _this: &Arc<Inode>,
        name: &[u8],
        to_dir: &Arc<Inode>,
        to_name: &[u8],
        mode: RenameMode,
    ) -> SysResult<()> {
        let child = self.state.lock().children.get(name).cloned().ok_or(Errno::ENOENT)?;
        let target = test(to_dir).state.lock().children.get(to_name).cloned();
        if let Some(target) = &target
            && mode == RenameMode::Replace
            && target.is_dir()
            && !test(target).state.lock().children.is_empty()
        {
            return Err(Errno::ENOTEMPTY.into());
        }
        self.put(name, if mode == RenameMode::Exchange { target } else { None });
        test(to_dir).put(to_name, Some(child));
        Ok(())
    }
    fn read_link(&self, _this: &Arc<Inode>) -> SysResult<Vec<u8>> {
        Ok(self.link.clone())
    }
    fn follow(&self, _this: &Arc<Inode>, _caller: &dyn Caller) -> Option<SysResult<MagicTarget>> {
        self.state.lock().magic.clone().map(Ok)
    }
    fn get_xattr(&self, _this: &Arc<Inode>, name: &[u8]) -> SysResult<Vec<u8>> {
        Ok(self.state.lock().xattrs.get(name).ok_or(Errno::ENODATA)?.clone())
    }
    fn set_xattr(
        &self,
        _this: &Arc<Inode>,
        name: &[u8],
        value: &[u8],
        _mode: crate::XattrMode,
    ) -> SysResult<()> {
        self.state.lock().xattrs.insert(name.to_vec(), value.to_vec());
        Ok(())
    }
    fn remove_xattr(&self, _this: &Arc<Inode>, name: &[u8]) -> SysResult<()> {
        self.state.lock().xattrs.remove(name).map(drop).ok_or(Errno::ENODATA.into())
    }
    fn list_xattrs(&self, _this: &Arc<Inode>) -> SysResult<Vec<Vec<u8>>> {
        Ok(self.state.lock().xattrs.keys().cloned().collect())
    }
}

pub(crate) struct Opened;

impl FileOps for Opened {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A new file of this name below a directory, with its dentry.
pub(crate) fn name(dir: &Arc<Dentry>, name: &str) -> Arc<Dentry> {
    let node = NewNode { kind: NewNodeKind::File, permissions: 0o644, uid: 0, gid: 0 };
    dir.inode.ops.create(&dir.inode, name.as_bytes(), &node).unwrap();
    dir.lookup(name.as_bytes(), &sync::Waiter::new()).unwrap()
}

/// A test's world: `/dir/file`, `/dir/sub`, links `/rel -> dir/file`, `/abs -> /dir`, `/loop -> loop`,
/// `/dangling -> dir/new`, `/slash -> dir/`.
pub(crate) fn world() -> (Arc<TestFs>, TestWorld) {
    world_on(TestFs::new())
}

pub(crate) fn world_on(fs: Arc<TestFs>) -> (Arc<TestFs>, TestWorld) {
    let as_dyn: Arc<dyn FileSystem> = fs.clone();
    let world = TestWorld::new(&as_dyn).unwrap();
    let caller = TestCaller::root();
    let ctx = world.context(&caller);
    for dir in ["dir", "dir/sub", "mnt"] {
        crate::ops::mkdir(&ctx, AT_FDCWD, dir.as_bytes(), 0o755).unwrap();
    }
    for (text, link) in
        [("dir/file", "rel"), ("/dir", "abs"), ("loop", "loop"), ("dir/new", "dangling"), ("dir/", "slash")]
    {
        crate::ops::symlink(&ctx, text.as_bytes(), AT_FDCWD, link.as_bytes()).unwrap();
    }
    let mode = FileMode::new(FileType::REG, 0o644);
    crate::ops::mknod(&ctx, AT_FDCWD, b"dir/file", mode, 0).unwrap();
    (fs, world)
}

pub(crate) fn find(ctx: &FsContext<'_>, path: &str) -> Result<Path, Errno> {
    let found = ctx.lookup_path(AT_FDCWD, path.as_bytes(), Lookup::FOLLOW);
    found.map_err(|error| error.errno().unwrap())
}

/// What a result failed with; `None` for success.
pub(crate) fn errno<T>(result: SysResult<T>) -> Option<Errno> {
    result.err().and_then(|error| error.errno())
}

pub(crate) fn user(uid: u32) -> TestCaller {
    TestCaller::new(Cred::user(uid, uid, &[]))
}
