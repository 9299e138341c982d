//! Guest threads, and what makes guest processes.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use abi::{Errno, UserAddr};

use crate::{
    AddressSpace, Counters, DelegatedFile, Delegations, HostCall, HostCallError, HostCallFailure, Meter,
    OwnWords, PatchedProgram, Registers, SharedWords, Trap,
};

/// What a platform can do, as data.
#[derive(Clone, Debug)]
pub struct Capabilities {
    /// `ptrace`, `sysemu`, `stub`: as `--platform` names it.
    pub name: &'static str,
    /// Bytes of the extended state that [`Context::fp_state`] gives (the host's XSAVE area, standard
    /// format, at least 576).
    pub xsave_size: usize,
    /// The XCR0 bits that are in it.
    pub xsave_features: u64,
}

/// What the calls that only tell who one is answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    pub pid: i32,
    pub tid: i32,
    pub uid: u32,
    pub euid: u32,
    pub gid: u32,
    pub egid: u32,
}

/// A host failure that leaves a guest process or the platform unusable.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {source}")]
pub struct PlatformError {
    /// What was tried, in words for the user.
    pub what: &'static str,
    pub source: std::io::Error,
}

/// A new guest process: its memory, empty but for the stub, and its first thread.
pub struct NewProcess {
    pub space: Arc<dyn AddressSpace>,
    pub thread: Box<dyn NewContext>,
}

/// One way to run guest code.
pub trait Platform: Send + Sync {
    fn capabilities(&self) -> &Capabilities;

    /// A fresh guest process that no guest code has ever run in. From any thread of the kernel.
    fn spawn(&self) -> Result<NewProcess, PlatformError>;

    /// The program in `file`, an ELF file open for reading, with its system-call sites patched. `None`: the platform
    /// patches none, or this one has none, or is not one. No guest has it open for writing. From any thread; it may take
    /// milliseconds the first time.
    fn patch(&self, file: BorrowedFd<'_>) -> Option<Arc<PatchedProgram>> {
        let _ = file;
        None
    }
}

/// A guest thread that nobody drives yet; it runs nothing until bound.
pub trait NewContext: Send {
    /// Takes it over, on the kernel thread that will drive it for all its life. If its process has died
    /// meanwhile, that is no error: the context's runs report it.
    fn bind(self: Box<Self>) -> Result<Box<dyn Context>, PlatformError>;
}

/// A guest thread, driven by one kernel thread (not `Send`: a tracee obeys only the thread that attached).
/// Dropping it ends the host thread; the process goes on while it has others (its leader parks).
pub trait Context {
    /// Runs the guest until something happens.
    fn run(&mut self) -> Trap;

    /// Runs one instruction of the guest: [`Trap::Stepped`], or the system call, exception or death that it made, which
    /// is then all there is to report of it. [`Trap::Interrupted`] (which may be spurious) comes before it has run. As
    /// in Linux, one repetition of a string instruction is an instruction, and one that loads SS is one with the next.
    ///
    /// The guest's own TF stays what the guest made of it. While it is set, each step ends as the guest's own trap
    /// ([`Trap::Exception`], SIGTRAP with TRAP_TRACE), as each instruction of a run would. What else an instruction can
    /// tell of being stepped is what `PTRACE_SINGLESTEP` of Linux lets it: `pushf` stores TF, `syscall` leaves it in r11.
    ///
    /// For a tracer inside the guest (`PTRACE_SINGLESTEP`, `PTRACE_SYSEMU_SINGLESTEP`); the kernel itself steps nobody:
    /// guests that step themselves do so by their own TF, in a [`run`](Context::run). A thread at the patched site of a
    /// system call is led to that call first: what the site jumps to is the platform's, and is not stepped.
    fn step(&mut self) -> Trap;

    /// Sets what the system call that `run` reported returns (the guest's `rax`).
    fn set_result(&mut self, value: u64);

    /// All general registers: fetched on first use after `run`, written back before the next if `&mut` was
    /// taken. `rip` is behind the `syscall` instruction after [`Trap::Syscall`].
    fn registers(&mut self) -> &Registers;
    fn registers_mut(&mut self) -> &mut Registers;

