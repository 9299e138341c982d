//! What the tests of this crate share.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use abi::UserAddr;
use platform::code::Code;
use platform::{AddressSpace, Context, GuestRange, HostCall, Platform, Reach, Registers, Trap};

pub(crate) const CODE: u64 = 0x10_0000;
pub(crate) const DATA: u64 = 0x20_0000;
const ROLE: &str = "UMLAUT_TEST_ROLE";
const NOBODY: &str = "65534";

/// This test's name for the test runner, again in a process of its own that plays `role`.
pub(crate) fn in_role(test: &str, role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads", "1"]).env(ROLE, role);
    command.stdin(Stdio::null());
    command
}

/// The role this process plays, if it is not the test itself.
pub(crate) fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// Runs `check`, and, as root, the whole test once more as an unprivileged user.
pub(crate) fn also_as_nobody(test: &str, check: impl FnOnce()) {
    check();
    if !rustix::process::geteuid().is_root() || role().is_some() {
        return;
    }
    let output = Command::new("setpriv")
        .args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--no-new-privs", "--"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(ROLE, "nobody")
        .env("TMPDIR", "/tmp")
        .output()
        .expect("setpriv (util-linux) runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let ran = text.contains("1 passed");
    assert!(
        output.status.success() && ran,
        "as nobody:\n{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A guest thread on this thread.
pub(crate) struct Guest {
    pub(crate) context: Box<dyn Context>,
    pub(crate) space: Arc<dyn AddressSpace>,
}

impl Guest {
    /// A fresh process with 16 pages of code and of data, about to run `code`.
    pub(crate) fn new(platform: &dyn Platform, code: Code) -> Guest {
        let new = platform.spawn().expect("spawn");
        let mut guest = Guest { space: new.space, context: new.thread.bind().expect("bind") };
        guest.context.host_calls(&[map(CODE, 7), map(DATA, 3)]).expect("mapping");
        guest.load(code.bytes());
        guest
    }

    /// Writes this code and sets the registers to start it.
    pub(crate) fn load(&mut self, code: &[u8]) {
        let range = [GuestRange { start: UserAddr(CODE), len: code.len() }];
        assert_eq!(self.space.write(code, &range, Reach::Mapped), code.len());
        *self.context.registers_mut() = Registers::for_new_image(CODE, DATA + 0x8000);
    }

    pub(crate) fn word(&self, at: u64) -> u64 {
        word(&*self.space, at)
    }

    /// Runs one instruction.
    pub(crate) fn step(&mut self) -> Trap {
        loop {
            match self.context.step() {
                Trap::Interrupted => {}
                trap => return trap,
            }
        }
    }

    /// Runs to the next trap that is not an interruption.
    pub(crate) fn trap(&mut self) -> Trap {
        loop {
            match self.context.run() {
                Trap::Interrupted => {}
                trap => return trap,
            }
        }
    }
}

pub(crate) fn word(space: &dyn AddressSpace, at: u64) -> u64 {
    let mut bytes = [0; 8];
    space.read(&[GuestRange { start: UserAddr(at), len: 8 }], &mut bytes, Reach::Mapped);
    u64::from_le_bytes(bytes)
}

pub(crate) fn map(addr: u64, prot: u32) -> HostCall<'static> {
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE).cast_unsigned();
    HostCall::Map { addr: UserAddr(addr), len: 0x10000, prot, flags, file: None }
}

/// Waits for what must come.
pub(crate) fn eventually(what: &str, mut check: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !check() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Sends a signal from outside.
pub(crate) fn signal(pid: i32, signal: i32) {
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(pid).unwrap(),
        rustix::process::Signal::from_named_raw(signal).unwrap(),
    )
    .unwrap();
}
