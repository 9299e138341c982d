//! Runs seccomp programs, for tests of them.

use super::Instruction;

/// `struct seccomp_data`.
#[derive(Clone, Copy, Debug)]
pub struct Data {
    pub nr: u32,
    pub arch: u32,
    pub ip: u64,
    pub args: [u64; 6],
}

impl Data {
    /// As the host lays it out.
    pub fn words(&self) -> [u32; 16] {
        let mut words = [self.nr, self.arch, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        for (pair, word) in words.chunks_exact_mut(2).skip(1).zip(std::iter::once(self.ip).chain(self.args)) {
            pair.copy_from_slice(&[word as u32, (word >> 32) as u32]);
        }
        words
    }
}

/// Whether the program allows it; `None` if it is no program.
pub fn verdict(program: &[Instruction], data: &[u32; 16]) -> Option<bool> {
    action(program, data).map(|action| action == libc::SECCOMP_RET_ALLOW)
}

/// What the program returns for it; `None` if it is no program.
pub fn action(program: &[Instruction], data: &[u32; 16]) -> Option<u32> {
    let (mut a, mut x, mut memory) = (0u32, 0u32, [0u32; 16]);
    let mut at = 0usize;
    loop {
        let (code, jt, jf, k) = *program.get(at)?;
        let code = u32::from(code);
        at += 1;
        let compared = if code & 0x08 == libc::BPF_X { x } else { k };
        match code & 0x07 {
            libc::BPF_LD if code & 0xe0 == libc::BPF_MEM => a = *memory.get(k as usize)?,
            libc::BPF_LD => a = *data.get(k as usize / 4)?,
            libc::BPF_ST => *memory.get_mut(k as usize)? = a,
            libc::BPF_ALU if code & 0xf0 == libc::BPF_ADD => a = a.wrapping_add(compared),
            libc::BPF_ALU if code & 0xf0 == libc::BPF_AND => a &= compared,
            libc::BPF_MISC => x = a,
            libc::BPF_RET => return Some(k),
            libc::BPF_JMP => {
                let holds = match code & 0xf0 {
                    libc::BPF_JA => {
                        at += k as usize;
                        continue;
                    }
                    libc::BPF_JEQ => a == compared,
                    libc::BPF_JGT => a > compared,
                    libc::BPF_JGE => a >= compared,
                    libc::BPF_JSET => a & compared != 0,
                    _ => return None,
                };
                at += usize::from(if holds { jt } else { jf });
            }
            _ => return None,
        }
    }
}
