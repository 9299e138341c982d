//! io_uring (`linux/io_uring.h`): what the three calls and the rings hold.

use crate::macros::{flags, layout, names};

flags! {
    /// Flags of `io_uring_setup`.
    IoUringSetupFlags: u32, "IORING_SETUP_" {
        IOPOLL = 0x1;
        SQPOLL = 0x2;
        SQ_AFF = 0x4;
        CQSIZE = 0x8;
        CLAMP = 0x10;
        ATTACH_WQ = 0x20;
        R_DISABLED = 0x40;
        SUBMIT_ALL = 0x80;
        COOP_TASKRUN = 0x100;
        TASKRUN_FLAG = 0x200;
        SQE128 = 0x400;
        CQE32 = 0x800;
        SINGLE_ISSUER = 0x1000;
        DEFER_TASKRUN = 0x2000;
        NO_MMAP = 0x4000;
        REGISTERED_FD_ONLY = 0x8000;
        NO_SQARRAY = 0x1_0000;
        HYBRID_IOPOLL = 0x2_0000;
        CQE_MIXED = 0x4_0000;
    }

    /// Features that `io_uring_setup` reports.
    IoUringFeatures: u32, "IORING_FEAT_" {
        SINGLE_MMAP = 0x1;
        NODROP = 0x2;
        SUBMIT_STABLE = 0x4;
        RW_CUR_POS = 0x8;
        CUR_PERSONALITY = 0x10;
        FAST_POLL = 0x20;
        POLL_32BITS = 0x40;
        SQPOLL_NONFIXED = 0x80;
        EXT_ARG = 0x100;
        NATIVE_WORKERS = 0x200;
        RSRC_TAGS = 0x400;
        CQE_SKIP = 0x800;
        LINKED_FILE = 0x1000;
        REG_REG_RING = 0x2000;
        RECVSEND_BUNDLE = 0x4000;
        MIN_TIMEOUT = 0x8000;
        RW_ATTR = 0x1_0000;
        NO_IOWAIT = 0x2_0000;
    }

    /// Flags of `io_uring_enter`.
    IoUringEnterFlags: u32, "IORING_ENTER_" {
        GETEVENTS = 0x1;
        SQ_WAKEUP = 0x2;
        SQ_WAIT = 0x4;
        EXT_ARG = 0x8;
        REGISTERED_RING = 0x10;
        ABS_TIMER = 0x20;
        EXT_ARG_REG = 0x40;
        NO_IOWAIT = 0x80;
    }

    /// Flags of a submission.
    SqeFlags: u8, "IOSQE_" {
        FIXED_FILE = 0x1;
        IO_DRAIN = 0x2;
        IO_LINK = 0x4;
        IO_HARDLINK = 0x8;
        ASYNC = 0x10;
        BUFFER_SELECT = 0x20;
        CQE_SKIP_SUCCESS = 0x40;
    }

    /// Flags of a completion; the upper half is a buffer's number with `IORING_CQE_F_BUFFER`.
    CqeFlags: u32, "IORING_CQE_F_" {
        BUFFER = 0x1;
        MORE = 0x2;
        SOCK_NONEMPTY = 0x4;
        NOTIF = 0x8;
        BUF_MORE = 0x10;
        SKIP = 0x20;
        F32 = 0x8000, "IORING_CQE_F_32";
    }
}

