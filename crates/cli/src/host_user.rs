//! `--host-user`: who guest processes and the kernel's process are to the host when root runs umlaut.
//!
//! By default an unused user is taken for each instance, from far above those that hosts give away ([`USUAL`]), so that
//! neither root's files nor root's processes, nor another instance's, are theirs. `host::user` says how.

use std::fs;
use std::ops::Range;

use anyhow::{Context, anyhow, bail};
use host::privileges::Capabilities;
use rustix::process::{Resource, Rlimit};

/// Who guest processes are to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostUser {
    /// Run by root: an unused user. Else whoever runs umlaut.
    Auto,
    /// Whoever runs umlaut.
    Caller,
    Id(u32),
}

/// Below the ids that many programs take for negative, above those that useradd, subuid(5), systemd-nspawn and directory services give.
const USUAL: Range<u32> = 0x7800_0000..0x7fff_0000;
/// The first id that is nobody's who belongs to the system (`SYS_UID_MAX` in login.defs).
const FIRST: u32 = 1000;
/// Ids that always are somebody's: nobody's, in two sizes.
const NOBODY: [u32; 2] = [65534, 65535];
/// What is tried at most.
const TRIES: usize = 64;

impl HostUser {
    /// Reads the option's value.
    pub(crate) fn parse(text: &str) -> Result<HostUser, String> {
        match text {
            "auto" => Ok(HostUser::Auto),
            "none" => Ok(HostUser::Caller),
            _ => match text.parse() {
                Ok(0) => Err("0 is root: `none` leaves guest processes to it".into()),
                Ok(id) if id != u32::MAX => Ok(HostUser::Id(id)),
                _ => Err("give auto, none or the number of a user".into()),
            },
        }
    }
}

/// The user to become by [`change`], if one is wanted and to be had; where it is only not to be had, one line says why.
///
/// # Errors
/// The user that was asked for cannot be had.
pub(crate) fn choose(wanted: HostUser) -> anyhow::Result<Option<u32>> {
    let root = rustix::process::geteuid().is_root();
    match wanted {
        HostUser::Caller => Ok(None),
        HostUser::Auto if !root => Ok(None),
        HostUser::Id(_) if !root => bail!("--host-user: only root may choose who guest processes are"),
        HostUser::Id(id) => {
            let ids = mapped_ids();
            if let Some(why) = obstacle() {
                bail!("--host-user {id}: {why}");
            }
            if !ids.iter().any(|range| range.contains(&id)) {
                bail!("--host-user {id}: there is no such id in this user namespace");
            }
            Ok(Some(id))
        }
        HostUser::Auto => {
            let found = obstacle().map_or_else(|| free_id(&mapped_ids()), Err);
            found.map(Some).or_else(|why| {
                if is_root_outside() {
                    complain!(
                        "umlaut: guest processes stay uid 0, without capabilities ({why}); --host-user none takes note of that"
                    );
                }
                Ok(None)
            })
        }
    }
}

/// Whether this process is root, and not only by the name that a user namespace gives an ordinary user.
pub(crate) fn is_root_outside() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    rustix::process::geteuid().is_root() && first_outside(&map).is_none_or(|outside| outside == 0)
}

/// Who user 0 is outside, by a map.
fn first_outside(map: &str) -> Option<u32> {
    let pairs = map.lines().map(|line| line.split_whitespace().map(|word| word.parse().ok()));
    pairs.into_iter().find_map(|mut numbers| match (numbers.next()??, numbers.next()??) {
        (0_u32, outside) => Some(outside),
        _ => None,
    })
}

/// Becomes that user: the calling thread, while it is the only one.
///
/// # Errors
/// What the host says.
pub(crate) fn change(guests: Option<u32>) -> anyhow::Result<()> {
    let Some(id) = guests else { return Ok(()) };
    // Root's processes are not counted, and this user's should not be by a limit that was meant for root.
    let mut limit = rustix::process::getrlimit(Resource::Nproc);
    if limit.current.is_some() {
        let raise = |limit| rustix::process::setrlimit(Resource::Nproc, limit);
        // Without CAP_SYS_RESOURCE as far as it goes. With the limit that there is, guests get less.
        if raise(Rlimit { current: None, maximum: None }).is_err() {
            limit.current = limit.maximum;
            let _ = raise(limit);
        }
    }
    host::user::become_user(id).with_context(|| format!("becoming user {id} (--host-user none goes without)"))
}

