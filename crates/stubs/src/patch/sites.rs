//! Finding system-call sites that can be made a jump: five bytes where nothing else begins.
//!
//! Either the instruction before the `syscall` is long enough (it loads the number, mostly), or the `syscall` and the
//! instruction behind it are, and no branch leads between them. The former is better, if no branch leads to the `syscall`
//! past it: the `syscall` stays where whoever looks finds it. Candidates are found by their bytes; a decoder then
//! tells whether they begin where instructions begin. Code synchronises a decoder that begins anywhere within a few
//! instructions, so it is begun at several places before the site, and nearly all must agree: bytes that only look like
//! a site (constants, jump tables) are not patched.

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Register};
use platform::Displaced;

/// A site: where the jump goes, and what it displaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Site {
    pub(super) at: usize,
    pub(super) displaced: Displaced,
}

pub(super) const SYSCALL: [u8; 2] = [0x0f, 0x05];
/// Bytes of a jump.
const JUMP: usize = 5;
/// What looks like a site in a text that is looked through, at most.
const MOST: usize = 1 << 14;
/// Unwinders know signal frames by the bytes of the code that calls it.
const RT_SIGRETURN: u64 = 15;
/// Bytes before a site at which decoding begins, from the nearest on.
const STARTS: std::ops::RangeInclusive<usize> = 20..=51;
/// Bytes of the longest instruction.
const MAX_INSTRUCTION: usize = 15;
/// Of those, how many may disagree.
const DISSENT: usize = 8;

/// Two bytes that are a `syscall`, or look like one: where, and what is done with it, or why nothing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) at: usize,
    pub(super) site: Result<Site, Left>,
}

/// Why a site is left to SIGSYS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// No instruction begins there: constants, or part of a longer one.
    NoInstruction,
    /// Unwinders know signal frames by the bytes of the code that calls `rt_sigreturn`.
    SigReturn,
    /// Neither the instruction before it nor the one behind it gives room for a jump.
    NoRoom,
    /// The instruction behind it does not work elsewhere: it branches, returns, or refers to where it is.
    NotMovable,
    /// A branch may lead to the instruction behind it.
    BranchTarget,
    /// The jump of the site before it is there.
    Overlaps,
}

impl std::fmt::Display for Left {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Left::NoInstruction => "no instruction begins there, or that cannot be told",
            Left::SigReturn => "it may be rt_sigreturn, which unwinders know by its bytes",
            Left::NoRoom => "no instruction beside it is long enough",
            Left::NotMovable => "the instruction behind it does not work elsewhere",
            Left::BranchTarget => "a branch may lead behind it",
            Left::Overlaps => "the jump of the site before it is there",
        })
    }
}

/// All sites that may be patched, in order.
///
/// None, if too much looks like one: no program has so many, and to look at each would take seconds.
pub(super) fn find(text: &[u8]) -> Vec<Site> {
    if memchr::memmem::find_iter(text, &SYSCALL).nth(MOST).is_some() {
        return Vec::new();
    }
    examine(text).into_iter().filter_map(|found| found.site.ok()).collect()
}

/// All that look like sites, in order.
pub(super) fn examine(text: &[u8]) -> Vec<Found> {
    let candidates: Vec<Candidate> =
        memchr::memmem::find_iter(text, &SYSCALL).map(|at| candidate(text, at)).collect();
    let mut places = Vec::new();
    for one in &candidates {
        places.extend(one.before.map(|_| one.at));
        places.extend(one.site.ok().filter(Site::is_behind).map(|_| one.at + SYSCALL.len()));
    }
    let targets = branch_targets(text, &places);
    let mut end = 0;
    let mut settle = |one: Candidate| {
        let branches_behind = |site: &Site| site.is_behind() && targets.contains(&(one.at + SYSCALL.len()));
        let mut site = one.site;
        if site.is_ok_and(|site| branches_behind(&site)) {
            site = Err(Left::BranchTarget);
        }
        // Each jump to itself: none begins within another.
        let before = one.before.filter(|before| before.at >= end);
        if let Some(before) = before.filter(|_| site.is_err() || !targets.contains(&one.at)) {
            site = Ok(before);
        }
        if site.is_ok_and(|site| site.at < end) {
            site = Err(Left::Overlaps);
        }
        end = site.map_or(end, |site| site.end());
        Found { at: one.at, site }
    };
    candidates.into_iter().map(&mut settle).collect()
}

/// What looks like a site, before it is known where branches lead.
struct Candidate {
    at: usize,
    /// By the load of its number, else with the instruction behind it.
    site: Result<Site, Left>,
    /// By another instruction before it.
    before: Option<Site>,
}

