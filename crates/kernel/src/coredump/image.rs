//! The ELF file itself: headers, notes, and the memory of the mappings that coredump_filter asks for.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use abi::{Errno, PAGE_SIZE, Prot, Siginfo, UserAddr};
use platform::{GuestRange, Reach};
use sync::SysResult;
use vfs::{Caller, FileDescription, SliceSource, rw};

use super::notes::Bytes;
use super::{CoreDump, ThreadState};
use crate::mm::{Backing, Vma, VmaFlags};
use crate::task::CurrentTask;

/// Bits of coredump_filter.
const ANON_PRIVATE: u32 = 1;
const ANON_SHARED: u32 = 2;
const MAPPED_PRIVATE: u32 = 4;
const MAPPED_SHARED: u32 = 8;
const ELF_HEADERS: u32 = 16;

const EHDR_SIZE: u64 = 64;
const PHDR_SIZE: u64 = 56;
const ET_CORE: u16 = 4;
const EM_X86_64: u16 = 62;
const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;
/// Pages that are asked for together: whether they are there.
const LOOKED_AT: u64 = 8192;
/// Pages that are read together.
const BATCH: usize = 64;

/// A mapping, and how much of it is in the file.
struct Segment {
    vma: Vma,
    size: u64,
}

/// Writes on, up to a limit. Zeros that nobody needs to write are holes.
struct Writer<'a> {
    file: &'a FileDescription,
    caller: &'a dyn Caller,
    /// Bytes that may still be written; holes are free, as on Linux.
    left: u64,
    position: u64,
}

impl Writer<'_> {
    /// `EFBIG` once the limit is reached; what is in the file stays.
    fn write(&mut self, bytes: &[u8]) -> SysResult<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let fits = rest.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
            let offset = i64::try_from(self.position).map_err(|_| Errno::EFBIG)?;
            let mut from = SliceSource { bytes: rest.get(..fits).unwrap_or(&[]), taken: 0 };
            let done = if fits == 0 { 0 } else { rw::write_at(self.file, self.caller, offset, &mut from)? };
            if done == 0 {
                return Err(Errno::EFBIG.into());
            }
            rest = rest.get(done..).unwrap_or(&[]);
            self.position = self.position.saturating_add(done as u64);
            self.left = self.left.saturating_sub(done as u64);
        }
        Ok(())
    }

    fn skip_to(&mut self, position: u64) {
        self.position = position;
    }
}

impl CurrentTask {
    /// Writes the file. It may end early by its limit: it is a core file all the same. An error: it is none.
    pub(super) fn write_core(
        &self,
        file: &FileDescription,
        info: &Siginfo,
        limit: u64,
        threads: &[ThreadState],
        dump: &CoreDump,
    ) -> SysResult<()> {
        self.mm.refresh_stack();
        let vmas: Vec<Vma> = self.mm.record().vmas.iter().cloned().collect();
        let notes = self.core_notes(info, threads, &vmas);
        let written_to = written_ranges(self.mm.space.host_pid());
        let segments: Vec<Segment> =
            vmas.into_iter().map(|vma| Segment { size: self.dumped_size(&vma, &written_to), vma }).collect();
        let mut writer = Writer { file, caller: self, left: limit, position: 0 };
        let (head, data_at) = headers(&segments, notes.len() as u64);
        // What is cut short by the limit, or by a file system that is full, is left as it is (Linux: `has_dumped`).
        let _ = writer.write(&head).and_then(|()| writer.write(&notes)).and_then(|()| {
            writer.skip_to(data_at);
            self.write_segments(&mut writer, &segments, dump)
        });
        Ok(())
    }

