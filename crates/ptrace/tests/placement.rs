//! Guest threads stay with their tracer while they make calls, and are let go when they compute.

mod common;

use std::time::{Duration, Instant};

use common::{DATA, Guest};
use platform::Trap;
use platform::code::{Code, Reg};
use ptrace::{Mode, Options, Ptrace};

/// The CPUs that a host thread may use, as the host writes them.
fn allowed(pid: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("Cpus_allowed_list:")).unwrap();
    line.split_once(':').unwrap().1.trim().to_owned()
}

fn wait_for(what: &str, mut check: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !check() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn guests_are_placed_and_let_go() {
    let all = allowed("thread-self");
    if all.chars().all(|character| character.is_ascii_digit()) {
        println!("SKIPPED: one CPU only");
        return;
    }
    let platform = Ptrace::new(Options::new(Mode::Sysemu)).unwrap();
    let code = Code::new().set(Reg::Rdi, DATA).call(1, &[]).call(2, &[]).set(Reg::Rdi, DATA);
    let top = code.here();
    let mut guest = Guest::new(&platform, code.increment().jump(top));
    let pid = guest.space.host_pid().to_string();
    for number in [1, 2] {
        assert!(matches!(guest.trap(), Trap::Syscall(entry) if entry.number == number));
        let cpu: usize = allowed(&pid).parse().expect("one CPU, while it makes calls");
        assert!(cpu < 1024);
    }
    let kick = guest.context.interrupter();
    for _ in 0..3 {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                wait_for("a computing guest stays pinned", || allowed(&pid) == all);
                kick.interrupt();
            });
            assert_eq!(guest.context.run(), Trap::Interrupted);
        });
        // Pinned again by the next run, and let go again.
    }
    // The ticker sleeps when nothing runs, and so does everything else.
    drop(guest);
    std::thread::sleep(Duration::from_millis(50));
    let ticks = || {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
        let ticker = tasks
            .into_iter()
            .find(|task| std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name == "placement\n"))
            .expect("the placement thread");
        let status = std::fs::read_to_string(ticker.join("status")).unwrap();
        let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches")).unwrap();
        line.split_once(':').unwrap().1.trim().parse::<u64>().unwrap()
    };
    let before = ticks();
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(ticks(), before, "an idle platform uses no CPU");
}

#[test]
fn placement_can_be_switched_off() {
    let platform = Ptrace::new(Options { placement: false, ..Options::new(Mode::Sysemu) }).unwrap();
    let mut guest = Guest::new(&platform, Code::new().call(1, &[]));
    assert!(matches!(guest.trap(), Trap::Syscall(_)));
    assert_eq!(allowed(&guest.space.host_pid().to_string()), allowed("thread-self"));
}
