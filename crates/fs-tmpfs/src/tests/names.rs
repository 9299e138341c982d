//! Path operations on tmpfs against the same on the host's tmpfs: what succeeds, what fails and with which errno, and
//! what is there afterwards; as the superuser and as a user.

mod generate;
mod host;
mod ours;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use proptest::prelude::*;
use vfs::{Path, RenameMode};

use super::*;
use host::Host;

/// Who acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Actor {
    Root,
    User,
}

/// The user: its id is its group's too, and it is in one more group.
const USER: u32 = 1000;
const USER_GROUP: u32 = 2000;

#[derive(Clone, Debug)]
enum Op {
    Open(String, u32, u32),
    Mkdir(String, u32),
    Mknod(String, u32),
    Symlink(String, String),
    Link(String, String, bool),
    Unlink(String),
    Rmdir(String),
    Rename(String, String, RenameMode),
    Chmod(String, u32),
    Chown(String, Option<u32>, Option<u32>, bool),
    Stat(String, bool),
    Readlink(String),
    Access(String, u32, bool),
    Touch(String, bool),
    Chdir(String),
    /// `openat2` with O_PATH and these RESOLVE_* flags.
    Resolve(String, u64),
}

/// What an operation says: an errno, or what there is to know of its success.
type Outcome = Result<String, Errno>;

/// How far below the root the operations begin, so that no `..` of theirs leads out.
const DEPTH: &str = "0/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15";

/// Everything below the start: path to type, mode, links, owner, group, size, text.
type Snapshot = BTreeMap<String, String>;

fn shown(stat: &abi::Stat) -> String {
    let size = stat.size;
    format!("{} nlink {} {}:{} size {size}", stat.mode, stat.nlink, stat.uid, stat.gid)
}

fn run(ops: &[(Actor, Op)], as_root: bool) -> Result<(), TestCaseError> {
    let host = Host::new(as_root);
    let (_, mut world) = world(TmpFsOptions { mode: 0o755, ..Default::default() });
    let protections = &world.mounts.protections;
    for (name, ours) in [
        ("hardlinks", &protections.hardlinks),
        ("symlinks", &protections.symlinks),
        ("fifos", &protections.fifos),
        ("regular", &protections.regular),
    ] {
        let text = std::fs::read_to_string(format!("/proc/sys/fs/protected_{name}")).unwrap();
        ours.store(text.trim().parse().unwrap(), Ordering::Relaxed);
    }
    let start = ours::prepare(&mut world, as_root);
    for (index, (actor, op)) in ops.iter().enumerate() {
        let mine = ours::apply(&world, &start, *actor, as_root, op);
        let its = host.apply(*actor, op);
        prop_assert_eq!(mine, its, "operation {}: {:?} {:?}", index, actor, op);
    }
    prop_assert_eq!(ours::snapshot(&world, &start), host.snapshot());
    Ok(())
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn names_do_what_the_hosts_do(ops in prop::collection::vec(generate::op(), 1..60)) {
        let ops: Vec<_> = ops.into_iter().map(|op| (Actor::Root, op)).collect();
        run(&ops, is_root())?;
    }

    #[test]
    fn users_may_do_what_they_may_on_the_host(
        ops in prop::collection::vec((prop_oneof![1 => Just(Actor::Root), 3 => Just(Actor::User)], generate::op()), 1..60)
    ) {
        if !is_root() {
            eprintln!("skipped: only root can become another user");
            return Ok(());
        }
        run(&ops, true)?;
    }
}
