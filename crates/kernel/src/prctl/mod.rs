//! `prctl`: a table of its own, one row for each operation that there is.

mod memory;
mod process;
mod thread;

use abi::{CapAmbientOp, Errno, PrctlOp, UserAddr};
use sync::SysResult;

use crate::cred::{capabilities, securebits};
use crate::syscall::{PrctlArg, Support};
use crate::task::CurrentTask;

/// One operation.
pub struct PrctlRow {
    pub op: PrctlOp,
    /// Gets the four arguments behind the operation.
    call: fn(&mut CurrentTask, [u64; 4]) -> SysResult<usize>,
    pub support: Support,
}

macro_rules! operations {
    ($($op:ident = $call:expr $(, partial $note:literal)?;)*) => {
        /// The operations that there are.
        pub static ROWS: &[PrctlRow] = &[$(PrctlRow {
            op: PrctlOp::$op,
            call: $call,
            support: $crate::syscall::row::support!($($note)?),
        }),*];
    };
}

operations! {
    SET_PDEATHSIG = thread::set_parent_death_signal;
    GET_PDEATHSIG = thread::get_parent_death_signal;
    GET_DUMPABLE = process::get_dumpable;
    SET_DUMPABLE = process::set_dumpable;
    GET_KEEPCAPS = |task, _| Ok(usize::from(securebits::has(&task.cred, securebits::KEEP_CAPS)));
    SET_KEEPCAPS = |task, [on, ..]| securebits::set_keep_caps(task, on);
    GET_TIMING = |_, _| Ok(0);
    SET_TIMING = |_, [timing, ..]| if timing == 0 { Ok(0) } else { Err(Errno::EINVAL.into()) };
    SET_NAME = thread::set_name;
    GET_NAME = thread::get_name;
    GET_SECCOMP = |_, _| Ok(0);
    CAPBSET_READ = |task, [number, ..]| capabilities::bounding_has(task, number);
    CAPBSET_DROP = |task, [number, ..]| capabilities::drop_bounding(task, number);
    GET_TSC = thread::get_tsc;
    SET_TSC = thread::set_tsc, partial "the time stamp counter cannot be forbidden";
    GET_SECUREBITS = |task, _| Ok(usize::try_from(task.cred.securebits).unwrap_or(0));
    SET_SECUREBITS = |task, [bits, ..]| securebits::set(task, bits);
    SET_TIMERSLACK = thread::set_timer_slack, partial "kept, but nothing is delayed by it";
    GET_TIMERSLACK = thread::get_timer_slack;
    MCE_KILL_GET = |_, args| only_zeros(&args).map(|()| MCE_KILL_DEFAULT);
    SET_CHILD_SUBREAPER = process::set_subreaper;
    GET_CHILD_SUBREAPER = process::get_subreaper;
    SET_NO_NEW_PRIVS = thread::set_no_new_privs;
    GET_NO_NEW_PRIVS = |task, args| only_zeros(&args).map(|()| usize::from(task.cred.no_new_privs));
    GET_TID_ADDRESS = thread::get_tid_address;
    SET_THP_DISABLE = process::set_thp_disable, partial "kept, but the host decides";
    GET_THP_DISABLE = process::get_thp_disable;
    CAP_AMBIENT = cap_ambient;
    GET_MDWE = |_, args| only_zeros(&args).map(|()| 0);
    GET_MEMORY_MERGE = |_, args| only_zeros(&args).map(|()| 0);
    SET_VMA = memory::set_vma;
    GET_AUXV = memory::get_auxv;
}

/// `PR_MCE_KILL_DEFAULT`.
const MCE_KILL_DEFAULT: usize = 2;

pub fn sys_prctl(
    task: &mut CurrentTask,
    op: PrctlOp,
    arg2: PrctlArg,
    arg3: PrctlArg,
    arg4: PrctlArg,
    arg5: PrctlArg,
) -> SysResult<usize> {
    match ROWS.iter().find(|row| row.op == op) {
        Some(row) => (row.call)(task, [arg2.0, arg3.0, arg4.0, arg5.0]),
        None => match op.name() {
            Some(name) => Err(task.not_built("prctl", name, Errno::EINVAL)),
            None => Err(Errno::EINVAL.into()),
        },
    }
}

/// `EINVAL` unless all of them are zero: arguments that may get a meaning yet.
fn only_zeros(args: &[u64]) -> SysResult<()> {
    if args.iter().all(|arg| *arg == 0) { Ok(()) } else { Err(Errno::EINVAL.into()) }
}

/// Writes an `int` for the guest.
fn put_int(task: &CurrentTask, at: u64, value: i32) -> SysResult<usize> {
    task.mm.write(UserAddr(at), &value).map(|()| 0)
}

fn cap_ambient(task: &mut CurrentTask, [op, rest @ ..]: [u64; 4]) -> SysResult<usize> {
    let op = i32::try_from(op).map(CapAmbientOp).map_err(|_| Errno::EINVAL)?;
    capabilities::ambient(task, op, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_has_one_row_at_most() {
        for (index, row) in ROWS.iter().enumerate() {
            assert!(!ROWS[..index].iter().any(|other| other.op == row.op), "{}", row.op);
        }
    }
}
