//! Target `elf`: any bytes as a program. They run or they do not; the kernel does not fail over them.

use crate::Machine;

pub fn run(bytes: &[u8]) {
    Machine::new(false).run(bytes);
}
