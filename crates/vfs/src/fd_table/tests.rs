//! The table against a plain map, and what the map cannot show.

use std::collections::BTreeMap;
use std::sync::Arc;

use abi::{Errno, OpenFlags};
use proptest::prelude::*;

use super::*;
use crate::test_support::{Opened, errno};

fn file() -> Arc<FileDescription> {
    FileDescription::new(Box::new(Opened), None, OpenFlags::RDWR)
}

#[derive(Clone, Debug)]
enum Op {
    Install(bool),
    InstallFrom(u64, bool),
    Dup2(i32, i32, bool),
    Close(i32),
    CloseRange(u32, u32),
    CloexecRange(u32, u32),
    SetCloexec(i32, bool),
    Exec,
    Fork,
}

fn number() -> impl Strategy<Value = i32> {
    prop_oneof![0..12_i32, 60..70_i32, Just(-1), Just(250), Just(299), Just(300)]
}

fn op() -> impl Strategy<Value = Op> {
    let any_range = (0..80_u32, prop_oneof![0..80_u32, Just(u32::MAX)]);
    prop_oneof![
        6 => any::<bool>().prop_map(Op::Install),
        2 => (prop_oneof![0..70_u64, Just(299), Just(300)], any::<bool>()).prop_map(|(n, c)| Op::InstallFrom(n, c)),
        4 => (number(), number(), any::<bool>()).prop_map(|(a, b, c)| Op::Dup2(a, b, c)),
        4 => number().prop_map(Op::Close),
        1 => any_range.clone().prop_map(|(a, b)| Op::CloseRange(a, b)),
        1 => any_range.prop_map(|(a, b)| Op::CloexecRange(a, b)),
        2 => (number(), any::<bool>()).prop_map(|(n, c)| Op::SetCloexec(n, c)),
        1 => Just(Op::Exec),
        1 => Just(Op::Fork),
    ]
}

const LIMIT: u64 = 300;

/// Numbers to files and close-on-exec flags.
type Model = BTreeMap<i32, (Arc<FileDescription>, bool)>;

fn lowest(model: &Model, from: i32) -> Option<i32> {
    (from..300).find(|fd| !model.contains_key(fd))
}

fn apply(table: &mut FdTable, model: &mut Model, op: &Op) {
    let same = |a: &[Arc<FileDescription>], b: Vec<Arc<FileDescription>>| {
        a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| Arc::ptr_eq(a, b))
    };
    match *op {
        Op::Install(cloexec) => install(table, model, 0, cloexec),
        Op::InstallFrom(from, _) if from >= LIMIT => {
            assert_eq!(errno(table.install_from(file(), from, LIMIT, true)), Some(Errno::EINVAL));
        }
        Op::InstallFrom(from, cloexec) => install(table, model, from, cloexec),
        Op::Dup2(old, new, cloexec) => {
            let result = table.replace(old, new, LIMIT, cloexec);
            let source = model.get(&old).map(|(file, _)| file.clone());
            match source.filter(|_| (0..300).contains(&new)) {
                None => assert_eq!(errno(result), Some(Errno::EBADF)),
                Some(file) => {
                    let replaced = model.insert(new, (file, cloexec)).map(|(file, _)| file);
                    assert_eq!(result.unwrap().map(|f| Arc::as_ptr(&f)), replaced.map(|f| Arc::as_ptr(&f)));
                }
            }
        }
        Op::Close(fd) => match model.remove(&fd) {
            None => assert_eq!(errno(table.remove(fd)), Some(Errno::EBADF)),
            Some((file, _)) => assert!(Arc::ptr_eq(&table.remove(fd).unwrap(), &file)),
        },
        Op::CloseRange(first, last) => {
            let inside = |fd: &i32| (first..=last).contains(&fd.cast_unsigned());
            let closed: Vec<_> =
                model.iter().filter(|(fd, _)| inside(fd)).map(|(_, e)| e.0.clone()).collect();
            model.retain(|fd, _| !inside(fd));
            assert!(same(&closed, table.remove_range(first, last)));
        }
        Op::CloexecRange(first, last) => {
            table.set_cloexec_range(first, last);
            for (fd, entry) in model.iter_mut() {
                entry.1 |= (first..=last).contains(&fd.cast_unsigned());
            }
        }
        Op::SetCloexec(fd, cloexec) => match model.get_mut(&fd) {
            None => assert_eq!(errno(table.set_cloexec(fd, cloexec)), Some(Errno::EBADF)),
            Some(entry) => {
                table.set_cloexec(fd, cloexec).unwrap();
                entry.1 = cloexec;
            }
        },
        Op::Exec => {
            let closed: Vec<_> =
                model.values().filter(|entry| entry.1).map(|entry| entry.0.clone()).collect();
            model.retain(|_, entry| !entry.1);
            assert!(same(&closed, table.remove_cloexec()));
        }
        Op::Fork => *table = table.copy(),
    }
}

