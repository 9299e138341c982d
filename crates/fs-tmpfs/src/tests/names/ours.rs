//! The operations on ours.

use abi::{AccessFlags, AtFlags, OpenFlags, ResolveFlags, Timespec};
use vfs::{Caller, FileOps, Inode, OpenHow, SetTime, SliceSource, SpecialFiles, rw};

use super::*;

/// FIFOs without another end, as O_NONBLOCK finds them.
struct Fifos;

struct Fifo;

impl FileOps for Fifo {
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

impl SpecialFiles for Fifos {
    fn open(
        &self,
        _: &Arc<Inode>,
        kind: FileType,
        _: u64,
        how: OpenHow,
        _: &dyn Caller,
    ) -> SysResult<Box<dyn FileOps>> {
        match (kind, how.flags.access_mode().0) {
            (FileType::FIFO, 0 | 2) => Ok(Box::new(Fifo)),
            (FileType::FIFO, 3) => Err(Errno::EINVAL.into()),
            _ => Err(Errno::ENXIO.into()),
        }
    }

    fn reopen(
        &self,
        _: &Arc<FileDescription>,
        _: OpenHow,
        _: &dyn Caller,
    ) -> SysResult<Arc<FileDescription>> {
        Err(Errno::ENXIO.into())
    }
}

fn caller(actor: Actor, as_root: bool) -> TestCaller {
    if actor == Actor::User {
        return TestCaller::new(Cred::user(USER, USER, &[USER_GROUP]));
    }
    if as_root {
        return TestCaller::root();
    }
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let groups: Vec<u32> =
        rustix::process::getgroups().unwrap().into_iter().map(|gid| gid.as_raw()).collect();
    TestCaller::new(Cred::user(uid, gid, &groups))
}

/// Makes the directories down to the start, which everybody may write to; gives the start.
pub(super) fn prepare(world: &mut TestWorld, as_root: bool) -> Path {
    let root = TestCaller::root();
    let caller = caller(Actor::Root, as_root);
    let mut ctx = world.context(&root);
    for name in DEPTH.split('/') {
        ops::mkdir(&ctx, AT_FDCWD, name.as_bytes(), 0o755).unwrap();
        let (uid, gid) = (Some(caller.cred.uid), Some(caller.cred.gid));
        ops::chown(&ctx, AT_FDCWD, name.as_bytes(), uid, gid, AtFlags::empty()).unwrap();
        ctx.enter(ops::chdir(&ctx, name.as_bytes()).unwrap());
    }
    ops::chmod(&ctx, AT_FDCWD, b".", 0o1777, AtFlags::empty()).unwrap();
    ctx.place.cwd.clone()
}

pub(super) fn apply(world: &TestWorld, start: &Path, actor: Actor, as_root: bool, op: &Op) -> Outcome {
    let caller = caller(actor, as_root);
    let mut ctx = world.context(&caller);
    ctx.special = &Fifos;
    ctx.enter(start.clone());
    perform(&ctx, op).map_err(|error| error.errno().unwrap())
}

fn done(_: ()) -> String {
    String::new()
}

fn nofollow(follow: bool) -> AtFlags {
    if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW }
}

