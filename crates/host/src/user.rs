//! Who the kernel's process and guest processes are to the host when root runs umlaut: a user that nobody else is.
//!
//! The two share a *guests' user* N. Guest processes are N and nothing else. The kernel's process is N by its real and
//! effective ids, by which the host decides about signals, other processes' memory, limits and `/proc/sys`; it stays who it was by
//! its file-system ids (setfsuid(2)), by which files are opened and made, and by the saved ones, which only let it go to and
//! fro between the two: [`as_guests`]. Its seccomp filter allows that change and no other.
//!
//! Neighbours: [`crate::privileges`], which gives up capabilities; the command, which calls [`become_user`]; `guest-process`,
//! whose children call [`become_guest`].
//!
//! # Safety
//! Raw calls on integers: the C library's own would change all threads, by signals, and may not be made between fork and exec.
#![allow(unsafe_code, reason = "these calls have no wrapper that concerns the calling thread only")]

use std::io;
use std::sync::OnceLock;

use crate::check;

/// Who this process is, once [`become_user`] has been called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Users {
    /// The user of guest processes, and their group, which has the same number.
    pub guests: u32,
    /// User and group by which files are opened and made.
    pub files: (u32, u32),
}

static USERS: OnceLock<Users> = OnceLock::new();

/// `None`: this process and guests are who started it.
pub fn users() -> Option<Users> {
    USERS.get().copied()
}

/// Who opens and makes files.
pub fn file_ids() -> (u32, u32) {
    let ids = || (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    users().map_or_else(ids, |users| users.files)
}

/// Keep the id.
const SAME: libc::c_long = -1;
/// `SECBIT_NO_SETUID_FIXUP`: changes of ids leave capabilities alone.
const NO_SETUID_FIXUP: libc::c_long = 4;

/// One of the calls below, all of which take integers; what they take no pointer for is 0.
fn call(number: libc::c_long, [a, b, c]: [libc::c_long; 3]) -> io::Result<usize> {
    // SAFETY: see above.
    check(unsafe { libc::syscall(number, a, b, c, 0, 0) })
}

/// Whether the host lets this process change its ids at all, as far as that can be told without doing it.
///
/// # Errors
/// What it says.
pub fn may_change() -> io::Result<()> {
    call(libc::SYS_setresgid, [SAME; 3])?;
    call(libc::SYS_setresuid, [SAME; 3])?;
    // These tell who one is, if asked for nobody.
    call(libc::SYS_setfsgid, [SAME; 3])?;
    call(libc::SYS_setfsuid, [SAME; 3]).map(drop)
}

/// Whether a process runs as this (real) user.
pub fn is_in_use(uid: u32) -> bool {
    // Linux: ESRCH if the user has no process.
    call(libc::SYS_getpriority, [libc::PRIO_USER.into(), uid.into(), 0]).is_ok()
}

/// The calling thread, which is root's, and those that it starts become user `guests` in all but files; once only, while there is
/// one thread. Capabilities stay. What was armed by `PR_SET_PDEATHSIG` is not any more, and the process is not dumpable.
///
/// # Errors
/// What the host says; the ids may then be half changed.
pub fn become_user(guests: u32) -> io::Result<()> {
    let files = file_ids();
    let [id, user, group] = [guests, files.0, files.1].map(libc::c_long::from);
    // Where this is refused, capabilities come and go with the file-system user.
    let _ = call(libc::SYS_prctl, [libc::PR_SET_SECUREBITS.into(), NO_SETUID_FIXUP, 0]);
    call(libc::SYS_setgroups, [0; 3])?;
    call(libc::SYS_setresgid, [id, id, group])?;
    call(libc::SYS_setresuid, [id, id, user])?;
    let users = Users { guests, files };
    change(users, users.files);
    // They tell what was before, and no error.
    if change(users, users.files) != users.files {
        return Err(io::Error::from_raw_os_error(libc::EPERM));
    }
    let _ = USERS.set(users);
    Ok(())
}

/// Opens files as these from now on, in the calling thread; gives who it was before.
fn change(users: Users, (uid, gid): (u32, u32)) -> (u32, u32) {
    let set = |number, id: u32| {
        let before = call(number, [id.into(), 0, 0]);
        before.ok().and_then(|before| u32::try_from(before).ok()).unwrap_or(users.guests)
    };
    let gid = set(libc::SYS_setfsgid, gid);
    (set(libc::SYS_setfsuid, uid), gid)
}

/// In a child that is to be a guest process, before it arms PDEATHSIG, executes anything or makes a user namespace: it
/// becomes the guests' user, for good, and keeps no capability of root's.
///
/// # Errors
/// What the host says.
pub fn become_guest() -> io::Result<()> {
    let Some(users) = users() else { return Ok(()) };
    let id = libc::c_long::from(users.guests);
    call(libc::SYS_setresgid, [id; 3])?;
    call(libc::SYS_setresuid, [id; 3]).map(drop)
}

/// Does something to guest processes' files in `/proc` that only their own user may do: for their memory and what tells of
/// it, the host compares them with the opener's file-system ids. `act` neither starts threads nor makes files.
pub fn as_guests<T>(act: impl FnOnce() -> T) -> T {
    /// Goes back, however `act` ends.
    struct Back(Users);
    impl Drop for Back {
        fn drop(&mut self) {
            change(self.0, self.0.files);
            // Linux: a change of ids makes the process what `fs.suid_dumpable` says, which may be dumpable.
            let _ = call(libc::SYS_prctl, [libc::PR_SET_DUMPABLE.into(), 0, 0]);
        }
    }
    let _back = users().map(|users| {
        change(users, (users.guests, users.guests));
        Back(users)
    });
    act()
}

/// As [`as_guests`], if it does not go otherwise: for files in `/proc` that everybody may read, unless it is mounted
/// with `hidepid`.
///
/// # Errors
/// Those of `act`.
pub fn perhaps_as_guests<T>(act: impl Fn() -> io::Result<T>) -> io::Result<T> {
    match act() {
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied)
                && users().is_some() =>
        {
            as_guests(act)
        }
        result => result,
    }
}
