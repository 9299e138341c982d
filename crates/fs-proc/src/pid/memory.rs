//! `maps`, `smaps`, `smaps_rollup`, `statm`.

use std::sync::Arc;

use abi::{Errno, PAGE_SIZE, Prot};
use kernel::mm::host_maps::HostMapping;
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
            let root = cx.reader.fs.get().root.clone();
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

/// What the host accounts for each of the guest's mappings. Where the host has several for one of the guest's they are
/// added up; one that it has for several of the guest's counts as the first of them.
fn accounts(mm: &Mm, record: &MmRecord) -> Vec<HostMapping> {
    let host = mm.host_mappings();
    let mut rest = host.as_slice();
    let all = host.first().cloned().unwrap_or_default();
    let account = |vma: &Vma| {
        let mut sum = HostMapping {
            start: vma.start,
            end: vma.end,
            sizes: all.sizes.iter().map(|(name, _)| (name.clone(), 0)).collect(),
            rest: all.rest.clone(),
        };
        let mut is_first = true;
        // Those that begin before it, and were not taken, are the platform's own or lie in no mapping of the guest's.
        while let Some((mapping, behind)) = rest.split_first()
            && mapping.start < vma.end
        {
            rest = behind;
            if mapping.end <= vma.start {
                continue;
            }
            if std::mem::take(&mut is_first) {
                sum.rest.clone_from(&mapping.rest);
            }
            add(&mut sum, mapping);
        }
        set(&mut sum, "Size", vma.len() / 1024);
        for name in PAGE_SIZES {
            set(&mut sum, name, PAGE_SIZE / 1024);
        }
        sum
    };
    record.vmas.iter().map(account).collect()
}

/// What of an account is not added up.
const PAGE_SIZES: [&str; 2] = ["KernelPageSize", "MMUPageSize"];

fn set(account: &mut HostMapping, name: &str, size: u64) {
    if let Some((_, value)) = account.sizes.iter_mut().find(|(known, _)| known == name) {
        *value = size;
    }
}

fn add(sum: &mut HostMapping, other: &HostMapping) {
    for (name, size) in &other.sizes {
        match sum.sizes.iter_mut().find(|(known, _)| known == name) {
            Some((_, value)) => *value += size,
            None => sum.sizes.push((name.clone(), *size)),
        }
    }
}

fn size_line(name: &str, size: u64) -> String {
    format!("{:<15} {size:>8} kB\n", format!("{name}:"))
}

pub(super) fn smaps(cx: &Cx<'_>) -> SysResult<Vec<u8>> {
    let Some(mm) = mm(cx)? else { return Ok(Vec::new()) };
    let record = record(&mm);
    let accounts = accounts(&mm, &record);
    let mut text = Vec::new();
    for (vma, account) in record.vmas.iter().zip(&accounts) {
        line(cx, &record, vma, &mut text);
        for (name, size) in &account.sizes {
            text.extend(size_line(name, *size).bytes());
        }
        for (name, value) in &account.rest {
            let line = match name.as_str() {
                "VmFlags" => format!("VmFlags: {value} \n"),
                _ => format!("{:<15} {value:>8}\n", format!("{name}:")),
            };
            text.extend(line.bytes());
        }
    }
    Ok(text)
}

/// The sum over all mappings.
pub(super) fn smaps_rollup(cx: &Cx<'_>) -> SysResult<Vec<u8>> {
    let Some(mm) = mm(cx)? else { return Err(Errno::ESRCH.into()) };
    let record = record(&mm);
    let mut sum = HostMapping::default();
    for account in accounts(&mm, &record) {
        add(&mut sum, &account);
    }
    let start = record.vmas.iter().next().map_or(0, |vma| vma.start);
    let end = record.vmas.iter().last().map_or(0, |vma| vma.end);
    let head = format!("{start:08x}-{end:08x} ---p 00000000 00:00 0 ");
    let mut text = format!("{head:<73}[rollup]\n");
    let summed = |name: &str| name != "Size" && !PAGE_SIZES.contains(&name);
    for (name, size) in sum.sizes.iter().filter(|(name, _)| summed(name)) {
        text.push_str(&size_line(name, *size));
    }
    Ok(text.into_bytes())
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
