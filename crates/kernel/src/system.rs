//! The system as a whole: its name, memory and load, and what only an administrator of the host may do.

use abi::{Errno, PAGE_SIZE, Sysinfo, SyslogAction, Utsname};
use sync::SysResult;
use vfs::Capability;

use crate::kernel::{self, Kernel};
use crate::syscall::{Hex, InBuf, Out};
use crate::task::CurrentTask;

/// A field of `struct utsname`, cut to what it holds.
fn field(text: &[u8]) -> [u8; 65] {
    let mut field = [0; 65];
    for (to, from) in field.iter_mut().zip(text.iter().take(Utsname::MAX_LEN)) {
        *to = *from;
    }
    field
}

pub fn sys_uname(task: &mut CurrentTask, name: Out<Utsname>) -> SysResult<()> {
    let own = task.kernel();
    let nodename = field(&own.hostname.lock());
    let domainname = field(&own.domainname.lock());
    let names = Utsname {
        sysname: field(b"Linux"),
        nodename,
        release: field(kernel::RELEASE.as_bytes()),
        version: field(kernel::VERSION.as_bytes()),
        machine: field(b"x86_64"),
        domainname,
    };
    task.mm.write(name.0, &names)
}

/// A new name of the host or domain. `EPERM` comes before all else.
fn read_name(task: &CurrentTask, name: InBuf) -> SysResult<Vec<u8>> {
    if !task.cred.capable(Capability::SYS_ADMIN) {
        return Err(Errno::EPERM.into());
    }
    // The length is an int there.
    let len = name.len & 0xffff_ffff;
    if len > Utsname::MAX_LEN {
        return Err(Errno::EINVAL.into());
    }
    let mut bytes = vec![0; len];
    task.mm.read_bytes(name.addr, &mut bytes)?;
    Ok(bytes)
}

pub fn sys_sethostname(task: &mut CurrentTask, name: InBuf) -> SysResult<()> {
    let name = read_name(task, name)?;
    *task.kernel().hostname.lock() = name;
    Ok(())
}

pub fn sys_setdomainname(task: &mut CurrentTask, name: InBuf) -> SysResult<()> {
    let name = read_name(task, name)?;
    *task.kernel().domainname.lock() = name;
    Ok(())
}

impl Kernel {
    /// Guest threads that there are.
    pub fn task_count(&self) -> usize {
        self.tasks.lock().tasks.len()
    }
}

/// The host's load and memory, within what guests may have; no swap.
pub fn sys_sysinfo(task: &mut CurrentTask, info: Out<Sysinfo>) -> SysResult<()> {
    let host = rustix::system::sysinfo();
    let total = task.kernel().total_pages() * PAGE_SIZE;
    let bytes = |value: u64| value.saturating_mul(u64::from(host.mem_unit.max(1))).min(total);
    let sysinfo = Sysinfo {
        uptime: host.uptime,
        loads: host.loads,
        totalram: total,
        freeram: task.kernel().memory_left(bytes(host.freeram)),
        sharedram: bytes(host.sharedram),
        bufferram: bytes(host.bufferram),
        procs: u16::try_from(task.kernel().task_count()).unwrap_or(u16::MAX),
        mem_unit: 1,
        ..Sysinfo::default()
    };
    task.mm.write(info.0, &sysinfo)
}

/// There is no log for guests: empty for who may read one, refused to others (as with `dmesg_restrict`).
pub fn sys_syslog(
    task: &mut CurrentTask,
    action: SyslogAction,
    buf: abi::UserAddr,
    len: i32,
) -> SysResult<usize> {
    let reads = [SyslogAction::READ, SyslogAction::READ_ALL, SyslogAction::READ_CLEAR].contains(&action);
    if !task.cred.capable(Capability::SYSLOG) {
        return Err(Errno::EPERM.into());
    }
    if reads && (buf.is_null() || len < 0) {
        return Err(Errno::EINVAL.into());
    }
    match action {
        SyslogAction::CONSOLE_LEVEL if !(1..=8).contains(&len) => Err(Errno::EINVAL.into()),
        _ if action.name().is_none() => Err(Errno::EINVAL.into()),
        _ => Ok(0),
    }
}

/// Refuses what needs a capability, and, to who has it, what there is not.
fn only_the_hosts(task: &CurrentTask, which: Capability) -> SysResult<()> {
    match task.cred.capable(which) {
        true => Err(Errno::ENOSYS.into()),
        false => Err(Errno::EPERM.into()),
    }
}

/// Ending the system is ending its init, as in a container: the caller's own way of doing so.
pub fn sys_reboot(
    task: &mut CurrentTask,
    magic1: Hex,
    magic2: abi::RebootMagic2,
    cmd: abi::RebootCmd,
    _arg: abi::UserAddr,
) -> SysResult<()> {
    const MAGIC1: u64 = 0xfee1_dead;
    if !task.cred.capable(Capability::SYS_BOOT) {
        return Err(Errno::EPERM.into());
    }
    if magic1.0 & 0xffff_ffff != MAGIC1 || magic2.name().is_none() {
        return Err(Errno::EINVAL.into());
    }
    match cmd {
        abi::RebootCmd::CAD_ON | abi::RebootCmd::CAD_OFF => Ok(()),
        _ => Err(Errno::EPERM.into()),
    }
}

pub fn sys_vhangup(task: &mut CurrentTask) -> SysResult<()> {
    only_the_hosts(task, Capability::SYS_TTY_CONFIG)
}

pub fn sys_acct(task: &mut CurrentTask, _path: crate::syscall::UserCStr) -> SysResult<()> {
    only_the_hosts(task, Capability::SYS_PACCT)
}

pub fn sys_swapon(
    task: &mut CurrentTask,
    _path: crate::syscall::UserCStr,
    _flags: abi::SwapFlags,
) -> SysResult<()> {
    only_the_hosts(task, Capability::SYS_ADMIN)
}

pub fn sys_swapoff(task: &mut CurrentTask, _path: crate::syscall::UserCStr) -> SysResult<()> {
    only_the_hosts(task, Capability::SYS_ADMIN)
}