    fn write_segments(
        &self,
        writer: &mut Writer<'_>,
        segments: &[Segment],
        dump: &CoreDump,
    ) -> SysResult<()> {
        let path = format!("/proc/{}/pagemap", self.mm.space.host_pid());
        let pagemap = host::user::as_guests(|| File::open(path)).ok();
        let mut at = writer.position;
        for segment in segments {
            let end = segment.vma.start.saturating_add(segment.size);
            let mut page = segment.vma.start;
            while page < end {
                if dump.is_given_up() || self.kernel().is_shutting_down() {
                    return Err(Errno::EINTR.into());
                }
                let count = ((end - page) / PAGE_SIZE).min(LOOKED_AT);
                let there = match &segment.vma.backing {
                    Backing::Anonymous => present(pagemap.as_ref(), page, count),
                    // A file's page is read from the file where it is not in memory.
                    _ => vec![true; usize::try_from(count).unwrap_or(0)],
                };
                for batch in there.chunks(BATCH) {
                    if batch.contains(&true) {
                        self.write_pages(writer, &segment.vma, page, batch)?;
                    }
                    page = page.saturating_add(batch.len() as u64 * PAGE_SIZE);
                    at = at.saturating_add(batch.len() as u64 * PAGE_SIZE);
                    writer.skip_to(at);
                }
            }
        }
        // The file is as long as it says, though it end in a hole (`dump_truncate`).
        if file_size(writer.file)? < at {
            writer.file.ops.truncate(writer.file, self, at)?;
        }
        Ok(())
    }

    /// Writes pages from `start` on; those that are not `there`, or all zeros, are skipped.
    fn write_pages(&self, writer: &mut Writer<'_>, vma: &Vma, start: u64, there: &[bool]) -> SysResult<()> {
        let base = writer.position;
        let page_len = usize::try_from(PAGE_SIZE).unwrap_or(4096);
        let mut bytes = vec![0; there.len().saturating_mul(page_len)];
        self.read_pages(vma, start, &mut bytes, there);
        let mut run: Range<usize> = 0..0;
        for (index, page) in bytes.chunks(page_len).enumerate() {
            let at = index * page_len;
            if page.iter().all(|byte| *byte == 0) {
                continue;
            }
            if run.end != at {
                self.write_run(writer, &bytes, base, &run)?;
                run = at..at;
            }
            run.end = at + page_len;
        }
        self.write_run(writer, &bytes, base, &run)
    }

    fn write_run(
        &self,
        writer: &mut Writer<'_>,
        bytes: &[u8],
        base: u64,
        run: &Range<usize>,
    ) -> SysResult<()> {
        writer.skip_to(base.saturating_add(run.start as u64));
        writer.write(bytes.get(run.clone()).unwrap_or(&[]))
    }

    /// Fills `into` with what lies in memory from `start` on. What is not there reads as zeros, and does not come to
    /// be there by this.
    fn read_pages(&self, vma: &Vma, start: u64, into: &mut [u8], there: &[bool]) {
        if let Backing::Shared { memory, offset } = &vma.backing {
            let at = offset.saturating_add(start - vma.start);
            // Behind its end there is nothing.
            let _ = rustix::io::pread(&memory.file, into, at);
            return;
        }
        if matches!(vma.backing, Backing::Special(_)) {
            // The host's own, above what guests have: [vdso] can be read, [vvar] cannot, and is a hole, as on Linux.
            let path = format!("/proc/{}/mem", self.mm.space.host_pid());
            let memory = host::user::as_guests(|| File::open(path));
            let _ = memory.map(|memory| memory.read_exact_at(into, start));
            return;
        }
        let page_len = usize::try_from(PAGE_SIZE).unwrap_or(4096);
        for (index, page) in into.chunks_mut(page_len).enumerate() {
            if there.get(index) == Some(&true) {
                let at = UserAddr(start.saturating_add(index as u64 * PAGE_SIZE));
                // A page behind a file's end is not there. Protections do not count here.
                let _ =
                    self.mm.space.read(&[GuestRange { start: at, len: page.len() }], page, Reach::Growing);
            }
        }
        self.mm.show_linked(&[GuestRange { start: UserAddr(start), len: into.len() }], into);
    }

    /// Bytes of a mapping that are in the file (Linux: `vma_dump_size`).
    fn dumped_size(&self, vma: &Vma, written_to: &[Range<u64>]) -> u64 {
        let filter = self.core_filter();
        let wants = |bit: u32| filter & bit != 0;
        if matches!(vma.backing, Backing::Special(_)) {
            return vma.len();
        }
        if vma.flags.contains(VmaFlags::DONTDUMP) {
            return 0;
        }
        if vma.flags.contains(VmaFlags::SHARED) {
            let is_file = match &vma.backing {
                Backing::File { file, .. } => file.attributes().is_ok_and(|attributes| attributes.nlink > 0),
                _ => false,
            };
            return if wants(if is_file { MAPPED_SHARED } else { ANON_SHARED }) { vma.len() } else { 0 };
        }
        let is_written = written_to.iter().any(|range| range.start < vma.end && vma.start < range.end);
        if is_written && wants(ANON_PRIVATE) {
            return vma.len();
        }
        let Backing::File { offset, .. } = &vma.backing else { return 0 };
        if wants(MAPPED_PRIVATE) {
            return vma.len();
        }
        if wants(ELF_HEADERS) && *offset == 0 && self.may_be_elf(vma) { PAGE_SIZE } else { 0 }
    }

