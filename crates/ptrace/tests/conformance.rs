//! Both platforms pass the conformance suite, with every switch, as root and as an unprivileged user.

mod common;

use ptrace::{Mode, Options, Ptrace};

fn conforms(test: &str, options: Options) {
    common::also_as_nobody(test, || {
        let platform = Ptrace::new(options).expect("the platform starts");
        platform::conformance::run(&platform);
    });
}

#[test]
fn sysemu() {
    conforms("sysemu", Options::new(Mode::Sysemu));
}

#[test]
fn ptrace() {
    conforms("ptrace", Options::new(Mode::Syscall));
}

#[test]
fn without_a_pid_namespace() {
    conforms("without_a_pid_namespace", Options { namespace: false, ..Options::new(Mode::Sysemu) });
}

#[test]
fn sysemu_without_the_fast_ways() {
    let slow = Options {
        batch: false,
        eager_registers: true,
        placement: false,
        steps_by_host: false,
        ..Options::new(Mode::Sysemu)
    };
    conforms("sysemu_without_the_fast_ways", slow);
}
