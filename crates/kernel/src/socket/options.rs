//! Options of sockets: what there is of each, in a table.
//!
//! What the transfer looks at lies in [`Hot`]; options that change nothing in AF_UNIX keep their value, as on Linux.

use std::collections::BTreeMap;
use std::time::Duration;

use abi::SocketOption;
use sync::{Mutex, order};

/// Bytes of a new socket's buffers (`net.core.wmem_default`, `rmem_default`).
const DEFAULT_BUFFER: usize = 212_992;
/// A tick of Linux's clock, to which time-outs are rounded up.
const TICK_US: u64 = 4000;

/// Options that are looked at in each transfer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hot {
    /// Bytes, Linux's book-keeping included.
    pub send_buffer: usize,
    pub receive_buffer: usize,
    pub send_timeout: Option<Duration>,
    pub receive_timeout: Option<Duration>,
    /// `SO_RCVLOWAT`, in bytes.
    pub low_water: usize,
    pub pass_credentials: bool,
    pub pass_rights: bool,
}

/// A socket's options.
pub(super) struct Options {
    hot: Mutex<order::Leaf, Hot>,
    /// Those that have been set and change nothing.
    kept: Mutex<order::Leaf, BTreeMap<i32, i32>>,
    /// `SO_LINGER`: switched on, seconds.
    linger: Mutex<order::Leaf, (i32, i32)>,
}

impl Default for Options {
    fn default() -> Self {
        let hot = Hot {
            send_buffer: DEFAULT_BUFFER,
            receive_buffer: DEFAULT_BUFFER,
            send_timeout: None,
            receive_timeout: None,
            low_water: 1,
            pass_credentials: false,
            pass_rights: true,
        };
        Options { hot: Mutex::new(hot), kept: Mutex::default(), linger: Mutex::default() }
    }
}

impl Options {
    pub(super) fn hot(&self) -> Hot {
        *self.hot.lock()
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Hot)) {
        change(&mut self.hot.lock());
    }

    /// The value of an option that changes nothing.
    pub(super) fn kept(&self, option: SocketOption) -> Option<i32> {
        self.kept.lock().get(&option.0).copied()
    }

    pub(super) fn keep(&self, option: SocketOption, value: i32) {
        self.kept.lock().insert(option.0, value);
    }

    pub(super) fn linger(&self) -> (i32, i32) {
        *self.linger.lock()
    }

    pub(super) fn set_linger(&self, on: i32, seconds: i32) {
        *self.linger.lock() = (on, seconds);
    }

    /// What an accepted socket has of its listener.
    pub(super) fn inherit(&self, listener: &Options) {
        let from = listener.hot();
        self.change(|own| {
            own.pass_credentials = from.pass_credentials;
            own.pass_rights = from.pass_rights;
        });
    }
}

/// A time-out as it is kept: rounded up to a tick. `None`: none.
pub(super) fn rounded(seconds: i64, microseconds: i64) -> Option<Duration> {
    let Ok(seconds) = u64::try_from(seconds) else { return Some(Duration::ZERO) };
    let ticks = microseconds.unsigned_abs().div_ceil(TICK_US);
    let span = Duration::from_secs(seconds).saturating_add(Duration::from_micros(ticks * TICK_US));
    (!span.is_zero()).then_some(span)
}

/// What an option is like.
pub(super) enum Shape {
    /// Any value but zero is one; kept.
    Switch,
    /// A number; kept. What it is before it is set.
    Number(i32),
    /// A number that needs CAP_NET_ADMIN when set to more than this.
    Privileged(i32),
    /// Off, and refused where it is to be switched on: not for AF_UNIX.
    Off,
    /// To be read only, as a number.
    Told(Told),
    /// With code of its own.
    Own(Own),
}

/// What can only be read.
#[derive(Clone, Copy)]
pub(super) enum Told {
    Type,
    Domain,
    Protocol,
    Error,
    IsListening,
    SendLowWater,
    BpfExtensions,
}

/// What has code of its own.
#[derive(Clone, Copy)]
pub(super) enum Own {
    SendBuffer { forced: bool },
    ReceiveBuffer { forced: bool },
    SendTimeout,
    ReceiveTimeout,
    LowWater,
    Linger,
    PassCredentials,
    PassRights,
    PeerCredentials,
    PeerGroups,
    PeerPidfd,
    PeerName,
}

