//! Cases written by hand, one for each behaviour.

mod editing;
mod flow;
mod mapping;
mod queues;

use crate::script::{Op, same};
use abi::{
    ControlFlags, FlowAction, FlushQueue, InputFlags as I, LocalFlags as L, OutputFlags as O, Termios2, cc,
};

fn set(change: impl FnOnce(&mut Termios2)) -> Op {
    Op::Set(changed(change))
}

fn changed(change: impl FnOnce(&mut Termios2)) -> Termios2 {
    let mut termios = Termios2::STANDARD;
    change(&mut termios);
    termios
}

fn raw(t: &mut Termios2) {
    t.iflag = I::empty();
    t.oflag = O::empty();
    t.lflag = L::empty();
}

fn typed(text: impl AsRef<[u8]>) -> Op {
    Op::Type(text.as_ref().to_vec())
}

fn printed(text: impl AsRef<[u8]>) -> Op {
    Op::Write(text.as_ref().to_vec())
}

/// Types each text with these settings, then looks at both ends.
fn typing(change: impl FnOnce(&mut Termios2), texts: &[&[u8]]) {
    let mut script = vec![set(change)];
    for text in texts {
        script.extend([typed(text), Op::Screen]);
    }
    script.extend([Op::Counts, Op::Poll, Op::Drain, Op::Poll, Op::Screen]);
    same(&script);
}

/// Prints each text with these settings.
fn printing(change: impl FnOnce(&mut Termios2), texts: &[&[u8]]) {
    let mut script = vec![set(change)];
    for text in texts {
        script.extend([printed(text), Op::Screen]);
    }
    same(&script);
}
