//! The layout of a new image: which ranges are mapped from where.

use std::sync::Arc;

use abi::{Errno, GUEST_TOP, MapFlags, PAGE_SIZE, Prot};
use sync::SysResult;
use vfs::FileDescription;

use crate::exec::elf::{Elf, Segment};
use crate::mm::{Backing, Layout, Vma, VmaFlags};

/// A range to map.
pub(super) struct ImageMap {
    pub vma: Vma,
    pub flags: MapFlags,
}

/// A new image: what to map, and what to write afterwards.
#[derive(Default)]
pub(super) struct Image {
    pub maps: Vec<ImageMap>,
    /// Ranges to zero: behind the file's bytes, up to the page's end.
    pub zero: Vec<(u64, u64)>,
    pub layout: Layout,
    /// Where the program's own code begins (`AT_ENTRY`).
    pub program_entry: u64,
    /// Where the interpreter lies (`AT_BASE`); 0 without one.
    pub interpreter_base: u64,
    /// Where the new process begins.
    pub start: u64,
    pub header_addr: u64,
}

/// Random numbers for the places of things; all zero where randomisation is off.
#[derive(Clone, Copy)]
pub(super) struct Randomness {
    pub mmap: u64,
    pub stack: u64,
    pub program: u64,
    pub brk: u64,
}

/// Gap between the stack's limit and what is mapped below it (Linux: `MIN_GAP`, `MAX_GAP`).
const MIN_GAP: u64 = 128 << 20;
const MAX_GAP: u64 = GUEST_TOP / 6 * 5;
/// Where relocatable programs go (`ELF_ET_DYN_BASE`).
const DYN_BASE: u64 = GUEST_TOP / 3 * 2 / PAGE_SIZE * PAGE_SIZE;

impl Randomness {
    pub(super) fn none() -> Randomness {
        Randomness { mmap: 0, stack: 0, program: 0, brk: 0 }
    }

    /// Linux's defaults: 28 bits of pages for mappings and programs, 22 for stacks, 32 MiB for the heap.
    pub(super) fn from_bytes(bytes: [u8; 32]) -> Randomness {
        let word = |index: usize| {
            let part = bytes.get(index * 8..index * 8 + 8).and_then(|part| part.try_into().ok());
            part.map_or(0, u64::from_le_bytes)
        };
        Randomness {
            mmap: (word(0) & 0xfff_ffff) * PAGE_SIZE,
            stack: (word(1) & 0x3f_ffff) * PAGE_SIZE,
            program: (word(2) & 0xfff_ffff) * PAGE_SIZE,
            brk: (word(3) & 0x1fff) * PAGE_SIZE,
        }
    }
}

impl Image {
    /// Lays out a program, its interpreter, heap and the base for mappings. `room`: bytes to leave free behind each of
    /// both. `stack_limit` is the new process's `RLIMIT_STACK`.
    pub(super) fn lay_out(
        program: (&Elf, &Arc<FileDescription>),
        interpreter: Option<(&Elf, &Arc<FileDescription>)>,
        room: (u64, u64),
        random: Randomness,
        stack_limit: u64,
    ) -> SysResult<Image> {
        let mut image = Image::default();
        let stack_top = GUEST_TOP - random.stack - PAGE_SIZE;
        let gap = stack_limit.saturating_add(random.stack + (256 + 1) * PAGE_SIZE).clamp(MIN_GAP, MAX_GAP);
        image.layout.stack_top = stack_top;
        image.layout.mmap_base = (GUEST_TOP - gap - random.mmap) / PAGE_SIZE * PAGE_SIZE;
        let (elf, file) = program;
        elf.check_segments()?;
        if let Some((loader, _)) = interpreter {
            loader.check_segments()?;
        }
        let (first, end) = elf.span().ok_or(Errno::ENOEXEC)?;
        let load_at = match (elf.relocatable, interpreter.is_some()) {
            (false, _) => first,
            // A static PIE, or the loader run as a program: away from where the heap of a program would be.
            (true, false) => image.below_base(end - first + room.0, elf.alignment())?,
            (true, true) => align_down(DYN_BASE + random.program, elf.alignment()) + first % elf.alignment(),
        };
        let bias = load_at.wrapping_sub(first);
        image.add_elf(elf, file, bias)?;
        image.note_program(elf, bias);
        image.start = image.program_entry;
        // A heap behind a loader at the top would run into what is mapped there (Linux moves it likewise).
        let heap_at = match (elf.relocatable, interpreter.is_some()) {
            (true, false) => DYN_BASE,
            _ => image.layout.brk + room.0,
        };
        image.layout.start_brk = heap_at.div_ceil(PAGE_SIZE) * PAGE_SIZE + random.brk;
        image.layout.brk = image.layout.start_brk;
        if let Some((elf, file)) = interpreter {
            let (first, end) = elf.span().ok_or(Errno::ELIBBAD)?;
            let load_at = if elf.relocatable {
                image.below_base(end - first + room.1, elf.alignment())?
            } else {
                first
            };
            let bias = load_at.wrapping_sub(first);
            image.add_elf(elf, file, bias)?;
            image.interpreter_base = bias;
            image.start = elf.entry.wrapping_add(bias);
        }
        Ok(image)
    }

