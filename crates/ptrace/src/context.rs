//! A guest thread as its kernel thread drives it: the loop that `ptrace` and `sysemu` share.
//!
//! Guest code only ever runs under `PTRACE_SYSEMU` (or its `_SINGLESTEP`), or under `PTRACE_SYSCALL` with each call's number
//! replaced at its entry by `getpid`, so the host executes nothing that a guest asks for. `PTRACE_CONT` is
//! used only with the instruction pointer on an entry of the stub ([`crate::host_call`]); why that is safe
//! is told in [`crate::stub`].
//!
//! No host signal reaches guest code: each is seen as a signal-delivery stop and swallowed.

use std::marker::PhantomData;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use abi::{Errno, UserAddr};
use guest_process::{Pin, Process, ThreadMeter, Vigil};
use parking_lot::Mutex;
use platform::{
    AddressSpace, Context, Counters, Event, Exception, ExitStatus, HostCall, HostCallFailure, Interrupter,
    Meter, NewContext, NewProcess, PlatformError, Registers, SyscallEntry, Trap,
};

use crate::fault;
use crate::shared::{Mode, Shared};
use crate::stop::{self, Stop};
use crate::sys::{self, Resume, SyscallInfo};

/// The signal of kicks.
pub(crate) const KICK: i32 = libc::SIGUSR1;
const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;
/// `getpid` of 32-bit code.
const GETPID_32: libc::c_long = 20;
/// `SI_KERNEL`.
const SI_KERNEL: i32 = 0x80;

/// A traced guest thread, stopped whenever none of its methods runs.
pub(crate) struct Tracee {
    pub(crate) shared: Arc<Shared>,
    pub(crate) process: Arc<Process>,
    space: Arc<dyn AddressSpace>,
    pub(crate) tid: i32,
    pub(crate) slot: u32,
    /// As the guest has them, if `known`.
    regs: Registers,
    known: bool,
    /// `regs` must be written before the guest runs again.
    changed: bool,
    /// The guest's `rax`, if only that must be written.
    result: Option<u64>,
    pub(crate) kick: Arc<Kick>,
    /// A kick's signal was swallowed during a host call; the next run comes back at once.
    pub(crate) kick_owed: bool,
    dead: Option<ExitStatus>,
    pin: Option<Arc<Pin>>,
    pub(crate) counters: Counters,
    vigil: Arc<Vigil>,
    /// A tracee obeys only the thread that attached: not `Send`.
    not_send: PhantomData<*mut ()>,
}

/// Kicks a guest thread.
#[derive(Debug)]
pub(crate) struct Kick {
    tgid: i32,
    tid: i32,
    /// A signal is under way or swallowed, and not reported yet.
    pending: AtomicBool,
    /// Whether `tid` is a tracee of ours still. Held while the signal is sent.
    bound: Mutex<bool>,
}

impl Interrupter for Kick {
    fn interrupt(&self) {
        if self.pending.swap(true, Ordering::AcqRel) {
            return;
        }
        let bound = self.bound.lock();
        if *bound {
            // An error means that it has died, which its tracer sees.
            let _ = host::signal::send_to_thread(self.tgid, self.tid, KICK);
        }
    }
}

impl Kick {
    /// A kick is being reported. What was done before it happened-before this.
    pub(crate) fn reported(&self) {
        self.pending.swap(false, Ordering::AcqRel);
    }
}

