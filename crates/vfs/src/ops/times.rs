//! `utimensat` and its kin.

use std::sync::Arc;

use abi::{AtFlags, Errno};
use sync::SysResult;

use super::attr::{Object, lookup_flags};
use crate::{AttributeChange, Caller, FileDescription, FsContext, SetTime, is_owner};

/// The times to set; `None` leaves one as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimesChange {
    pub atime: Option<SetTime>,
    pub mtime: Option<SetTime>,
}

impl TimesChange {
    /// Both to now: what a null pointer asks for.
    pub const NOW: TimesChange = TimesChange { atime: Some(SetTime::Now), mtime: Some(SetTime::Now) };
}

/// Sets times of what `path` leads to. Who does not own the file may only set both to now, and only if it may
/// write (`EACCES`; else `EPERM`).
pub fn utimens(
    ctx: &FsContext<'_>,
    dirfd: i32,
    path: &[u8],
    times: TimesChange,
    flags: AtFlags,
) -> SysResult<()> {
    let how = lookup_flags(flags)?;
    if is_nothing(times) {
        return Ok(());
    }
    ctx.retry_stale(|| change_times(&Object::of_target(ctx.lookup(dirfd, path, how)?)?, times, ctx.caller))
}

/// Sets times of an open file.
pub fn futimens(file: &Arc<FileDescription>, times: TimesChange, caller: &dyn Caller) -> SysResult<()> {
    if is_nothing(times) { Ok(()) } else { change_times(&Object::of_file(file)?, times, caller) }
}

fn is_nothing(times: TimesChange) -> bool {
    times.atime.is_none() && times.mtime.is_none()
}

fn change_times(object: &Object, times: TimesChange, caller: &dyn Caller) -> SysResult<()> {
    if !is_owner(&object.attributes()?, caller.cred()) {
        if times != TimesChange::NOW {
            return Err(Errno::EPERM.into());
        }
        object.may_write(caller)?;
    }
    let TimesChange { atime, mtime } = times;
    object.change(&AttributeChange { atime, mtime, ..Default::default() })
}
