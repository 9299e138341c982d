//! What is counted for each guest thread, and where.
//!
//! A [`Block`] is written by one thread only, the kernel thread of the task whose it is, by plain loads and stores on
//! cache lines of its own; anybody may read it at any time. [`Counters`] is the handle that the kernel and the platform
//! count by; its other forms exist to measure what that is worth.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers of system calls that are counted one by one.
pub const CALLS: usize = 512;

/// Where a system call is served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// In the guest's process, by our code there, without a host call.
    Stub,
    /// In the guest's process, by one host call on what was delegated to it.
    Delegated,
    /// In the kernel.
    #[default]
    Kernel,
}

impl Place {
    pub const ALL: [Place; 3] = [Place::Stub, Place::Delegated, Place::Kernel];

    /// As counters are named.
    pub fn name(self) -> &'static str {
        match self {
            Place::Stub => "stub",
            Place::Delegated => "delegated",
            Place::Kernel => "kernel",
        }
    }
}

macro_rules! events {
    ($($(#[$doc:meta])* $event:ident = $name:literal,)*) => {
        /// What is counted besides calls.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Event { $($(#[$doc])* $event,)* }

        impl Event {
            pub const ALL: [Event; [$($name),*].len()] = [$(Event::$event),*];

            /// As counters are named.
            pub fn name(self) -> &'static str {
                match self { $(Event::$event => $name,)* }
            }
        }
    };
}

events! {
    /// Control went to the guest's host thread and came back: on the ptrace platforms, one stop.
    HandOver = "hand_overs",
    /// The guest came back because it was kicked.
    Kick = "kicks",
    /// A host call made in the guest's host thread on its behalf.
    HostCall = "host_calls",
    /// A fault or another exception that the guest's own instruction raised. Page faults that the host resolves are not
    /// among them.
    Fault = "faults",
    /// A signal was taken.
    Signal = "signals",
    /// A call waited in the kernel.
    Wait = "waits",
    /// A copy from guest memory, and its bytes.
    CopyIn = "copies_in",
    BytesIn = "bytes_in",
    /// A copy to guest memory, and its bytes.
    CopyOut = "copies_out",
    BytesOut = "bytes_out",
    /// A call came to the kernel by a patched site, and by the host's SIGSYS: on the platform `stub` each comes by one.
    BySite = "calls_by_site",
    ByTrap = "calls_by_sigsys",
    /// A call that Linux does not have.
    UnknownCall = "calls_unknown",
    /// The kernel failed in a handler.
    Oops = "oopses",
}

/// One thread's counters. Aligned so that no two blocks, nor a block and its reference count, share a cache line (or a
/// pair of them, which processors fetch together).
#[derive(Debug)]
#[repr(align(128))]
pub struct Block {
    events: [AtomicU64; Event::ALL.len()],
    calls: [[AtomicU64; CALLS]; Place::ALL.len()],
}

impl Default for Block {
    fn default() -> Self {
        Block {
            events: [const { AtomicU64::new(0) }; Event::ALL.len()],
            calls: [const { [const { AtomicU64::new(0) }; CALLS] }; Place::ALL.len()],
        }
    }
}

impl Block {
    fn event(&self, event: Event) -> Option<&AtomicU64> {
        self.events.get(event as usize)
    }

    fn call(&self, place: Place, number: u16) -> Option<&AtomicU64> {
        self.calls.get(place as usize)?.get(usize::from(number))
    }

    /// How often `event` was counted.
    pub fn read(&self, event: Event) -> u64 {
        self.event(event).map_or(0, |counter| counter.load(Ordering::Relaxed))
    }

    /// The calls served at `place`, by number.
    pub fn read_calls(&self, place: Place) -> impl Iterator<Item = u64> {
        self.calls.get(place as usize).into_iter().flatten().map(|one| one.load(Ordering::Relaxed))
    }
}

/// Adds without a locked instruction: nobody else writes.
fn add_alone(counter: Option<&AtomicU64>, count: u64) {
    if let Some(counter) = counter {
        counter.store(counter.load(Ordering::Relaxed).wrapping_add(count), Ordering::Relaxed);
    }
}

fn add_shared(counter: Option<&AtomicU64>, count: u64) {
    if let Some(counter) = counter {
        counter.fetch_add(count, Ordering::Relaxed);
    }
}

/// How one guest thread is counted.
#[derive(Clone, Debug, Default)]
pub enum Counters {
    /// Not at all.
    #[default]
    Off,
    /// In a block that only the task's kernel thread writes.
    PerThread(Arc<Block>),
    /// In a block that all threads write.
    Shared(Arc<Block>),
}

impl Counters {
    /// Counts `event`, so many times. On the task's kernel thread.
    pub fn add(&self, event: Event, count: u64) {
        match self {
            Counters::Off => {}
            Counters::PerThread(block) => add_alone(block.event(event), count),
            Counters::Shared(block) => add_shared(block.event(event), count),
        }
    }

    /// Counts calls with `number`, below [`CALLS`], that `place` served. On the task's kernel thread.
    pub fn add_calls(&self, place: Place, number: u16, count: u64) {
        match self {
            Counters::Off => {}
            Counters::PerThread(block) => add_alone(block.call(place, number), count),
            Counters::Shared(block) => add_shared(block.call(place, number), count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_counts_what_it_says() {
        let block = Arc::new(Block::default());
        for counters in [Counters::Off, Counters::PerThread(block.clone()), Counters::Shared(block.clone())] {
            counters.add(Event::BytesIn, 5);
            counters.add_calls(Place::Kernel, 39, 1);
            counters.add_calls(Place::Stub, 511, 2);
            counters.add_calls(Place::Stub, 512, 1);
        }
        assert_eq!((block.read(Event::BytesIn), block.read(Event::BytesOut)), (10, 0));
        assert_eq!(block.read_calls(Place::Kernel).nth(39), Some(2));
        assert_eq!(block.read_calls(Place::Stub).sum::<u64>(), 4);
        assert_eq!(block.read_calls(Place::Delegated).count(), CALLS);
    }

    #[test]
    fn shared_counts_of_many_threads_add_up() {
        let block = Arc::new(Block::default());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let counters = Counters::Shared(block.clone());
                scope.spawn(move || (0..10_000).for_each(|_| counters.add(Event::Kick, 1)));
            }
        });
        assert_eq!(block.read(Event::Kick), 40_000);
    }
}
