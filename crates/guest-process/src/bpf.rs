//! Seccomp programs, written instruction by instruction: no crate compares addresses.

#![allow(
    clippy::cast_sign_loss,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    reason = "constants of the host's ABI, taken in halves; labels are indices of our own"
)]

#[cfg(feature = "testing")]
pub mod interpreter;

use abi::{GUEST_TOP, PAGE_SIZE};

// Offsets in struct seccomp_data.
const VSYSCALL: u64 = 0xffff_ffff_ff60_0000;

/// Where the number is.
pub const NR: u32 = 0;
/// Where the architecture is.
pub const ARCH: u32 = 4;
/// Where the instruction pointer is.
pub const IP: u32 = 8;
/// Where the lower half of an argument is.
pub const fn low(argument: u32) -> u32 {
    16 + 8 * argument
}
/// Where its upper half is.
pub const fn high(argument: u32) -> u32 {
    low(argument) + 4
}

/// One BPF instruction (`struct sock_filter`): code, jump if true, jump if false, constant.
pub type Instruction = (u16, u8, u8, u32);

/// A place in the program, set once.
#[derive(Clone, Copy)]
pub struct Label(usize);

/// A program being written.
#[derive(Default)]
pub struct Assembler {
    code: Vec<Instruction>,
    labels: Vec<Option<usize>>,
    jumps: Vec<(usize, Label)>,
}

impl Assembler {
    /// A label for a place to come.
    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// The label is here.
    pub fn place(&mut self, label: Label) {
        self.labels[label.0] = Some(self.code.len());
    }

    /// One instruction that does not jump.
    pub fn emit(&mut self, code: u32, constant: u32) {
        self.code.push((code as u16, 0, 0, constant));
    }

    /// A = the word at `offset` of the call's data.
    pub fn load(&mut self, offset: u32) {
        self.emit(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset);
    }

    /// Goes on at the label.
    pub fn jump(&mut self, to: Label) {
        self.jumps.push((self.code.len(), to));
        self.emit(libc::BPF_JMP | libc::BPF_JA, 0);
    }

    /// An instruction as it is.
    pub fn raw(&mut self, instruction: Instruction) {
        self.code.push(instruction);
    }

    /// Jumps if A compares so with the constant (`kind`: BPF_JEQ, BPF_JGT, BPF_JGE).
    pub fn jump_if(&mut self, kind: u32, constant: u32, to: Label) {
        self.code.push(((libc::BPF_JMP | kind | libc::BPF_K) as u16, 0, 1, constant));
        self.jump(to);
    }

    /// Jumps if A does not compare so.
    pub fn jump_unless(&mut self, kind: u32, constant: u32, to: Label) {
        self.code.push(((libc::BPF_JMP | kind | libc::BPF_K) as u16, 1, 0, constant));
        self.jump(to);
    }

    /// Goes on if the argument, all 64 bits of it, is one of these.
    pub fn require_one_of(&mut self, argument: u32, values: &[u32], kill: Label) {
        let found = self.label();
        self.load(high(argument));
        self.jump_unless(libc::BPF_JEQ, 0, kill);
        self.load(low(argument));
        for value in values {
            self.jump_if(libc::BPF_JEQ, *value, found);
        }
        self.jump(kill);
        self.place(found);
    }

