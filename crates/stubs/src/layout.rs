//! Where things lie in a guest process above [`abi::GUEST_TOP`], and in a channel: what the stub's assembly and
//! the kernel's side agree on.
//!
//! At a base drawn at each start of the kernel: the stub's text, then the channels, one for each thread, [`SIZE`]
//! bytes apart. A channel is what a guest thread and its kernel thread share; the guest may write all of it at
//! any time, so the kernel reads each field once and checks the copy.

use std::io;

use abi::{GUEST_TOP, PAGE_SIZE};

/// Bytes of a channel, and what its address is a multiple of.
pub(crate) const SIZE: u64 = 0x1_0000;
/// Channels of a process: guest threads in one address space, at most.
pub(crate) const SLOTS: u64 = 1024;
pub(crate) const CHANNELS_SIZE: u64 = SLOTS * SIZE;
/// Bytes kept for the text.
pub(crate) const TEXT_SIZE: u64 = 3 * PAGE_SIZE;

// Offsets in a channel. The first 64 bytes are one cache line, and all that the two sides exchange at an ordinary call:
// between two CPUs a line takes as long to move as a hundred instructions.
/// u32: posted by the guest, read by the kernel.
pub(crate) const TO_KERNEL: u64 = 0x00;
/// u32: posted by the kernel, read by the guest.
pub(crate) const TO_GUEST: u64 = 0x04;
/// u8: why the guest posted; above: the number of a call by a patched site, [`DISPATCHED`] for all that are not below.
pub(crate) const REASON: u64 = 0x08;
pub(crate) const REASON_BITS: u32 = 8;
/// u8: what the kernel wants; above: how many answers the guest is to write to its memory before it goes on.
pub(crate) const ORDER: u64 = 0x0c;
pub(crate) const ORDER_BITS: u32 = 8;
/// u64 × 6: a call's arguments. The first is where the kernel puts the result.
pub(crate) const CALL: u64 = 0x10;
/// u32: a kick came while the thread was in the stub.
pub(crate) const PENDING: u64 = 0x40;
/// u32: cleared by the host when the thread is gone.
pub(crate) const ALIVE: u64 = 0x44;
/// u32: records of a list of calls.
pub(crate) const CALLS: u64 = 0x48;
/// u32: descriptors that come with an order.
pub(crate) const FILES: u64 = 0x4c;
/// u64: where the guest's extended state lies; 0: in the processor.
pub(crate) const FP: u64 = 0x50;
/// u64: result of an order.
pub(crate) const RESULT: u64 = 0x58;
/// u64: how far a list of calls came, in bytes of records; whether an exchange faulted.
pub(crate) const FAILED: u64 = 0x60;
/// u64: the channel's own address.
pub(crate) const SELF: u64 = 0x68;
/// u64: what GS base is to be when the guest runs.
pub(crate) const GS: u64 = 0x70;
/// u64: the features of the extended state.
pub(crate) const FEATURES: u64 = 0x78;
/// u64 × 3: arguments of an order.
pub(crate) const ARGS: u64 = 0x80;
/// u32: for how many ticks of the time-stamp counter the guest watches for an order before it sleeps.
pub(crate) const SPIN: u64 = 0x98;
/// u32: the answers of the order, as the stub has noted them.
pub(crate) const ANSWER_COUNT: u64 = 0x9c;
/// The last signal: u32 number, u32 code, u64 address, u32 architecture, u64 error code, trap number, cr2.
pub(crate) const SIGNAL: u64 = 0xa0;
/// The guest's registers, as `user_regs_struct`: `rip` to `ss` are what `iretq` takes.
pub(crate) const REGS: u64 = 0x100;
/// u32 × 7: what the leaves that tell who one is answer.
pub(crate) const IDENTITY: u64 = 0x200;
/// u64 for each leaf: calls that it has served.
pub(crate) const SERVED: u64 = 0x240;
/// u32: numbers that [`HANDED`] has entries for; 0 until something is delegated.
pub(crate) const HANDED_COUNT: u64 = 0x300;
/// u64: bytes that may be written to files whose entry says [`PAID`].
pub(crate) const BUDGET: u64 = 0x308;
/// u64 each: bytes read from and written to delegated files.
pub(crate) const READ_CHARS: u64 = 0x310;
pub(crate) const WRITTEN_CHARS: u64 = 0x318;
/// u64 × 5: where a call by a patched site goes on, with its flags above (`stub/enter.s`); what its leaf keeps.
pub(crate) const KEPT: u64 = 0x320;
/// u64: the signals that the thread blocks, changed by the stub and by the kernel.
pub(crate) const BLOCKED: u64 = 0x350;
/// u64: the signals that wait for it or for its process.
pub(crate) const WAITING: u64 = 0x358;
/// u32: not 0: the kernel is asked for each madvise.
pub(crate) const ASKS_ADVICE: u64 = 0x360;
/// u64 × 3: the guest's alternate signal stack: where it begins, its flags, its size. Changed by the stub and by the kernel.
pub(crate) const ALTERNATE: u64 = 0x368;
/// u32: not 0 once the thread waits for orders: its alternate stack is there, and host signals may come.
pub(crate) const ARRIVED: u64 = 0x380;
/// u8 for each number below [`DISPATCHED`]: how the stub serves it, 0: not at all.
pub(crate) const DISPATCH: u64 = 0x400;
pub(crate) const DISPATCHED: u64 = 0x200;
/// A `msghdr` and what belongs to it; its control data.
pub(crate) const MESSAGE: u64 = 0x800;
pub(crate) const MESSAGE_CONTROL: u64 = MESSAGE + 0x80;
/// The received descriptors: i32 each, behind the header of the control data.
pub(crate) const PASSED: u64 = MESSAGE_CONTROL + 16;
/// A time-out of a host call.
pub(crate) const TIMEOUT: u64 = 0xa00;
/// Bytes of all that lies before the records: what a thread begins with as zeros.
pub(crate) const WORDS: u64 = 0x1000;
/// Records of host calls.
pub(crate) const RECORDS: u64 = 0x1000;
pub(crate) const RECORD: u64 = 64;
pub(crate) const RECORD_COUNT: usize = 60;
/// The extended state, when it is asked for or set.
pub(crate) const XSTATE: u64 = 0x2000;
pub(crate) const XSTATE_SIZE: u64 = 0x3000;
/// Room for what does not fit elsewhere: the filter's program at the start.
pub(crate) const WINDOW: u64 = 0x5000;
/// What the guest has brought along with a call: see `stub/marshal.s`.
pub(crate) const BROUGHT: u64 = 0x6000;
/// What the kernel answers, in the same form.
pub(crate) const ANSWERS: u64 = 0x7000;
/// Bytes of either.
pub(crate) const MARSHAL_SIZE: u64 = 0x1000;
/// Delegated files, u32 each, by the guest's number: the host's, shifted by [`HANDED_SHIFT`], and what it is good for.
/// 0: none.
pub(crate) const HANDED: u64 = 0x8000;
pub(crate) const HANDED_SHIFT: u32 = 3;
pub(crate) const MAY_READ: u32 = 1;
pub(crate) const MAY_WRITE: u32 = 2;
/// Writing takes of the budget.
pub(crate) const PAID: u32 = 4;
/// The alternate signal stack: to the channel's end.
pub(crate) const STACK: u64 = 0x9000;
/// Where the frame lies by which a new thread begins: a `ucontext`.
pub(crate) const FRAME: u64 = SIZE - 0x1000;

