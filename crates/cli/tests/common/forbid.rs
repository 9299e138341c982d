//! Commands on a host that forbids some system calls: a seccomp filter of ours before they are executed.
//!
//! # Safety
//! Between fork and exec a child makes system calls on memory that it has prepared before.
#![allow(
    unsafe_code,
    clippy::cast_possible_truncation,
    reason = "a child gives up system calls between fork and exec; numbers of a filter of a few instructions"
)]

use std::os::unix::process::CommandExt;
use std::process::Command;

/// Which of a call's arguments are refused.
#[derive(Clone, Copy)]
pub(crate) enum When {
    Always,
    /// One of these bits is set in the argument.
    Bits(u32, u32),
    /// The argument is none of these.
    NotOneOf(u32, &'static [u32]),
}

/// A system call that fails so.
pub(crate) type Rule = (libc::c_long, i32, When);

/// Makes calls of these numbers fail with EPERM.
pub(crate) fn deny(command: &mut Command, numbers: &[libc::c_long]) {
    let rules: Vec<Rule> = numbers.iter().map(|number| (*number, libc::EPERM, When::Always)).collect();
    refuse(command, &rules);
}

/// Makes calls fail as the rules say.
pub(crate) fn refuse(command: &mut Command, rules: &[Rule]) {
    let mut filter = filter(rules);
    let give_up = move || {
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
        // SAFETY: the program lives over the call, which copies it.
        let done = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
        };
        if done { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // SAFETY: two system calls.
    unsafe { command.pre_exec(give_up) };
}

/// As a host before Linux 5.0, which has no listeners of seccomp.
pub(crate) fn without_listeners(command: &mut Command) {
    refuse(command, &[(libc::SYS_seccomp, libc::EINVAL, When::Bits(1, 8))]);
}

fn filter(rules: &[Rule]) -> Vec<libc::sock_filter> {
    /// Of `struct seccomp_data`: the lower half of the first argument.
    const ARGUMENTS: u32 = 16;
    let statement = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let load = |offset| statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset);
    let jump = |kind: u32, jt, jf, k| statement(libc::BPF_JMP | kind | libc::BPF_K, jt, jf, k);
    let end = |action| statement(libc::BPF_RET | libc::BPF_K, 0, 0, action);
    let mut filter = Vec::new();
    for (number, errno, when) in rules {
        let fails = end(libc::SECCOMP_RET_ERRNO | errno.unsigned_abs());
        let mut body = Vec::new();
        match when {
            When::Always => body.push(fails),
            When::Bits(argument, bits) => {
                body.extend([load(ARGUMENTS + 8 * argument), jump(libc::BPF_JSET, 0, 1, *bits), fails]);
            }
            When::NotOneOf(argument, values) => {
                body.push(load(ARGUMENTS + 8 * argument));
                for (index, value) in values.iter().enumerate() {
                    body.push(jump(libc::BPF_JEQ, (values.len() - index) as u8, 0, *value));
                }
                body.push(fails);
            }
        }
        filter.push(load(0));
        filter.push(jump(libc::BPF_JEQ, 0, body.len() as u8, u32::try_from(*number).unwrap_or(u32::MAX)));
        filter.append(&mut body);
    }
    filter.push(end(libc::SECCOMP_RET_ALLOW));
    filter
}
