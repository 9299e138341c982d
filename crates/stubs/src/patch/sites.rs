//! Finding system-call sites: an instruction of five bytes or more that loads the number into `eax`, and `syscall`.
//!
//! Candidates are found by their bytes; a decoder then tells whether both begin where instructions begin. Code
//! synchronises a decoder that begins anywhere within a few instructions, so it is begun at several places before the
//! site, and nearly all must agree: bytes that only look like a site (constants, jump tables) are not patched.

use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Register};

/// A site: where the instruction that loads the number begins, and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Site {
    pub(super) at: usize,
    pub(super) len: usize,
}

const SYSCALL: [u8; 2] = [0x0f, 0x05];
/// Unwinders know signal frames by the bytes of the code that calls it.
const RT_SIGRETURN: u64 = 15;
/// Bytes before a site at which decoding begins, from the farthest on.
const STARTS: std::ops::RangeInclusive<usize> = 20..=51;
/// Of those, how many may disagree.
const DISSENT: usize = 8;

/// All sites that may be patched, in order.
pub(super) fn find(text: &[u8]) -> Vec<Site> {
    let mut sites = Vec::new();
    for at in memchr::memmem::find_iter(text, &SYSCALL) {
        sites.extend(site_before(text, at));
    }
    sites
}

/// The site whose `syscall` is at `at`.
fn site_before(text: &[u8], at: usize) -> Option<Site> {
    // mov eax, imm32; mov rax, simm32
    [(5, &[0xb8][..]), (7, &[0x48, 0xc7, 0xc0][..])].into_iter().find_map(|(len, start)| {
        let from = at.checked_sub(len)?;
        let bytes = text.get(from..at)?;
        let looks = bytes.starts_with(start) && loads_number(bytes) && is_boundary(text, from, at);
        looks.then_some(Site { at: from, len })
    })
}

fn loads_number(bytes: &[u8]) -> bool {
    let instruction = decode(bytes);
    let number = match instruction.code() {
        Code::Mov_r32_imm32 if instruction.op0_register() == Register::EAX => {
            u64::from(instruction.immediate32())
        }
        Code::Mov_rm64_imm32 if instruction.op0_register() == Register::RAX => instruction.immediate(1),
        _ => return false,
    };
    instruction.len() == bytes.len() && number != RT_SIGRETURN && number < 1 << 16
}

fn decode(bytes: &[u8]) -> Instruction {
    Decoder::new(64, bytes, DecoderOptions::NONE).decode()
}

/// Whether instructions begin at `from` and at `syscall`.
fn is_boundary(text: &[u8], from: usize, syscall: usize) -> bool {
    let mut dissent = 0;
    let mut assent = 0;
    for start in STARTS.filter_map(|before| from.checked_sub(before)) {
        let bytes = text.get(start..syscall).unwrap_or(&[]);
        let mut decoder = Decoder::new(64, bytes, DecoderOptions::NONE);
        let mut instruction = Instruction::default();
        let mut at = start;
        while at < from && decoder.can_decode() {
            decoder.decode_out(&mut instruction);
            at += instruction.len().max(1);
        }
        if at == from { assent += 1 } else { dissent += 1 }
    }
    // Near the start of the text there is less to go by.
    dissent <= DISSENT && assent >= DISSENT
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(parts: &[&[u8]]) -> Vec<u8> {
        let mut code = [0x90; 64].to_vec();
        for part in parts {
            code.extend_from_slice(part);
        }
        code
    }

    #[test]
    fn both_shapes_are_found_and_sigreturn_is_not() {
        let text =
            code(&[&[0xb8, 39, 0, 0, 0, 0x0f, 0x05], &[0xc3], &[0x48, 0xc7, 0xc0, 60, 0, 0, 0, 0x0f, 0x05]]);
        assert_eq!(find(&text), [Site { at: 64, len: 5 }, Site { at: 72, len: 7 }]);
        assert_eq!(find(&code(&[&[0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05]])), []);
        assert_eq!(find(&code(&[&[0xb8, 15, 0, 0, 0, 0x0f, 0x05]])), []);
    }

    /// The same bytes as the tail of a longer instruction: mov r8d, 39.
    #[test]
    fn other_registers_are_no_sites() {
        assert_eq!(find(&code(&[&[0x41, 0xb8, 39, 0, 0, 0, 0x0f, 0x05]])), []);
    }

    /// The same bytes inside constants: movabs rcx, …
    #[test]
    fn constants_are_no_sites() {
        assert_eq!(find(&code(&[&[0x48, 0xb9, 0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0], &[0x90; 16]])), []);
    }

    #[test]
    fn a_text_too_short_to_tell_is_left_alone() {
        assert_eq!(find(&[0xb8, 39, 0, 0, 0, 0x0f, 0x05]), []);
    }
}
