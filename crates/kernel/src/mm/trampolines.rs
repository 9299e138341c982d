//! Patched programs: text that a platform maps in place of the file's own, and the trampolines that its system-call
//! sites jump to, hidden behind the file's last segment.
//!
//! The guest sees neither: its mapping is the file's, and the trampolines' place is free. Room for them is left when a
//! file is first mapped; when the guest claims it after all, the original text is mapped back first.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use abi::{GUEST_TOP, MapFlags, Prot, UserAddr};
use platform::{Exception, HostCall, MapFile, PatchedProgram};
use sync::{SysError, SysResult, WaitEnd};
use vfs::{FileDescription, Mapping};

use crate::mm::{Backing, MmRecord, Vma};
use crate::task::{CurrentTask, Task};

/// Between looks at threads that are to leave trampolines.
const LOOK: Duration = Duration::from_millis(1);
/// The processor's number of the exception by which single steps trap (`#DB`).
const DEBUG_TRAP: u64 = 1;

/// Trampolines as they are mapped.
#[derive(Clone)]
pub struct Trampolines {
    pub start: u64,
    /// Where the text that jumps to them is mapped.
    pub text: u64,
    pub program: Arc<PatchedProgram>,
    /// The text is the file's own again; threads may be in the trampolines still.
    unused: bool,
}

impl Trampolines {
    /// For the text of `program` at `text`; `None` if they do not fit behind it.
    pub fn behind(program: &Arc<PatchedProgram>, text: u64) -> Option<Trampolines> {
        let start = text.checked_add(program.distance)?;
        let end = start.checked_add(program.trampolines)?;
        (end <= GUEST_TOP).then(|| Trampolines { start, text, program: program.clone(), unused: false })
    }

    pub fn end(&self) -> u64 {
        self.start + self.program.trampolines
    }

    fn text_end(&self) -> u64 {
        self.text + self.program.len
    }

    pub fn overlaps(&self, start: u64, end: u64) -> bool {
        start < self.end() && self.start < end
    }

    /// Whether text with jumps to them is mapped in `[start, end)`.
    pub(super) fn has_text_in(&self, start: u64, end: u64) -> bool {
        !self.unused && start < self.text_end() && self.text < end
    }

    /// The host calls that map the patched text over the file's, and the trampolines.
    pub fn map_calls(&self) -> [HostCall<'_>; 2] {
        let map = |addr, len, offset, flags: MapFlags| HostCall::Map {
            addr: UserAddr(addr),
            len,
            prot: (Prot::READ | Prot::EXEC).bits(),
            flags: (MapFlags::PRIVATE | flags).bits(),
            file: Some(MapFile { fd: self.program.file.as_fd(), offset }),
        };
        [
            map(self.text, self.program.len, 0, MapFlags::FIXED),
            map(self.start, self.program.trampolines, self.program.len, MapFlags::FIXED_NOREPLACE),
        ]
    }
}

impl MmRecord {
    /// Whether neither the guest nor trampolines have anything in `[start, end)`.
    pub(super) fn has_room(&self, start: u64, end: u64) -> bool {
        self.vmas.is_free(start, end) && !self.trampolines.iter().any(|one| one.overlaps(start, end))
    }

    /// The address in the file's own code that a thread at `rip` is at, if that is in trampolines: in those that there are, or
    /// that have gone since the thread last ran, when [`Mm::moved`] was `has_left`.
    fn original_address(&self, rip: u64, has_left: u64) -> Option<u64> {
        let departed = self.departed.iter().filter(|(moved, _)| *moved > has_left).map(|(_, one)| one);
        let one = departed.chain(&self.trampolines).find(|one| (one.start..one.end()).contains(&rip))?;
        Some(one.text + one.program.original(rip - one.start)?)
    }

    /// Where a thread goes on that steps itself and is at `rip` by nothing but a jump to a trampoline.
    fn behind_jump(&self, rip: u64) -> Option<u64> {
        let one = self.trampolines.iter().find(|one| (one.start..one.end()).contains(&rip))?;
        Some(one.start + one.program.behind_jump(rip - one.start)?)
    }

    /// Where a thread goes on that is to go on at `rip`, if a jump covers that place.
    fn covered_address(&self, rip: u64) -> Option<u64> {
        let holds = |one: &&Trampolines| !one.unused && (one.text..one.text_end()).contains(&rip);
        let one = self.trampolines.iter().find(holds)?;
        Some(one.start + one.program.covered(rip - one.text)?)
    }
}

