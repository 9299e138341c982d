//! Both platforms pass the conformance suite, with every switch.

use ptrace::{Mode, Options, Ptrace};

fn conforms(options: Options) {
    let platform = Ptrace::new(options).expect("the platform starts");
    platform::conformance::run(&platform);
}

#[test]
fn sysemu() {
    conforms(Options::new(Mode::Sysemu));
}

#[test]
fn ptrace() {
    conforms(Options::new(Mode::Syscall));
}

#[test]
fn sysemu_without_the_fast_ways() {
    let slow =
        Options { batch: false, eager_registers: true, placement: false, ..Options::new(Mode::Sysemu) };
    conforms(slow);
}
