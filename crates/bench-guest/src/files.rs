//! Workloads: files and what else descriptors lead to. They run in a directory with a file `data` of some pages and a
//! directory `entries` of 1,000 names, which the harness has made.

use std::ffi::CStr;

use crate::measure::{Measured, batches, repeat};
use crate::sys::{self, CREAT, DIRECTORY, Fd, RDONLY, RDWR};
use crate::{Workload, pairs};

pub(crate) const ALL: &[Workload] = &[
    ("read-zero", read_zero),
    ("read-1", || with_data(|fd| again(fd, |fd| sys::read(fd, &mut [0; 1])))),
    ("read-4k", || with_data(|fd| again(fd, |fd| sys::read(fd, &mut [0; 4096])))),
    ("read-64k", || big(|fd, buffer| again(fd, |fd| sys::read(fd, buffer)))),
    ("pread-1", || with_data(|fd| repeat(|| full(sys::pread(fd, &mut [0; 1], 0), 1)))),
    ("pread-4k", || with_data(|fd| repeat(|| full(sys::pread(fd, &mut [0; 4096], 0), 4096)))),
    ("pread-64k", || big(|fd, buffer| repeat(|| full(sys::pread(fd, buffer, 0), 65536)))),
    ("pwrite-1", || with_data(|fd| repeat(|| full(sys::pwrite(fd, &[7; 1], 0), 1)))),
    ("pwrite-4k", || with_data(|fd| repeat(|| full(sys::pwrite(fd, &[7; 4096], 0), 4096)))),
    ("pwrite-64k", || big(|fd, buffer| repeat(|| full(sys::pwrite(fd, buffer, 0), 65536)))),
    ("write-1", || with_data(|fd| again(fd, |fd| sys::write(fd, &[7; 1])))),
    ("write-4k", || with_data(|fd| again(fd, |fd| sys::write(fd, &[7; 4096])))),
    ("write-64k", || big(|fd, buffer| again(fd, |fd| sys::write(fd, buffer)))),
    ("lseek", || with_data(|fd| repeat(|| sys::rewind(fd)))),
    ("fstat", || with_data(|fd| repeat(|| sys::fstat(fd, &mut [0; 256])))),
    ("stat", || repeat(|| full(usize::from(sys::stat(DATA, &mut [0; 256])), 1))),
    ("stat-missing", || repeat(|| full(usize::from(sys::stat(c"nothing-here", &mut [0; 256])), 0))),
    ("open-close", || repeat(|| sys::close(sys::open(DATA, RDONLY)))),
    ("readdir-1000", || repeat(read_directory)),
    ("create-unlink", create_unlink),
    ("rename", rename),
    ("eventfd", eventfd),
    ("epoll-1000", epoll),
    ("poll-10", poll),
];

const DATA: &CStr = c"data";
/// Bytes of `data`.
const SIZE: usize = 1 << 20;

/// A figure of calls that do less than asked for would lie.
fn full(done: usize, wanted: usize) {
    if done != wanted {
        eprintln!("bench-guest: {done} in place of {wanted}");
        std::process::exit(3);
    }
}

fn with_data(work: impl FnOnce(Fd) -> Measured) -> Measured {
    work(sys::open(DATA, RDWR))
}

/// With a buffer of 64 KiB that has been touched.
fn big(work: impl FnOnce(Fd, &mut [u8]) -> Measured) -> Measured {
    let mut buffer = vec![7; 65536];
    with_data(|fd| work(fd, &mut buffer))
}

/// Calls that move the offset: back to the start, whenever the file's end has been reached, without timing that.
fn again(fd: Fd, mut call: impl FnMut(Fd) -> usize) -> Measured {
    let mut left: usize = 0;
    batches(|count| {
        let mut took = std::time::Duration::ZERO;
        let mut done = 0;
        while done < count {
            if left == 0 {
                sys::rewind(fd);
            }
            let start = std::time::Instant::now();
            loop {
                let moved = call(fd).max(1);
                if left == 0 {
                    left = SIZE / moved;
                }
                left -= 1;
                done += 1;
                if left == 0 || done == count {
                    break;
                }
            }
            took += start.elapsed();
        }
        took
    })
}

fn read_zero() -> Measured {
    let zero = sys::open(c"/dev/zero", RDONLY);
    repeat(|| full(sys::read(zero, &mut [0; 1]), 1))
}

fn read_directory() {
    let directory = sys::open(c"entries", DIRECTORY);
    let mut buffer = [0; 32768];
    while sys::getdents(directory, &mut buffer) > 0 {}
    sys::close(directory);
}

fn create_unlink() -> Measured {
    repeat(|| {
        sys::close(sys::open(c"created", CREAT | RDWR));
        sys::unlink(c"created");
    })
}

fn rename() -> Measured {
    sys::close(sys::open(c"one-name", CREAT | RDWR));
    let measured = batches(|count| {
        let start = std::time::Instant::now();
        for _ in 0..count {
            sys::rename(c"one-name", c"another-name");
            sys::rename(c"another-name", c"one-name");
        }
        start.elapsed() / 2
    });
    sys::unlink(c"one-name");
    measured
}

fn eventfd() -> Measured {
    let fd = sys::eventfd();
    repeat(|| {
        full(sys::write(fd, &1u64.to_ne_bytes()), 8);
        full(sys::read(fd, &mut [0; 8]), 8);
    })
}

/// One of 1,000 descriptors is ready.
fn epoll() -> Measured {
    let epoll = sys::epoll_create();
    // The usual limit is 1,024 descriptors: a few are open already.
    for _ in 0..999 {
        sys::epoll_add(epoll, sys::eventfd());
    }
    let ready = sys::eventfd();
    sys::epoll_add(epoll, ready);
    full(sys::write(ready, &1u64.to_ne_bytes()), 8);
    repeat(|| full(sys::epoll_wait(epoll), 1))
}

fn poll() -> Measured {
    let fds = pairs::some_eventfds();
    repeat(|| full(sys::poll(&fds), 0))
}