/// All options of level SOL_SOCKET. What is not here is `ENOPROTOOPT`.
pub(super) static OPTIONS: &[(SocketOption, Shape)] = &[
    (SocketOption::DEBUG, Shape::Privileged(0)),
    (SocketOption::REUSEADDR, Shape::Switch),
    (SocketOption::TYPE, Shape::Told(Told::Type)),
    (SocketOption::ERROR, Shape::Told(Told::Error)),
    (SocketOption::DONTROUTE, Shape::Switch),
    (SocketOption::BROADCAST, Shape::Switch),
    (SocketOption::SNDBUF, Shape::Own(Own::SendBuffer { forced: false })),
    (SocketOption::RCVBUF, Shape::Own(Own::ReceiveBuffer { forced: false })),
    (SocketOption::KEEPALIVE, Shape::Switch),
    (SocketOption::OOBINLINE, Shape::Switch),
    (SocketOption::NO_CHECK, Shape::Switch),
    (SocketOption::PRIORITY, Shape::Privileged(6)),
    (SocketOption::LINGER, Shape::Own(Own::Linger)),
    (SocketOption::REUSEPORT, Shape::Off),
    (SocketOption::PASSCRED, Shape::Own(Own::PassCredentials)),
    (SocketOption::PEERCRED, Shape::Own(Own::PeerCredentials)),
    (SocketOption::RCVLOWAT, Shape::Own(Own::LowWater)),
    (SocketOption::SNDLOWAT, Shape::Told(Told::SendLowWater)),
    (SocketOption::RCVTIMEO, Shape::Own(Own::ReceiveTimeout)),
    (SocketOption::SNDTIMEO, Shape::Own(Own::SendTimeout)),
    (SocketOption::PEERNAME, Shape::Own(Own::PeerName)),
    (SocketOption::ACCEPTCONN, Shape::Told(Told::IsListening)),
    (SocketOption::SNDBUFFORCE, Shape::Own(Own::SendBuffer { forced: true })),
    (SocketOption::RCVBUFFORCE, Shape::Own(Own::ReceiveBuffer { forced: true })),
    (SocketOption::MARK, Shape::Privileged(-1)),
    (SocketOption::PROTOCOL, Shape::Told(Told::Protocol)),
    (SocketOption::DOMAIN, Shape::Told(Told::Domain)),
    (SocketOption::RXQ_OVFL, Shape::Switch),
    (SocketOption::NOFCS, Shape::Switch),
    (SocketOption::SELECT_ERR_QUEUE, Shape::Switch),
    (SocketOption::BPF_EXTENSIONS, Shape::Told(Told::BpfExtensions)),
    (SocketOption::INCOMING_CPU, Shape::Number(-1)),
    (SocketOption::PEERGROUPS, Shape::Own(Own::PeerGroups)),
    (SocketOption::ZEROCOPY, Shape::Off),
    (SocketOption::RCVTIMEO_NEW, Shape::Own(Own::ReceiveTimeout)),
    (SocketOption::SNDTIMEO_NEW, Shape::Own(Own::SendTimeout)),
    (SocketOption::RCVMARK, Shape::Switch),
    (SocketOption::PEERPIDFD, Shape::Own(Own::PeerPidfd)),
    (SocketOption::RCVPRIORITY, Shape::Switch),
    (SocketOption::PASSRIGHTS, Shape::Own(Own::PassRights)),
];

/// What an option is like; `None`: there is none of this number.
pub(super) fn shape(option: SocketOption) -> Option<&'static Shape> {
    OPTIONS.iter().find(|(known, _)| *known == option).map(|(_, shape)| shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_rounded_up_to_ticks() {
        assert_eq!(rounded(0, 0), None);
        assert_eq!(rounded(0, 1), Some(Duration::from_millis(4)));
        assert_eq!(rounded(2, 30_000), Some(Duration::from_millis(2032)));
        // Linux: no wait at all.
        assert_eq!(rounded(-1, 0), Some(Duration::ZERO));
    }

    #[test]
    fn each_option_is_there_once() {
        for (index, (option, _)) in OPTIONS.iter().enumerate() {
            assert!(!OPTIONS.iter().skip(index + 1).any(|(other, _)| other == option), "{option}");
        }
    }
}
