//! Guest memory that travels with a call and with its result, in the channel: no copy across processes.
//!
//! The stub brings along what a call's arguments point at, as far as its plan says (`stub/marshal.s`; the plans come
//! from the kernel's rows). The kernel asks for guest memory as on any platform; on the thread that serves the
//! call, [`Marshal`] is asked first (a [`Passage`]). What a call writes it may put off until the guest goes on.
//!
//! What is brought is the guest's memory as it was when the call began, and the guest may write it in the channel as it
//! may write its memory. Lengths are read once and checked.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;

use guest_process::Passage;
use platform::{CallShape, GuestRange, Pointee};

use crate::channel::Channel;
use crate::delegate::Claim;
use crate::layout::*;

/// A plan's byte for an argument: register (3 bits), kind (5 bits). Kinds below this one: so many words of 8 bytes; above:
/// elements of 1 << (kind - this - 1) bytes.
pub(crate) const STRING_KIND: u8 = 25;
/// Bytes that are brought of a string, at most, its end among them; a longer one is not brought.
pub(crate) const STRING_MAX: u64 = 256;
/// Bytes that are brought of anything else.
pub(crate) const BYTES_MAX: u64 = 1024;
/// Address and length, before the bytes.
const HEADER: u64 = 16;
/// Answers to one call, at most.
const MANY: usize = 16;

/// A call's plan, as the stub has it: a byte for each of two arguments.
pub(crate) fn plan(shape: CallShape) -> u16 {
    let byte = |(register, pointee): (u8, Pointee)| {
        let kind = match pointee {
            Pointee::String => Some(STRING_KIND),
            Pointee::Bytes(len) => {
                u8::try_from(len.div_ceil(8)).ok().filter(|words| (1..STRING_KIND).contains(words))
            }
            Pointee::Elements(size) => {
                size.is_power_of_two().then(|| STRING_KIND + 1 + size.trailing_zeros() as u8)
            }
        };
        kind.filter(|kind| *kind < 32 && register < 6).map(|kind| register << 5 | kind)
    };
    let mut bytes = shape.brings.into_iter().flatten().filter_map(byte);
    u16::from_le_bytes([bytes.next().unwrap_or(0), bytes.next().unwrap_or(0)])
}

/// Guest memory in a channel.
#[derive(Clone, Copy, Debug, Default)]
struct Piece {
    start: u64,
    len: u64,
    /// Where the bytes lie in the channel.
    at: u64,
}

impl Piece {
    fn overlaps(&self, range: GuestRange) -> bool {
        range.start.0 < self.start.saturating_add(self.len)
            && self.start < range.start.0.saturating_add(range.len as u64)
    }

    /// Where the next one's header lies.
    fn next(&self) -> u64 {
        (self.at + self.len).next_multiple_of(8)
    }
}

/// What travels with the calls of one guest thread: used by its kernel thread only.
pub(crate) struct Window {
    tgid: i32,
    channel: Arc<Channel>,
    brought: Cell<[Piece; 2]>,
    /// The call that is being served may put answers off.
    may_answer: Cell<bool>,
    answers: RefCell<Vec<Piece>>,
    /// What the call that is being served has taken away from other threads of the process.
    pub(crate) claims: RefCell<Vec<Claim>>,
}

thread_local! {
    /// Of the guest thread that the calling thread serves. Its channel goes with that thread, not with ours.
    static HERE: RefCell<Weak<Window>> = const { RefCell::new(Weak::new()) };
}

impl Window {
    /// Of a guest thread that the calling thread serves from now on.
    pub(crate) fn new(tgid: i32, channel: &Arc<Channel>) -> Rc<Window> {
        let window = Rc::new(Window {
            tgid,
            channel: Arc::clone(channel),
            brought: Cell::default(),
            may_answer: Cell::new(false),
            answers: RefCell::default(),
            claims: RefCell::default(),
        });
        HERE.set(Rc::downgrade(&window));
        window
    }

    /// Whether this is the channel of the thread that it belongs to.
    pub(crate) fn is_of(&self, channel: &Arc<Channel>) -> bool {
        Arc::ptr_eq(&self.channel, channel)
    }

    /// A call of this shape has come by a patched site.
    pub(crate) fn arrived(&self, shape: CallShape) {
        let mut header = BROUGHT;
        let mut pieces = [Piece::default(); 2];
        let wanted = shape.brings.iter().flatten().count();
        for piece in pieces.iter_mut().take(wanted) {
            let (start, len) = (self.channel.get(header), self.channel.get(header + 8));
            if len == 0 || len > BYTES_MAX {
                break;
            }
            *piece = Piece { start, len, at: header + HEADER };
            header = piece.next();
        }
        self.brought.set(pieces);
        self.may_answer.set(shape.answers);
    }

