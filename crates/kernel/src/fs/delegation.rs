//! Delegation: when a guest thread keeps reading or writing a regular file, it is handed the host's descriptor and does so
//! without the kernel.
//!
//! Authority does not move: what is handed out is the very host description that the kernel would use for the guest's, open
//! for no more than that. What makes a hand-out wrong later takes it back: the number leads elsewhere (`vfs::FdTable` tells),
//! the file becomes set-id (`vfs::Inode` tells), a limit on file sizes is set, the thread gets another table or program.
//! Whatever is looked at here is looked at again once the hand-out is registered, so neither misses the other.
//!
//! Main types: [`Delegation`], what a task's own thread keeps about it; [`TaskHolder`], by which others take it away.
//! Neighbours: `rw.rs` tells of each read and write that came to the kernel; the platform has the descriptors.

use std::os::fd::AsFd;
use std::sync::{Arc, Weak};

use abi::{FileType, OpenFlags};
use platform::{Context, DelegatedFile, Delegations};
use rustix::fs::OFlags;
use vfs::{FileDescription, Holder};

use crate::resource::{FSIZE, INFINITY};
use crate::syscall::Fd;
use crate::task::{CurrentTask, Task};

/// Reads and writes of a file by a thread after which it is handed out: one that is opened for a few does not pay for it.
const OFTEN: u8 = 2;
/// After so many also one for which the file system must make something.
const VERY_OFTEN: u8 = 32;
/// It was handed out; nothing more will come of it.
const HANDED: u8 = 254;
const REFUSED: u8 = 255;
/// Files that a thread's reads and writes are counted of at a time.
const COUNTED: usize = 8;

/// What a task's own thread keeps.
#[derive(Default)]
pub struct Delegation {
    /// `None`: every call is to be seen, or the platform delegates nothing.
    holder: Option<Arc<TaskHolder>>,
    counted: Vec<Counted>,
    /// Which of them makes room for the next.
    oldest: usize,
    /// Something was handed out: what the thread does by itself is to be asked for.
    pub(crate) is_used: bool,
}

struct Counted {
    fd: i32,
    /// Weak references keep the address from being another file's.
    file: Weak<FileDescription>,
    count: u8,
}

/// A task to those who take away what it holds.
pub struct TaskHolder {
    task: Weak<Task>,
    delegations: Arc<dyn Delegations>,
}

impl Holder for TaskHolder {
    fn withdraw(&self, fd: u32) {
        if self.delegations.withdraw(fd) {
            self.close_soon();
        }
    }
}

impl TaskHolder {
    pub(crate) fn withdraw_all(&self) {
        if self.delegations.withdraw_all() {
            self.close_soon();
        }
    }

    /// The descriptors go when the thread is in the kernel; one that runs its own code is called in.
    fn close_soon(&self) {
        if let Some(task) = self.task.upgrade() {
            task.call_in();
        }
    }
}

impl Delegation {
    /// For a task with this context.
    pub(crate) fn begin(task: &Arc<Task>, context: &dyn Context) -> Delegation {
        // A trace shows every call.
        let delegations = if task.kernel.trace.is_none() { context.delegations() } else { None };
        let holder =
            delegations.map(|delegations| Arc::new(TaskHolder { task: Arc::downgrade(task), delegations }));
        *task.holder.lock() = holder.clone();
        Delegation { holder, ..Delegation::default() }
    }

    /// Counts a read or write; how many there were, this one among them.
    fn count(&mut self, fd: Fd, file: &Arc<FileDescription>) -> Option<&mut Counted> {
        let same = |one: &Counted| one.fd == fd.0 && std::ptr::eq(one.file.as_ptr(), Arc::as_ptr(file));
        if let Some(index) = self.counted.iter().position(same) {
            return self.counted.get_mut(index);
        }
        let new = Counted { fd: fd.0, file: Arc::downgrade(file), count: 0 };
        if self.counted.len() < COUNTED {
            self.counted.push(new);
            return self.counted.last_mut();
        }
        self.oldest = (self.oldest + 1) % COUNTED;
        let place = self.counted.get_mut(self.oldest)?;
        *place = new;
        Some(place)
    }
}

