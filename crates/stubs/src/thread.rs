//! A guest thread as its kernel thread drives it.
//!
//! Between two runs it sleeps in the stub, its registers in its channel. A run orders it back to the guest and
//! waits for its next post: a call by a patched site, a signal of the host's, a kick.

mod order;
mod trap;

use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use abi::{Errno, UserAddr};
use guest_process::{Doubled, Pin, Process, ThreadMeter};
use platform::{
    AddressSpace, Context, Counters, DelegatedFile, Delegations, Event, Exception, ExitStatus, HostCall,
    HostCallError, HostCallFailure, Identity, Interrupter, Meter, NewContext, NewProcess, PlatformError,
    Registers, SharedWords, Trap, step,
};

use crate::channel::{Channel, Channels};
use crate::delegate::Handed;
use crate::hand_over::Bell;
use crate::kick::Kick;
use crate::layout::*;
use crate::marshal::Window;
use crate::reaper::Watch;
use crate::registers;
use crate::shared::Shared;
use crate::spin::Spin;
use crate::threads::Threads;
use crate::words::Words;

pub(crate) use order::{Gone, PATIENCE, in_seconds};

/// `SI_KERNEL`.
const SI_KERNEL: i32 = 0x80;
/// A guest process with its channels.
#[derive(Clone)]
pub(crate) struct Inside {
    pub(crate) process: Arc<Process>,
    pub(crate) channels: Arc<Channels>,
    pub(crate) watch: Arc<Watch>,
    /// Files that its threads have been handed.
    pub(crate) handed: Arc<AtomicU32>,
    pub(crate) threads: Arc<Threads>,
}

impl Inside {
    /// A process that has its first thread.
    pub(crate) fn new(process: Arc<Process>, channels: Arc<Channels>, watch: Arc<Watch>) -> Inside {
        let threads = Threads::new(&process);
        Inside { process, channels, watch, handed: Arc::default(), threads }
    }
}

/// A guest thread, asleep in the stub whenever none of its methods runs.
pub(crate) struct Guest {
    pub(crate) shared: Arc<Shared>,
    pub(crate) inside: Inside,
    space: Arc<dyn AddressSpace>,
    pub(crate) tid: i32,
    pub(crate) slot: u32,
    pub(crate) channel: Arc<Channel>,
    pub(crate) bell: Arc<Bell>,
    /// As in the channel, if `known`.
    regs: Registers,
    known: bool,
    changed: bool,
    /// It came by a patched site, and may go back by the short way.
    by_call: bool,
    /// The result of the call that it came with so.
    value: u64,
    /// Its extended state lies in the channel.
    state_saved: bool,
    kick: Arc<Kick>,
    dead: Option<ExitStatus>,
    pin: Option<Arc<Pin>>,
    spin: Spin,
    doubled: Arc<Doubled>,
    pub(crate) window: Rc<Window>,
    /// What the kernel set as GS base; 0: the channel, unseen by the guest.
    gs_base: u64,
    pub(crate) counters: Counters,
    /// Served by the stub, as last counted.
    served: [u64; crate::leaf::COUNT],
    pub(crate) handed: Arc<Handed>,
    not_send: PhantomData<*mut ()>,
}

impl Guest {
    /// Takes over a thread that waits for its first order; `at`: the one CPU where it may run now, if that is known.
    pub(crate) fn bind(
        shared: Arc<Shared>,
        inside: Inside,
        tid: i32,
        slot: u32,
        channel: Arc<Channel>,
        regs: Registers,
        at: Option<i32>,
    ) -> Guest {
        let bell = Arc::new(Bell::default());
        inside.watch.add(&bell);
        let may_be_shut = shared.nothing.is_some();
        let handed = Handed::new(inside.process.tgid, &channel, &inside.handed, may_be_shut);
        let kick = Kick::new(inside.process.tgid, tid, &channel, &bell);
        // Its channel may have been another thread's.
        let mut served = [0; crate::leaf::COUNT];
        crate::leaf::count(&channel, &mut served, &Counters::Off, &[]);
        let window = Window::new(inside.process.tgid, &channel);
        Guest {
            space: Arc::clone(&inside.process) as Arc<dyn AddressSpace>,
            pin: shared.guests.placement.add(inside.process.tgid, tid, at),
            shared,
            inside,
            tid,
            slot,
            channel,
            bell,
            gs_base: regs.gs_base,
            regs,
            known: true,
            changed: true,
            by_call: false,
            value: 0,
            // A new thread begins with a copy of its parent's.
            state_saved: true,
            kick: Arc::new(kick),
            dead: None,
            spin: Spin::default(),
            doubled: Arc::default(),
            window,
            counters: Counters::Off,
            served,
            handed: Arc::new(handed),
            not_send: PhantomData,
        }
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.dead.is_some()
    }

