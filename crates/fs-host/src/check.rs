//! Which file systems of the host may be served at all.
//!
//! A file of procfs opened by the kernel process speaks of the kernel process: `self/mem` is its memory. Such
//! file systems are refused by their magic number (`statfs`), and by their name in mountinfo where the magic
//! number does not tell (devtmpfs shows as tmpfs).

use rustix::fd::AsFd;

/// Whether a file system may be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Files on a disk or in memory.
    Plain,
    /// FUSE, network file systems and unknown kinds: only in a directory that the user named.
    IfNamed,
    /// Never: interfaces of the host kernel.
    Refused,
}

/// Interfaces of the host kernel (`linux/magic.h` and the file systems' own sources).
const REFUSED: &[(u32, &str)] = &[
    (0x9fa0, "proc"),
    (0x6265_6572, "sysfs"),
    (0x1cd1, "devpts"),
    (0x0027_e0eb, "cgroup"),
    (0x6367_7270, "cgroup2"),
    (0x6462_6720, "debugfs"),
    (0x7472_6163, "tracefs"),
    (0xcafe_4a11, "bpf"),
    (0x7363_6673, "securityfs"),
    (0x6265_6570, "configfs"),
    (0xde5e_81e4, "efivarfs"),
    (0x6e73_6673, "nsfs"),
    (0x4249_4e4d, "binfmt_misc"),
    (0x0187, "autofs"),
    (0x1980_0202, "mqueue"),
    (0xf97c_ff8c, "selinuxfs"),
    (0x4341_5d53, "smackfs"),
    (0x6165_676c, "pstore"),
    (0x6573_5543, "fusectl"),
    (0x0765_5821, "resctrl"),
    (0x5049_4446, "pidfs"),
    (0x534f_434b, "sockfs"),
    (0x5049_5045, "pipefs"),
    (0x0904_1934, "anon_inodefs"),
    (0x444d_4142, "dmabuf"),
    (0x5345_434d, "secretmem"),
    (0x6264_6576, "bdev"),
    (0x9fa1, "openpromfs"),
    (0x9fa2, "usbdevfs"),
    (0x6759_6969, "rpc_pipefs"),
    (0x6e66_7364, "nfsd"),
    (0xabba_1974, "xenfs"),
    (0x9584_58f6, "hugetlbfs"),
];

/// Disk and memory file systems.
const PLAIN: &[u32] = &[
    0xef53,      // ext2, ext3, ext4
    0x5846_5342, // xfs
    0x9123_683e, // btrfs
    0x0102_1994, // tmpfs
    0x8584_58f6, // ramfs
    0x794c_7630, // overlayfs
    0xf2f5_2010, // f2fs
    0x2fc1_2fc1, // zfs
    0xca45_1a4e, // bcachefs
    0x7371_7368, // squashfs
    0xe0f5_e1e2, // erofs
    0x4d44,      // vfat, msdos
    0x2011_bab0, // exfat
    0x9660,      // iso9660
    0x1501_3346, // udf
    0x7366_746e, // ntfs3
    0x3153_464a, // jfs
    0x5265_4973, // reiserfs
    0x3434,      // nilfs2
    0xf15f,      // ecryptfs
    0x28cd_3d45, // cramfs
    0x7275,      // romfs
    0x482b,      // hfsplus
    0x6174_6674, // aufs
];

/// Names in mountinfo that are refused whatever their magic number.
const REFUSED_NAMES: &[&str] =
    &["devtmpfs", "ramfs_dev", "cpuset", "functionfs", "gadgetfs", "binder", "bpf"];

/// The verdict on a magic number (`statfs`' `f_type`).
pub fn by_magic(magic: u32) -> Verdict {
    if REFUSED.iter().any(|(refused, _)| *refused == magic) {
        Verdict::Refused
    } else if PLAIN.contains(&magic) {
        Verdict::Plain
    } else {
        Verdict::IfNamed
    }
}

/// The verdict on the file system of an open file (`O_PATH` suffices), mounted as `mount` (0: not known).
pub(crate) fn of(file: impl AsFd, mount: u64) -> rustix::io::Result<Verdict> {
    let stat = rustix::fs::fstatfs(&file)?;
    // The magic numbers are 32 bits wide; some architectures sign-extend them.
    let magic = u32::try_from(stat.f_type.cast_unsigned() & 0xffff_ffff).unwrap_or(0);
    let refused =
        by_magic(magic) == Verdict::Refused || mount_kind(mount).is_some_and(|kind| is_refused(&kind));
    Ok(if refused { Verdict::Refused } else { by_magic(magic) })
}

/// What a magic number of the refused list is called, for messages.
pub fn refused_name(magic: u32) -> Option<&'static str> {
    REFUSED.iter().find(|(refused, _)| *refused == magic).map(|(_, name)| *name)
}

fn is_refused(kind: &str) -> bool {
    REFUSED_NAMES.contains(&kind) || REFUSED.iter().any(|(_, name)| *name == kind)
}

/// The file system type that mountinfo names for a mount.
fn mount_kind(mount: u64) -> Option<String> {
    let mountinfo = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    kind_in(&mountinfo, mount)
}

/// A line is `ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAGS…] - TYPE SOURCE SUPER`.
fn kind_in(mountinfo: &str, mount: u64) -> Option<String> {
    let line = mountinfo.lines().find(|line| {
        line.split(' ').next().and_then(|id| id.parse().ok()).is_some_and(|id: u64| id == mount)
    })?;
    line.split_once(" - ")?.1.split(' ').next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mountinfo_is_read_by_mount_id() {
        let text = "22 28 0:21 / /proc rw - proc proc rw\n24 28 0:6 / /dev rw shared:2 - devtmpfs udev rw\n";
        assert_eq!(kind_in(text, 24).as_deref(), Some("devtmpfs"));
        assert_eq!(kind_in(text, 2), None);
    }

    #[test]
    fn interfaces_of_the_host_kernel_are_refused() {
        for dir in ["/proc", "/sys", "/dev", "/dev/pts", "/proc/self/ns"] {
            let Ok(file) = rustix::fs::open(dir, rustix::fs::OFlags::PATH, rustix::fs::Mode::empty()) else {
                continue;
            };
            let stat = crate::stat::HostStat::of(&file).expect("statx");
            assert_eq!(of(&file, stat.mount).expect("statfs"), Verdict::Refused, "{dir}");
        }
        let file =
            rustix::fs::open("/usr", rustix::fs::OFlags::PATH, rustix::fs::Mode::empty()).expect("/usr");
        assert_eq!(of(&file, 0).expect("statfs"), Verdict::Plain);
    }
}
