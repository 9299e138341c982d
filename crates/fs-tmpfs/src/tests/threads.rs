//! Many threads on few names: no order of locks is broken (debug builds check it), and in the end names, counts of
//! links and dentries agree.

use std::collections::HashMap;

use abi::AtFlags;
use vfs::{Inode, Lookup, RenameMode, d_path};

use super::*;
use crate::TmpNode;

/// A small generator of numbers, so that a run can be repeated.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    fn path(&mut self) -> String {
        let names = ["a", "b", "c"];
        let depth = 1 + self.below(3);
        (0..depth).map(|_| names[self.below(3)]).collect::<Vec<_>>().join("/")
    }
}

fn act(ctx: &FsContext<'_>, dice: &mut Dice) {
    let (one, two) = (dice.path(), dice.path());
    let (a, b) = (one.as_bytes(), two.as_bytes());
    // What succeeds is chance.
    let _ = match dice.below(10) {
        0 | 1 => ops::mkdir(ctx, AT_FDCWD, a, 0o755),
        2 => open(ctx, &one, OpenFlags::CREAT | OpenFlags::RDWR).map(drop),
        3 => ops::unlink(ctx, AT_FDCWD, a),
        4 => ops::rmdir(ctx, AT_FDCWD, a),
        5 | 6 => ops::rename(ctx, AT_FDCWD, a, AT_FDCWD, b, RenameMode::Replace),
        7 => ops::rename(ctx, AT_FDCWD, a, AT_FDCWD, b, RenameMode::Exchange),
        8 => ops::link(ctx, AT_FDCWD, a, AT_FDCWD, b, AtFlags::empty()),
        _ => ops::stat(ctx, AT_FDCWD, a, AtFlags::empty()).map(drop),
    };
}

#[test]
fn names_links_and_dentries_agree_after_a_crowd() {
    let (fs, world) = world(TmpFsOptions::default());
    std::thread::scope(|scope| {
        for seed in 0..6 {
            let world = &world;
            scope.spawn(move || {
                let caller = TestCaller::root();
                let ctx = world.context(&caller);
                let mut dice = Dice(seed);
                for round in 0..4000 {
                    act(&ctx, &mut dice);
                    if round % 500 == 0 {
                        world.mounts.dentries.clear();
                    }
                }
            });
        }
    });
    let caller = TestCaller::root();
    let ctx = world.context(&caller);
    let mut links: HashMap<u64, (Arc<Inode>, u64)> = HashMap::new();
    let mut todo = vec![(String::new(), ctx.place.root.inode().clone())];
    links.insert(todo[0].1.downcast::<TmpNode>().unwrap().ino, (todo[0].1.clone(), 2));
    while let Some((path, inode)) = todo.pop() {
        let node = inode.downcast::<TmpNode>().unwrap();
        let entries = node.lock().entries().unwrap().list(0, usize::MAX);
        for (entry, _) in entries {
            let below = format!("{path}/{}", String::from_utf8_lossy(&entry.name));
            let found = ctx.lookup_path(AT_FDCWD, below.as_bytes(), Lookup::empty()).unwrap();
            assert!(Arc::ptr_eq(found.inode(), &entry.inode), "{below}");
            assert_eq!(d_path(&found, &ctx.place.root), below.as_bytes());
            let child = entry.inode.downcast::<TmpNode>().unwrap();
            let is_dir = entry.inode.is_dir();
            links.entry(child.ino).or_insert((entry.inode.clone(), if is_dir { 1 } else { 0 })).1 += 1;
            if is_dir {
                links.get_mut(&node.ino).unwrap().1 += 1;
                todo.push((below, entry.inode));
            }
        }
    }
    for (inode, counted) in links.values() {
        assert_eq!(inode.ops.attributes(inode).unwrap().nlink, *counted);
    }
    let reachable = links.len() as u64;
    drop(links);
    assert_eq!(fs.inodes.used(), reachable);
}