impl Tracee {
    /// Attaches to parked `tid` of `process`, on the thread that will drive it; `regs` are the guest's. One
    /// that has died meanwhile becomes a tracee whose runs say so.
    pub(crate) fn attach(
        shared: Arc<Shared>,
        process: Arc<Process>,
        tid: i32,
        slot: u32,
        regs: Registers,
    ) -> Result<Tracee, PlatformError> {
        let kick = Kick { tgid: process.tgid, tid, pending: AtomicBool::new(false), bound: Mutex::new(true) };
        let mut tracee = Tracee {
            space: Arc::clone(&process) as Arc<dyn AddressSpace>,
            pin: shared.guests.placement.add(process.tgid, tid, None),
            vigil: shared.guests.deadlines.add(process.tgid, tid),
            shared,
            process,
            tid,
            slot,
            regs,
            known: true,
            changed: true,
            result: None,
            kick: Arc::new(kick),
            kick_owed: false,
            dead: None,
            counters: Counters::Off,
            not_send: PhantomData,
        };
        let guests = Arc::clone(&tracee.shared.guests);
        let vigil = Arc::clone(&tracee.vigil);
        match guests.deadlines.during(&vigil, || tracee.seize()) {
            Ok(()) => Ok(tracee),
            // The host says EPERM of one that is a zombie (kernel/ptrace.c, ptrace_attach: exit_state).
            Err(error)
                if error.raw_os_error() == Some(libc::ESRCH)
                    || guest_process::is_zombie(tracee.process.tgid, tracee.tid) =>
            {
                tracee.died();
                Ok(tracee)
            }
            Err(source) => {
                // Nobody drives it: not one to be ended by what a drop does.
                tracee.process.kill();
                tracee.died();
                Err(PlatformError { what: "attaching to a guest thread", source })
            }
        }
    }

    fn seize(&mut self) -> std::io::Result<()> {
        sys::seize(self.tid)?;
        sys::interrupt(self.tid)?;
        loop {
            match stop::next(self.tid) {
                Stop::Event => return Ok(()),
                Stop::Dead => return Err(rustix::io::Errno::SRCH.into()),
                _ => sys::resume(self.tid, Resume::Native)?,
            }
        }
    }

    /// Writes memory of ours above the guest's range, whatever its protection (`FOLL_FORCE`). Only from a
    /// thread that traces it: hosts may restrict this to tracers (`proc_mem.force_override=ptrace`), or
    /// forbid it, which leaves `PTRACE_POKEDATA`.
    pub(crate) fn write_ours(&self, at: u64, bytes: &[u8]) -> std::io::Result<()> {
        if let Some(memory) = self.process.memory()
            && memory.write_all_at(bytes, at).is_ok()
        {
            return Ok(());
        }
        for (index, chunk) in (0u64..).zip(bytes.chunks(8)) {
            let mut word = [0u8; 8];
            if let Some(start) = word.get_mut(..chunk.len()) {
                start.copy_from_slice(chunk);
            }
            crate::sys::poke(self.tid, at + index * 8, u64::from_ne_bytes(word))?;
        }
        Ok(())
    }

    /// Lets it go on until its next stop.
    pub(crate) fn resume(&mut self, how: Resume) -> Stop {
        self.counters.add(Event::HandOver, 1);
        let placement = &self.shared.guests.placement;
        if let Some(pin) = &self.pin {
            placement.before_run(pin);
        }
        if let Err(error) = sys::resume(self.tid, how)
            && error.raw_os_error() != Some(libc::ESRCH)
        {
            // Never waits for what does not run. (ESRCH: it has died, which the wait tells.)
            tracing::warn!(%error, ?how, "the host does not resume a guest thread");
            self.process.kill();
        }
        let stop = stop::next(self.tid);
        if let Some(pin) = &self.pin {
            placement.after_run(pin);
        }
        stop
    }

    /// The same for what it does at once, or its process is killed.
    pub(crate) fn resume_soon(&mut self, how: Resume) -> Stop {
        let guests = Arc::clone(&self.shared.guests);
        let vigil = Arc::clone(&self.vigil);
        guests.deadlines.during(&vigil, || self.resume(how))
    }

    /// The guest's registers, for changing; the caller sets `changed` by what follows.
    pub(crate) fn fetch(&mut self) -> &mut Registers {
        if !self.known {
            // If it has died, they stay what they were; the next run tells.
            if let Ok(regs) = sys::registers(self.tid) {
                self.regs = regs;
            }
            if let Some(result) = self.result {
                self.regs.rax = result;
            }
            self.known = true;
        }
        &mut self.regs
    }

    /// The host thread's registers are no longer the guest's.
    pub(crate) fn borrow_thread(&mut self) -> Registers {
        let regs = *self.fetch();
        self.changed = true;
        regs
    }

    /// It is gone.
    pub(crate) fn died(&mut self) -> ExitStatus {
        if let Some(status) = self.dead {
            return status;
        }
        self.forget();
        let status = stop::exit_status(self.tid);
        if self.tid != self.process.tgid {
            stop::reap(self.tid);
        }
        self.dead = Some(status);
        status
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.dead.is_some()
    }

