//! Extended attributes. Guests get `user.*`, without ours. `trusted.*` and `security.*` are kept as attributes of ours
//! where records are kept, so they never have an effect on the host.

use std::sync::Arc;

use abi::{Errno, FileType};
use rustix::fs::XattrFlags;
use rustix::io::Errno as HostErrno;
use sync::SysResult;
use vfs::{Inode, XattrMode};

use crate::buffer::with_buffer;
use crate::error::errno;
use crate::node::HostNode;
use crate::record::{OURS, ProcPath};

/// `XATTR_SIZE_MAX`, and `XATTR_LIST_MAX`.
const LARGEST: usize = 65536;
/// Namespaces that are kept under [`OURS`].
const KEPT: [&[u8]; 2] = [b"trusted.", b"security."];

impl HostNode {
    /// The host's name for a guest's attribute.
    fn host_name(&self, name: &[u8]) -> SysResult<Vec<u8>> {
        if name.starts_with(OURS) {
            return Err(Errno::EOPNOTSUPP.into());
        }
        if name.starts_with(b"user.") {
            return Ok(name.to_vec());
        }
        if self.fs.keeps_records() && KEPT.iter().any(|prefix| name.starts_with(prefix)) {
            return Ok([OURS, name].concat());
        }
        Err(Errno::EOPNOTSUPP.into())
    }

    /// The guest's name for one of the host's; `None`: it is not shown.
    fn guest_name<'a>(&self, name: &'a [u8]) -> Option<&'a [u8]> {
        match name.strip_prefix(OURS) {
            Some(kept) if KEPT.iter().any(|prefix| kept.starts_with(prefix)) => Some(kept),
            Some(_) => None,
            None => name.starts_with(b"user.").then_some(name),
        }
    }

    pub(crate) fn xattr(&self, this: &Arc<Inode>, name: &[u8]) -> SysResult<Vec<u8>> {
        let host_name = self.host_name(name)?;
        if !can_carry(this, name) {
            return Err(Errno::ENODATA.into());
        }
        let handle = self.handle(this)?;
        let path = ProcPath::of(&handle);
        with_buffer(LARGEST, |buffer| {
            let len = rustix::fs::getxattr(path.as_str(), host_name, &mut *buffer).map_err(errno)?;
            Ok(buffer.get(..len).unwrap_or_default().to_vec())
        })
    }

    pub(crate) fn put_xattr(
        &self,
        this: &Arc<Inode>,
        name: &[u8],
        value: &[u8],
        mode: XattrMode,
    ) -> SysResult<()> {
        let host_name = self.host_name(name)?;
        self.must_be_writable()?;
        if !can_carry(this, name) {
            return Err(Errno::EPERM.into());
        }
        let flags = match mode {
            XattrMode::Any => XattrFlags::empty(),
            XattrMode::Create => XattrFlags::CREATE,
            XattrMode::Replace => XattrFlags::REPLACE,
        };
        let handle = self.handle(this)?;
        rustix::fs::setxattr(ProcPath::of(&handle).as_str(), host_name, value, flags).map_err(|error| {
            match error {
                // Symbolic links: what the host says of `user.*` there is not about permission.
                HostErrno::PERM if this.file_type == FileType::LNK => Errno::EOPNOTSUPP.into(),
                other => errno(other),
            }
        })
    }

    pub(crate) fn drop_xattr(&self, this: &Arc<Inode>, name: &[u8]) -> SysResult<()> {
        let host_name = self.host_name(name)?;
        self.must_be_writable()?;
        if !can_carry(this, name) {
            return Err(Errno::EPERM.into());
        }
        let handle = self.handle(this)?;
        rustix::fs::removexattr(ProcPath::of(&handle).as_str(), host_name).map_err(errno)
    }

    pub(crate) fn xattrs(&self, this: &Arc<Inode>) -> SysResult<Vec<Vec<u8>>> {
        if this.file_type == FileType::LNK {
            return Ok(Vec::new());
        }
        let handle = self.handle(this)?;
        let path = ProcPath::of(&handle);
        with_buffer(LARGEST, |buffer| {
            let len = match rustix::fs::listxattr(path.as_str(), &mut *buffer) {
                Ok(len) => len,
                Err(HostErrno::OPNOTSUPP) => 0,
                Err(error) => return Err(errno(error)),
            };
            let names = buffer.get(..len).unwrap_or_default().split(|byte| *byte == 0);
            let shown = names.filter_map(|name| self.guest_name(name));
            Ok(shown.filter(|name| can_carry(this, name)).map(<[u8]>::to_vec).collect())
        })
    }
}

/// `user.*` is for regular files and directories only (`xattr_permission`); our special files are regular ones on
/// the host.
fn can_carry(this: &Arc<Inode>, name: &[u8]) -> bool {
    !name.starts_with(b"user.") || matches!(this.file_type, FileType::REG | FileType::DIR)
}
