//! Compares this crate with the line discipline and the ptys of the host's Linux: the same operations on a
//! real pty and on a [`tty::PtyPair`], and the same bytes, counts and events have to come out at both ends.
//! `script` has the operations, `model` and `host` carry them out, `cases` are written by hand, `generated`
//! are drawn at random.

mod cases;
mod generated;
mod host;
mod model;
mod script;
