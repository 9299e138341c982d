//! Finding what is to run: the file, the interpreters it names, and the credentials it gives.

use std::sync::atomic::Ordering;

use abi::{AtFlags, Errno, FileMode};
use sync::SysResult;
use vfs::ops::Executable;
use vfs::{CapSet, Cred, FileDescription, MountFlags, SliceSink};

use crate::exec::elf::{Elf, HEADER};
use crate::task::CurrentTask;

/// Bytes of a file that decide how it runs (`BINPRM_BUF_SIZE`).
const HEAD: usize = 256;
/// Interpreters that may name interpreters.
const MAX_DEPTH: usize = 5;

/// What `execve` and `execveat` are given.
pub struct ExecArguments {
    pub dirfd: i32,
    pub path: Vec<u8>,
    /// `AT_EMPTY_PATH`.
    pub empty_path: bool,
    /// `AT_SYMLINK_NOFOLLOW`.
    pub no_follow: bool,
    pub arguments: Vec<Vec<u8>>,
    pub environment: Vec<Vec<u8>>,
}

/// What will run.
pub(super) struct Program {
    pub file: Executable,
    pub elf: Elf,
    /// The ELF interpreter (ld.so).
    pub interpreter: Option<(Executable, Elf)>,
    /// `AT_EXECFN`.
    pub filename: Vec<u8>,
    pub arguments: Vec<Vec<u8>>,
    /// `comm`.
    pub name: Vec<u8>,
    pub cred: Cred,
    /// `AT_SECURE`: the image has more rights than its caller.
    pub secure: bool,
    /// The caller may not read the file: not dumpable.
    pub unreadable: bool,
}

impl Program {
    /// Opens and follows interpreters until there is an ELF file.
    pub(super) fn find(task: &CurrentTask, exec: &ExecArguments) -> SysResult<Program> {
        let filename = exec_filename(exec);
        let mut arguments = exec.arguments.clone();
        if arguments.is_empty() {
            arguments.push(Vec::new());
        }
        let mut flags = AtFlags::empty();
        flags.set(AtFlags::EMPTY_PATH, exec.empty_path);
        flags.set(AtFlags::SYMLINK_NOFOLLOW, exec.no_follow);
        let mut file = open_exec(task, exec.dirfd, &exec.path, flags)?;
        let mut script_name = filename.clone();
        for _ in 0..=MAX_DEPTH {
            let head = read_at(task, &file.file, 0, HEAD)?;
            let Some(line) = head.strip_prefix(b"#!") else {
                return Program::load(task, file, &head, filename, arguments);
            };
            let (interpreter, argument) = parse_script_line(line, head.len() == HEAD)?;
            if name_closes(task, exec) {
                return Err(Errno::ENOENT.into());
            }
            // The script's own path becomes an argument: one behind a close-on-exec descriptor cannot be reached.
            let mut list = vec![interpreter.clone()];
            list.extend(argument);
            list.push(script_name);
            list.extend(arguments.into_iter().skip(1));
            arguments = list;
            file = open_interpreter(task, &interpreter)?;
            script_name = interpreter;
        }
        Err(Errno::ELOOP.into())
    }

    fn load(
        task: &CurrentTask,
        file: Executable,
        head: &[u8],
        filename: Vec<u8>,
        arguments: Vec<Vec<u8>>,
    ) -> SysResult<Program> {
        let elf = Elf::parse(head, &mut |at, len| read_at(task, &file.file, at, len))?;
        let interpreter = match elf.interpreter {
            None => None,
            Some((at, len)) => {
                let mut path = read_at(task, &file.file, at, len)?;
                if path.len() < len {
                    return Err(Errno::EIO.into());
                }
                if path.pop() != Some(0) {
                    return Err(Errno::ENOEXEC.into());
                }
                let path = path.split(|byte| *byte == 0).next().unwrap_or(&[]);
                let loader = open_interpreter(task, path)?;
                let head = read_at(task, &loader.file, 0, HEADER)?;
                if head.len() < HEADER {
                    return Err(Errno::EIO.into());
                }
                let elf = Elf::parse(&head, &mut |at, len| read_at(task, &loader.file, at, len));
                let elf = elf.map_err(|error| match error.errno() {
                    Some(Errno::ENOEXEC) => Errno::ELIBBAD.into(),
                    _ => error,
                })?;
                Some((loader, elf))
            }
        };
        let (cred, secure) = new_credentials(task, &file.file)?;
        let name = base_name(&filename);
        let unreadable = !may_read(task, &file.file);
        Ok(Program { file, elf, interpreter, filename, arguments, name, cred, secure, unreadable })
    }
}

