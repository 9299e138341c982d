//! Guest code for tests: an assembler for the few instructions that the [mock](crate::mock) executes too.

/// A general register, by its number in instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reg {
    Rax = 0,
    Rcx = 1,
    Rdx = 2,
    Rbx = 3,
    Rsp = 4,
    Rbp = 5,
    Rsi = 6,
    Rdi = 7,
    R8 = 8,
    R9 = 9,
    R10 = 10,
    R11 = 11,
    R12 = 12,
    R13 = 13,
    R14 = 14,
    R15 = 15,
}

/// The registers of a system call's arguments, in order.
const ARGUMENTS: [Reg; 6] = [Reg::Rdi, Reg::Rsi, Reg::Rdx, Reg::R10, Reg::R8, Reg::R9];

/// Code being written. Every method adds one instruction, except where it says more.
#[derive(Clone, Debug, Default)]
pub struct Code {
    bytes: Vec<u8>,
}

impl Code {
    pub fn new() -> Code {
        Code::default()
    }

    /// The code so far.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where the next instruction will be, from the start.
    pub fn here(&self) -> usize {
        self.bytes.len()
    }

    fn add(mut self, bytes: &[u8]) -> Code {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// `movabs reg, value`
    pub fn set(self, reg: Reg, value: u64) -> Code {
        let number = reg as u8;
        self.add(&[0x48 | number >> 3, 0xb8 | number & 7]).add(&value.to_le_bytes())
    }

    /// Loads the number and these arguments, then `syscall`: several instructions.
    pub fn call(mut self, number: u64, args: &[u64]) -> Code {
        for (reg, value) in ARGUMENTS.into_iter().zip(args) {
            self = self.set(reg, *value);
        }
        self.set(Reg::Rax, number).syscall()
    }

    pub fn syscall(self) -> Code {
        self.add(&[0x0f, 0x05])
    }

    /// The 32-bit entry, `int 0x80`.
    pub fn int80(self) -> Code {
        self.add(&[0xcd, 0x80])
    }

    pub fn int3(self) -> Code {
        self.add(&[0xcc])
    }

    /// An instruction that does not exist.
    pub fn ud2(self) -> Code {
        self.add(&[0x0f, 0x0b])
    }

    pub fn nop(self) -> Code {
        self.add(&[0x90])
    }

    /// `pushfq`
    pub fn push_flags(self) -> Code {
        self.add(&[0x9c])
    }

    /// `popfq`
    pub fn pop_flags(self) -> Code {
        self.add(&[0x9d])
    }

    /// `push imm32`
    pub fn push(self, value: i32) -> Code {
        self.add(&[0x68]).add(&value.to_le_bytes())
    }

    /// `mov ss, eax`
    pub fn load_stack_segment(self) -> Code {
        self.add(&[0x8e, 0xd0])
    }

    /// `rep stosb`
    pub fn repeat_store(self) -> Code {
        self.add(&[0xf3, 0xaa])
    }

    /// `ret`
    pub fn ret(self) -> Code {
        self.add(&[0xc3])
    }

    /// `div ecx`
    pub fn divide_by_ecx(self) -> Code {
        self.add(&[0xf7, 0xf1])
    }

    /// `mov [rdi], rax`
    pub fn store(self) -> Code {
        self.add(&[0x48, 0x89, 0x07])
    }

    /// `mov rax, [rdi]`
    pub fn load(self) -> Code {
        self.add(&[0x48, 0x8b, 0x07])
    }

    /// `mov rax, fs:[0]`
    pub fn load_from_fs(self) -> Code {
        self.add(&[0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0])
    }

    /// `movq xmm0, rax`
    pub fn to_xmm0(self) -> Code {
        self.add(&[0x66, 0x48, 0x0f, 0x6e, 0xc0])
    }

    /// `movq rax, xmm0`
    pub fn from_xmm0(self) -> Code {
        self.add(&[0x66, 0x48, 0x0f, 0x7e, 0xc0])
    }

    /// `inc qword ptr [rdi]`
    pub fn increment(self) -> Code {
        self.add(&[0x48, 0xff, 0x07])
    }

    /// A jump to an earlier place that [`Code::here`] told, or forward from it.
    pub fn jump(self, to: usize) -> Code {
        let from = self.bytes.len() + 5;
        let distance = i64::try_from(to).unwrap_or(0) - i64::try_from(from).unwrap_or(0);
        let distance = i32::try_from(distance).unwrap_or(0);
        self.add(&[0xe9]).add(&distance.to_le_bytes())
    }

    /// Jumps to itself for ever.
    pub fn spin(self) -> Code {
        let here = self.here();
        self.jump(here)
    }
}