fn candidate(text: &[u8], at: usize) -> Candidate {
    let (site, before) = match site_before(text, at) {
        Verdict::Site(site) => (Ok(site), None),
        Verdict::Never => (Err(Left::SigReturn), None),
        Verdict::Other => match site_behind(text, at) {
            left @ Err(Left::NoInstruction | Left::SigReturn) => (left, None),
            site => (site, site_before_any(text, at)),
        },
    };
    Candidate { at, site, before }
}

impl Site {
    /// Whether the instruction behind the `syscall` makes room.
    pub(super) fn is_behind(&self) -> bool {
        matches!(self.displaced, Displaced::Behind(_))
    }

    /// Behind everything that it changes.
    pub(super) fn end(&self) -> usize {
        match self.displaced {
            Displaced::Before(len) => self.at + usize::from(len),
            Displaced::Behind(len) => self.at + SYSCALL.len() + usize::from(len),
        }
    }
}

enum Verdict {
    Site(Site),
    /// Its number is known, and it must stay as it is.
    Never,
    Other,
}

/// The site whose `syscall` is at `at`, by the instruction before it.
fn site_before(text: &[u8], at: usize) -> Verdict {
    // mov eax, imm32; mov rax, simm32
    for (len, start) in [(5u8, &[0xb8][..]), (7, &[0x48, 0xc7, 0xc0][..])] {
        let Some(from) = at.checked_sub(usize::from(len)) else { continue };
        let bytes = text.get(from..at).unwrap_or(&[]);
        let Some(number) = loaded_number(bytes).filter(|_| bytes.starts_with(start)) else { continue };
        if is_boundary(text, from) {
            let site = Site { at: from, displaced: Displaced::Before(len) };
            return if number == RT_SIGRETURN { Verdict::Never } else { Verdict::Site(site) };
        }
    }
    Verdict::Other
}

/// The number that an instruction loads into eax.
fn loaded_number(bytes: &[u8]) -> Option<u64> {
    let instruction = decode(bytes);
    let number = match instruction.code() {
        Code::Mov_r32_imm32 if instruction.op0_register() == Register::EAX => {
            u64::from(instruction.immediate32())
        }
        Code::Mov_rm64_imm32 if instruction.op0_register() == Register::RAX => instruction.immediate(1),
        _ => return None,
    };
    (instruction.len() == bytes.len() && number < 1 << 16).then_some(number)
}

/// The site whose `syscall` is at `at`, with the instruction behind it.
fn site_behind(text: &[u8], at: usize) -> Result<Site, Left> {
    if !is_boundary(text, at) {
        return Err(Left::NoInstruction);
    }
    // Whatever loads 15 into eax a little before may lead here: mov eax, 15 is enough to leave it alone.
    let before = text.get(at.saturating_sub(16)..at).unwrap_or(&[]);
    if memchr::memmem::find(before, &[15, 0, 0, 0]).is_some() {
        return Err(Left::SigReturn);
    }
    let next = decode(text.get(at + SYSCALL.len()..).unwrap_or(&[]));
    match u8::try_from(next.len()) {
        _ if !is_movable(&next) => Err(Left::NotMovable),
        Ok(len) if SYSCALL.len() + usize::from(len) >= JUMP => {
            Ok(Site { at, displaced: Displaced::Behind(len) })
        }
        _ => Err(Left::NoRoom),
    }
}

/// The site whose `syscall` is at `at`, by an instruction before it that does not load its number.
fn site_before_any(text: &[u8], at: usize) -> Option<Site> {
    (JUMP..=MAX_INSTRUCTION).find_map(|len| {
        let from = at.checked_sub(len)?;
        let instruction = decode(text.get(from..at)?);
        let whole = instruction.len() == len && is_movable(&instruction) && is_boundary(text, from);
        whole.then_some(Site { at: from, displaced: Displaced::Before(u8::try_from(len).ok()?) })
    })
}

/// Whether an instruction does the same elsewhere, and whatever is behind it is done next.
fn is_movable(instruction: &Instruction) -> bool {
    !instruction.is_invalid()
        && instruction.flow_control() == FlowControl::Next
        && !instruction.is_ip_rel_memory_operand()
        // `popf` may set TF, and would step the jump back.
        && ![Code::Syscall, Code::Sysenter, Code::Popfq, Code::Popfw].contains(&instruction.code())
}

