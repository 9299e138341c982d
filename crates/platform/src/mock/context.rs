//! The mock's guest threads.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use abi::{Errno, UserAddr};
use parking_lot::Mutex;

use super::cpu::{self, Step};
use super::futex::{End, Key};
use super::memory::Memory;
use super::{Process, World};
use crate::step;
use crate::{
    AddressSpace, Context, ExitStatus, FutexCall, HostCall, HostCallError, HostCallFailure, HostUsage,
    Interrupter, Meter, NewContext, NewProcess, PlatformError, Reach, Registers, SyscallEntry, Trap,
};

/// Instructions between two looks at kicks and death, with the memory locked.
const BURST: u32 = 64;

pub(super) struct NewMockThread {
    pub(super) process: Arc<Process>,
    pub(super) regs: Registers,
    pub(super) fp: Vec<u8>,
}

impl NewContext for NewMockThread {
    fn bind(self: Box<Self>) -> Result<Box<dyn Context>, PlatformError> {
        let kick = Kick { pending: AtomicBool::new(false), world: Arc::clone(&self.process.world) };
        Ok(Box::new(MockThread {
            space: Arc::clone(&self.process) as Arc<dyn AddressSpace>,
            process: self.process,
            regs: self.regs,
            fp: self.fp,
            kick: Arc::new(kick),
            not_send: PhantomData,
        }))
    }
}

struct MockThread {
    process: Arc<Process>,
    space: Arc<dyn AddressSpace>,
    regs: Registers,
    fp: Vec<u8>,
    kick: Arc<Kick>,
    not_send: PhantomData<*mut ()>,
}

struct Kick {
    pending: AtomicBool,
    world: Arc<World>,
}

impl Interrupter for Kick {
    fn interrupt(&self) {
        self.pending.store(true, Ordering::Release);
        self.world.futexes.wake_everybody();
    }
}

impl MockThread {
    /// Runs some instructions, or until something happens.
    fn burst(&mut self) -> Option<Trap> {
        if self.dead() {
            return Some(Trap::Died(ExitStatus::Killed(libc::SIGKILL)));
        }
        if self.kick.pending.swap(false, Ordering::AcqRel) {
            return Some(Trap::Interrupted);
        }
        let process = Arc::clone(&self.process);
        let mut memory = process.memory.lock();
        for _ in 0..BURST {
            match cpu::step(&mut self.regs, &mut self.fp, &mut memory) {
                Step::Next => {}
                Step::Exception(exception) => return Some(Trap::Exception(exception)),
                Step::Syscall { native } => return Some(Trap::Syscall(self.system_call(native))),
            }
        }
        None
    }

    /// The registers as a `syscall` or another entry (not `native`) leaves them.
    fn system_call(&mut self, native: bool) -> SyscallEntry {
        let regs = &mut self.regs;
        let args = [regs.rdi, regs.rsi, regs.rdx, regs.r10, regs.r8, regs.r9];
        let entry = SyscallEntry { number: regs.rax, args, native };
        if native {
            regs.rcx = regs.rip;
            regs.r11 = regs.rflags;
        }
        regs.rax = Errno::ENOSYS.as_result();
        entry
    }

    fn dead(&self) -> bool {
        self.process.killed.load(Ordering::Acquire)
    }

    fn host_call(&mut self, call: &HostCall<'_>) -> Result<u64, HostCallError> {
        if self.dead() {
            return Err(HostCallError::Died);
        }
        if let HostCall::Futex(futex) = call {
            return self.futex(futex);
        }
        self.change_memory(call).map_err(HostCallError::Failed)
    }