    /// It did what no guest thread does. Its process ends.
    pub(crate) fn escaped(&mut self) -> ExitStatus {
        tracing::warn!(tid = self.tid, "guest thread left the platform's hands; killed its process");
        self.finish()
    }

    /// Ends its process, which may be dying already.
    pub(crate) fn finish(&mut self) -> ExitStatus {
        self.process.kill();
        while stop::next(self.tid) != Stop::Dead {
            let _ = sys::resume(self.tid, Resume::Native);
        }
        self.died()
    }

    /// From now on nobody signals or moves the tid.
    fn forget(&mut self) {
        *self.kick.bound.lock() = false;
        if let Some(pin) = self.pin.take() {
            self.shared.guests.placement.remove(&pin);
        }
        self.shared.guests.deadlines.remove(&self.vigil);
    }

    /// Puts what was changed into the host thread.
    fn write_back(&mut self) -> std::io::Result<()> {
        let result = self.result.take();
        if self.changed {
            // Whatever is in rax, the host must not take it for a call of its own to restart.
            let regs = Registers { orig_rax: u64::MAX, ..self.regs };
            sys::set_registers(self.tid, &regs)?;
            self.changed = false;
        } else if let Some(value) = result {
            sys::set_register(self.tid, offset_of!(Registers, rax), value)?;
            if restarts(value) {
                sys::set_register(self.tid, offset_of!(Registers, orig_rax), u64::MAX)?;
            }
        }
        Ok(())
    }

    /// Lets the guest go on until something happens.
    pub(crate) fn enter(&mut self, how: Resume) -> Trap {
        if let Some(status) = self.dead {
            return Trap::Died(status);
        }
        if std::mem::take(&mut self.kick_owed) {
            self.kick.reported();
            return Trap::Interrupted;
        }
        match self.write_back() {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Trap::Died(self.died()),
            // Registers that user code cannot have: Linux faults on the way out to it.
            Err(_) => {
                return Trap::Exception(Exception::of_signal(libc::SIGSEGV, SI_KERNEL, UserAddr::NULL));
            }
        }
        self.known = false;
        loop {
            let trap = match self.resume(how) {
                Stop::Syscall => Some(self.syscall()),
                Stop::Signal(signal) => self.signal(signal),
                Stop::Event => None,
                Stop::Escaped => Some(Trap::Died(self.escaped())),
                Stop::Dead => Some(Trap::Died(self.died())),
            };
            if let Some(trap) = trap {
                return trap;
            }
        }
    }

    /// A stop at the entry of a system call.
    fn syscall(&mut self) -> Trap {
        let Ok(info) = sys::syscall_info(self.tid) else { return Trap::Died(self.died()) };
        if self.shared.options.mode == Mode::Syscall
            && let Err(trap) = self.nullify(&info)
        {
            return trap;
        }
        if self.shared.options.eager_registers {
            self.fetch();
        }
        Trap::Syscall(SyscallEntry {
            number: info.number,
            args: info.args,
            native: info.arch == AUDIT_ARCH_X86_64,
        })
    }

    /// Has the host execute `getpid` instead, up to the exit stop, where things are as `SYSEMU` leaves them.
    fn nullify(&mut self, info: &SyscallInfo) -> Result<(), Trap> {
        // 32-bit entries have numbers of their own: 39 is mkdir there.
        let getpid = if info.arch == AUDIT_ARCH_X86_64 { libc::SYS_getpid } else { GETPID_32 };
        let number = sys::set_register(self.tid, offset_of!(Registers, orig_rax), getpid.cast_unsigned());
        if info.op != sys::INFO_ENTRY || number.is_err() {
            return Err(Trap::Died(self.escaped()));
        }
        match self.resume_soon(Resume::Syscall) {
            Stop::Syscall => {}
            Stop::Dead => return Err(Trap::Died(self.died())),
            _ => return Err(Trap::Died(self.escaped())),
        }
        self.result = Some(Errno::ENOSYS.as_result());
        Ok(())
    }

