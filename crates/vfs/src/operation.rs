//! Which path operation the calling thread is in the middle of. What a file system learned of a file when it looked up its
//! name need not be asked for again in the same one.
//!
//! Neighbours: each [`FsContext`](crate::FsContext) is one; file systems that ask outside compare the numbers.

use std::cell::Cell;

thread_local! {
    static CURRENT: Cell<Option<u64>> = const { Cell::new(None) };
    static LAST: Cell<u64> = const { Cell::new(0) };
}

/// The calling thread is in an operation for as long as this lives; in one inside another, until that ends.
#[derive(Debug)]
pub struct Operation {
    outer: Option<u64>,
}

impl Operation {
    pub(crate) fn begin() -> Operation {
        let number = LAST.get().wrapping_add(1);
        LAST.set(number);
        Operation { outer: CURRENT.replace(Some(number)) }
    }

    /// Its number, which none of this thread has had before.
    pub fn current() -> Option<u64> {
        CURRENT.get()
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        CURRENT.set(self.outer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_inside_another_is_one_of_its_own() {
        assert_eq!(Operation::current(), None);
        let outer = Operation::begin();
        let first = Operation::current();
        let inner = Operation::begin();
        assert!(first.is_some() && Operation::current() != first);
        drop(inner);
        assert_eq!(Operation::current(), first);
        drop(outer);
        assert_eq!(Operation::current(), None);
    }
}
