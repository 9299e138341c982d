//! The arguments of `clone` and `clone3`.

use abi::{CloneArgs, CloneFlags, Signal, UserAddr};
use zerocopy::IntoBytes;

use super::{Phase, Printer};

/// The five registers of `clone`, in strace's order: only those that the flags ask for.
pub(crate) fn registers(printer: &mut Printer<'_>) {
    let [flags, stack, parent_tid, child_tid, tls, _] = printer.words;
    let named = CloneFlags::from_bits_retain(flags);
    printer.out.push_str("child_stack=");
    printer.address(UserAddr(stack));
    printer.text(format_args!(", flags={named}"));
    let asks = |flag: CloneFlags| named.intersects(flag);
    if asks(CloneFlags::PARENT_SETTID | CloneFlags::PIDFD) {
        printer.text(format_args!(", parent_tid={}", UserAddr(parent_tid)));
    }
    if asks(CloneFlags::SETTLS) {
        printer.text(format_args!(", tls={tls:#x}"));
    }
    if asks(CloneFlags::CHILD_SETTID | CloneFlags::CHILD_CLEARTID) {
        printer.text(format_args!(", child_tidptr={}", UserAddr(child_tid)));
    }
}

/// `struct clone_args` of `size` bytes; behind it what the call wrote.
pub(crate) fn structure(printer: &mut Printer<'_>, addr: UserAddr, size: usize) {
    let mut args = CloneArgs::default();
    let part = args.as_mut_bytes().get_mut(..size.min(size_of::<CloneArgs>())).unwrap_or(&mut []);
    let wanted = part.len();
    if addr.is_null() || printer.memory.read(addr, part) < wanted {
        if printer.phase == Phase::Before {
            printer.address(addr);
            printer.text(format_args!(", {size}"));
        }
        return;
    }
    if printer.phase == Phase::Before {
        printer.deferred = true;
        return fields(printer, &args);
    }
    let before = printer.before.to_string();
    printer.out.push_str(&before);
    let mut written = Vec::new();
    if printer.succeeded().is_some() {
        for (flag, name, at) in [
            (CloneFlags::PIDFD, "pidfd", args.pidfd),
            (CloneFlags::PARENT_SETTID, "parent_tid", args.parent_tid),
        ] {
            if args.flags.contains(flag)
                && let Some(value) = printer.value::<i32>(UserAddr(at))
            {
                written.push(format!("{name}=[{value}]"));
            }
        }
    }
    if !written.is_empty() {
        printer.text(format_args!(" => {{{}}}", written.join(", ")));
    }
    printer.text(format_args!(", {size}"));
}

fn fields(printer: &mut Printer<'_>, args: &CloneArgs) {
    printer.text(format_args!("{{flags={}", args.flags.clone3()));
    for (flags, name, value) in [
        (CloneFlags::PIDFD, "pidfd", args.pidfd),
        (CloneFlags::CHILD_SETTID | CloneFlags::CHILD_CLEARTID, "child_tid", args.child_tid),
        (CloneFlags::PARENT_SETTID, "parent_tid", args.parent_tid),
    ] {
        if args.flags.intersects(flags) {
            printer.text(format_args!(", {name}={}", UserAddr(value)));
        }
    }
    let signal = i32::try_from(args.exit_signal).map(Signal).unwrap_or_default();
    match signal.0 {
        0 => printer.out.push_str(", exit_signal=0"),
        _ => printer.text(format_args!(", exit_signal={signal}")),
    }
    printer.text(format_args!(", stack={}, stack_size={:#x}", UserAddr(args.stack), args.stack_size));
    if args.flags.contains(CloneFlags::SETTLS) {
        printer.text(format_args!(", tls={:#x}", args.tls));
    }
    printer.out.push('}');
}
