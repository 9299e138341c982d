//! What a socket is as an open file.

use std::any::Any;
use std::sync::Arc;

use abi::{Errno, Ioctl, MsgFlags, OpenFlags, SocketFlags, UserAddr};
use smallvec::{SmallVec, smallvec};
use sync::{SysResult, WaitQueue};
use vfs::{AttributeChange, Attributes, Caller, FileDescription, FileOps, Ready, UserRead, UserWrite};

use super::receive::Receiving;
use super::send::Sending;
use super::unix::{Kind, Phase, Unix};
use crate::fs::anon::OwnAttributes;
use crate::task::{CurrentTask, current};

/// The open file of a socket.
pub struct SocketFile {
    socket: Arc<Unix>,
    attributes: OwnAttributes,
}

impl SocketFile {
    pub(super) fn socket(&self) -> &Arc<Unix> {
        &self.socket
    }

    /// The permission bits that its file gets, before the umask.
    pub(super) fn permissions(&self) -> u32 {
        self.attributes.get().mode.permissions()
    }

    /// Makes the open file of a socket.
    pub(super) fn open(task: &CurrentTask, socket: Arc<Unix>, flags: SocketFlags) -> Arc<FileDescription> {
        let file = SocketFile { socket, attributes: task.kernel().anon.socket(task) };
        let nonblocking = flags.contains(SocketFlags::NONBLOCK);
        let status = if nonblocking { OpenFlags::NONBLOCK } else { OpenFlags::empty() };
        let socket = file.socket.clone();
        let description = FileDescription::new(Box::new(file), None, OpenFlags::RDWR | status);
        // The first and only time: a socket has one open file.
        let _ = socket.file.set(Arc::downgrade(&description));
        description
    }
}

impl FileOps for SocketFile {
    fn as_any(&self) -> &dyn Any {
        self
    }

    /// The socket knows its file, whose flags say whether to tell the owner.
    fn fasync(&self, _: &Arc<FileDescription>, _: &dyn Caller, _: bool) -> SysResult<()> {
        Ok(())
    }

    fn read(&self, file: &FileDescription, caller: &dyn Caller, to: &mut dyn UserWrite) -> SysResult<usize> {
        if to.room() == 0 {
            return Ok(0);
        }
        let how = Receiving { flags: MsgFlags::empty(), nonblocking: file.is_nonblocking() };
        Ok(self.socket.receive(caller, to, how)?.count)
    }

    fn write(
        &self,
        file: &FileDescription,
        caller: &dyn Caller,
        from: &mut dyn UserRead,
    ) -> SysResult<usize> {
        let sending = Sending { nonblocking: file.is_nonblocking(), ..Sending::default() };
        self.socket.send(current(caller)?, from, sending)
    }

    fn attributes(&self) -> Option<SysResult<Attributes>> {
        Some(Ok(self.attributes.get()))
    }

    fn set_attributes(&self, change: &AttributeChange) -> SysResult<()> {
        self.attributes.change(change)
    }

    fn ioctl(&self, _: &FileDescription, caller: &dyn Caller, command: u32, at: u64) -> SysResult<usize> {
        let bytes = match Ioctl(command) {
            // SIOCOUTQ.
            Ioctl::TIOCOUTQ => self.socket.sent(),
            // SIOCINQ.
            Ioctl::FIONREAD if self.socket.phase() == Phase::Listening => return Err(Errno::EINVAL.into()),
            Ioctl::FIONREAD => {
                let inbox = self.socket.inbox.lock();
                match self.socket.kind {
                    Kind::Datagram => inbox.messages.front().map_or(0, |first| first.len()),
                    Kind::Stream | Kind::Seqpacket => inbox.bytes,
                }
            }
            _ => return Err(Errno::ENOTTY.into()),
        };
        let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
        caller.write_user(UserAddr(at), &bytes.to_le_bytes())?;
        Ok(0)
    }

    fn poll(&self, _: &FileDescription) -> Ready {
        self.socket.poll()
    }

    fn wait_queues(&self) -> SmallVec<[&WaitQueue; 2]> {
        smallvec![&self.socket.readers, &self.socket.writers]
    }

    fn link_name(&self) -> Option<String> {
        Some(format!("socket:[{}]", self.attributes.get().ino))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        self.socket.release();
    }
}
