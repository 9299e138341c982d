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

/// While a rename has moved a file in the file system, and its dentry not yet, the old name is seen to be gone.
#[test]
fn a_name_that_is_just_being_moved_is_not_taken_to_be_removed() {
    let root = Dentry::new_root(TestFs::new().root());
    let waiter = Waiter::new();
    let a = name(&root, "a");
    let before = root.generation();
    let change = root.begin_change(&waiter).unwrap();
    assert_eq!(root.generation(), None);
    assert!(!root.forget_unless_changed(b"a", &a, before));
    assert!(!root.forget_unless_changed(b"a", &a, root.generation()));
    root.move_child(&a, &root, b"b");
    drop(change);
    assert!(!root.forget_unless_changed(b"a", &a, before));
    assert!(!a.is_removed());
    assert!(Arc::ptr_eq(&root.cached_child(b"b").unwrap(), &a));
    assert!(root.forget_unless_changed(b"b", &a, root.generation()));
    assert!(a.is_removed() && root.cached_child(b"b").is_none());
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
