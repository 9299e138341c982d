//! `--trace`: system calls and signals in strace's manner, one line each when the call is done.

use std::io::Write;

use abi::{Errno, Siginfo, UserAddr, si_code_name};
use sync::{Mutex, SysError, SysResult, order};

use crate::mm::Mm;
use crate::syscall::show::{Phase, Printer, TraceMemory};
use crate::syscall::{Outcome, Row};
use crate::task::CurrentTask;

/// Where the trace goes, and what of it is wanted.
pub struct Trace {
    out: Mutex<order::Leaf, Box<dyn Write + Send>>,
    /// Calls wanted, by name; empty: all.
    names: Vec<String>,
    max_string: usize,
}

impl Trace {
    /// A trace of the calls named (all if none is). Strings are cut to 32 bytes, as strace does.
    pub fn new(out: Box<dyn Write + Send>, names: Vec<String>) -> Trace {
        Trace { out: Mutex::new(out), names, max_string: 32 }
    }

    fn wants(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|wanted| wanted == name)
    }

    fn line(&self, tid: i32, text: &str) {
        let line = format!("[pid {tid:5}] {text}\n");
        // A reader that went away is no reason to end the guest.
        let _ = self.out.lock().write_all(line.as_bytes());
    }
}

impl TraceMemory for Mm {
    fn read(&self, from: UserAddr, into: &mut [u8]) -> usize {
        self.copy_in(&[platform::GuestRange { start: from, len: into.len() }], into)
    }
}

impl CurrentTask {
    /// Carries a call out, with a line in the trace if it is wanted.
    pub(crate) fn trace_call(
        &mut self,
        row: &'static Row,
        words: &[u64; 6],
        call: impl FnOnce(&mut CurrentTask) -> SysResult<Outcome>,
    ) -> SysResult<Outcome> {
        if !self.kernel().trace.as_ref().is_some_and(|trace| trace.wants(row.name)) {
            return call(self);
        }
        let tid = self.tid();
        let before = self.show_arguments(row, words, None);
        let result = call(self);
        let after = match &result {
            // The memory is another's now.
            Ok(Outcome::Resumed | Outcome::Exited) => before.clone(),
            Ok(Outcome::Value(value) | Outcome::Address(value)) => {
                let count = usize::try_from(*value).unwrap_or(usize::MAX);
                self.show_arguments(row, words, Some((Ok(count), &before)))
            }
            Err(error) => {
                let errno = error.errno().unwrap_or(Errno::EINTR);
                self.show_arguments(row, words, Some((Err(errno), &before)))
            }
        };
        let text = format!("{}({}) = {}", row.name, after.join(", "), show_result(&result));
        if let Some(trace) = &self.kernel().trace {
            trace.line(tid, &text);
        }
        result
    }

    /// The arguments as text. With a result, those that hold what the call gave are printed anew.
    fn show_arguments(
        &self,
        row: &Row,
        words: &[u64; 6],
        done: Option<(Result<usize, Errno>, &Vec<String>)>,
    ) -> Vec<String> {
        let max_string = self.kernel().trace.as_ref().map_or(32, |trace| trace.max_string);
        let show = |(index, argument): (usize, &crate::syscall::Argument)| {
            let phase = match &done {
                Some((_, before)) if !argument.shown_after => {
                    return before.get(index).cloned().unwrap_or_default();
                }
                Some((result, _)) => Phase::After(*result),
                None => Phase::Before,
            };
            let mut out = String::new();
            let mut printer = Printer { out: &mut out, memory: &*self.mm, max_string };
            (row.show)(index, words, &mut printer, phase);
            out
        };
        row.arguments.iter().enumerate().map(show).collect()
    }

    /// A line for a signal that is taken.
    pub(crate) fn trace_signal(&self, info: &Siginfo) {
        self.counters.count_signal();
        let Some(trace) = &self.kernel().trace else { return };
        let code = match si_code_name(info.signo, info.code) {
            Some(name) => name.to_string(),
            None => info.code.to_string(),
        };
        trace
            .line(self.tid(), &format!("--- {} {{si_signo={}, si_code={code}}} ---", info.signo, info.signo));
    }
}

fn show_result(result: &SysResult<Outcome>) -> String {
    match result {
        Ok(Outcome::Value(value)) => value.cast_signed().to_string(),
        Ok(Outcome::Address(addr)) => format!("{addr:#x}"),
        Ok(Outcome::Resumed) => "0".into(),
        Ok(Outcome::Exited) => "?".into(),
        Err(SysError::Errno(errno)) => format!("-1 {errno:?} ({errno})"),
        Err(SysError::Restart(_)) => "? (interrupted)".into(),
    }
}
