//! What callers are told to do: wake, signal, hang up.

use crate::Terminal;
use abi::{Errno, FlowAction, FlushQueue, InputFlags as I, LocalFlags as L, PollFlags, Signal, Winsize};
use tty::{Effects, LineError, PtyPair, Read};

#[test]
fn characters_send_signals() {
    let mut terminal = Terminal::new();
    assert_eq!(terminal.types(b"\x03").signals, [Signal::INT]);
    assert_eq!(terminal.types(b"\x1c\x1a\x1c").signals, [Signal::QUIT, Signal::TSTP]);
    assert_eq!(terminal.types(b"\x16\x03").signals, []);
    terminal.set(|t| t.lflag.remove(L::ISIG));
    assert_eq!(terminal.types(b"\x03").signals, []);
}

#[test]
fn readers_wake_for_lines_or_for_bytes() {
    let mut terminal = Terminal::new();
    let fx = terminal.types(b"ab");
    assert!(!fx.wake_readers && fx.wake_device_readers, "an echo, but no line yet");
    assert!(terminal.types(b"\n").wake_readers);
    assert!(terminal.types(b"\x04").wake_readers);
    assert!(terminal.set(|t| t.lflag = L::empty()).wake_readers);
    let fx = terminal.types(b"ab");
    assert!(fx.wake_readers && !fx.wake_device_readers);
}

#[test]
fn the_device_wakes_for_output() {
    let mut terminal = Terminal::new();
    assert!(terminal.prints(b"x").wake_device_readers);
    assert!(!terminal.prints(b"").wake_device_readers);
    terminal.types(b"\x13");
    let mut fx = Effects::default();
    assert_eq!(terminal.pair.write_slave(b"y", &mut fx), Ok(0));
    assert!(fx.is_empty());
    assert!(terminal.types(b"\x11").wake_writers);
    terminal.pair.line_mut().flow(FlowAction::OOFF, &mut fx).expect("an action");
    assert!(!terminal.types(b"\x11").wake_writers);
    terminal.pair.line_mut().flow(FlowAction::OON, &mut fx).expect("an action");
    assert!(fx.wake_writers);
}

#[test]
fn writers_of_either_end_wake_for_room() {
    let mut terminal = Terminal::with(|t| t.lflag = L::empty());
    let mut fx = Effects::default();
    let mut written = 0;
    while let n @ 1.. = terminal.pair.write_slave(&[b'x'; 1000], &mut fx).expect("the master is open") {
        written += n;
    }
    assert!(!terminal.pair.poll_slave().contains(PollFlags::OUT) && written > 8192);
    let Read::Ready(chunk) = terminal.pair.peek_master(10) else { panic!("output waits") };
    let mut fx = Effects::default();
    terminal.pair.commit_master(&chunk, 10, &mut fx);
    assert!(fx.wake_writers && terminal.pair.poll_slave().contains(PollFlags::OUT));

    let mut written = 0;
    while let n @ 1.. = terminal.pair.write_master(&[b'x'; 1000], &mut fx) {
        written += n;
    }
    assert!(!terminal.pair.poll_master().contains(PollFlags::OUT) && written > 8192);
    let Read::Ready(chunk) = terminal.pair.peek_slave(10) else { panic!("input waits") };
    let mut fx = Effects::default();
    terminal.pair.line_mut().commit(&chunk, 10, &mut fx);
    assert!(fx.wake_device_writers && terminal.pair.poll_master().contains(PollFlags::OUT));
}

#[test]
fn a_locked_slave_does_not_open() {
    let mut pair = PtyPair::new();
    assert!(pair.is_locked());
    assert_eq!(pair.open_slave(), Err(Errno::EIO));
    assert!(matches!(pair.peek_master(9), Read::Wait(_)), "before the first opening a master waits");
    pair.set_locked(false);
    assert!(pair.open_slave().is_ok());
}

#[test]
fn a_master_hears_of_the_last_slave() {
    let mut terminal = Terminal::new();
    let mut fx = Effects::default();
    terminal.pair.open_slave().expect("the slave opens twice");
    terminal.pair.close_slave(&mut fx);
    assert!(fx.is_empty());
    terminal.prints(b"bye");
    terminal.pair.close_slave(&mut fx);
    assert!(fx.wake_device_readers && !fx.hang_up);
    assert_eq!(terminal.pair.poll_master().bits(), 0x155);
    assert_eq!(terminal.screen(), "bye");
    assert_eq!(terminal.pair.peek_master(9), Read::PeerClosed);
    assert_eq!(terminal.pair.poll_master().bits(), 0x114);
    terminal.pair.open_slave().expect("it opens again");
    assert!(matches!(terminal.pair.peek_master(9), Read::Wait(_)));
}

