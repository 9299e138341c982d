//! The other side: finding kernels, and reading what they tell.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::time::Duration;

use anyhow::{Context, bail};

use super::{END, GREETING, parse_socket_name, socket_name};

/// A kernel that does not answer within this time is taken for none.
const PATIENCE: Duration = Duration::from_secs(5);
/// More than any kernel has to tell, in bytes.
const LONGEST: u64 = 4 << 20;

/// A running kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Instance {
    uid: u32,
    pid: u32,
}

/// What a kernel told of itself.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    words: BTreeMap<String, String>,
    pub(crate) processes: Vec<String>,
    /// As it came.
    pub(crate) text: String,
}

impl Snapshot {
    fn parse(text: String) -> anyhow::Result<Snapshot> {
        let mut lines = text.lines();
        if lines.next() != Some(GREETING) || text.lines().next_back() != Some(END) {
            bail!("another version of umlaut runs there");
        }
        let mut snapshot = Snapshot::default();
        for line in lines.filter(|line| *line != END) {
            let (name, value) = line.split_once(' ').unwrap_or((line, ""));
            match name {
                "process" => snapshot.processes.push(value.into()),
                _ => drop(snapshot.words.insert(name.into(), value.into())),
            }
        }
        snapshot.text = text;
        Ok(snapshot)
    }

    /// A word that it tells.
    pub(crate) fn word(&self, name: &str) -> &str {
        self.words.get(name).map_or("", String::as_str)
    }

    /// A number that it tells; 0 if it does not.
    pub(crate) fn number(&self, name: &str) -> u64 {
        self.word(name).parse().unwrap_or(0)
    }
}

impl Instance {
    /// Asks it.
    pub(crate) fn snapshot(self) -> anyhow::Result<Snapshot> {
        let address = SocketAddr::from_abstract_name(socket_name(self.uid, self.pid))?;
        let mut stream = UnixStream::connect_addr(&address).context("it has ended")?;
        // Anybody can take a name; only the user's own kernel is believed.
        let peer = rustix::net::sockopt::socket_peercred(&stream)?;
        if peer.uid.as_raw() != self.uid {
            bail!("not a kernel of user {}", self.uid);
        }
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut text = String::new();
        (&mut stream).take(LONGEST).read_to_string(&mut text).context("it does not answer")?;
        Snapshot::parse(text)
    }
}

/// The kernels that this user may look at, by pid, with what they tell.
pub(crate) fn find_all() -> anyhow::Result<Vec<(Instance, Snapshot)>> {
    let own = rustix::process::geteuid();
    let list = std::fs::read_to_string("/proc/net/unix").context("the host's list of sockets")?;
    let mut names: Vec<(u32, u32)> =
        list.lines().filter_map(|line| parse_socket_name(line.rsplit_once('@')?.1)).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|(uid, _)| own.is_root() || *uid == own.as_raw());
    let instances = names.into_iter().map(|(uid, pid)| Instance { uid, pid });
    // One that has ended meanwhile, or that is none, is left out.
    Ok(instances.filter_map(|instance| Some((instance, instance.snapshot().ok()?))).collect())
}

/// The kernel that is meant: by the pid of it or of its supervisor, by the name of its program, or the only one.
pub(crate) fn find(target: Option<&str>) -> anyhow::Result<(Instance, Snapshot)> {
    let matches = |snapshot: &Snapshot| {
        target.is_none_or(|target| {
            ["kernel_pid", "supervisor_pid", "program"].iter().any(|name| snapshot.word(name) == target)
        })
    };
    let mut found = find_all()?;
    let any = !found.is_empty();
    found.retain(|(_, snapshot)| matches(snapshot));
    match (found.len(), target) {
        (1, _) => {}
        (0, Some(target)) if any => {
            bail!("no kernel of yours has the pid or runs the program {target}; see `umlaut ps`")
        }
        (0, _) => bail!("no kernel of yours runs"),
        _ => {
            let pids: Vec<&str> = found.iter().map(|(_, snapshot)| snapshot.word("supervisor_pid")).collect();
            bail!("several kernels run; name one by its pid: {}", pids.join(", "));
        }
    }
    found.pop().context("no kernel of yours runs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_and_a_cut_one_refused() {
        let text = "umlaut 1\nprogram sh\ntasks 2\nprocess 1 0 0 S init\nprocess 2 1 1 R sh\nend\n";
        let snapshot = Snapshot::parse(text.into()).unwrap();
        assert_eq!(
            (snapshot.word("program"), snapshot.number("tasks"), snapshot.number("none")),
            ("sh", 2, 0)
        );
        assert_eq!(snapshot.processes, ["1 0 0 S init", "2 1 1 R sh"]);
        assert!(Snapshot::parse(text.replace("end\n", "")).is_err());
        assert!(Snapshot::parse(text.replace("umlaut 1", "umlaut 2")).is_err());
    }
}