/// Why this process cannot become another user.
fn obstacle() -> Option<String> {
    // The supervisor, which stays root, must be able to end what the kernel leaves behind.
    let needed = [
        (Capabilities::SETUID, "CAP_SETUID"),
        (Capabilities::SETGID, "CAP_SETGID"),
        (Capabilities::KILL, "CAP_KILL"),
    ];
    let held = host::privileges::permitted().unwrap_or(0);
    let missing: Vec<&str> =
        needed.iter().filter(|(bit, _)| held & bit.bits() == 0).map(|(_, name)| *name).collect();
    if !missing.is_empty() {
        return Some(format!("no {}", missing.join(", ")));
    }
    // user_namespaces(7); hosts without namespaces have no such file.
    if fs::read_to_string("/proc/self/setgroups").is_ok_and(|text| text.trim() == "deny") {
        return Some("this user namespace has no other user".into());
    }
    host::user::may_change().err().map(|error| format!("setresuid: {error}"))
}

/// The ids that this user namespace has, of users and groups alike.
fn mapped_ids() -> Vec<Range<u32>> {
    let read = |path| ranges(&fs::read_to_string(path).unwrap_or_default());
    let (users, groups) = (read("/proc/self/uid_map"), read("/proc/self/gid_map"));
    let both = |a: &Range<u32>, b: &Range<u32>| a.start.max(b.start)..a.end.min(b.end);
    let pairs = users.iter().flat_map(|a| groups.iter().map(move |b| both(a, b)));
    pairs.filter(|range| !range.is_empty()).collect()
}

/// Those of a map: lines of first id inside, first id outside, how many. All if there is none.
fn ranges(map: &str) -> Vec<Range<u32>> {
    if map.trim().is_empty() {
        return vec![Range { start: 0, end: u32::MAX }];
    }
    let range = |line: &str| {
        let mut numbers = line.split_whitespace().map(|word| word.parse::<u32>().ok());
        let (first, _, count) = (numbers.next()??, numbers.next()?, numbers.next()??);
        Some(first..first.saturating_add(count))
    };
    map.lines().filter_map(range).collect()
}

/// An id that no process runs as, and no user of /etc/passwd or group of /etc/group has.
fn free_id(mapped: &[Range<u32>]) -> Result<u32, String> {
    let within = |wanted: Range<u32>| {
        let cut = |range: &Range<u32>| range.start.max(wanted.start)..range.end.min(wanted.end);
        mapped.iter().map(cut).filter(|range| !range.is_empty()).max_by_key(|range| range.end - range.start)
    };
    let range = within(USUAL).or_else(|| within(Range { start: FIRST, end: u32::MAX }));
    let range = range.ok_or("this user namespace has no other user")?;
    let taken = [ids_of("/etc/passwd"), ids_of("/etc/group"), NOBODY.to_vec()].concat();
    for _ in 0..TRIES {
        let id = random(&range).map_err(|error| format!("getrandom: {error}"))?;
        if !taken.contains(&id) && !host::user::is_in_use(id) {
            return Ok(id);
        }
    }
    Err("no unused user was found".into())
}

fn random(range: &Range<u32>) -> anyhow::Result<u32> {
    let mut bytes = [0u8; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    let count = range.end.checked_sub(range.start).map(u64::from);
    let offset = count.and_then(|count| u64::from_ne_bytes(bytes).checked_rem(count));
    let id = offset
        .and_then(|offset| u32::try_from(offset).ok())
        .and_then(|offset| range.start.checked_add(offset));
    id.ok_or_else(|| anyhow!("an empty range"))
}

/// The third fields of its lines.
fn ids_of(path: &str) -> Vec<u32> {
    let text = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    text.lines().filter_map(|line| line.split(':').nth(2)?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_words_or_numbers_but_not_root() {
        assert_eq!(HostUser::parse("auto"), Ok(HostUser::Auto));
        assert_eq!(HostUser::parse("none"), Ok(HostUser::Caller));
        assert_eq!(HostUser::parse("1234"), Ok(HostUser::Id(1234)));
        for wrong in ["", "0", "-1", "4294967295", "nobody"] {
            assert!(HostUser::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn maps_of_ids_are_read() {
        assert_eq!(ranges("         0          0 4294967295\n"), vec![Range { start: 0, end: u32::MAX }]);
        assert_eq!(ranges(""), ranges("0 0 4294967295"));
        assert_eq!(ranges("0 1000 1\n1 100000 65536\n"), vec![0..1, 1..65537]);
        assert_eq!(first_outside("1 100000 65536\n0 1000 1\n"), Some(1000));
        assert_eq!((first_outside("0 0 4294967295"), first_outside("")), (Some(0), None));
    }

    /// Of the host's ids high ones, of a container's any that is nobody's, of a namespace with one id none.
    #[test]
    fn free_ids_are_ids_that_there_are() {
        for _ in 0..100 {
            assert!(USUAL.contains(&free_id(&ranges("")).unwrap()));
            let inside = free_id(&[0..1, 1..65536]).unwrap();
            assert!((FIRST..65534).contains(&inside) && !ids_of("/etc/passwd").contains(&inside), "{inside}");
        }
        assert!(free_id(&[Range { start: 0, end: 1 }]).is_err());
        assert!(free_id(&[]).is_err());
    }
}
