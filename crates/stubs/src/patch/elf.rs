//! Where the text of an ELF file is.

use std::io;
use std::os::fd::BorrowedFd;

use abi::PAGE_SIZE;
use object::elf::{EM_X86_64, ET_DYN, ET_EXEC, FileHeader64, PF_X, PT_LOAD, ProgramHeader64};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{LittleEndian, Pod};

use super::{pages, read_at};

/// The one executable segment of a file, as it is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Text {
    /// Its first page in the file.
    pub(super) offset: u64,
    /// The address of that page, as the file has it.
    pub(super) address: u64,
    /// Bytes of whole pages.
    pub(super) len: u64,
    /// Bytes of it that are the segment's.
    pub(super) code_len: usize,
    /// From its first page to the end of the last segment's.
    pub(super) distance: u64,
}

/// Finds it, or says why the file's text is left alone.
pub(super) fn text(file: BorrowedFd<'_>) -> io::Result<Result<Text, &'static str>> {
    const HEADER: usize = 64;
    const ENTRY: usize = 56;
    const MOST: usize = 64;
    const NO_PROGRAM: &str = "not a program or library for x86-64";
    let mut bytes = [0u8; HEADER + MOST * ENTRY];
    let read = read_at(file, &mut bytes, 0)?;
    let bytes = bytes.get(..read).unwrap_or(&[]);
    let Ok((header, _)) = object::pod::from_bytes::<FileHeader64<LittleEndian>>(bytes) else {
        return Ok(Err(NO_PROGRAM));
    };
    let little = LittleEndian;
    let supported = header.is_supported()
        && header.is_little_endian()
        && header.e_machine.get(little) == EM_X86_64
        && [ET_DYN, ET_EXEC].contains(&header.e_type.get(little))
        && usize::from(header.e_phentsize.get(little)) == ENTRY
        && header.e_phoff.get(little) == HEADER as u64;
    let count = usize::from(header.e_phnum.get(little));
    if !supported || count > MOST {
        return Ok(Err(NO_PROGRAM));
    }
    let table = bytes.get(HEADER..).unwrap_or(&[]);
    let Ok((entries, _)) = slice_of::<ProgramHeader64<LittleEndian>>(table, count) else {
        return Ok(Err(NO_PROGRAM));
    };
    let loads = || entries.iter().filter(|entry| entry.p_type(little) == PT_LOAD);
    let mut executable = loads().filter(|entry| entry.p_flags(little).0 & PF_X.0 != 0);
    let (Some(text), None) = (executable.next(), executable.next()) else {
        return Ok(Err("it has no executable segment, or several"));
    };
    let end = loads().filter_map(|entry| entry.p_vaddr(little).checked_add(entry.p_memsz(little))).max();
    let (address, offset, size) = (text.p_vaddr(little), text.p_offset(little), text.p_filesz(little));
    let within = address % PAGE_SIZE;
    let odd = within != offset % PAGE_SIZE || size == 0 || text.p_memsz(little) != size;
    let (Some(end), false) = (end, odd) else { return Ok(Err("its executable segment is an odd one")) };
    if end >= 1 << 47 || size >= 1 << 31 || offset >= 1 << 47 {
        return Ok(Err("its segments are too large, or too far apart"));
    }
    let start = address - within;
    let code_len = usize::try_from(size + within).unwrap_or(0);
    Ok(Ok(Text {
        offset: offset - within,
        address: start,
        len: pages(size + within),
        code_len,
        distance: pages(end).saturating_sub(start),
    }))
}

fn slice_of<T: Pod>(bytes: &[u8], count: usize) -> Result<(&[T], &[u8]), ()> {
    object::pod::slice_from_bytes(bytes, count)
}