impl CurrentTask {
    /// The guest read or wrote through the kernel.
    pub(crate) fn used_through_kernel(&mut self, fd: Fd, file: &Arc<FileDescription>) {
        let Some(holder) = &self.delegation.holder else { return };
        let is_regular = file.inode.as_ref().is_some_and(|inode| inode.file_type == FileType::REG);
        let Ok(number) = u32::try_from(fd.0) else { return };
        if !is_regular || number >= DelegatedFile::NUMBERS {
            return;
        }
        let holds = holder.delegations.clone();
        let Some(counted) = self.delegation.count(fd, file) else { return };
        match counted.count {
            // For what it is not good for, or because its budget is used up.
            HANDED if holds.holds(number) => {
                self.renew_budget(number, file);
                return;
            }
            HANDED => counted.count = 1,
            REFUSED => return,
            ref mut count => *count += 1,
        }
        let count = counted.count;
        if count != OFTEN && count != VERY_OFTEN {
            return;
        }
        let handed = self.hand_out(number, file, count == VERY_OFTEN);
        if let Some(counted) = self.delegation.count(fd, file) {
            match (handed, count) {
                (true, _) => counted.count = HANDED,
                (false, VERY_OFTEN) => counted.count = REFUSED,
                (false, _) => {}
            }
        }
    }

    /// Hands a file out, if that changes nothing but speed.
    fn hand_out(&mut self, fd: u32, file: &Arc<FileDescription>, often: bool) -> bool {
        let Some(holder) = self.delegation.holder.clone() else { return false };
        let Some(out) = file.ops.hand_out(file, often) else { return false };
        let (read, write) = (file.is_readable(), file.is_writable());
        if !same_flags(file, &out) || write && !self.may_write_alone(&out) {
            return false;
        }
        let budget = out.budget.filter(|_| write);
        let delegated = DelegatedFile { descriptor: fd, file: out.file.as_fd(), read, write, budget };
        if self.context.delegate(&delegated).is_err() {
            return false;
        }
        self.delegation.is_used = true;
        let delegations = holder.delegations.clone();
        let holder: Arc<dyn Holder> = holder;
        let stands = self.files.table.hand_out(fd, file, &holder)
            && (!write || self.may_write_alone(&out) && is_unprivileged(file, fd, &holder));
        if !stands {
            delegations.withdraw(fd);
        }
        stands
    }

    fn renew_budget(&mut self, fd: u32, file: &Arc<FileDescription>) {
        let Some(out) = file.ops.hand_out(file, false).filter(|_| file.is_writable()) else { return };
        if out.budget.is_none() {
            return;
        }
        let budget = out.budget.filter(|_| out.may_write).or(Some(0));
        let (read, write) = (file.is_readable(), true);
        let delegated = DelegatedFile { descriptor: fd, file: out.file.as_fd(), read, write, budget };
        // It holds it, so nothing can fail.
        let _ = self.context.delegate(&delegated);
    }

    /// Whether writes need nothing of the kernel, as far as the task and the file system go.
    fn may_write_alone(&self, out: &vfs::HandOut) -> bool {
        out.may_write
            && self.limit(FSIZE) == INFINITY
            && rustix::process::getrlimit(rustix::process::Resource::Fsize).current.is_none()
    }

    /// Takes back all that the thread holds: it gets another table or program.
    pub(crate) fn withdraw_delegations(&mut self) {
        self.delegation.counted.clear();
        if let Some(holder) = &self.delegation.holder {
            holder.delegations.withdraw_all();
        }
    }

    /// Counts what the thread has read and written by itself.
    pub(crate) fn count_delegated_io(&self) {
        if let Some(holder) = &self.delegation.holder {
            self.task.io.count_delegated(&holder.delegations.take_io());
        }
    }
}

/// Registers a writer; whether the file has neither set-id bits nor capabilities, which a write would take.
fn is_unprivileged(file: &FileDescription, fd: u32, holder: &Arc<dyn Holder>) -> bool {
    file.inode.as_ref().is_some_and(|inode| {
        // Whoever gives it some from now on takes it back.
        inode.attached.hand_out_for_writing(fd, holder) || vfs::ops::is_without_privileges(inode)
    })
}

/// Whether the host's description is open as the guest's: same access, appending, nothing that a plain read or write of the
/// kernel's would do otherwise.
fn same_flags(file: &FileDescription, out: &vfs::HandOut) -> bool {
    let guest = file.flags();
    let special = OpenFlags::DIRECT | OpenFlags::SYNC | OpenFlags::DSYNC;
    let Ok(host) = rustix::fs::fcntl_getfl(&out.file) else { return false };
    let compared = OFlags::ACCMODE | OFlags::APPEND;
    !guest.intersects(special)
        && !host.intersects(OFlags::DIRECT | OFlags::SYNC | OFlags::DSYNC)
        && (host & compared).bits() == guest.bits() & compared.bits()
}