    /// The one CPU where it may run now, if that is known.
    pub(crate) fn at(&self) -> Option<i32> {
        self.pin.as_ref()?.at()
    }

    /// Its channel's address in the guest.
    pub(crate) fn channel_address(&self) -> u64 {
        self.shared.layout.channel(self.slot)
    }

    /// The guest's registers.
    pub(crate) fn fetch(&mut self) -> &mut Registers {
        if !self.known {
            self.regs = registers::read(&self.channel, self.channel_address());
            if self.by_call {
                self.regs.rax = self.value;
            }
            self.gs_base = self.regs.gs_base;
            self.known = true;
        }
        &mut self.regs
    }

    /// Puts changed registers into the channel. `false`: user code cannot have them.
    fn write_back(&mut self) -> bool {
        if !self.changed {
            return true;
        }
        if !registers::write(&self.channel, &self.regs) {
            return false;
        }
        self.gs_base = self.regs.gs_base;
        self.changed = false;
        self.by_call = false;
        true
    }

    /// It is gone.
    pub(crate) fn died(&mut self) -> ExitStatus {
        if let Some(status) = self.dead {
            return status;
        }
        self.forget();
        let status = self.inside.process.exit_status();
        self.dead = Some(status);
        status
    }

    /// It did what no guest thread does. Its process ends.
    pub(crate) fn escaped(&mut self) -> ExitStatus {
        tracing::warn!(tid = self.tid, "guest thread left the platform's hands; killed its process");
        self.inside.process.kill();
        self.bell.wait_until_dead();
        self.died()
    }

    /// From now on nobody signals or moves the tid.
    fn forget(&mut self) {
        self.kick.unbind();
        if let Some(pin) = self.pin.take() {
            self.shared.guests.placement.remove(&pin);
        }
    }

    /// Where the extended state lies, after it has been saved: an offset in the channel with room for it.
    fn saved_state(&mut self) -> Result<u64, Errno> {
        self.state_saved = true;
        if self.channel.get(FP) == 0 {
            self.done(Order::SaveState).map_err(|_| Errno::ESRCH)?;
        }
        let offset = self.channel.get(FP).wrapping_sub(self.channel_address());
        // The guest's word: within its own channel, or it has broken its stub.
        let last = SIZE - self.shared.state.size as u64;
        if offset > last || !offset.is_multiple_of(8) {
            self.escaped();
            return Err(Errno::ESRCH);
        }
        Ok(offset)
    }
}

impl Context for Guest {
    fn run(&mut self) -> Trap {
        if let Some(status) = self.dead {
            return Trap::Died(status);
        }
        if !self.kick.begin() {
            return Trap::Interrupted;
        }
        if !self.write_back() {
            // Linux faults on the way out to user code.
            self.kick.end();
            return Trap::Exception(Exception::of_signal(libc::SIGSEGV, SI_KERNEL, UserAddr::NULL));
        }
        let order = if self.by_call && !self.state_saved { Order::ResumeCall } else { Order::ResumeFull };
        if order == Order::ResumeFull {
            let gs = if self.gs_base == 0 { self.channel_address() } else { self.gs_base };
            self.channel.set(GS, gs);
            if self.by_call {
                self.channel.set(REGS + 10 * 8, self.value);
            }
        }
        self.known = false;
        let mut reason = self.closing(order).and_then(|order| self.order(order, true));
        if matches!(reason, Ok(reason::UNANSWERED)) {
            // The result is not where the call was to put it. Behind a handler's frame there is none to be changed.
            if order == Order::ResumeCall {
                self.value = Errno::EFAULT.as_result();
            }
            reason = self.order(order, true);
        }
        self.kick.end();
        self.by_call = false;
        self.state_saved = false;
        crate::leaf::count(&self.channel, &mut self.served, &self.counters, &self.shared.shapes);
        match reason {
            Ok(word) if word & ((1 << REASON_BITS) - 1) == reason::CALLED => {
                self.counters.add(Event::BySite, 1);
                self.call(word >> REASON_BITS)
            }
            Ok(reason::TRAPPED) => self.trapped(),
            Ok(reason::KICKED) => {
                self.kick.reported();
                Trap::Interrupted
            }
            Ok(reason::MASKED) => Trap::Interrupted,
            Ok(_) => Trap::Died(self.escaped()),
            Err(Gone::Died(status)) => Trap::Died(status),
            Err(Gone::Kicked) => Trap::Interrupted,
        }
    }