    /// A signal about to be delivered: what it means, or `None` for nothing.
    fn signal(&mut self, signal: i32) -> Option<Trap> {
        match signal {
            KICK => {
                self.kick.reported();
                Some(Trap::Interrupted)
            }
            libc::SIGSEGV | libc::SIGBUS | libc::SIGFPE | libc::SIGILL | libc::SIGTRAP => {
                match sys::signal_info(self.tid) {
                    // Sent by somebody, not raised by the guest's code.
                    Ok((_, code, _)) if code <= 0 => None,
                    Ok((signal, code, addr)) => {
                        let plain = Exception::of_signal(signal, code, UserAddr(addr));
                        let tgid = self.process.tgid;
                        Some(Trap::Exception(fault::complete(plain, tgid, self.fetch())))
                    }
                    Err(_) => Some(Trap::Died(self.died())),
                }
            }
            _ => None,
        }
    }
}

/// Whether the host would take this result for a call to restart (`ERESTARTSYS` … `ERESTART_RESTARTBLOCK`).
pub(crate) fn restarts(result: u64) -> bool {
    (-516..=-512).contains(&result.cast_signed())
}

impl Context for Tracee {
    fn run(&mut self) -> Trap {
        self.enter(self.shared.options.mode.resume())
    }

    fn step(&mut self) -> Trap {
        self.step_once()
    }

    fn set_result(&mut self, value: u64) {
        if self.known {
            self.regs.rax = value;
        }
        self.result = Some(value);
    }

    fn registers(&mut self) -> &Registers {
        self.fetch()
    }

    fn registers_mut(&mut self) -> &mut Registers {
        self.fetch();
        self.changed = true;
        &mut self.regs
    }

    fn fp_state(&mut self) -> Result<Vec<u8>, Errno> {
        let mut area = vec![0; self.shared.fresh_fp().len()];
        let size = sys::xstate(self.tid, &mut area).map_err(errno)?;
        area.truncate(size);
        Ok(area)
    }

    fn set_fp_state(&mut self, xsave: &[u8]) -> Result<(), Errno> {
        // The host says EFAULT to a wrong size.
        if xsave.len() != self.shared.fresh_fp().len() {
            return Err(Errno::EINVAL);
        }
        sys::set_xstate(self.tid, xsave).map_err(errno)
    }

    fn reset_fp_state(&mut self) -> Result<(), Errno> {
        let shared = Arc::clone(&self.shared);
        self.set_fp_state(shared.fresh_fp())
    }

    fn host_calls(&mut self, calls: &[HostCall<'_>]) -> Result<u64, HostCallFailure> {
        self.make_host_calls(calls)
    }

    fn compare_exchange(&mut self, at: UserAddr, old: u32, new: u32) -> Result<u32, Errno> {
        self.exchange(at, old, new)
    }

    fn space(&self) -> &Arc<dyn AddressSpace> {
        &self.space
    }

    fn fork(&mut self) -> Result<NewProcess, PlatformError> {
        self.clone_process(false)
    }

    fn fork_sharing_memory(&mut self) -> Result<NewProcess, PlatformError> {
        self.clone_process(true)
    }

    fn new_thread(&mut self) -> Result<Box<dyn NewContext>, PlatformError> {
        self.clone_thread()
    }

    fn interrupter(&self) -> Arc<dyn Interrupter> {
        Arc::clone(&self.kick) as Arc<dyn Interrupter>
    }

    fn meter(&self) -> Arc<dyn Meter> {
        Arc::new(ThreadMeter::new(self.process.tgid, self.tid, Arc::default()))
    }

    fn set_counters(&mut self, counters: Counters) {
        self.counters = counters;
    }

    fn set_cpus(&mut self, cpus: &[u64]) {
        guest_process::confine(self.tid, self.pin.as_deref(), cpus);
    }

    fn set_nice(&mut self, nice: i32) {
        guest_process::set_nice(self.tid, nice);
    }
}

impl Drop for Tracee {
    fn drop(&mut self) {
        self.end();
        self.forget();
        self.process.slots.give_back(self.slot);
    }
}

/// An `io::Error` of the host as an errno; one without a number is `EIO`.
pub(crate) fn errno(error: std::io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO))
}