/// Of these places, in order, those that a branch may lead to: whatever bytes look like the displacement of one that does.
fn branch_targets(text: &[u8], places: &[usize]) -> std::collections::HashSet<usize> {
    let mut found = std::collections::HashSet::new();
    if places.is_empty() {
        return found;
    }
    // Texts are shorter than 4 GiB, so places are told from each other by 32 bits, wrapping as addresses do; nearly all
    // that is no place by the lowest 16 already, eight displacements at a time.
    let mut low = Box::new([0u8; 1 << 16]);
    for place in places {
        if let Some(low) = low.get_mut(place & 0xffff) {
            *low = 1;
        }
    }
    let low = |target: u32| low.get(usize::from(target as u16)).copied().unwrap_or(0);
    let mut look = |target: u32| {
        let target = target as usize;
        if places.binary_search(&target).is_ok() {
            found.insert(target);
        }
    };
    let (eights, _) = text.as_chunks::<8>();
    let mut behind = 4u32;
    for pair in eights.array_windows::<2>() {
        let [first, second] = pair.map(u64::from_le_bytes);
        // Those that begin in the first eight bytes; of the last three, the middle is in the second.
        let middle = first >> 32 | second << 32;
        let targets: [u32; 8] = std::array::from_fn(|at| {
            let eight = if at < 4 { first } else { middle };
            ((eight >> (at % 4 * 8)) as u32).wrapping_add(behind.wrapping_add(at as u32))
        });
        if targets.iter().fold(0, |any, target| any | low(*target)) != 0 {
            targets.into_iter().filter(|target| low(*target) != 0).for_each(&mut look);
        }
        behind = behind.wrapping_add(8);
    }
    let rest = text.get(behind as usize - 4..).unwrap_or(&[]);
    for (behind, bytes) in (behind..).zip(rest.array_windows::<4>()) {
        look(behind.wrapping_add(u32::from_le_bytes(*bytes)));
    }
    for place in places.iter().copied() {
        let near = place.saturating_sub(130)..(place + 130).min(text.len());
        let short = |at: usize| {
            let (opcode, displacement) = (text.get(at)?, text.get(at + 1)?);
            let branch = matches!(opcode, 0x70..=0x7f | 0xeb | 0xe0..=0xe3);
            let target = at as i64 + 2 + i64::from(displacement.cast_signed());
            (branch && target == place as i64).then_some(place)
        };
        found.extend(near.filter_map(short));
    }
    found
}

/// Has the decoder fill its tables, half a megabyte, which it does when it is first asked.
pub(crate) fn prepare() {
    decode(&[0x90]);
}

fn decode(bytes: &[u8]) -> Instruction {
    Decoder::new(64, bytes, DecoderOptions::NONE).decode()
}

