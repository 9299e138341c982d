//! Calls that the stub serves by itself, without any host call or with one of its own.

use platform::{Counters, Identity, Place};

use crate::channel::Channel;
use crate::layout::*;

/// Of each: the number, and where it counts as served. In the order of `stub/enter.s`, whose first entry hands over.
const LEAVES: [(u16, Place); COUNT] = [
    (libc::SYS_getpid as u16, Place::Stub),
    (libc::SYS_gettid as u16, Place::Stub),
    (libc::SYS_getuid as u16, Place::Stub),
    (libc::SYS_geteuid as u16, Place::Stub),
    (libc::SYS_getgid as u16, Place::Stub),
    (libc::SYS_getegid as u16, Place::Stub),
    (libc::SYS_sched_yield as u16, Place::Stub),
    (libc::SYS_read as u16, Place::Delegated),
    (libc::SYS_write as u16, Place::Delegated),
    (libc::SYS_pread64 as u16, Place::Delegated),
    (libc::SYS_pwrite64 as u16, Place::Delegated),
    (libc::SYS_lseek as u16, Place::Delegated),
    (libc::SYS_readv as u16, Place::Delegated),
    (libc::SYS_writev as u16, Place::Delegated),
    (libc::SYS_preadv as u16, Place::Delegated),
    (libc::SYS_pwritev as u16, Place::Delegated),
    (libc::SYS_futex as u16, Place::Stub),
    (libc::SYS_getcpu as u16, Place::Stub),
    (libc::SYS_madvise as u16, Place::Stub),
    (libc::SYS_rt_sigprocmask as u16, Place::Stub),
    (libc::SYS_sigaltstack as u16, Place::Stub),
];
/// How many there are.
pub(crate) const COUNT: usize = 21;

/// What the stub answers, and that it answers.
pub(crate) fn serve(channel: &Channel, identity: &Identity) {
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
    enable(channel, Place::Stub);
}

/// From now on the stub serves the calls of a kind.
pub(crate) fn enable(channel: &Channel, kind: Place) {
    for (leaf, (number, _)) in (1u8..).zip(LEAVES).filter(|(_, (_, place))| *place == kind) {
        channel.set_byte(DISPATCH + u64::from(number), leaf);
    }
}

/// Calls with one of these numbers that it has served, by its own word.
pub(crate) fn served(channel: &Channel, numbers: &[libc::c_long]) -> u64 {
    let of = |number: u16| numbers.contains(&libc::c_long::from(number));
    let places = (SERVED..).step_by(8).zip(LEAVES).filter(|(_, (number, _))| of(*number));
    places.fold(0, |sum, (place, _)| sum.wrapping_add(channel.get(place)))
}

/// Counts what it has served since `seen` was last brought up to date.
pub(crate) fn count(channel: &Channel, seen: &mut [u64; COUNT], counters: &Counters) {
    for ((place, (number, kind)), seen) in (SERVED..).step_by(8).zip(LEAVES).zip(seen) {
        let now = channel.get(place);
        if now != *seen {
            counters.add_calls(kind, number, now.wrapping_sub(*seen));
            *seen = now;
        }
    }
}
