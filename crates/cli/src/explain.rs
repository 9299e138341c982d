//! Why a program could not be started, in words, with what to try.
//!
//! The kernel says an errno, as `execve` does; what it stands for is found out here by looking at the file as the guest
//! sees it: a directory, a script whose interpreter is missing, a program for another machine.

use abi::{Errno, OpenFlags};
use sync::SysResult;
use vfs::ops::{self, OpenRequest};
use vfs::{FdTable, FsContext, FsPlace, KernelCaller, Lookup, NoSpecialFiles, SliceSink};

use crate::root::NameSpace;

/// Bytes of a file that are looked at: all headers of usual programs.
const HEAD: usize = 4096;

/// What was asked for.
pub(crate) struct Attempt<'a> {
    pub name: &'a str,
    /// The directory that relative names start from.
    pub workdir: &'a [u8],
    pub names: &'a NameSpace,
}

/// What kept it from running.
pub(crate) fn explain(attempt: &Attempt<'_>, errno: Errno) -> String {
    let name = attempt.name;
    if name.is_empty() {
        return "the name of the program is empty".into();
    }
    let by_path = name.contains('/');
    match (errno, by_path.then(|| attempt.look()).flatten()) {
        (Errno::ENOENT, None) if by_path => format!(
            "{name}: not found inside the guest. Only parts of the host show there: see `umlaut run --help`, --bind, --root"
        ),
        (Errno::ENOENT, None) => {
            format!(
                "{name}: not found on the guest's PATH. Give its path, or set PATH with --env PATH=…; what lies in a home \
                 directory shows with --home ro, other places with --bind"
            )
        }
        (_, Some(Found::Directory)) => format!("{name}: is a directory"),
        (Errno::ENOENT, Some(Found::Script(interpreter))) => {
            let why = if interpreter.ends_with('\r') { "; the file has DOS line ends" } else { "" };
            let interpreter = interpreter.escape_debug();
            format!(
                "{name}: its interpreter {interpreter} (the line after #!) is not there inside the guest{why}"
            )
        }
        (Errno::ENOENT, Some(Found::Elf { interpreter: Some(interpreter), .. })) => format!(
            "{name}: its interpreter {interpreter} (the dynamic linker) is not there inside the guest: --bind it, or use a \
             static program"
        ),
        (Errno::EACCES, Some(Found::Script(interpreter))) => format!(
            "{name}: not executable (permission denied), or its interpreter {interpreter} is not. `chmod +x` it"
        ),
        (Errno::ENOEXEC, Some(Found::Elf { machine, .. })) if machine != X86_64 => {
            format!("{name}: a program for {}; this is x86-64", machine_name(machine))
        }
        (Errno::ENOEXEC, Some(Found::Text)) => {
            format!(
                "{name}: neither a program nor a script that begins with #!. Run it by its shell: `sh {name}`"
            )
        }
        (Errno::ENOEXEC, _) => {
            format!("{name}: not a program for x86-64 Linux (wrong architecture or format)")
        }
        (Errno::EACCES, _) => {
            format!("{name}: not executable (permission denied). `chmod +x` it, or run it by its shell")
        }
        (Errno::ELIBBAD, _) => {
            format!("{name}: its interpreter (ld.so) is not a program for x86-64 Linux")
        }
        (Errno::EAGAIN, _) => {
            format!(
                "{name}: the host gives no process to run it in (is `ulimit -u` reached?). Try `umlaut check`"
            )
        }
        (Errno::ENFILE | Errno::EMFILE, _) => {
            format!("{name}: the host gives too few open files (see `ulimit -n`)")
        }
        (errno, _) => format!("{}: {errno}", shortened(name)),
    }
}

/// The end of a long name.
pub(crate) fn shortened(name: &str) -> String {
    const MOST: usize = 200;
    match name.char_indices().rev().nth(MOST) {
        Some((at, _)) => format!("…{}", name.get(at..).unwrap_or("")),
        None => name.into(),
    }
}

/// What is there under a name.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Directory,
    Script(String),
    Elf { machine: u16, interpreter: Option<String> },
    Text,
    Other,
}

