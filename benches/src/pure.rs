//! What the kernel computes on its hottest paths: finding a mapping, a descriptor, a row of the table; a line typed into
//! a terminal; a filter being written.

use std::hint::black_box;
use std::sync::Arc;

use abi::{OpenFlags, Prot};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use kernel::mm::{Backing, Vma, VmaFlags, VmaMap};
use vfs::{FdTable, FileDescription, FileOps};

const PAGE: u64 = 4096;

/// A mapping of one page; those of odd pages do not join those of even ones.
fn vma(page: u64) -> Vma {
    let prot = if page % 2 == 0 { Prot::READ } else { Prot::READ | Prot::WRITE };
    Vma {
        start: page * PAGE,
        end: (page + 1) * PAGE,
        prot,
        may: prot,
        flags: VmaFlags::empty(),
        backing: Backing::Anonymous,
        name: None,
    }
}

fn mappings(c: &mut Criterion) {
    for count in [50, 50_000] {
        let mut map = VmaMap::default();
        (0..count).for_each(|page| map.insert(vma(page)));
        let mut page = 0;
        c.bench_function(&format!("find one of {count} mappings"), |b| {
            b.iter(|| {
                page = (page + 7919) % count;
                black_box(map.find(page * PAGE + 5)).is_some()
            });
        });
        c.bench_function(&format!("replace one of {count} mappings"), |b| {
            b.iter(|| {
                page = (page + 7919) % count;
                black_box(map.remove(page * PAGE, (page + 1) * PAGE));
                map.insert(vma(page));
            });
        });
        c.bench_function(&format!("find room below {count} mappings"), |b| {
            b.iter(|| black_box(map.free_below(16 * PAGE, count * PAGE * 2, PAGE)));
        });
    }
}

/// A file with nothing to it.
#[derive(Debug)]
struct Nothing;

impl FileOps for Nothing {
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

fn descriptors(c: &mut Criterion) {
    let file = || FileDescription::new(Box::new(Nothing), None, OpenFlags::RDWR);
    let table = FdTable::new();
    for _ in 0..1000 {
        let _ = table.install(file(), 1024, false);
    }
    c.bench_function("look up one of 1,000 descriptors", |b| b.iter(|| table.get(black_box(500)).is_ok()));
    let one = file();
    c.bench_function("install and close a descriptor behind 1,000", |b| {
        b.iter(|| {
            let fd = table.install(Arc::clone(&one), 1024, false).unwrap_or(-1);
            table.remove(fd).is_ok()
        });
    });
}

fn rows(c: &mut Criterion) {
    let mut number = 0;
    c.bench_function("find a system call's row", |b| {
        b.iter(|| {
            number = (number + 37) % 470;
            black_box(kernel::syscall::table::row(number)).is_some()
        });
    });
}

fn terminal(c: &mut Criterion) {
    let line = b"echo a line of some length, as people type it\n";
    c.bench_function("type a line into a terminal", |b| {
        b.iter_batched_ref(
            || {
                let mut pair = tty::PtyPair::new();
                pair.set_locked(false);
                let _ = pair.open_slave();
                pair
            },
            |pair| black_box(pair.write_master(line, &mut tty::Effects::default())),
            BatchSize::SmallInput,
        );
    });
}

fn filter(c: &mut Criterion) {
    c.bench_function("write a filter of 40 pages", |b| {
        b.iter(|| {
            let mut program = guest_process::bpf::Assembler::default();
            let otherwise = program.label();
            (0..40).for_each(|page| program.require_page(page * PAGE, otherwise));
            program.place(otherwise);
            program.emit(6, 0);
            black_box(program.finish())
        });
    });
}

criterion_group!(pure, mappings, descriptors, rows, terminal, filter);
criterion_main!(pure);
