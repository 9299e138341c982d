//! System V queues, semaphores and shared memory, and POSIX message queues (`linux/ipc.h`, `linux/msg.h`,
//! `linux/sem.h`, `linux/shm.h`, `linux/mqueue.h`).

use crate::macros::{flags, layout, names};

layout! {
    /// `struct ipc64_perm`.
    struct IpcPerm: 48 {
        0 key: i32,
        4 uid: u32,
        8 gid: u32,
        12 cuid: u32,
        16 cgid: u32,
        20 mode: u32,
        24 seq: u16,
        26 pad2: u16,
        28 pad3: u32,
        32 unused1: u64,
        40 unused2: u64,
    }

    /// `struct msqid64_ds`.
    struct MsqidDs: 120 {
        0 perm: IpcPerm,
        48 stime: i64,
        56 rtime: i64,
        64 ctime: i64,
        72 cbytes: u64,
        80 qnum: u64,
        88 qbytes: u64,
        96 lspid: i32,
        100 lrpid: i32,
        104 unused4: u64,
        112 unused5: u64,
    }

    /// `struct msginfo`, of `IPC_INFO` and `MSG_INFO`.
    struct Msginfo: 32 {
        0 msgpool: i32,
        4 msgmap: i32,
        8 msgmax: i32,
        12 msgmnb: i32,
        16 msgmni: i32,
        20 msgssz: i32,
        24 msgtql: i32,
        28 msgseg: u16,
        30 pad: u16,
    }

    /// `struct semid64_ds` of x86.
    struct SemidDs: 104 {
        0 perm: IpcPerm,
        48 otime: i64,
        56 unused1: u64,
        64 ctime: i64,
        72 unused2: u64,
        80 nsems: u64,
        88 unused3: u64,
        96 unused4: u64,
    }

    /// `struct sembuf`.
    struct Sembuf: 6 {
        0 num: u16,
        2 op: i16,
        /// Of [`IpcFlags`] and [`SemFlags`].
        4 flg: u16,
    }

    /// `struct seminfo`, of `IPC_INFO` and `SEM_INFO`.
    struct Seminfo: 40 {
        0 semmap: i32,
        4 semmni: i32,
        8 semmns: i32,
        12 semmnu: i32,
        16 semmsl: i32,
        20 semopm: i32,
        24 semume: i32,
        28 semusz: i32,
        32 semvmx: i32,
        36 semaem: i32,
    }

    /// `struct shmid64_ds`.
    struct ShmidDs: 112 {
        0 perm: IpcPerm,
        48 segsz: u64,
        56 atime: i64,
        64 dtime: i64,
        72 ctime: i64,
        80 cpid: i32,
        84 lpid: i32,
        88 nattch: u64,
        96 unused4: u64,
        104 unused5: u64,
    }

    /// `struct shminfo64`, of `IPC_INFO`.
    struct Shminfo: 72 {
        0 shmmax: u64,
        8 shmmin: u64,
        16 shmmni: u64,
        24 shmseg: u64,
        32 shmall: u64,
        40 unused: [u64; 4],
    }

    /// `struct shm_info`, of `SHM_INFO`.
    struct ShmInfo: 48 {
        0 used_ids: i32,
        4 pad: u32,
        8 tot: u64,
        16 rss: u64,
        24 swp: u64,
        32 swap_attempts: u64,
        40 swap_successes: u64,
    }

    /// `struct mq_attr`.
    struct MqAttr: 64 {
        0 flags: i64,
        8 maxmsg: i64,
        16 msgsize: i64,
        24 curmsgs: i64,
        32 reserved: [i64; 4],
    }
}