impl Attempt<'_> {
    /// `None`: nothing, as far as can be seen.
    fn look(&self) -> Option<Found> {
        let (caller, files) = (KernelCaller::new(), FdTable::new());
        let mut path = self.workdir.to_vec();
        path.push(b'/');
        path.extend(self.name.as_bytes());
        let path = if self.name.starts_with('/') { self.name.as_bytes() } else { &path };
        let root = &self.names.root;
        let ctx = FsContext::new(
            &self.names.mounts,
            FsPlace::at_root(root.clone(), 0),
            &files,
            &caller,
            &NoSpecialFiles,
        );
        let at = ctx.lookup_path(abi::AT_FDCWD, path, Lookup::FOLLOW).ok()?;
        if at.inode().is_dir() {
            return Some(Found::Directory);
        }
        Some(head(&ctx, path, &caller).map_or(Found::Other, |head| identify(&head)))
    }
}

fn head(ctx: &FsContext<'_>, path: &[u8], caller: &KernelCaller) -> SysResult<Vec<u8>> {
    let request = OpenRequest::open(OpenFlags::RDONLY | OpenFlags::NONBLOCK, 0)?;
    let file = ops::open(ctx, abi::AT_FDCWD, path, &request)?;
    let mut bytes = vec![0; HEAD];
    let mut sink = SliceSink { bytes: &mut bytes, filled: 0 };
    let count = vfs::rw::read(&file, caller, &mut sink)?;
    bytes.truncate(count);
    Ok(bytes)
}

const X86_64: u16 = 62;

fn machine_name(machine: u16) -> String {
    match machine {
        3 => "32-bit x86".into(),
        8 => "MIPS".into(),
        21 => "64-bit PowerPC".into(),
        22 => "S/390".into(),
        40 => "32-bit ARM".into(),
        183 => "64-bit ARM (aarch64)".into(),
        243 => "RISC-V".into(),
        258 => "LoongArch".into(),
        other => format!("another architecture (ELF machine {other})"),
    }
}

/// What a file is, by its first bytes.
fn identify(head: &[u8]) -> Found {
    if let Some(line) = head.strip_prefix(b"#!") {
        let line = line.split(|byte| *byte == b'\n').next().unwrap_or(&[]);
        let mut words = line.split(|byte| matches!(byte, b' ' | b'\t'));
        let path = words.find(|word| !word.is_empty()).unwrap_or(&[]);
        return Found::Script(String::from_utf8_lossy(path).into_owned());
    }
    if head.starts_with(b"\x7fELF") {
        let machine = number(head, 18, 2).and_then(|machine| u16::try_from(machine).ok()).unwrap_or(0);
        return Found::Elf { machine, interpreter: interpreter(head) };
    }
    let is_text = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace() || *byte >= 0x80;
    if !head.is_empty() && head.iter().all(is_text) { Found::Text } else { Found::Other }
}

/// The path in PT_INTERP, where it lies in the bytes that are there.
fn interpreter(head: &[u8]) -> Option<String> {
    const PT_INTERP: u64 = 3;
    let (table, size, count) = (number(head, 32, 8)?, number(head, 54, 2)?, number(head, 56, 2)?);
    let at = (0..count)
        .map(|index| table.saturating_add(index * size))
        .filter_map(|at| usize::try_from(at).ok())
        .find(|at| number(head, *at, 4) == Some(PT_INTERP))?;
    let start = usize::try_from(number(head, at.checked_add(8)?, 8)?).ok()?;
    let path = head.get(start..)?.split(|byte| *byte == 0).next()?;
    Some(String::from_utf8_lossy(path).into_owned())
}

/// A number of `size` bytes, least significant first.
fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(size)?)?;
    Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_apart_by_their_first_bytes() {
        assert_eq!(identify(b"#! /bin/sh -e\necho\n"), Found::Script("/bin/sh".into()));
        assert_eq!(identify(b"#!/bin/sh\r\necho\r\n"), Found::Script("/bin/sh\r".into()));
        assert_eq!(identify(b"echo hi\n"), Found::Text);
        assert_eq!(identify(b""), Found::Other);
        assert_eq!(identify(b"\0\x01"), Found::Other);
        assert_eq!(identify(b"\x7fELF"), Found::Elf { machine: 0, interpreter: None });
        let own = std::fs::read("/proc/self/exe").unwrap();
        let Found::Elf { machine: X86_64, interpreter } = identify(&own[..HEAD]) else {
            panic!("not x86-64")
        };
        assert!(interpreter.is_none_or(|path| path.contains("ld")));
    }

    #[test]
    fn long_names_are_shortened() {
        assert_eq!(shortened("short"), "short");
        assert_eq!(shortened(&"ä".repeat(5000)).chars().count(), 202);
    }
}
