//! Writing a profile: Chrome's trace events as a JSON array, which Perfetto opens. A file that was cut off (its `]` is
//! optional) opens too.

use std::io::{BufWriter, Result, Write};
use std::sync::mpsc::Receiver;

use super::{Message, Record, Track, What};
use crate::syscall::table;

/// The writer thread's whole life: until [`Message::End`], or until the file takes no more.
pub(super) fn write(out: Box<dyn Write + Send>, messages: Receiver<Message>) -> Result<()> {
    let mut out = BufWriter::with_capacity(256 << 10, out);
    out.write_all(
        b"[\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":0,\"tid\":0,\"args\":{\"name\":\"umlaut\"}}",
    )?;
    for message in messages {
        match message {
            Message::Records(track, records) => {
                records.iter().try_for_each(|record| event(&mut out, track, record))?;
            }
            Message::Name(track, bytes) => name(&mut out, track, &bytes)?,
            Message::End => break,
        }
    }
    out.write_all(b"\n]\n")?;
    out.flush()
}

fn name(out: &mut impl Write, Track { pid, tid }: Track, name: &[u8]) -> Result<()> {
    let name = string(name);
    for kind in ["process_name", "thread_name"] {
        // A process is called what its leader is.
        if kind == "thread_name" || pid == tid {
            write!(
                out,
                ",\n{{\"ph\":\"M\",\"name\":\"{kind}\",\"pid\":{pid},\"tid\":{tid},\"args\":{{\"name\":{name}}}}}"
            )?;
        }
    }
    Ok(())
}

fn event(out: &mut impl Write, Track { pid, tid }: Track, record: &Record) -> Result<()> {
    out.write_all(b",\n{")?;
    match record.what {
        What::Guest => write!(out, "\"ph\":\"X\",\"cat\":\"hand-over\",\"name\":\"guest\"")?,
        What::Wait => write!(out, "\"ph\":\"X\",\"cat\":\"wait\",\"name\":\"wait\"")?,
        What::HostCalls { count } => {
            write!(
                out,
                "\"ph\":\"X\",\"cat\":\"hand-over\",\"name\":\"host call\",\"args\":{{\"calls\":{count}}}"
            )?;
        }
        What::Call { number, place, result } => {
            let name = table::row(number.into()).map_or("unknown", |row| row.name);
            let place = place.name();
            write!(
                out,
                "\"ph\":\"X\",\"cat\":\"call\",\"name\":\"{name}\",\"args\":{{\"place\":\"{place}\""
            )?;
            match result {
                Some(result) => write!(out, ",\"result\":{}}}", result.cast_signed())?,
                None => write!(out, "}}")?,
            }
        }
        What::Signal(signal) => {
            write!(out, "\"ph\":\"i\",\"s\":\"t\",\"cat\":\"signal\",\"name\":\"{signal}\"")?
        }
        What::Fault(signal) => {
            write!(out, "\"ph\":\"i\",\"s\":\"t\",\"cat\":\"fault\",\"name\":\"{signal}\"")?
        }
    }
    let micros = |nanos: u64| (nanos / 1000, nanos % 1000);
    let (whole, part) = micros(record.begin);
    write!(out, ",\"pid\":{pid},\"tid\":{tid},\"ts\":{whole}.{part:03}")?;
    if !matches!(record.what, What::Signal(_) | What::Fault(_)) {
        let (whole, part) = micros(record.end.saturating_sub(record.begin));
        write!(out, ",\"dur\":{whole}.{part:03}")?;
    }
    out.write_all(b"}")
}

/// A JSON string of bytes that a guest chose.
fn string(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for c in String::from_utf8_lossy(bytes).chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            c if c.is_control() => text.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => text.push(c),
        }
    }
    text + "\""
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn events_are_written_as_chrome_wants_them() {
        let (to_writer, messages) = std::sync::mpsc::sync_channel(8);
        let track = Track { pid: 2, tid: 3 };
        let call =
            What::Call { number: 39, place: platform::Place::Kernel, result: Some((-38i64).cast_unsigned()) };
        let records = vec![
            Record { begin: 1_002_003, end: 1_002_503, what: call },
            Record { begin: 5, end: 5, what: What::Signal(abi::Signal::INT) },
        ];
        to_writer.send(Message::Records(track, records)).unwrap();
        to_writer.send(Message::Name(track, b"a\"\\\n\xff".to_vec())).unwrap();
        to_writer.send(Message::End).unwrap();
        let sink = Sink::default();
        write(Box::new(sink.clone()), messages).unwrap();
        let text = String::from_utf8(sink.0.lock().unwrap().clone()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.first(), Some(&"["));
        assert_eq!(
            lines.get(2),
            Some(
                &"{\"ph\":\"X\",\"cat\":\"call\",\"name\":\"getpid\",\"args\":{\"place\":\"kernel\",\"result\":-38},\
                  \"pid\":2,\"tid\":3,\"ts\":1002.003,\"dur\":0.500},"
            )
        );
        assert_eq!(
            lines.get(3),
            Some(
                &"{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"signal\",\"name\":\"SIGINT\",\"pid\":2,\"tid\":3,\"ts\":0.005},"
            )
        );
        assert!(lines.get(4).unwrap().contains("{\"name\":\"a\\\"\\\\\\u000a\u{fffd}\"}"), "{text}");
        assert_eq!(lines.last(), Some(&"]"));
    }
}