#[test]
fn closing_the_master_hangs_the_slave_up() {
    let mut terminal = Terminal::new();
    terminal.types(b"line\n");
    let file = terminal.pair.open_slave().expect("the slave opens");
    assert!(!terminal.pair.is_hung_up(file));
    let mut fx = Effects::default();
    terminal.pair.close_master(&mut fx);
    assert!(fx.hang_up && fx.wake_readers && fx.wake_writers);
    assert!(terminal.pair.is_hung_up(file));
    assert_eq!(terminal.pair.peek_slave(9), Read::HungUp);
    assert_eq!(terminal.pair.write_slave(b"x", &mut fx), Err(Errno::EIO));
    assert_eq!(terminal.pair.poll_slave().bits(), 0x15d);
    assert_eq!(terminal.pair.open_slave(), Err(Errno::EIO));
}

#[test]
fn a_hang_up_spares_those_who_open_later() {
    let mut terminal = Terminal::with(|t| t.lflag = L::empty());
    let before = terminal.pair.open_slave().expect("the slave opens");
    terminal.types(b"x");
    let mut fx = Effects::default();
    terminal.pair.hang_up(&mut fx);
    let after = terminal.pair.open_slave().expect("the slave opens");
    assert!(fx.hang_up && terminal.pair.is_hung_up(before) && !terminal.pair.is_hung_up(after));
    assert!(terminal.pair.line().termios().lflag.contains(L::ICANON));
    assert_eq!(terminal.lines(), "");
}

#[test]
fn a_new_size_signals_once() {
    let mut pair = PtyPair::new();
    let size = Winsize { row: 25, col: 80, xpixel: 0, ypixel: 0 };
    let mut fx = Effects::default();
    pair.set_size(size, &mut fx);
    assert_eq!((fx.signals.as_slice(), pair.size()), (&[Signal::WINCH][..], size));
    let mut fx = Effects::default();
    pair.set_size(size, &mut fx);
    assert!(fx.is_empty());
}

#[test]
fn a_master_may_send_the_terminals_signals() {
    let pair = PtyPair::new();
    let mut fx = Effects::default();
    assert_eq!(pair.signal(Signal::INT, &mut fx), Ok(()));
    assert_eq!(fx.signals, [Signal::INT]);
    assert_eq!(pair.signal(Signal::KILL, &mut fx), Err(Errno::EINVAL));
}

#[test]
fn unknown_requests_are_refused() {
    let mut terminal = Terminal::new();
    let mut fx = Effects::default();
    assert_eq!(terminal.pair.line_mut().flush(FlushQueue(3), &mut fx), Err(Errno::EINVAL));
    assert_eq!(terminal.pair.flush_master(FlushQueue(-1), &mut fx), Err(Errno::EINVAL));
    assert_eq!(terminal.pair.line_mut().flow(FlowAction(4), &mut fx), Err(Errno::EINVAL));
    assert_eq!(terminal.pair.flow_master(FlowAction(4), &mut fx), Err(Errno::EINVAL));
}

#[test]
fn an_inserted_character_is_as_if_typed() {
    let mut terminal = Terminal::new();
    let mut fx = Effects::default();
    b"a\x7fb\n".iter().for_each(|&c| terminal.pair.line_mut().insert(c, &mut fx));
    assert!(fx.wake_readers);
    assert_eq!((terminal.lines().as_str(), terminal.screen().as_str()), (r"[b\n]", r"a\x08 \x08b\r\n"));
}

/// What a raw terminal with these input flags reads after an error.
fn after(flags: I, error: LineError) -> (Vec<u8>, Vec<Signal>) {
    let mut terminal = Terminal::with(|t| (t.iflag, t.lflag) = (flags, L::empty()));
    terminal.types(b"x");
    let mut fx = Effects::default();
    terminal.pair.line_mut().receive_error(error, &mut fx);
    (terminal.pair.line().peek_now(99).map(|chunk| chunk.bytes).unwrap_or_default(), fx.signals)
}

#[test]
fn breaks() {
    let read = |flags| after(flags, LineError::Break);
    assert_eq!(read(I::empty()), (b"x\0".to_vec(), vec![]));
    assert_eq!(read(I::IGNBRK | I::BRKINT), (b"x".to_vec(), vec![]));
    assert_eq!(read(I::BRKINT), (vec![], vec![Signal::INT]));
    assert_eq!(read(I::PARMRK), (b"x\xff\0\0".to_vec(), vec![]));
}

#[test]
fn parity_errors() {
    let read = |flags| after(flags, LineError::Parity(b'p')).0;
    assert_eq!(read(I::empty()), b"xp");
    assert_eq!(read(I::IGNPAR), b"x");
    assert_eq!(read(I::PARMRK), b"x\xff\0p");
    assert_eq!(read(I::INPCK), b"x\0");
}