    /// Whether a file's beginning tells a debugger what is mapped there: it is a program, or a library.
    fn may_be_elf(&self, vma: &Vma) -> bool {
        if let Backing::File { file, .. } = &vma.backing
            && file.attributes().is_ok_and(|attributes| attributes.mode.bits() & 0o111 != 0)
        {
            return true;
        }
        let mut magic = [0; 4];
        let head = GuestRange { start: UserAddr(vma.start), len: magic.len() };
        self.mm.space.read(&[head], &mut magic, Reach::Growing) == magic.len() && &magic == b"\x7fELF"
    }
}

fn file_size(file: &FileDescription) -> SysResult<u64> {
    Ok(file.attributes()?.size)
}

/// Which of `count` pages from `start` on are in memory or in swap.
fn present(pagemap: Option<&File>, start: u64, count: u64) -> Vec<bool> {
    const PRESENT_OR_SWAPPED: u64 = 3 << 62;
    let count = usize::try_from(count).unwrap_or(0);
    let mut entries = vec![0u8; count * 8];
    match pagemap.map(|pagemap| pagemap.read_exact_at(&mut entries, start / PAGE_SIZE * 8)) {
        Some(Ok(())) => {
            let entry = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
            entries.chunks_exact(8).map(|bytes| entry(bytes) & PRESENT_OR_SWAPPED != 0).collect()
        }
        // A host that does not tell: they are read, and come to be there.
        _ => vec![true; count],
    }
}

/// Where the host has pages that are the process's own (Linux: mappings with an `anon_vma`).
fn written_ranges(pid: i32) -> Vec<Range<u64>> {
    let read = || std::fs::read_to_string(format!("/proc/{pid}/smaps"));
    let text = host::user::as_guests(read).unwrap_or_default();
    let mut ranges = Vec::new();
    let mut current: Option<Range<u64>> = None;
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let (first, second) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        if matches!(first, "Anonymous:" | "Swap:") {
            if second != "0" {
                ranges.extend(current.take());
            }
        } else if !first.ends_with(':')
            && let Some((start, end)) = first.split_once('-')
        {
            let number = |text| u64::from_str_radix(text, 16).ok();
            current = number(start).zip(number(end)).map(|(start, end)| start..end);
        }
    }
    ranges
}

/// The headers, and where the segments' data begin.
fn headers(segments: &[Segment], notes_len: u64) -> (Vec<u8>, u64) {
    // As many mappings as there may be still fit: `vm.max_map_count` is below PN_XNUM.
    let count = segments.len() + 1;
    let notes_at = EHDR_SIZE + PHDR_SIZE * count as u64;
    let data_at = (notes_at + notes_len).next_multiple_of(PAGE_SIZE);
    let mut head = Bytes::default();
    // Class, byte order, version; System V.
    head.0.extend(*b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    head.u16(ET_CORE).u16(EM_X86_64).u32(1).u64(0).u64(EHDR_SIZE).u64(0).u32(0);
    head.u16(64).u16(56).u16(u16::try_from(count).unwrap_or(u16::MAX)).u16(0).u16(0).u16(0);
    let mut header = |kind: u32, flags: u32, [offset, address, file, memory, align]: [u64; 5]| {
        head.u32(kind).u32(flags).u64(offset).u64(address).u64(0).u64(file).u64(memory).u64(align);
    };
    header(PT_NOTE, 0, [notes_at, 0, notes_len, 0, 4]);
    let mut at = data_at;
    for Segment { vma, size } in segments {
        let flag = |prot, bit| if vma.prot.contains(prot) { bit } else { 0 };
        let flags = flag(Prot::READ, 4) | flag(Prot::WRITE, 2) | flag(Prot::EXEC, 1);
        header(PT_LOAD, flags, [at, vma.start, *size, vma.len(), PAGE_SIZE]);
        at = at.saturating_add(*size);
    }
    (head.0, data_at)
}
