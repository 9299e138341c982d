//! How long an instruction is, and whether it is one: all that it takes to see where instructions begin.
//!
//! A decoder that tells everything has tables of half a megabyte to fill first, and takes ten times as long for each. What
//! this one takes for an instruction is one (the tests compare it with the other, on the C library), except that it does
//! not know which of the vector extensions' codes mean nothing yet. From Intel's manual, volume 2, appendix A: opcode maps.

/// An instruction that begins somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Length {
    /// Bytes. Of what is none: those that tell so.
    pub(super) len: usize,
    pub(super) is_valid: bool,
    /// Whether it is followed by the next one, and does the same elsewhere; `None` if that is not known here.
    pub(super) is_movable: Option<bool>,
}

/// Bytes of the longest instruction.
pub(super) const MAX: usize = 15;

/// What follows an opcode, by its low bits: nothing, …
const NONE: u8 = 0;
/// … a byte, …
const BYTE: u8 = 1;
/// … two, …
const WORD: u8 = 2;
/// … four, or two behind an operand-size prefix, …
const OPERAND: u8 = 3;
/// … the same, or eight with REX.W, …
const WHOLE: u8 = 4;
/// … an address, …
const ADDRESS: u8 = 5;
/// … four, …
const FAR: u8 = 6;
/// … three.
const ENTER: u8 = 7;
const IMMEDIATE: u8 = 7;
/// A ModRM byte comes first.
const MODRM: u8 = 0x08;
/// No instruction.
const BAD: u8 = 0x10;
/// It is movable, unless ModRM says otherwise, …
const PLAIN: u8 = 0x20;
/// … it is not.
const FIXED: u8 = 0x40;

/// Opcodes of one byte. Prefixes and escapes are dealt with before.
static ONE: [u8; 256] = {
    let mut map = [NONE; 256];
    let mut at = 0;
    while at < 256 {
        map[at] = match at as u8 {
            0x06 | 0x07 | 0x0e | 0x16 | 0x17 | 0x1e | 0x1f | 0x27 | 0x2f | 0x37 | 0x3f => BAD,
            op @ 0..0x40 => match op & 7 {
                4 => BYTE | PLAIN,
                5 => OPERAND | PLAIN,
                _ => MODRM | PLAIN,
            },
            0x50..=0x5f | 0x90..=0x99 => PLAIN,
            0x60..=0x62 | 0x82 | 0x9a | 0xce | 0xd4..=0xd6 | 0xea => BAD,
            0x63 | 0x84..=0x8b | 0x8d | 0xd0..=0xd3 | 0xf6 | 0xf7 | 0xfe | 0xff => MODRM | PLAIN,
            0x8c | 0x8e | 0x8f | 0xd8..=0xdf => MODRM,
            0x68 => OPERAND,
            0xa9 => OPERAND | PLAIN,
            0x69 | 0x81 | 0xc7 => MODRM | OPERAND | PLAIN,
            0x6b | 0x80 | 0x83 | 0xc0 | 0xc1 | 0xc6 => MODRM | BYTE | PLAIN,
            0x70..=0x7f | 0xcd | 0xe0..=0xe3 | 0xeb => BYTE | FIXED,
            0x6a | 0xe4..=0xe7 => BYTE,
            0xa8 | 0xb0..=0xb7 => BYTE | PLAIN,
            0xa0..=0xa3 => ADDRESS,
            0xb8..=0xbf => WHOLE | PLAIN,
            0xc2 | 0xca => WORD | FIXED,
            0xc3 | 0xcb | 0xcc | 0xcf => FIXED,
            0xc8 => ENTER,
            0xe8 | 0xe9 => FAR | FIXED,
            _ => NONE,
        };
        at += 1;
    }
    map
};

/// Opcodes behind 0f. Those behind 0f 38 all have ModRM, those behind 0f 3a a byte as well.
static TWO: [u8; 256] = {
    let mut map = [NONE; 256];
    let mut at = 0;
    while at < 256 {
        map[at] = match at as u8 {
            0x04 | 0x0a | 0x0c | 0x24..=0x27 | 0x36 | 0x39 | 0x3b..=0x3f | 0x7a | 0x7b => BAD,
            0x05 | 0x0b | 0x34 => FIXED,
            0x06..=0x09
            | 0x0e
            | 0x30..=0x33
            | 0x35..=0x37
            | 0x77
            | 0xa0..=0xa2
            | 0xa8..=0xaa
            | 0xc8..=0xcf => NONE,
            0x80..=0x8f => FAR | FIXED,
            0x0f | 0x70..=0x73 | 0xa4 | 0xac | 0xba | 0xc2 | 0xc4..=0xc6 => MODRM | BYTE,
            0x10
            | 0x11
            | 0x1f
            | 0x28
            | 0x29
            | 0x40..=0x4f
            | 0x90..=0x9f
            | 0xaf
            | 0xb6
            | 0xb7
            | 0xbe
            | 0xbf => MODRM | PLAIN,
            _ => MODRM,
        };
        at += 1;
    }
    map
};