    /// The guest goes on, and writes the answers itself. Returns how many there are.
    pub(crate) fn leave(&self) -> u32 {
        self.brought.set(Default::default());
        self.may_answer.set(false);
        let mut answers = self.answers.borrow_mut();
        let count = answers.len() as u32;
        answers.clear();
        count
    }

    /// Writes the answers now, because something else comes before the guest goes on.
    pub(crate) fn settle(&self) {
        let answers = std::mem::take(&mut *self.answers.borrow_mut());
        for piece in answers {
            let mut bytes = vec![0; piece.len as usize];
            self.channel.read(piece.at, &mut bytes);
            // As when the guest finds a fault there: the call is done.
            let _ = host::vm::write_process(self.tgid, &bytes, &[(piece.start, bytes.len())]);
        }
    }

    fn read(&self, range: GuestRange, into: &mut [u8]) -> bool {
        let len = range.len as u64;
        let holds = |piece: &&Piece| {
            piece.start <= range.start.0
                && range
                    .start
                    .0
                    .checked_add(len)
                    .is_some_and(|end| end <= piece.start.saturating_add(piece.len))
        };
        let pieces = self.brought.get();
        let Some(piece) = pieces.iter().find(holds) else { return false };
        let offset = range.start.0 - piece.start;
        // The channel is read in longs.
        if !offset.is_multiple_of(8) || into.len() != range.len {
            return false;
        }
        self.channel.read(piece.at + offset, into);
        true
    }

    /// Appends the string at `at` to `into`, if it was brought to its end.
    fn string(&self, at: u64, into: &mut Vec<u8>) -> bool {
        let pieces = self.brought.get();
        let Some(piece) = pieces.iter().find(|piece| piece.len > 0 && piece.start == at) else {
            return false;
        };
        let mut bytes = [0; STRING_MAX as usize];
        let Some(bytes) = bytes.get_mut(..piece.len as usize) else { return false };
        self.channel.read(piece.at, bytes);
        let Some(end) = bytes.iter().position(|byte| *byte == 0) else { return false };
        into.extend_from_slice(bytes.get(..end).unwrap_or(&[]));
        true
    }

    /// What was brought of a range that is written to is no longer what is there.
    fn forget(&self, range: GuestRange) {
        let mut pieces = self.brought.get();
        for piece in &mut pieces {
            if piece.overlaps(range) {
                *piece = Piece::default();
            }
        }
        self.brought.set(pieces);
    }

    fn answer(&self, from: &[u8], to: GuestRange, may: &dyn Fn() -> bool) -> bool {
        let mut answers = self.answers.borrow_mut();
        let header = answers.last().map_or(ANSWERS, Piece::next);
        let at = header + HEADER;
        let fits = at + from.len().next_multiple_of(8) as u64 <= ANSWERS + MARSHAL_SIZE;
        if !self.may_answer.get() || !fits || answers.len() == MANY || from.is_empty() || !may() {
            return false;
        }
        self.forget(to);
        self.channel.set(header, to.start.0);
        self.channel.set(header + 8, from.len() as u64);
        self.channel.write(at, from);
        answers.push(Piece { start: to.start.0, len: from.len() as u64, at });
        true
    }
}

/// The way to guest memory through the channel of the thread that asks.
pub(crate) struct Marshal;

/// Calls `with` with the window of the guest thread that the calling thread serves, if that is of process `tgid`.
pub(crate) fn here<T>(tgid: i32, with: impl FnOnce(&Window) -> T) -> Option<T> {
    // A thread that is past its end serves nobody.
    HERE.try_with(|here| here.borrow().upgrade().filter(|window| window.tgid == tgid).map(|w| with(&w)))
        .ok()
        .flatten()
}

impl Passage for Marshal {
    fn read(&self, tgid: i32, from: &[GuestRange], into: &mut [u8]) -> bool {
        here(tgid, |window| {
            let read = matches!(from, [range] if window.read(*range, into));
            if !read {
                window.settle();
            }
            read
        })
        .unwrap_or(false)
    }

    fn read_string(&self, tgid: i32, at: u64, into: &mut Vec<u8>) -> bool {
        here(tgid, |window| window.string(at, into)).unwrap_or(false)
    }

    fn before_write(&self, tgid: i32, to: &[GuestRange]) {
        here(tgid, |window| {
            window.settle();
            to.iter().for_each(|range| window.forget(*range));
        });
    }

