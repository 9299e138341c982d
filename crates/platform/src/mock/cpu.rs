//! The mock's processor: exactly the instructions of [`code`](crate::code).

use abi::{GUEST_TOP, UserAddr};

use super::memory::{Denied, Memory};
use crate::step::FLAG as TRAP_FLAG;
use crate::{Exception, Reach, Registers};

/// Bytes of the extended state: the legacy area and the header.
pub(super) const FP_SIZE: usize = 576;
const MXCSR: usize = 24;
const XMM0: usize = 160;
const HEADER: usize = 512;
const TRAP_TRACE: i32 = 2;
const SI_KERNEL: i32 = 0x80;
/// Flags that are always set: bit 1, which has no meaning, and IF.
const FLAGS_ALWAYS: u64 = 0x202;

/// The extended state of a fresh process.
pub(super) fn fresh_fp() -> Vec<u8> {
    let mut fp = vec![0; FP_SIZE];
    put(&mut fp, 0, &[0x7f, 0x03]);
    put(&mut fp, MXCSR, &0x1f80u32.to_le_bytes());
    fp
}

/// Whether the processor would load it: no unknown feature, no reserved bit in MXCSR or the header.
pub(super) fn valid_fp(fp: &[u8]) -> bool {
    let features = fp.get(HEADER..HEADER + 8);
    let reserved = fp.get(HEADER + 8..FP_SIZE);
    let mxcsr = fp.get(MXCSR..MXCSR + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
    fp.len() == FP_SIZE
        && features.is_some_and(|bytes| matches!(bytes, [0..=3, 0, 0, 0, 0, 0, 0, 0]))
        && reserved.is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0))
        && mxcsr.is_some_and(|mxcsr| mxcsr & !0xffff == 0)
}

/// What an instruction did.
pub(super) enum Step {
    Next,
    Syscall { native: bool },
    Exception(Exception),
}

/// Executes one instruction. A fault leaves the instruction pointer where it was.
pub(super) fn step(regs: &mut Registers, fp: &mut [u8], memory: &mut Memory) -> Step {
    let stepped = regs.rflags & TRAP_FLAG != 0;
    let start = regs.rip;
    let mut machine = Machine { regs: &mut *regs, fp, memory, start };
    let done = machine.execute();
    let start = machine.start;
    match done {
        // A system call's way back swallows the trap behind it, as the host's does.
        Ok(Step::Next) if stepped => Step::Exception(trap(libc::SIGTRAP, TRAP_TRACE, regs.rip)),
        Ok(step) => step,
        Err(exception) => {
            regs.rip = start;
            Step::Exception(exception)
        }
    }
}

struct Machine<'a> {
    regs: &'a mut Registers,
    fp: &'a mut [u8],
    memory: &'a mut Memory,
    start: u64,
}

impl Machine<'_> {
    /// The next `count` bytes of code, at most 8.
    fn next(&mut self, count: u64) -> Result<u64, Exception> {
        let value = fetch(self.memory, self.regs.rip, count)?;
        self.regs.rip = self.regs.rip.wrapping_add(count);
        Ok(value)
    }

    fn illegal(&self) -> Exception {
        const ILL_ILLOPN: i32 = 2;
        trap(libc::SIGILL, ILL_ILLOPN, self.start)
    }

    fn execute(&mut self) -> Result<Step, Exception> {
        match self.next(1)? {
            0x90 => {}
            0xcc => return Ok(Step::Exception(trap(libc::SIGTRAP, SI_KERNEL, 0))),
            0xcd => match self.next(1)? {
                0x80 => return Ok(Step::Syscall { native: false }),
                _ => return Err(trap(libc::SIGSEGV, SI_KERNEL, 0)),
            },
            0x68 => {
                let value = i64::from((self.next(4)? as u32).cast_signed());
                self.push(value.cast_unsigned())?;
            }
            // Everything is there, TF too, whoever has set it.
            0x9c => self.push(self.regs.rflags)?,
            0x9d => {
                let flags = load(self.memory, self.regs.rsp)?;
                self.regs.rsp = self.regs.rsp.wrapping_add(8);
                self.regs.rflags = flags & Registers::USER_FLAGS | FLAGS_ALWAYS;
            }
            0x8e if self.next(1)? == 0xd0 => {
                if self.regs.rax & 0xffff != Registers::USER_SS {
                    return Err(trap(libc::SIGSEGV, SI_KERNEL, 0));
                }
                // No trap comes between it and the next instruction.
                self.start = self.regs.rip;
                return self.execute();
            }
            0xf3 if self.next(1)? == 0xaa && self.regs.rcx != 0 => {
                store_byte(self.memory, self.regs.rdi, self.regs.rax as u8)?;
                self.regs.rdi = self.regs.rdi.wrapping_add(1);
                self.regs.rcx -= 1;
                if self.regs.rcx > 0 {
                    self.regs.rip = self.start;
                }
            }
            0xc3 => {
                self.regs.rip = load(self.memory, self.regs.rsp)?;
                self.regs.rsp = self.regs.rsp.wrapping_add(8);
            }
            0x0f => match self.next(1)? {
                0x05 => return Ok(Step::Syscall { native: true }),
                _ => return Err(self.illegal()),
            },
            0xe9 => {
                let distance = self.next(4)? as u32;
                self.regs.rip = self.regs.rip.wrapping_add_signed(i64::from(distance.cast_signed()));
            }
            0xf7 if self.next(1)? == 0xf1 => self.divide()?,
            0x64 if self.next(4)? == 0x2504_8b48 && self.next(4)? == 0 => {
                self.regs.rax = load(self.memory, self.regs.fs_base)?;
            }
            0x66 => match self.next(4)? {
                0xc06e_0f48 => {
                    put(self.fp, XMM0, &u128::from(self.regs.rax).to_le_bytes());
                    // SSE is in use from now on.
                    let features = self.fp.get(HEADER).copied().unwrap_or(0);
                    put(self.fp, HEADER, &[features | 2]);
                }
                0xc07e_0f48 => self.regs.rax = word(self.fp, XMM0),
                _ => return Err(self.illegal()),
            },
            prefix @ (0x48 | 0x49) => self.wide(prefix)?,
            _ => return Err(self.illegal()),
        }
        Ok(Step::Next)
    }

    /// The instructions on 64-bit operands.
    fn wide(&mut self, prefix: u64) -> Result<(), Exception> {
        let opcode = self.next(1)?;
        match (prefix, opcode) {
            (_, 0xb8..=0xbf) => {
                let value = self.next(8)?;
                *register(self.regs, (prefix & 1) << 3 | opcode & 7) = value;
                Ok(())
            }
            (0x48, 0x89) if self.next(1)? == 0x07 => store(self.memory, self.regs.rdi, self.regs.rax),
            (0x48, 0x8b) if self.next(1)? == 0x07 => {
                self.regs.rax = load(self.memory, self.regs.rdi)?;
                Ok(())
            }
            (0x48, 0xff) if self.next(1)? == 0x07 => {
                let value = load(self.memory, self.regs.rdi)?;
                store(self.memory, self.regs.rdi, value.wrapping_add(1))
            }
            _ => Err(self.illegal()),
        }
    }

    fn push(&mut self, value: u64) -> Result<(), Exception> {
        let at = self.regs.rsp.wrapping_sub(8);
        store(self.memory, at, value)?;
        self.regs.rsp = at;
        Ok(())
    }

    fn divide(&mut self) -> Result<(), Exception> {
        const FPE_INTDIV: i32 = 1;
        let divisor = self.regs.rcx & 0xffff_ffff;
        let dividend = self.regs.rdx << 32 | self.regs.rax & 0xffff_ffff;
        match dividend.checked_div(divisor) {
            Some(quotient) if quotient >> 32 == 0 => {
                self.regs.rax = quotient;
                self.regs.rdx = dividend % divisor;
                Ok(())
            }
            _ => Err(trap(libc::SIGFPE, FPE_INTDIV, self.start)),
        }
    }
}

