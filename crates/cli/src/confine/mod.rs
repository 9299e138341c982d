//! The kernel's own process gives up what it does not need, so that a guest that took it over would gain little: files
//! outside of the roots and binds by Landlock, host calls by seccomp ([`calls`] is the list).
//!
//! Landlock comes before the first guest process: whoever restricts himself later may no longer read the memory of those
//! that he has made. The filter comes when all is set up, and for all threads at once, since they share memory.

mod calls;

use std::fs::Metadata;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use guest_process::bpf::{ARCH, Assembler, Instruction, NR, high, low};
use host::landlock::{Access, Ruleset};
use host::privileges::Capabilities;
use host::user::Users;
use rustix::fs::{Mode, OFlags};

use self::calls::{Check, GROUPS};

const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;

/// A part of the host's tree that guests are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub path: PathBuf,
    pub writable: bool,
}

const READ: Access = Access::READ_FILE.union(Access::READ_DIR);
const CHANGE: Access = READ
    .union(Access::WRITE_FILE)
    .union(Access::TRUNCATE)
    .union(Access::REMOVE_DIR)
    .union(Access::REMOVE_FILE)
    .union(Access::MAKE_DIR)
    .union(Access::MAKE_REG)
    .union(Access::MAKE_SYM)
    .union(Access::REFER);

/// What is needed of the host whatever is shown. In `/proc` guest processes' memory is written; another process's cannot be
/// opened at all, by Landlock. The root is only listed.
const ALWAYS: [(&str, Access); 3] =
    [("/", Access::READ_DIR), ("/proc", READ.union(Access::WRITE_FILE)), ("/sys/devices/system/cpu", READ)];
/// Where the stub's executable is made if memory files may not be executed.
const SCRATCH: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// Run by root: keeps of its capabilities what reading (`private`) and writing the files of others takes, in roots and
/// binds, and what tracing takes where yama asks for it. Guest processes hold none in any case.
///
/// # Errors
/// What the host says.
pub(crate) fn give_up_capabilities(shown: &[Shown], private: bool) -> io::Result<()> {
    let mut kept = if private { Capabilities::DAC_READ_SEARCH } else { Capabilities::empty() };
    if shown.iter().any(|shown| shown.writable) {
        kept |= Capabilities::DAC_OVERRIDE | Capabilities::FOWNER;
    }
    let yama = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    if yama.trim() == "2" {
        kept |= Capabilities::SYS_PTRACE;
    }
    host::privileges::hold_only(kept)
}

/// Allows files of `shown` only, to the calling thread and all that it starts. `false`: this host's Landlock cannot do
/// that.
///
/// # Errors
/// What the host says.
pub(crate) fn forbid_other_files(shown: &[Shown]) -> io::Result<bool> {
    let abi = host::landlock::abi();
    // The first version forbids all renames between directories.
    if abi == 0 || abi == 1 && shown.iter().any(|shown| shown.writable) {
        return Ok(false);
    }
    let ruleset = match Ruleset::new() {
        Ok(ruleset) => ruleset,
        Err(error) => {
            tracing::debug!(%error, "no Landlock");
            return Ok(false);
        }
    };
    for (path, access) in ALWAYS {
        allow(&ruleset, Path::new(path), access)?;
    }
    for Shown { path, writable } in shown {
        allow(&ruleset, path, if *writable { CHANGE } else { READ })?;
    }
    if memory_files_are_not_executable() {
        let make = READ | Access::EXECUTE | Access::WRITE_FILE | Access::MAKE_REG | Access::REMOVE_FILE;
        for path in SCRATCH.iter().map(PathBuf::from).chain([std::env::temp_dir()]) {
            allow(&ruleset, &path, make)?;
        }
    }
    ruleset.restrict_self()?;
    Ok(true)
}

/// What is not there needs no rule.
fn allow(ruleset: &Ruleset, path: &Path, access: Access) -> io::Result<()> {
    match rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
        Ok(file) => {
            let file = std::fs::File::from(file);
            let is_directory = file.metadata().as_ref().is_ok_and(Metadata::is_dir);
            ruleset.allow(file.as_fd(), is_directory, access)
        }
        Err(error) => {
            tracing::debug!(%error, path = %path.display(), "no rule for it");
            Ok(())
        }
    }
}

