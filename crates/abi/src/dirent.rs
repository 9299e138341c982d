//! Directory entries as `getdents` and `getdents64` give them (`linux/dirent.h`).

use crate::macros::names;

names! {
    /// The type of an entry: a [`crate::FileType`] shifted down by twelve bits.
    DirentType: u8, "DT_" {
        UNKNOWN = 0;
        FIFO = 1;
        CHR = 2;
        DIR = 4;
        BLK = 6;
        REG = 8;
        LNK = 10;
        SOCK = 12;
        WHT = 14;
    }
}

/// The fixed part of `struct linux_dirent64`: 19 bytes, packed. The name and its zero follow, then
/// padding to a multiple of 8.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Default,
    zerocopy::FromBytes,
    zerocopy::IntoBytes,
    zerocopy::Immutable,
    zerocopy::KnownLayout,
)]
#[repr(C, packed)]
pub struct Dirent64 {
    /// Inode number.
    pub ino: u64,
    /// Where the next entry is, for `lseek`.
    pub off: i64,
    /// Bytes of the whole entry.
    pub reclen: u16,
    /// Type.
    pub kind: DirentType,
}

/// The fixed part of `struct linux_dirent`, of the old `getdents`: 18 bytes, packed. The name and its zero
/// follow, then padding, and the type is the last byte of the entry.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Default,
    zerocopy::FromBytes,
    zerocopy::IntoBytes,
    zerocopy::Immutable,
    zerocopy::KnownLayout,
)]
#[repr(C, packed)]
pub struct Dirent {
    /// Inode number.
    pub ino: u64,
    /// Where the next entry is.
    pub off: u64,
    /// Bytes of the whole entry.
    pub reclen: u16,
}

const _: () = assert!(size_of::<Dirent64>() == 19 && size_of::<Dirent>() == 18);

impl Dirent64 {
    /// Bytes of an entry with a name of this length, or `None` where that does not fit its field.
    pub fn reclen_for(name_len: usize) -> Option<u16> {
        let bytes = name_len.checked_add(size_of::<Dirent64>() + 1)?.checked_next_multiple_of(8)?;
        u16::try_from(bytes).ok()
    }
}

impl Dirent {
    /// Bytes of an entry with a name of this length, or `None` where that does not fit its field.
    pub fn reclen_for(name_len: usize) -> Option<u16> {
        let bytes = name_len.checked_add(size_of::<Dirent>() + 2)?.checked_next_multiple_of(8)?;
        u16::try_from(bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_padded_to_eight_bytes() {
        assert_eq!(Dirent64::reclen_for(1), Some(24));
        assert_eq!(Dirent64::reclen_for(4), Some(24));
        assert_eq!(Dirent64::reclen_for(5), Some(32));
        assert_eq!(Dirent64::reclen_for(usize::MAX), None);
        assert_eq!(Dirent::reclen_for(4), Some(24));
        assert_eq!(Dirent::reclen_for(5), Some(32));
    }
}
