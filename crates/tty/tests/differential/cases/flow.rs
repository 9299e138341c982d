//! Signals, flow control, packet mode.

use super::*;

#[test]
fn signal_characters_flush() {
    let texts: [&[u8]; 3] = [b"abc\x03def\n", b"x\ny\x1cz", b"\x1a\x13out\x03"];
    typing(|_| (), &texts);
    typing(|t| t.lflag.insert(L::NOFLSH), &texts);
    typing(|t| t.lflag.remove(L::ISIG), &texts);
    typing(|t| t.lflag.remove(L::ECHO), &texts);
    typing(raw, &texts);
    typing(|t| (raw(t), t.lflag.insert(L::ISIG)).0, &texts);
    same(&[printed("out"), typed("in"), typed("\x03"), Op::Screen, Op::Drain]);
}

#[test]
fn flow_characters_stop_output() {
    let script = |change: fn(&mut Termios2)| {
        same(&[
            set(change),
            typed("\x13"),
            printed("held"),
            typed("ab"),
            Op::Poll,
            Op::Screen,
            typed("\x11"),
            printed("free"),
            typed("c\n"),
            Op::Screen,
            Op::Drain,
        ]);
    };
    script(|_| ());
    script(|t| t.iflag.remove(I::IXON));
    script(|t| t.iflag.insert(I::IXANY));
    script(|t| t.iflag.insert(I::IXOFF));
    script(|t| t.lflag.remove(L::ICANON));
    script(|t| (raw(t), t.iflag.insert(I::IXON)).0);
    same(&[
        typed("\x13"),
        typed("ab"),
        set(|t| t.iflag.remove(I::IXON)),
        Op::Screen,
        printed("x"),
        Op::Screen,
    ]);
    same(&[typed("\x13"), typed("ab\x03"), Op::Screen, printed("x"), Op::Screen]);
}

#[test]
fn flow_calls_stop_output() {
    same(&[
        Op::Flow(FlowAction::OOFF),
        printed("held"),
        typed("a\x11"),
        Op::Poll,
        Op::Screen,
        Op::Flow(FlowAction::OON),
        Op::Screen,
        printed("free"),
        typed("b\n"),
        Op::Screen,
    ]);
    same(&[Op::Flow(FlowAction::IOFF), Op::Flow(FlowAction::ION), Op::Screen]);
    same(&[
        typed("\x13"),
        Op::Flow(FlowAction::IOFF),
        Op::Screen,
        printed("x"),
        Op::Flow(FlowAction::OON),
        Op::Screen,
    ]);
    same(&[Op::Flow(FlowAction::OOFF), Op::Flow(FlowAction::IOFF), Op::Screen]);
    same(&[
        Op::FlowMaster(FlowAction::OOFF),
        typed("a\n"),
        Op::Poll,
        Op::FlowMaster(FlowAction::OON),
        typed("b\n"),
        Op::Drain,
    ]);
    same(&[
        Op::FlowMaster(FlowAction::IOFF),
        printed("x"),
        Op::FlowMaster(FlowAction::ION),
        printed("y"),
        Op::Screen,
    ]);
}

#[test]
fn flow_characters_work_ahead_of_waiting_input() {
    let mut script = vec![set(|t| (raw(t), t.iflag.insert(I::IXON)).0)];
    script.extend((0..9).map(|_| typed([b'x'; 500])));
    script.extend([
        Op::Counts,
        typed("\x13"),
        printed("held"),
        Op::Poll,
        typed("\x11"),
        printed("free"),
        Op::Screen,
    ]);
    script.extend([
        typed("\x13tail"),
        Op::Read(4000),
        printed("held"),
        Op::Read(4000),
        printed("held"),
        Op::Screen,
    ]);
    same(&script);
}

#[test]
fn packet_mode_tells_what_happens() {
    same(&[
        Op::Packet(true),
        Op::Poll,
        printed("data"),
        typed("x\x13"),
        Op::Poll,
        Op::Screen,
        Op::Poll,
        typed("\x11"),
        Op::Screen,
        typed("\x03"),
        Op::Screen,
        Op::Flush(FlushQueue::IFLUSH),
        Op::Flush(FlushQueue::OFLUSH),
        Op::Screen,
        set(|t| t.iflag.remove(I::IXON)),
        Op::Screen,
        set(|_| ()),
        set(|t| t.cc[cc::VSTOP] = 1),
        Op::Screen,
        set(|t| t.lflag.insert(L::EXTPROC)),
        Op::Screen,
        set(|_| ()),
        Op::Screen,
        Op::Flow(FlowAction::OOFF),
        Op::Screen,
        Op::Flow(FlowAction::OON),
        Op::Flow(FlowAction::IOFF),
        Op::Screen,
        Op::Packet(false),
        typed("\x13\x11"),
        Op::Packet(true),
        Op::Screen,
        typed("\x13"),
        Op::Packet(false),
        Op::Screen,
        Op::Packet(true),
        Op::Screen,
    ]);
}

#[test]
fn a_remote_editor_sends_bytes() {
    let change = |t: &mut Termios2| t.lflag.insert(L::EXTPROC);
    typing(change, &[b"ab\x7f\x03\n\x04"]);
    same(&[set(change), typed("\x04"), Op::Poll, Op::Counts, Op::Read(9), Op::Read(9)]);
    same(&[set(change), typed("x\x04"), Op::Read(9), typed("\x04"), Op::Drain]);
    typing(|t| (change(t), t.iflag.insert(I::ISTRIP)).0, &[b"\xe1\x03"]);
    for n in [62, 63, 64, 127, 128, 129] {
        same(&[set(change), typed([vec![b'x'; n], vec![4]].concat()), Op::Read(500), Op::Drain]);
    }
}

#[test]
fn a_flow_character_works_only_once() {
    let mut script = vec![set(|t| (raw(t), t.iflag.insert(I::IXON)).0)];
    script.extend((0..9).map(|_| typed([b'x'; 500])));
    script.extend([typed("\x13"), Op::Poll, Op::Flow(FlowAction::OOFF), Op::Flow(FlowAction::OON), Op::Poll]);
    script.extend([Op::Read(4000), Op::Poll, printed("free"), Op::Screen, Op::Drain]);
    same(&script);
}

#[test]
fn too_much_echo_loses_its_beginning() {
    for text in [&b"abcdefghijklmnopqrs"[..], b"\x01", b"a\x7f", b"a\tb\t\x7f\x7f", b"\xff"] {
        let text: Vec<u8> = text.iter().copied().cycle().take(250).collect();
        let mut script = vec![typed("\x13")];
        script.extend((0..24).map(|_| typed(&text)));
        script.extend([typed("\x11"), Op::Screen, typed("\n"), Op::Screen]);
        same(&script);
    }
}
