//! What a platform does to its first guest process from outside, and learns from it.

use std::fs::File;
use std::io::{self, Write};

use platform::Vdso;
use rustix::process::{Pid, Resource, Rlimit};

use crate::CEILING;

/// Added to what umlaut itself has: guests go first when memory runs out.
const OOM_SCORE_ADJ: i32 = 300;

/// Limits of every guest process; forks inherit them. `data`: the bytes of private writable memory that one may map.
///
/// From outside, since the kernel's own /proc files belong to root while it is undumpable.
///
/// # Errors
/// What setting a limit gives.
pub fn set_limits(pid: i32, data: Option<u64>) -> io::Result<()> {
    let own = std::fs::read_to_string("/proc/self/oom_score_adj").unwrap_or_default();
    let score = (own.trim().parse().unwrap_or(0) + OOM_SCORE_ADJ).min(1000);
    if let Err(error) = set(pid, "oom_score_adj", &score.to_string()) {
        tracing::debug!(%error, "guest processes do not go first when memory runs out");
    }
    weigh_as_own_session(pid);
    let pid = Pid::from_raw(pid);
    // A core limit of 1 stops core pipes too, which 0 does not (fs/coredump.c).
    let limits =
        [(Resource::Core, 1), (Resource::Nofile, 256), (Resource::Msgqueue, 0), (Resource::Rtprio, 0)];
    for (resource, limit) in limits.into_iter().chain(data.map(|limit| (Resource::Data, limit))) {
        let old =
            rustix::process::prlimit(pid, resource, Rlimit { current: Some(limit), maximum: Some(limit) });
        match old {
            // A harder limit than ours may not be raised, and need not be.
            Ok(_) | Err(rustix::io::Errno::PERM) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// To the host's scheduler the guests' session is a group beside ours (sched(7): autogroup), and as heavy as any. It gets the
/// weight that ours has been given: else guests would go before what they are to stand behind, or get no time beside a
/// kernel thread of their own that computes.
fn weigh_as_own_session(pid: i32) {
    // "/autogroup-25 nice 0"; nothing, or no such file, where the host does not group sessions.
    let own = std::fs::read_to_string("/proc/self/autogroup").unwrap_or_default();
    let Some((_, nice)) = own.trim_end().rsplit_once(" nice ").filter(|(_, nice)| *nice != "0") else {
        return;
    };
    if let Err(error) = set(pid, "autogroup", nice) {
        // EAGAIN too: the host takes one of these in a tenth of a second from those without CAP_SYS_ADMIN.
        tracing::debug!(%error, "the guests' session has not the weight of umlaut's");
    }
}

/// Writes to a file of the process's in `/proc`. Not truncated, which our own Landlock forbids.
fn set(pid: i32, name: &str, value: &str) -> io::Result<()> {
    let path = format!("/proc/{pid}/{name}");
    let write = || File::options().write(true).open(path)?.write_all(value.as_bytes());
    host::user::as_guests(write)
}

/// Tries whether the kernel may copy memory of a guest process: all that guests hand it comes by that.
///
/// # Errors
/// What the host says, with what may forbid it.
pub fn try_copying(pid: i32, readable: u64) -> io::Result<()> {
    let mut bytes = [0; 8];
    match host::vm::read_process(pid, &[(readable, bytes.len())], &mut bytes) {
        Ok(_) => Ok(()),
        Err(error) => Err(io::Error::new(
            error.kind(),
            format!(
                "process_vm_readv: {error} (is kernel.yama.ptrace_scope 2 or 3, or does a container's profile forbid it?)"
            ),
        )),
    }
}

/// A line of the host's `/proc/PID/maps`.
pub struct Map {
    pub start: u64,
    pub end: u64,
    name: String,
}

impl Map {
    /// Whether it is of the host's vDSO.
    pub fn is_vdso(&self) -> bool {
        self.name.starts_with("[v")
    }
}

/// The mappings of a process.
///
/// # Errors
/// What reading them gives.
pub fn read_maps(pid: i32) -> io::Result<Vec<Map>> {
    let text = host::user::as_guests(|| std::fs::read_to_string(format!("/proc/{pid}/maps")))?;
    let parse = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        Some(Map {
            start: u64::from_str_radix(start, 16).ok()?,
            end: u64::from_str_radix(end, 16).ok()?,
            name: fields.nth(4).unwrap_or_default().to_owned(),
        })
    };
    Ok(text.lines().filter_map(parse).collect())
}

/// Where the host's vDSO lies, once it is above all of ours: the host puts it there for a process whose places are not
/// random, but some forbid to ask for that (the default profile of container engines), and then it lies anywhere. So it is
/// moved, by `call`, which makes a host call in the process; where that fails it goes, and guests do without.
pub fn settle_vdso(
    maps: &[Map],
    mut call: impl FnMut(libc::c_long, [u64; 6]) -> io::Result<u64>,
) -> Option<Vdso> {
    /// Between the places that are tried.
    const STEP: u64 = 1 << 20;
    const TRIES: u64 = 64;
    let found = find_vdso(maps)?;
    // Not the vsyscall page, which has a place of its own.
    let pieces = || maps.iter().filter(|map| map.is_vdso() && map.start < 1 << 47);
    let start = pieces().map(|map| map.start).min()?;
    if start >= CEILING {
        return Some(found);
    }
    let len = found.end.0.checked_sub(start)?;
    let is_free = |place: &u64| !maps.iter().any(|map| map.start < *place + len && *place < map.end);
    let place = (1..=TRIES).map(|step| CEILING + step * STEP).find(is_free);
    let moved = place.filter(|place| {
        pieces().all(|map| {
            let (len, flags) = (map.end - map.start, libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED);
            let to = place + (map.start - start);
            call(libc::SYS_mremap, [map.start, len, len, u64::from(flags.cast_unsigned()), to, 0]).is_ok()
        })
    });
    let Some(place) = moved else {
        tracing::debug!("no vDSO for guest processes");
        for map in pieces() {
            // An error: it has been moved, or nothing may be done about it.
            let _ = call(libc::SYS_munmap, [map.start, map.end - map.start, 0, 0, 0, 0]);
        }
        return None;
    };
    let there = |at: abi::UserAddr| abi::UserAddr(place + (at.0 - start));
    Some(Vdso { vvar: there(found.vvar), image: there(found.image), end: there(found.end) })
}

/// Where the host's vDSO lies, if there is one.
fn find_vdso(maps: &[Map]) -> Option<Vdso> {
    let image = maps.iter().find(|map| map.name == "[vdso]")?;
    let vvar = maps.iter().find(|map| map.name.starts_with("[vvar"))?;
    Some(Vdso {
        vvar: abi::UserAddr(vvar.start),
        image: abi::UserAddr(image.start),
        end: abi::UserAddr(image.end),
    })
}