    fn write_later(&self, tgid: i32, from: &[u8], to: GuestRange, may: &dyn Fn() -> bool) -> bool {
        here(tgid, |window| window.answer(from, to, may)).unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use abi::UserAddr;

    use super::*;
    use crate::channel::Channels;

    fn window() -> Rc<Window> {
        Window::new(-1, &Channels::new(0).unwrap().map(0).unwrap())
    }

    fn range(start: u64, len: usize) -> GuestRange {
        GuestRange { start: UserAddr(start), len }
    }

    const STRING: CallShape = CallShape {
        brings: [Some((0, Pointee::String)), None],
        answers: true,
        place: platform::Place::Kernel,
    };

    fn bring(window: &Window, start: u64, bytes: &[u8]) {
        window.channel.set(BROUGHT, start);
        window.channel.set(BROUGHT + 8, bytes.len() as u64);
        window.channel.write(BROUGHT + HEADER, bytes);
    }

    #[test]
    fn plans_are_bytes_for_each_argument() {
        let plan_of = |first, second| plan(CallShape { brings: [first, second], ..CallShape::default() });
        assert_eq!(plan_of(Some((1, Pointee::String)), None), 1 << 5 | 25);
        let both = plan_of(Some((0, Pointee::Bytes(16))), Some((5, Pointee::Elements(8))));
        assert_eq!(both.to_le_bytes(), [2, 5 << 5 | 29]);
        // What does not fit is left out.
        assert_eq!(plan_of(Some((0, Pointee::Bytes(0))), Some((1, Pointee::Bytes(4096)))), 0);
        assert_eq!(plan_of(Some((0, Pointee::Elements(12))), Some((1, Pointee::Bytes(1)))), 1 << 5 | 1);
    }

    #[test]
    fn what_is_brought_is_read_until_it_is_written() {
        let window = window();
        bring(&window, 0x10_0000, b"a path\0 and more");
        window.arrived(STRING);
        let mut bytes = [0; 7];
        assert!(Marshal.read(-1, &[range(0x10_0000, 7)], &mut bytes));
        assert_eq!(&bytes, b"a path\0");
        let mut bytes = [0; 17];
        assert!(!Marshal.read(-1, &[range(0x10_0000, 17)], &mut bytes));
        assert!(!Marshal.read(-2, &[range(0x10_0000, 7)], &mut [0; 7]));
        let mut string = b"is ".to_vec();
        assert!(Marshal.read_string(-1, 0x10_0000, &mut string) && string == b"is a path");
        assert!(!Marshal.read_string(-1, 0x10_0008, &mut string));
        Marshal.before_write(-1, &[range(0x10_000f, 1)]);
        assert!(!Marshal.read(-1, &[range(0x10_0000, 7)], &mut [0; 7]));
    }

    #[test]
    fn lengths_are_the_guests_and_checked() {
        let window = window();
        for len in [BYTES_MAX + 1, u64::MAX, 0] {
            window.channel.set(BROUGHT, 0x10_0000);
            window.channel.set(BROUGHT + 8, len);
            window.arrived(STRING);
            assert!(!Marshal.read(-1, &[range(0x10_0000, 8)], &mut [0; 8]));
        }
        // A shape that brings nothing leaves what lies there alone.
        bring(&window, 0x10_0000, b"12345678");
        window.arrived(CallShape::default());
        assert!(!Marshal.read(-1, &[range(0x10_0000, 8)], &mut [0; 8]));
        // The highest address does not wrap around.
        bring(&window, u64::MAX - 3, b"12345678");
        window.arrived(STRING);
        assert!(!Marshal.read(-1, &[range(u64::MAX - 3, 8)], &mut [0; 8]));
    }

    #[test]
    fn answers_go_with_the_guest() {
        let window = window();
        window.arrived(STRING);
        assert!(!Marshal.write_later(-1, b"no", range(0x10_0000, 2), &|| false));
        assert!(Marshal.write_later(-1, b"yes", range(0x10_0000, 3), &|| true));
        assert!(Marshal.write_later(-1, b"too", range(0x10_0010, 3), &|| true));
        assert!(!Marshal.write_later(-1, &[0; 4096], range(0x10_0020, 4096), &|| true));
        assert_eq!(window.leave(), 2);
        assert_eq!(window.channel.get(ANSWERS + 24), 0x10_0010);
        // Between calls nothing is put off.
        assert!(!Marshal.write_later(-1, b"no", range(0x10_0000, 2), &|| true));
    }
}
