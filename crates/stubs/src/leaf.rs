//! Calls that the stub serves by itself, without any host call or with one of its own.

use platform::{CallShape, Counters, Identity, Place};

use crate::channel::Channel;
use crate::layout::*;

/// The numbers of those that it has code for, in the order of `stub/enter.s`, whose first entry hands over. Which of them it
/// serves, and as what, the kernel's rows say ([`CallShape::place`]).
pub const LEAVES: [u16; COUNT] = [
    libc::SYS_getpid as u16,
    libc::SYS_gettid as u16,
    libc::SYS_getuid as u16,
    libc::SYS_geteuid as u16,
    libc::SYS_getgid as u16,
    libc::SYS_getegid as u16,
    libc::SYS_sched_yield as u16,
    libc::SYS_read as u16,
    libc::SYS_write as u16,
    libc::SYS_pread64 as u16,
    libc::SYS_pwrite64 as u16,
    libc::SYS_lseek as u16,
    libc::SYS_readv as u16,
    libc::SYS_writev as u16,
    libc::SYS_preadv as u16,
    libc::SYS_pwritev as u16,
    libc::SYS_futex as u16,
    libc::SYS_getcpu as u16,
    libc::SYS_madvise as u16,
    libc::SYS_rt_sigprocmask as u16,
    libc::SYS_sigaltstack as u16,
];
/// How many there are.
pub(crate) const COUNT: usize = 21;

/// What the stub answers, and that it answers.
pub(crate) fn serve(channel: &Channel, identity: &Identity, shapes: &[CallShape]) {
    let answers = [
        identity.pid.cast_unsigned(),
        identity.tid.cast_unsigned(),
        identity.uid,
        identity.euid,
        identity.gid,
        identity.egid,
    ];
    for (place, answer) in (IDENTITY..).step_by(4).zip(answers) {
        channel.set32(place, answer);
    }
    enable(channel, Place::Stub, shapes);
}

/// From now on the stub serves the calls of a kind.
pub(crate) fn enable(channel: &Channel, kind: Place, shapes: &[CallShape]) {
    for (leaf, number) in (1u8..).zip(LEAVES).filter(|(_, number)| place(*number, shapes) == kind) {
        channel.set_byte(DISPATCH + u64::from(number), leaf);
    }
}

fn place(number: u16, shapes: &[CallShape]) -> Place {
    shapes.get(usize::from(number)).map_or(Place::Kernel, |shape| shape.place)
}

/// Calls with one of these numbers that it has served, by its own word.
pub(crate) fn served(channel: &Channel, numbers: &[libc::c_long]) -> u64 {
    let of = |number: u16| numbers.contains(&libc::c_long::from(number));
    let places = (SERVED..).step_by(8).zip(LEAVES).filter(|(_, number)| of(*number));
    places.fold(0, |sum, (place, _)| sum.wrapping_add(channel.get(place)))
}

/// Counts what it has served since `seen` was last brought up to date.
pub(crate) fn count(channel: &Channel, seen: &mut [u64; COUNT], counters: &Counters, shapes: &[CallShape]) {
    for ((counter, number), seen) in (SERVED..).step_by(8).zip(LEAVES).zip(seen) {
        let now = channel.get(counter);
        if now != *seen {
            counters.add_calls(place(number, shapes), number, now.wrapping_sub(*seen));
            *seen = now;
        }
    }
}
