//! Terminals as data: Linux's line discipline N_TTY ([`LineDiscipline`]) and the pair of master and slave
//! around it ([`PtyPair`]). Deterministic, without threads, waiting, tasks or host calls: each operation does
//! what can be done at once and says in [`Effects`] what its caller has to do.
//!
//! ```text
//!  program  -- write -->  OPOST           -->  output  -- read -->   device
//!  (slave)                echo ...........^                          (master)
//!           <-- read --   queue of lines  <--  input   <-- write --
//! ```
//!
//! It follows Linux 6.18 to the byte (`drivers/tty/n_tty.c`, `pty.c`); `tests/host.rs` compares it with the
//! host's. Job control (`SIGTTIN`, `SIGTTOU`, `TOSTOP`), sessions and `TIOCEXCL` are the kernel's, which also
//! owns the locks, the wait queues and the timers of `VTIME`.
//!
//! Neighbours: uses `abi`; used by `kernel`.
#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![warn(missing_docs)]

extern crate alloc;

mod canonical;
mod ctype;
mod discipline;
mod echo;
mod effects;
mod flow;
mod input;
mod output;
mod pty;
mod queue;
mod read;
mod settings;
mod termio;

pub use discipline::LineDiscipline;
pub use effects::Effects;
pub use input::LineError;
pub use pty::PtyPair;
pub use read::{Chunk, Read, Timer, Wait};
pub use termio::{to_termio, with_termio, with_termios};
