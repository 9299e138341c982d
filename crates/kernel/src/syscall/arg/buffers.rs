//! Strings and bytes in guest memory.

use abi::UserAddr;
use platform::Pointee;

use super::{RegisterWords, SyscallArg};
use crate::syscall::show::{self, Phase, Printer};

/// A string in guest memory, ended by a zero byte.
#[derive(Clone, Copy, Debug)]
pub struct UserCStr(pub UserAddr);

impl SyscallArg for UserCStr {
    const BRINGS: Option<Pointee> = Some(Pointee::String);
    fn decode(words: &mut RegisterWords<'_>) -> Self {
        UserCStr(UserAddr::decode(words))
    }
    fn show(&self, printer: &mut Printer<'_>, _: Phase) {
        printer.path(self.0);
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
    const BRINGS: Option<Pointee> = Some(Pointee::Elements(1));
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
    const IS_OUTPUT: bool = true;
    fn decode(words: &mut RegisterWords<'_>) -> Self {
        OutBuf { addr: UserAddr::decode(words), len: usize::decode(words) }
    }
    fn show(&self, printer: &mut Printer<'_>, _: Phase) {
        show_filled(printer, self.addr, self.len, |printer, count| printer.bytes(self.addr, count));
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
    const BRINGS: Option<Pointee> = Some(Pointee::Elements(16));
    fn decode(words: &mut RegisterWords<'_>) -> Self {
        IoVec { addr: UserAddr::decode(words), count: usize::decode(words) }
    }
    fn show(&self, printer: &mut Printer<'_>, _: Phase) {
        printer.io_vec(self.addr, self.count, usize::MAX);
        printer.text(format_args!(", {}", self.count));
    }
}

/// Room of `len` bytes: after the call what `show` makes of the bytes filled, then the length.
fn show_filled(
    printer: &mut Printer<'_>,
    addr: UserAddr,
    len: usize,
    show: impl FnOnce(&mut Printer<'_>, usize),
) {
    printer.after(addr, |printer, count| show(printer, count.min(len)));
    if !printer.deferred {
        printer.text(format_args!(", {len}"));
    }
}

macro_rules! buffers {
    ($($(#[$meta:meta])* $name:ident, $len:ident: $int:ty, output: $output:literal, $show:expr;)*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name {
            pub addr: UserAddr,
            pub $len: $int,
        }

        impl SyscallArg for $name {
            const REGISTERS: usize = 2;
            const IS_OUTPUT: bool = $output;
            fn decode(words: &mut RegisterWords<'_>) -> Self {
                $name { addr: UserAddr::decode(words), $len: <$int>::decode(words) }
            }
            fn show(&self, printer: &mut Printer<'_>, _: Phase) {
                let show: fn(&mut Printer<'_>, UserAddr, $int) = $show;
                show(printer, self.addr, self.$len);
            }
        }
    )*};
}

buffers! {
    /// Buffers that the call fills: pointer to `struct iovec` and count.
    OutVec, count: usize, output: true, |printer, addr, count| {
        printer.after(addr, |printer, filled| printer.io_vec(addr, count, filled));
        if !printer.deferred {
            printer.text(format_args!(", {count}"));
        }
    };
    /// Ranges of another process: pointer to `struct iovec` and count.
    RemoteVec, count: usize, output: false, |printer, addr, count| {
        printer.io_vec_with(addr, count, |printer, base, _| printer.address(base));
        printer.text(format_args!(", {count}"));
    };
    /// Room for a path, ended by a zero byte.
    OutPath, len: usize, output: true, |printer, addr, len| {
        show_filled(printer, addr, len, |printer, _| printer.path(addr));
    };
    /// Room for bytes that are no text.
    OutRandom, len: usize, output: true, |printer, addr, len| {
        show_filled(printer, addr, len, |printer, count| printer.random_bytes(addr, count));
    };
    /// Room for `struct linux_dirent`s.
    OutDirents, len: u32, output: true, show_entries;
    /// Room for `struct linux_dirent64`s.
    OutDirents64, len: u32, output: true, show_entries;
    /// A socket's address.
    InSockaddr, len: i32, output: false, |printer, addr, len| {
        show::socket_address(printer, addr, usize::try_from(len).unwrap_or(0));
        printer.text(format_args!(", {len}"));
    };
    /// The value of a socket's option.
    InSockopt, len: i32, output: false, |printer, addr, len| {
        let (level, option) = (printer.register_before(2), printer.register_before(1));
        show::socket_option(printer, level, option, addr, usize::try_from(len).unwrap_or(0));
        printer.text(format_args!(", {len}"));
    };
}

/// Where a directory entry's length is, in both its forms.
const ENTRY_LENGTH: u64 = 16;

/// The number of directory entries.
fn show_entries(printer: &mut Printer<'_>, addr: UserAddr, len: u32) {
    let room = usize::try_from(len).unwrap_or(usize::MAX);
    show_filled(printer, addr, room, |printer, filled| {
        let (mut at, mut count) = (0u64, 0);
        while at < filled as u64 {
            let length = addr.checked_add(at + ENTRY_LENGTH).and_then(|at| printer.value::<[u8; 2]>(at));
            match length.map(u16::from_le_bytes) {
                None | Some(0) => break,
                Some(length) => at += u64::from(length),
            }
            count += 1;
        }
        printer.address(addr);
        printer.text(format_args!(" /* {count} entries */"));
    });
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
    ($($name:ident, $show:expr;)*) => {$(
        impl SyscallArg for $name {
            const REGISTERS: usize = 2;
            const IS_OUTPUT: bool = true;
            fn decode(words: &mut RegisterWords<'_>) -> Self {
                $name { addr: UserAddr::decode(words), len: UserAddr::decode(words) }
            }
            fn show(&self, printer: &mut Printer<'_>, _: Phase) {
                let show: fn(&mut Printer<'_>, UserAddr, UserAddr) = $show;
                show(printer, self.addr, self.len);
            }
        }
    )*};
}
answers! {
    OutSockaddr, show::socket_address_out;
    OutSockopt, show::socket_option_out;
}

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

impl SyscallArg for InCpuMask {
    const REGISTERS: usize = 2;
    fn decode(words: &mut RegisterWords<'_>) -> Self {
        InCpuMask { len: u32::decode(words), addr: UserAddr::decode(words) }
    }
    fn show(&self, printer: &mut Printer<'_>, _: Phase) {
        printer.text(format_args!("{}, ", self.len));
        show_cpus(printer, self.addr, usize::try_from(self.len).unwrap_or(usize::MAX));
    }
}

impl SyscallArg for OutCpuMask {
    const REGISTERS: usize = 2;
    const IS_OUTPUT: bool = true;
    fn decode(words: &mut RegisterWords<'_>) -> Self {
        OutCpuMask { len: u32::decode(words), addr: UserAddr::decode(words) }
    }
    fn show(&self, printer: &mut Printer<'_>, phase: Phase) {
        if phase != Phase::Before {
            printer.text(format_args!("{}, ", self.len));
        }
        printer.after(self.addr, |printer, filled| show_cpus(printer, self.addr, filled));
    }
}

/// The numbers of the CPUs in a mask.
fn show_cpus(printer: &mut Printer<'_>, addr: UserAddr, len: usize) {
    const MOST: usize = 128;
    let mut mask = vec![0; len.min(MOST)];
    if addr.is_null() || printer.memory.read(addr, &mut mask) < mask.len() {
        return printer.address(addr);
    }
    let bits = mask.iter().enumerate().flat_map(|(index, byte)| {
        (0..8usize).filter(move |bit| byte >> bit & 1 != 0).map(move |bit| (index * 8 + bit).to_string())
    });
    let names: Vec<_> = bits.collect();
    printer.text(format_args!("[{}]", names.join(" ")));
}