    /// The extended state as the host's XSAVE area (standard format, [`Capabilities::xsave_size`] bytes).
    fn fp_state(&mut self) -> Result<Vec<u8>, Errno>;
    /// Sets it. The host validates (reserved MXCSR bits, header): `EINVAL`.
    fn set_fp_state(&mut self, xsave: &[u8]) -> Result<(), Errno>;
    /// Sets it to what a fresh process has.
    fn reset_fp_state(&mut self) -> Result<(), Errno>;

    /// Makes these calls in the guest's host thread, in order, as one hand-over where the platform can; stops
    /// at the first failure. Returns the result of the last one.
    fn host_calls(&mut self, calls: &[HostCall<'_>]) -> Result<u64, HostCallFailure>;

    /// If the aligned word at `at` is `old`, makes it `new`, atomically against the guest's threads.
    /// Returns what was there; `EFAULT` where nothing writable is.
    fn compare_exchange(&mut self, at: UserAddr, old: u32, new: u32) -> Result<u32, Errno>;

    /// The guest process that this thread is of.
    fn space(&self) -> &Arc<dyn AddressSpace>;

    /// A new process with a copy of this one's memory (copy-on-write) whose only thread has a copy of this
    /// thread's registers and extended state.
    fn fork(&mut self) -> Result<NewProcess, PlatformError>;

    /// A new process that shares this one's memory (`CLONE_VM` without `CLONE_THREAD`: vfork); else like
    /// `fork`.
    fn fork_sharing_memory(&mut self) -> Result<NewProcess, PlatformError>;

    /// A new thread in this process, with a copy of this thread's registers and extended state.
    fn new_thread(&mut self) -> Result<Box<dyn NewContext>, PlatformError>;

    /// Kicks it, from any thread.
    fn interrupter(&self) -> Arc<dyn Interrupter>;

    /// What the identity calls of this thread answer from now on, where the platform serves them itself.
    fn set_identity(&mut self, identity: &Identity) {
        let _ = identity;
    }

    /// The words that it shares with the kernel, as long as it lives. Whoever takes it over sets them before it first runs.
    fn shared_words(&self) -> Arc<dyn SharedWords> {
        Arc::new(OwnWords::default())
    }

    /// What it holds of files that it uses without the kernel. `None`: this platform delegates nothing.
    fn delegations(&self) -> Option<Arc<dyn Delegations>> {
        None
    }

    /// Lets it use a file without the kernel: what it then reads, writes and seeks by that number is not reported. If it
    /// holds one by that number, only the budget is new.
    ///
    /// # Errors
    /// `ENOSYS`: this platform delegates nothing; `EMFILE`: its process has no room for more.
    fn delegate(&mut self, file: &DelegatedFile<'_>) -> Result<(), HostCallError> {
        let _ = file;
        Err(HostCallError::Failed(Errno::ENOSYS))
    }

    /// What it has used.
    fn meter(&self) -> Arc<dyn Meter>;

    /// Counts hand-overs and host calls there from now on, and what the platform serves without the kernel. A platform
    /// that has none of these ignores it.
    fn set_counters(&mut self, counters: Counters) {
        drop(counters);
    }

    /// Lets it run on these CPUs only: CPU `n` is bit `n % 64` of word `n / 64`. The caller has confined its
    /// own thread, which drives this one, to the same.
    fn set_cpus(&mut self, cpus: &[u64]);

    /// Gives it this niceness (-20 to 19) on the host, as far as the host lets it: mostly only upwards. A platform whose
    /// guests are no host threads ignores it.
    fn set_nice(&mut self, nice: i32) {
        let _ = nice;
    }
}

/// Makes a guest thread come back from [`Context::run`] with [`Trap::Interrupted`], and from a blocking
/// host call with [`HostCallError::Interrupted`](crate::HostCallError::Interrupted).
///
/// A kick is never lost: one that comes between two runs makes the next come back at once (that run may
/// also report another trap first, and then the one after it comes back).
pub trait Interrupter: Send + Sync {
    fn interrupt(&self);

    /// The same for a thread whose process ends: a guest that does not come back soon, or does not do what it is ordered
    /// on its way out, is killed.
    fn interrupt_to_end(&self) {
        self.interrupt();
    }
}
