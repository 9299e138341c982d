//! ELF headers: what of a file is to be mapped where. Only headers are looked at; section headers, which
//! packers strip, are not.

use abi::{Errno, GUEST_TOP, PAGE_SIZE, Prot};
use object::elf;
use object::read::elf::{FileHeader, ProgramHeader};
use sync::SysResult;

type Header = elf::FileHeader64<object::LittleEndian>;
const LE: object::LittleEndian = object::LittleEndian;

/// Bytes of the file's header.
pub(super) const HEADER: usize = size_of::<Header>();
/// Program headers that Linux reads at most, in bytes (`ELF_MIN_ALIGN`).
const MAX_HEADERS: usize = 65536;
/// Length of an interpreter's path at most (`PATH_MAX`).
const MAX_INTERPRETER: u64 = 4096;

/// What an ELF file asks for.
#[derive(Debug)]
pub(super) struct Elf {
    pub entry: u64,
    /// It may be loaded anywhere (`ET_DYN`).
    pub relocatable: bool,
    pub segments: Vec<Segment>,
    /// Where in the file the interpreter's path is, and its length with the zero byte.
    pub interpreter: Option<(u64, usize)>,
    /// `PT_GNU_STACK` asks for an executable stack; `None`: it says nothing.
    pub executable_stack: Option<bool>,
    /// Program headers: address (before relocation), size of one, count.
    pub header_addr: u64,
    pub header_size: u16,
    pub header_count: u16,
}

/// A `PT_LOAD`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub addr: u64,
    pub file_offset: u64,
    pub file_size: u64,
    pub memory_size: u64,
    pub align: u64,
    pub prot: Prot,
}

impl Segment {
    /// The page that it begins in.
    pub(super) fn page_start(&self) -> u64 {
        self.addr / PAGE_SIZE * PAGE_SIZE
    }

    /// End in memory.
    pub(super) fn end(&self) -> u64 {
        self.addr.wrapping_add(self.memory_size)
    }
}

/// Reads from the file; fewer bytes than asked for at its end.
pub(super) type ReadAt<'a> = dyn FnMut(u64, usize) -> SysResult<Vec<u8>> + 'a;

impl Elf {
    /// Parses a file whose first bytes are `start`, behind which zeros stand for what it does not have (as in Linux's
    /// buffer). Neither class nor byte order nor versions are looked at, as there. `ENOEXEC`: not an x86-64 executable.
    pub(super) fn parse(start: &[u8], read_at: &mut ReadAt<'_>) -> SysResult<Elf> {
        let mut bytes = [0u8; HEADER];
        for (to, from) in bytes.iter_mut().zip(start) {
            *to = *from;
        }
        // `object` reads unaligned types, so any bytes will do.
        let header: &Header = object::pod::from_bytes(&bytes).map_err(|()| Errno::ENOEXEC)?.0;
        let kind = header.e_type(LE);
        if header.e_ident().magic != elf::ELFMAG
            || header.e_machine(LE) != elf::EM_X86_64
            || !(kind == elf::ET_EXEC || kind == elf::ET_DYN)
        {
            return Err(Errno::ENOEXEC.into());
        }
        let (size, count) = (header.e_phentsize(LE), header.e_phnum(LE));
        let table_len = usize::from(size) * usize::from(count);
        if usize::from(size) != size_of::<elf::ProgramHeader64<object::LittleEndian>>()
            || count == 0
            || table_len > MAX_HEADERS
        {
            return Err(Errno::ENOEXEC.into());
        }
        let table_at = header.e_phoff(LE);
        let table = read_at(table_at, table_len).unwrap_or_default();
        if table.len() < table_len {
            return Err(Errno::ENOEXEC.into());
        }
        let headers: &[elf::ProgramHeader64<object::LittleEndian>] =
            object::pod::slice_from_bytes(&table, usize::from(count)).map_err(|()| Errno::ENOEXEC)?.0;
        let mut found = Elf {
            entry: header.e_entry(LE),
            relocatable: kind == elf::ET_DYN,
            segments: Vec::new(),
            interpreter: None,
            executable_stack: None,
            header_addr: 0,
            header_size: size,
            header_count: count,
        };
        for program_header in headers {
            found.add(program_header, table_at)?;
        }
        Ok(found)
    }

