//! A platform without host processes: memory in this process, and a processor that knows the instructions
//! of [`code`](crate::code) and no others. What it does depends on nothing but what it is told, so unit
//! tests of the kernel are deterministic and need nothing of the host.
//!
//! It passes the same conformance suite as the real ones. Differences: no vDSO, no `WAKE_OP`, memory use is
//! counted in touched pages, and an unknown instruction is `SIGILL`.

#![allow(clippy::cast_possible_truncation, reason = "x86-64 only: usize is u64")]

mod context;
mod cpu;
mod futex;
mod memory;

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::{
    AddressSpace, Capabilities, GuestRange, HostUsage, NewProcess, Platform, PlatformError, Reach, Registers,
    Vdso,
};

use context::NewMockThread;
use futex::Futexes;
use memory::Memory;

/// The platform.
pub struct Mock {
    capabilities: Capabilities,
    world: Arc<World>,
}

/// What all its processes share.
struct World {
    futexes: Futexes,
    next_pid: AtomicI32,
}

impl Mock {
    pub fn new() -> Mock {
        Mock {
            capabilities: Capabilities { name: "mock", xsave_size: cpu::FP_SIZE, xsave_features: 3 },
            world: Arc::new(World { futexes: Futexes::default(), next_pid: AtomicI32::new(1) }),
        }
    }
}

impl Default for Mock {
    fn default() -> Mock {
        Mock::new()
    }
}

impl Platform for Mock {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn spawn(&self) -> Result<NewProcess, PlatformError> {
        let memory = Arc::new(Mutex::new(Memory::default()));
        Ok(Process::start(&self.world, memory, Registers::default(), cpu::fresh_fp()))
    }
}

/// One guest process.
struct Process {
    world: Arc<World>,
    memory: Arc<Mutex<Memory>>,
    killed: AtomicBool,
    pid: i32,
    /// Its far end is closed by death.
    death: std::io::PipeReader,
    alive: Mutex<Option<std::io::PipeWriter>>,
}

impl Process {
    fn start(world: &Arc<World>, memory: Arc<Mutex<Memory>>, regs: Registers, fp: Vec<u8>) -> NewProcess {
        #[expect(clippy::expect_used, reason = "for tests: without descriptors they cannot go on")]
        let (death, alive) = std::io::pipe().expect("a pipe");
        let process = Arc::new(Process {
            world: Arc::clone(world),
            memory,
            killed: AtomicBool::new(false),
            pid: world.next_pid.fetch_add(1, Ordering::Relaxed),
            death,
            alive: Mutex::new(Some(alive)),
        });
        let thread = Box::new(NewMockThread { process: Arc::clone(&process), regs, fp });
        NewProcess { space: process, thread }
    }
}

impl AddressSpace for Process {
    fn read(&self, from: &[GuestRange], into: &mut [u8], reach: Reach) -> usize {
        if self.killed.load(Ordering::Acquire) {
            return 0;
        }
        let mut memory = self.memory.lock();
        let mut done = 0usize;
        for range in from {
            let len = range.len.min(into.len() - done);
            if !range.start.in_guest_range(len as u64) {
                break;
            }
            let copied = memory.read(range.start.0, into.get_mut(done..done + len).unwrap_or(&mut []), reach);
            done += copied;
            if copied < len {
                break;
            }
        }
        done
    }

    fn write(&self, from: &[u8], to: &[GuestRange], reach: Reach) -> usize {
        if self.killed.load(Ordering::Acquire) {
            return 0;
        }
        let mut memory = self.memory.lock();
        let mut done = 0usize;
        for range in to {
            let len = range.len.min(from.len() - done);
            if !range.start.in_guest_range(len as u64) {
                break;
            }
            let copied = memory.write(range.start.0, from.get(done..done + len).unwrap_or(&[]), reach);
            done += copied;
            if copied < len {
                break;
            }
        }
        done
    }

    fn kill(&self) {
        self.killed.store(true, Ordering::Release);
        *self.alive.lock() = None;
        self.world.futexes.wake_everybody();
    }

    fn death(&self) -> Option<BorrowedFd<'_>> {
        Some(std::os::fd::AsFd::as_fd(&self.death))
    }

    fn vdso(&self) -> Option<Vdso> {
        None
    }

    fn resident_pages(&self) -> (u64, u64) {
        (self.memory.lock().touched(), 0)
    }

    fn mapping_start(&self, _: abi::UserAddr) -> Option<abi::UserAddr> {
        None
    }

    fn usage(&self) -> HostUsage {
        HostUsage::default()
    }

    fn last_usage(&self) -> Arc<OnceLock<HostUsage>> {
        Arc::new(OnceLock::from(HostUsage::default()))
    }

    fn set_stack_limit(&self, _: u64) {}

    fn host_pid(&self) -> i32 {
        self.pid
    }
}
