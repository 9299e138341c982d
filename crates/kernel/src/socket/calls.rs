//! The system calls on sockets, but for messages and options.

use std::sync::Arc;

use abi::{AddressFamily, Errno, SOCKADDR_STORAGE_SIZE, ShutdownHow, SocketFlags, SocketType};
use sync::SysResult;
use vfs::FileDescription;

use super::SocketFile;
use super::address::unnamed;
use super::connect;
use super::unix::{Kind, Unix};
use crate::resource::NOFILE;
use crate::syscall::{Fd, InSockaddr, Out, OutSockaddr};
use crate::task::CurrentTask;

/// An open file that is a socket.
pub(super) struct SocketFd {
    pub description: Arc<FileDescription>,
}

impl SocketFd {
    pub(super) fn ops(&self) -> &SocketFile {
        // Made by `socket` alone, which has looked.
        self.description.downcast().unwrap_or_else(|| unreachable!("the open file is a socket"))
    }
}

/// The socket behind a descriptor. `EBADF`, `ENOTSOCK`.
pub(super) fn socket(task: &CurrentTask, fd: Fd) -> SysResult<SocketFd> {
    let description = task.files.get(fd)?;
    match description.downcast::<SocketFile>() {
        Some(_) => Ok(SocketFd { description }),
        None => Err(Errno::ENOTSOCK.into()),
    }
}

/// Reads an address (Linux: `move_addr_to_kernel`). `EINVAL` for an impossible length.
pub(super) fn read_address(task: &CurrentTask, addr: InSockaddr) -> SysResult<Vec<u8>> {
    let len = usize::try_from(addr.len).ok().filter(|len| *len <= SOCKADDR_STORAGE_SIZE);
    let mut raw = vec![0; len.ok_or(Errno::EINVAL)?];
    if !raw.is_empty() {
        task.mm.read_bytes(addr.addr, &mut raw)?;
    }
    Ok(raw)
}

/// Gives an address to the guest, cut to its room; the length is that of the whole (Linux: `move_addr_to_user`).
pub(super) fn give_address(task: &CurrentTask, raw: &[u8], to: OutSockaddr) -> SysResult<()> {
    let room: i32 = task.mm.read(to.len)?;
    let room = usize::try_from(room).map_err(|_| Errno::EINVAL)?;
    let part = raw.get(..room).unwrap_or(raw);
    if !part.is_empty() {
        task.mm.write_bytes(to.addr, part)?;
    }
    task.mm.write(to.len, &u32::try_from(raw.len()).unwrap_or(0))
}

/// The type of a socket to be made. Linux's order: flags, type, family, protocol, then what the family has.
fn kind(family: AddressFamily, kind: SocketType, protocol: i32) -> SysResult<Kind> {
    /// `SOCK_MAX`.
    const TYPES: u32 = 11;
    if !(SocketFlags::NONBLOCK | SocketFlags::CLOEXEC).contains(kind.flags()) {
        return Err(Errno::EINVAL.into());
    }
    if kind.kind().0 >= TYPES {
        return Err(Errno::EINVAL.into());
    }
    if family != AddressFamily::UNIX {
        return Err(Errno::EAFNOSUPPORT.into());
    }
    if protocol != 0 && protocol != i32::from(AddressFamily::UNIX.0) {
        return Err(Errno::EPROTONOSUPPORT.into());
    }
    Kind::new(kind.kind())
}

pub fn sys_socket(
    task: &mut CurrentTask,
    family: AddressFamily,
    socket_type: SocketType,
    protocol: i32,
) -> SysResult<Fd> {
    let kind = kind(family, socket_type, protocol)?;
    let socket = Unix::new(&task.kernel().sockets, kind);
    let flags = socket_type.flags();
    let file = SocketFile::open(task, socket, flags);
    let cloexec = flags.contains(SocketFlags::CLOEXEC);
    task.files.table.install(file, task.limit(NOFILE), cloexec).map(Fd)
}

