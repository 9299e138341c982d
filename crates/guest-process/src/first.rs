//! What a platform does to its first guest process from outside, and learns from it.

use std::io;

use platform::Vdso;
use rustix::process::{Pid, Resource, Rlimit};

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
    if let Err(error) = std::fs::write(format!("/proc/{pid}/oom_score_adj"), score.to_string()) {
        tracing::debug!(%error, "guest processes do not go first when memory runs out");
    }
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
    let text = std::fs::read_to_string(format!("/proc/{pid}/maps"))?;
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

/// Where the host's vDSO lies, if there is one.
pub fn find_vdso(maps: &[Map]) -> Option<Vdso> {
    let image = maps.iter().find(|map| map.name == "[vdso]")?;
    let vvar = maps.iter().find(|map| map.name.starts_with("[vvar"))?;
    Some(Vdso {
        vvar: abi::UserAddr(vvar.start),
        image: abi::UserAddr(image.start),
        end: abi::UserAddr(image.end),
    })
}
