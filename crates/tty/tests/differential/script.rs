//! What is done to a pty, and the comparison.

use abi::{FlowAction, FlushQueue, Termios2};
use std::time::Duration;

/// One operation.
#[derive(Clone, PartialEq)]
pub(crate) enum Op {
    /// Write to the master, as a user types.
    Type(Vec<u8>),
    /// Write to the slave, as a program prints.
    Write(Vec<u8>),
    /// One read of the slave that does not wait.
    Read(usize),
    /// Reads of the slave until there is nothing.
    Drain,
    /// Reads of the master until there is nothing.
    Screen,
    /// New settings, at once.
    Set(Termios2),
    /// New settings, forgetting input.
    SetFlush(Termios2),
    /// `TCFLSH` on the slave.
    Flush(FlushQueue),
    /// `TCFLSH` on the master.
    FlushMaster(FlushQueue),
    /// `TCXONC` on the slave.
    Flow(FlowAction),
    /// `TCXONC` on the master.
    FlowMaster(FlowAction),
    /// Packet mode.
    Packet(bool),
    /// `FIONREAD` of slave and master.
    Counts,
    /// `poll` of slave and master.
    Poll,
    /// The settings as they are now.
    Settings,
    /// Close the slave and open it again later.
    CloseSlave,
    OpenSlave,
}

impl std::fmt::Debug for Op {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let settings = |t: &Termios2| format!("{:?} {:?} {:?} cc {:?}", t.iflag, t.oflag, t.lflag, t.cc);
        match self {
            Op::Type(b) => write!(f, "Type {}", quoted(b)),
            Op::Write(b) => write!(f, "Write {}", quoted(b)),
            Op::Read(max) => write!(f, "Read {max}"),
            Op::Set(t) => write!(f, "Set {}", settings(t)),
            Op::SetFlush(t) => write!(f, "SetFlush {}", settings(t)),
            Op::Flush(q) => write!(f, "Flush {q}"),
            Op::FlushMaster(q) => write!(f, "FlushMaster {q}"),
            Op::Flow(a) => write!(f, "Flow {a}"),
            Op::FlowMaster(a) => write!(f, "FlowMaster {a}"),
            Op::Packet(on) => write!(f, "Packet {on}"),
            Op::Drain => f.write_str("Drain"),
            Op::Screen => f.write_str("Screen"),
            Op::Counts => f.write_str("Counts"),
            Op::Poll => f.write_str("Poll"),
            Op::Settings => f.write_str("Settings"),
            Op::CloseSlave => f.write_str("CloseSlave"),
            Op::OpenSlave => f.write_str("OpenSlave"),
        }
    }
}

/// Bytes as they would stand in a source, long runs of one byte shortened.
fn quoted(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for run in bytes.chunk_by(|a, b| a == b) {
        match run.len() {
            0..10 => text += &run.escape_ascii().to_string(),
            n => text += &format!("{{{n} times {}}}", run[..1].escape_ascii()),
        }
    }
    text + "\""
}

/// What one read gave: bytes, or an error number.
pub(crate) type ReadResult = Result<Vec<u8>, i32>;

/// What can be driven by a script.
pub(crate) trait Pty {
    fn write_master(&mut self, bytes: &[u8]) -> Result<usize, i32>;
    fn write_slave(&mut self, bytes: &[u8]) -> Result<usize, i32>;
    fn read_slave(&mut self, max: usize) -> ReadResult;
    fn read_master(&mut self, max: usize) -> ReadResult;
    fn set(&mut self, termios: &Termios2, flush: bool);
    fn flush(&mut self, master: bool, queue: FlushQueue);
    fn flow(&mut self, master: bool, action: FlowAction);
    fn set_packet_mode(&mut self, on: bool);
    fn counts(&mut self) -> (u64, u64);
    fn poll(&mut self) -> (u16, u16);
    fn settings(&mut self) -> String;
    fn close_slave(&mut self);
    fn open_slave(&mut self);
}

