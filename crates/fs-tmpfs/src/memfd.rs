//! Files without a name, for `memfd_create`: a host memfd from the start.

use std::sync::Arc;

use abi::{FileType, OpenFlags};
use sync::SysResult;
use vfs::{Caller, FileDescription, FileSystem, NewNode, NewNodeKind, Path};

use crate::data::Data;
use crate::file::TmpFile;
use crate::fs::TmpFs;
use crate::host_data::HostData;
use crate::node::{Kind, TmpNode};

/// `MFD_ALLOW_SEALING`, `MFD_NOEXEC_SEAL`, `MFD_EXEC`: what of the guest's flags is the host's business.
const HOST_FLAGS: u32 = 0x2 | 0x8 | 0x10;
const NOEXEC_SEAL: u32 = 0x8;

/// The arguments of `memfd_create`, checked already.
#[derive(Clone, Copy, Debug)]
pub struct MemfdOptions<'a> {
    pub name: &'a [u8],
    /// `MFD_*`; those about the descriptor and about huge pages are ignored here.
    pub flags: u32,
}

/// Makes such a file in `fs`, whose root `at` is (in a mount of the kernel's own), and opens it for reading and
/// writing. `ENFILE`.
pub fn memfd(
    fs: &Arc<TmpFs>,
    at: &Path,
    options: MemfdOptions<'_>,
    caller: &dyn Caller,
) -> SysResult<Arc<FileDescription>> {
    let data = HostData::new(b"umlaut-memfd", options.flags & HOST_FLAGS)?;
    let permissions = if options.flags & NOEXEC_SEAL == 0 { 0o777 } else { 0o666 };
    let cred = caller.cred();
    let node = NewNode { kind: NewNodeKind::File, permissions, uid: cred.fsuid, gid: cred.fsgid };
    fs.inodes.charge(1)?;
    let inode = fs.inode(&node, FileType::REG, 0, Kind::File(Data::Host(data)), 0);
    if let Some(node) = inode.downcast::<TmpNode>() {
        node.lock().nlink = 0;
    }
    debug_assert!(at.mount.fs.dev() == fs.dev());
    let name = [b"memfd:", options.name].concat();
    let dentry = at.dentry.new_unlinked(&name, inode.clone());
    let flags = OpenFlags::RDWR | OpenFlags::LARGEFILE;
    let path = Path { mount: at.mount.clone(), dentry };
    Ok(FileDescription::new(Box::new(TmpFile::new(inode, flags)), Some(path), flags))
}