names! {
    /// What a submission does.
    IoUringOp: u8, "IORING_OP_" {
        NOP = 0;
        READV = 1;
        WRITEV = 2;
        FSYNC = 3;
        READ_FIXED = 4;
        WRITE_FIXED = 5;
        POLL_ADD = 6;
        POLL_REMOVE = 7;
        SYNC_FILE_RANGE = 8;
        SENDMSG = 9;
        RECVMSG = 10;
        TIMEOUT = 11;
        TIMEOUT_REMOVE = 12;
        ACCEPT = 13;
        ASYNC_CANCEL = 14;
        LINK_TIMEOUT = 15;
        CONNECT = 16;
        FALLOCATE = 17;
        OPENAT = 18;
        CLOSE = 19;
        FILES_UPDATE = 20;
        STATX = 21;
        READ = 22;
        WRITE = 23;
        FADVISE = 24;
        MADVISE = 25;
        SEND = 26;
        RECV = 27;
        OPENAT2 = 28;
        EPOLL_CTL = 29;
        SPLICE = 30;
        PROVIDE_BUFFERS = 31;
        REMOVE_BUFFERS = 32;
        TEE = 33;
        SHUTDOWN = 34;
        RENAMEAT = 35;
        UNLINKAT = 36;
        MKDIRAT = 37;
        SYMLINKAT = 38;
        LINKAT = 39;
        MSG_RING = 40;
        FSETXATTR = 41;
        SETXATTR = 42;
        FGETXATTR = 43;
        GETXATTR = 44;
        SOCKET = 45;
        URING_CMD = 46;
        SEND_ZC = 47;
        SENDMSG_ZC = 48;
        READ_MULTISHOT = 49;
        WAITID = 50;
        FUTEX_WAIT = 51;
        FUTEX_WAKE = 52;
        FUTEX_WAITV = 53;
        FIXED_FD_INSTALL = 54;
        FTRUNCATE = 55;
        BIND = 56;
        LISTEN = 57;
        RECV_ZC = 58;
        EPOLL_WAIT = 59;
        READV_FIXED = 60;
        WRITEV_FIXED = 61;
        PIPE = 62;
    }

    /// What `io_uring_register` does.
    IoUringRegisterOp: u32, "IORING_" {
        REGISTER_BUFFERS = 0;
        UNREGISTER_BUFFERS = 1;
        REGISTER_FILES = 2;
        UNREGISTER_FILES = 3;
        REGISTER_EVENTFD = 4;
        UNREGISTER_EVENTFD = 5;
        REGISTER_FILES_UPDATE = 6;
        REGISTER_EVENTFD_ASYNC = 7;
        REGISTER_PROBE = 8;
        REGISTER_PERSONALITY = 9;
        UNREGISTER_PERSONALITY = 10;
        REGISTER_RESTRICTIONS = 11;
        REGISTER_ENABLE_RINGS = 12;
        REGISTER_FILES2 = 13;
        REGISTER_FILES_UPDATE2 = 14;
        REGISTER_BUFFERS2 = 15;
        REGISTER_BUFFERS_UPDATE = 16;
        REGISTER_IOWQ_AFF = 17;
        UNREGISTER_IOWQ_AFF = 18;
        REGISTER_IOWQ_MAX_WORKERS = 19;
        REGISTER_RING_FDS = 20;
        UNREGISTER_RING_FDS = 21;
        REGISTER_PBUF_RING = 22;
        UNREGISTER_PBUF_RING = 23;
        REGISTER_SYNC_CANCEL = 24;
        REGISTER_FILE_ALLOC_RANGE = 25;
        REGISTER_PBUF_STATUS = 26;
        REGISTER_NAPI = 27;
        UNREGISTER_NAPI = 28;
        REGISTER_CLOCK = 29;
        REGISTER_CLONE_BUFFERS = 30;
        REGISTER_SEND_MSG_RING = 31;
        REGISTER_ZCRX_IFQ = 32;
        REGISTER_RESIZE_RINGS = 33;
        REGISTER_MEM_REGION = 34;
        REGISTER_QUERY = 35;
    }
}

layout! {
    /// `struct io_sqring_offsets`.
    struct IoSqringOffsets: 40 {
        0 head: u32,
        4 tail: u32,
        8 ring_mask: u32,
        12 ring_entries: u32,
        16 flags: u32,
        20 dropped: u32,
        24 array: u32,
        28 resv1: u32,
        32 user_addr: u64,
    }

    /// `struct io_cqring_offsets`.
    struct IoCqringOffsets: 40 {
        0 head: u32,
        4 tail: u32,
        8 ring_mask: u32,
        12 ring_entries: u32,
        16 overflow: u32,
        20 cqes: u32,
        24 flags: u32,
        28 resv1: u32,
        32 user_addr: u64,
    }

    /// `struct io_uring_params`.
    struct IoUringParams: 120 {
        0 sq_entries: u32,
        4 cq_entries: u32,
        8 flags: IoUringSetupFlags,
        12 sq_thread_cpu: u32,
        16 sq_thread_idle: u32,
        20 features: IoUringFeatures,
        24 wq_fd: u32,
        28 resv: [u32; 3],
        40 sq_off: IoSqringOffsets,
        80 cq_off: IoCqringOffsets,
    }

    /// `struct io_uring_sqe`; most of its fields mean several things, by the operation.
    struct IoUringSqe: 64 {
        0 opcode: IoUringOp,
        1 flags: SqeFlags,
        2 ioprio: u16,
        4 fd: i32,
        8 off: u64,
        16 addr: u64,
        24 len: u32,
        28 op_flags: u32,
        32 user_data: u64,
        40 buf_index: u16,
        42 personality: u16,
        44 file_index: u32,
        48 addr3: u64,
        56 pad2: u64,
    }

    /// `struct io_uring_cqe`.
    struct IoUringCqe: 16 {
        0 user_data: u64,
        8 res: i32,
        12 flags: CqeFlags,
    }

    /// `struct io_uring_getevents_arg`, of `IORING_ENTER_EXT_ARG`.
    struct IoUringGeteventsArg: 24 {
        0 sigmask: u64,
        8 sigmask_sz: u32,
        12 min_wait_usec: u32,
        16 ts: u64,
    }
}
