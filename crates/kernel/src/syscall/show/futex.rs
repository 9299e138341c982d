//! The arguments of `futex` behind its operation.

use abi::{FutexCmd, FutexOp, FutexWakeCmp, FutexWakeOp, Timespec, UserAddr};

use super::Printer;

fn cmd(printer: &Printer<'_>) -> FutexCmd {
    let op = printer.words.get(1).copied().unwrap_or(0);
    FutexOp(u32::try_from(op & 0xffff_ffff).unwrap_or(0)).cmd()
}

fn takes_time(cmd: FutexCmd) -> bool {
    matches!(
        cmd,
        FutexCmd::WAIT
            | FutexCmd::WAIT_BITSET
            | FutexCmd::LOCK_PI
            | FutexCmd::LOCK_PI2
            | FutexCmd::WAIT_REQUEUE_PI
    )
}

fn takes_count(cmd: FutexCmd) -> bool {
    matches!(cmd, FutexCmd::REQUEUE | FutexCmd::CMP_REQUEUE | FutexCmd::WAKE_OP | FutexCmd::CMP_REQUEUE_PI)
}

/// The time-out, or a second count.
pub(crate) fn timeout(printer: &mut Printer<'_>, value: u64) {
    match cmd(printer) {
        cmd if takes_time(cmd) => printer.structure::<Timespec>(UserAddr(value)),
        cmd if takes_count(cmd) => printer.text(format_args!("{}", value & 0xffff_ffff)),
        _ => {}
    }
}

/// The second futex.
pub(crate) fn second(printer: &mut Printer<'_>, value: u64) {
    let cmd = cmd(printer);
    if takes_count(cmd) || cmd == FutexCmd::WAIT_REQUEUE_PI {
        printer.address(UserAddr(value));
    }
}

/// A bit set, a value to compare with, or an operation.
pub(crate) fn third(printer: &mut Printer<'_>, value: u64) {
    let value = u32::try_from(value & 0xffff_ffff).unwrap_or(0);
    match cmd(printer) {
        FutexCmd::WAIT_BITSET | FutexCmd::WAKE_BITSET if value == u32::MAX => {
            printer.out.push_str("FUTEX_BITSET_MATCH_ANY");
        }
        FutexCmd::WAIT_BITSET | FutexCmd::WAKE_BITSET => printer.text(format_args!("{value:#x}")),
        FutexCmd::CMP_REQUEUE | FutexCmd::CMP_REQUEUE_PI => printer.text(format_args!("{value}")),
        FutexCmd::WAKE_OP => {
            let shifted = value >> 31 != 0;
            printer.text(format_args!(
                "{}{}<<28|{:#x}<<12|{}<<24|{:#x}",
                if shifted { "FUTEX_OP_OPARG_SHIFT<<28|" } else { "" },
                FutexWakeOp((value >> 28) & 7),
                (value >> 12) & 0xfff,
                FutexWakeCmp((value >> 24) & 15),
                value & 0xfff
            ));
        }
        _ => {}
    }
}

/// The operation, as strace names it: `FUTEX_WAIT_PRIVATE`.
pub(crate) fn operation(op: FutexOp) -> String {
    let text = op.to_string();
    match text.split_once("|FUTEX_PRIVATE_FLAG") {
        Some((cmd, rest)) => format!("{cmd}_PRIVATE{rest}"),
        None => text,
    }
}
