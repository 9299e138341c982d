//! The table of all tasks and groups, with their family links.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};

use sync::{Mutex, MutexGuard, order};

use crate::resource::Usage;
use crate::task::{GroupExit, Task, ThreadGroup};

/// Pid of the name space's init.
pub const INIT_PID: i32 = 1;
/// Pids begin again here after [`PID_MAX`] (Linux: `RESERVED_PIDS`).
const RESERVED_PIDS: i32 = 300;
/// Pids are below this (`/proc/sys/kernel/pid_max`).
pub const PID_MAX: i32 = 32768;

/// All tasks. One lock for who exists and who is whose parent, child, group and session.
#[derive(Default)]
pub struct Tasks {
    inner: Mutex<order::Tasks, TasksInner>,
}

#[derive(Default)]
pub struct TasksInner {
    /// By thread id.
    pub tasks: BTreeMap<i32, Arc<Task>>,
    /// By pid.
    pub groups: BTreeMap<i32, GroupEntry>,
    last_pid: i32,
    /// Pids given out before their task is entered.
    reserved: BTreeSet<i32>,
}

/// A group's family links.
pub struct GroupEntry {
    pub group: Arc<ThreadGroup>,
    pub parent: i32,
    pub children: BTreeSet<i32>,
    pub pgid: i32,
    pub sid: i32,
    pub threads: Vec<Arc<Task>>,
    /// Who answers for a group without threads, by its credentials, limits and scheduling: of the kernel's own init a task
    /// that never runs, of a zombie its last thread (on Linux the task of a zombie is there until it has been waited for).
    pub stand_in: Option<Arc<Task>>,
    /// The signal that tells the parent of the end; 0 for none.
    pub exit_signal: i32,
    /// Set when all threads have gone and the parent has not waited yet.
    pub zombie: Option<Zombie>,
    /// The thread that made it, whose end it may have asked to be told of.
    pub parent_thread: Weak<Task>,
    /// The name of a dead leader, for /proc.
    pub name: Vec<u8>,
}

impl GroupEntry {
    /// A group without family.
    pub fn new(group: Arc<ThreadGroup>) -> GroupEntry {
        GroupEntry {
            pgid: group.pid,
            sid: group.pid,
            group,
            parent: INIT_PID,
            children: BTreeSet::new(),
            threads: Vec::new(),
            stand_in: None,
            exit_signal: 0,
            zombie: None,
            parent_thread: Weak::new(),
            name: Vec::new(),
        }
    }
}

/// What is left of a group that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Zombie {
    pub exit: GroupExit,
    pub usage: Usage,
    pub uid: u32,
    pub gid: u32,
}

impl Tasks {
    pub fn lock(&self) -> MutexGuard<'_, TasksInner> {
        self.inner.lock()
    }

    pub fn task(&self, tid: i32) -> Option<Arc<Task>> {
        self.lock().tasks.get(&tid).cloned()
    }

    pub fn group(&self, pid: i32) -> Option<Arc<ThreadGroup>> {
        self.lock().groups.get(&pid).map(|entry| entry.group.clone())
    }

    /// The task of a thread's or process's id; of a process whose leader has gone, another thread's, or who stands in
    /// for them.
    pub fn task_or_leader(&self, id: i32) -> Option<Arc<Task>> {
        let tasks = self.lock();
        let leader =
            || tasks.groups.get(&id).and_then(|entry| entry.threads.first().or(entry.stand_in.as_ref()));
        tasks.tasks.get(&id).or_else(leader).cloned()
    }

    /// The threads of a group.
    pub fn threads(&self, pid: i32) -> Vec<Arc<Task>> {
        self.lock().threads(pid).to_vec()
    }

    /// Ends the whole group like this, unless it is ending already.
    pub fn begin_exit(&self, group: &ThreadGroup, how: GroupExit) {
        let tasks = self.lock();
        group.begin_exit(how, tasks.threads(group.pid));
    }
}

impl TasksInner {
    /// The threads of a group. While the table is locked it gets no others, so who tells all of them something misses none.
    pub fn threads(&self, pid: i32) -> &[Arc<Task>] {
        self.groups.get(&pid).map_or(&[], |entry| &entry.threads)
    }

