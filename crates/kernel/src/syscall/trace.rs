//! `--trace`: system calls, signals and ends in strace's manner.
//!
//! A line is begun when a call is, so that one sees where a program hangs. If another task has something to say
//! meanwhile, the line is left `<unfinished ...>` and goes on later as `<... read resumed>`.

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

use abi::{Errno, Siginfo, Signal, UserAddr};
use platform::{Event, SyscallEntry};
use sync::{Mutex, SysResult, order};

use crate::exec::ExecArguments;
use crate::mm::Mm;
use crate::profile::What;
use crate::signal::StopState;
use crate::syscall::filter::{Filter, UnknownName};
use crate::syscall::first_exec::FirstExec;
use crate::syscall::show::{self, Phase, Printer, TraceMemory};
use crate::syscall::{Outcome, Row, table};
use crate::task::{CurrentTask, GroupExit};

/// Results stand in this column, where the call is shorter.
const RESULT_COLUMN: usize = 40;
/// The number of `execve`.
const EXECVE: u64 = 59;
/// Longest string or list shown.
const MAX_STRING: usize = 32;

/// Where the trace goes, and what of it is wanted.
pub struct Trace {
    out: Mutex<order::Leaf, Output>,
    filter: Filter,
    /// Tasks that there are: with more than one, lines begin with whose they are.
    tasks: AtomicUsize,
}

struct Output {
    to: Box<dyn Write + Send>,
    /// The task whose line has no end yet, and how long that line is.
    open: Option<(i32, usize)>,
    /// It takes nothing more.
    failed: bool,
}

impl Trace {
    /// A trace of the calls named (all if none is), by name or class.
    ///
    /// # Errors
    /// The first name that is not known.
    pub fn new(out: Box<dyn Write + Send>, names: &[String]) -> Result<Trace, UnknownName> {
        let output = Output { to: out, open: None, failed: false };
        Ok(Trace { out: Mutex::new(output), filter: Filter::new(names)?, tasks: AtomicUsize::new(0) })
    }

    pub(crate) fn task_begins(&self) {
        self.tasks.fetch_add(1, Ordering::Relaxed);
    }

    fn prefix(&self, tid: i32) -> String {
        match self.tasks.load(Ordering::Relaxed) {
            0 | 1 => String::new(),
            _ => format!("[pid {tid:5}] "),
        }
    }

    /// A line of its own.
    fn line(&self, tid: i32, text: &str) {
        let prefix = self.prefix(tid);
        let mut out = self.out.lock();
        out.leave_open_line();
        out.write(&format!("{prefix}{text}\n"));
    }

    /// Begins a line that [`end`](Trace::end) goes on with.
    fn begin(&self, tid: i32, text: &str) {
        let prefix = self.prefix(tid);
        let mut out = self.out.lock();
        out.leave_open_line();
        let line = format!("{prefix}{text}");
        out.write(&line);
        out.open = Some((tid, line.chars().count()));
    }

    /// Ends the line of a call with its last arguments and its result.
    fn end(&self, tid: i32, name: &str, arguments: &str, result: &str) {
        let prefix = self.prefix(tid);
        let mut out = self.out.lock();
        let (start, column) = match out.open.take() {
            Some((open, column)) if open == tid => (String::new(), column),
            other => {
                out.open = other;
                out.leave_open_line();
                (format!("{prefix}<... {name} resumed>"), 0)
            }
        };
        let text = format!("{start}{arguments}");
        let used = column + text.chars().count();
        let gap = RESULT_COLUMN.saturating_sub(used + 1);
        out.write(&format!("{text}{:gap$} = {result}\n", ""));
    }
}

impl Output {
    fn leave_open_line(&mut self) {
        if self.open.take().is_some() {
            self.write(" <unfinished ...>\n");
        }
    }

    fn write(&mut self, text: &str) {
        if self.failed {
            return;
        }
        if let Err(error) = self.to.write_all(text.as_bytes()) {
            self.failed = true;
            // A reader that went away is no reason to end the guest, and knows it.
            if error.kind() != std::io::ErrorKind::BrokenPipe {
                tracing::error!(%error, "the trace cannot be written and ends here");
            }
        }
    }
}

