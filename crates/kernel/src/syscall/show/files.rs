//! What files tell of themselves.

use abi::{
    Cachestat, CachestatRange, FOwnerEx, FileAttr, FileMode, FileType, Flock, MntIdReq, MountAttr, OpenFlags,
    OpenHow, Stat, Statfs, Statx, Ustat, XattrArgs, major, minor,
};

use super::{Printer, Show, shown};

/// A device number.
pub(crate) fn device(printer: &mut Printer<'_>, number: u64) {
    printer.text(format_args!("makedev({:#x}, {:#x})", major(number), minor(number)));
}

fn is_device(mode: FileMode) -> bool {
    matches!(mode.file_type(), FileType::CHR | FileType::BLK)
}

/// Kind, permissions, and the size or what device it is.
impl Show for Stat {
    fn show(&self, printer: &mut Printer<'_>) {
        printer.text(format_args!("{{st_mode={}, ", self.mode));
        if is_device(self.mode) {
            printer.out.push_str("st_rdev=");
            device(printer, self.rdev);
        } else {
            printer.text(format_args!("st_size={}", self.size));
        }
        printer.out.push_str(", ...}");
    }
}

impl Show for Statx {
    fn show(&self, printer: &mut Printer<'_>) {
        let mode = FileMode::from_bits_retain(u32::from(self.mode));
        printer.text(format_args!(
            "{{stx_mask={}, stx_attributes={}, stx_mode={mode}, stx_size={}, ...}}",
            self.mask, self.attributes, self.size
        ));
    }
}

impl Show for Statfs {
    fn show(&self, printer: &mut Printer<'_>) {
        let [low, high] = self.fsid;
        printer.text(format_args!(
            "{{f_type={}, f_bsize={}, f_blocks={}, f_bfree={}, f_bavail={}, f_files={}, f_ffree={}, \
             f_fsid={{val=[{low:#x}, {high:#x}]}}, f_namelen={}, f_frsize={}, f_flags={}}}",
            self.fs_type,
            self.bsize,
            self.blocks,
            self.bfree,
            self.bavail,
            self.files,
            self.ffree,
            self.namelen,
            self.frsize,
            self.flags
        ));
    }
}

impl Show for OpenHow {
    fn show(&self, printer: &mut Printer<'_>) {
        let flags = OpenFlags::from_bits_retain(u32::try_from(self.flags).unwrap_or(u32::MAX));
        printer.text(format_args!("{{flags={flags}, "));
        if self.mode != 0 {
            printer.text(format_args!("mode=0{:02o}, ", self.mode));
        }
        printer.text(format_args!("resolve={}}}", self.resolve));
    }
}

impl Show for Flock {
    fn show(&self, printer: &mut Printer<'_>) {
        let whence = match u32::try_from(self.whence).map(abi::Whence) {
            Ok(whence) => whence.to_string(),
            Err(_) => self.whence.to_string(),
        };
        printer.text(format_args!(
            "{{l_type={}, l_whence={whence}, l_start={}, l_len={}",
            self.lock_type, self.start, self.len
        ));
        // Only an answer tells whose lock it is.
        if printer.succeeded().is_some() {
            printer.text(format_args!(", l_pid={}", self.pid));
        }
        printer.out.push('}');
    }
}

shown! {
    FOwnerEx { type: n owner_type, pid: n pid }
    Ustat { f_tfree: n tfree, f_tinode: n tinode; "..." }
    XattrArgs { value: p value, size: n size, flags: n flags }
    CachestatRange { off: n off, len: n len }
    Cachestat {
        nr_cache: n nr_cache, nr_dirty: n nr_dirty, nr_writeback: n nr_writeback, nr_evicted: n nr_evicted,
        nr_recently_evicted: n nr_recently_evicted
    }
    FileAttr { fa_xflags: x xflags, fa_extsize: n extsize, fa_nextents: n nextents, fa_projid: n projid; "..." }
    MountAttr { attr_set: n attr_set, attr_clr: n attr_clr, propagation: x propagation, userns_fd: n userns_fd }
    MntIdReq { size: n size, mnt_ns_fd: n mnt_ns_fd, mnt_id: x mnt_id, param: x param }
}
