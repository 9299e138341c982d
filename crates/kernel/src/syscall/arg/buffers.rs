//! Strings and bytes in guest memory.

use abi::UserAddr;

use super::{RegisterWords, SyscallArg};
use crate::syscall::show::{Phase, Printer};

/// A string in guest memory, ended by a zero byte.
#[derive(Clone, Copy, Debug)]
pub struct UserCStr(pub UserAddr);

impl SyscallArg for UserCStr {
    fn decode(words: &mut RegisterWords<'_>) -> Self {
        UserCStr(UserAddr::decode(words))
    }
    fn show(&self, printer: &mut Printer<'_>, _: Phase) {
        printer.c_string(self.0);
    }
}

/// Bytes in guest memory that the call reads: pointer and length.
#[derive(Clone, Copy, Debug)]
pub struct InBuf {
    pub addr: UserAddr,
    pub len: usize,
}

impl SyscallArg for InBuf {
    const REGISTERS: usize = 2;
    fn decode(words: &mut RegisterWords<'_>) -> Self {
        InBuf { addr: UserAddr::decode(words), len: usize::decode(words) }
    }
    fn show(&self, printer: &mut Printer<'_>, _: Phase) {
        printer.bytes(self.addr, self.len);
        printer.text(format_args!(", {}", self.len));
    }
}

/// Room in guest memory that the call fills: pointer and length.
#[derive(Clone, Copy, Debug)]
pub struct OutBuf {
    pub addr: UserAddr,
    pub len: usize,
}

impl SyscallArg for OutBuf {
    const REGISTERS: usize = 2;
    const SHOWN_AFTER: bool = true;
    fn decode(words: &mut RegisterWords<'_>) -> Self {
        OutBuf { addr: UserAddr::decode(words), len: usize::decode(words) }
    }
    fn show(&self, printer: &mut Printer<'_>, phase: Phase) {
        match phase {
            Phase::After(Ok(count)) => printer.bytes(self.addr, self.len.min(count)),
            _ => printer.address(self.addr),
        }
        printer.text(format_args!(", {}", self.len));
    }
}

/// A vector of buffers: pointer to `struct iovec` and count.
#[derive(Clone, Copy, Debug)]
pub struct IoVec {
    pub addr: UserAddr,
    pub count: usize,
}

impl SyscallArg for IoVec {
    const REGISTERS: usize = 2;
    fn decode(words: &mut RegisterWords<'_>) -> Self {
        IoVec { addr: UserAddr::decode(words), count: usize::decode(words) }
    }
    fn show(&self, printer: &mut Printer<'_>, _: Phase) {
        printer.io_vec(self.addr, self.count);
        printer.text(format_args!(", {}", self.count));
    }
}

macro_rules! buffers {
    ($($(#[$meta:meta])* $name:ident, $len:ident: $int:ty;)*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name {
            pub addr: UserAddr,
            pub $len: $int,
        }

        impl SyscallArg for $name {
            const REGISTERS: usize = 2;
            fn decode(words: &mut RegisterWords<'_>) -> Self {
                $name { addr: UserAddr::decode(words), $len: <$int>::decode(words) }
            }
            fn show(&self, printer: &mut Printer<'_>, _: Phase) {
                printer.address(self.addr);
                printer.text(format_args!(", {}", self.$len));
            }
        }
    )*};
}

buffers! {
    /// Buffers that the call fills: pointer to `struct iovec` and count.
    OutVec, count: usize;
    /// Ranges of another process: pointer to `struct iovec` and count.
    RemoteVec, count: usize;
    /// Room for a path, ended by a zero byte.
    OutPath, len: usize;
    /// Room for `struct linux_dirent`s.
    OutDirents, len: u32;
    /// Room for `struct linux_dirent64`s.
    OutDirents64, len: u32;
    /// A socket's address.
    InSockaddr, len: i32;
    /// The value of a socket's option.
    InSockopt, len: i32;
}

/// Room for a socket's address: where it goes, and where its length is read and written.
#[derive(Clone, Copy, Debug)]
pub struct OutSockaddr {
    pub addr: UserAddr,
    pub len: UserAddr,
}

/// Room for the value of a socket's option: where it goes, and where its length is read and written.
#[derive(Clone, Copy, Debug)]
pub struct OutSockopt {
    pub addr: UserAddr,
    pub len: UserAddr,
}

macro_rules! answers {
    ($($name:ident)*) => {$(
        impl SyscallArg for $name {
            const REGISTERS: usize = 2;
            fn decode(words: &mut RegisterWords<'_>) -> Self {
                $name { addr: UserAddr::decode(words), len: UserAddr::decode(words) }
            }
            fn show(&self, printer: &mut Printer<'_>, _: Phase) {
                printer.address(self.addr);
                printer.text(format_args!(", "));
                printer.address(self.len);
            }
        }
    )*};
}
answers! { OutSockaddr OutSockopt }

/// A set of CPUs that the call reads: its size in bytes, then the pointer.
#[derive(Clone, Copy, Debug)]
pub struct InCpuMask {
    pub len: u32,
    pub addr: UserAddr,
}

/// Room for a set of CPUs: its size in bytes, then the pointer.
#[derive(Clone, Copy, Debug)]
pub struct OutCpuMask {
    pub len: u32,
    pub addr: UserAddr,
}

macro_rules! cpu_masks {
    ($($name:ident)*) => {$(
        impl SyscallArg for $name {
            const REGISTERS: usize = 2;
            fn decode(words: &mut RegisterWords<'_>) -> Self {
                $name { len: u32::decode(words), addr: UserAddr::decode(words) }
            }
            fn show(&self, printer: &mut Printer<'_>, _: Phase) {
                printer.text(format_args!("{}, ", self.len));
                printer.address(self.addr);
            }
        }
    )*};
}
cpu_masks! { InCpuMask OutCpuMask }