fn perform(ctx: &FsContext<'_>, op: &Op) -> SysResult<String> {
    const HERE: i32 = AT_FDCWD;
    match op {
        Op::Open(path, flags, mode) => {
            let request = ops::OpenRequest::open(OpenFlags::from_bits_retain(*flags), *mode)?;
            let file = ops::open(ctx, HERE, path.as_bytes(), &request)?;
            let mut said = format!("{} {:o}", text(&file.attributes()?), file.flags());
            if file.is_writable() && file.attributes()?.mode.is_regular() {
                let wrote = rw::write(&file, ctx.caller, &mut SliceSource { bytes: b"xyz", taken: 0 })?;
                said += &format!(" wrote {wrote}");
            }
            Ok(said)
        }
        Op::Mkdir(path, mode) => ops::mkdir(ctx, HERE, path.as_bytes(), *mode).map(done),
        Op::Mknod(path, mode) => {
            ops::mknod(ctx, HERE, path.as_bytes(), FileMode::from_bits_retain(*mode), 0).map(done)
        }
        Op::Symlink(target, path) => ops::symlink(ctx, target.as_bytes(), HERE, path.as_bytes()).map(done),
        Op::Link(old, new, follow) => {
            let flags = if *follow { AtFlags::SYMLINK_FOLLOW } else { AtFlags::empty() };
            ops::link(ctx, HERE, old.as_bytes(), HERE, new.as_bytes(), flags).map(done)
        }
        Op::Unlink(path) => ops::unlink(ctx, HERE, path.as_bytes()).map(done),
        Op::Rmdir(path) => ops::rmdir(ctx, HERE, path.as_bytes()).map(done),
        Op::Rename(old, new, mode) => {
            ops::rename(ctx, HERE, old.as_bytes(), HERE, new.as_bytes(), *mode).map(done)
        }
        Op::Chmod(path, mode) => ops::chmod(ctx, HERE, path.as_bytes(), *mode, AtFlags::empty()).map(done),
        Op::Chown(path, uid, gid, follow) => {
            ops::chown(ctx, HERE, path.as_bytes(), *uid, *gid, nofollow(*follow)).map(done)
        }
        Op::Stat(path, follow) => {
            ops::stat(ctx, HERE, path.as_bytes(), nofollow(*follow)).map(|stat| text(&stat.attributes))
        }
        Op::Readlink(path) => {
            ops::readlink(ctx, HERE, path.as_bytes()).map(|text| String::from_utf8(text).unwrap())
        }
        Op::Access(path, mode, effective) => {
            let flags = if *effective { AtFlags::EACCESS } else { AtFlags::empty() };
            ops::access(ctx, HERE, path.as_bytes(), AccessFlags::from_bits_retain(*mode), flags).map(done)
        }
        Op::Touch(path, now) => {
            let old = SetTime::At(Timespec { sec: 77, nsec: 0 });
            let times = match now {
                true => ops::TimesChange::NOW,
                false => ops::TimesChange { atime: Some(SetTime::Now), mtime: Some(old) },
            };
            ops::utimens(ctx, HERE, path.as_bytes(), times, AtFlags::empty()).map(done)
        }
        Op::Resolve(path, resolve) => {
            let flags = u64::from(OpenFlags::PATH.bits());
            let resolve = ResolveFlags::from_bits_retain(*resolve);
            let request = ops::OpenRequest::openat2(&abi::OpenHow { flags, mode: 0, resolve })?;
            let file = ops::open(ctx, HERE, path.as_bytes(), &request)?;
            Ok(text(&file.attributes()?))
        }
        Op::Chdir(path) => ops::chdir(ctx, path.as_bytes()).map(|_| String::new()),
    }
}

fn text(attributes: &vfs::Attributes) -> String {
    shown(&abi::Stat {
        mode: attributes.mode,
        nlink: attributes.nlink,
        uid: attributes.uid,
        gid: attributes.gid,
        size: i64::try_from(attributes.size).unwrap(),
        ..Default::default()
    })
}

/// What lies below the start, found through the file system's own directories.
pub(super) fn snapshot(world: &TestWorld, start: &Path) -> Snapshot {
    let mut all = Snapshot::new();
    let mut todo = vec![(String::new(), start.inode().clone())];
    while let Some((path, inode)) = todo.pop() {
        let mut said = text(&inode.ops.attributes(&inode).unwrap());
        match inode.file_type {
            FileType::LNK => said += &String::from_utf8(inode.ops.read_link(&inode).unwrap()).unwrap(),
            FileType::DIR => {
                let node = inode.downcast::<crate::TmpNode>().unwrap();
                for (entry, _) in node.lock().entries().unwrap().list(0, usize::MAX) {
                    let name = String::from_utf8(entry.name.to_vec()).unwrap();
                    todo.push((format!("{path}/{name}"), entry.inode));
                }
            }
            _ => {}
        }
        all.insert(path, said);
    }
    check_dentries(world, start, &all);
    all
}

/// What the dentries say is what the directories say.
fn check_dentries(world: &TestWorld, start: &Path, all: &Snapshot) {
    let root = TestCaller::root();
    let mut ctx = world.context(&root);
    ctx.enter(start.clone());
    for path in all.keys() {
        let path = format!(".{path}");
        let found = ctx.lookup_path(AT_FDCWD, path.as_bytes(), vfs::Lookup::empty());
        // Longer than PATH_MAX in one piece, it cannot be asked for.
        if path.len() < 4096 {
            let shown = vfs::d_path(&found.unwrap(), &ctx.place.root);
            assert_eq!(String::from_utf8(shown).unwrap(), format!("/{DEPTH}{}", &path[1..]));
        }
    }
}
