//! What waits, what is forgotten, and who gets it.

use super::*;

#[test]
fn raw_reads_wait_for_min() {
    for (min, time) in [(0, 0), (0, 1), (1, 0), (5, 0), (5, 1), (64, 0), (65, 0), (100, 0), (255, 0)] {
        let change = |t: &mut Termios2| {
            raw(t);
            (t.cc[cc::VMIN], t.cc[cc::VTIME]) = (min, time);
        };
        let text = vec![b'x'; 70];
        let mut script =
            vec![set(change), Op::Poll, Op::Read(9), typed("abc"), Op::Poll, Op::Read(2), Op::Poll];
        script.extend([
            typed(&text),
            Op::Poll,
            Op::Read(10),
            typed(&text),
            Op::Read(100),
            Op::Poll,
            Op::Drain,
        ]);
        script.extend([typed(&text), typed(&text), typed(&text), Op::Read(200), Op::Drain]);
        same(&script);
    }
}

#[test]
fn switching_line_mode_keeps_what_waits() {
    let raw_mode = || set(raw);
    let canonical = || set(|t| t.lflag.remove(L::ECHO));
    same(&[typed("abc"), Op::Poll, raw_mode(), Op::Poll, Op::Counts, Op::Drain]);
    same(&[canonical(), typed("ab\nc\x04d"), raw_mode(), Op::Counts, Op::Drain]);
    same(&[
        raw_mode(),
        typed("ab\ncd"),
        canonical(),
        Op::Poll,
        Op::Counts,
        typed("\x7f\x7f\x7fe\n"),
        Op::Read(50),
        Op::Drain,
    ]);
    same(&[raw_mode(), typed("ab\0"), canonical(), Op::Counts, Op::Read(50), Op::Drain]);
    same(&[raw_mode(), canonical(), typed("ab"), raw_mode(), canonical(), typed("c\n"), Op::Drain]);
    same(&[typed("ab\x16"), raw_mode(), canonical(), typed("\x7f\n"), Op::Drain]);
    same(&[canonical(), typed("one\ntwo\n"), raw_mode(), canonical(), Op::Drain]);
}

#[test]
fn too_long_a_line_keeps_its_beginning_and_its_end() {
    let long = |n: usize| -> Vec<Op> {
        (0..n).map(|i| typed(vec![b'a' + u8::try_from(i % 26).unwrap_or(0); 500])).collect()
    };
    for (change, tail) in [(I::empty(), "end\n"), (I::IMAXBEL, "\x7f\x7f\x7fend\n"), (I::PARMRK, "end\n")] {
        let mut script = vec![set(|t| (t.iflag.insert(change), t.lflag.remove(L::ECHO)).0)];
        script.extend(long(10));
        script.extend([Op::Counts, Op::Poll, typed(tail), Op::Counts, typed("more\n"), Op::Drain]);
        same(&script);
    }
    // With a line waiting, what does not fit waits as well.
    let mut script = vec![set(|t| t.lflag.remove(L::ECHO)), typed("first\n")];
    script.extend(long(10));
    script.extend([typed("end\n"), Op::Counts, Op::Poll, Op::Read(5000), Op::Counts, Op::Drain, Op::Drain]);
    same(&script);
}

#[test]
fn raw_input_waits_for_room() {
    let mut script = vec![set(raw)];
    script.extend((0..20).map(|i| typed(vec![b'a' + i; 500])));
    script.extend([Op::Counts, Op::Read(1000), Op::Counts, Op::Drain]);
    same(&script);
}

#[test]
fn flushing_forgets_one_direction() {
    for queue in [FlushQueue::IFLUSH, FlushQueue::OFLUSH, FlushQueue::IOFLUSH] {
        let fill = || vec![typed("in\npart"), printed("out")];
        let look = || vec![Op::Counts, typed("x\n"), Op::Screen, Op::Drain];
        same(&[fill(), vec![Op::Flush(queue)], look()].concat());
        same(&[fill(), vec![Op::FlushMaster(queue)], look()].concat());
        let mut much = vec![set(raw)];
        much.extend((0..12).flat_map(|_| [typed([b'i'; 500]), printed([b'o'; 500])]));
        same(&[much.clone(), vec![Op::Flush(queue)], look()].concat());
        same(&[much, vec![Op::FlushMaster(queue)], look()].concat());
    }
    let mut much = vec![set(raw)];
    much.extend((0..12).map(|_| typed([b'i'; 500])));
    much.extend([Op::SetFlush(changed(raw)), Op::Counts, Op::Drain]);
    same(&much);
    same(&[typed("ab\ncd"), Op::SetFlush(changed(|_| ())), typed("e\n"), Op::Screen, Op::Drain]);
}

#[test]
fn a_slave_can_be_closed_and_opened_again() {
    same(&[
        printed("bye"),
        Op::CloseSlave,
        Op::Screen,
        typed("waits\n"),
        Op::OpenSlave,
        Op::Poll,
        Op::Screen,
        Op::Drain,
        set(|t| t.lflag.remove(L::ECHO)),
        Op::CloseSlave,
        Op::OpenSlave,
        Op::Settings,
    ]);
}

#[test]
fn parmrk_leaves_room_for_marks() {
    for lflag in [L::empty(), L::ICANON] {
        let mut script = vec![set(|t| (t.iflag, t.lflag) = (I::PARMRK, lflag)), typed("line\n")];
        script.extend((0..9).map(|_| typed([b'x'; 500])));
        // (A doubled character at the very end would overrun Linux's ring and spoil its other lines.)
        script.extend([Op::Counts, typed("y\n"), Op::Counts, Op::Drain, Op::Counts, Op::Drain]);
        same(&script);
    }
}
