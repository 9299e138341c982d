//! Asynchronous I/O of the old kind: `io_setup`, `io_submit` (`linux/aio_abi.h`).

use crate::file_ops::RwfFlags;
use crate::macros::{flags, layout, names};

names! {
    /// What an [`Iocb`] does.
    IocbCmd: u16, "IOCB_CMD_" {
        PREAD = 0;
        PWRITE = 1;
        FSYNC = 2;
        FDSYNC = 3;
        POLL = 5;
        NOOP = 6;
        PREADV = 7;
        PWRITEV = 8;
    }
}

flags! {
    /// Flags of an [`Iocb`].
    IocbFlags: u32, "IOCB_FLAG_" {
        RESFD = 1;
        IOPRIO = 2;
    }
}

layout! {
    /// `struct iocb`.
    struct Iocb: 64 {
        0 data: u64,
        8 key: u32,
        12 rw_flags: RwfFlags,
        16 lio_opcode: IocbCmd,
        18 reqprio: i16,
        20 fildes: i32,
        24 buf: u64,
        32 nbytes: u64,
        40 offset: i64,
        48 reserved2: u64,
        56 flags: IocbFlags,
        60 resfd: u32,
    }

    /// `struct io_event`.
    struct IoEvent: 32 {
        0 data: u64,
        8 obj: u64,
        16 res: i64,
        24 res2: i64,
    }
}
