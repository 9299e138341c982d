//! The operations on the host, by a thread for each actor.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{
    self, Access, AtFlags, FileType as HostType, Gid, Mode, OFlags, RenameFlags, ResolveFlags, Uid,
};

use super::*;

pub(super) struct Host {
    dir: tempfile::TempDir,
    root: Actors,
    user: Option<Actors>,
}

/// A thread that acts, and how to talk to it.
struct Actors {
    ops: Option<Sender<Op>>,
    outcomes: Receiver<Outcome>,
    thread: Option<JoinHandle<()>>,
}

impl Actors {
    fn start(dir: PathBuf, become_user: bool) -> Actors {
        let (ops, incoming) = channel::<Op>();
        let (outgoing, outcomes) = channel();
        let thread = std::thread::spawn(move || {
            let start = fs::open(dir, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();
            // A current directory of the thread's own.
            #[allow(deprecated, reason = "only sharing of descriptors is unsafe to end")]
            rustix::thread::unshare(rustix::thread::UnshareFlags::FS).unwrap();
            rustix::process::umask(Mode::from_raw_mode(0o022));
            rustix::process::fchdir(&start).unwrap();
            if become_user {
                let (uid, gid) = (Uid::from_raw(USER), Gid::from_raw(USER));
                rustix::thread::set_thread_groups(&[Gid::from_raw(USER_GROUP)]).unwrap();
                rustix::thread::set_thread_res_gid(gid, gid, gid).unwrap();
                rustix::thread::set_thread_res_uid(uid, uid, uid).unwrap();
            }
            for op in incoming {
                let outcome = perform(&start, &op);
                outgoing.send(outcome.map_err(|error| Errno::from_raw(error.raw_os_error()))).unwrap();
            }
        });
        Actors { ops: Some(ops), outcomes, thread: Some(thread) }
    }

    fn apply(&self, op: &Op) -> Outcome {
        self.ops.as_ref().unwrap().send(op.clone()).unwrap();
        self.outcomes.recv().unwrap()
    }
}

impl Drop for Actors {
    fn drop(&mut self) {
        self.ops = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Host {
    pub(super) fn new(with_user: bool) -> Host {
        let dir = host_dir();
        std::fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let start = dir.path().join(DEPTH);
        std::fs::create_dir_all(&start).unwrap();
        std::fs::set_permissions(&start, std::os::unix::fs::PermissionsExt::from_mode(0o1777)).unwrap();
        let user = with_user.then(|| Actors::start(start.clone(), true));
        Host { dir, root: Actors::start(start, false), user }
    }

    pub(super) fn apply(&self, actor: Actor, op: &Op) -> Outcome {
        match actor {
            Actor::Root => self.root.apply(op),
            Actor::User => self.user.as_ref().unwrap().apply(op),
        }
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let start = self.dir.path().join(DEPTH);
        let mut all = Snapshot::new();
        let mut todo = vec![(String::new(), start)];
        while let Some((path, place)) = todo.pop() {
            let now = std::fs::symlink_metadata(&place).unwrap();
            let mut said = shown(&abi::Stat {
                mode: FileMode::from_bits_retain(now.mode()),
                nlink: now.nlink(),
                uid: now.uid(),
                gid: now.gid(),
                size: i64::try_from(now.size()).unwrap(),
                ..Default::default()
            });
            if now.is_symlink() {
                said += std::fs::read_link(&place).unwrap().to_str().unwrap();
            }
            if now.is_dir() {
                for entry in std::fs::read_dir(&place).unwrap() {
                    let entry = entry.unwrap();
                    todo.push((format!("{path}/{}", entry.file_name().to_str().unwrap()), entry.path()));
                }
            }
            all.insert(path, said);
        }
        all
    }
}

fn stat_text(stat: &fs::Stat) -> String {
    shown(&abi::Stat {
        mode: FileMode::from_bits_retain(stat.st_mode),
        nlink: stat.st_nlink,
        uid: stat.st_uid,
        gid: stat.st_gid,
        size: stat.st_size,
        ..Default::default()
    })
}

fn done(_: ()) -> String {
    String::new()
}

fn nofollow(follow: bool) -> AtFlags {
    if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW }
}

fn perform(here: &OwnedFd, op: &Op) -> rustix::io::Result<String> {
    let here = here.as_fd();
    let mode = Mode::from_raw_mode;
    match op {
        Op::Open(path, flags, bits) => {
            let file = fs::openat(here, path, OFlags::from_bits_retain(*flags), mode(*bits))?;
            let flags = fs::fcntl_getfl(&file)?;
            let stat = fs::fstat(&file)?;
            let mut said = format!("{} {:o}", stat_text(&stat), flags);
            let writes = flags.bits() & 3 == 1 || flags.bits() & 3 == 2;
            let path_only = flags.contains(OFlags::PATH);
            if writes && !path_only && HostType::from_raw_mode(stat.st_mode) == HostType::RegularFile {
                said += &format!(" wrote {}", rustix::io::write(&file, b"xyz")?);
            }
            Ok(said)
        }
        Op::Mkdir(path, bits) => fs::mkdirat(here, path, mode(*bits)).map(done),
        Op::Mknod(path, bits) => {
            fs::mknodat(here, path, HostType::from_raw_mode(*bits), mode(bits & 0o7777), 0).map(done)
        }
        Op::Symlink(target, path) => fs::symlinkat(target, here, path).map(done),
        Op::Link(old, new, follow) => {
            let flags = if *follow { AtFlags::SYMLINK_FOLLOW } else { AtFlags::empty() };
            fs::linkat(here, old, here, new, flags).map(done)
        }
        Op::Unlink(path) => fs::unlinkat(here, path, AtFlags::empty()).map(done),
        Op::Rmdir(path) => fs::unlinkat(here, path, AtFlags::REMOVEDIR).map(done),
        Op::Rename(old, new, how) => {
            let flags = match how {
                RenameMode::Replace => RenameFlags::empty(),
                RenameMode::NoReplace => RenameFlags::NOREPLACE,
                RenameMode::Exchange => RenameFlags::EXCHANGE,
            };
            fs::renameat_with(here, old, here, new, flags).map(done)
        }
        Op::Chmod(path, bits) => fs::chmodat(here, path, mode(*bits), AtFlags::empty()).map(done),
        Op::Chown(path, uid, gid, follow) => {
            let (uid, gid) = (uid.map(Uid::from_raw), gid.map(Gid::from_raw));
            fs::chownat(here, path, uid, gid, nofollow(*follow)).map(done)
        }
        Op::Stat(path, follow) => fs::statat(here, path, nofollow(*follow)).map(|stat| stat_text(&stat)),
        Op::Readlink(path) => fs::readlinkat(here, path, Vec::new()).map(|text| text.into_string().unwrap()),
        Op::Access(path, bits, effective) => {
            let flags = if *effective { AtFlags::EACCESS } else { AtFlags::empty() };
            fs::accessat(here, path, Access::from_bits_retain(*bits), flags).map(done)
        }
        Op::Touch(path, now) => {
            let at = |tv_sec, tv_nsec| fs::Timespec { tv_sec, tv_nsec };
            let last_modification = if *now { at(0, fs::UTIME_NOW) } else { at(77, 0) };
            let times = fs::Timestamps { last_access: at(0, fs::UTIME_NOW), last_modification };
            fs::utimensat(here, path, &times, AtFlags::empty()).map(done)
        }
        Op::Resolve(path, resolve) => loop {
            let resolve = ResolveFlags::from_bits_retain(*resolve);
            match fs::openat2(here, path, OFlags::PATH, Mode::empty(), resolve) {
                // Some other process has renamed something meanwhile.
                Err(rustix::io::Errno::AGAIN) => {}
                Err(error) => return Err(error),
                Ok(file) => return Ok(stat_text(&fs::fstat(&file)?)),
            }
        },
        Op::Chdir(path) => {
            rustix::process::chdir(path)?;
            rustix::process::fchdir(here).map(done)
        }
    }
}