    fn step(&mut self) -> Trap {
        let regs = *self.fetch();
        if regs.rflags & step::FLAG != 0 {
            return self.run();
        }
        let step = step::Step::at(&*self.inside.process, regs.rip);
        self.registers_mut().rflags |= step::FLAG;
        let trap = self.run();
        step.end(trap, self.registers_mut())
    }

    fn set_result(&mut self, value: u64) {
        self.regs.rax = value;
        if self.by_call {
            self.value = value;
        } else {
            self.channel.set(REGS + 10 * 8, value);
        }
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
        let offset = self.saved_state()?;
        let mut image = vec![0; self.shared.state.size];
        self.channel.read(offset, &mut image);
        self.shared.state.complete(&mut image);
        Ok(image)
    }

    fn set_fp_state(&mut self, xsave: &[u8]) -> Result<(), Errno> {
        self.shared.state.check(xsave)?;
        self.channel.write(XSTATE, xsave);
        self.state_saved = true;
        self.channel.set(FP, self.channel_address() + XSTATE);
        Ok(())
    }

    fn reset_fp_state(&mut self) -> Result<(), Errno> {
        let fresh = self.shared.state.fresh();
        self.set_fp_state(&fresh)
    }

    fn host_calls(&mut self, calls: &[HostCall<'_>]) -> Result<u64, HostCallFailure> {
        self.counters.add(Event::HostCall, calls.len() as u64);
        self.make_host_calls(calls)
    }

    fn compare_exchange(&mut self, at: UserAddr, old: u32, new: u32) -> Result<u32, Errno> {
        self.exchange(at, old, new)
    }

    fn space(&self) -> &Arc<dyn AddressSpace> {
        &self.space
    }

    fn fork(&mut self) -> Result<NewProcess, PlatformError> {
        self.counters.add(Event::HostCall, 1);
        self.clone_process(false)
    }

    fn fork_sharing_memory(&mut self) -> Result<NewProcess, PlatformError> {
        self.counters.add(Event::HostCall, 1);
        self.clone_process(true)
    }

    fn new_thread(&mut self) -> Result<Box<dyn NewContext>, PlatformError> {
        self.counters.add(Event::HostCall, 1);
        self.clone_thread()
    }

    fn interrupter(&self) -> Arc<dyn Interrupter> {
        Arc::clone(&self.kick) as Arc<dyn Interrupter>
    }

    fn meter(&self) -> Arc<dyn Meter> {
        Arc::new(ThreadMeter::new(self.inside.process.tgid, self.tid, Arc::clone(&self.doubled)))
    }

    fn set_identity(&mut self, identity: &Identity) {
        crate::leaf::serve(&self.channel, identity, &self.shared.shapes);
    }

    fn shared_words(&self) -> Arc<dyn SharedWords> {
        Arc::new(Words::new(&self.channel))
    }

    fn delegations(&self) -> Option<Arc<dyn Delegations>> {
        self.shared.delegate.then(|| Arc::clone(&self.handed) as Arc<dyn Delegations>)
    }

    fn delegate(&mut self, file: &DelegatedFile<'_>) -> Result<(), HostCallError> {
        self.counters.add(Event::HostCall, 1);
        self.hand(file)
    }

    fn set_counters(&mut self, counters: Counters) {
        self.counters = counters;
    }

    fn set_nice(&mut self, nice: i32) {
        guest_process::set_nice(self.tid, nice);
    }

    fn set_cpus(&mut self, cpus: &[u64]) {
        guest_process::confine(self.tid, self.pin.as_deref(), cpus);
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.end();
        self.forget();
    }
}
