//! Thread groups: guest processes.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use abi::Signal;
use platform::HostUsage;
use sync::{Mutex, WaitQueue, order};

use crate::host_events::HostWatch;
use crate::resource::{IoUsage, Limits, Usage};
use crate::signal::GroupSignals;
use crate::task::Task;
use crate::time::group::GroupTimers;
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
    /// `/proc/PID/coredump_filter`.
    pub coredump_filter: AtomicU32,
    /// `PR_SET_THP_DISABLE`, as `PR_GET_THP_DISABLE` gives it.
    pub thp_disable: AtomicU64,
    /// `personality`.
    pub personality: AtomicU32,
    /// The controlling terminal.
    pub terminal: Mutex<order::Leaf, Option<Arc<Terminal>>>,
    /// A session's leader whose terminal was hung up: the foreground group of then (Linux: `tty_old_pgrp`), which hears
    /// SIGHUP when the leader ends; 0: none.
    pub hung_up_foreground: AtomicI32,
    /// `/proc/PID/oom_score_adj`.
    pub oom_score_adj: AtomicI32,
    /// No thread of it has changed its credentials since the image began (INVARIANTS 3.1).
    pub authority_unchanged: AtomicBool,
    /// The arguments it was executed with, for /proc when its memory cannot be read.
    pub command_line: Mutex<order::Leaf, Vec<Vec<u8>>>,
    pub usage: Mutex<order::Leaf, GroupUsage>,
    /// Tells of the end of its host process.
    pub(crate) death: Mutex<order::Leaf, Option<HostWatch>>,
    /// Its timers. A fork does not inherit them.
    pub timers: GroupTimers,
}

/// What finished threads and reaped children have used.
#[derive(Clone, Debug, Default)]
pub struct GroupUsage {
    own: Usage,
    /// Of host processes that it has left: known once they have been reaped.
    left: Vec<Arc<OnceLock<HostUsage>>>,
    pub children: Usage,
}

impl GroupUsage {
    /// The group leaves a host process, by exec or at its end.
    pub(crate) fn leave(&mut self, usage: Arc<OnceLock<HostUsage>>) {
        self.left.push(usage);
    }

    /// A kernel thread that served the group ends after this time, and this much input and output.
    pub(crate) fn kernel_thread_ended(&mut self, time: Duration, io: &IoUsage) {
        self.own.system += time;
        self.own.io.add(io);
    }

    /// What ended threads and host processes have used.
    pub fn own(&mut self) -> Usage {
        let own = &mut self.own;
        self.left.retain(|left| match left.get() {
            Some(usage) => {
                own.add(&Usage::from(*usage));
                false
            }
            None => true,
        });
        self.own
    }
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
            coredump_filter: AtomicU32::new(crate::coredump::DEFAULT_FILTER),
            thp_disable: AtomicU64::new(0),
            personality: AtomicU32::new(0),
            terminal: Mutex::new(None),
            hung_up_foreground: AtomicI32::new(0),
            oom_score_adj: AtomicI32::new(0),
            authority_unchanged: AtomicBool::new(true),
            command_line: Mutex::default(),
            usage: Mutex::default(),
            death: Mutex::default(),
            timers: GroupTimers::default(),
        })
    }

    /// How it is ending, once that is decided.
    pub fn exit(&self) -> Option<GroupExit> {
        self.signals.lock().exit
    }

    /// Ends the whole group like this, unless it is ending already. `threads` are all of them: the table is locked.
    pub fn begin_exit(&self, how: GroupExit, threads: &[Arc<Task>]) {
        self.begin_exit_by(None, how, threads);
    }

    /// The same; one of its threads, `by`, does not do so while another execs: that ends it.
    pub(crate) fn begin_exit_by(&self, by: Option<i32>, how: GroupExit, threads: &[Arc<Task>]) {
        {
            let mut signals = self.signals.lock();
            if signals.exit.is_some() || by.is_some_and(|tid| signals.ends(tid)) {
                return;
            }
            signals.exit = Some(how);
            signals.end_stop();
            // All at once: the first that is gone is seen by no other that may still return to the guest.
            for thread in threads {
                thread.kick_with_group();
            }
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
