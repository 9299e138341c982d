//! Calls that the stub serves by itself, without any host call or with one of its own.

use platform::{Counters, Identity, Place};

use crate::channel::Channel;
use crate::layout::*;

/// The number of each, in the order of `stub/enter.s`, whose first entry hands over.
const NUMBERS: [u16; 7] = [
    libc::SYS_getpid as u16,
    libc::SYS_gettid as u16,
    libc::SYS_getuid as u16,
    libc::SYS_geteuid as u16,
    libc::SYS_getgid as u16,
    libc::SYS_getegid as u16,
    libc::SYS_sched_yield as u16,
];

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
    for (leaf, number) in (1u8..).zip(NUMBERS) {
        channel.set_byte(DISPATCH + u64::from(number), leaf);
    }
}

/// Counts what it has served since `seen` was last brought up to date.
pub(crate) fn count(channel: &Channel, seen: &mut [u64; 7], counters: &Counters) {
    for ((place, number), seen) in (SERVED..).step_by(8).zip(NUMBERS).zip(seen) {
        let now = channel.get(place);
        if now != *seen {
            counters.add_calls(Place::Stub, number, now.wrapping_sub(*seen));
            *seen = now;
        }
    }
}