flags! {
    /// Flags of `msgget`, `semget`, `shmget` above the mode in their lowest nine bits, and of operations.
    IpcFlags: u32, "IPC_" {
        CREAT = 0o1000;
        EXCL = 0o2000;
        NOWAIT = 0o4000;
    }

    /// Flags of `msgsnd` and `msgrcv`.
    IpcMsgFlags: u32, "" {
        NOWAIT = 0o4000, "IPC_NOWAIT";
        NOERROR = 0o10000, "MSG_NOERROR";
        EXCEPT = 0o20000, "MSG_EXCEPT";
        COPY = 0o40000, "MSG_COPY";
    }

    /// Flags of `semop`.
    SemFlags: u16, "" {
        NOWAIT = 0o4000, "IPC_NOWAIT";
        UNDO = 0x1000, "SEM_UNDO";
    }

    /// Flags of `shmget` above the mode in their lowest nine bits.
    ShmgetFlags: u32, "" {
        CREAT = 0o1000, "IPC_CREAT";
        EXCL = 0o2000, "IPC_EXCL";
        HUGETLB = 0o4000, "SHM_HUGETLB";
        NORESERVE = 0o10000, "SHM_NORESERVE";
    }

    /// Flags of `shmat`.
    ShmatFlags: u32, "SHM_" {
        RDONLY = 0o10000;
        RND = 0o20000;
        REMAP = 0o40000;
        EXEC = 0o100000;
    }

    /// Flags in the mode that `shmctl` shows.
    ShmModeFlags: u32, "SHM_" {
        DEST = 0o1000;
        LOCKED = 0o2000;
    }
}

names! {
    /// Command of `msgctl`.
    MsgctlCmd: i32, "" {
        RMID = 0, "IPC_RMID";
        SET = 1, "IPC_SET";
        STAT = 2, "IPC_STAT";
        INFO = 3, "IPC_INFO";
        MSG_STAT = 11;
        MSG_INFO = 12;
        MSG_STAT_ANY = 13;
    }

    /// Command of `semctl`.
    SemctlCmd: i32, "" {
        RMID = 0, "IPC_RMID";
        SET = 1, "IPC_SET";
        STAT = 2, "IPC_STAT";
        INFO = 3, "IPC_INFO";
        GETPID = 11;
        GETVAL = 12;
        GETALL = 13;
        GETNCNT = 14;
        GETZCNT = 15;
        SETVAL = 16;
        SETALL = 17;
        SEM_STAT = 18;
        SEM_INFO = 19;
        SEM_STAT_ANY = 20;
    }

    /// Command of `shmctl`.
    ShmctlCmd: i32, "" {
        RMID = 0, "IPC_RMID";
        SET = 1, "IPC_SET";
        STAT = 2, "IPC_STAT";
        INFO = 3, "IPC_INFO";
        SHM_LOCK = 11;
        SHM_UNLOCK = 12;
        SHM_STAT = 13;
        SHM_INFO = 14;
        SHM_STAT_ANY = 15;
    }
}

/// A key that always makes a new object.
pub const IPC_PRIVATE: i32 = 0;
/// May stand in a command: the 64-bit form, which x86-64 has anyway.
pub const IPC_64: i32 = 0x100;
/// Most bytes of a message, by default.
pub const MSGMAX: usize = 8192;
/// Most bytes in a queue, by default.
pub const MSGMNB: usize = 16_384;
/// Most queues, by default.
pub const MSGMNI: usize = 32_000;
/// Most semaphores of a set, by default.
pub const SEMMSL: usize = 32_000;
/// Most semaphores, by default.
pub const SEMMNS: usize = 1_024_000_000;
/// Most operations of one call, by default.
pub const SEMOPM: usize = 500;
/// Most sets, by default.
pub const SEMMNI: usize = 32_000;
/// A semaphore's largest value.
pub const SEMVMX: i32 = 32_767;
/// Most segments, by default.
pub const SHMMNI: usize = 4096;
/// Most bytes of a segment, and most pages of all, by default.
pub const SHMMAX: u64 = u64::MAX - (1 << 24);
/// One more than the highest priority of a POSIX message.
pub const MQ_PRIO_MAX: u32 = 32_768;