/// Where things lie, by the names that hostile guests of the tests know them by: a guest finds them out as well.
pub const PLACES: [(&str, u64); 22] = [
    ("TEXT", TEXT_SIZE),
    ("CHANNEL", SIZE),
    ("CHANNELS", CHANNELS_SIZE),
    ("TO_GUEST", TO_GUEST),
    ("ORDER", ORDER),
    ("RESUME_FULL", Order::ResumeFull as u64),
    ("ORDER_THREAD", Order::Thread as u64),
    ("ORDER_EXIT", Order::Exit as u64),
    ("ALIVE", ALIVE),
    ("REASON", REASON),
    ("CALL", CALL),
    ("NEW_CHANNEL", ARGS + 16),
    ("GS", GS),
    ("REGS", REGS),
    ("RESULT", RESULT),
    ("SPIN", SPIN),
    ("COUNTERS", IDENTITY),
    ("KERNELS_PID", ARGS + 8),
    ("HANDED", HANDED),
    ("ALTERNATE", ALTERNATE),
    ("STACK", STACK),
    ("FRAME", FRAME),
];

/// Why a guest thread posted.
pub(crate) mod reason {
    /// A system call by a patched site, whose number stands above.
    pub(crate) const CALLED: u32 = 1;
    /// A signal: SIGSYS or a fault.
    pub(crate) const TRAPPED: u32 = 2;
    pub(crate) const KICKED: u32 = 3;
    /// An order is done.
    pub(crate) const DONE: u32 = 4;
    /// The stub faulted where it never does.
    pub(crate) const BROKEN: u32 = 5;
    /// An answer could not be written to the guest's memory.
    pub(crate) const UNANSWERED: u32 = 6;
    /// A call is done that blocks or unblocks a signal which waits.
    pub(crate) const MASKED: u32 = 7;
}

