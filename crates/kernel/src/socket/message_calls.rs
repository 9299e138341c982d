//! `sendto`, `recvfrom`, `sendmsg`, `recvmsg` and their kin.

use std::mem::offset_of;
use std::time::Instant;

use abi::{Errno, Mmsghdr, MsgFlags, Msghdr, Timespec, UserAddr};
use sync::{Interrupts, SysError, SysResult};

use super::calls::{SocketFd, give_address, read_address, socket};
use super::control::{self, ControlRoom};
use super::receive::{Received, Receiving};
use super::send::Sending;
use crate::fs::rw::{MAX_IOVECS, Ranges, one, read_io_vec};
use crate::mm::{UserSink, UserSource};
use crate::syscall::{Fd, In, InBuf, InOut, InSockaddr, IoVec, OutBuf, OutSockaddr};
use crate::task::CurrentTask;
use crate::time::{duration, timespec};

/// Bytes of a control part at most, less one (`net.core.optmem_max`).
const MAX_CONTROL: usize = 131_072;

pub fn sys_sendto(
    task: &mut CurrentTask,
    fd: Fd,
    buf: InBuf,
    flags: MsgFlags,
    addr: InSockaddr,
) -> SysResult<usize> {
    let ranges = one(buf.addr, buf.len)?;
    let file = socket(task, fd)?;
    let to = if addr.addr.is_null() { Vec::new() } else { read_address(task, addr)? };
    let nonblocking = flags.contains(MsgFlags::DONTWAIT) || file.description.is_nonblocking();
    let sending = Sending { flags, nonblocking, to: &to, ..Sending::default() };
    file.ops().socket().send(task, &mut UserSource::new(&task.mm, &ranges), sending)
}

pub fn sys_recvfrom(
    task: &mut CurrentTask,
    fd: Fd,
    buf: OutBuf,
    flags: MsgFlags,
    addr: OutSockaddr,
) -> SysResult<usize> {
    let ranges = one(buf.addr, buf.len)?;
    let file = socket(task, fd)?;
    let nonblocking = flags.contains(MsgFlags::DONTWAIT) || file.description.is_nonblocking();
    let mut sink = UserSink::new(&task.mm, &ranges);
    let got = file.ops().socket().receive(task, &mut sink, Receiving { flags, nonblocking })?;
    if !addr.addr.is_null() {
        give_address(task, sender(&got), addr)?;
    }
    Ok(got.count)
}

fn sender(got: &Received) -> &[u8] {
    got.from.as_ref().map_or(&[], |address| address.raw())
}

/// Where the buffers of a message are. `EMSGSIZE`: too many.
fn buffers(task: &CurrentTask, message: &Msghdr) -> SysResult<Ranges> {
    match usize::try_from(message.iovlen) {
        Ok(count) if count <= MAX_IOVECS => read_io_vec(task, IoVec { addr: UserAddr(message.iov), count }),
        _ => Err(Errno::EMSGSIZE.into()),
    }
}

/// The length of a message's name. `EINVAL`: negative.
fn name_len(message: &Msghdr) -> SysResult<i32> {
    match message.namelen {
        _ if message.name == 0 => Ok(0),
        len if len < 0 => Err(Errno::EINVAL.into()),
        len => Ok(len.min(i32::try_from(abi::SOCKADDR_STORAGE_SIZE).unwrap_or(i32::MAX))),
    }
}

fn send_message(task: &CurrentTask, file: &SocketFd, at: UserAddr, flags: MsgFlags) -> SysResult<usize> {
    let message: Msghdr = task.mm.read(at)?;
    let to = read_address(task, InSockaddr { addr: UserAddr(message.name), len: name_len(&message)? })?;
    let ranges = buffers(task, &message)?;
    let len =
        usize::try_from(message.controllen).ok().filter(|len| *len < MAX_CONTROL).ok_or(Errno::ENOBUFS)?;
    let mut bytes = vec![0; len];
    task.mm.read_bytes(UserAddr(message.control), &mut bytes)?;
    let control = control::parse(task, &bytes)?;
    let nonblocking = flags.contains(MsgFlags::DONTWAIT) || file.description.is_nonblocking();
    let (rights, credentials) = (control.rights, control.credentials);
    let sending = Sending { flags, nonblocking, to: &to, rights, credentials };
    file.ops().socket().send(task, &mut UserSource::new(&task.mm, &ranges), sending)
}

/// A field of a message header in guest memory.
fn field(at: UserAddr, offset: usize) -> UserAddr {
    UserAddr(at.0.wrapping_add(offset as u64))
}

