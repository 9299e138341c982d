//! Workloads: system calls that concern the calling process only.

use std::sync::atomic::AtomicU32;
use std::time::Instant;

use crate::measure::{Measured, exactly, repeat};
use crate::{Workload, sys};

pub(crate) const ALL: &[Workload] = &[
    ("getpid", || repeat(sys::getpid_by_syscall)),
    ("getpid-libc", || repeat(sys::getpid)),
    ("getpid-1m", || exactly(1_000_000, sys::getpid_by_syscall)),
    ("hand-over", || repeat(sys::sched_get_priority_max)),
    ("gettid", || repeat(sys::gettid)),
    ("clock_gettime", || {
        repeat(|| {
            std::hint::black_box(Instant::now());
        })
    }),
    ("sched_yield", || repeat(sys::sched_yield)),
    ("signal-self", signal_self),
    ("sigprocmask", || repeat(sys::block_usr1_and_back)),
    ("futex-wake", || {
        let word = AtomicU32::new(0);
        repeat(|| sys::futex_wake(&word))
    }),
];

fn signal_self() -> Measured {
    sys::handle_usr1();
    repeat(sys::raise_usr1)
}
