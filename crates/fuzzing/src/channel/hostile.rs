//! The guest's side of target `channel`: a script of what is written where, and when.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use abi::{GUEST_TOP, PAGE_SIZE};
use platform::AddressSpace;
use stubs::adversary::{Adversary, FIELDS, Memory, Wait};

use super::CODE;
use crate::Input;

/// How long a guest whose real thread was let go on may take: what is honest takes microseconds.
const HONEST: Duration = Duration::from_millis(10);
/// How long one may take that has been killed.
const KILLED: Duration = Duration::from_secs(20);
/// Writes that wait for the kernel to look.
const ARMED: usize = 8;
/// How often the kernel may look at channels and wait for guests in one run: far more than it does.
const MOST_LOOKS: u64 = 20_000_000;
const MOST_WAITS: u64 = 20_000;

/// All guest processes of a run.
pub(super) type Spaces = Rc<RefCell<Vec<Arc<dyn AddressSpace>>>>;

/// A write that is made when the kernel has come near the field so many times.
struct Armed {
    offset: u64,
    /// Looks at the field that are let pass.
    looks: u8,
    /// It is made again at each further one, with the next number.
    stays: bool,
    value: u64,
    wide: bool,
}

/// Plays by a script. When that has ended, the guests are killed.
pub(super) struct Hostile {
    script: Vec<u8>,
    at: usize,
    spaces: Spaces,
    /// Pids that a guest may wish to tell.
    pids: [i32; 4],
    armed: Vec<Armed>,
    /// The last order was kept from the real thread.
    kept: bool,
    looks: u64,
    waits: u64,
}

impl Hostile {
    pub(super) fn new(script: &[u8], spaces: &Spaces, pids: [i32; 4]) -> Hostile {
        Hostile {
            script: script.to_vec(),
            at: 0,
            spaces: Rc::clone(spaces),
            pids,
            armed: Vec::new(),
            kept: false,
            looks: 0,
            waits: 0,
        }
    }

    fn is_over(&self) -> bool {
        self.at >= self.script.len()
    }

    /// Takes from the script.
    fn take<T>(&mut self, from: impl FnOnce(&mut Input<'_>) -> T) -> T {
        let rest = self.script.get(self.at..).unwrap_or(&[]);
        let mut input = Input::new(rest);
        let taken = from(&mut input);
        self.at += rest.len() - input.rest().len();
        taken
    }

    fn byte(&mut self) -> u8 {
        self.take(|input| input.byte())
    }

    /// A place in a channel: mostly one that means something.
    fn place(&mut self) -> u64 {
        let (which, within) = self.take(|input| (input.byte(), u64::from(input.byte())));
        match FIELDS.get(usize::from(which) % (FIELDS.len() + 1)) {
            Some((start, len)) => start + within * 4 % len,
            None => within * (Memory::LEN / 256),
        }
    }

    /// What may be written there: what leads far, else edges, else anything.
    fn value(&mut self, memory: &Memory<'_>) -> u64 {
        let (kind, small) = self.take(|input| (input.byte(), input.byte()));
        let detail = u64::from(small);
        let pid = self.pids.get(usize::from(small) % self.pids.len()).copied().unwrap_or(1);
        match kind % 12 {
            0 | 1 => detail % 16,
            2 => u64::from(pid.unsigned_abs()),
            3 => memory.address().wrapping_add(self.place()),
            4 => memory.address().wrapping_add(Memory::LEN - detail * 8),
            5 => memory.address().wrapping_sub(detail * 4096),
            6 => (detail + 1).wrapping_neg(),
            7 => CODE + detail * 8,
            8 => {
                [GUEST_TOP, GUEST_TOP - 1, GUEST_TOP - PAGE_SIZE, 1 << 47, u64::MAX, i64::MIN.cast_unsigned()]
                    [usize::from(small) % 6]
            }
            9 => detail * 64,
            _ => self.take(|input| input.register()),
        }
    }

    fn write(&mut self, memory: &Memory<'_>) {
        let (offset, value) = (self.place(), self.value(memory));
        memory.put(offset, value, value > u64::from(u32::MAX) || value.is_multiple_of(2));
    }

    fn arm(&mut self, memory: &Memory<'_>) {
        let (offset, value, looks) = (self.place(), self.value(memory), self.byte());
        if self.armed.len() < ARMED {
            let (stays, wide) = (looks & 128 != 0, looks & 64 != 0);
            self.armed.push(Armed { offset, looks: looks & 15, stays, value, wide });
        }
    }

    fn kill(&self) {
        self.spaces.borrow().iter().for_each(|space| space.kill());
    }
}

impl Adversary for Hostile {
    fn touched(&mut self, memory: &Memory<'_>, offset: u64) {
        self.looks += 1;
        assert!(self.looks < MOST_LOOKS, "the kernel looks at channels without end");
        for armed in self.armed.iter_mut().filter(|one| one.offset / 8 == offset / 8) {
            if armed.looks > 0 {
                armed.looks -= 1;
                continue;
            }
            memory.put(armed.offset, armed.value, armed.wide);
            armed.value = armed.value.wrapping_add(1);
        }
        self.armed.retain(|one| one.stays || one.looks > 0 || one.offset / 8 != offset / 8);
    }

    fn lets_through(&mut self, _memory: &Memory<'_>) -> bool {
        self.kept = self.byte().is_multiple_of(4);
        !self.kept
    }

    fn awaited(&mut self, memory: &Memory<'_>) -> Wait {
        self.waits += 1;
        assert!(self.waits < MOST_WAITS, "the kernel waits for guests without end");
        loop {
            if self.is_over() {
                self.kill();
                return Wait::Really(KILLED);
            }
            match self.byte() % 16 {
                0..=4 => self.write(memory),
                5..=8 => self.arm(memory),
                9 => {
                    let reason = self.byte() % 8;
                    memory.post(reason.into());
                    return Wait::Really(HONEST);
                }
                10 => return Wait::Over,
                11 => self.armed.clear(),
                12 if self.byte().is_multiple_of(4) => self.kill(),
                _ if self.kept => {
                    // What a guest that does nothing for the kernel says: done, or a call.
                    let (resumes, site) =
                        (matches!(memory.order(), 0 | 1 | 11 | 12), !self.byte().is_multiple_of(4));
                    memory.post(if !resumes {
                        4
                    } else if site {
                        1
                    } else {
                        2
                    });
                    return Wait::Really(HONEST);
                }
                _ => return Wait::Really(HONEST),
            }
        }
    }
}
