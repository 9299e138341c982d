//! The lock order of the whole kernel: a thread takes locks only with a higher rank than all it holds.
//! Two locks of one rank are never held together.

use crate::mutex::Level;

macro_rules! levels {
    ($($(#[$doc:meta])* $name:ident = $rank:literal;)*) => {
        $($(#[$doc])* #[derive(Debug)] pub enum $name {}
        impl Level for $name {
            const RANK: u16 = $rank;
            const NAME: &'static str = stringify!($name);
        })*
    };
}

levels! {
    /// The table of all tasks and thread groups, parent and child links, groups and sessions.
    Tasks = 100;
    /// A terminal: its session, foreground group and line discipline.
    Tty = 150;
    /// A thread group's shared signal state: pending set, handlers, job-control state.
    Signals = 200;
    /// One task's own pending signals.
    TaskSignals = 210;
    /// A table of signal actions.
    Handlers = 220;
    /// What one task shows to others: its name, credentials, …
    TaskShared = 250;
    /// The mount table.
    Mounts = 300;
    /// An overlay's tree: its changes are steps on other file systems.
    Overlay = 305;
    /// A file system's rename lock (the shape of its directory tree).
    Rename = 310;
    /// A directory entry's children.
    Dentry = 320;
    /// One inode's own state, outer file systems (overlay) before inner ones.
    OuterInode = 330;
    /// The shape of a directory tree that is kept in memory (tmpfs).
    MemoryTree = 335;
    Inode = 340;
    /// The names of a host directory tree's files, over a rename and the note of it.
    HostNames = 350;
    /// A file system's tables (inode caches, side files).
    FileSystem = 360;
    /// A process's table of descriptors.
    FdTable = 400;
    /// An open file's own state: offset, epoll's interest list, …
    File = 410;
    /// Record locks and flocks of an inode.
    FileLocks = 420;
    /// The registry of bound socket names.
    SocketNames = 440;
    /// Descriptors in flight in sockets' messages.
    SocketFlight = 444;
    /// A listening socket's connections that nobody has accepted.
    SocketBacklog = 446;
    /// A socket.
    Socket = 450;
    /// A pipe's buffer, an eventfd's counter, a memory file's pages.
    Buffer = 460;
    /// An epoll's list of ready items.
    EpollReady = 470;
    /// An address space's record of mappings (its published snapshot).
    Mm = 500;
    /// One of a process's timers, or the table of them.
    GroupTimers = 590;
    /// The timer queue.
    Timers = 600;
    /// The host event thread's registrations.
    HostEvents = 610;
    /// Waiters of a wait queue.
    WaitQueueEntries = 900;
    /// Leaves: counters, caches that call nothing.
    Leaf = 1000;
}
