//! Signal frames: what lies on the stack while a handler runs, and the way back (`rt_sigreturn`).

use abi::{
    Errno, Fpstate, FpxSwBytes, RtSigframe, SaFlags, SigSet, Sigaction, Sigaltstack, Sigcontext, Siginfo,
    SsFlags, UcFlags, Ucontext, UserAddr,
};
use platform::Registers;
use sync::SysResult;
use zerocopy::{FromBytes, IntoBytes};

use crate::syscall::Outcome;
use crate::task::CurrentTask;

/// Bytes below the stack pointer that the ABI leaves to leaf functions.
const RED_ZONE: u64 = 128;
/// Where in the legacy area the software-reserved bytes are.
const SW_RESERVED: usize = 464;
const LEGACY_SIZE: usize = 512;

impl CurrentTask {
    /// Pushes the frame for `action`'s handler and points the registers at it. `mask` is what the return restores.
    /// `EFAULT`: the stack cannot take it.
    pub(super) fn push_frame(&mut self, action: &Sigaction, info: &Siginfo, mask: SigSet) -> SysResult<()> {
        // Linux on x86-64 has no other way back than the restorer.
        if !action.flags.contains(SaFlags::RESTORER) {
            return Err(Errno::EFAULT.into());
        }
        self.leave_trampoline();
        let mut xsave = self.context.fp_state()?;
        let old = *self.context.registers();
        let alternate = self.alternate_stack();
        let on_alternate = is_on_stack(&alternate, old.rsp);
        let mut sp = old.rsp.wrapping_sub(RED_ZONE);
        let mut bounded = on_alternate;
        if action.flags.contains(SaFlags::ONSTACK) && !on_alternate && is_enabled(&alternate) {
            sp = alternate.sp.wrapping_add(alternate.size);
            bounded = true;
        }
        let xsave_size = xsave.len() as u64;
        let fpstate = sp.wrapping_sub(xsave_size + 4) & !(RtSigframe::XSTATE_ALIGN - 1);
        let frame_at = (fpstate.wrapping_sub(size_of::<RtSigframe>() as u64) & !15).wrapping_sub(8);
        // A handler's stack that overflows into what lies below it would corrupt memory silently.
        if bounded && !holds(&alternate, frame_at) {
            return Err(Errno::EFAULT.into());
        }
        let features = self.kernel().platform.capabilities().xsave_features;
        mark_extended(&mut xsave, features)?;
        xsave.extend_from_slice(&FpxSwBytes::MAGIC2.to_le_bytes());
        let frame = RtSigframe {
            pretcode: action.restorer,
            uc: Ucontext {
                flags: UcFlags::FP_XSTATE | UcFlags::SIGCONTEXT_SS | UcFlags::STRICT_RESTORE_SS,
                link: 0,
                // The flags as they were set, whether it is in use or not (Linux: `__save_altstack`).
                stack: alternate,
                mcontext: to_sigcontext(&old, fpstate, mask, &self.last_fault),
                sigmask: mask,
            },
            info: *info,
        };
        self.mm.write_bytes(UserAddr(fpstate), &xsave)?;
        self.mm.write_bytes(UserAddr(frame_at), frame.as_bytes())?;
        // A handler begins with default rounding and exception masks (Linux: `fpu__clear_user_states`).
        self.context.reset_fp_state()?;
        if alternate.flags.contains(SsFlags::AUTODISARM) {
            self.put_alternate_stack(&Sigaltstack::DISABLED);
        }
        let registers = self.context.registers_mut();
        registers.rdi = u64::from(info.signo.0.unsigned_abs());
        registers.rsi = frame_at + std::mem::offset_of!(RtSigframe, info) as u64;
        registers.rdx = frame_at + std::mem::offset_of!(RtSigframe, uc) as u64;
        registers.rax = 0;
        registers.rip = action.handler;
        registers.rsp = frame_at;
        registers.cs = Registers::USER_CS;
        registers.ss = Registers::USER_SS;
        // Direction, resume and trap flags are off in a handler.
        registers.rflags &= !0x1_0500;
        Ok(())
    }

    /// Goes back to what a handler interrupted. A frame that makes no sense is SIGSEGV.
    fn pop_frame(&mut self) -> SysResult<()> {
        let frame_at = UserAddr(self.context.registers().rsp.wrapping_sub(8));
        let frame: RtSigframe = self.mm.read(frame_at)?;
        let context = frame.uc.mcontext;
        // Selectors get user privilege (Linux: `restore_sigcontext`); with others than these two the way back faults. The
        // stack's is looked at only where the frame says so, else it is made right (`force_valid_ss`).
        let strict = frame.uc.flags.contains(UcFlags::STRICT_RESTORE_SS);
        if u64::from(context.cs | 3) != Registers::USER_CS
            || (strict && u64::from(context.ss | 3) != Registers::USER_SS)
        {
            return Err(Errno::EFAULT.into());
        }
        match context.fpstate {
            0 => self.context.reset_fp_state()?,
            at => self.restore_extended(UserAddr(at))?,
        }
        self.set_blocked(frame.uc.sigmask);
        let handler = *self.context.registers();
        *self.context.registers_mut() = from_sigcontext(&context, &handler);
        self.may_be_covered = true;
        // One that is in use still (by the handler), or makes no sense, is left as it is, as on Linux.
        let before = self.alternate_stack();
        let _ = self.change_alternate_stack(&before, &frame.uc.stack, handler.rsp);
        Ok(())
    }

