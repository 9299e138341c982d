//! The stub: our code in every guest process, position-independent assembly in `stub/*.s`.
//!
//! It has no data but two words of its text, and no stack: what it works on lies in the thread's channel
//! ([`crate::layout`]). `boot.s` is how the first process comes up, `enter.s` how a patched call site comes in,
//! `delegate.s` and `futex.s` what it serves by a host call, `own.s` what is the thread's own, `marshal.s` what goes along with a hand-over, `signal.s` how everything
//! else does, `hand_over.s` how the kernel is asked and answers, `calls.s` and
//! `clone.s` what it orders, `resume.s` the ways back to the guest.
//!
//! # Safety
//! The assembly is data here: it is never executed in this process.
#![allow(unsafe_code, reason = "the stub's assembly and its labels")]

use std::arch::global_asm;

use crate::layout::*;

/// The signal of kicks.
pub(crate) const KICK: i32 = libc::SIGUSR1;

global_asm!(
    ".pushsection .rodata.umlaut_stubs, \"a\", @progbits",
    ".balign 64",
    ".globl umlaut_text, umlaut_text_end, umlaut_channels, umlaut_leaves, umlaut_leaf_table",
    "umlaut_text:",
    include_str!("stub/boot.s"),
    ".balign 8",
    "umlaut_channels: .quad 0",
    "umlaut_leaves: .quad 0",
    include_str!("stub/hand_over.s"),
    include_str!("stub/resume.s"),
    include_str!("stub/enter.s"),
    include_str!("stub/delegate.s"),
    include_str!("stub/futex.s"),
    include_str!("stub/own.s"),
    include_str!("stub/marshal.s"),
    include_str!("stub/calls.s"),
    include_str!("stub/clone.s"),
    include_str!("stub/signal.s"),
    "umlaut_text_end:",
    ".popsection",
    SIZE = const SIZE,
    CHANNELS_SIZE = const CHANNELS_SIZE,
    TO_KERNEL = const TO_KERNEL,
    TO_GUEST = const TO_GUEST,
    REASON = const REASON,
    ORDER = const ORDER,
    ORDER_BITS = const ORDER_BITS,
    REASON_BITS = const REASON_BITS,
    CALL = const CALL,
    ORDERS = const ORDERS,
    PENDING = const PENDING,
    ARRIVED = const ARRIVED,
    ALIVE = const ALIVE,
    CALLS = const CALLS,
    FILES = const FILES,
    FP = const FP,
    RESULT = const RESULT,
    FAILED = const FAILED,
    SELF = const SELF,
    GS = const GS,
    FEATURES = const FEATURES,
    ARGS = const ARGS,
    SPIN = const SPIN,
    BROUGHT = const BROUGHT,
    ANSWERS = const ANSWERS,
    ANSWER_COUNT = const ANSWER_COUNT,
    STRING_KIND = const crate::marshal::STRING_KIND,
    STRING_MAX = const crate::marshal::STRING_MAX,
    BYTES_MAX = const crate::marshal::BYTES_MAX,
    UNANSWERED = const reason::UNANSWERED,
    SIGNAL = const SIGNAL,
    REGS = const REGS,
    IDENTITY = const IDENTITY,
    SERVED = const SERVED,
    DISPATCH = const DISPATCH,
    DISPATCHED = const DISPATCHED,
    MESSAGE = const MESSAGE,
    MESSAGE_CONTROL = const MESSAGE_CONTROL,
    PASSED = const PASSED,
    RECORDS = const RECORDS,
    XSTATE = const XSTATE,
    FRAME = const FRAME,
    HANDED_COUNT = const HANDED_COUNT,
    HANDED = const HANDED,
    HANDED_SHIFT = const HANDED_SHIFT,
    MAY_READ = const MAY_READ,
    MAY_WRITE = const MAY_WRITE,
    PAID = const PAID,
    BUDGET = const BUDGET,
    READ_CHARS = const READ_CHARS,
    WRITTEN_CHARS = const WRITTEN_CHARS,
    KEPT = const KEPT,
    FREE_ADVICE = const crate::filter::free_advice_bits(),
    BLOCKED = const BLOCKED,
    WAITING = const WAITING,
    BLOCKABLE = const !abi::SigSet::UNBLOCKABLE.0.cast_signed(),
    MASKED = const reason::MASKED,
    ASKS_ADVICE = const ASKS_ADVICE,
    ALTERNATE = const ALTERNATE,
    MIN_ALTERNATE = const abi::Sigaltstack::MIN_SIZE,
    GUEST_TOP = const abi::GUEST_TOP,
    LONGEST = const crate::delegate::LONGEST,
    KICK = const KICK,
    WAITV = const crate::calls::WAITV,
    CALLED = const reason::CALLED,
    TRAPPED = const reason::TRAPPED,
    KICKED = const reason::KICKED,
    DONE = const reason::DONE,
    BROKEN = const reason::BROKEN,
);

