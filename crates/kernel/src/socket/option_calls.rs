//! `getsockopt` and `setsockopt`.

use abi::{AddressFamily, Errno, Linger, SocketOption, SockoptLevel, Timeval, UserAddr};
use sync::SysResult;
use vfs::Capability;
use zerocopy::IntoBytes;

use super::Unix;
use super::calls::socket;
use super::options::{Own, Shape, Told, rounded, shape};
use super::unix::Phase;
use crate::syscall::{Fd, InSockopt, OutSockopt, SockoptName};
use crate::task::CurrentTask;
use crate::task::pidfd;

/// What buffers are limited to without privilege, in bytes (`net.core.wmem_max`, `rmem_max`).
const MAX_BUFFER: i32 = 4_194_304;
/// The largest with it. Linux goes on; here it would be the kernel's own memory.
const MAX_FORCED: i32 = 32 << 20;
/// The smallest buffers (SOCK_MIN_SNDBUF, SOCK_MIN_RCVBUF).
const MIN_SEND_BUFFER: usize = 4608;
const MIN_RECEIVE_BUFFER: usize = 2304;
/// Instructions and extensions of socket filters that `SO_BPF_EXTENSIONS` tells of.
const BPF_EXTENSIONS: i32 = 64;

/// The option's shape. Linux: `EOPNOTSUPP` for other levels, which AF_UNIX does not have.
fn find(level: SockoptLevel, name: SockoptName) -> SysResult<(SocketOption, &'static Shape)> {
    if level != SockoptLevel::SOCKET {
        return Err(Errno::EOPNOTSUPP.into());
    }
    let option = SocketOption(name.0);
    Ok((option, shape(option).ok_or(Errno::ENOPROTOOPT)?))
}

pub fn sys_setsockopt(
    task: &mut CurrentTask,
    fd: Fd,
    level: SockoptLevel,
    name: SockoptName,
    value: InSockopt,
) -> SysResult<()> {
    let file = socket(task, fd)?;
    let len = usize::try_from(value.len).map_err(|_| Errno::EINVAL)?;
    if level != SockoptLevel::SOCKET {
        return Err(Errno::EOPNOTSUPP.into());
    }
    if len < size_of::<i32>() {
        return Err(Errno::EINVAL.into());
    }
    let number: i32 = task.mm.read(value.addr)?;
    let (option, shape) = find(level, name)?;
    let socket = file.ops().socket();
    match *shape {
        Shape::Switch => socket.options.keep(option, i32::from(number != 0)),
        Shape::Number(_) => socket.options.keep(option, number),
        Shape::Off if number == 0 => {}
        Shape::Off => return Err(Errno::EOPNOTSUPP.into()),
        Shape::Privileged(most) => {
            if !(0..=most).contains(&number) && !is_network_admin(task) {
                return Err(if option == SocketOption::DEBUG { Errno::EACCES } else { Errno::EPERM }.into());
            }
            let is_switch = option == SocketOption::DEBUG;
            socket.options.keep(option, if is_switch { i32::from(number != 0) } else { number });
        }
        Shape::Told(_) => return Err(Errno::ENOPROTOOPT.into()),
        Shape::Own(own) => set_own(task, socket, own, number, value.addr, len)?,
    }
    Ok(())
}

fn is_network_admin(task: &CurrentTask) -> bool {
    task.cred.capable(Capability::NET_ADMIN) || task.cred.capable(Capability::NET_RAW)
}

/// The size of a buffer that `asked` bytes make: doubled, for the book-keeping. `EPERM`: forced without privilege.
fn buffer(task: &CurrentTask, asked: i32, forced: bool, least: usize) -> SysResult<usize> {
    let size = match forced {
        false => asked.cast_unsigned().min(MAX_BUFFER.cast_unsigned()).cast_signed(),
        true if !task.cred.capable(Capability::NET_ADMIN) => return Err(Errno::EPERM.into()),
        true => asked.clamp(0, MAX_FORCED),
    };
    Ok(usize::try_from(size).unwrap_or(0).saturating_mul(2).max(least))
}

fn set_own(
    task: &CurrentTask,
    socket: &Unix,
    own: Own,
    number: i32,
    at: UserAddr,
    len: usize,
) -> SysResult<()> {
    let options = &socket.options;
    match own {
        Own::SendBuffer { forced } => {
            let size = buffer(task, number, forced, MIN_SEND_BUFFER)?;
            options.change(|hot| hot.send_buffer = size);
            socket.writers.wake(0);
        }
        Own::ReceiveBuffer { forced } => {
            let size = buffer(task, number, forced, MIN_RECEIVE_BUFFER)?;
            options.change(|hot| hot.receive_buffer = size);
        }
        Own::SendTimeout => {
            let span = timeout(task, at, len)?;
            options.change(|hot| hot.send_timeout = span);
        }
        Own::ReceiveTimeout => {
            let span = timeout(task, at, len)?;
            options.change(|hot| hot.receive_timeout = span);
        }
        Own::LowWater => {
            let bytes = if number < 0 { i32::MAX } else { number.max(1) };
            options.change(|hot| hot.low_water = usize::try_from(bytes).unwrap_or(1));
        }
        Own::Linger => {
            if len < size_of::<Linger>() {
                return Err(Errno::EINVAL.into());
            }
            let linger: Linger = task.mm.read(at)?;
            options.set_linger(i32::from(linger.onoff != 0), linger.linger);
        }
        Own::PassCredentials => options.change(|hot| hot.pass_credentials = number != 0),
        Own::PassRights => options.change(|hot| hot.pass_rights = number != 0),
        Own::PeerCredentials | Own::PeerGroups | Own::PeerPidfd | Own::PeerName => {
            return Err(Errno::ENOPROTOOPT.into());
        }
    }
    Ok(())
}

