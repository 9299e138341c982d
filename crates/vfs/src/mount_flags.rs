//! The flags of mounts, and the settings that guard walks against traps.

use std::sync::atomic::AtomicU32;

bitflags::bitflags! {
    /// Flags of `mount(2)` (`MS_*`). A [`Mount`] keeps those of [`MountFlags::KEPT`].
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct MountFlags: u32 {
        const RDONLY = 1;
        const NOSUID = 2;
        const NODEV = 4;
        const NOEXEC = 8;
        const SYNCHRONOUS = 0x10;
        const REMOUNT = 0x20;
        const DIRSYNC = 0x80;
        const NOSYMFOLLOW = 0x100;
        const NOATIME = 0x400;
        const NODIRATIME = 0x800;
        const BIND = 0x1000;
        const MOVE = 0x2000;
        const REC = 0x4000;
        const SILENT = 0x8000;
        const UNBINDABLE = 1 << 17;
        const PRIVATE = 1 << 18;
        const SLAVE = 1 << 19;
        const SHARED = 1 << 20;
        const RELATIME = 1 << 21;
        const STRICTATIME = 1 << 24;
        const LAZYTIME = 1 << 25;
        const KEPT = 1 | 2 | 4 | 8 | 0x100 | 0x400 | 0x800 | (1 << 21);
    }

    /// Flags of `umount2` (`MNT_*`, `UMOUNT_NOFOLLOW`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct UmountFlags: u32 {
        const FORCE = 1;
        const DETACH = 2;
        const EXPIRE = 4;
        const NOFOLLOW = 8;
    }
}

/// The access-time behaviour that a mount gets when none is asked for.
pub(crate) fn kept(flags: MountFlags) -> MountFlags {
    let kept = flags & MountFlags::KEPT;
    let own = kept.intersects(MountFlags::NOATIME) || flags.contains(MountFlags::STRICTATIME);
    if own { kept & !MountFlags::RELATIME } else { kept | MountFlags::RELATIME }
}

/// `fs.protected_*`, as distributions set them.
#[derive(Debug)]
pub struct Protections {
    /// 0 or 1.
    pub hardlinks: AtomicU32,
    /// 0 or 1.
    pub symlinks: AtomicU32,
    /// 0 to 2.
    pub fifos: AtomicU32,
    /// 0 to 2.
    pub regular: AtomicU32,
}

impl Default for Protections {
    fn default() -> Self {
        Protections {
            hardlinks: AtomicU32::new(1),
            symlinks: AtomicU32::new(1),
            fifos: AtomicU32::new(1),
            regular: AtomicU32::new(2),
        }
    }
}
