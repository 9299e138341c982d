//! The arguments of `prctl` and `arch_prctl`.

use abi::{ArchPrctlOp, CapAmbientOp, Capability, PrctlOp, PrctlTsc, PrctlVma, SecureBits, Signal, UserAddr};

use super::{Phase, Printer};

/// One of the four arguments behind the operation; those that an operation does not have print nothing.
pub(crate) fn argument(printer: &mut Printer<'_>, value: u64) {
    let op = PrctlOp(low(printer.words.first().copied().unwrap_or(0)));
    let addr = UserAddr(value);
    let number = u32::try_from(value & 0xffff_ffff).unwrap_or(0);
    match (op, printer.start) {
        (PrctlOp::GET_DUMPABLE, 1) => dumpable_result(printer),
        (
            PrctlOp::GET_KEEPCAPS
            | PrctlOp::GET_SECCOMP
            | PrctlOp::GET_SECUREBITS
            | PrctlOp::GET_TIMERSLACK
            | PrctlOp::GET_TIMING
            | PrctlOp::GET_DUMPABLE,
            _,
        ) => {}
        (PrctlOp::SET_PDEATHSIG, 1) => printer.text(format_args!("{}", Signal(number.cast_signed()))),
        (PrctlOp::GET_PDEATHSIG, 1) => {
            printer.after(addr, |printer, _| match printer.value::<i32>(addr).map(Signal) {
                Some(signal) if signal.0 != 0 => printer.text(format_args!("[{signal}]")),
                Some(_) => printer.out.push_str("[0]"),
                None => printer.address(addr),
            })
        }
        (PrctlOp::SET_DUMPABLE, 1) => match number {
            0 => printer.out.push_str("SUID_DUMP_DISABLE"),
            1 => printer.out.push_str("SUID_DUMP_USER"),
            other => printer.text(format_args!("{other}")),
        },
        (PrctlOp::SET_NAME, 1) => printer.c_string(addr),
        (PrctlOp::GET_NAME, 1) => printer.after(addr, |printer, _| printer.c_string(addr)),
        (PrctlOp::CAPBSET_READ | PrctlOp::CAPBSET_DROP, 1) => {
            printer.text(format_args!("{}", Capability(number)))
        }
        (PrctlOp::SET_SECUREBITS, 1) => {
            printer.text(format_args!("{}", SecureBits::from_bits_retain(number)));
        }
        (PrctlOp::GET_TSC, 1) => printer.after(addr, |printer, _| match printer.value::<i32>(addr) {
            Some(mode) => printer.text(format_args!("[{}]", PrctlTsc(mode))),
            None => printer.address(addr),
        }),
        (PrctlOp::SET_TSC, 1) => printer.text(format_args!("{}", PrctlTsc(number.cast_signed()))),
        (PrctlOp::GET_CHILD_SUBREAPER, 1) => printer.after(addr, |printer, _| printer.structure::<i32>(addr)),
        (PrctlOp::GET_TID_ADDRESS, 1) => printer.after(addr, |printer, _| match printer.value::<u64>(addr) {
            Some(at) => printer.text(format_args!("[{:#x}]", at)),
            None => printer.address(addr),
        }),
        (PrctlOp::CAP_AMBIENT, 1) => printer.text(format_args!("{}", CapAmbientOp(number.cast_signed()))),
        (PrctlOp::CAP_AMBIENT, 2) => printer.text(format_args!("{}", Capability(number))),
        (PrctlOp::SET_VMA, 1) => printer.text(format_args!("{}", PrctlVma(number.cast_signed()))),
        (PrctlOp::SET_VMA, 2) => printer.address(addr),
        (PrctlOp::SET_VMA, 4) => printer.c_string(addr),
        (PrctlOp::GET_AUXV, 1) => printer.address(addr),
        (
            PrctlOp::SET_PDEATHSIG
            | PrctlOp::GET_PDEATHSIG
            | PrctlOp::SET_DUMPABLE
            | PrctlOp::SET_NAME
            | PrctlOp::GET_NAME
            | PrctlOp::CAPBSET_READ
            | PrctlOp::CAPBSET_DROP
            | PrctlOp::SET_SECUREBITS
            | PrctlOp::GET_TSC
            | PrctlOp::SET_TSC
            | PrctlOp::GET_CHILD_SUBREAPER
            | PrctlOp::SET_CHILD_SUBREAPER
            | PrctlOp::GET_TID_ADDRESS
            | PrctlOp::SET_KEEPCAPS
            | PrctlOp::SET_TIMERSLACK,
            2..,
        ) => {}
        _ if op.name().is_none() => printer.text(format_args!("{value:#x}")),
        _ => printer.text(format_args!("{value}")),
    }
}

fn dumpable_result(printer: &mut Printer<'_>) {
    match printer.phase {
        Phase::Before => printer.again = true,
        Phase::After(Ok(value)) => {
            let name = ["SUID_DUMP_DISABLE", "SUID_DUMP_USER", "SUID_DUMP_ROOT"].get(value);
            printer.result = name.map(|name| format!("{value} ({name})"));
        }
        Phase::After(Err(_)) => {}
    }
}

fn low(word: u64) -> i32 {
    u32::try_from(word & 0xffff_ffff).unwrap_or(0).cast_signed()
}

/// The argument of `arch_prctl`.
pub(crate) fn arch_argument(printer: &mut Printer<'_>, value: u64) {
    let code = ArchPrctlOp(low(printer.register_before(1)));
    let addr = UserAddr(value);
    match code {
        ArchPrctlOp::GET_FS
        | ArchPrctlOp::GET_GS
        | ArchPrctlOp::GET_XCOMP_SUPP
        | ArchPrctlOp::GET_XCOMP_PERM => {
            printer.after(addr, |printer, _| match printer.value::<u64>(addr) {
                Some(base) => printer.text(format_args!("[{base:#x}]")),
                None => printer.address(addr),
            });
        }
        _ => printer.text(format_args!("{value:#x}")),
    }
}
