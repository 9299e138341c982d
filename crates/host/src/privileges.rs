//! Giving up capabilities (capabilities(7)), so that even uid 0 has none, nor gets one by executing a program.
//!
//! # Safety
//! Raw calls on structures of this frame and integers; nothing is allocated, so a child between fork and exec may do it.
#![allow(unsafe_code, reason = "capget, capset and prctl have no safe wrapper")]

use std::io;

use crate::check;

bitflags::bitflags! {
    /// Capabilities that somebody asks for or may want to keep.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Capabilities: u64 {
        /// Writing files whatever their mode.
        const DAC_OVERRIDE = 1 << 1;
        /// Reading files and searching directories whatever their mode.
        const DAC_READ_SEARCH = 1 << 2;
        /// Changing modes, times and attributes of files of others.
        const FOWNER = 1 << 3;
        /// Signals to processes of others.
        const KILL = 1 << 5;
        /// Changing groups.
        const SETGID = 1 << 6;
        /// Changing the user.
        const SETUID = 1 << 7;
        /// Tracing, where yama asks for it.
        const SYS_PTRACE = 1 << 19;
    }
}

/// `_LINUX_CAPABILITY_VERSION_3`.
const VERSION: u32 = 0x2008_0522;
/// More than there are.
const CAPABILITIES: u64 = 64;
/// `NOROOT`, `NO_SETUID_FIXUP`, `NO_CAP_AMBIENT_RAISE`, each with its lock, and the lock of `KEEP_CAPS`.
const SECURE_BITS: u64 = 0x3 | 0xc | 0x20 | 0xc0;

#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Sets {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// What the calling thread may make use of.
///
/// # Errors
/// What the host says.
pub fn permitted() -> io::Result<u64> {
    let header = Header { version: VERSION, pid: 0 };
    let mut sets = [Sets::default(); 2];
    // SAFETY: see above; version 3 fills two.
    check(unsafe { libc::syscall(libc::SYS_capget, &raw const header, sets.as_mut_ptr()) })?;
    let [low, high] = sets;
    Ok(u64::from(low.permitted) | u64::from(high.permitted) << 32)
}

/// From now on the calling thread, and those that it starts, hold `kept` at most, and no program that they execute gets
/// any, whoever owns it and whoever runs it.
///
/// # Errors
/// What the host says; then they may hold more.
pub fn hold_only(kept: Capabilities) -> io::Result<()> {
    let held = permitted()?;
    if held == 0 {
        return Ok(());
    }
    // SAFETY: integers, and two structures of this frame.
    unsafe {
        // Without CAP_SETPCAP what follows the first cannot be done; no new privileges come by exec then either.
        libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        for capability in 0..CAPABILITIES {
            libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0);
        }
        libc::prctl(libc::PR_SET_SECUREBITS, SECURE_BITS, 0, 0, 0);
        let kept = held & kept.bits();
        let half = |bits: u64| {
            let [a, b, c, d, ..] = bits.to_le_bytes();
            u32::from_le_bytes([a, b, c, d])
        };
        let set = |bits: u32| Sets { effective: bits, permitted: bits, inheritable: 0 };
        let sets = [set(half(kept)), set(half(kept >> 32))];
        let header = Header { version: VERSION, pid: 0 };
        check(libc::syscall(libc::SYS_capset, &raw const header, sets.as_ptr())).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On a thread of its own, which is what it concerns.
    #[test]
    fn what_is_given_up_is_gone_and_does_not_come_back() {
        let give_up = || {
            let held = permitted().unwrap();
            hold_only(Capabilities::DAC_READ_SEARCH).unwrap();
            assert_eq!(permitted().unwrap(), held & Capabilities::DAC_READ_SEARCH.bits());
            hold_only(Capabilities::all()).unwrap();
            assert_eq!(permitted().unwrap(), held & Capabilities::DAC_READ_SEARCH.bits());
            hold_only(Capabilities::empty()).unwrap();
            assert_eq!(permitted().unwrap(), 0);
            let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
            let set =
                |name| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
            assert_eq!([set("CapEff:"), set("CapInh:"), set("CapAmb:")], ["0000000000000000"; 3]);
            // Root's programs have none either.
            let grep =
                std::process::Command::new("grep").args(["CapEff", "/proc/self/status"]).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&grep.stdout), "CapEff:\t0000000000000000\n");
        };
        std::thread::spawn(give_up).join().unwrap();
    }
}
