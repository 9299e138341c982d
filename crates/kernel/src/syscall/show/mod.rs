//! Printing arguments in strace's manner.

use std::fmt::Write;

use abi::{Errno, UserAddr};
use zerocopy::{FromBytes, IntoBytes};

/// When an argument is printed.
#[derive(Clone, Copy, Debug)]
pub enum Phase {
    Before,
    /// The call gave this: a count (or other value), or an error.
    After(Result<usize, Errno>),
}

/// Reads guest memory for the trace; a fault prints the address instead.
pub trait TraceMemory {
    /// Copies as much as there is; returns the bytes copied.
    fn read(&self, from: UserAddr, into: &mut [u8]) -> usize;
}

/// Where arguments are printed to.
pub struct Printer<'a> {
    pub out: &'a mut String,
    pub memory: &'a dyn TraceMemory,
    /// Longest string or buffer shown, in bytes (strace's `-s`).
    pub max_string: usize,
}

/// A structure in guest memory that can be printed.
pub trait ShowStruct {
    /// Its size in bytes.
    const SIZE: u64;
    /// Prints the one at `addr`, which is not null; `None`: it could not be read.
    fn show_at(addr: UserAddr, printer: &mut Printer<'_>) -> Option<()>;
}

impl<T: FromBytes + IntoBytes + std::fmt::Debug> ShowStruct for T {
    const SIZE: u64 = size_of::<T>() as u64;
    fn show_at(addr: UserAddr, printer: &mut Printer<'_>) -> Option<()> {
        let mut value = T::new_zeroed();
        let size = size_of::<T>();
        if printer.memory.read(addr, value.as_mut_bytes()) < size {
            return None;
        }
        printer.text(format_args!("{value:?}"));
        Some(())
    }
}

impl Printer<'_> {
    pub fn text(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.out.write_fmt(text);
    }

    pub fn address(&mut self, addr: UserAddr) {
        match addr.is_null() {
            true => self.text(format_args!("NULL")),
            false => self.text(format_args!("{addr:?}")),
        }
    }

    /// A string up to its zero byte, quoted.
    pub fn c_string(&mut self, addr: UserAddr) {
        if addr.is_null() {
            return self.address(addr);
        }
        let mut bytes = vec![0; self.max_string + 1];
        let count = self.memory.read(addr, &mut bytes);
        bytes.truncate(count);
        match bytes.iter().position(|byte| *byte == 0) {
            Some(end) => bytes.truncate(end),
            None if count <= self.max_string => return self.address(addr),
            None => {}
        }
        self.quoted(&bytes, false);
    }

    /// `len` bytes, quoted.
    pub fn bytes(&mut self, addr: UserAddr, len: usize) {
        if addr.is_null() {
            return self.address(addr);
        }
        let mut bytes = vec![0; len.min(self.max_string + 1)];
        if self.memory.read(addr, &mut bytes) < bytes.len() {
            return self.address(addr);
        }
        self.quoted(&bytes, len > self.max_string);
    }

    /// An array of `iovec`s with their bytes.
    pub fn io_vec(&mut self, addr: UserAddr, count: usize) {
        let mut raw = vec![0; count.min(16) * 16];
        if addr.is_null() || self.memory.read(addr, &mut raw) < raw.len() {
            return self.address(addr);
        }
        self.text(format_args!("["));
        for (index, pair) in raw.chunks_exact(16).enumerate() {
            let word = |at: usize| {
                pair.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes)
            };
            self.text(format_args!("{}{{iov_base=", if index > 0 { ", " } else { "" }));
            self.bytes(UserAddr(word(0)), usize::try_from(word(8)).unwrap_or(usize::MAX));
            self.text(format_args!(", iov_len={}}}", word(8)));
        }
        self.text(format_args!("{}]", if count > 16 { ", ..." } else { "" }));
    }

    /// The structure at `addr`, or the address where it cannot be read.
    pub fn structure<T: ShowStruct>(&mut self, addr: UserAddr) {
        let before = self.out.len();
        if addr.is_null() || T::show_at(addr, self).is_none() {
            self.out.truncate(before);
            self.address(addr);
        }
    }

    /// `count` structures from `addr` on, or the address where the first cannot be read.
    pub fn array<T: ShowStruct>(&mut self, addr: UserAddr, count: usize) {
        if addr.is_null() {
            return self.address(addr);
        }
        let start = self.out.len();
        self.text(format_args!("["));
        let mut at = addr;
        for index in 0..count {
            if index > 0 {
                self.text(format_args!(", "));
            }
            if index >= self.max_string {
                self.text(format_args!("..."));
                break;
            }
            let before = self.out.len();
            if T::show_at(at, self).is_none() {
                if index == 0 {
                    self.out.truncate(start);
                    return self.address(addr);
                }
                self.out.truncate(before);
                self.text(format_args!("... /* {at:?} */"));
                break;
            }
            let Some(next) = at.checked_add(T::SIZE) else { break };
            at = next;
        }
        self.text(format_args!("]"));
    }

    /// Bytes in quotes with C's escapes; `...` behind if they were cut.
    pub fn quoted(&mut self, bytes: &[u8], cut: bool) {
        let shown = bytes.get(..self.max_string).unwrap_or(bytes);
        self.out.push('"');
        for (index, byte) in shown.iter().enumerate() {
            let next_is_digit = shown.get(index + 1).is_some_and(u8::is_ascii_digit);
            match byte {
                b'"' => self.out.push_str("\\\""),
                b'\\' => self.out.push_str("\\\\"),
                b'\n' => self.out.push_str("\\n"),
                b'\t' => self.out.push_str("\\t"),
                b'\r' => self.out.push_str("\\r"),
                b' '..=b'~' => self.out.push(char::from(*byte)),
                _ if next_is_digit => self.text(format_args!("\\{byte:03o}")),
                _ => self.text(format_args!("\\{byte:o}")),
            }
        }
        self.out.push('"');
        if cut || shown.len() < bytes.len() {
            self.out.push_str("...");
        }
    }
}