fn install(table: &FdTable, model: &mut Model, from: u64, cloexec: bool) {
    let new = file();
    let result = match from {
        0 => table.install(new.clone(), LIMIT, cloexec),
        from => table.install_from(new.clone(), from, LIMIT, cloexec),
    };
    match lowest(model, i32::try_from(from).unwrap()) {
        None => assert_eq!(errno(result), Some(Errno::EMFILE)),
        Some(fd) => {
            assert_eq!(result, Ok(fd));
            model.insert(fd, (new, cloexec));
        }
    }
}

proptest! {
    #[test]
    fn the_table_is_a_map_that_gives_the_lowest_number(ops in prop::collection::vec(op(), 1..400)) {
        let (mut table, mut model) = (FdTable::new(), Model::new());
        for op in &ops {
            apply(&mut table, &mut model, op);
            let mut listed = Vec::new();
            let mut from = 0;
            while let Some(entry) = table.next(from) {
                from = entry.fd.cast_unsigned() + 1;
                listed.push((entry.fd, Arc::as_ptr(&entry.file), entry.cloexec));
            }
            let wanted: Vec<_> = model.iter().map(|(fd, e)| (*fd, Arc::as_ptr(&e.0), e.1)).collect();
            prop_assert_eq!(listed, wanted);
            prop_assert_eq!(table.count(), model.len());
        }
    }
}

#[test]
fn a_reserved_number_is_taken_but_not_open() {
    let table = FdTable::new();
    let reserved = table.reserve(10, false).unwrap();
    assert_eq!(reserved.fd(), 0);
    assert_eq!(errno(table.get(0)), Some(Errno::EBADF));
    assert_eq!(table.install(file(), 10, false), Ok(1));
    assert_eq!(errno(table.replace(1, 0, 10, false)), Some(Errno::EBUSY));
    assert_eq!(errno(table.remove(0)), Some(Errno::EBADF));
    drop(reserved);
    assert_eq!(table.install(file(), 10, false), Ok(0));
}

#[test]
fn a_high_number_costs_one_chunk() {
    let table = FdTable::new();
    table.install(file(), 10, false).unwrap();
    table.replace(0, 1_048_575, u64::MAX, true).unwrap();
    assert_eq!(errno(table.replace(0, 1_048_576, u64::MAX, true)), Some(Errno::EBADF));
    assert_eq!(table.table.lock().chunks.iter().flatten().count(), 2);
    assert_eq!(table.next(1).map(|entry| entry.fd), Some(1_048_575));
    assert_eq!(table.remove_all().len(), 2);
}

#[test]
fn a_path_only_file_is_no_file_for_io() {
    let table = FdTable::new();
    let path_only = FileDescription::new(Box::new(Opened), None, OpenFlags::PATH);
    let fd = table.install(path_only, 10, false).unwrap();
    assert_eq!(errno(table.get(fd)), Some(Errno::EBADF));
    assert!(table.get_any(fd).is_ok());
}