    fn restore_extended(&mut self, at: UserAddr) -> SysResult<()> {
        let size = self.kernel().platform.capabilities().xsave_size;
        let legacy: Fpstate = self.mm.read(at)?;
        let marks = legacy.sw_reserved;
        let declared = usize::try_from(marks.xstate_size).unwrap_or(0);
        let mut area = vec![0; size];
        let full = marks.magic1 == FpxSwBytes::MAGIC1
            && (LEGACY_SIZE + 64..=size).contains(&declared)
            && u64::from(marks.extended_size) >= declared as u64 + 4
            && self.mm.read::<u32>(UserAddr(at.0.wrapping_add(declared as u64))).ok()
                == Some(FpxSwBytes::MAGIC2);
        if full {
            self.mm.read_bytes(at, area.get_mut(..declared).unwrap_or(&mut []))?;
        } else {
            // Only x87 and SSE are in it: the rest becomes what a new process has.
            self.mm.read_bytes(at, area.get_mut(..LEGACY_SIZE).unwrap_or(&mut []))?;
            put(&mut area, LEGACY_SIZE, &3u64.to_le_bytes());
        }
        self.context.set_fp_state(&area)?;
        Ok(())
    }
}

/// `rt_sigreturn`.
pub fn sys_rt_sigreturn(task: &mut CurrentTask) -> SysResult<Outcome> {
    task.no_restart();
    if task.pop_frame().is_err() {
        task.force_signal(Siginfo::kill(abi::Signal::SEGV, abi::SiCode::KERNEL, 0, 0));
    }
    Ok(Outcome::Resumed)
}

fn put(area: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = area.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

/// Writes into an XSAVE area what tells readers of the frame how far it goes.
fn mark_extended(xsave: &mut [u8], features: u64) -> SysResult<()> {
    let size = u32::try_from(xsave.len()).map_err(|_| Errno::EFAULT)?;
    let marks = FpxSwBytes {
        magic1: FpxSwBytes::MAGIC1,
        extended_size: size + 4,
        xfeatures: features,
        xstate_size: size,
        padding: [0; 7],
    };
    put(xsave, SW_RESERVED, marks.as_bytes());
    // x87 and SSE are always valid in a frame.
    if let Some(header) = xsave.get(LEGACY_SIZE..LEGACY_SIZE + 8)
        && let Ok(bits) = u64::read_from_bytes(header)
    {
        put(xsave, LEGACY_SIZE, &(bits | 3).to_le_bytes());
    }
    Ok(())
}

/// Whether an alternate stack is set: it is the size that says so.
fn is_enabled(stack: &Sigaltstack) -> bool {
    stack.size != 0
}

/// Whether `sp` is on it, as far as that matters: with AUTODISARM one never is (Linux: `on_sig_stack`).
pub(super) fn is_on_stack(stack: &Sigaltstack, sp: u64) -> bool {
    is_enabled(stack) && !stack.flags.contains(SsFlags::AUTODISARM) && holds(stack, sp)
}

/// Linux: `__on_sig_stack`. The stack's end is not on it, its start is not either.
fn holds(stack: &Sigaltstack, sp: u64) -> bool {
    sp > stack.sp && sp - stack.sp <= stack.size
}

/// The flags that `sigaltstack` reports.
pub(super) fn stack_flags(stack: &Sigaltstack, sp: u64) -> SsFlags {
    let mode = if !is_enabled(stack) {
        SsFlags::DISABLE
    } else if is_on_stack(stack, sp) {
        SsFlags::ONSTACK
    } else {
        SsFlags::empty()
    };
    mode | (stack.flags & SsFlags::AUTODISARM)
}

fn to_sigcontext(
    r: &Registers,
    fpstate: u64,
    mask: SigSet,
    fault: &crate::task::run::LastFault,
) -> Sigcontext {
    Sigcontext {
        r8: r.r8,
        r9: r.r9,
        r10: r.r10,
        r11: r.r11,
        r12: r.r12,
        r13: r.r13,
        r14: r.r14,
        r15: r.r15,
        rdi: r.rdi,
        rsi: r.rsi,
        rbp: r.rbp,
        rbx: r.rbx,
        rdx: r.rdx,
        rax: r.rax,
        rcx: r.rcx,
        rsp: r.rsp,
        rip: r.rip,
        eflags: r.rflags,
        cs: 0x33,
        gs: 0,
        fs: 0,
        ss: 0x2b,
        err: fault.error_code,
        trapno: fault.trap_number,
        oldmask: mask.0,
        cr2: fault.address,
        fpstate,
        reserved1: [0; 8],
    }
}

fn from_sigcontext(c: &Sigcontext, now: &Registers) -> Registers {
    Registers {
        r8: c.r8,
        r9: c.r9,
        r10: c.r10,
        r11: c.r11,
        r12: c.r12,
        r13: c.r13,
        r14: c.r14,
        r15: c.r15,
        rdi: c.rdi,
        rsi: c.rsi,
        rbp: c.rbp,
        rbx: c.rbx,
        rdx: c.rdx,
        rax: c.rax,
        rcx: c.rcx,
        rsp: c.rsp,
        rip: c.rip,
        rflags: (now.rflags & !Registers::USER_FLAGS) | (c.eflags & Registers::USER_FLAGS),
        cs: Registers::USER_CS,
        ss: Registers::USER_SS,
        ..*now
    }
}