/// Whether the host refuses them (`vm.memfd_noexec` 2, or a filter around us).
fn memory_files_are_not_executable() -> bool {
    use rustix::fs::{MemfdFlags, memfd_create};
    // EINVAL: before Linux 6.3, where all are.
    !matches!(
        memfd_create(c"umlaut", MemfdFlags::CLOEXEC | MemfdFlags::EXEC),
        Ok(_) | Err(rustix::io::Errno::INVAL)
    )
}

/// Forbids host calls that are not in [`calls`], to all threads of this process. `tracing`: guests are run by ptrace.
///
/// # Errors
/// What the host says.
pub(crate) fn forbid_other_calls(tracing: bool) -> io::Result<()> {
    host::seccomp::report_refused()?;
    host::seccomp::install(&filter(tracing, host::user::users()), host::seccomp::Threads::All)
}

/// How many host calls pass, for the user.
pub(crate) fn allowed_calls(tracing: bool) -> usize {
    let passes = |check: &Check| match check {
        Check::Missing | Check::Quietly => false,
        Check::FileUser | Check::FileGroup => host::user::users().is_some(),
        check => tracing || *check != Check::Tracing,
    };
    GROUPS.iter().flat_map(|(_, rows)| rows.iter()).filter(|(_, check)| passes(check)).count()
}

/// The filter. `users`: who this process is, if root has started it.
fn filter(tracing: bool, users: Option<Users>) -> Vec<Instruction> {
    let [file_users, file_groups] = users.map_or([None; 2], |users| {
        let (uid, gid) = users.files;
        [Some([uid, users.guests]), Some([gid, users.guests])]
    });
    let mut a = Assembler::default();
    let (refuse, quietly, allow, missing) = (a.label(), a.label(), a.label(), a.label());
    a.load(ARCH);
    a.jump_unless(libc::BPF_JEQ, AUDIT_ARCH_X86_64, refuse);
    a.load(NR);
    let rows = || GROUPS.iter().flat_map(|(_, rows)| rows.iter());
    let mut checked = Vec::new();
    for (number, check) in rows() {
        let number = u32::try_from(*number).unwrap_or(u32::MAX);
        match check {
            Check::Any => a.jump_if(libc::BPF_JEQ, number, allow),
            Check::Tracing if tracing => a.jump_if(libc::BPF_JEQ, number, allow),
            Check::Tracing => {}
            Check::Missing => a.jump_if(libc::BPF_JEQ, number, missing),
            Check::Quietly => a.jump_if(libc::BPF_JEQ, number, quietly),
            Check::OneOf(..) | Check::All(..) | Check::None(..) | Check::FileUser | Check::FileGroup => {
                let place = a.label();
                a.jump_if(libc::BPF_JEQ, number, place);
                checked.push((place, *check));
            }
        }
    }
    a.jump(refuse);
    for (place, check) in checked {
        a.place(place);
        let one_of = |a: &mut Assembler, argument, values: &[u32]| {
            a.load(high(argument));
            a.jump_unless(libc::BPF_JEQ, 0, refuse);
            a.load(low(argument));
            values.iter().for_each(|value| a.jump_if(libc::BPF_JEQ, *value, allow));
            a.jump(refuse);
        };
        match check {
            Check::OneOf(argument, values) => one_of(&mut a, argument, values),
            Check::FileUser => one_of(&mut a, 0, file_users.as_ref().map_or(&[], |ids| &ids[..])),
            Check::FileGroup => one_of(&mut a, 0, file_groups.as_ref().map_or(&[], |ids| &ids[..])),
            Check::All(argument, bits) => {
                a.load(low(argument));
                a.emit(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, bits);
                a.jump_if(libc::BPF_JEQ, bits, allow);
                a.jump(quietly);
            }
            Check::None(argument, bits) => {
                a.load(low(argument));
                a.emit(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, bits);
                a.jump_if(libc::BPF_JEQ, 0, allow);
                a.jump(refuse);
            }
            Check::Any | Check::Tracing | Check::Missing | Check::Quietly => {}
        }
    }
    a.place(refuse);
    a.emit(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_TRAP);
    a.place(quietly);
    a.emit(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned());
    a.place(missing);
    a.emit(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned());
    a.place(allow);
    a.emit(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW);
    a.finish()
}

#[cfg(test)]
mod tests;
