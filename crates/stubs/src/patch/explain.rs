//! What would be done with each system-call site of a file, for the user (`umlaut explain-sites`).

use std::io;
use std::os::fd::BorrowedFd;

use iced_x86::{Decoder, DecoderOptions, FastFormatter};

use super::sites::{Left, SYSCALL, examine};
use super::{read_text, trampoline};

/// How a site is patched: which instruction makes room for the jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The one before the `syscall`, which loads the number, mostly.
    Before,
    /// The `syscall` and the one behind it.
    Behind,
}

/// A place that is a `syscall`, or looks like one.
#[derive(Clone, Debug)]
pub struct ExplainedSite {
    /// The address of the two bytes, as the file has it.
    pub address: u64,
    /// The address of what is decoded: the instruction that is displaced, or the two bytes themselves.
    pub start: u64,
    /// What is there, from `start` on.
    pub bytes: Vec<u8>,
    /// The same, decoded.
    pub code: String,
    /// What is done with it.
    pub treatment: Result<Shape, Left>,
}

/// The sites of a program or library in order of their addresses, or why its text is left alone as a whole.
///
/// # Errors
/// What reading it gives.
pub fn explain(file: BorrowedFd<'_>) -> io::Result<Result<Vec<ExplainedSite>, &'static str>> {
    let (span, mut text) = match read_text(file)? {
        Ok(read) => read,
        Err(why) => return Ok(Err(why)),
    };
    let found = examine(text.get(..span.code_len).unwrap_or(&[]));
    let describe = |at: usize, site: Result<super::sites::Site, Left>| {
        let (start, end) = match site {
            Ok(site) if site.is_behind() => (at, site.end()),
            Ok(site) => (site.at, at + SYSCALL.len()),
            // With the instruction behind it, which mostly is the reason.
            Err(Left::NoInstruction) => (at, at + SYSCALL.len()),
            Err(_) => (at, at + SYSCALL.len() + length_at(&text, at + SYSCALL.len())),
        };
        let bytes = text.get(start..end).unwrap_or(&[]).to_vec();
        let address = |at: usize| span.address.saturating_add(at as u64);
        let shape = |site: super::sites::Site| if site.is_behind() { Shape::Behind } else { Shape::Before };
        ExplainedSite {
            address: address(at),
            start: address(start),
            code: decoded(&bytes, address(start)),
            bytes,
            treatment: site.map(shape),
        }
    };
    let sites = found.iter().map(|found| describe(found.at, found.site)).collect();
    let patched: Vec<_> = found.iter().filter_map(|found| found.site.ok()).collect();
    // The entry is above all of it, wherever it is.
    if !patched.is_empty() && trampoline::write(&mut text, &patched, span.distance, u64::MAX).is_none() {
        return Ok(Err("its text is too far from the end of its segments"));
    }
    Ok(Ok(sites))
}

/// Bytes of the instruction there.
fn length_at(text: &[u8], at: usize) -> usize {
    let instruction = Decoder::new(64, text.get(at..).unwrap_or(&[]), DecoderOptions::NONE).decode();
    if instruction.is_invalid() { 0 } else { instruction.len() }
}

/// The instructions, in Intel's notation.
fn decoded(bytes: &[u8], address: u64) -> String {
    let mut formatter = FastFormatter::new();
    let mut text = String::new();
    for instruction in Decoder::with_ip(64, bytes, address, DecoderOptions::NONE) {
        if !text.is_empty() {
            text.push_str("; ");
        }
        formatter.format(&instruction, &mut text);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;

    use super::*;

    /// The C library of this host: nearly all of its sites are patched, all are listed, and each once.
    #[test]
    fn the_c_library_is_explained() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let own = std::env::current_exe().unwrap();
        // A static test binary has its C library in itself.
        let library =
            maps.lines().find_map(|line| line.split_whitespace().nth(5).filter(|it| it.contains("libc")));
        let file = File::open(library.map_or(own, Into::into)).unwrap();
        let sites = explain(file.as_fd()).unwrap().unwrap();
        assert!(sites.len() > 20, "{}", sites.len());
        assert!(sites.windows(2).all(|pair| pair[0].address < pair[1].address));
        let patched = sites.iter().filter(|site| site.treatment.is_ok()).count();
        assert!(patched * 10 > sites.len() * 8, "{patched} of {}", sites.len());
        for site in sites {
            let within = (site.address - site.start) as usize;
            assert_eq!(site.bytes.get(within..within + 2), Some(&[0x0f, 0x05][..]), "{site:x?}");
            assert!(site.treatment == Err(Left::NoInstruction) || site.code.contains("syscall"), "{site:x?}");
        }
    }

    #[test]
    fn what_is_no_program_is_not_explained() {
        let file = File::open("/proc/self/maps").unwrap();
        assert!(explain(file.as_fd()).unwrap().is_err());
    }
}
