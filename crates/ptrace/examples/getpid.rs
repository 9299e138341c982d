//! What one system call costs on each platform, beside native, in one run:
//! `cargo run --release -p ptrace --example getpid [calls]`.

use std::sync::Arc;
use std::time::Instant;

use abi::UserAddr;
use platform::{AddressSpace, Context, GuestRange, HostCall, Platform, Reach, Registers, Trap};
use ptrace::{Mode, Options, Ptrace};

/// A guest process that calls getpid for ever.
fn guest(platform: &Ptrace) -> (Arc<dyn AddressSpace>, Box<dyn Context>) {
    let new = platform.spawn().expect("spawn");
    let mut context = new.thread.bind().expect("bind");
    let page = UserAddr(0x10000);
    context.host_calls(&[map(page.0)]).expect("map");
    // mov eax, 39; syscall; jmp to the start
    let code = [0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0xeb, 0xf7];
    new.space.write(&code, &[GuestRange { start: page, len: code.len() }], Reach::Mapped);
    *context.registers_mut() = Registers::for_new_image(page.0, 0x20000);
    (new.space, context)
}

fn map(at: u64) -> HostCall<'static> {
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE).cast_unsigned();
    HostCall::Map { addr: UserAddr(at), len: 4096, prot: 7, flags, file: None }
}

/// Microseconds for one of `count` calls of `action`: the best of ten rounds, since others use this machine.
fn time<T>(count: u32, mut action: impl FnMut() -> T) -> f64 {
    const ROUNDS: u32 = 10;
    let each = (count / ROUNDS).max(1);
    let round = |_| {
        let start = Instant::now();
        for _ in 0..each {
            std::hint::black_box(action());
        }
        start.elapsed().as_secs_f64() * 1e6 / f64::from(each)
    };
    (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
}

/// Has the guest make `calls` calls.
fn measure(options: Options, calls: u32) -> f64 {
    let platform = Ptrace::new(options).expect("the platform starts");
    let (_space, mut context) = guest(&platform);
    time(calls, || {
        assert!(matches!(context.run(), Trap::Syscall(entry) if entry.number == 39));
        context.set_result(1);
    })
}

/// Everything else that a platform does, each beside nothing.
fn operations(calls: u32) {
    let platform = Ptrace::new(Options::new(Mode::Sysemu)).expect("the platform starts");
    let (_space, mut context) = guest(&platform);
    let page = UserAddr(0x30_0000);
    let unmap = HostCall::Unmap { addr: page, len: 4096 };
    let report = |what: &str, us: f64| println!("sysemu, {what}: {us:.1} us");
    let one = time(calls / 10, || {
        context.host_calls(&[map(page.0)]).expect("map");
        context.host_calls(&[unmap]).expect("unmap");
    });
    report("a host call alone", one / 2.0);
    let two = time(calls / 10, || context.host_calls(&[map(page.0), unmap]).expect("map and unmap"));
    report("two host calls in a batch", two);
    let process = time(calls / 100, || {
        let new = context.fork().expect("fork");
        drop(new.thread.bind().expect("bind"));
    });
    report("fork, bind, end", process);
    let thread = time(calls / 100, || {
        drop(context.new_thread().expect("new_thread").bind().expect("bind"));
    });
    report("thread, bind, end", thread);
    report("spawn, end", time(calls / 100, || drop(platform.spawn().expect("spawn"))));
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
    let native = time(calls * 10, rustix::process::getpid);
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
    operations(calls);
}
