//! Uniqueness of names, and depth.

use std::sync::Arc;

use sync::Waiter;

use super::*;
use crate::test_support::{TestFs, name};
use crate::{FileSystem, NewNode, NewNodeKind};

#[test]
fn one_dentry_for_each_name_and_a_new_one_after_removal() {
    let root = Dentry::new_root(TestFs::new().root());
    let waiter = Waiter::new();
    let first = name(&root, "a");
    assert!(Arc::ptr_eq(&first, &root.lookup(b"a", &waiter).unwrap()));
    root.forget(&first);
    assert!(first.is_removed());
    assert!(root.cached_child(b"a").is_none());
    let again = root.lookup(b"a", &waiter).unwrap();
    assert!(!Arc::ptr_eq(&first, &again) && Arc::ptr_eq(&first.inode, &again.inode));
}

#[test]
fn dead_names_are_swept_out() {
    let root = Dentry::new_root(TestFs::new().root());
    for i in 0..1000 {
        name(&root, &format!("n{i}"));
    }
    assert!(root.directory.as_ref().unwrap().children.lock().map.len() <= 65);
}

#[test]
fn a_very_deep_tree_is_dropped_without_recursion() {
    let fs = TestFs::new();
    let node = NewNode { kind: NewNodeKind::Directory, permissions: 0o755, uid: 0, gid: 0 };
    let mut at = Dentry::new_root(fs.root());
    let inode = fs.make(&node);
    // Deep enough to overflow a kernel thread's stack if each level took some of it.
    for _ in 0..200_000 {
        at = Dentry::new(inode.clone(), at.tree.clone(), Some(at.clone()), b"d");
    }
    std::thread::Builder::new().stack_size(64 * 1024).spawn(move || drop(at)).unwrap().join().unwrap();
}

#[test]
fn moves_and_exchanges_keep_the_maps_right() {
    let root = Dentry::new_root(TestFs::new().root());
    let (a, b) = (name(&root, "a"), name(&root, "b"));
    root.move_child(&a, &root, b"b");
    root.move_child(&b, &root, b"a");
    assert!(Arc::ptr_eq(&root.cached_child(b"b").unwrap(), &a));
    assert!(Arc::ptr_eq(&root.cached_child(b"a").unwrap(), &b));
    root.move_child(&a, &root, b"c");
    assert!(root.cached_child(b"b").is_none());
    assert_eq!(&*a.name(), b"c");
}