    fn change_memory(&mut self, call: &HostCall<'_>) -> Result<u64, Errno> {
        let check = |addr: UserAddr, len| if addr.in_guest_range(len) { Ok(()) } else { Err(Errno::EINVAL) };
        let mut memory = self.process.memory.lock();
        match *call {
            HostCall::Map { addr, len, prot, flags, file } => {
                check(addr, len)?;
                let has = |flag: i32| flags & flag.cast_unsigned() != 0;
                let fixed = has(libc::MAP_FIXED) || has(libc::MAP_FIXED_NOREPLACE);
                if !fixed || has(libc::MAP_HUGETLB) || has(libc::MAP_LOCKED) {
                    return Err(Errno::EINVAL);
                }
                memory.map(addr.0, len, prot, flags, file)
            }
            HostCall::Unmap { addr, len } => check(addr, len).and_then(|()| memory.unmap(addr.0, len)),
            HostCall::Protect { addr, len, prot } => {
                check(addr, len).and_then(|()| memory.protect(addr.0, len, prot))
            }
            HostCall::Remap { addr, old_len, new_len, to, keep_old } => {
                check(addr, old_len)?;
                check(to.unwrap_or(addr), new_len)?;
                memory.remap(addr.0, old_len, new_len, to.map(|to| to.0), keep_old)
            }
            HostCall::Advise { addr, len, advice } => {
                check(addr, len)?;
                if matches!(advice, libc::MADV_REMOVE | libc::MADV_HWPOISON | libc::MADV_MERGEABLE) {
                    return Err(Errno::EINVAL);
                }
                memory.advise(addr.0, len, advice)
            }
            HostCall::UnmapAll => {
                memory.unmap_all();
                Ok(0)
            }
            HostCall::Futex(_) => Err(Errno::EINVAL),
            // As a host before 5.16.
            HostCall::FutexWaitv { .. } => Err(Errno::ENOSYS),
            // All threads run under one lock.
            HostCall::Membarrier(_) => Ok(0),
        }
    }

    fn futex(&mut self, call: &FutexCall) -> Result<u64, HostCallError> {
        const ALL: u32 = u32::MAX;
        let command = call.op & !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME).cast_unsigned();
        let key = self.key(call.uaddr)?;
        let futexes = &self.process.world.futexes;
        let word = || read_word(&mut self.process.memory.lock(), call.uaddr);
        match command.cast_signed() {
            libc::FUTEX_WAKE => Ok(futexes.wake(key, call.val, ALL)),
            libc::FUTEX_WAKE_BITSET => Ok(futexes.wake(key, call.val, call.val3)),
            wait @ (libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET) => {
                let bits = if wait == libc::FUTEX_WAIT { ALL } else { call.val3 };
                let leave = || self.dead() || self.kick.pending.load(Ordering::Acquire);
                match futexes.wait(key, call, bits, word, leave) {
                    End::Woken => Ok(0),
                    End::TimedOut => Err(HostCallError::Failed(Errno::ETIMEDOUT)),
                    End::Changed => Err(HostCallError::Failed(Errno::EAGAIN)),
                    End::Left if self.dead() => Err(HostCallError::Died),
                    End::Left => {
                        self.kick.pending.swap(false, Ordering::AcqRel);
                        Err(HostCallError::Interrupted)
                    }
                }
            }
            requeue @ (libc::FUTEX_REQUEUE | libc::FUTEX_CMP_REQUEUE) => {
                let to = self.key(call.uaddr2)?;
                let unchanged = || requeue == libc::FUTEX_REQUEUE || word() == call.val3;
                futexes.requeue(key, to, (call.val, call.val2), unchanged).map_err(HostCallError::Failed)
            }
            _ => Err(HostCallError::Failed(Errno::ENOSYS)),
        }
    }

    fn key(&self, word: UserAddr) -> Result<Key, HostCallError> {
        let memory = self.process.memory.lock();
        if !word.in_guest_range(4) || memory.check(word.0, libc::PROT_READ).is_err() {
            return Err(HostCallError::Failed(Errno::EFAULT));
        }
        Ok(memory.shared_key(word.0).unwrap_or((Arc::as_ptr(&self.process.memory).addr(), word.0)))
    }
}