impl CurrentTask {
    /// The file's program as the platform patches it: a copy, so not while somebody may be writing to the file.
    pub(crate) fn patched_program(&self, file: &Arc<FileDescription>) -> Option<Arc<PatchedProgram>> {
        file.inode.as_ref().filter(|inode| !inode.is_written_to())?;
        match file.ops.mapping(file, false).ok()? {
            Mapping::Host(fd) => self.kernel().platform.patch(fd.as_fd()),
            Mapping::Zero => None,
        }
    }

    /// Bytes to leave free behind a mapping of a file that is placed anywhere: a loader maps the whole file first, and
    /// then its segments over it.
    pub(super) fn room_for_trampolines(&self, backing: &Backing, flags: MapFlags) -> u64 {
        match backing {
            Backing::File { file, offset: 0 } if flags.contains(MapFlags::PRIVATE) => {
                self.patched_program(file).map_or(0, |program| program.trampolines)
            }
            _ => 0,
        }
    }

    /// Trampolines for a mapping that is about to be made, if it is the text of a program that is patched and nothing is
    /// in their place.
    pub(super) fn trampolines_for(&self, vma: &Vma) -> Option<Trampolines> {
        let Backing::File { file, offset } = &vma.backing else { return None };
        if vma.prot != Prot::READ | Prot::EXEC || vma.flags.contains(crate::mm::VmaFlags::SHARED) {
            return None;
        }
        let program = self.patched_program(file)?;
        if *offset != program.offset || vma.len() != program.len {
            return None;
        }
        let trampolines = Trampolines::behind(&program, vma.start)?;
        let free = self.mm.record().has_room(trampolines.start, trampolines.end());
        free.then_some(trampolines)
    }

    /// Before `[start, end)` is unmapped or mapped over: trampolines there, or of text that goes, go with it.
    pub(super) fn give_up_trampolines(&mut self, start: u64, end: u64) -> SysResult<()> {
        let touched: Vec<Trampolines> = {
            let record = self.mm.record();
            let goes =
                |one: &&Trampolines| one.overlaps(start, end) || start <= one.text && one.text_end() <= end;
            record.trampolines.iter().filter(goes).cloned().collect()
        };
        for one in touched {
            let text_goes = start <= one.text && one.text_end() <= end;
            if !text_goes {
                self.restore_text(&one)?;
                self.set_unused(&one);
                // Others may be in them right now.
                if self.mm.users() > 1 {
                    self.have_others_leave(&one)?;
                }
            }
            // The call that this is about may have come through them.
            self.leave_trampoline();
            let len = one.program.trampolines;
            self.host_calls(&[HostCall::Unmap { addr: UserAddr(one.start), len }])?;
            self.mm.record().trampolines.retain(|other| other.start != one.start);
        }
        Ok(())
    }

    /// Before `[start, end)` is moved: text there becomes the file's own.
    pub(super) fn unpatch(&mut self, start: u64, end: u64) -> SysResult<()> {
        let touched: Vec<(u64, u64)> = {
            let record = self.mm.record();
            let text = |one: &&Trampolines| start < one.text_end() && one.text < end;
            record.trampolines.iter().filter(text).map(|one| (one.start, one.end())).collect()
        };
        touched.into_iter().try_for_each(|(start, end)| self.give_up_trampolines(start, end))
    }

    /// Before the guest may write to `[start, end)`: text there becomes the file's own, so that it changes what it knows,
    /// and what it writes stays.
    pub(super) fn stop_using_trampolines(&mut self, start: u64, end: u64) -> SysResult<()> {
        let touched: Vec<Trampolines> = {
            let record = self.mm.record();
            let text = |one: &&Trampolines| start < one.text_end() && one.text < end;
            record.trampolines.iter().filter(text).cloned().collect()
        };
        for one in touched {
            self.restore_text(&one)?;
            self.set_unused(&one);
        }
        Ok(())
    }

    /// From now on nobody is sent into them.
    fn set_unused(&self, one: &Trampolines) {
        let mut record = self.mm.record();
        let same = record.trampolines.iter_mut().filter(|other| other.start == one.start);
        same.for_each(|other| other.unused = true);
    }

