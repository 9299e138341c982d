//! SIGIO: signals that tell the owner of an open file (`F_SETOWN`, `O_ASYNC`) that something came.

use abi::{PollCode, SiCode, Siginfo, Signal};
use vfs::{Cred, FileDescription};

use crate::kernel::Kernel;
use crate::task::TasksInner;

/// Tells the owner of `file`, if it wants to know (Linux: `kill_fasync`). No lock is held.
///
/// With `F_SETSIG` Linux tells the descriptor too for which O_ASYNC was set; here it is always -1.
pub(crate) fn tell_owner(kernel: &Kernel, file: &FileDescription, code: PollCode) {
    let owner = file.state.owner();
    if owner == 0 || !file.flags().contains(abi::OpenFlags::ASYNC) {
        return;
    }
    let info = match file.state.signal() {
        0 => Siginfo::kill(Signal::IO, SiCode::KERNEL, 0, 0),
        chosen => Siginfo::poll(Signal(chosen), code, band(code), -1),
    };
    let tasks = kernel.tasks.lock();
    let groups: Vec<i32> = match owner {
        pid @ 1.. => vec![pid],
        group => tasks.process_group(group.saturating_neg()).map(|entry| entry.group.pid).collect(),
    };
    for pid in groups {
        if may_tell(&tasks, pid, file.state.chosen_by()) {
            // A full queue of signals loses it, as on Linux but for its SIGIO in place of the lost one.
            let _ = tasks.send_to_group(pid, info);
        }
    }
}

/// The poll events that a code stands for.
fn band(code: PollCode) -> i64 {
    const READABLE: i64 = 0x41;
    const WRITABLE: i64 = 0x304;
    const HUNG_UP: i64 = 0x18;
    match code {
        PollCode::IN => READABLE,
        PollCode::OUT => WRITABLE,
        PollCode::HUP => HUNG_UP,
        _ => 0,
    }
}

/// Whether who chose the owner may signal it (Linux: `sigio_perm`).
fn may_tell(tasks: &TasksInner, pid: i32, (uid, euid): (u32, u32)) -> bool {
    let Some(leader) = tasks.groups.get(&pid).and_then(|entry| entry.threads.first()) else { return false };
    let target: &Cred = &leader.cred();
    euid == 0 || [uid, euid].iter().any(|own| *own == target.uid || *own == target.suid)
}
