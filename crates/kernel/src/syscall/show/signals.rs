//! Signals, their actions and what they carry.

use abi::{
    ChldCode, SiLayout, SigSet, Sigaction, Sigaltstack, SigevNotify, Sigevent, Siginfo, Signal, SigsetArg,
    UserAddr, si_code_name, syscall_name,
};

use super::{Printer, Show, shown};

impl Show for SigSet {
    fn show(&self, printer: &mut Printer<'_>) {
        printer.text(format_args!("{self}"));
    }
}

impl Show for Sigaction {
    fn show(&self, printer: &mut Printer<'_>) {
        let flags = self.flags;
        let member = if flags.contains(abi::SaFlags::SIGINFO) { "sa_sigaction" } else { "sa_handler" };
        printer.text(format_args!("{{{member}="));
        match self.handler {
            Sigaction::DFL => printer.out.push_str("SIG_DFL"),
            Sigaction::IGN => printer.out.push_str("SIG_IGN"),
            handler => printer.address(UserAddr(handler)),
        }
        printer.text(format_args!(", sa_mask={}, sa_flags={flags}", self.mask));
        if flags.contains(abi::SaFlags::RESTORER) {
            printer.text(format_args!(", sa_restorer={:#x}", self.restorer));
        }
        printer.out.push('}');
    }
}

impl Show for SigsetArg {
    fn show(&self, printer: &mut Printer<'_>) {
        printer.out.push_str("{sigmask=");
        printer.structure::<SigSet>(UserAddr(self.sigset));
        printer.text(format_args!(", sigsetsize={}}}", self.size));
    }
}

shown! {
    Sigaltstack { ss_sp: p sp, ss_flags: n flags, ss_size: n size }
}

impl Show for Sigevent {
    fn show(&self, printer: &mut Printer<'_>) {
        printer.out.push('{');
        if self.value != 0 {
            value(printer, "sigev_value={", self.value);
            printer.out.push_str("}, ");
        }
        printer.text(format_args!("sigev_signo={}, sigev_notify={}", Signal(self.signo), self.notify));
        if self.notify == SigevNotify::THREAD_ID {
            printer.text(format_args!(", sigev_notify_thread_id={}", self.tid));
        }
        printer.out.push('}');
    }
}

/// A `union sigval`, both ways.
fn value(printer: &mut Printer<'_>, start: &str, value: u64) {
    let int = i32::from_ne_bytes(u32::try_from(value & 0xffff_ffff).unwrap_or(0).to_ne_bytes());
    printer.text(format_args!("{start}sival_int={int}, sival_ptr="));
    printer.address(UserAddr(value));
}

impl Show for Siginfo {
    fn show(&self, printer: &mut Printer<'_>) {
        printer.text(format_args!("{}", siginfo(self)));
    }
}

/// A `siginfo_t`, as it stands in lines about signals too.
pub(crate) fn siginfo(info: &Siginfo) -> String {
    if info.signo.0 == 0 {
        return "{}".into();
    }
    let code = match si_code_name(info.signo, info.code) {
        Some(name) => name.to_string(),
        None => info.code.to_string(),
    };
    let errno = if info.errno == 0 { String::new() } else { format!(", si_errno={}", info.errno) };
    format!("{{si_signo={}, si_code={code}{errno}{}}}", info.signo, details(info))
}

fn details(info: &Siginfo) -> String {
    let sender = format!(", si_pid={}, si_uid={}", info.pid(), info.uid());
    match info.layout() {
        SiLayout::Kill if info.pid() == 0 && info.uid() == 0 => String::new(),
        SiLayout::Kill => sender,
        SiLayout::Timer => {
            format!(", si_timerid={:#x}, si_overrun={}{}", info.timer_id(), info.overrun(), value_of(info))
        }
        SiLayout::Poll => format!(", si_band={}", info.band()),
        SiLayout::Fault | SiLayout::FaultMce => format!(", si_addr={}", UserAddr(info.addr())),
        SiLayout::FaultPkey => format!(", si_addr={}, si_pkey={}", UserAddr(info.addr()), info.pkey_number()),
        SiLayout::Child => {
            let status = match ChldCode(info.code) {
                ChldCode::EXITED => info.status().to_string(),
                _ => Signal(info.status()).to_string(),
            };
            format!("{sender}, si_status={status}, si_utime={}, si_stime={}", info.utime(), info.stime())
        }
        SiLayout::Queue => format!("{sender}{}", value_of(info)),
        SiLayout::Sys => {
            let call = u64::try_from(info.syscall()).ok().and_then(syscall_name).unwrap_or("?");
            format!(", si_call_addr={}, si_syscall=__NR_{call}", UserAddr(info.addr()))
        }
    }
}

fn value_of(info: &Siginfo) -> String {
    let value = info.value();
    if value == 0 {
        return String::new();
    }
    let int = i32::from_ne_bytes(u32::try_from(value & 0xffff_ffff).unwrap_or(0).to_ne_bytes());
    format!(", si_int={int}, si_ptr={}", UserAddr(value))
}
