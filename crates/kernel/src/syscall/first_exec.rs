//! The trace's first line: the main program's `execve`, which no guest makes. It is shown by the row of `execve` from
//! a memory that is made up for it, as strace shows the one that it makes itself.

use abi::UserAddr;

use crate::exec::ExecArguments;
use crate::syscall::show::TraceMemory;

/// Where the made-up memory lies: where stacks are.
const BASE: u64 = 0x7ffe_0000_0000;

/// A path and two lists of strings as `execve` takes them.
pub(super) struct FirstExec {
    bytes: Vec<u8>,
    /// The registers of the call.
    pub(super) words: [u64; 6],
}

impl FirstExec {
    pub(super) fn new(exec: &ExecArguments) -> FirstExec {
        let mut first = FirstExec { bytes: Vec::new(), words: [0; 6] };
        let path = first.put_string(&exec.path);
        let arguments = first.put_list(&exec.arguments);
        let environment = first.put_list(&exec.environment);
        first.words = [path, arguments, environment, 0, 0, 0];
        first
    }

    fn put(&mut self, bytes: &[u8]) -> u64 {
        let at = BASE + self.bytes.len() as u64;
        self.bytes.extend_from_slice(bytes);
        at
    }

    fn put_string(&mut self, text: &[u8]) -> u64 {
        let at = self.put(text);
        self.bytes.push(0);
        at
    }

    fn put_list(&mut self, strings: &[Vec<u8>]) -> u64 {
        let pointers: Vec<u64> = strings.iter().map(|text| self.put_string(text)).chain([0]).collect();
        // Pointers are read page by page, each of them in one piece.
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        let bytes: Vec<u8> = pointers.iter().flat_map(|pointer| pointer.to_ne_bytes()).collect();
        self.put(&bytes)
    }
}

impl TraceMemory for FirstExec {
    fn read(&self, from: UserAddr, into: &mut [u8]) -> usize {
        let start = from.0.checked_sub(BASE).and_then(|start| usize::try_from(start).ok());
        let rest = start.and_then(|start| self.bytes.get(start..)).unwrap_or_default();
        let count = rest.len().min(into.len());
        if let (Some(into), Some(from)) = (into.get_mut(..count), rest.get(..count)) {
            into.copy_from_slice(from);
        }
        count
    }
}