    /// Reserves an unused pid; `None`: all are in use.
    pub fn reserve_pid(&mut self) -> Option<i32> {
        for _ in 0..PID_MAX {
            self.last_pid = if self.last_pid + 1 >= PID_MAX { RESERVED_PIDS } else { self.last_pid + 1 };
            if !self.is_used(self.last_pid) {
                self.reserved.insert(self.last_pid);
                return Some(self.last_pid);
            }
        }
        None
    }

    /// Gives a reserved pid back.
    pub fn release_pid(&mut self, pid: i32) {
        self.reserved.remove(&pid);
    }

    /// A number is in use while a task, a group, a process group or a session has it.
    fn is_used(&self, pid: i32) -> bool {
        self.reserved.contains(&pid) || self.is_in_use(pid)
    }

    /// Whether a task, a process, a process group or a session has this number (Linux: `find_vpid`).
    pub fn is_in_use(&self, pid: i32) -> bool {
        self.tasks.contains_key(&pid)
            || self.groups.contains_key(&pid)
            || self.groups.values().any(|entry| entry.pgid == pid || entry.sid == pid)
    }

    /// Enters a new group with its first thread.
    pub fn add_group(&mut self, entry: GroupEntry, leader: Option<Arc<Task>>) {
        let pid = entry.group.pid;
        self.release_pid(pid);
        if let Some(parent) = self.groups.get_mut(&entry.parent) {
            parent.children.insert(pid);
        }
        self.groups.insert(pid, entry);
        if let Some(leader) = leader {
            self.add_thread(pid, leader);
        }
    }

    /// Enters a thread into its group.
    pub fn add_thread(&mut self, pid: i32, task: Arc<Task>) {
        let tid = task.tid();
        self.release_pid(tid);
        if let Some(entry) = self.groups.get_mut(&pid) {
            entry.threads.push(task.clone());
        }
        self.tasks.insert(tid, task);
    }

    /// Makes a thread, which must be the last of its group, its leader.
    pub fn become_leader(&mut self, task: &Arc<Task>) {
        let (old, pid) = (task.tid(), task.group.pid);
        if old != pid {
            self.tasks.remove(&old);
            task.set_tid(pid);
            self.tasks.insert(pid, task.clone());
        }
    }

    /// Takes a thread out; returns how many its group has left.
    pub fn remove_thread(&mut self, task: &Arc<Task>) -> usize {
        if let Some(entry) = self.groups.get_mut(&task.group.pid) {
            entry.threads.retain(|thread| !Arc::ptr_eq(thread, task));
            if entry.threads.is_empty() {
                entry.stand_in = Some(task.clone());
            }
        }
        if self.tasks.get(&task.tid()).is_some_and(|known| Arc::ptr_eq(known, task)) {
            self.tasks.remove(&task.tid());
        }
        self.groups.get(&task.group.pid).map_or(0, |entry| entry.threads.len())
    }

    /// Forgets a group that has been waited for.
    pub fn remove_group(&mut self, pid: i32) {
        if let Some(entry) = self.groups.remove(&pid)
            && let Some(parent) = self.groups.get_mut(&entry.parent)
        {
            parent.children.remove(&pid);
        }
    }

    /// The members of a process group.
    pub fn process_group(&self, pgid: i32) -> impl Iterator<Item = &GroupEntry> {
        self.groups.values().filter(move |entry| entry.pgid == pgid && entry.zombie.is_none())
    }

    /// Whether a process group has no member whose parent is in another group of the same session
    /// (Linux: `will_become_orphaned_pgrp`): nobody could continue it. `without` is treated as gone.
    pub fn is_orphaned(&self, pgid: i32, without: Option<i32>) -> bool {
        !self.process_group(pgid).any(|entry| {
            Some(entry.group.pid) != without
                && entry.parent != INIT_PID
                && self
                    .groups
                    .get(&entry.parent)
                    .is_some_and(|parent| parent.pgid != pgid && parent.sid == entry.sid)
        })
    }

    /// Whether `pid` descends from `ancestor`.
    pub fn descends_from(&self, pid: i32, ancestor: i32) -> bool {
        let mut at = pid;
        // Bounded by the number of groups: parent links form a tree.
        for _ in 0..=self.groups.len() {
            match self.groups.get(&at) {
                Some(entry) if entry.parent == ancestor => return true,
                Some(entry) => at = entry.parent,
                None => return false,
            }
        }
        false
    }
}