    /// The highest place of `len` bytes below the base for mappings that is still free.
    fn below_base(&self, len: u64, align: u64) -> SysResult<u64> {
        let lowest =
            self.maps.iter().map(|map| map.vma.start).filter(|start| *start > DYN_BASE * 5 / 4).min();
        let top = lowest.unwrap_or(self.layout.mmap_base).min(self.layout.mmap_base);
        let at = top.checked_sub(len).map(|at| align_down(at, align)).filter(|at| *at > 0);
        at.ok_or(Errno::ENOMEM.into())
    }

    fn note_program(&mut self, elf: &Elf, bias: u64) {
        self.program_entry = elf.entry.wrapping_add(bias);
        self.header_addr = elf.header_addr.wrapping_add(bias);
        let layout = &mut self.layout;
        layout.start_code = u64::MAX;
        for segment in &elf.segments {
            let start = segment.addr.wrapping_add(bias);
            let file_end = start.wrapping_add(segment.file_size);
            layout.start_code = layout.start_code.min(start);
            if segment.prot.contains(Prot::EXEC) {
                layout.end_code = layout.end_code.max(file_end);
            }
            layout.start_data = layout.start_data.max(start);
            layout.end_data = layout.end_data.max(file_end);
            layout.brk = layout.brk.max(segment.end().wrapping_add(bias));
        }
    }

    fn add_elf(&mut self, elf: &Elf, file: &Arc<FileDescription>, bias: u64) -> SysResult<()> {
        for segment in &elf.segments {
            self.add_segment(segment, file, bias)?;
        }
        Ok(())
    }

    /// Maps a segment: its file part, and fresh pages behind it.
    fn add_segment(&mut self, segment: &Segment, file: &Arc<FileDescription>, bias: u64) -> SysResult<()> {
        if segment.memory_size == 0 {
            return Ok(());
        }
        let start = segment.page_start().wrapping_add(bias);
        let file_end = segment.addr.wrapping_add(bias) + segment.file_size;
        let memory_end = segment.addr.wrapping_add(bias) + segment.memory_size;
        let in_range = |at: u64| (crate::mm::MMAP_MIN_ADDR..=GUEST_TOP).contains(&at);
        if !in_range(start) || !in_range(memory_end) {
            return Err(Errno::ENOMEM.into());
        }
        let mapped_end = if segment.file_size > 0 {
            let end = file_end.div_ceil(PAGE_SIZE) * PAGE_SIZE;
            let offset = segment.file_offset - segment.addr % PAGE_SIZE;
            self.add_map(start, end, segment.prot, Some((file.clone(), offset)));
            if memory_end > file_end && segment.prot.contains(Prot::WRITE) && end > file_end {
                self.zero.push((file_end, end));
            }
            end
        } else {
            start
        };
        let end = memory_end.div_ceil(PAGE_SIZE) * PAGE_SIZE;
        if end > mapped_end {
            self.add_map(mapped_end, end, segment.prot, None);
        }
        Ok(())
    }

    pub(super) fn add_map(
        &mut self,
        start: u64,
        end: u64,
        prot: Prot,
        file: Option<(Arc<FileDescription>, u64)>,
    ) {
        let mut flags = MapFlags::PRIVATE | MapFlags::FIXED;
        let backing = match file {
            Some((file, offset)) => Backing::File { file, offset },
            None => {
                flags |= MapFlags::ANONYMOUS;
                Backing::Anonymous
            }
        };
        let may = Prot::READ | Prot::WRITE | Prot::EXEC;
        let vma = Vma { start, end, prot, may, flags: VmaFlags::empty(), backing, name: None };
        self.maps.push(ImageMap { vma, flags });
    }
}

fn align_down(addr: u64, align: u64) -> u64 {
    addr / align * align
}
