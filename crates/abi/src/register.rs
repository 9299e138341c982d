//! What one argument register of a system call decodes to.

use crate::{FutexOp, MempolicyMode, SigSet, SocketType, UserAddr};

/// A value that a register holds: any 64 bits decode, and it prints as a trace shows it.
pub trait FromRegister: core::fmt::Display + Sized {
    /// Takes what Linux takes: the low bits, as far as the type goes.
    fn from_register(word: u64) -> Self;
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl FromRegister for $type {
            #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss,
                clippy::cast_lossless, trivial_numeric_casts, reason = "Linux takes the low bits of the register")]
            fn from_register(word: u64) -> Self {
                word as $type
            }
        }
    )*};
}
integers!(i32, u32, i64, u64, usize, i16, u16, u8);

macro_rules! newtypes {
    ($($type:ident),*) => {$(
        impl FromRegister for $type {
            fn from_register(word: u64) -> Self {
                $type(FromRegister::from_register(word))
            }
        }
    )*};
}
newtypes!(FutexOp, MempolicyMode, SigSet, SocketType, UserAddr);

impl core::fmt::Display for UserAddr {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.0 {
            0 => f.write_str("NULL"),
            addr => write!(f, "{addr:#x}"),
        }
    }
}
