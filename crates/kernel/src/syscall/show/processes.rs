//! Limits, scheduling, capabilities, the system.

use abi::{
    CapUserData, CapUserHeader, CapVersion, Rlimit, SchedAttr, SchedParam, Signal, Sysinfo, UserDesc,
    Utsname, WaitStatus,
};

use super::{Printer, Show, shown};

impl Show for Rlimit {
    fn show(&self, printer: &mut Printer<'_>) {
        printer.out.push_str("{rlim_cur=");
        limit(printer, self.cur);
        printer.out.push_str(", rlim_max=");
        limit(printer, self.max);
        printer.out.push('}');
    }
}

fn limit(printer: &mut Printer<'_>, value: u64) {
    match value {
        Rlimit::INFINITY => printer.out.push_str("RLIM64_INFINITY"),
        value if value > 1024 && value % 1024 == 0 => printer.text(format_args!("{}*1024", value / 1024)),
        value => printer.text(format_args!("{value}")),
    }
}

impl Show for SchedParam {
    fn show(&self, printer: &mut Printer<'_>) {
        printer.text(format_args!("[{}]", self.priority));
    }
}

shown! {
    SchedAttr {
        size: n size, sched_policy: n policy, sched_flags: n flags, sched_nice: n nice, sched_priority: n priority,
        sched_runtime: n runtime, sched_deadline: n deadline, sched_period: n period,
        sched_util_min: n util_min, sched_util_max: n util_max
    }
    CapUserHeader { version: n version, pid: n pid }
    UserDesc { entry_number: n entry_number, base_addr: x base_addr, limit: x limit; "..." }
    Sysinfo {
        uptime: n uptime, loads: s loads, totalram: n totalram, freeram: n freeram, sharedram: n sharedram,
        bufferram: n bufferram, totalswap: n totalswap, freeswap: n freeswap, procs: n procs,
        totalhigh: n totalhigh, freehigh: n freehigh, mem_unit: n mem_unit
    }
}

impl Show for Utsname {
    fn show(&self, printer: &mut Printer<'_>) {
        let text = |field: &[u8]| field.split(|byte| *byte == 0).next().unwrap_or(&[]).to_vec();
        printer.out.push_str("{sysname=");
        printer.quoted(&text(&self.sysname), false);
        printer.out.push_str(", nodename=");
        printer.quoted(&text(&self.nodename), false);
        printer.out.push_str(", ...}");
    }
}

/// The capability sets behind a header.
pub(crate) fn capabilities(printer: &mut Printer<'_>, header: abi::UserAddr, data: abi::UserAddr) {
    let has_two = printer
        .value::<CapUserHeader>(header)
        .is_some_and(|header| matches!(header.version, CapVersion::V2 | CapVersion::V3));
    let Some(low) = printer.value::<CapUserData>(data) else { return printer.address(data) };
    let second = data.checked_add(size_of::<CapUserData>() as u64);
    let high = second.filter(|_| has_two).and_then(|at| printer.value::<CapUserData>(at)).unwrap_or_default();
    let names = |low: u32, high: u32| {
        let text = abi::CapSet::from_words(low, high).to_string();
        // As strace has them: bits by their names.
        let bits = text.split('|').map(|name| match name.starts_with("CAP_") {
            true => format!("1<<{name}"),
            false => name.to_string(),
        });
        bits.collect::<Vec<_>>().join("|")
    };
    printer.text(format_args!(
        "{{effective={}, permitted={}, inheritable={}}}",
        names(low.effective, high.effective),
        names(low.permitted, high.permitted),
        names(low.inheritable, high.inheritable)
    ));
}

/// A status word of `wait4`.
pub(crate) fn wait_status(printer: &mut Printer<'_>, word: i32) {
    match WaitStatus::decode(word) {
        WaitStatus::Exited(code) => {
            printer.text(format_args!("[{{WIFEXITED(s) && WEXITSTATUS(s) == {code}}}]"));
        }
        WaitStatus::Killed { signal, core } => {
            let core = if core { " && WCOREDUMP(s)" } else { "" };
            printer.text(format_args!("[{{WIFSIGNALED(s) && WTERMSIG(s) == {signal}{core}}}]"));
        }
        WaitStatus::Stopped { signal, .. } => {
            let signal = Signal(i32::from(signal));
            printer.text(format_args!("[{{WIFSTOPPED(s) && WSTOPSIG(s) == {signal}}}]"));
        }
        WaitStatus::Continued => printer.out.push_str("[{WIFCONTINUED(s)}]"),
    }
}