pub fn sys_socketpair(
    task: &mut CurrentTask,
    family: AddressFamily,
    socket_type: SocketType,
    protocol: i32,
    fds: Out<[i32; 2]>,
) -> SysResult<()> {
    let flags = socket_type.flags();
    if !(SocketFlags::NONBLOCK | SocketFlags::CLOEXEC).contains(flags) {
        return Err(Errno::EINVAL.into());
    }
    let cloexec = flags.contains(SocketFlags::CLOEXEC);
    let (files, limit) = (task.files.clone(), task.limit(NOFILE));
    let first = files.table.reserve(limit, cloexec)?;
    let second = files.table.reserve(limit, cloexec)?;
    task.mm.write(fds.0, &[first.fd(), second.fd()])?;
    let kind = kind(family, socket_type, protocol)?;
    let [one, other] = connect::pair(task, kind).map(|end| SocketFile::open(task, end, flags));
    first.install(one);
    second.install(other);
    Ok(())
}

pub fn sys_bind(task: &mut CurrentTask, fd: Fd, addr: InSockaddr) -> SysResult<()> {
    let file = socket(task, fd)?;
    let raw = read_address(task, addr)?;
    file.ops().socket().bind(task, file.ops(), &raw)
}

pub fn sys_listen(task: &mut CurrentTask, fd: Fd, backlog: i32) -> SysResult<()> {
    let file = socket(task, fd)?;
    file.ops().socket().listen(task, backlog)
}

pub fn sys_connect(task: &mut CurrentTask, fd: Fd, addr: InSockaddr) -> SysResult<()> {
    task.files.get(fd)?;
    let raw = read_address(task, addr)?;
    let file = socket(task, fd)?;
    let own = file.ops().socket();
    match own.kind {
        Kind::Datagram => own.connect_datagram(task, &raw),
        Kind::Stream | Kind::Seqpacket => own.connect_stream(task, &raw, file.description.is_nonblocking()),
    }
}

pub fn sys_accept(task: &mut CurrentTask, fd: Fd, addr: OutSockaddr) -> SysResult<Fd> {
    sys_accept4(task, fd, addr, SocketFlags::empty())
}

pub fn sys_accept4(task: &mut CurrentTask, fd: Fd, addr: OutSockaddr, flags: SocketFlags) -> SysResult<Fd> {
    task.files.get(fd)?;
    if !(SocketFlags::NONBLOCK | SocketFlags::CLOEXEC).contains(flags) {
        return Err(Errno::EINVAL.into());
    }
    let files = task.files.clone();
    let number = files.table.reserve(task.limit(NOFILE), flags.contains(SocketFlags::CLOEXEC))?;
    let file = socket(task, fd)?;
    let accepted = file.ops().socket().accept(task, file.description.is_nonblocking())?;
    let peer = accepted.peer().and_then(|peer| peer.address());
    // From here on an end of this call closes the connection, as on Linux.
    let opened = SocketFile::open(task, accepted, flags);
    if !addr.addr.is_null() {
        let name = peer.map_or_else(unnamed, |address| address.raw().to_vec());
        give_address(task, &name, addr)?;
    }
    Ok(Fd(number.install(opened)))
}

pub fn sys_getsockname(task: &mut CurrentTask, fd: Fd, addr: OutSockaddr) -> SysResult<()> {
    let file = socket(task, fd)?;
    let name = file.ops().socket().address().map_or_else(unnamed, |address| address.raw().to_vec());
    give_address(task, &name, addr)
}

pub fn sys_getpeername(task: &mut CurrentTask, fd: Fd, addr: OutSockaddr) -> SysResult<()> {
    let file = socket(task, fd)?;
    let peer = file.ops().socket().peer().ok_or(Errno::ENOTCONN)?;
    let name = peer.address().map_or_else(unnamed, |address| address.raw().to_vec());
    give_address(task, &name, addr)
}

pub fn sys_shutdown(task: &mut CurrentTask, fd: Fd, how: ShutdownHow) -> SysResult<()> {
    let file = socket(task, fd)?;
    file.ops().socket().shutdown(task, how)
}