/// Programs are opened even when guests have taken all descriptors that they may.
fn open_exec(task: &CurrentTask, dirfd: i32, path: &[u8], flags: AtFlags) -> SysResult<Executable> {
    host::descriptors::with_reserve(|| vfs::ops::open_exec(&task.fs_context(), dirfd, path, flags))
}

fn open_interpreter(task: &CurrentTask, path: &[u8]) -> SysResult<Executable> {
    open_exec(task, crate::syscall::Fd::CWD.0, path, AtFlags::empty())
}

/// Whether the caller may read the file that it executes.
fn may_read(task: &CurrentTask, file: &FileDescription) -> bool {
    file.inode.as_ref().is_some_and(|inode| vfs::inode_permission(inode, task, vfs::MAY_READ).is_ok())
}

/// The name that the image is told: `/dev/fd/N[/path]` for one found by a descriptor.
fn exec_filename(exec: &ExecArguments) -> Vec<u8> {
    if exec.dirfd == crate::syscall::Fd::CWD.0 || exec.path.first() == Some(&b'/') {
        return exec.path.clone();
    }
    let mut name = format!("/dev/fd/{}", exec.dirfd).into_bytes();
    if !exec.path.is_empty() {
        name.push(b'/');
        name.extend(&exec.path);
    }
    name
}

/// Whether the name that an image is told will be gone with a descriptor that the exec closes
/// (`BINPRM_FLAGS_PATH_INACCESSIBLE`).
fn name_closes(task: &CurrentTask, exec: &ExecArguments) -> bool {
    let by_descriptor = exec.dirfd != crate::syscall::Fd::CWD.0 && exec.path.first() != Some(&b'/');
    by_descriptor && task.files.table.entry(exec.dirfd).is_ok_and(|entry| entry.cloexec)
}

fn base_name(path: &[u8]) -> Vec<u8> {
    let base = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    base.iter().copied().take(15).collect()
}

/// What follows `#!`: the interpreter and, if there is one, its one argument (Linux: `load_script`).
fn parse_script_line(line: &[u8], cut: bool) -> SysResult<(Vec<u8>, Option<Vec<u8>>)> {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let end = line.iter().position(|byte| matches!(byte, b'\n' | 0));
    let ends_line = end.is_some_and(|end| line.get(end) == Some(&b'\n'));
    let whole = line.get(..end.unwrap_or(line.len())).unwrap_or(line);
    let Some(start) = whole.iter().position(|byte| !is_blank(byte)) else {
        // Linux takes an empty name that is not a line's for the current directory.
        let refused = if ends_line || (end.is_none() && cut) { Errno::ENOEXEC } else { Errno::EACCES };
        return Err(refused.into());
    };
    let text = whole.get(start..).unwrap_or(&[]);
    let name_end = text.iter().position(is_blank);
    // A path that may have been cut off by the buffer's end is not run.
    if end.is_none() && cut && name_end.is_none() {
        return Err(Errno::ENOEXEC.into());
    }
    let name = text.get(..name_end.unwrap_or(text.len())).unwrap_or(text);
    let rest = text.get(name.len()..).unwrap_or(&[]);
    let argument = rest.trim_ascii_start();
    let trimmed = argument.len() - argument.iter().rev().take_while(|byte| is_blank(byte)).count();
    let argument = argument.get(..trimmed).filter(|argument| !argument.is_empty());
    Ok((name.to_vec(), argument.map(<[u8]>::to_vec)))
}

