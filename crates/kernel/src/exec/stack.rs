//! The first stack of a process: strings, auxiliary vector, environment, arguments.

use abi::{AuxvKey, Errno, PAGE_SIZE};
use sync::SysResult;

use crate::mm::Layout;

/// What the stack is made of.
pub(super) struct StackContents<'a> {
    pub arguments: &'a [Vec<u8>],
    pub environment: &'a [Vec<u8>],
    /// The path that was executed (`AT_EXECFN`).
    pub filename: &'a [u8],
    pub random: [u8; 16],
    /// Number and value, without those that point into the stack.
    pub auxv: Vec<(AuxvKey, u64)>,
}

/// A stack ready to be written.
pub(super) struct Stack {
    /// The first stack pointer, where `bytes` begin.
    pub pointer: u64,
    pub bytes: Vec<u8>,
    /// The auxiliary vector as it lies there.
    pub auxv: Vec<u8>,
}

impl StackContents<'_> {
    /// Lays it out below `layout.stack_top` and notes in `layout` where strings are. `E2BIG` beyond `limit` bytes.
    pub(super) fn build(&self, layout: &mut Layout, limit: u64) -> SysResult<Stack> {
        let top = layout.stack_top;
        let mut strings = Strings { top, bytes_from_top: Vec::new() };
        // From the top down: a null word, the file's name, environment, arguments, platform, random bytes.
        strings.push(&[0; 8]);
        let filename = strings.push_string(self.filename);
        layout.env_end = filename;
        let environment: Vec<u64> = push_all(&mut strings, self.environment);
        layout.env_start = environment.first().copied().unwrap_or(layout.env_end);
        layout.arg_end = layout.env_start;
        let arguments: Vec<u64> = push_all(&mut strings, self.arguments);
        layout.arg_start = arguments.first().copied().unwrap_or(layout.arg_end);
        let platform = strings.push_string(b"x86_64");
        let random = strings.push(&self.random);
        let mut auxv = self.auxv.clone();
        auxv.extend([
            (AuxvKey::EXECFN, filename),
            (AuxvKey::PLATFORM, platform),
            (AuxvKey::RANDOM, random),
            (AuxvKey::NULL, 0),
        ]);
        let mut words: Vec<u64> = vec![arguments.len() as u64];
        words.extend(&arguments);
        words.push(0);
        words.extend(&environment);
        words.push(0);
        let auxv_at = words.len();
        words.extend(auxv.iter().flat_map(|(kind, value)| [u64::from(kind.0), *value]));
        let strings_start = strings.lowest();
        let pointer = strings_start.checked_sub(words.len() as u64 * 8).ok_or(Errno::E2BIG)? & !15;
        if top - pointer > limit {
            return Err(Errno::E2BIG.into());
        }
        layout.start_stack = pointer;
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let auxv_bytes = bytes.get(auxv_at * 8..).unwrap_or(&[]).to_vec();
        let gap = usize::try_from(strings_start - pointer).map_err(|_| Errno::E2BIG)? - bytes.len();
        bytes.extend(std::iter::repeat_n(0, gap));
        bytes.extend(strings.bytes_from_top.iter().rev());
        Ok(Stack { pointer, bytes, auxv: auxv_bytes })
    }
}

fn push_all(strings: &mut Strings, list: &[Vec<u8>]) -> Vec<u64> {
    let mut places: Vec<u64> = list.iter().rev().map(|string| strings.push_string(string)).collect();
    places.reverse();
    places
}

/// Strings stacked from the top down, kept reversed.
struct Strings {
    top: u64,
    bytes_from_top: Vec<u8>,
}

impl Strings {
    fn lowest(&self) -> u64 {
        self.top - self.bytes_from_top.len() as u64
    }

    fn push(&mut self, bytes: &[u8]) -> u64 {
        self.bytes_from_top.extend(bytes.iter().rev());
        self.lowest()
    }

    fn push_string(&mut self, string: &[u8]) -> u64 {
        self.push(&[0]);
        self.push(string)
    }
}

/// Bytes of stack that arguments may take: a quarter of the limit, at least 128 KiB, at most 6 MiB (Linux:
/// `bprm_stack_limits`).
pub(super) fn arguments_limit(stack_limit: u64) -> u64 {
    (stack_limit / 4).clamp(32 * PAGE_SIZE, 6 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stack_is_what_start_code_expects() {
        let contents = StackContents {
            arguments: &[b"prog".to_vec(), b"-x".to_vec()],
            environment: &[b"A=1".to_vec()],
            filename: b"/bin/prog",
            random: [7; 16],
            auxv: vec![(AuxvKey::PAGESZ, 4096)],
        };
        let mut layout = Layout { stack_top: 0x7fff_0000_0000, ..Layout::default() };
        let stack = contents.build(&mut layout, 1 << 20).unwrap();
        assert_eq!(stack.pointer % 16, 0);
        assert_eq!(stack.pointer + stack.bytes.len() as u64, layout.stack_top);
        let word =
            |index: usize| u64::from_le_bytes(stack.bytes[index * 8..index * 8 + 8].try_into().unwrap());
        let string = |at: u64| {
            let start = usize::try_from(at - stack.pointer).unwrap();
            let end = start + stack.bytes[start..].iter().position(|byte| *byte == 0).unwrap();
            String::from_utf8(stack.bytes[start..end].to_vec()).unwrap()
        };
        assert_eq!(word(0), 2);
        assert_eq!((string(word(1)), string(word(2)), word(3)), ("prog".into(), "-x".into(), 0));
        assert_eq!((string(word(4)), word(5)), ("A=1".into(), 0));
        assert_eq!((word(6), word(7)), (u64::from(AuxvKey::PAGESZ.0), 4096));
        assert_eq!((word(8), string(word(9))), (u64::from(AuxvKey::EXECFN.0), "/bin/prog".into()));
        assert_eq!((string(layout.arg_start), layout.arg_end - layout.arg_start), ("prog".into(), 8));
        assert!(
            matches!(contents.build(&mut layout, 100), Err(error) if error.errno() == Some(Errno::E2BIG))
        );
    }
}