/// Whether an instruction begins at `place`.
fn is_boundary(text: &[u8], place: usize) -> bool {
    const FURTHEST: usize = *STARTS.end();
    let before_place = text.get(place.saturating_sub(FURTHEST)..place).unwrap_or(&[]);
    let mut decoder = Decoder::new(64, before_place, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    let starts = |before: &usize| STARTS.contains(before);
    let mut left = (1..=before_place.len()).filter(starts).count();
    let (mut assent, mut dissent) = (0, 0);
    // Whether who begins to decode so many bytes before the place comes by it. All ways that begin further away come by
    // these, and soon by the same.
    let mut leads = [true; FURTHEST + 1];
    for (before, at) in (1..=before_place.len()).map(|before| (before, before_place.len() - before)) {
        // What is left cannot change it.
        if dissent > DISSENT || assent >= DISSENT && dissent + left <= DISSENT {
            break;
        }
        let comes_by = decoder.set_position(at).is_ok() && {
            decoder.decode_out(&mut instruction);
            // What the place may cut off is no instruction.
            (!instruction.is_invalid() || before >= MAX_INSTRUCTION)
                && before.checked_sub(instruction.len().max(1)).and_then(|next| leads.get(next))
                    == Some(&true)
        };
        if let Some(leads) = leads.get_mut(before) {
            *leads = comes_by;
        }
        if starts(&before) {
            left -= 1;
            if comes_by { assent += 1 } else { dissent += 1 }
        }
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
        assert_eq!(
            find(&text),
            [
                Site { at: 64, displaced: Displaced::Before(5) },
                Site { at: 72, displaced: Displaced::Before(7) },
            ]
        );
        assert_eq!(find(&code(&[&[0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05]])), []);
        assert_eq!(find(&code(&[&[0xb8, 15, 0, 0, 0, 0x0f, 0x05]])), []);
    }

    const COMPARE: [u8; 6] = [0x48, 0x3d, 0x01, 0xf0, 0xff, 0xff];

    /// mov rax, rdi; syscall; cmp rax, -4095
    #[test]
    fn a_call_with_what_is_behind_it() {
        let text = code(&[&[0x48, 0x89, 0xf8, 0x0f, 0x05], &COMPARE, &[0xc3; 8]]);
        assert_eq!(find(&text), [Site { at: 67, displaced: Displaced::Behind(6) }]);
        // A branch may lead between them: je, two bytes before the syscall.
        let text = code(&[&[0x48, 0x89, 0xf8, 0x74, 2, 0x0f, 0x05], &COMPARE, &[0xc3; 8]]);
        assert_eq!(find(&text), []);
        assert_eq!(examine(&text), [Found { at: 69, site: Err(Left::BranchTarget) }]);
        // A return is not displaced, and nothing that is too short.
        assert_eq!(find(&code(&[&[0x48, 0x89, 0xf8, 0x0f, 0x05, 0xc3], &[0x90; 8]])), []);
        assert_eq!(find(&code(&[&[0x48, 0x89, 0xf8, 0x0f, 0x05, 0x85, 0xc0], &[0x90; 8]])), []);
    }

    /// mov r9, [rsp + 8]; syscall; cmp rax, -4095
    #[test]
    fn a_long_instruction_before_the_call_comes_first() {
        const LOAD: [u8; 5] = [0x4c, 0x8b, 0x4c, 0x24, 8];
        let call = [&LOAD[..], &[0x0f, 0x05], &COMPARE, &[0xc3; 8]];
        let before = Site { at: 64, displaced: Displaced::Before(5) };
        assert_eq!(find(&code(&call)), [before]);
        // Also where nothing behind the call makes room.
        assert_eq!(find(&code(&[&LOAD, &[0x0f, 0x05, 0xc3], &[0x90; 8]])), [before]);
        // A branch past it: je, from behind the compare. With it, what is behind the call is better.
        let looped = code(&[&LOAD, &[0x0f, 0x05], &COMPARE, &[0x74, 0xf6], &[0xc3; 8]]);
        assert_eq!(find(&looped), [Site { at: 69, displaced: Displaced::Behind(6) }]);
        let looped = code(&[&LOAD, &[0x0f, 0x05], &[0x74, 0xfc], &[0xc3; 8]]);
        assert_eq!(find(&looped), [before]);
        // Not what may be the number of rt_sigreturn, nor what does not work elsewhere: mov r9, [rip + 8].
        assert_eq!(find(&code(&[&[0xb8, 15, 0, 0, 0], &LOAD, &[0x0f, 0x05, 0xc3], &[0x90; 8]])), []);
        assert_eq!(
            find(&code(&[&[0x4c, 0x8b, 0x0d, 8, 0, 0, 0], &[0x0f, 0x05], &COMPARE, &[0xc3; 8]])),
            [Site { at: 71, displaced: Displaced::Behind(6) }]
        );
    }

    /// What is left alone is listed, with the reason.
    #[test]
    fn each_site_that_is_left_has_its_reason() {
        let left = |parts: &[&[u8]]| examine(&code(parts)).iter().map(|found| found.site).collect::<Vec<_>>();
        assert_eq!(left(&[&[0xb8, 15, 0, 0, 0, 0x0f, 0x05]]), [Err(Left::SigReturn)]);
        assert_eq!(left(&[&[0x48, 0x89, 0xf8, 0x0f, 0x05, 0xc3], &[0x90; 8]]), [Err(Left::NotMovable)]);
        assert_eq!(left(&[&[0x48, 0x89, 0xf8, 0x0f, 0x05, 0x85, 0xc0], &[0x90; 8]]), [Err(Left::NoRoom)]);
        let constant = [0x48, 0xb9, 0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0];
        assert_eq!(left(&[&constant, &[0x90; 16]]), [Err(Left::NoInstruction)]);
        // syscall; then a five-byte load right behind it: one is displaced with the first, the second stays.
        let two: [&[u8]; 4] =
            [&[0x48, 0x89, 0xf8, 0x0f, 0x05], &[0xb8, 39, 0, 0, 0], &[0x0f, 0x05], &[0xc3; 8]];
        assert!(matches!(left(&two)[..], [Ok(_), Err(Left::Overlaps)]), "{:?}", left(&two));
    }

    /// The same bytes as the tail of a longer instruction, which is displaced as a whole: mov r8d, 39.
    #[test]
    fn other_registers_are_other_instructions() {
        let text = code(&[&[0x41, 0xb8, 39, 0, 0, 0, 0x0f, 0x05]]);
        assert_eq!(find(&text), [Site { at: 64, displaced: Displaced::Before(6) }]);
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
