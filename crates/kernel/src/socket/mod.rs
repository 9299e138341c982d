//! Sockets of the AF_UNIX family: stream, datagram and seqpacket.
//!
//! [`Unix`] is a socket, [`SocketFile`] its open file; what comes in lies in its inbox as messages. `address.rs` has
//! names, `connect.rs` how sockets find each other, `send.rs` and `receive.rs` the transfer, `flight.rs` descriptors
//! in messages and what is done about sockets that only messages hold, `options.rs` a table of options; `calls.rs`,
//! `option_calls.rs` and `message_calls.rs` serve the system calls, `control.rs` their control messages.
//!
//! Readers come one at a time: each looks, copies out, and only then takes away (INVARIANTS 2.4). Lock levels, from
//! the outside: a socket's `SleepLock`s, `SocketNames`, `SocketFlight`, `SocketBacklog`, `Socket` (what it is
//! connected to), `Buffer` (its inbox). No two of one level are held together, and messages are dropped without any:
//! they may hold the last reference to an open file.
//!
//! Neighbours: `fs` for what a socket is as a file, `task` for waiting.

mod address;
mod calls;
mod connect;
mod control;
mod file;
mod flight;
mod inbox;
mod message_calls;
mod option_calls;
mod options;
mod receive;
mod send;
mod unix;

use std::collections::HashMap;
use std::sync::Weak;

use sync::{Mutex, order};

pub use calls::{
    sys_accept, sys_accept4, sys_bind, sys_connect, sys_getpeername, sys_getsockname, sys_listen,
    sys_shutdown, sys_socket, sys_socketpair,
};
pub use file::SocketFile;
pub use message_calls::{sys_recvfrom, sys_recvmmsg, sys_recvmsg, sys_sendmmsg, sys_sendmsg, sys_sendto};
pub use option_calls::{sys_getsockopt, sys_setsockopt};
pub use unix::Unix;

use flight::Flight;
use unix::Kind;

/// The sockets of abstract names: each type of socket has its own names.
type Names = HashMap<(Kind, Vec<u8>), Weak<Unix>>;

/// What all sockets of a kernel share.
#[derive(Default)]
pub struct Sockets {
    names: Mutex<order::SocketNames, Names>,
    /// Descriptors in flight.
    flight: Mutex<order::SocketFlight, Flight>,
}