/// Linux: `sock_set_timeout`.
fn timeout(task: &CurrentTask, at: UserAddr, len: usize) -> SysResult<Option<std::time::Duration>> {
    if len < size_of::<Timeval>() {
        return Err(Errno::EINVAL.into());
    }
    let time: Timeval = task.mm.read(at)?;
    if !(0..1_000_000).contains(&time.usec) {
        return Err(Errno::EDOM.into());
    }
    Ok(rounded(time.sec, time.usec))
}

pub fn sys_getsockopt(
    task: &mut CurrentTask,
    fd: Fd,
    level: SockoptLevel,
    name: SockoptName,
    value: OutSockopt,
) -> SysResult<()> {
    let file = socket(task, fd)?;
    if level != SockoptLevel::SOCKET {
        return Err(Errno::EOPNOTSUPP.into());
    }
    let room: i32 = task.mm.read(value.len)?;
    let room = usize::try_from(room).map_err(|_| Errno::EINVAL)?;
    let (option, shape) = find(level, name)?;
    let socket = file.ops().socket();
    let number = |number: i32| number.to_le_bytes().to_vec();
    let whole = match *shape {
        Shape::Switch | Shape::Privileged(_) => number(socket.options.kept(option).unwrap_or(0)),
        Shape::Off => number(0),
        Shape::Number(unset) => number(socket.options.kept(option).unwrap_or(unset)),
        Shape::Told(told) => number(tell(socket, told)),
        Shape::Own(own) => own_value(task, socket, own, room, value)?,
    };
    let part = whole.get(..room).unwrap_or(&whole);
    task.mm.write_bytes(value.addr, part)?;
    task.mm.write(value.len, &u32::try_from(part.len()).unwrap_or(0))
}

fn tell(socket: &Unix, told: Told) -> i32 {
    match told {
        Told::Type => socket.kind.number().0.cast_signed(),
        Told::Domain => i32::from(AddressFamily::UNIX.0),
        Told::Protocol => 0,
        Told::Error => socket.inbox.lock().error.take().map_or(0, |errno| errno.raw()),
        Told::IsListening => i32::from(socket.phase() == Phase::Listening),
        Told::SendLowWater => 1,
        Told::BpfExtensions => BPF_EXTENSIONS,
    }
}

fn own_value(
    task: &CurrentTask,
    socket: &Unix,
    own: Own,
    room: usize,
    value: OutSockopt,
) -> SysResult<Vec<u8>> {
    let hot = socket.options.hot();
    let number = |number: usize| i32::try_from(number).unwrap_or(i32::MAX).to_le_bytes().to_vec();
    let span = |span: Option<std::time::Duration>| {
        let span = span.unwrap_or_default();
        let sec = i64::try_from(span.as_secs()).unwrap_or(i64::MAX);
        Timeval { sec, usec: i64::from(span.subsec_micros()) }.as_bytes().to_vec()
    };
    Ok(match own {
        // The forced ones can only be set.
        Own::SendBuffer { forced: true } | Own::ReceiveBuffer { forced: true } => {
            return Err(Errno::ENOPROTOOPT.into());
        }
        Own::SendBuffer { .. } => number(hot.send_buffer),
        Own::ReceiveBuffer { .. } => number(hot.receive_buffer),
        Own::SendTimeout => span(hot.send_timeout),
        Own::ReceiveTimeout => span(hot.receive_timeout),
        Own::LowWater => number(hot.low_water),
        Own::Linger => {
            let (onoff, linger) = socket.options.linger();
            Linger { onoff, linger }.as_bytes().to_vec()
        }
        Own::PassCredentials => number(usize::from(hot.pass_credentials)),
        Own::PassRights => number(usize::from(hot.pass_rights)),
        Own::PeerCredentials => socket.peer_credentials().as_bytes().to_vec(),
        Own::PeerGroups => peer_groups(task, socket, room, value)?,
        Own::PeerPidfd => {
            let identity = socket.state.lock().peer_identity.clone().ok_or(Errno::ENODATA)?;
            pidfd::open_for_peer(task, &identity.process)?.to_le_bytes().to_vec()
        }
        Own::PeerName => {
            let peer = socket.peer().ok_or(Errno::ENOTCONN)?;
            let name = peer.address().map_or_else(super::address::unnamed, |address| address.raw().to_vec());
            if name.len() < room {
                return Err(Errno::EINVAL.into());
            }
            name
        }
    })
}

/// `SO_PEERGROUPS`: `ERANGE`, and the length needed, where there is no room.
fn peer_groups(task: &CurrentTask, socket: &Unix, room: usize, value: OutSockopt) -> SysResult<Vec<u8>> {
    let groups = {
        let state = socket.state.lock();
        state.peer_identity.as_ref().map(|identity| identity.groups.clone()).ok_or(Errno::ENODATA)?
    };
    let bytes: Vec<u8> = groups.iter().flat_map(|group| group.to_le_bytes()).collect();
    if room < bytes.len() {
        task.mm.write(value.len, &u32::try_from(bytes.len()).unwrap_or(0))?;
        return Err(Errno::ERANGE.into());
    }
    Ok(bytes)
}