    fn add(&mut self, header: &elf::ProgramHeader64<object::LittleEndian>, table_at: u64) -> SysResult<()> {
        match header.p_type(LE) {
            elf::PT_LOAD => self.add_load(header, table_at),
            elf::PT_INTERP if self.interpreter.is_none() => {
                let len = header.p_filesz(LE);
                if !(2..=MAX_INTERPRETER).contains(&len) {
                    return Err(Errno::ENOEXEC.into());
                }
                let len = usize::try_from(len).map_err(|_| Errno::ENOEXEC)?;
                self.interpreter = Some((header.p_offset(LE), len));
            }
            elf::PT_GNU_STACK => self.executable_stack = Some(header.p_flags(LE).0 & elf::PF_X.0 != 0),
            elf::PT_PHDR => self.header_addr = header.p_vaddr(LE),
            _ => {}
        }
        Ok(())
    }

    fn add_load(&mut self, header: &elf::ProgramHeader64<object::LittleEndian>, table_at: u64) {
        let segment = Segment {
            addr: header.p_vaddr(LE),
            file_offset: header.p_offset(LE),
            file_size: header.p_filesz(LE),
            memory_size: header.p_memsz(LE),
            align: header.p_align(LE),
            prot: protection(header.p_flags(LE).0),
        };
        // The headers' address follows from the segment that holds them, unless PT_PHDR tells it.
        let into = table_at.checked_sub(segment.file_offset).filter(|into| *into < segment.file_size);
        if let Some(into) = into
            && self.header_addr == 0
        {
            self.header_addr = into.wrapping_add(segment.addr);
        }
        self.segments.push(segment);
    }

    /// Whether all segments can be mapped. Linux finds out only when the old image has gone.
    pub(super) fn check_segments(&self) -> SysResult<()> {
        for segment in &self.segments {
            let fits = segment.addr.checked_add(segment.memory_size).is_some_and(|end| end <= GUEST_TOP);
            let file_ok = segment.file_offset.checked_add(segment.file_size).is_some();
            let aligned =
                segment.addr % PAGE_SIZE == segment.file_offset % PAGE_SIZE || segment.file_size == 0;
            if segment.file_size > segment.memory_size || !fits || !file_ok || !aligned {
                return Err(Errno::EINVAL.into());
            }
        }
        Ok(())
    }

    /// The span of all segments: first page and end, page-aligned. `None`: nothing to load.
    pub(super) fn span(&self) -> Option<(u64, u64)> {
        let loads = self.segments.iter().filter(|segment| segment.memory_size > 0);
        let start = loads.clone().map(Segment::page_start).min()?;
        let end = loads.map(Segment::end).max()?;
        Some((start, end.checked_add(PAGE_SIZE - 1)? / PAGE_SIZE * PAGE_SIZE))
    }

    /// The largest alignment that is a power of two (Linux: `maximum_alignment`), at least a page.
    pub(super) fn alignment(&self) -> u64 {
        let powers =
            self.segments.iter().map(|segment| segment.align).filter(|align| align.is_power_of_two());
        powers.max().unwrap_or(0).max(PAGE_SIZE)
    }
}

fn protection(flags: u32) -> Prot {
    let mut prot = Prot::NONE;
    for (flag, right) in [(elf::PF_R, Prot::READ), (elf::PF_W, Prot::WRITE), (elf::PF_X, Prot::EXEC)] {
        if flags & flag.0 != 0 {
            prot |= right;
        }
    }
    prot
}
