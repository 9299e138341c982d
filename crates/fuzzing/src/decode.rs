//! Target `decode`: every row decodes and prints any registers, whatever memory they point at.

use abi::{Errno, UserAddr};
use kernel::syscall::show::{Phase, Printer, TraceMemory};
use kernel::syscall::table;

use crate::Input;

/// Bytes that one argument may take in the trace: strings and lists are cut.
const LONGEST: usize = 1 << 20;

/// Guest memory: the fuzzer's bytes over and over, with pages that are not there.
struct Memory<'a> {
    bytes: &'a [u8],
    /// Which of eight pages are missing.
    holes: u8,
}

impl TraceMemory for Memory<'_> {
    fn read(&self, from: UserAddr, into: &mut [u8]) -> usize {
        for (index, to) in into.iter_mut().enumerate() {
            let Some(at) = from.0.checked_add(index as u64) else { return index };
            if self.holes & 1 << (at / abi::PAGE_SIZE % 8) != 0 {
                return index;
            }
            let place = at % self.bytes.len().max(1) as u64;
            *to = usize::try_from(place).ok().and_then(|place| self.bytes.get(place)).copied().unwrap_or(0);
        }
        into.len()
    }
}

/// One call: number, registers, result; what is left is memory.
///
/// # Panics
/// If an argument prints without end.
pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let number = u64::from(input.half()) % (table::rows().count() as u64 + 200);
    let words: [u64; 6] = std::array::from_fn(|_| input.register());
    let result = match input.byte() % 4 {
        0 => Err(Errno::EFAULT),
        1 => Ok(usize::from(input.half())),
        2 => Ok(usize::MAX),
        _ => Ok(usize::from(input.byte())),
    };
    let holes = input.byte();
    let memory = Memory { bytes: input.rest(), holes };
    let Some(row) = table::row(number) else { return };
    for index in 0..row.arguments.len() {
        let mut before = String::new();
        let mut printer = Printer::new(&mut before, &memory, 32, words, Phase::Before);
        (row.show)(index, &words, &mut printer, Phase::Before);
        let mut after = String::new();
        let mut printer = Printer::new(&mut after, &memory, 32, words, Phase::After(result));
        printer.before = &before;
        (row.show)(index, &words, &mut printer, Phase::After(result));
        let most = before.len().max(after.len());
        assert!(most < LONGEST, "{} of {} prints {most} bytes", row.arguments[index].name, row.name);
    }
}