fn trap(signal: i32, code: i32, addr: u64) -> Exception {
    Exception::of_signal(signal, code, UserAddr(addr))
}

fn fault(denied: Denied, at: u64) -> Exception {
    trap(libc::SIGSEGV, denied as i32, at)
}

/// `count` bytes of code, at most 8.
fn fetch(memory: &mut Memory, at: u64, count: u64) -> Result<u64, Exception> {
    let mut bytes = [0u8; 8];
    for (byte, at) in bytes.iter_mut().zip(at..at.saturating_add(count)) {
        if at >= GUEST_TOP {
            return Err(fault(Denied::NotMapped, at));
        }
        memory.check(at, libc::PROT_EXEC).map_err(|denied| fault(denied, at))?;
        // What may be executed may be read on x86-64.
        memory.read(at, std::slice::from_mut(byte), Reach::Growing);
    }
    Ok(u64::from_le_bytes(bytes))
}

fn load(memory: &mut Memory, at: u64) -> Result<u64, Exception> {
    access(memory, at, libc::PROT_READ)?;
    let mut bytes = [0; 8];
    memory.read(at, &mut bytes, Reach::Growing);
    Ok(u64::from_le_bytes(bytes))
}

fn store(memory: &mut Memory, at: u64, value: u64) -> Result<(), Exception> {
    access(memory, at, libc::PROT_WRITE)?;
    memory.write(at, &value.to_le_bytes(), Reach::Growing);
    Ok(())
}

fn store_byte(memory: &mut Memory, at: u64, value: u8) -> Result<(), Exception> {
    access_bytes(memory, at, 1, libc::PROT_WRITE)?;
    memory.write(at, &[value], Reach::Growing);
    Ok(())
}

fn access(memory: &mut Memory, at: u64, prot: i32) -> Result<(), Exception> {
    access_bytes(memory, at, 8, prot)
}

fn access_bytes(memory: &mut Memory, at: u64, count: u64, prot: i32) -> Result<(), Exception> {
    let end = at.checked_add(count).filter(|end| *end <= GUEST_TOP);
    let Some(end) = end else { return Err(trap(libc::SIGSEGV, SI_KERNEL, 0)) };
    for at in [at, end - 1] {
        memory.grow(at);
        memory.check(at, prot).map_err(|denied| fault(denied, at))?;
    }
    Ok(())
}

fn register(regs: &mut Registers, number: u64) -> &mut u64 {
    match number {
        0 => &mut regs.rax,
        1 => &mut regs.rcx,
        2 => &mut regs.rdx,
        3 => &mut regs.rbx,
        4 => &mut regs.rsp,
        5 => &mut regs.rbp,
        6 => &mut regs.rsi,
        7 => &mut regs.rdi,
        8 => &mut regs.r8,
        9 => &mut regs.r9,
        10 => &mut regs.r10,
        11 => &mut regs.r11,
        12 => &mut regs.r12,
        13 => &mut regs.r13,
        14 => &mut regs.r14,
        _ => &mut regs.r15,
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + value.len()) {
        place.copy_from_slice(value);
    }
}