macro_rules! labels {
    ($($name:ident),* $(,)?) => {
        unsafe extern "C" { static umlaut_text: u8; $(static $name: u8;)* }
        /// A place in the stub.
        #[allow(non_camel_case_types, reason = "named as in the assembly")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Label { $($name),* }
        impl Label {
            /// Its offset from the start of the text.
            pub(crate) fn offset(self) -> u64 {
                let address = match self { $(Label::$name => (&raw const $name).addr()),* };
                address.wrapping_sub((&raw const umlaut_text).addr()) as u64
            }
        }
    };
}

labels!(
    umlaut_text_end,
    umlaut_channels,
    umlaut_leaves,
    umlaut_leaf_table,
    umlaut_plans,
    umlaut_enter,
    umlaut_signal,
    umlaut_parked,
    umlaut_sigreturn_call,
    umlaut_wake_call,
    umlaut_sleep_call,
    umlaut_yield_call,
    umlaut_futex_wait_call,
    umlaut_futex_wake_call,
    umlaut_advise_call,
    umlaut_read_call,
    umlaut_write_call,
    umlaut_pread_call,
    umlaut_pwrite_call,
    umlaut_lseek_call,
    umlaut_readv_call,
    umlaut_writev_call,
    umlaut_preadv_call,
    umlaut_pwritev_call,
    umlaut_receive_call,
    umlaut_close_call,
    umlaut_mmap_call,
    umlaut_munmap_call,
    umlaut_mprotect_call,
    umlaut_mremap_call,
    umlaut_madvise_call,
    umlaut_futex_call,
    umlaut_membarrier_call,
    umlaut_block_waitv_call,
    umlaut_block_call,
    umlaut_exit_call,
    umlaut_fork_call,
    umlaut_thread_call,
    umlaut_remap_call,
    umlaut_dup_call,
    umlaut_shut_call,
    umlaut_close_range_call,
    umlaut_pdeathsig_call,
    umlaut_getppid_call,
    umlaut_check_in_call,
    umlaut_give_up_call,
);

/// The stub's text, as it is.
fn text() -> &'static [u8] {
    let start = &raw const umlaut_text;
    // SAFETY: the labels bound one read-only section of this program.
    unsafe { std::slice::from_raw_parts(start, Label::umlaut_text_end.offset() as usize) }
}

impl Layout {
    /// Where a label is in guest processes.
    pub(crate) fn at(self, label: Label) -> u64 {
        self.text() + label.offset()
    }

    /// Bytes of the pages that hold the text.
    pub(crate) fn text_pages(self) -> u64 {
        Label::umlaut_text_end.offset().next_multiple_of(abi::PAGE_SIZE)
    }

    /// The stub as an executable.
    pub(crate) fn image(self, shapes: &[platform::CallShape]) -> Vec<u8> {
        let mut text = text().to_vec();
        for (place, word) in [
            (Label::umlaut_channels, self.channels()),
            (Label::umlaut_leaves, self.at(Label::umlaut_leaf_table)),
        ] {
            let at = place.offset() as usize;
            if let Some(bytes) = text.get_mut(at..at + 8) {
                bytes.copy_from_slice(&word.to_le_bytes());
            }
        }
        let plans = Label::umlaut_plans.offset() as usize;
        if let Some(table) = text.get_mut(plans..plans + 2 * DISPATCHED as usize) {
            for (entry, shape) in table.chunks_exact_mut(2).zip(shapes) {
                entry.copy_from_slice(&crate::marshal::plan(*shape).to_le_bytes());
            }
        }
        guest_process::executable(self.text(), &text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_fits_its_pages() {
        assert!(text().len() as u64 <= TEXT_SIZE, "{} bytes", text().len());
    }

    /// Each allowed instruction is a `syscall`.
    #[test]
    fn the_slots_are_system_calls() {
        for slot in crate::filter::SLOTS_OF_CALLS {
            let at = slot.label.offset() as usize;
            assert_eq!(text()[at..at + 2], [0x0f, 0x05], "{:?}", slot.label);
        }
    }

    /// Leaf entries are 32 bytes apart.
    #[test]
    fn the_leaf_table_is_aligned() {
        assert_eq!(Label::umlaut_leaf_table.offset() % 32, 0);
    }
}