/// Up to `len` bytes of a file.
pub(super) fn read_at(task: &CurrentTask, file: &FileDescription, at: u64, len: usize) -> SysResult<Vec<u8>> {
    let mut bytes = vec![0; len];
    let mut filled = 0;
    while filled < len {
        let Some(rest) = bytes.get_mut(filled..) else { break };
        let mut sink = SliceSink { bytes: rest, filled: 0 };
        match file.ops.read_at(file, task, at.saturating_add(filled as u64), &mut sink)? {
            0 => break,
            count => filled += count,
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

/// The credentials after exec of this file, and whether they are more than the caller's.
fn new_credentials(task: &CurrentTask, file: &FileDescription) -> SysResult<(Cred, bool)> {
    let old = &*task.cred;
    let mut new = old.clone();
    let inode = file.inode.as_ref().ok_or(Errno::EACCES)?;
    let attributes = inode.ops.attributes(inode)?;
    let mode = attributes.mode;
    let no_set_id = old.no_new_privs
        || file.path.as_ref().is_none_or(|path| path.mount.flags().contains(MountFlags::NOSUID));
    if !no_set_id {
        if mode.contains(FileMode::SUID) {
            new.euid = attributes.uid;
        }
        if mode.contains(FileMode::SGID | FileMode::XGRP) {
            new.egid = attributes.gid;
        }
    }
    (new.suid, new.fsuid) = (new.euid, new.euid);
    (new.sgid, new.fsgid) = (new.egid, new.egid);
    let set_id = new.euid != old.euid || new.egid != old.egid;
    update_capabilities(&mut new, old, set_id);
    let gained = !new.permitted.is_subset(old.permitted);
    let ids_differ = new.euid != new.uid || new.egid != new.gid;
    let secure = ids_differ || (gained && new.uid != 0);
    Ok((new, secure))
}

/// `SECBIT_NOROOT` and `SECBIT_KEEP_CAPS`.
const NO_ROOT: u32 = 1;
const KEEP_CAPS: u32 = 1 << 4;

/// Linux: `cap_bprm_creds_from_file`, for files without capabilities of their own.
fn update_capabilities(new: &mut Cred, old: &Cred, set_id: bool) {
    let root_is_special = new.securebits & NO_ROOT == 0;
    if set_id {
        new.ambient = CapSet::EMPTY;
    }
    if root_is_special && (new.euid == 0 || new.uid == 0) {
        new.permitted = new.bounding.union(old.inheritable);
        new.effective = if new.euid == 0 { new.permitted } else { new.ambient };
    } else {
        new.permitted = new.ambient;
        new.effective = new.ambient;
    }
    new.securebits &= !KEEP_CAPS;
}

/// Whether the image may be looked into by its own user (`PR_GET_DUMPABLE` after exec).
pub(super) fn dumpable(program: &Program, old: &Cred) -> bool {
    let same_ids = program.cred.euid == old.uid && program.cred.egid == old.gid;
    same_ids && !program.unreadable
}

impl CurrentTask {
    /// Applies [`dumpable`] to the group.
    pub(super) fn set_dumpable_for(&self, program: &Program, old: &Cred) {
        self.group().dumpable.store(i32::from(dumpable(program, old)), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn script_lines_are_read_as_linux_does() {
        let parse = |line: &str| parse_script_line(line.as_bytes(), false).ok();
        let expect = |name: &str, argument: Option<&str>| {
            Some((name.as_bytes().to_vec(), argument.map(|text| text.as_bytes().to_vec())))
        };
        assert_eq!(parse("/bin/sh\n"), expect("/bin/sh", None));
        assert_eq!(parse(" \t/bin/sh -e  -x \t\nrest"), expect("/bin/sh", Some("-e  -x")));
        assert_eq!(parse("/bin/sh"), expect("/bin/sh", None));
        assert_eq!(parse("  \n"), None);
        assert_eq!(parse_script_line(&[b'a'; 254], true).ok(), None);
    }
}