/// What is read of an instruction.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }
}

/// Prefixes that matter here.
#[derive(Clone, Copy, Default)]
struct Prefixes {
    operand: bool,
    address: bool,
    lock: bool,
    repeat: bool,
    rex: u8,
}

const REX_W: u8 = 8;

/// What begins with these bytes, which may go on behind it. `None`: they end before it does.
pub(super) fn of(bytes: &[u8]) -> Option<Length> {
    let mut reader = Reader { bytes: bytes.get(..MAX).unwrap_or(bytes), at: 0 };
    match instruction(&mut reader) {
        Some(flags) => {
            let is_movable = match flags & (BAD | FIXED | PLAIN) {
                PLAIN => Some(true),
                NONE => None,
                _ => Some(false),
            };
            Some(Length { len: reader.at, is_valid: flags & BAD == 0, is_movable })
        }
        // One that does not end is none.
        None if bytes.len() >= MAX => Some(Length { len: MAX, is_valid: false, is_movable: Some(false) }),
        None => None,
    }
}

/// Reads it; what it is.
fn instruction(reader: &mut Reader<'_>) -> Option<u8> {
    let mut prefixes = Prefixes::default();
    let opcode = loop {
        let byte = reader.next()?;
        match byte {
            0x66 => prefixes.operand = true,
            0x67 => prefixes.address = true,
            0xf0 => prefixes.lock = true,
            0xf2 | 0xf3 => prefixes.repeat = true,
            0x26 | 0x2e | 0x36 | 0x3e | 0x64 | 0x65 => {}
            0x40..=0x4f => {
                prefixes.rex = byte;
                continue;
            }
            _ => break byte,
        }
        // REX counts right before the opcode only.
        prefixes.rex = 0;
    };
    match opcode {
        0x0f => match reader.next()? {
            0x38 => {
                reader.next()?;
                finish(reader, prefixes, MODRM).map(|(flags, _)| locked(flags, prefixes, false))
            }
            0x3a => {
                reader.next()?;
                finish(reader, prefixes, MODRM | BYTE).map(|(flags, _)| locked(flags, prefixes, false))
            }
            second => two(reader, prefixes, second),
        },
        0xc4 | 0xc5 => vex(reader, prefixes, opcode == 0xc5),
        0x62 => evex(reader, prefixes),
        // XOP, where it is no `pop`.
        0x8f if reader.bytes.get(reader.at)? & 0x1f >= 8 => xop(reader, prefixes),
        _ => one(reader, prefixes, opcode),
    }
}

fn one(reader: &mut Reader<'_>, prefixes: Prefixes, opcode: u8) -> Option<u8> {
    let form = ONE.get(usize::from(opcode)).copied()?;
    if form & BAD != 0 {
        return Some(BAD);
    }
    let form = match (opcode, reader.bytes.get(reader.at)) {
        // test, among others that take nothing.
        (0xf6, Some(modrm)) if modrm & 0x30 == 0 => form | BYTE,
        (0xf7, Some(modrm)) if modrm & 0x30 == 0 => form | OPERAND,
        _ => form,
    };
    let (flags, modrm) = finish(reader, prefixes, form)?;
    let (mode, register) = (modrm >> 6, modrm >> 3 & 7);
    let in_memory = mode != 3;
    let exists = match opcode {
        0x8c => register < 6,
        0x8d => in_memory,
        0x8e => register < 6 && register != 1,
        0x8f | 0xc6 | 0xc7 => register == 0 || modrm == 0xf8 && opcode != 0x8f,
        0xd8..=0xdf if in_memory => !matches!((opcode, register), (0xd9, 1) | (0xdb, 4 | 6) | (0xdd, 5)),
        0xd8..=0xdf => x87_exists(opcode, modrm),
        0xfe => register < 2,
        0xff => register < 7 && (in_memory || register != 3 && register != 5),
        _ => true,
    };
    if !exists {
        return Some(BAD);
    }
    let flags = match (opcode, register) {
        // xabort, xbegin.
        (0xc6, 7) => flags & !PLAIN,
        (0xc7, 7) | (0xff, 2..=5) => flags | FIXED,
        _ => flags,
    };
    let lockable = in_memory
        && match opcode {
            0..0x40 => opcode & 6 == 0 && opcode < 0x38,
            0x80 | 0x81 | 0x83 => register != 7,
            0x86 | 0x87 => true,
            0xf6 | 0xf7 => register == 2 || register == 3,
            0xfe | 0xff => register < 2,
            _ => false,
        };
    Some(locked(flags, prefixes, lockable && form & MODRM != 0))
}

