//! How reads wait, and that nothing is lost between the look and the commit.

use crate::Terminal;
use abi::{LocalFlags as L, cc};
use tty::{Effects, Read, Timer, Wait};

fn raw(min: u8, time: u8) -> Terminal {
    Terminal::with(|t| {
        t.lflag = L::empty();
        (t.cc[cc::VMIN], t.cc[cc::VTIME]) = (min, time);
    })
}

fn wait(ready: usize, timer: Timer) -> Read {
    Read::Wait(Wait { ready, timer })
}

#[test]
fn canonical_reads_wait_for_a_line() {
    let mut terminal = Terminal::new();
    terminal.types(b"ab");
    assert_eq!(terminal.pair.peek_slave(9), wait(0, Timer::Forever));
    assert_eq!(terminal.pair.line().peek_now(9), None);
    terminal.types(b"\n");
    assert_eq!(terminal.reads(9).as_deref(), Some(&b"ab\n"[..]));
}

#[test]
fn min_without_time_waits_for_bytes() {
    let mut terminal = raw(5, 0);
    terminal.types(b"abc");
    assert_eq!(terminal.pair.peek_slave(9), wait(3, Timer::Forever));
    assert_eq!(terminal.pair.line().peek_now(9).map(|c| c.bytes), Some(b"abc".to_vec()));
    assert!(matches!(terminal.pair.peek_slave(3), Read::Ready(_)), "a read is over when it is full");
    terminal.types(b"defg");
    assert_eq!(terminal.reads(9).as_deref(), Some(&b"abcdefg"[..]));
}

#[test]
fn min_with_time_waits_between_bytes() {
    let mut terminal = raw(5, 7);
    assert_eq!(terminal.pair.peek_slave(9), wait(0, Timer::Forever));
    terminal.types(b"a");
    assert_eq!(terminal.pair.peek_slave(9), wait(1, Timer::FromLastByte(7)));
}

#[test]
fn no_min_with_time_waits_for_the_first_byte() {
    let mut terminal = raw(0, 7);
    assert_eq!(terminal.pair.peek_slave(9), wait(0, Timer::FromCall(7)));
    terminal.types(b"a");
    assert_eq!(terminal.reads(9).as_deref(), Some(&b"a"[..]));
}

#[test]
fn neither_min_nor_time_does_not_wait() {
    assert_eq!(raw(0, 0).reads(9).as_deref(), Some(&b""[..]));
}

#[test]
fn a_large_min_ends_with_one_piece() {
    let mut terminal = raw(100, 0);
    terminal.types(&[b'x'; 63]);
    assert_eq!(terminal.pair.peek_slave(200), wait(63, Timer::Forever));
    terminal.types(&[b'x'; 80]);
    assert_eq!(terminal.reads(200).map(|b| b.len()), Some(64));
}

#[test]
fn a_read_of_nothing_is_over_at_once() {
    let mut terminal = Terminal::new();
    assert_eq!(terminal.reads(0).as_deref(), Some(&b""[..]));
    terminal.types(b"\x04");
    assert_eq!(terminal.reads(0).as_deref(), Some(&b""[..]));
    assert_eq!(
        terminal.pair.poll_slave(),
        abi::PollFlags::from_bits_retain(0x145),
        "the end of file is still there"
    );
}

#[test]
fn what_did_not_reach_the_reader_stays() {
    let mut terminal = Terminal::new();
    terminal.types(b"abc\x04");
    let mut fx = Effects::default();
    for (copied, left) in [(0, "abc"), (1, "bc"), (1, "c")] {
        let Read::Ready(chunk) = terminal.pair.peek_slave(9) else { panic!("a line waits") };
        terminal.pair.line_mut().commit(&chunk, copied, &mut fx);
        let Read::Ready(chunk) = terminal.pair.peek_slave(9) else { panic!("a line waits") };
        assert_eq!(chunk.bytes, left.as_bytes());
    }
    assert_eq!(terminal.lines(), "[c]", "the EOF goes with the last byte");
}

#[test]
fn what_was_flushed_meanwhile_is_not_taken_from_what_came_after() {
    let mut terminal = Terminal::new();
    terminal.types(b"abc\n");
    let Read::Ready(chunk) = terminal.pair.peek_slave(9) else { panic!("a line waits") };
    terminal.types(b"\x03new\n");
    terminal.pair.line_mut().commit(&chunk, chunk.bytes.len(), &mut Effects::default());
    assert_eq!(terminal.lines(), r"[new\n]");
}

#[test]
fn a_master_in_packet_mode_loses_nothing_to_a_short_copy() {
    let mut terminal = Terminal::new();
    terminal.pair.set_packet_mode(true);
    terminal.prints(b"abc");
    let mut fx = Effects::default();
    for (copied, left) in [(0, &b"\0abc"[..]), (1, b"\0abc"), (2, b"\0bc"), (3, b"")] {
        let Read::Ready(chunk) = terminal.pair.peek_master(9) else { panic!("data waits") };
        terminal.pair.commit_master(&chunk, copied, &mut fx);
        match terminal.pair.peek_master(9) {
            Read::Ready(chunk) => assert_eq!(chunk.bytes, left),
            _ => assert!(left.is_empty()),
        }
    }
    terminal.types(b"\x13");
    let Read::Ready(chunk) = terminal.pair.peek_master(9) else { panic!("an event waits") };
    terminal.pair.commit_master(&chunk, 0, &mut fx);
    assert_eq!(terminal.screen(), r"\x04", "an event that did not reach the reader stays");
}
