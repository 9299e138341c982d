//! What one system call costs on each platform, beside native, in one run:
//! `cargo run --release -p ptrace --example getpid [calls]`.

use std::time::Instant;

use abi::UserAddr;
use platform::{GuestRange, HostCall, Platform, Reach, Registers, Trap};
use ptrace::{Mode, Options, Ptrace};

/// Has the guest make `calls` calls; returns microseconds for each.
fn measure(options: Options, calls: u32) -> f64 {
    let platform = Ptrace::new(options).expect("the platform starts");
    let new = platform.spawn().expect("spawn");
    let mut context = new.thread.bind().expect("bind");
    let page = UserAddr(0x10000);
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE).cast_unsigned();
    let map = HostCall::Map { addr: page, len: 4096, prot: 7, flags, file: None };
    context.host_calls(&[map]).expect("map");
    // mov eax, 39; syscall; jmp to the start
    let code = [0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0xeb, 0xf7];
    new.space.write(&code, &[GuestRange { start: page, len: code.len() }], Reach::Mapped);
    *context.registers_mut() = Registers::for_new_image(page.0, 0x20000);
    let mut run = |calls: u32| {
        for _ in 0..calls {
            assert!(matches!(context.run(), Trap::Syscall(entry) if entry.number == 39));
            context.set_result(1);
        }
    };
    run(calls / 10);
    let start = Instant::now();
    run(calls);
    start.elapsed().as_secs_f64() * 1e6 / f64::from(calls)
}

/// Microseconds for a getpid of this process.
fn native(calls: u32) -> f64 {
    let start = Instant::now();
    for _ in 0..calls {
        std::hint::black_box(rustix::process::getpid());
    }
    start.elapsed().as_secs_f64() * 1e6 / f64::from(calls)
}

fn pin(cpus: impl Iterator<Item = usize>) {
    let mut set = rustix::thread::CpuSet::new();
    cpus.for_each(|cpu| set.set(cpu));
    rustix::thread::sched_setaffinity(None, &set).expect("an affinity");
}

fn main() {
    let calls = std::env::args().nth(1).and_then(|calls| calls.parse().ok()).unwrap_or(50_000);
    let all = rustix::thread::sched_getaffinity(None).expect("an affinity");
    let cpus: Vec<usize> = (0..1024).filter(|cpu| all.is_set(*cpu)).collect();
    let native = native(calls * 10);
    println!("native: {native:.3} us");
    let report = |what: &str, options: Options| {
        let us = measure(options, calls);
        println!("{what}: {us:.2} us, {:.0} times native", us / native);
    };
    for mode in [Mode::Sysemu, Mode::Syscall] {
        let options = Options::new(mode);
        let name = mode.name();
        report(name, options);
        report(&format!("{name}, eager registers"), Options { eager_registers: true, ..options });
        report(&format!("{name}, no placement"), Options { placement: false, ..options });
        pin(cpus.first().copied().into_iter());
        report(&format!("{name}, all on one CPU"), options);
        report(
            &format!("{name}, all on one CPU, eager registers"),
            Options { eager_registers: true, ..options },
        );
        pin(cpus.iter().copied());
    }
}
