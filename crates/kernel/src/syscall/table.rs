//! The table of system calls: a row for every number of x86-64 Linux 6.18. The rows are in `table/`, by number;
//! the form of a row is described at the macro that makes them, in `row.rs`.

pub mod from_0;
pub mod from_128;
pub mod from_256;

use super::Row;

/// The row of a number: Linux looks at its lower 32 bits. `None`: no such call.
pub fn row(number: u64) -> Option<&'static Row> {
    *INDEX.get(usize::try_from(number & 0xffff_ffff).ok()?)?
}

/// All rows, by number.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    PARTS.into_iter().flatten()
}

static PARTS: [&[Row]; 3] = [from_0::ROWS, from_128::ROWS, from_256::ROWS];

/// Where each number's row is.
static INDEX: [Option<&'static Row>; 512] = index();

/// A duplicate or unsorted number, or one beyond the index, does not compile.
#[allow(clippy::indexing_slicing, reason = "evaluated when compiled")]
const fn index() -> [Option<&'static Row>; 512] {
    let mut index: [Option<&'static Row>; 512] = [None; 512];
    let (mut part, mut lowest) = (0, 0);
    while part < PARTS.len() {
        let rows = PARTS[part];
        let mut at = 0;
        while at < rows.len() {
            let number = rows[at].number;
            assert!(number >= lowest, "rows are in order, each number once");
            lowest = number + 1;
            index[number as usize] = Some(&rows[at]);
            at += 1;
        }
        part += 1;
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_of_linux_has_its_row() {
        let ours: Vec<_> = rows().map(|row| (row.number, row.name)).collect();
        assert_eq!(ours, abi::SYSCALL_NAMES);
    }

    #[test]
    fn numbers_find_their_row_by_the_lower_half_of_the_register() {
        assert_eq!(row(257).map(|row| row.name), Some("openat"));
        assert_eq!(row(0xffff_ffff_0000_0000).map(|row| row.name), Some("read"));
        assert!(row(400).is_none() && row(1 << 31).is_none());
    }
}
