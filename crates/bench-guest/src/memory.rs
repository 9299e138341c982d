//! Workloads: memory.

use std::time::{Duration, Instant};

use crate::Workload;
use crate::measure::{Measured, batches, repeat};
use crate::sys::{self, Mapping, PAGE};

pub(crate) const ALL: &[Workload] = &[
    ("page-touch", || pages(Mapping::write_each_page)),
    ("page-read", || pages(Mapping::read_each_page)),
    ("mmap-touch-munmap", || repeat(|| Mapping::new(64 << 10).write_each_page())),
    ("mprotect", mprotect),
    ("brk", || repeat(|| sys::grow_heap_and_back(64 << 10))),
];

/// Pages of one mapping.
const MOST: u64 = 4096;

/// Per page of memory that nobody has touched before; mapping and unmapping are not timed.
fn pages(touch: impl Fn(&Mapping)) -> Measured {
    batches(|count| {
        let mut left = count;
        let mut took = Duration::ZERO;
        while left > 0 {
            let pages = left.min(MOST);
            let mapping = Mapping::small_pages(usize::try_from(pages).unwrap_or(1) * PAGE);
            let start = Instant::now();
            touch(&mapping);
            took += start.elapsed();
            left -= pages;
        }
        took
    })
}

fn mprotect() -> Measured {
    let mapping = Mapping::new(64 << 10);
    mapping.write_each_page();
    batches(|count| {
        let start = Instant::now();
        for _ in 0..count {
            mapping.protect_and_back();
        }
        start.elapsed() / 2
    })
}