impl TraceMemory for Mm {
    fn read(&self, from: UserAddr, into: &mut [u8]) -> usize {
        self.copy_in(&[platform::GuestRange { start: from, len: into.len() }], into)
    }
}

/// One argument as printed before the call.
struct Shown {
    text: String,
    /// Known only after the call.
    deferred: bool,
    /// It has more to say after the call.
    again: bool,
}

fn show_before(row: &Row, words: &[u64; 6], memory: &dyn TraceMemory) -> Vec<Shown> {
    let show = |index: usize| {
        let mut text = String::new();
        let mut printer = Printer::new(&mut text, memory, MAX_STRING, *words, Phase::Before);
        (row.show)(index, words, &mut printer, Phase::Before);
        let (deferred, again) = (printer.deferred, printer.again);
        Shown { text, deferred, again }
    };
    (0..row.arguments.len()).map(show).collect()
}

/// What a call's end adds.
#[derive(Default)]
struct Rest {
    /// The arguments that are known now, with those that stand behind them.
    arguments: String,
    notes: Vec<String>,
    result: Option<String>,
}

/// Joins what is not empty to what is there.
fn append(list: &mut String, any: &mut bool, text: &str) {
    if !text.is_empty() {
        if *any {
            list.push_str(", ");
        }
        list.push_str(text);
        *any = true;
    }
}

/// The arguments up to the first that is not known yet; whether a comma is due before the next.
fn first_part(shown: &[Shown]) -> (String, bool) {
    let (mut text, mut any) = (String::new(), false);
    for argument in shown.iter().take_while(|argument| !argument.deferred) {
        append(&mut text, &mut any, &argument.text);
    }
    if any && shown.iter().any(|argument| argument.deferred) {
        // What follows does so in any case.
        text.push_str(", ");
        any = false;
    }
    (text, any)
}

fn show_after(row: &Row, words: &[u64; 6], memory: &dyn TraceMemory, shown: &[Shown], phase: Phase) -> Rest {
    let mut rest = Rest::default();
    let (_, mut any) = first_part(shown);
    let first_deferred = shown.iter().position(|argument| argument.deferred).unwrap_or(shown.len());
    for (index, before) in shown.iter().enumerate() {
        let mut text = String::new();
        if before.deferred || before.again {
            let mut printer = Printer::new(&mut text, memory, MAX_STRING, *words, phase);
            printer.before = &before.text;
            (row.show)(index, words, &mut printer, phase);
            rest.notes.append(&mut printer.notes);
            rest.result = printer.result.take().or(rest.result);
        }
        if !before.deferred {
            text.clone_from(&before.text);
        }
        if index >= first_deferred {
            append(&mut rest.arguments, &mut any, &text);
        }
    }
    rest
}

impl CurrentTask {
    /// Carries a call out, with a line in the trace if it is wanted.
    pub(crate) fn trace_call(
        &mut self,
        row: &'static Row,
        words: &[u64; 6],
        call: impl FnOnce(&mut CurrentTask) -> SysResult<Outcome>,
    ) -> SysResult<Outcome> {
        if !self.kernel().trace.as_ref().is_some_and(|trace| trace.filter.wants(row.number.into())) {
            return call(self);
        }
        let tid = self.tid();
        let shown = show_before(row, words, &*self.mm);
        if let Some(trace) = &self.kernel().trace {
            trace.begin(tid, &format!("{}({}", row.name, first_part(&shown).0));
        }
        let result = call(self);
        let phase = Phase::After(match &result {
            Ok(Outcome::Value(value) | Outcome::Address(value)) => {
                Ok(usize::try_from(*value).unwrap_or(usize::MAX))
            }
            Ok(Outcome::Resumed | Outcome::Exited) => Ok(0),
            Err(error) => Err(error.errno().unwrap_or(Errno::EINTR)),
        });
        let rest = show_after(row, words, &*self.mm, &shown, phase);
        let resumed = match &result {
            Ok(Outcome::Resumed) => self.context.registers().rax,
            _ => 0,
        };
        let plain = show::result::text(row.name, &result, resumed);
        let notes = match rest.notes.is_empty() {
            true => String::new(),
            false => format!(" ({})", rest.notes.join(", ")),
        };
        let text = rest.result.unwrap_or(plain) + &notes;
        if let Some(trace) = &self.kernel().trace {
            trace.end(tid, row.name, &format!("{})", rest.arguments), &text);
        }
        result
    }