/// Carries out a script. One line for each operation says what was seen.
pub(crate) fn run(pty: &mut dyn Pty, script: &[Op]) -> Vec<String> {
    let mut packet_mode = false;
    let mut seen = Vec::new();
    for op in script {
        let result = match op {
            Op::Type(bytes) => format!("{:?}", pty.write_master(bytes)),
            Op::Write(bytes) => format!("{:?}", pty.write_slave(bytes)),
            Op::Read(max) => show(&pty.read_slave(*max)),
            Op::Drain => {
                let reads = read_all(|| pty.read_slave(5000));
                reads.iter().map(show).collect::<Vec<_>>().join(" ")
            }
            Op::Screen => screen(read_all(|| pty.read_master(5000)), packet_mode),
            Op::Counts => format!("{:?}", pty.counts()),
            Op::Poll => format!("{:x?}", pty.poll()),
            Op::Settings => pty.settings(),
            _ => {
                change(pty, op);
                String::from("done")
            }
        };
        if let Op::Packet(on) = op {
            packet_mode = *on;
        }
        seen.push(format!("{op:?} -> {result}"));
    }
    seen
}

/// Operations that give nothing.
fn change(pty: &mut dyn Pty, op: &Op) {
    match op {
        Op::Set(termios) => pty.set(termios, false),
        Op::SetFlush(termios) => pty.set(termios, true),
        Op::Flush(queue) => pty.flush(false, *queue),
        Op::FlushMaster(queue) => pty.flush(true, *queue),
        Op::Flow(action) => pty.flow(false, *action),
        Op::FlowMaster(action) => pty.flow(true, *action),
        Op::Packet(on) => pty.set_packet_mode(*on),
        Op::CloseSlave => pty.close_slave(),
        Op::OpenSlave => pty.open_slave(),
        _ => panic!("{op:?} gives something"),
    }
}

fn show(result: &ReadResult) -> String {
    match result {
        Ok(bytes) => quoted(bytes),
        Err(number) => format!("error {number}"),
    }
}

/// Reads until an error, or until nothing but ends of files come.
fn read_all(mut read: impl FnMut() -> ReadResult) -> Vec<ReadResult> {
    let mut all = Vec::new();
    let mut empty = 0;
    while empty < 5 {
        let result = read();
        empty = if result.as_ref().is_ok_and(Vec::is_empty) { empty + 1 } else { 0 };
        let is_over = result.is_err();
        all.push(result);
        if is_over {
            break;
        }
    }
    all
}

/// What a terminal would show. How data is cut into reads is chance, what happened between them is not.
fn screen(reads: Vec<ReadResult>, packet_mode: bool) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut data = Vec::new();
    for read in reads {
        let part = match read {
            Ok(bytes) if packet_mode && bytes.first() != Some(&0) => {
                format!("{:?}", abi::PacketFlags::from_bits_retain(bytes[0]))
            }
            Ok(bytes) => {
                data.extend(&bytes[usize::from(packet_mode)..]);
                continue;
            }
            Err(number) => format!("error {number}"),
        };
        parts.extend((!data.is_empty()).then(|| quoted(&std::mem::take(&mut data))));
        parts.push(part);
    }
    parts.join(" ")
}

/// Compares the host's pty with ours. Linux moves data from one end to the other in the background: where
/// the results differ the host gets another try with more time, so only a difference that stays counts.
///
/// # Errors
/// What was seen, where it differs.
pub(crate) fn compare(script: &[Op]) -> Result<(), String> {
    let ours = run(&mut crate::model::Model::new(), script);
    let mut host = Vec::new();
    for patience in [1, 15, 120] {
        host = run(&mut crate::host::Host::new(Duration::from_millis(patience)), script);
        if host == ours {
            return Ok(());
        }
    }
    let mut report = String::from("the host and the model differ\n");
    for (host, ours) in host.iter().zip(&ours) {
        report += &format!("  {host}\n");
        if host != ours {
            report += &format!("! {ours}   <- ours\n");
        }
    }
    Err(report)
}

/// The same, as a test wants it.
pub(crate) fn same(script: &[Op]) {
    if let Err(report) = compare(script) {
        panic!("{report}");
    }
}