    /// Goes on if `[start, start + len)` lies below [`GUEST_TOP`], without wrapping around.
    pub fn require_below(&mut self, start: u32, len: u32, kill: Label) {
        let top_high = (GUEST_TOP >> 32) as u32;
        let top_low = GUEST_TOP as u32;
        let (carry, compare, good) = (self.label(), self.label(), self.label());
        for argument in [start, len] {
            self.load(high(argument));
            self.jump_if(libc::BPF_JGT, top_high, kill);
        }
        self.load(low(start));
        self.emit(libc::BPF_MISC | libc::BPF_TAX, 0);
        self.load(low(len));
        self.emit(libc::BPF_ALU | libc::BPF_ADD | libc::BPF_X, 0);
        self.emit(libc::BPF_ST, 0);
        // A sum below one of its parts has wrapped around 32 bits.
        self.code.push(((libc::BPF_JMP | libc::BPF_JGE | libc::BPF_X) as u16, 1, 0, 0));
        self.jump(carry);
        self.add_high_words(start, len);
        self.jump(compare);
        self.place(carry);
        self.add_high_words(start, len);
        self.emit(libc::BPF_ALU | libc::BPF_ADD | libc::BPF_K, 1);
        self.place(compare);
        self.jump_if(libc::BPF_JGT, top_high, kill);
        self.jump_unless(libc::BPF_JEQ, top_high, good);
        self.emit(libc::BPF_LD | libc::BPF_MEM, 0);
        self.jump_if(libc::BPF_JGT, top_low, kill);
        self.place(good);
    }

    fn add_high_words(&mut self, start: u32, len: u32) {
        self.load(high(start));
        self.emit(libc::BPF_MISC | libc::BPF_TAX, 0);
        self.load(high(len));
        self.emit(libc::BPF_ALU | libc::BPF_ADD | libc::BPF_X, 0);
    }

    /// Goes on if the instruction pointer lies in the page.
    pub fn require_page(&mut self, page: u64, otherwise: Label) {
        self.load(IP + 4);
        self.jump_unless(libc::BPF_JEQ, (page >> 32) as u32, otherwise);
        self.load(IP);
        self.jump_unless(libc::BPF_JGE, page as u32, otherwise);
        self.jump_if(libc::BPF_JGT, page as u32 + (PAGE_SIZE as u32 - 1), otherwise);
    }

    /// Goes on if the flags of a mapping (the fourth argument) have a fixed place, and no huge or locked pages.
    pub fn require_map_flags(&mut self, otherwise: Label) {
        let fixed = (libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE).cast_unsigned();
        let refused = (libc::MAP_HUGETLB | libc::MAP_LOCKED).cast_unsigned();
        self.load(low(3));
        self.raw(((libc::BPF_JMP | libc::BPF_JSET) as u16, 1, 0, fixed));
        self.jump(otherwise);
        self.raw(((libc::BPF_JMP | libc::BPF_JSET) as u16, 0, 1, refused));
        self.jump(otherwise);
    }

    /// Goes on if the operation of a futex call (the second argument) is none of PI and FD.
    pub fn require_futex(&mut self, otherwise: Label) {
        let known = self.label();
        self.load(low(1));
        let command = !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME).cast_unsigned();
        self.emit(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, command);
        for operation in [
            libc::FUTEX_WAIT,
            libc::FUTEX_WAKE,
            libc::FUTEX_REQUEUE,
            libc::FUTEX_CMP_REQUEUE,
            libc::FUTEX_WAKE_OP,
            libc::FUTEX_WAIT_BITSET,
            libc::FUTEX_WAKE_BITSET,
        ] {
            self.jump_if(libc::BPF_JEQ, operation.cast_unsigned(), known);
        }
        self.jump(otherwise);
        self.place(known);
    }

    /// Allows the time calls of the vsyscall page, which the host emulates.
    pub fn allow_vsyscall_time(&mut self, allow: Label, otherwise: Label) {
        self.require_page(VSYSCALL, otherwise);
        self.load(NR);
        for number in [libc::SYS_gettimeofday, libc::SYS_time, libc::SYS_getcpu] {
            self.jump_if(libc::BPF_JEQ, number as u32, allow);
        }
    }

    /// The program.
    pub fn finish(mut self) -> Vec<Instruction> {
        for (at, label) in self.jumps {
            let target = self.labels[label.0].unwrap_or(at + 1);
            self.code[at].3 = (target - at - 1) as u32;
        }
        self.code
    }
}
