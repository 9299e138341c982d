//! The notes of a core file, in Linux's order: what debuggers read registers, names and mappings from.

use std::sync::atomic::Ordering;
use std::time::Duration;

use abi::{PAGE_SIZE, Siginfo};
use zerocopy::IntoBytes;

use super::ThreadState;
use crate::mm::{Backing, Vma};
use crate::task::CurrentTask;

const PRSTATUS: u32 = 1;
const FPREGSET: u32 = 2;
const PRPSINFO: u32 = 3;
const AUXV: u32 = 6;
const SIGINFO: u32 = 0x5349_4749;
const FILE: u32 = 0x4649_4c45;
const X86_XSTATE: u32 = 0x202;

/// `fxsave`'s area, which is the head of the extended state.
const FXSAVE_SIZE: usize = 512;
/// Bytes of names in the note of mapped files, at most: Linux gives it up beyond four MiB.
const MAX_NAMES: usize = 4 << 20;

/// Bytes in the host's (little-endian) order.
#[derive(Default)]
pub(super) struct Bytes(pub(super) Vec<u8>);

impl Bytes {
    pub(super) fn u16(&mut self, value: u16) -> &mut Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(super) fn u32(&mut self, value: u32) -> &mut Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn i32(&mut self, value: i32) -> &mut Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(super) fn u64(&mut self, value: u64) -> &mut Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    /// A `struct timeval`.
    fn time(&mut self, time: Duration) -> &mut Self {
        self.u64(time.as_secs()).u64(time.subsec_micros().into())
    }

    /// A field of `len` bytes with a text, cut to leave a zero byte.
    fn text(&mut self, text: &[u8], len: usize) -> &mut Self {
        let kept = text.iter().copied().take(len.saturating_sub(1));
        self.0.extend(kept.chain(std::iter::repeat(0)).take(len));
        self
    }

    fn pad_to(&mut self, unit: usize) {
        self.0.resize(self.0.len().next_multiple_of(unit), 0);
    }

    fn note(&mut self, owner: &[u8], kind: u32, content: &[u8]) {
        let len = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.u32(len(owner).saturating_add(1)).u32(len(content)).u32(kind);
        self.0.extend(owner);
        self.0.push(0);
        self.pad_to(4);
        self.0.extend(content);
        self.pad_to(4);
    }
}

/// Who the process belongs to.
struct Family {
    parent: i32,
    pgid: i32,
    sid: i32,
}

impl CurrentTask {
    /// All notes; `threads` begins with the one that got the signal.
    pub(super) fn core_notes(&self, info: &Siginfo, threads: &[ThreadState], vmas: &[Vma]) -> Vec<u8> {
        let family = {
            let tasks = self.kernel().tasks.lock();
            let entry = tasks.groups.get(&self.pid());
            entry.map_or(Family { parent: 0, pgid: 0, sid: 0 }, |entry| Family {
                parent: entry.parent,
                pgid: entry.pgid,
                sid: entry.sid,
            })
        };
        let children = self.group().usage.lock().children;
        let mut notes = Bytes::default();
        for (index, thread) in threads.iter().enumerate() {
            let mut status = Bytes::default();
            status.i32(info.signo.0).i32(0).i32(0);
            status.u32(info.signo.0.unsigned_abs());
            status.u64(thread.pending.0).u64(thread.blocked.0);
            status.i32(thread.tid).i32(family.parent).i32(family.pgid).i32(family.sid);
            status.time(thread.usage.user).time(thread.usage.system);
            status.time(children.user).time(children.system);
            registers(&mut status, thread);
            // That there is a note with floating-point registers.
            status.u32(1).u32(0);
            notes.note(b"CORE", PRSTATUS, &status.0);
            if index == 0 {
                notes.note(b"CORE", PRPSINFO, &self.process_note(&family).0);
                notes.note(b"CORE", SIGINFO, info.as_bytes());
                let auxv = self.mm.record().auxv.clone();
                notes.note(b"CORE", AUXV, &auxv);
                if let Some(files) = self.file_note(vmas) {
                    notes.note(b"CORE", FILE, &files);
                }
            }
            notes.note(b"CORE", FPREGSET, thread.xstate.get(..FXSAVE_SIZE).unwrap_or(&thread.xstate));
            notes.note(b"LINUX", X86_XSTATE, &thread.xstate);
        }
        notes.0
    }

    /// `struct elf_prpsinfo`.
    fn process_note(&self, family: &Family) -> Bytes {
        let nice = self.task.scheduling.lock().nice;
        let name = self.task.shared.lock().name.clone();
        let mut note = Bytes::default();
        // State, its letter, zombie or not, niceness.
        note.0.extend([0, b'R', 0, u8::try_from(nice & 0xff).unwrap_or(0)]);
        note.u32(0).u64(0);
        note.u32(self.cred.uid).u32(self.cred.gid);
        note.i32(self.pid()).i32(family.parent).i32(family.pgid).i32(family.sid);
        note.text(&name, 16).text(&self.command_line_text(), 80);
        note
    }

    /// The arguments as they lie in memory, with spaces between.
    fn command_line_text(&self) -> Vec<u8> {
        let (start, end) = {
            let record = self.mm.record();
            (record.layout.arg_start, record.layout.arg_end)
        };
        let len = usize::try_from(end.saturating_sub(start)).unwrap_or(0).min(79);
        let mut text = vec![0; len];
        if self.mm.read_bytes(abi::UserAddr(start), &mut text).is_err() {
            text.clear();
        }
        text.iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = b' ');
        text
    }

    /// Which file is mapped where (`fill_files_note`).
    fn file_note(&self, vmas: &[Vma]) -> Option<Vec<u8>> {
        let root = self.fs.get().root.clone();
        let mut places = Bytes::default();
        let mut names = Vec::new();
        let mut count = 0;
        for vma in vmas {
            let (name, offset) = match &vma.backing {
                Backing::File { file, offset } => {
                    let name = match (&file.path, file.ops.link_name()) {
                        (_, Some(name)) => name.into_bytes(),
                        (Some(path), None) => vfs::d_path(path, &root),
                        (None, None) => continue,
                    };
                    (name, *offset)
                }
                Backing::Shared { offset, .. } => (b"/dev/zero (deleted)".to_vec(), *offset),
                Backing::Anonymous | Backing::Special(_) => continue,
            };
            places.u64(vma.start).u64(vma.end).u64(offset / PAGE_SIZE);
            names.extend(name);
            names.push(0);
            count += 1;
            if names.len() > MAX_NAMES {
                return None;
            }
        }
        if count == 0 {
            return None;
        }
        let mut note = Bytes::default();
        note.u64(count).u64(PAGE_SIZE);
        note.0.extend(places.0);
        note.0.extend(names);
        Some(note.0)
    }

    /// `/proc/PID/coredump_filter`.
    pub(super) fn core_filter(&self) -> u32 {
        self.group().coredump_filter.load(Ordering::Relaxed)
    }
}

/// `struct user_regs_struct`.
fn registers(to: &mut Bytes, thread: &ThreadState) {
    let r = &thread.registers;
    for value in [
        r.r15, r.r14, r.r13, r.r12, r.rbp, r.rbx, r.r11, r.r10, r.r9, r.r8, r.rax, r.rcx, r.rdx, r.rsi,
        r.rdi, r.orig_rax, r.rip, r.cs, r.rflags, r.rsp, r.ss, r.fs_base, r.gs_base, r.ds, r.es, r.fs, r.gs,
    ] {
        to.u64(value);
    }
}
