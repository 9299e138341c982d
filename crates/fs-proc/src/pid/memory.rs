//! `maps`, `smaps`, `statm`.

use std::sync::Arc;

use abi::{PAGE_SIZE, Prot};
use kernel::mm::{Backing, Mm, MmRecord, Vma, VmaFlags};
use sync::SysResult;

use crate::entry::Cx;

fn mm(cx: &Cx<'_>) -> SysResult<Option<Arc<Mm>>> {
    cx.check_access()?;
    Ok(cx.of()?.task.as_ref().and_then(|task| task.shared.lock().mm.clone()))
}

/// The record with the stack's true start: the host grows it without telling.
fn record(mm: &Mm) -> MmRecord {
    mm.refresh_stack();
    mm.record().clone()
}

pub(super) fn maps(cx: &Cx<'_>) -> SysResult<Vec<u8>> {
    let Some(mm) = mm(cx)? else { return Ok(Vec::new()) };
    let record = record(&mm);
    let mut text = Vec::new();
    for vma in record.vmas.iter() {
        line(cx, &record, vma, &mut text);
    }
    Ok(text)
}

fn line(cx: &Cx<'_>, record: &MmRecord, vma: &Vma, text: &mut Vec<u8>) {
    let right = |prot, letter| if vma.prot.contains(prot) { letter } else { '-' };
    let shared = if vma.flags.contains(VmaFlags::SHARED) { 's' } else { 'p' };
    let (offset, dev, ino, name) = identity(cx, record, vma);
    let head = format!(
        "{:08x}-{:08x} {}{}{}{shared} {offset:08x} {:02x}:{:02x} {ino} ",
        vma.start,
        vma.end,
        right(Prot::READ, 'r'),
        right(Prot::WRITE, 'w'),
        right(Prot::EXEC, 'x'),
        abi::major(dev),
        abi::minor(dev),
    );
    text.extend(head.as_bytes());
    if !name.is_empty() {
        // Names begin in column 73 (Linux: `seq_pad`).
        text.extend(std::iter::repeat_n(b' ', 73usize.saturating_sub(head.len())));
        text.extend(name.iter().flat_map(|byte| match byte {
            b'\n' => b"\\012".to_vec(),
            byte => vec![*byte],
        }));
    }
    text.push(b'\n');
}

/// Offset, device, inode number and name of what is mapped.
fn identity(cx: &Cx<'_>, record: &MmRecord, vma: &Vma) -> (u64, u64, u64, Vec<u8>) {
    match &vma.backing {
        Backing::File { file, offset } => {
            let attributes = file.attributes().unwrap_or_default();
            let root = cx.reader.fs.get().root;
            let name = match (&file.path, file.ops.link_name()) {
                (_, Some(name)) => name.into_bytes(),
                (Some(path), None) => vfs::d_path(path, &root),
                (None, None) => Vec::new(),
            };
            (*offset, attributes.dev, attributes.ino, name)
        }
        Backing::Special(name) => (0, 0, 0, name.as_bytes().to_vec()),
        Backing::Shared { memory, offset } => (*offset, 1, memory.ino, b"/dev/zero (deleted)".to_vec()),
        Backing::Anonymous if vma.flags.contains(VmaFlags::SHARED) => {
            (0, 1, 1, b"/dev/zero (deleted)".to_vec())
        }
        Backing::Anonymous => (0, 0, 0, anonymous_name(record, vma)),
    }
}

fn anonymous_name(record: &MmRecord, vma: &Vma) -> Vec<u8> {
    let layout = &record.layout;
    if let Some(name) = &vma.name {
        return format!("[anon:{name}]").into_bytes();
    }
    if vma.flags.contains(VmaFlags::STACK) {
        return b"[stack]".to_vec();
    }
    if vma.start <= layout.brk && vma.end >= layout.start_brk && layout.brk > layout.start_brk {
        return b"[heap]".to_vec();
    }
    Vec::new()
}

/// The sizes that `smaps` tells are of the record; what is resident is known for the process as a whole only.
pub(super) fn smaps(cx: &Cx<'_>) -> SysResult<Vec<u8>> {
    let Some(mm) = mm(cx)? else { return Ok(Vec::new()) };
    let record = record(&mm);
    let mut text = Vec::new();
    for vma in record.vmas.iter() {
        line(cx, &record, vma, &mut text);
        let size = vma.len() / 1024;
        text.extend(
            format!(
                "Size:           {size:>8} kB\nKernelPageSize:        4 kB\nMMUPageSize:           4 kB\n"
            )
            .bytes(),
        );
    }
    Ok(text)
}

pub(super) fn statm(cx: &Cx<'_>) -> SysResult<Vec<u8>> {
    let mm = cx.of()?.task.as_ref().and_then(|task| task.shared.lock().mm.clone());
    let Some(mm) = mm else { return Ok(b"0 0 0 0 0 0 0\n".to_vec()) };
    let (resident, shared) = mm.space.resident_pages();
    let record = record(&mm);
    let text = (record.layout.end_code.saturating_sub(record.layout.start_code)).div_ceil(PAGE_SIZE);
    let data: u64 = record.vmas.iter().filter(|vma| vma.is_data()).map(|vma| vma.len() / PAGE_SIZE).sum();
    let size = record.vmas.pages();
    Ok(format!("{size} {resident} {shared} {text} 0 {data} 0\n").into_bytes())
}