/// What the kernel orders: the index in the stub's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Order {
    /// Goes on behind a call that came by a patched site.
    ResumeCall = 0,
    /// Goes on with all registers as they are in the channel.
    ResumeFull = 1,
    Calls = 2,
    Block = 3,
    SaveState = 4,
    Exchange = 5,
    Fork = 6,
    Thread = 7,
    Exit = 8,
    /// Receives a descriptor and keeps it.
    Keep = 9,
    /// Closes descriptors; then done, or as `ResumeCall`, or as `ResumeFull`.
    Close = 10,
    CloseResumeCall = 11,
    CloseResumeFull = 12,
    /// Makes other threads' descriptors lead to nothing.
    Shut = 13,
}
impl Order {
    /// Whether it goes with the result of a call.
    pub(crate) fn answers_call(self) -> bool {
        matches!(self, Order::ResumeCall | Order::CloseResumeCall)
    }

    /// Whether the guest's own code goes on.
    pub(crate) fn resumes(self) -> bool {
        use Order::*;
        matches!(self, ResumeCall | ResumeFull | CloseResumeCall | CloseResumeFull)
    }
}
pub(crate) const ORDERS: u64 = 14;

/// Where everything of ours lies in guest processes: the same in all of one kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    base: u64,
}

impl Layout {
    /// Draws a base.
    pub(crate) fn random() -> io::Result<Layout> {
        let mut bytes = [0u8; 8];
        rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
        let lowest = GUEST_TOP + SIZE;
        let steps = (guest_process::CEILING - SIZE - CHANNELS_SIZE - lowest) / SIZE;
        // The text ends where the channels begin, which are aligned; so it keeps their randomness.
        Ok(Layout { base: lowest + u64::from_ne_bytes(bytes) % steps * SIZE + SIZE - TEXT_SIZE })
    }

    /// The text, where the image is entered.
    pub(crate) fn text(self) -> u64 {
        self.base
    }

    /// All channels.
    pub(crate) fn channels(self) -> u64 {
        self.base + TEXT_SIZE
    }

    /// One channel.
    pub(crate) fn channel(self, slot: u32) -> u64 {
        self.channels() + u64::from(slot) * SIZE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_lies_between_the_guest_and_the_vdso() {
        for _ in 0..1000 {
            let layout = Layout::random().unwrap();
            assert!(layout.text() > GUEST_TOP && layout.text().is_multiple_of(PAGE_SIZE));
            assert!(layout.channels().is_multiple_of(SIZE));
            assert!(layout.channel(SLOTS as u32 - 1) + SIZE <= guest_process::CEILING);
        }
    }
}