fn read_word(memory: &mut Memory, at: UserAddr) -> u32 {
    let mut bytes = [0; 4];
    memory.read(at.0, &mut bytes, Reach::Mapped);
    u32::from_le_bytes(bytes)
}

impl Context for MockThread {
    fn run(&mut self) -> Trap {
        loop {
            if let Some(trap) = self.burst() {
                return trap;
            }
            std::thread::yield_now();
        }
    }

    fn step(&mut self) -> Trap {
        if self.regs.rflags & step::FLAG != 0 {
            return self.run();
        }
        let step = step::Step::at(&*self.process, self.regs.rip);
        self.regs.rflags |= step::FLAG;
        let trap = self.run();
        step.end(trap, &mut self.regs)
    }

    fn set_result(&mut self, value: u64) {
        self.regs.rax = value;
    }

    fn registers(&mut self) -> &Registers {
        &self.regs
    }

    fn registers_mut(&mut self) -> &mut Registers {
        &mut self.regs
    }

    fn fp_state(&mut self) -> Result<Vec<u8>, Errno> {
        if self.dead() { Err(Errno::ESRCH) } else { Ok(self.fp.clone()) }
    }

    fn set_fp_state(&mut self, xsave: &[u8]) -> Result<(), Errno> {
        if !cpu::valid_fp(xsave) {
            return Err(Errno::EINVAL);
        }
        self.fp = xsave.to_vec();
        Ok(())
    }

    fn reset_fp_state(&mut self) -> Result<(), Errno> {
        self.fp = cpu::fresh_fp();
        Ok(())
    }

    fn host_calls(&mut self, calls: &[HostCall<'_>]) -> Result<u64, HostCallFailure> {
        let mut result = 0;
        for (index, call) in calls.iter().enumerate() {
            result = self.host_call(call).map_err(|error| HostCallFailure { index, error })?;
        }
        Ok(result)
    }

    fn compare_exchange(&mut self, at: UserAddr, old: u32, new: u32) -> Result<u32, Errno> {
        let mut memory = self.process.memory.lock();
        let usable = at.in_guest_range(4)
            && at.0.is_multiple_of(4)
            && memory.check(at.0, libc::PROT_READ | libc::PROT_WRITE).is_ok();
        if !usable || self.dead() {
            return Err(Errno::EFAULT);
        }
        let found = read_word(&mut memory, at);
        if found == old {
            memory.write(at.0, &new.to_le_bytes(), Reach::Mapped);
        }
        Ok(found)
    }

    fn space(&self) -> &Arc<dyn AddressSpace> {
        &self.space
    }

    fn fork(&mut self) -> Result<NewProcess, PlatformError> {
        let memory = Arc::new(Mutex::new(self.process.memory.lock().clone()));
        Ok(Process::start(&self.process.world, memory, self.regs, self.fp.clone()))
    }

    fn fork_sharing_memory(&mut self) -> Result<NewProcess, PlatformError> {
        let memory = Arc::clone(&self.process.memory);
        Ok(Process::start(&self.process.world, memory, self.regs, self.fp.clone()))
    }

    fn new_thread(&mut self) -> Result<Box<dyn NewContext>, PlatformError> {
        let process = Arc::clone(&self.process);
        Ok(Box::new(NewMockThread { process, regs: self.regs, fp: self.fp.clone() }))
    }

    fn interrupter(&self) -> Arc<dyn Interrupter> {
        Arc::clone(&self.kick) as Arc<dyn Interrupter>
    }

    fn meter(&self) -> Arc<dyn Meter> {
        Arc::new(NoMeter)
    }

    fn set_cpus(&mut self, _: &[u64]) {}
}

/// Time does not pass in the mock.
struct NoMeter;

impl Meter for NoMeter {
    fn read(&self) -> HostUsage {
        HostUsage::default()
    }
}
