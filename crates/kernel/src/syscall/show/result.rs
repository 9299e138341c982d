//! Results.

use abi::{Errno, MembarrierCmd, Personality, SchedPolicy, Signal};
use sync::{SysError, SysResult};

use crate::syscall::Outcome;

/// What a call gave, as strace prints it. `resumed`: the result register of a call that sets all registers.
pub(crate) fn text(name: &str, result: &SysResult<Outcome>, resumed: u64) -> String {
    match result {
        Ok(Outcome::Value(value)) => value_text(name, *value),
        Ok(Outcome::Address(addr)) => format!("{addr:#x}"),
        Ok(Outcome::Resumed) => register(resumed),
        Ok(Outcome::Exited) => "?".into(),
        Err(SysError::Errno(errno)) => error(*errno),
        Err(SysError::Restart(restart)) => {
            let (name, meaning) = restart.linux_name();
            format!("? {name} ({meaning})")
        }
    }
}

fn error(errno: Errno) -> String {
    format!("-1 {errno:?} ({errno})")
}

/// A result register that holds a value or an error.
fn register(value: u64) -> String {
    let negated = value.wrapping_neg();
    match i32::try_from(negated) {
        Ok(errno @ 1..4096) => error(Errno::from_raw(errno)),
        _ => value.cast_signed().to_string(),
    }
}

fn value_text(name: &str, value: u64) -> String {
    let word = u32::try_from(value).unwrap_or(0);
    match name {
        "umask" => format!("0{value:02o}"),
        "rt_sigtimedwait" => format!("{value} ({})", Signal(word.cast_signed())),
        "sched_getscheduler" => format!("{value} ({})", SchedPolicy(word)),
        "personality" => format!("{value:#x} ({})", Personality::from_bits_retain(word)),
        "membarrier" if value != 0 => format!("{value:#x} ({})", MembarrierCmd::from_bits_retain(word)),
        _ => value.cast_signed().to_string(),
    }
}