fn receive_message(task: &CurrentTask, file: &SocketFd, at: UserAddr, flags: MsgFlags) -> SysResult<usize> {
    let message: Msghdr = task.mm.read(at)?;
    name_len(&message)?;
    let ranges = buffers(task, &message)?;
    let nonblocking = flags.contains(MsgFlags::DONTWAIT) || file.description.is_nonblocking();
    let mut sink = UserSink::new(&task.mm, &ranges);
    let socket = file.ops().socket();
    let mut got = socket.receive(task, &mut sink, Receiving { flags, nonblocking })?;
    let control_len = usize::try_from(message.controllen).unwrap_or(usize::MAX);
    let mut room = ControlRoom::new(UserAddr(message.control), control_len);
    let before = room.left();
    if socket.options.hot().pass_credentials {
        room.put_credentials(task, got.credentials);
    }
    let cloexec = flags.contains(MsgFlags::CMSG_CLOEXEC);
    room.put_files(task, std::mem::take(&mut got.files), cloexec);
    if message.name != 0 {
        let len = field(at, offset_of!(Msghdr, namelen));
        give_address(task, sender(&got), OutSockaddr { addr: UserAddr(message.name), len })?;
    }
    let told = got.flags | room.flags | (flags & MsgFlags::CMSG_CLOEXEC);
    task.mm.write(field(at, offset_of!(Msghdr, flags)), &told)?;
    task.mm.write(field(at, offset_of!(Msghdr, controllen)), &((before - room.left()) as u64))?;
    Ok(got.count)
}

/// `MSG_CMSG_COMPAT` is for 32-bit programs.
fn check_flags(flags: MsgFlags) -> SysResult<()> {
    if flags.contains(MsgFlags::CMSG_COMPAT) { Err(Errno::EINVAL.into()) } else { Ok(()) }
}

pub fn sys_sendmsg(task: &mut CurrentTask, fd: Fd, msg: In<Msghdr>, flags: MsgFlags) -> SysResult<usize> {
    check_flags(flags)?;
    let file = socket(task, fd)?;
    send_message(task, &file, msg.0, flags)
}

pub fn sys_recvmsg(task: &mut CurrentTask, fd: Fd, msg: InOut<Msghdr>, flags: MsgFlags) -> SysResult<usize> {
    check_flags(flags)?;
    let file = socket(task, fd)?;
    receive_message(task, &file, msg.0, flags)
}

/// Where the message of this index lies, and where its count is written.
fn entry(messages: UserAddr, index: usize) -> (UserAddr, UserAddr) {
    let at = field(messages, index.wrapping_mul(size_of::<Mmsghdr>()));
    (at, field(at, offset_of!(Mmsghdr, len)))
}

/// Gives the count, or the error if there was none.
fn finish(done: usize, ended: SysResult<()>) -> SysResult<usize> {
    match ended {
        Err(error) if done == 0 => Err(error),
        _ => Ok(done),
    }
}

pub fn sys_sendmmsg(
    task: &mut CurrentTask,
    fd: Fd,
    messages: UserAddr,
    count: u32,
    flags: MsgFlags,
) -> SysResult<usize> {
    check_flags(flags)?;
    let file = socket(task, fd)?;
    let count = usize::try_from(count).unwrap_or(usize::MAX).min(MAX_IOVECS);
    let mut done = 0;
    let mut ended = Ok(());
    while done < count && ended.is_ok() {
        let (at, len_at) = entry(messages, done);
        ended = send_message(task, &file, at, flags)
            .and_then(|sent| task.mm.write(len_at, &u32::try_from(sent).unwrap_or(u32::MAX)));
        done += usize::from(ended.is_ok());
    }
    finish(done, ended)
}

pub fn sys_recvmmsg(
    task: &mut CurrentTask,
    fd: Fd,
    messages: UserAddr,
    count: u32,
    mut flags: MsgFlags,
    timeout: InOut<Timespec>,
) -> SysResult<usize> {
    check_flags(flags)?;
    let until = match timeout.is_null() {
        true => None,
        false => Some(Instant::now().checked_add(duration(task.mm.read(timeout.0)?)?)),
    };
    let file = socket(task, fd)?;
    let inbox = &file.ops().socket().inbox;
    let told = inbox.lock().error.take();
    if let Some(errno) = told {
        return Err(errno.into());
    }
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let mut done = 0;
    let mut ended = Ok(());
    while done < count && !task.waiter.parker().is_interrupted(Interrupts::KILL) {
        let (at, len_at) = entry(messages, done);
        ended = receive_message(task, &file, at, flags & !MsgFlags::WAITFORONE)
            .and_then(|got| task.mm.write(len_at, &u32::try_from(got).unwrap_or(u32::MAX)));
        if ended.is_err() {
            break;
        }
        done += 1;
        if flags.contains(MsgFlags::WAITFORONE) {
            flags |= MsgFlags::DONTWAIT;
        }
        // Linux looks at the time only behind a message.
        if until.flatten().is_some_and(|until| until <= Instant::now()) {
            break;
        }
    }
    if done > 0 {
        if let Err(SysError::Errno(errno)) = ended
            && errno != Errno::EAGAIN
        {
            // Told by the next call.
            inbox.lock().error = Some(errno);
        }
        if let Some(Some(until)) = until {
            task.mm.write(timeout.0, &timespec(until.saturating_duration_since(Instant::now())))?;
        }
    }
    finish(done, ended)
}