    /// Waits until no other guest thread can be in these, which nothing leads to any more: those that run are called in; those
    /// that do not leave them before they do ([`follow_moves`](Self::follow_moves)).
    fn have_others_leave(&self, one: &Trampolines) -> SysResult<()> {
        let mut others = self.users_of_memory();
        others.retain(|task| !Arc::ptr_eq(task, &self.task));
        let moved = {
            let mut record = self.mm.record();
            let moved = self.mm.moved() + 1;
            record.departed.retain(|(before, _)| {
                others.iter().any(|task| task.has_left.load(Ordering::SeqCst) < *before)
            });
            record.departed.push((moved, one.clone()));
            self.mm.shared.moved.store(moved, Ordering::SeqCst);
            moved
        };
        others.iter().for_each(|task| task.call_in());
        let is_out = |task: &Arc<Task>| !task.runs_guest() || task.has_left.load(Ordering::SeqCst) >= moved;
        loop {
            if others.iter().all(is_out) {
                return Ok(());
            }
            let soon = Some(Instant::now() + LOOK);
            if let Err(WaitEnd::Interrupted(restart)) = self.waiter.wait_killable(&[], soon, || None::<()>) {
                return Err(SysError::Restart(restart));
            }
        }
    }

    /// The guest is about to run: what had to go since it last did it has left.
    pub(crate) fn follow_moves(&mut self) {
        loop {
            let moved = self.mm.moved();
            if moved == self.task.has_left.load(Ordering::Relaxed) {
                return;
            }
            self.leave_trampoline();
            self.task.has_left.store(moved, Ordering::SeqCst);
        }
    }

    /// Maps the file's own text back, wherever it is still mapped.
    fn restore_text(&mut self, one: &Trampolines) -> SysResult<()> {
        if one.unused {
            return Ok(());
        }
        let vmas: Vec<Vma> = self.mm.record().vmas.overlapping(one.text, one.text_end()).cloned().collect();
        for vma in vmas {
            let Backing::File { file, offset } = &vma.backing else { continue };
            let (from, to) = (vma.start.max(one.text), vma.end.min(one.text_end()));
            let offset = offset + (from - vma.start);
            if offset != one.program.offset + (from - one.text) {
                continue;
            }
            let Mapping::Host(fd) = file.ops.mapping(file, false)? else { continue };
            self.host_calls(&[HostCall::Map {
                addr: UserAddr(from),
                len: to - from,
                prot: vma.prot.bits(),
                flags: (MapFlags::PRIVATE | MapFlags::FIXED).bits(),
                file: Some(MapFile { fd: fd.as_fd(), offset }),
            }])?;
        }
        Ok(())
    }

    /// Whether a step of a guest that has set TF was a jump to a trampoline, which the guest does not have: it goes on
    /// without a signal, and makes its call by a `syscall`, so that neither the trampoline nor the platform is stepped.
    pub(crate) fn stepped_into_trampoline(&mut self, exception: &Exception) -> bool {
        if exception.trap != DEBUG_TRAP || self.mm.record().trampolines.is_empty() {
            return false;
        }
        let rip = self.context.registers().rip;
        let next = self.mm.record().behind_jump(rip);
        if let Some(next) = next.filter(|next| *next != rip) {
            self.context.registers_mut().rip = next;
        }
        next.is_some()
    }

    /// A thread that was interrupted in a trampoline is at its site, for everybody who looks.
    pub(crate) fn leave_trampoline(&mut self) {
        let has_left = self.task.has_left.load(Ordering::Relaxed);
        if self.mm.record().trampolines.is_empty() && self.mm.moved() == has_left {
            return;
        }
        let rip = self.context.registers().rip;
        let original = self.mm.record().original_address(rip, has_left);
        if let Some(original) = original {
            let registers = self.context.registers_mut();
            // Where a call goes on, as `syscall` leaves it.
            if registers.rcx == rip {
                registers.rcx = original;
            }
            registers.rip = original;
            self.may_be_covered = true;
        }
    }

    /// The same of a thread with an exception, which may tell its address.
    pub(crate) fn leave_trampoline_by(&mut self, exception: Exception) -> Exception {
        let rip = self.context.registers().rip;
        self.leave_trampoline();
        // Of steps and of arithmetic and invalid instructions; else it is the data's.
        let addr = if exception.addr.0 == rip { self.context.registers().rip } else { exception.addr.0 };
        Exception { addr: UserAddr(addr), ..exception }
    }

    /// Before the guest goes on at an address that was not the platform's word: not in the middle of a jump.
    pub(crate) fn enter_trampoline(&mut self) {
        if !std::mem::take(&mut self.may_be_covered) || self.mm.record().trampolines.is_empty() {
            return;
        }
        let rip = self.context.registers().rip;
        let covered = self.mm.record().covered_address(rip);
        if let Some(covered) = covered.filter(|_| self.mm.is_patched_at(UserAddr(rip))) {
            self.context.registers_mut().rip = covered;
        }
    }
}
