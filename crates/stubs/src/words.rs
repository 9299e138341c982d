//! Words of a channel that the guest thread's stub (`stub/own.s`) and the kernel change while it runs.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use abi::{Sigaltstack, SsFlags};
use platform::SharedWords;

use crate::channel::Channel;
use crate::layout::*;

/// Those of one channel.
pub(crate) struct Words {
    channel: Arc<Channel>,
}

impl Words {
    pub(crate) fn new(channel: &Arc<Channel>) -> Words {
        Words { channel: Arc::clone(channel) }
    }
}

impl SharedWords for Words {
    fn blocked(&self) -> u64 {
        self.channel.long(BLOCKED).load(Ordering::SeqCst)
    }

    fn set_blocked(&self, set: u64) {
        self.channel.long(BLOCKED).store(set, Ordering::SeqCst);
    }

    fn add_pending(&self, set: u64) {
        self.channel.long(WAITING).fetch_or(set, Ordering::SeqCst);
    }

    fn set_pending(&self, set: u64) {
        self.channel.long(WAITING).store(set, Ordering::SeqCst);
    }

    fn set_advice_is_free(&self, free: bool) {
        self.channel.word(ASKS_ADVICE).store(u32::from(!free), Ordering::SeqCst);
    }

    // The guest has posted before the kernel looks, and is answered after the kernel has written.
    fn alternate_stack(&self) -> Sigaltstack {
        Sigaltstack {
            sp: self.channel.get(ALTERNATE),
            flags: SsFlags::from_bits_retain(self.channel.get32(ALTERNATE + 8)),
            pad: 0,
            size: self.channel.get(ALTERNATE + 16),
        }
    }

    fn set_alternate_stack(&self, stack: &Sigaltstack) {
        self.channel.set(ALTERNATE, stack.sp);
        self.channel.set(ALTERNATE + 8, stack.flags.bits().into());
        self.channel.set(ALTERNATE + 16, stack.size);
    }
}