fn two(reader: &mut Reader<'_>, prefixes: Prefixes, opcode: u8) -> Option<u8> {
    let form = TWO.get(usize::from(opcode)).copied()?;
    if form & BAD != 0 {
        return Some(BAD);
    }
    if matches!(opcode, 0x20..=0x23) {
        // Control and debug registers: of ModRM only the registers count.
        reader.next()?;
        return Some(locked(NONE, prefixes, false));
    }
    let form = match opcode {
        // extrq and insertq have two bytes of their own.
        0x78 if prefixes.operand || prefixes.repeat => form | WORD,
        _ => form,
    };
    let (flags, modrm) = finish(reader, prefixes, form)?;
    let (in_memory, register) = (modrm >> 6 != 3, modrm >> 3 & 7);
    let exists = match opcode {
        0xba => register >= 4,
        0xc3 | 0xe7 | 0x2b => in_memory,
        0x50 | 0xd7 | 0xf7 | 0xc5 => !in_memory,
        0x71 | 0x72 => !in_memory && matches!(register, 2 | 4 | 6),
        0x73 => {
            !in_memory && matches!(register, 2 | 6) || !in_memory && prefixes.operand && register & 3 == 3
        }
        0x6c | 0x6d => prefixes.operand,
        0xd0 | 0xd6 => prefixes.operand || prefixes.repeat,
        _ => true,
    };
    if !exists {
        return Some(BAD);
    }
    let lockable = in_memory
        && match opcode {
            0xab | 0xb3 | 0xbb | 0xb0 | 0xb1 | 0xc0 | 0xc1 => true,
            0xba => register > 4,
            0xc7 => register == 1,
            _ => false,
        };
    Some(locked(flags, prefixes, lockable))
}

/// Whether there is such an instruction of the x87 on registers.
fn x87_exists(opcode: u8, modrm: u8) -> bool {
    match opcode {
        0xd9 => !matches!(modrm, 0xd1..=0xd7 | 0xe2 | 0xe3 | 0xe6 | 0xe7 | 0xef),
        0xda => matches!(modrm, 0xc0..=0xdf | 0xe9),
        0xdb => !matches!(modrm, 0xe6 | 0xe7 | 0xf8..=0xff),
        0xdd => modrm < 0xf0,
        0xde => !matches!(modrm, 0xd8 | 0xda..=0xdf),
        0xdf => !matches!(modrm, 0xe4..=0xe7 | 0xf8..=0xff),
        _ => true,
    }
}

/// What follows two bytes of an opcode and more, by the map: the first is that of 0f.
fn extended(map: u8, opcode: u8) -> u8 {
    match (map, opcode) {
        (1, 0x77) => NONE,
        (1, 0x70..=0x73 | 0xc2 | 0xc4..=0xc6) | (3, _) => MODRM | BYTE,
        _ => MODRM,
    }
}

/// Behind c4, or c5 (`short`).
fn vex(reader: &mut Reader<'_>, prefixes: Prefixes, short: bool) -> Option<u8> {
    let first = reader.next()?;
    let map = if short { 1 } else { first & 0x1f };
    if !short {
        reader.next()?;
    }
    let opcode = reader.next()?;
    let exists = match map {
        1 => matches!(
            opcode,
            0x10..=0x17
                | 0x28..=0x2f
                | 0x41..=0x4b
                | 0x50..=0x77
                | 0x7c..=0x7f
                | 0x90..=0x93
                | 0x98
                | 0x99
                | 0xae
                | 0xc2
                | 0xc4..=0xc6
                | 0xd0..=0xfe
        ),
        2 | 3 => true,
        _ => false,
    };
    if !exists || prefixes.forbid_vectors() {
        return Some(BAD);
    }
    finish(reader, prefixes, extended(map, opcode)).map(|(flags, _)| flags)
}

/// Behind 62.
fn evex(reader: &mut Reader<'_>, prefixes: Prefixes) -> Option<u8> {
    let first = reader.next()?;
    let second = reader.next()?;
    reader.next()?;
    let opcode = reader.next()?;
    let map = first & 7;
    if first & 8 != 0 || second & 4 == 0 || matches!(map, 0 | 4 | 7) || prefixes.forbid_vectors() {
        return Some(BAD);
    }
    finish(reader, prefixes, extended(map, opcode)).map(|(flags, _)| flags)
}

/// Behind 8f.
fn xop(reader: &mut Reader<'_>, prefixes: Prefixes) -> Option<u8> {
    let map = reader.next()? & 0x1f;
    reader.next()?;
    reader.next()?;
    let form = match map {
        8 => MODRM | BYTE,
        9 => MODRM,
        10 => MODRM | FAR,
        _ => BAD,
    };
    if form == BAD || prefixes.forbid_vectors() {
        return Some(BAD);
    }
    finish(reader, prefixes, form).map(|(flags, _)| flags)
}

