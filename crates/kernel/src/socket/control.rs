//! Control messages: descriptors and credentials.

use std::sync::Arc;

use abi::{Cmsghdr, Errno, MsgFlags, SCM_MAX_FD, ScmType, SockoptLevel, Ucred, UserAddr};
use sync::SysResult;
use vfs::{Capability, FileDescription};
use zerocopy::{FromBytes, IntoBytes};

use super::flight::Rights;
use crate::resource::NOFILE;
use crate::task::CurrentTask;

/// Bytes of a control message's header.
const HEADER: usize = size_of::<Cmsghdr>();
/// Control messages and what they carry lie at multiples of this.
const ALIGN: usize = 8;
/// Shown as the owner of messages that were sent without credentials (`kernel.overflowuid`).
const NOBODY: u32 = 65534;

/// What a message's control part asks for.
#[derive(Default)]
pub(super) struct Control {
    pub rights: Option<Rights>,
    pub credentials: Option<Ucred>,
}

/// Reads the control part of a message to be sent (Linux: `__scm_send`).
pub(super) fn parse(task: &CurrentTask, control: &[u8]) -> SysResult<Control> {
    let mut files = Vec::new();
    let mut credentials = None;
    let mut rest = control;
    while let Ok((header, _)) = Cmsghdr::read_from_prefix(rest) {
        let len = usize::try_from(header.len).map_err(|_| Errno::EINVAL)?;
        let data = rest.get(HEADER..len).ok_or(Errno::EINVAL)?;
        if header.level == SockoptLevel::SOCKET {
            match header.kind {
                ScmType::RIGHTS => add_files(task, data, &mut files)?,
                ScmType::CREDENTIALS => {
                    let given = Ucred::read_from_bytes(data).map_err(|_| Errno::EINVAL)?;
                    check_credentials(task, &given)?;
                    credentials = Some(given);
                }
                _ => return Err(Errno::EINVAL.into()),
            }
        }
        let next = len.checked_next_multiple_of(ALIGN).unwrap_or(usize::MAX);
        rest = rest.get(next..).unwrap_or(&[]);
    }
    let rights = if files.is_empty() { None } else { Some(Rights::new(task, files)?) };
    Ok(Control { rights, credentials })
}

fn add_files(task: &CurrentTask, data: &[u8], files: &mut Vec<Arc<FileDescription>>) -> SysResult<()> {
    let numbers = data.chunks_exact(size_of::<i32>());
    if files.len() + numbers.len() > SCM_MAX_FD {
        return Err(Errno::EINVAL.into());
    }
    for number in numbers {
        let number = number.try_into().map_or(-1, i32::from_le_bytes);
        files.push(task.files.table.get_any(number)?);
    }
    Ok(())
}

/// Linux: `scm_check_creds`, then the look for the process.
fn check_credentials(task: &CurrentTask, given: &Ucred) -> SysResult<()> {
    let cred = &*task.cred;
    if given.uid == u32::MAX || given.gid == u32::MAX {
        return Err(Errno::EINVAL.into());
    }
    let pid = given.pid == task.pid() || cred.capable(Capability::SYS_ADMIN);
    let uid = [cred.uid, cred.euid, cred.suid].contains(&given.uid) || cred.capable(Capability::SETUID);
    let gid = [cred.gid, cred.egid, cred.sgid].contains(&given.gid) || cred.capable(Capability::SETGID);
    if !(pid && uid && gid) {
        return Err(Errno::EPERM.into());
    }
    let exists = given.pid == task.pid() || {
        let tasks = &task.kernel().tasks;
        tasks.group(given.pid).is_some() || tasks.task(given.pid).is_some()
    };
    if exists { Ok(()) } else { Err(Errno::ESRCH.into()) }
}

/// Room for the control part of a received message.
pub(super) struct ControlRoom {
    at: UserAddr,
    left: usize,
    /// `MSG_CTRUNC`, when something did not fit.
    pub flags: MsgFlags,
}

impl ControlRoom {
    /// A null address: no room, whatever the length.
    pub(super) fn new(at: UserAddr, len: usize) -> ControlRoom {
        ControlRoom { at, left: if at.is_null() { 0 } else { len }, flags: MsgFlags::empty() }
    }

    /// Bytes left of it.
    pub(super) fn left(&self) -> usize {
        self.left
    }

    fn advance(&mut self, bytes: usize) {
        let bytes = bytes.next_multiple_of(ALIGN).min(self.left);
        self.at = UserAddr(self.at.0.wrapping_add(bytes as u64));
        self.left -= bytes;
    }

    /// Adds credentials; `None` for a message that has none (Linux: `put_cmsg`). A fault is not told.
    pub(super) fn put_credentials(&mut self, task: &CurrentTask, credentials: Option<Ucred>) {
        let data = credentials.unwrap_or(Ucred { pid: 0, uid: NOBODY, gid: NOBODY });
        if self.left < HEADER {
            self.flags |= MsgFlags::CTRUNC;
            return;
        }
        let whole = HEADER + size_of::<Ucred>();
        let len = whole.min(self.left);
        self.flags.set(MsgFlags::CTRUNC, self.flags.contains(MsgFlags::CTRUNC) || len < whole);
        let header = Cmsghdr { len: len as u64, level: SockoptLevel::SOCKET, kind: ScmType::CREDENTIALS };
        let mut bytes = header.as_bytes().to_vec();
        bytes.extend_from_slice(data.as_bytes());
        bytes.truncate(len);
        if task.mm.write_bytes(self.at, &bytes).is_ok() {
            self.advance(whole);
        }
    }

    /// Installs descriptors, as many as there is room and as there are numbers for; the others are closed (Linux:
    /// `scm_detach_fds`).
    pub(super) fn put_files(&mut self, task: &CurrentTask, files: Vec<Arc<FileDescription>>, cloexec: bool) {
        let count = files.len();
        let most = self.left.saturating_sub(HEADER) / size_of::<i32>();
        let mut installed = 0_usize;
        for file in files.into_iter().take(most) {
            let Ok(reserved) = task.files.table.reserve(task.limit(NOFILE), cloexec) else { break };
            let place = (HEADER + installed * size_of::<i32>()) as u64;
            if task.mm.write(UserAddr(self.at.0.wrapping_add(place)), &reserved.fd()).is_err() {
                break;
            }
            reserved.install(file);
            installed += 1;
        }
        if installed > 0 {
            let len = HEADER + installed * size_of::<i32>();
            let header = Cmsghdr { len: len as u64, level: SockoptLevel::SOCKET, kind: ScmType::RIGHTS };
            if task.mm.write_bytes(self.at, header.as_bytes()).is_ok() {
                self.advance(len);
            }
        }
        if installed < count {
            self.flags |= MsgFlags::CTRUNC;
        }
    }
}
