//! Directories: what is in them.

use std::sync::Arc;

use abi::{Errno, FileType};
use sync::SysResult;
use vfs::{Inode, ListedEntry};

use crate::entry::Kind;
use crate::fd;
use crate::node::{Node, Place};

/// Positions: `.` and `..`, then fixed names, then numbers (pids, tids, descriptors) from here on.
const NUMBERS: u64 = 0x1000;

/// The place of a name in a directory; `None` if there is none.
pub(crate) fn find(node: &Node, name: &[u8]) -> SysResult<Option<Place>> {
    if let Some(index) = node.place.table().iter().position(|entry| entry.name.as_bytes() == name) {
        return Ok(node.place.fixed_child(index));
    }
    let Some(number) = parse_number(name) else { return Ok(None) };
    // Threads have directories too, though the root does not list them.
    if node.place == Place::Root {
        let kernel = node.fs()?.kernel()?;
        let tasks = kernel.tasks.lock();
        let exists = tasks.groups.contains_key(&number) || tasks.tasks.contains_key(&number);
        return Ok(exists.then_some(Place::Process(number)));
    }
    let exists = numbered(node).is_some() && numbers(node)?.contains(&number);
    Ok(exists.then(|| numbered_place(node, number)).flatten())
}

/// Digits without a leading zero.
fn parse_number(name: &[u8]) -> Option<i32> {
    let text = std::str::from_utf8(name).ok()?;
    let canonical = text == "0" || !text.starts_with(['0', '+', '-']);
    text.parse().ok().filter(|_| canonical)
}

/// Which numbers a directory lists.
enum Numbered {
    Processes,
    Threads,
    Descriptors { info: bool },
}

fn numbered(node: &Node) -> Option<Numbered> {
    match (&node.place, node.place.entry().map(|entry| entry.kind)) {
        (Place::Root, _) => Some(Numbered::Processes),
        (_, Some(Kind::Threads)) => Some(Numbered::Threads),
        (_, Some(Kind::Descriptors { info })) => Some(Numbered::Descriptors { info }),
        _ => None,
    }
}

/// The numbers in it, ascending.
pub(crate) fn numbers(node: &Node) -> SysResult<Vec<i32>> {
    let kernel = node.fs()?.kernel()?;
    match numbered(node) {
        Some(Numbered::Processes) => Ok(kernel.tasks.lock().groups.keys().copied().collect()),
        Some(Numbered::Threads) => {
            let of = node.of()?.ok_or(Errno::ENOENT)?;
            let mut tids: Vec<i32> =
                kernel.tasks.threads(of.group.pid).iter().map(|thread| thread.tid()).collect();
            tids.sort_unstable();
            Ok(tids)
        }
        Some(Numbered::Descriptors { .. }) => fd::numbers(node),
        None => Ok(Vec::new()),
    }
}

fn numbered_place(node: &Node, number: i32) -> Option<Place> {
    let owner = node.place.owner();
    match numbered(node)? {
        Numbered::Processes => Some(Place::Process(number)),
        Numbered::Threads => Some(Place::Thread(owner?.0, number)),
        Numbered::Descriptors { info } => {
            let (pid, tid) = owner?;
            Some(Place::Descriptor { pid, tid, number, info })
        }
    }
}

/// All that the directory `inode` holds.
pub(crate) fn list(inode: &Arc<Inode>) -> SysResult<Vec<ListedEntry>> {
    let node: &Node = inode.downcast().ok_or(Errno::ENOTDIR)?;
    // The directory of a process that has gone is held, but empty: ENOENT.
    node.of()?;
    let own = node.place.ino();
    let dot = |name: &str, position| ListedEntry {
        name: name.into(),
        ino: own,
        file_type: FileType::DIR,
        position,
    };
    let mut list = vec![dot(".", 0), dot("..", 1)];
    let mut add = |name: String, place: &Place, position| {
        list.push(ListedEntry {
            name: name.into(),
            ino: place.ino(),
            file_type: place.file_type(),
            position,
        });
    };
    for (index, entry) in node.place.table().iter().enumerate() {
        if let Some(place) = node.place.fixed_child(index) {
            add(entry.name.into(), &place, 2 + index as u64);
        }
    }
    for number in numbers(node)? {
        if let Some(place) = numbered_place(node, number) {
            add(number.to_string(), &place, NUMBERS + u64::try_from(number).unwrap_or(0));
        }
    }
    Ok(list)
}
