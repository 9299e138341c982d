//! System calls: the table, its rows, and what registers decode to.
//!
//! A call is one [`Row`] of [`table`] and one handler. From the row come dispatch, the trace, the list of what is
//! supported and what a platform marshals. Handlers live with their family (`fs/`, `mm/`, `signal/`, …):
//! `pub fn sys_read(task: &mut CurrentTask, fd: Fd, buf: OutBuf) -> SysResult<usize>`, in Linux's
//! order: resolve objects, check flags, act, copy out.

mod arg;
pub mod filter;
mod first_exec;
pub(crate) mod row;
mod shape;
pub mod show;
pub mod table;
pub mod trace;

pub use arg::*;
pub use row::{Argument, Outcome, Row, Support, SyscallReturn};
pub use shape::shape;
