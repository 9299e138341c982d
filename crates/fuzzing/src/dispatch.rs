//! Target `dispatch`: a program that makes any calls with any arguments. The kernel neither fails nor hangs, and all
//! that the program had is given back when it ends.

use kernel::syscall::table;

use crate::guest::{self, Call};
use crate::{Input, Machine};

/// Calls of one program at most.
const MOST: usize = 24;

/// Calls, each a number and six registers; what is left is the program's memory.
pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let traced = input.byte().is_multiple_of(4);
    let count = usize::from(input.byte()) % (MOST + 1);
    let calls: Vec<Call> = (0..count).map(|_| call(&mut input)).collect();
    let program = guest::program(&calls, input.rest());
    Machine::new(traced).run(&program);
}

fn call(input: &mut Input<'_>) -> Call {
    let choice = input.half();
    let rows = table::rows().count();
    let number = match table::rows().nth(usize::from(choice) % (rows + rows / 50)) {
        Some(row) => u64::from(row.number),
        None => input.word(),
    };
    (number, std::array::from_fn(|_| input.register()))
}
