//! Names of sockets: paths and abstract ones.

use std::any::Any;
use std::sync::{Arc, Weak};

use abi::{AT_FDCWD, AddressFamily, Errno, FileType};
use sync::{SysError, SysResult};
use vfs::{Inode, Lookup, MAY_WRITE, inode_permission, ops};

use super::Sockets;
use super::file::SocketFile;
use super::unix::{Kind, Unix};
use crate::task::CurrentTask;

/// Bytes before the name in a `struct sockaddr_un`.
const FAMILY_SIZE: usize = 2;
/// The whole of it.
const SOCKADDR_UN_SIZE: usize = 110;
/// Names that autobind chooses from.
const AUTOBIND_NAMES: u32 = 1 << 20;

/// The name that a socket has been bound to.
pub(super) struct Address {
    /// As `getsockname` gives it, family included.
    raw: Vec<u8>,
    /// The socket's file; `None` for an abstract name. Keeps what hangs on the inode there while the socket lives.
    inode: Option<Arc<Inode>>,
}

/// What hangs on the inode of a socket's file.
struct Bound(Weak<Unix>);

/// A name, taken apart.
enum Name<'a> {
    Path(&'a [u8]),
    Abstract(&'a [u8]),
}

fn family(raw: &[u8]) -> Option<AddressFamily> {
    let bytes = raw.get(..FAMILY_SIZE)?;
    Some(AddressFamily(u16::from_le_bytes(bytes.try_into().ok()?)))
}

/// Whether an address says that there is to be none (`AF_UNSPEC`).
pub(super) fn is_unspecified(raw: &[u8]) -> bool {
    family(raw) == Some(AddressFamily::UNSPEC)
}

/// Linux: `unix_validate_addr`.
fn parse(raw: &[u8]) -> SysResult<Name<'_>> {
    if raw.len() > SOCKADDR_UN_SIZE || family(raw) != Some(AddressFamily::UNIX) {
        return Err(Errno::EINVAL.into());
    }
    match raw.get(FAMILY_SIZE..) {
        None | Some([]) => Err(Errno::EINVAL.into()),
        Some([0, rest @ ..]) => Ok(Name::Abstract(rest)),
        Some(path) => Ok(Name::Path(path.split(|byte| *byte == 0).next().unwrap_or(path))),
    }
}

/// Whether it is a valid one. `EINVAL`.
pub(super) fn validate(raw: &[u8]) -> SysResult<()> {
    parse(raw).map(|_| ())
}

fn raw(parts: &[&[u8]]) -> Vec<u8> {
    let family = AddressFamily::UNIX.0.to_le_bytes();
    family.iter().copied().chain(parts.iter().flat_map(|part| part.iter().copied())).collect()
}

/// What a socket without a name shows.
pub(super) fn unnamed() -> Vec<u8> {
    raw(&[])
}

impl Address {
    pub(super) fn raw(&self) -> &[u8] {
        &self.raw
    }

    /// The name without its leading zero.
    fn abstract_name(&self) -> &[u8] {
        self.raw.get(FAMILY_SIZE + 1..).unwrap_or(&[])
    }
}

impl Unix {
    /// `bind` (Linux: `unix_bind`). `EADDRINUSE`, `EINVAL` for a socket that has a name.
    pub(super) fn bind(self: &Arc<Self>, task: &CurrentTask, file: &SocketFile, raw: &[u8]) -> SysResult<()> {
        if raw.len() == FAMILY_SIZE && family(raw) == Some(AddressFamily::UNIX) {
            return self.autobind(task);
        }
        match parse(raw)? {
            Name::Abstract(name) => {
                let _one_at_a_time = self.binding.lock_interruptible(&task.waiter)?;
                if self.address().is_some() {
                    return Err(Errno::EINVAL.into());
                }
                self.take_abstract(name)
            }
            Name::Path(path) => self.bind_path(task, file, path),
        }
    }

