//! Thread groups: guest processes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::time::Instant;

use abi::Signal;
use sync::{Mutex, WaitQueue, order};

use crate::resource::Limits;
use crate::signal::GroupSignals;
use crate::task::Task;
use crate::tty::Terminal;

/// A guest process: what its threads share whatever their clone flags. Family links and exit state are in
/// the [`Tasks`](super::Tasks) table.
pub struct ThreadGroup {
    pub pid: i32,
    pub signals: Mutex<order::Signals, GroupSignals>,
    pub limits: Mutex<order::Leaf, Limits>,
    /// Woken when a child changes state (`wait`).
    pub child_events: WaitQueue,
    /// Woken when this group ends, stops or goes on (pidfds), and when threads of it have gone (exec).
    pub events: WaitQueue,
    /// Woken when a stop ends.
    pub resume: WaitQueue,
    /// It ended vfork's borrowing of its parent's memory: exec or exit.
    pub released_memory: AtomicBool,
    pub started: Instant,
    /// Has executed since it was forked (`setpgid` of it by the parent is refused then).
    pub has_executed: AtomicBool,
    /// Pid 1 and the like: signals without a handler do nothing, even SIGKILL from inside.
    pub unkillable: AtomicBool,
    /// `PR_SET_CHILD_SUBREAPER`.
    pub subreaper: AtomicBool,
    /// `PR_SET_DUMPABLE`: 0, 1 or 2.
    pub dumpable: AtomicI32,
    /// `personality`.
    pub personality: AtomicU32,
    /// The controlling terminal.
    pub terminal: Mutex<order::Leaf, Option<Arc<Terminal>>>,
    /// `/proc/PID/oom_score_adj`.
    pub oom_score_adj: AtomicI32,
    /// No thread of it has changed its credentials since the image began (INVARIANTS 3.1).
    pub authority_unchanged: AtomicBool,
    /// The arguments it was executed with, for /proc when its memory cannot be read.
    pub command_line: Mutex<order::Leaf, Vec<Vec<u8>>>,
    pub usage: Mutex<order::Leaf, GroupUsage>,
}

/// What finished threads and reaped children have used.
#[derive(Clone, Copy, Debug, Default)]
pub struct GroupUsage {
    pub own: crate::resource::Usage,
    pub children: crate::resource::Usage,
}

/// How a whole group ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupExit {
    Code(i32),
    Signal { signal: Signal, core: bool },
}

impl GroupExit {
    /// As `wait4` gives it.
    pub fn wait_status(self) -> i32 {
        match self {
            GroupExit::Code(code) => (code & 0xff) << 8,
            GroupExit::Signal { signal, core } => (signal.0 & 0x7f) | if core { 0x80 } else { 0 },
        }
    }
}

impl ThreadGroup {
    pub fn new(pid: i32, limits: Limits) -> Arc<ThreadGroup> {
        Arc::new(ThreadGroup {
            pid,
            signals: Mutex::default(),
            limits: Mutex::new(limits),
            child_events: WaitQueue::new(),
            events: WaitQueue::new(),
            resume: WaitQueue::new(),
            released_memory: AtomicBool::new(false),
            started: Instant::now(),
            has_executed: AtomicBool::new(false),
            unkillable: AtomicBool::new(false),
            subreaper: AtomicBool::new(false),
            dumpable: AtomicI32::new(1),
            personality: AtomicU32::new(0),
            terminal: Mutex::new(None),
            oom_score_adj: AtomicI32::new(0),
            authority_unchanged: AtomicBool::new(true),
            command_line: Mutex::default(),
            usage: Mutex::default(),
        })
    }

    /// How it is ending, once that is decided.
    pub fn exit(&self) -> Option<GroupExit> {
        self.signals.lock().exit
    }

    /// Ends the whole group like this, unless it is ending already. `threads` are all of them.
    pub fn begin_exit(&self, how: GroupExit, threads: &[Arc<Task>]) {
        {
            let mut signals = self.signals.lock();
            if signals.exit.is_some() {
                return;
            }
            signals.exit = Some(how);
            signals.end_stop();
        }
        for thread in threads {
            thread.kick_to_end();
        }
        self.resume.wake(0);
    }

    /// Ends vfork's borrowing: the parent may go on.
    pub fn release_memory(&self) {
        if !self.released_memory.swap(true, Ordering::SeqCst) {
            self.events.wake(0);
        }
    }
}
