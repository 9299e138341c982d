//! The fuzzers' program gets as far as it should: every call that prepares it succeeds, and it exits.
use std::io::Write;
use std::sync::{Arc, Mutex};

use fuzzing::sigframe::{RIP, SELECTORS};
use fuzzing::{Machine, guest};

/// Descriptors and threads are counted: one machine at a time.
static ONE: Mutex<()> = Mutex::new(());

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// More than a program takes that ends by itself, however busy the machine.
const ENOUGH: std::time::Duration = std::time::Duration::from_secs(60);

#[test]
fn the_program_has_something_of_everything() {
    let _one = ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let lines = Lines::default();
    let calls = [(guest::number("fcntl"), [17, 1, 0, 0, 0, 0]), (guest::number("kill"), [2, 10, 0, 0, 0, 0])];
    Machine::with_trace(Some(Box::new(lines.clone()))).run_for(ENOUGH, &guest::program(&calls, b""));
    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    for part in ["= 17\n", "fcntl(17, F_GETFD)", "--- SIGUSR1 ", "rt_sigreturn(", "+++ exited with 0 +++"] {
        assert!(text.contains(part), "no {part} in\n{text}");
    }
    assert!(!text.contains("= -1"), "{text}");
}

#[test]
fn a_return_without_a_signal_runs_what_the_frame_says() {
    let _one = ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let lines = Lines::default();
    let mut frame = vec![0; 1024];
    let code = platform::code::Code::new().call(guest::number("exit_group"), &[42]);
    frame[RIP..RIP + 8].copy_from_slice(&(guest::FREE + 512).to_le_bytes());
    frame[SELECTORS..SELECTORS + 8].copy_from_slice(&[0x33, 0, 0, 0, 0, 0, 0x2b, 0]);
    frame[512..512 + code.bytes().len()].copy_from_slice(code.bytes());
    Machine::with_trace(Some(Box::new(lines.clone()))).run_for(ENOUGH, &guest::signal_return(&frame));
    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    // The data is not executable: the jump was made.
    assert!(text.contains("--- SIGSEGV {si_signo=SIGSEGV, si_code=SEGV_ACCERR"), "{text}");
}