    fn bind_path(self: &Arc<Self>, task: &CurrentTask, file: &SocketFile, path: &[u8]) -> SysResult<()> {
        let context = task.fs_context();
        let made = ops::make_socket(&context, path, file.permissions());
        let inode = made.map_err(|error| match error {
            SysError::Errno(Errno::EEXIST) => Errno::EADDRINUSE.into(),
            other => other,
        })?;
        // Linux too makes the file first and removes it when the socket turns out to have a name.
        let bound = self.binding.lock_interruptible(&task.waiter).map_err(SysError::from).and_then(|_held| {
            if self.address().is_some() {
                return Err(Errno::EINVAL.into());
            }
            inode.attached.set_object(Some(Arc::new(Bound(Arc::downgrade(self)))));
            let address = Address { raw: self::raw(&[path, &[0]]), inode: Some(inode.clone()) };
            self.state.lock().address = Some(Arc::new(address));
            Ok(())
        });
        if bound.is_err() {
            // It may have been renamed meanwhile: then it stays, as a file that nobody listens at.
            let _ = ops::unlink(&context, AT_FDCWD, path);
        }
        bound
    }

    /// Takes an abstract name. `EADDRINUSE`.
    fn take_abstract(self: &Arc<Self>, name: &[u8]) -> SysResult<()> {
        let address = Arc::new(Address { raw: raw(&[&[0], name]), inode: None });
        let mut names = self.sockets.names.lock();
        let key = (self.kind, name.to_vec());
        if names.get(&key).is_some_and(|owner| owner.strong_count() > 0) {
            return Err(Errno::EADDRINUSE.into());
        }
        names.insert(key, Arc::downgrade(self));
        self.state.lock().address = Some(address);
        Ok(())
    }

    /// Gives the socket an abstract name of five digits, unless it has one (Linux: `unix_autobind`).
    pub(super) fn autobind(self: &Arc<Self>, task: &CurrentTask) -> SysResult<()> {
        let _one_at_a_time = self.binding.lock_interruptible(&task.waiter)?;
        if self.address().is_some() {
            return Ok(());
        }
        let first = u32::from_le_bytes(crate::random::bytes());
        for step in 0..AUTOBIND_NAMES {
            let number = first.wrapping_add(step) % AUTOBIND_NAMES;
            match self.take_abstract(format!("{number:05x}").as_bytes()) {
                Err(SysError::Errno(Errno::EADDRINUSE)) => {}
                result => return result,
            }
        }
        Err(Errno::ENOSPC.into())
    }

    /// Autobinds a socket that passes credentials, so that others can answer it.
    pub(super) fn autobind_to_pass(self: &Arc<Self>, task: &CurrentTask) -> SysResult<()> {
        match self.options.hot().pass_credentials && self.address().is_none() {
            true => self.autobind(task),
            false => Ok(()),
        }
    }
}

impl Sockets {
    /// The socket of this name and type (Linux: `unix_find_other`). `ECONNREFUSED`, `EPROTOTYPE`, `ENOENT`, `EACCES`.
    pub(super) fn find(&self, task: &CurrentTask, raw: &[u8], kind: Kind) -> SysResult<Arc<Unix>> {
        match parse(raw)? {
            Name::Abstract(name) => {
                let found = self.names.lock().get(&(kind, name.to_vec())).and_then(Weak::upgrade);
                found.ok_or(Errno::ECONNREFUSED.into())
            }
            Name::Path(path) => {
                let found = task.fs_context().lookup_path(AT_FDCWD, path, Lookup::FOLLOW)?;
                let inode = found.inode();
                inode_permission(inode, task, MAY_WRITE)?;
                if inode.file_type != FileType::SOCK {
                    return Err(Errno::ECONNREFUSED.into());
                }
                let bound = inode.attached.object::<Bound>().and_then(|bound| bound.0.upgrade());
                let socket = bound.ok_or(Errno::ECONNREFUSED)?;
                if socket.kind == kind { Ok(socket) } else { Err(Errno::EPROTOTYPE.into()) }
            }
        }
    }

    /// The socket of this name is no more.
    pub(super) fn forget(&self, address: &Address, socket: &Arc<Unix>) {
        let is_it = |other: &Weak<Unix>| std::ptr::eq(other.as_ptr(), Arc::as_ptr(socket));
        match &address.inode {
            Some(inode) => {
                let bound: Option<Arc<Bound>> = inode.attached.object();
                // Connections carry the name of their listener, whose the file is.
                if bound.is_some_and(|bound| is_it(&bound.0)) {
                    inode.attached.set_object(None::<Arc<dyn Any + Send + Sync>>);
                }
            }
            None => {
                let key = (socket.kind, address.abstract_name().to_vec());
                let mut names = self.names.lock();
                if names.get(&key).is_some_and(is_it) {
                    names.remove(&key);
                }
            }
        }
    }
}
