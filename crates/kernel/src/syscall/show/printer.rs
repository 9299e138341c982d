//! Where an argument is printed to.

use std::fmt::Write;

use abi::UserAddr;
use zerocopy::{FromBytes, IntoBytes};

use super::{Phase, ShowStruct, TraceMemory};

/// Bytes of a path that are shown at most (`PATH_MAX`).
const MAX_PATH: usize = 4096;
/// Guest memory is read in pieces that end where a page does: what lies behind may not be mapped.
const PAGE: u64 = 4096;

/// Where an argument is printed to, and what it may look at.
pub struct Printer<'a> {
    pub out: &'a mut String,
    pub memory: &'a dyn TraceMemory,
    /// Longest string or buffer shown, in bytes, and longest list (strace's `-s`).
    pub max_string: usize,
    /// All six registers, and which of them is the argument's first.
    pub words: [u64; 6],
    pub start: usize,
    pub phase: Phase,
    /// What it printed before the call.
    pub before: &'a str,
    /// Notes behind the result, in parentheses.
    pub notes: Vec<String>,
    /// In place of the result.
    pub result: Option<String>,
    /// Only after the call is known what it shows.
    pub deferred: bool,
    /// It has something to add after the call.
    pub again: bool,
}

impl<'a> Printer<'a> {
    /// For registers `words`, at `phase`.
    pub fn new(
        out: &'a mut String,
        memory: &'a dyn TraceMemory,
        max_string: usize,
        words: [u64; 6],
        phase: Phase,
    ) -> Printer<'a> {
        Printer {
            out,
            memory,
            max_string,
            words,
            start: 0,
            phase,
            before: "",
            notes: Vec::new(),
            result: None,
            deferred: false,
            again: false,
        }
    }

    pub fn text(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.out.write_fmt(text);
    }

    /// The register `distance` before the argument's first.
    pub fn register_before(&self, distance: usize) -> u64 {
        let index = self.start.checked_sub(distance);
        index.and_then(|index| self.words.get(index)).copied().unwrap_or(0)
    }

    /// What the call gave, once it has succeeded.
    pub fn succeeded(&self) -> Option<usize> {
        match self.phase {
            Phase::After(result) => result.ok(),
            Phase::Before => None,
        }
    }

    /// Shows what `print` prints, but only after the call, and the address if it failed.
    pub fn after(&mut self, addr: UserAddr, print: impl FnOnce(&mut Self, usize)) {
        match self.phase {
            Phase::Before => self.deferred = true,
            Phase::After(Ok(result)) => print(self, result),
            Phase::After(Err(_)) => self.address(addr),
        }
    }

    pub fn address(&mut self, addr: UserAddr) {
        match addr.is_null() {
            true => self.text(format_args!("NULL")),
            false => self.text(format_args!("{:#x}", addr.0)),
        }
    }

    /// The value at `addr`. `None`: it cannot be read.
    pub fn value<T: FromBytes + IntoBytes>(&self, addr: UserAddr) -> Option<T> {
        let mut value = T::new_zeroed();
        let complete = self.memory.read(addr, value.as_mut_bytes()) >= size_of::<T>();
        (complete && !addr.is_null()).then_some(value)
    }

    /// The structure at `addr`, or the address where it cannot be read.
    pub fn structure<T: ShowStruct>(&mut self, addr: UserAddr) {
        let start = self.out.len();
        if T::IS_NUMBER {
            self.out.push('[');
        }
        if addr.is_null() || T::show_at(addr, self).is_none() {
            self.out.truncate(start);
            return self.address(addr);
        }
        if T::IS_NUMBER {
            self.out.push(']');
        }
    }

    /// `count` structures from `addr` on, or the address where the first cannot be read.
    pub fn array<T: ShowStruct>(&mut self, addr: UserAddr, count: usize) {
        if addr.is_null() {
            return self.address(addr);
        }
        let start = self.out.len();
        self.out.push('[');
        let mut at = addr;
        for index in 0..count {
            if index > 0 {
                self.out.push_str(", ");
            }
            if index >= self.max_string {
                self.out.push_str("...");
                break;
            }
            let before = self.out.len();
            if T::show_at(at, self).is_none() {
                self.out.truncate(if index == 0 { start } else { before });
                if index == 0 {
                    return self.address(addr);
                }
                self.text(format_args!("... /* {:#x} */", at.0));
                break;
            }
            let Some(next) = at.checked_add(T::SIZE) else { break };
            at = next;
        }
        self.out.push(']');
    }

    /// Values that are at hand, in brackets.
    pub fn list<T>(&mut self, values: impl Iterator<Item = T>, mut show: impl FnMut(&mut Self, T)) {
        self.out.push('[');
        for (index, value) in values.enumerate() {
            if index > 0 {
                self.out.push_str(", ");
            }
            if index >= self.max_string {
                self.out.push_str("...");
                break;
            }
            show(self, value);
        }
        self.out.push(']');
    }

    /// A path: a string that is not cut.
    pub fn path(&mut self, addr: UserAddr) {
        self.string(addr, MAX_PATH);
    }

    /// A string up to its zero byte, quoted.
    pub fn c_string(&mut self, addr: UserAddr) {
        self.string(addr, self.max_string);
    }

    fn string(&mut self, addr: UserAddr, max: usize) {
        let mut bytes = Vec::new();
        let mut at = addr;
        let complete = loop {
            let room = usize::try_from(PAGE - at.0 % PAGE).unwrap_or(1).min(max + 1 - bytes.len());
            let mut piece = vec![0; room];
            let count = if addr.is_null() { 0 } else { self.memory.read(at, &mut piece) };
            piece.truncate(count);
            let zero = piece.iter().position(|byte| *byte == 0);
            bytes.extend_from_slice(piece.get(..zero.unwrap_or(count)).unwrap_or(&piece));
            if zero.is_some() || bytes.len() > max {
                break true;
            }
            if count < room || room == 0 {
                break false;
            }
            let Some(next) = at.checked_add(room as u64) else { break false };
            at = next;
        };
        match complete {
            true => self.quoted_up_to(&bytes, max, false),
            false => self.address(addr),
        }
    }

    /// `len` bytes, quoted.
    pub fn bytes(&mut self, addr: UserAddr, len: usize) {
        let mut bytes = vec![0; len.min(self.max_string + 1)];
        if addr.is_null() || self.memory.read(addr, &mut bytes) < bytes.len() {
            return self.address(addr);
        }
        self.quoted(&bytes, len > self.max_string);
    }

    /// `len` bytes as hexadecimal escapes: what is no text (`getrandom`).
    pub fn random_bytes(&mut self, addr: UserAddr, len: usize) {
        let mut bytes = vec![0; len.min(self.max_string)];
        if addr.is_null() || self.memory.read(addr, &mut bytes) < bytes.len() {
            return self.address(addr);
        }
        self.out.push('"');
        for byte in bytes {
            self.text(format_args!("\\x{byte:02x}"));
        }
        self.out.push('"');
        if len > self.max_string {
            self.out.push_str("...");
        }
    }

    /// An array of `iovec`s with their bytes, of which `limit` count.
    pub fn io_vec(&mut self, addr: UserAddr, count: usize, limit: usize) {
        let mut left = limit;
        self.io_vec_with(addr, count, |printer, base, len| {
            let shown = len.min(left);
            left -= shown;
            printer.bytes(base, shown);
        });
    }

    /// An array of `iovec`s, with what `show` makes of base and length.
    pub fn io_vec_with(
        &mut self,
        addr: UserAddr,
        count: usize,
        mut show: impl FnMut(&mut Self, UserAddr, usize),
    ) {
        let shown = count.min(self.max_string);
        let mut raw = vec![0; shown * 16];
        if addr.is_null() || self.memory.read(addr, &mut raw) < raw.len() {
            return self.address(addr);
        }
        self.out.push('[');
        for (index, pair) in raw.chunks_exact(16).enumerate() {
            let word = |at: usize| {
                pair.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
            };
            let len = word(8);
            self.text(format_args!("{}{{iov_base=", if index > 0 { ", " } else { "" }));
            show(self, UserAddr(word(0)), usize::try_from(len).unwrap_or(usize::MAX));
            self.text(format_args!(", iov_len={len}}}"));
        }
        self.out.push_str(if count > shown { ", ...]" } else { "]" });
    }

    /// Bytes in quotes with C's escapes; `...` behind if they were cut.
    pub fn quoted(&mut self, bytes: &[u8], cut: bool) {
        self.quoted_up_to(bytes, self.max_string, cut);
    }

    pub(super) fn quoted_up_to(&mut self, bytes: &[u8], max: usize, cut: bool) {
        let shown = bytes.get(..max).unwrap_or(bytes);
        self.out.push('"');
        for (index, byte) in shown.iter().enumerate() {
            let next_is_digit = shown.get(index + 1).is_some_and(u8::is_ascii_digit);
            match byte {
                b'"' => self.out.push_str("\\\""),
                b'\\' => self.out.push_str("\\\\"),
                b'\n' => self.out.push_str("\\n"),
                b'\t' => self.out.push_str("\\t"),
                b'\r' => self.out.push_str("\\r"),
                0x0b => self.out.push_str("\\v"),
                0x0c => self.out.push_str("\\f"),
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
