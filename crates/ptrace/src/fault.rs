//! What the processor said of a fault, which the host does not tell a tracer: trap number and error code, found out
//! from the signal and the instruction.
//!
//! A page fault's error code tells read, write or fetch, so the instruction is decoded and its memory operands are
//! computed. What cannot be known is taken for the usual: a page that may not be accessed as wanted
//! (`SEGV_ACCERR`) is taken for present.

use iced_x86::{
    CpuidFeature, Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register, UsedMemory,
};
use platform::{Exception, Registers};

/// Bytes of the longest instruction.
const LONGEST: usize = 15;
const GENERAL_PROTECTION: u64 = 13;
const STACK_SEGMENT: u64 = 12;
const PAGE_FAULT: u64 = 14;
const X87: u64 = 16;
const ALIGNMENT: u64 = 17;
const SIMD: u64 = 19;
const PRESENT: u64 = 1;
const WRITE: u64 = 2;
const USER: u64 = 4;
const FETCH: u64 = 16;
/// An error code's selector is of the interrupt table.
const INTERRUPT: u64 = 2;
const BUS_ADRALN: i32 = 1;
const SI_KERNEL: i32 = 0x80;
const SEGV_ACCERR: i32 = 2;
const FPE_INTDIV: i32 = 1;
/// Addresses from here on are not user memory: the host calls every fault there one of protection
/// (`arch/x86/mm/fault.c`, `set_signal_archinfo`).
const TASK_SIZE_MAX: u64 = 0x7fff_ffff_f000;

/// Completes `exception`, raised at these registers by the process `tgid`.
pub(crate) fn complete(exception: Exception, tgid: i32, regs: &Registers) -> Exception {
    let instruction = || fetch(tgid, regs.rip);
    let (trap, error_code) = match (exception.signal, exception.code) {
        (libc::SIGBUS, SI_KERNEL) => (STACK_SEGMENT, 0),
        (libc::SIGBUS, BUS_ADRALN) => (ALIGNMENT, 0),
        (libc::SIGSEGV, SI_KERNEL) => (GENERAL_PROTECTION, selector(instruction(), regs)),
        (libc::SIGSEGV | libc::SIGBUS, _) => (PAGE_FAULT, page_fault(&exception, instruction(), regs)),
        (libc::SIGFPE, code) if code != FPE_INTDIV => (floating_point(instruction()), 0),
        _ => return exception,
    };
    Exception { trap, error_code, ..exception }
}

/// The instruction there, if it can be read and is one.
fn fetch(tgid: i32, rip: u64) -> Option<Instruction> {
    let mut bytes = [0u8; LONGEST];
    // In two parts: the next page may not be there.
    let first = LONGEST.min((abi::PAGE_SIZE - rip % abi::PAGE_SIZE) as usize);
    let parts = [(rip, first), (rip.wrapping_add(first as u64), LONGEST - first)];
    let parts = if first == LONGEST { parts.get(..1)? } else { &parts[..] };
    let count = host::vm::read_process(tgid, parts, &mut bytes).ok()?;
    let mut decoder = Decoder::with_ip(64, bytes.get(..count)?, rip, DecoderOptions::NONE);
    let instruction = decoder.decode();
    (!instruction.is_invalid()).then_some(instruction)
}

fn page_fault(exception: &Exception, instruction: Option<Instruction>, regs: &Registers) -> u64 {
    let at = exception.addr.0;
    let present = exception.code == SEGV_ACCERR || at >= TASK_SIZE_MAX;
    let base = USER | if present { PRESENT } else { 0 };
    let fetched = (regs.rip..regs.rip.saturating_add(LONGEST as u64)).contains(&at);
    let Some(instruction) = instruction else { return base | if fetched { FETCH } else { 0 } };
    let mut factory = InstructionInfoFactory::new();
    let operands = factory.info(&instruction).used_memory();
    let hit = operands.iter().find(|operand| covers(operand, at, regs));
    match (hit, operands) {
        (Some(operand), _) => base | written(operand),
        (None, _) if fetched => base | FETCH,
        // What is longer than its first byte tells, or indexed by vectors.
        (None, operands) => base | operands.iter().map(written).max().unwrap_or(0),
    }
}

fn written(operand: &UsedMemory) -> u64 {
    match operand.access() {
        OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite => WRITE,
        _ => 0,
    }
}

fn covers(operand: &UsedMemory, at: u64, regs: &Registers) -> bool {
    let start = operand.virtual_address(0, |register, _, _| value(register, regs));
    start.is_some_and(|start| at.wrapping_sub(start) < (operand.memory_size().size() as u64).max(1))
}

/// What a register holds in an address: segment registers give their base.
fn value(register: Register, regs: &Registers) -> Option<u64> {
    let full = match register.full_register() {
        Register::RAX => regs.rax,
        Register::RCX => regs.rcx,
        Register::RDX => regs.rdx,
        Register::RBX => regs.rbx,
        Register::RSP => regs.rsp,
        Register::RBP => regs.rbp,
        Register::RSI => regs.rsi,
        Register::RDI => regs.rdi,
        Register::R8 => regs.r8,
        Register::R9 => regs.r9,
        Register::R10 => regs.r10,
        Register::R11 => regs.r11,
        Register::R12 => regs.r12,
        Register::R13 => regs.r13,
        Register::R14 => regs.r14,
        Register::R15 => regs.r15,
        Register::RIP => regs.rip,
        Register::FS => return Some(regs.fs_base),
        Register::GS => return Some(regs.gs_base),
        Register::CS | Register::DS | Register::ES | Register::SS => return Some(0),
        _ => return None,
    };
    Some(if register.size() == 4 { full & u64::from(u32::MAX) } else { full })
}

/// The error code of a general protection fault: the selector that was at fault, else 0.
fn selector(instruction: Option<Instruction>, regs: &Registers) -> u64 {
    let Some(instruction) = instruction else { return 0 };
    match instruction.mnemonic() {
        Mnemonic::Int => u64::from(instruction.immediate8()) << 3 | INTERRUPT,
        Mnemonic::Mov if instruction.op0_register().is_segment_register() => {
            let loaded = (instruction.op1_kind() == OpKind::Register)
                .then(|| value(instruction.op1_register(), regs))
                .flatten();
            loaded.unwrap_or(0) & 0xfffc
        }
        _ => 0,
    }
}

/// Which unit an instruction's floating-point exception is of.
fn floating_point(instruction: Option<Instruction>) -> u64 {
    let Some(instruction) = instruction else { return X87 };
    let x87 = |feature: &CpuidFeature| {
        let units = [CpuidFeature::FPU, CpuidFeature::FPU287, CpuidFeature::FPU387, CpuidFeature::MMX];
        units.contains(feature)
    };
    let waits = matches!(instruction.mnemonic(), Mnemonic::Wait);
    if waits || instruction.cpuid_features().iter().any(x87) { X87 } else { SIMD }
}
