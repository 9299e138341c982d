//! `--profile`: what each task does and for how long, as a trace that Perfetto and Chrome open.
//!
//! A task keeps a bounded buffer of [`Record`]s ([`TaskProfile`]) that only its own thread touches; full ones go to one
//! writer thread (`write.rs`) by a bounded channel. Nothing waits for the file: what the writer cannot take is lost, and
//! counted. Without a profile all of this is one branch at each place where a record would be made.

mod write;

use std::cell::RefCell;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Instant;

use abi::Signal;
use platform::Place;
use sync::{Mutex, order};

use crate::task::{CurrentTask, Task};

/// Records that a task keeps before it hands them on.
const BUFFER: usize = 1024;
/// Full buffers that wait for the writer, at most.
const QUEUE: usize = 256;

/// What a record is of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum What {
    /// The guest ran, hand-over to it and back included.
    Guest,
    /// A system call, served at a place, with its result register (`None`: it left none).
    Call { number: u16, place: Place, result: Option<u64> },
    /// It waited in the kernel.
    Wait,
    /// Host calls were made in the guest's thread, as one hand-over where that can be.
    HostCalls { count: u32 },
    /// It took a signal. At a moment, without duration.
    Signal(Signal),
    /// Its own instruction raised this signal. Likewise.
    Fault(Signal),
}

/// Something that a task did. Times are nanoseconds since the profile began.
#[derive(Clone, Copy, Debug)]
struct Record {
    begin: u64,
    end: u64,
    what: What,
}

/// A task on the track of which records are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Track {
    pid: i32,
    tid: i32,
}

enum Message {
    Records(Track, Vec<Record>),
    /// The thread's name, and its process's if it is the leader.
    Name(Track, Vec<u8>),
    End,
}

/// A profile of all tasks of a kernel.
pub struct Profile {
    started: Instant,
    to_writer: SyncSender<Message>,
    lost: AtomicU64,
    writer: Mutex<order::Leaf, Option<JoinHandle<std::io::Result<()>>>>,
}

impl Profile {
    /// Begins a profile that is written to `out`.
    ///
    /// # Errors
    /// If there is no thread for it.
    pub fn new(out: Box<dyn Write + Send>) -> std::io::Result<Profile> {
        let (to_writer, messages) = sync_channel(QUEUE);
        let thread = std::thread::Builder::new().name("profile".into()).stack_size(256 << 10);
        let writer = thread.spawn(move || write::write(out, messages))?;
        let writer = Mutex::new(Some(writer));
        Ok(Profile { started: Instant::now(), to_writer, lost: AtomicU64::new(0), writer })
    }

    /// Completes the file, once all tasks have ended. Gives how many records were lost because it took them too slowly.
    ///
    /// # Errors
    /// What writing the file says.
    pub fn finish(&self) -> std::io::Result<u64> {
        let Some(writer) = self.writer.lock().take() else { return Ok(0) };
        // A writer that has given up takes nothing more; its answer says why.
        let _ = self.to_writer.send(Message::End);
        let result = writer.join().unwrap_or(Err(std::io::ErrorKind::Other.into()));
        result.map(|()| self.lost.load(Ordering::Relaxed))
    }

    fn send(&self, message: Message) {
        let records = match &message {
            Message::Records(_, records) => records.len() as u64,
            _ => 1,
        };
        if self.to_writer.try_send(message).is_err() {
            self.lost.fetch_add(records, Ordering::Relaxed);
        }
    }
}

/// One task's part of a profile.
pub(crate) struct TaskProfile {
    profile: Arc<Profile>,
    track: Track,
    records: RefCell<Vec<Record>>,
}

impl TaskProfile {
    /// For a task that begins, if there is a profile.
    pub(crate) fn begin(task: &Task) -> Option<Box<TaskProfile>> {
        let profile = task.kernel.options.profile.clone()?;
        let track = Track { pid: task.group.pid, tid: task.tid() };
        let own = TaskProfile { profile, track, records: RefCell::new(Vec::with_capacity(BUFFER)) };
        own.name(&task.shared.lock().name.clone());
        Some(Box::new(own))
    }

    fn now(&self) -> u64 {
        u64::try_from(self.profile.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn name(&self, name: &[u8]) {
        self.profile.send(Message::Name(self.track, name.into()));
    }

    fn add(&self, begin: u64, end: u64, what: What) {
        let mut records = self.records.borrow_mut();
        records.push(Record { begin, end, what });
        if records.len() >= BUFFER {
            let full = std::mem::replace(&mut *records, Vec::with_capacity(BUFFER));
            self.profile.send(Message::Records(self.track, full));
        }
    }
}

impl Drop for TaskProfile {
    fn drop(&mut self) {
        self.profile.send(Message::Records(self.track, self.records.take()));
    }
}

/// When something began that may be recorded.
#[derive(Clone, Copy)]
#[must_use]
pub(crate) struct Began(Option<u64>);

impl CurrentTask {
    /// Something begins, for [`profile_end`](Self::profile_end).
    #[inline]
    pub(crate) fn profile_begin(&self) -> Began {
        Began(self.profile.as_ref().map(|profile| profile.now()))
    }

    /// It has ended.
    #[inline]
    pub(crate) fn profile_end(&self, began: Began, what: impl FnOnce() -> What) {
        if let (Some(begin), Some(profile)) = (began.0, &self.profile) {
            profile.add(begin, profile.now(), what());
        }
    }

    /// Something happens, at a moment.
    pub(crate) fn profile_moment(&self, what: What) {
        if let Some(profile) = &self.profile {
            let now = profile.now();
            profile.add(now, now, what);
        }
    }

    /// Its name has changed.
    pub(crate) fn profile_name(&self) {
        if let Some(profile) = &self.profile {
            let name = self.task.shared.lock().name.clone();
            profile.name(&name);
        }
    }
}
