//! `/proc/PID/fd` and `fdinfo`.

use abi::{Errno, OpenFlags};
use sync::SysResult;
use vfs::{FdEntry, MagicTarget};

use crate::entry::Cx;
use crate::node::Node;

/// The numbers that are open.
pub(crate) fn numbers(node: &Node) -> SysResult<Vec<i32>> {
    let of = node.of()?.ok_or(Errno::ENOENT)?;
    let Some(files) = of.task.and_then(|task| task.shared.lock().files.clone()) else {
        return Ok(Vec::new());
    };
    let mut numbers = Vec::new();
    let mut from = 0;
    while let Some(entry) = files.table.next(from) {
        numbers.push(entry.fd);
        from = entry.fd.unsigned_abs() + 1;
    }
    Ok(numbers)
}

fn find(of: Option<crate::entry::Of>, number: i32) -> SysResult<FdEntry> {
    let task = of.and_then(|of| of.task).ok_or(Errno::ENOENT)?;
    let files = task.shared.lock().files.clone().ok_or(Errno::ENOENT)?;
    files.table.entry(number).map_err(|_| Errno::ENOENT.into())
}

pub(crate) fn is_open(node: &Node, number: i32) -> bool {
    node.of().and_then(|of| find(of, number)).is_ok()
}

/// A link's mode tells how the file is open.
pub(crate) fn link_mode(node: &Node) -> SysResult<u32> {
    let crate::node::Place::Descriptor { number, .. } = node.place else { return Err(Errno::EINVAL.into()) };
    let entry = find(node.of()?, number)?;
    let read = if entry.file.is_readable() { 0o400 } else { 0 };
    let write = if entry.file.is_writable() { 0o200 } else { 0 };
    Ok(0o100 | read | write)
}

/// What a descriptor's link leads to.
pub(crate) fn target(cx: &Cx<'_>, number: i32) -> SysResult<MagicTarget> {
    cx.check_access()?;
    let file = find(cx.of.clone(), number)?.file;
    // A file with a place is opened anew there, whatever its name is by now.
    Ok(match &file.path {
        Some(path) => MagicTarget::Path(path.clone()),
        None => MagicTarget::File(file),
    })
}

pub(crate) fn link_text(cx: &Cx<'_>, number: i32) -> SysResult<Vec<u8>> {
    cx.check_access()?;
    let file = find(cx.of.clone(), number)?.file;
    Ok(target_text(cx, &MagicTarget::File(file)))
}

/// What a link to an object shows.
pub(crate) fn target_text(cx: &Cx<'_>, target: &MagicTarget) -> Vec<u8> {
    let root = cx.reader.fs.get().root.clone();
    match target {
        MagicTarget::Path(path) => vfs::d_path(path, &root),
        MagicTarget::File(file) => match (file.ops.link_name(), &file.path) {
            (Some(name), _) => name.into_bytes(),
            (None, Some(path)) => vfs::d_path(path, &root),
            (None, None) => {
                let ino = file.attributes().map_or(0, |attributes| attributes.ino);
                format!("anon_inode:[{ino}]").into_bytes()
            }
        },
    }
}

/// `/proc/PID/fdinfo/N`.
pub(crate) fn info_text(cx: &Cx<'_>, number: i32) -> SysResult<Vec<u8>> {
    cx.check_access()?;
    let entry = find(cx.of.clone(), number)?;
    let file = &entry.file;
    let position = file.ops.seek(file, vfs::Seek::Current(0)).unwrap_or(0);
    let mut flags = file.flags();
    flags.set(OpenFlags::CLOEXEC, entry.cloexec);
    let mount = file.path.as_ref().map_or(0, |path| path.mount.id);
    let ino = file.attributes().map_or(0, |attributes| attributes.ino);
    let mut text = format!("pos:\t{position}\nflags:\t0{:o}\nmnt_id:\t{mount}\nino:\t{ino}\n", flags.bits());
    text.push_str(&file.ops.details());
    Ok(text.into_bytes())
}

/// The path of a process's executable, current directory or root.
pub(crate) fn path_of(path: Option<vfs::Path>) -> SysResult<MagicTarget> {
    path.map(MagicTarget::Path).ok_or(Errno::ENOENT.into())
}