impl Prefixes {
    fn forbid_vectors(self) -> bool {
        self.operand || self.lock || self.repeat || self.rex != 0
    }
}

/// No instruction, if it is locked and must not be; of what is repeated it is not known whether it moves.
fn locked(flags: u8, prefixes: Prefixes, lockable: bool) -> u8 {
    let flags = if prefixes.lock || prefixes.repeat { flags & !PLAIN } else { flags };
    if prefixes.lock && !lockable { flags | BAD } else { flags }
}

/// Reads what is behind the opcode. Its flags, fixed where it refers to where it is, and the ModRM byte if there is one.
fn finish(reader: &mut Reader<'_>, prefixes: Prefixes, form: u8) -> Option<(u8, u8)> {
    let mut flags = form & (BAD | PLAIN | FIXED);
    let (mut modrm, mut rest) = (0, 0);
    if form & MODRM != 0 {
        modrm = reader.next()?;
        let (mode, memory) = (modrm >> 6, modrm & 7);
        let base = if mode != 3 && memory == 4 { reader.next()? & 7 } else { memory };
        rest = match mode {
            0 if base == 5 => 4,
            1 => 1,
            2 => 4,
            _ => 0,
        };
        if mode == 0 && memory == 5 {
            flags |= FIXED;
        }
    }
    let is_wide = prefixes.rex & REX_W != 0;
    rest += match form & IMMEDIATE {
        BYTE => 1,
        WORD => 2,
        OPERAND | WHOLE if prefixes.operand && !is_wide => 2,
        WHOLE if is_wide => 8,
        ADDRESS if !prefixes.address => 8,
        OPERAND | WHOLE | ADDRESS | FAR => 4,
        ENTER => 3,
        _ => 0,
    };
    reader.at += rest;
    (reader.at <= reader.bytes.len()).then_some((flags, modrm))
}

#[cfg(test)]
mod tests {
    use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction};

    use super::*;

    /// The text of this process's C library.
    fn library() -> Vec<u8> {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
        let path =
            maps.lines().find_map(|line| line.contains("libc.so").then(|| line.split_once('/')).flatten());
        let file = std::fs::File::open(format!("/{}", path.expect("a C library").1)).expect("to be there");
        let (span, text) = super::super::read_text(std::os::fd::AsFd::as_fd(&file)).unwrap().unwrap();
        text.get(..span.code_len).unwrap().to_vec()
    }

    /// From every byte on, so that all kinds of bytes are seen, not only those that begin instructions.
    #[test]
    fn every_instruction_has_its_length() {
        let text = library();
        let (mut seen, mut invalid, mut missed) = (0, 0, 0);
        let mut other = Instruction::default();
        for at in 0..text.len() {
            let bytes = text.get(at..text.len().min(at + MAX)).unwrap();
            Decoder::new(64, bytes, DecoderOptions::NONE).decode_out(&mut other);
            let length = of(bytes);
            let context = || format!("at {at:#x}: {bytes:02x?}, {:?}: {length:?}", other.code());
            if other.is_invalid() {
                invalid += 1;
                missed += usize::from(length.is_some_and(|length| length.is_valid));
                let moves = length.and_then(|length| length.is_movable);
                assert!(moves != Some(true), "{}", context());
                continue;
            }
            seen += 1;
            let length = length.unwrap_or_else(|| panic!("{}", context()));
            assert!(length.is_valid && length.len == other.len(), "{}", context());
            let moves = other.flow_control() == FlowControl::Next
                && !other.is_ip_rel_memory_operand()
                && ![Code::Syscall, Code::Sysenter, Code::Popfq, Code::Popfw].contains(&other.code());
            assert!(length.is_movable.is_none_or(|told| told == moves), "{}", context());
        }
        assert!(seen > 100_000 && missed * 20 < invalid, "{seen} seen, {missed} of {invalid} taken for some");
    }

    #[test]
    fn what_ends_early_is_not_told() {
        assert_eq!(of(&[0xb8, 1, 0, 0]), None);
        assert_eq!(of(&[]), None);
        let valid = |len| Some(Length { len, is_valid: true, is_movable: Some(true) });
        assert_eq!(of(&[0xb8, 1, 0, 0, 0]), valid(5));
        assert_eq!(of(&[0x48, 0xb8, 1, 0, 0, 0, 0, 0, 0, 0]), valid(10));
        assert_eq!(of(&[0x66; 20]), Some(Length { len: MAX, is_valid: false, is_movable: Some(false) }));
    }
}
