//! How a running kernel is looked at from outside: `umlaut stat` and `umlaut ps`.
//!
//! Each kernel listens on a socket in Linux's abstract namespace, `umlaut/UID/PID` ([`server`]). Whoever connects as the
//! same user (or root) is sent one text of all figures, and nothing is read from him; others are sent nothing. The name
//! is no file, so nothing is left behind however the kernel ends. [`client`] finds the kernels by the host's list of
//! sockets, and trusts what it is told only from a process of the user whose name the socket bears.
//!
//! The text: lines of `name value`, then `call.NAME.PLACE count` for each call made, then `process PID PPID THREADS STATE
//! NAME` for each process inside, then `end`.

pub(crate) mod client;
pub(crate) mod ps;
pub(crate) mod server;
pub(crate) mod stat;

use std::io::Write;

/// The first line of the text: what it is, and its version.
const GREETING: &str = "umlaut 1";
/// The last line.
const END: &str = "end";

/// The name of the socket of a kernel.
fn socket_name(uid: u32, pid: u32) -> String {
    format!("umlaut/{uid}/{pid}")
}

/// User and kernel of a socket's name.
fn parse_socket_name(name: &str) -> Option<(u32, u32)> {
    let (uid, pid) = name.strip_prefix("umlaut/")?.split_once('/')?;
    Some((uid.parse().ok()?, pid.parse().ok()?))
}

/// A name that a guest chose, fit to be printed on a terminal: one word without control characters.
fn printable(name: &[u8]) -> String {
    let plain = |c: char| if c.is_control() || c.is_whitespace() { '?' } else { c };
    let text: String = String::from_utf8_lossy(name).chars().map(plain).collect();
    if text.is_empty() { "?".into() } else { text }
}

/// Prints a text; a reader who has seen enough ends the command without a word, as SIGPIPE would.
fn print(text: &str) -> anyhow::Result<i32> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        result => Ok(result.map(|()| 0)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_others_refused() {
        assert_eq!(parse_socket_name(&socket_name(1000, 4242)), Some((1000, 4242)));
        for other in ["umlaut/1000", "umlaut/x/1", "umlaut/1/2/3", "other/1/2", ""] {
            assert_eq!(parse_socket_name(other), None, "{other}");
        }
    }

    #[test]
    fn names_of_guests_cannot_write_to_the_terminal() {
        assert_eq!(printable(b"a b\x1b[2J\n"), "a?b?[2J?");
        assert_eq!(printable(b""), "?");
    }
}