    /// A line for the main program's start, as if it had made that call itself.
    pub(crate) fn trace_first_exec(&self, exec: &ExecArguments) {
        let Some(row) = table::row(EXECVE) else { return };
        let Some(trace) = self.kernel().trace.as_ref().filter(|trace| trace.filter.wants(EXECVE)) else {
            return;
        };
        let first = FirstExec::new(exec);
        let shown = show_before(row, &first.words, &first);
        let arguments = first_part(&shown).0;
        trace.begin(self.tid(), &format!("{}({arguments}", row.name));
        trace.end(self.tid(), row.name, ")", "0");
    }

    /// A line for a call that Linux does not have.
    pub(crate) fn trace_unknown(&self, entry: &SyscallEntry) {
        let Some(trace) = &self.kernel().trace else { return };
        let args: Vec<_> = entry.args.iter().map(|arg| format!("{arg:#x}")).collect();
        let name = if entry.native { "syscall" } else { "int80" };
        let number = entry.number & 0xffff_ffff;
        let result = show::result::text("", &Err(Errno::ENOSYS.into()), 0);
        let text = format!("{name}_{number:#x}({})", args.join(", "));
        trace.begin(self.tid(), &text);
        trace.end(self.tid(), &text, "", &result);
    }

    /// A line for a signal that is taken.
    pub(crate) fn trace_signal(&self, info: &Siginfo) {
        self.counters.add(Event::Signal, 1);
        self.profile_moment(What::Signal(info.signo));
        let Some(trace) = &self.kernel().trace else { return };
        // strace sees no SIGKILL either.
        if info.signo != Signal::KILL {
            trace.line(self.tid(), &format!("--- {} {} ---", info.signo, show::siginfo(info)));
        }
    }

    /// A line for the stop that the group is in.
    pub(crate) fn trace_stop(&self) {
        let Some(trace) = &self.kernel().trace else { return };
        let stop = self.group().signals.lock().stop;
        if let StopState::Stopping { signal, .. } | StopState::Stopped { signal } = stop {
            trace.line(self.tid(), &format!("--- stopped by {signal} ---"));
        }
    }

    /// Goes on with an interrupted call, with a line in the trace.
    pub(crate) fn trace_restart(
        &mut self,
        number: u64,
        call: impl FnOnce(&mut CurrentTask) -> SysResult<Outcome>,
    ) -> SysResult<Outcome> {
        let wanted = self.kernel().trace.as_ref().is_some_and(|trace| trace.filter.wants(number));
        let name = table::row(number).map_or("?", |row| row.name);
        if let Some(trace) = self.kernel().trace.as_ref().filter(|_| wanted) {
            trace.begin(self.tid(), &format!("restart_syscall(<... resuming interrupted {name} ...>"));
        }
        let result = call(self);
        if let Some(trace) = self.kernel().trace.as_ref().filter(|_| wanted) {
            trace.end(self.tid(), "restart_syscall", ")", &show::result::text(name, &result, 0));
        }
        result
    }

    /// A line for the task's end.
    pub(crate) fn trace_end(&self) {
        let Some(trace) = &self.kernel().trace else { return };
        let text = match self.group().exit() {
            Some(GroupExit::Signal { signal, core }) => {
                format!("killed by {signal}{}", if core { " (core dumped)" } else { "" })
            }
            Some(GroupExit::Code(code)) => format!("exited with {code}"),
            None => format!("exited with {}", self.exit_code().unwrap_or(0)),
        };
        trace.line(self.tid(), &format!("+++ {text} +++"));
        trace.tasks.fetch_sub(1, Ordering::Relaxed);
    }
}
