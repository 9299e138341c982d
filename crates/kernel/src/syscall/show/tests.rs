//! Arguments of rows, printed with memory at hand.

use abi::{Errno, UserAddr};
use zerocopy::IntoBytes;

use super::{Phase, Printer, TraceMemory};
use crate::syscall::table;

/// Memory at address 0x1000.
struct Bytes(Vec<u8>);

const START: u64 = 0x1000;

impl TraceMemory for Bytes {
    fn read(&self, from: UserAddr, into: &mut [u8]) -> usize {
        let Some(offset) = from.0.checked_sub(START).and_then(|offset| usize::try_from(offset).ok()) else {
            return 0;
        };
        let there = self.0.get(offset..).unwrap_or(&[]);
        let count = there.len().min(into.len());
        into[..count].copy_from_slice(&there[..count]);
        count
    }
}

/// All arguments of a call, as after it; notes and results of their own behind them.
fn shown(call: &str, words: [u64; 6], memory: &[u8], result: Result<usize, Errno>) -> String {
    let memory = Bytes(memory.to_vec());
    let row = table::row(abi::syscall_number(call).unwrap().into()).unwrap();
    let (mut texts, mut extra) = (Vec::new(), Vec::new());
    for index in 0..row.arguments.len() {
        let mut before = String::new();
        let mut printer = Printer::new(&mut before, &memory, 32, words, Phase::Before);
        (row.show)(index, &words, &mut printer, Phase::Before);
        let (deferred, again) = (printer.deferred, printer.again);
        let mut after = String::new();
        if deferred || again {
            let mut printer = Printer::new(&mut after, &memory, 32, words, Phase::After(result));
            printer.before = &before;
            (row.show)(index, &words, &mut printer, Phase::After(result));
            extra.append(&mut printer.notes);
            extra.extend(printer.result.take());
        }
        texts.push(if deferred { after } else { before });
    }
    texts.retain(|text| !text.is_empty());
    let arguments = texts.join(", ");
    if extra.is_empty() { arguments } else { format!("{arguments} ; {}", extra.join(" ; ")) }
}

fn call(name: &str, words: &[u64], memory: &[u8]) -> String {
    let mut all = [0; 6];
    all[..words.len()].copy_from_slice(words);
    shown(name, all, memory, Ok(0))
}

#[test]
fn strings_are_quoted_as_in_c() {
    assert_eq!(call("unlink", &[START], b"/tmp/a\"b\n\0"), r#""/tmp/a\"b\n""#);
    assert_eq!(call("write", &[1, START, 5], b"\x001\x01a\xff"), r#"1, "\0001\1a\377", 5"#);
    let long = [b'x'; 40];
    assert_eq!(call("write", &[1, START, 40], &long), format!("1, \"{}\"..., 40", "x".repeat(32)));
    // Paths are not cut; what cannot be read is an address.
    let path: Vec<u8> = long.iter().copied().chain([0]).collect();
    assert_eq!(call("unlink", &[START], &path), format!("\"{}\"", "x".repeat(40)));
    assert_eq!(call("unlink", &[0x10], b""), "0x10");
    assert_eq!(call("unlink", &[0], b""), "NULL");
}

#[test]
fn buffers_show_what_was_read() {
    let read = |result| shown("read", [3, START, 10, 0, 0, 0], b"abcdefghij", result);
    assert_eq!(read(Ok(3)), r#"3, "abc", 10"#);
    assert_eq!(read(Err(Errno::EAGAIN)), "3, 0x1000, 10");
}

#[test]
fn the_mode_of_open_shows_where_a_file_is_made() {
    assert_eq!(call("open", &[START, 0, 0o644], b"x\0"), r#""x", O_RDONLY"#);
    assert_eq!(call("open", &[START, 0o101, 0o644], b"x\0"), r#""x", O_WRONLY|O_CREAT, 0644"#);
    assert_eq!(
        call("openat", &[(-100i64).cast_unsigned(), START, 0o2000000, 0], b"x\0"),
        r#"AT_FDCWD, "x", O_RDONLY|O_CLOEXEC"#
    );
}

#[test]
fn structures_show_field_by_field() {
    let stat = abi::Stat { mode: abi::FileMode::from_bits_retain(0o100644), size: 5, ..Default::default() };
    let at = call("fstat", &[0, START], stat.as_bytes());
    assert_eq!(at, "0, {st_mode=S_IFREG|0644, st_size=5, ...}");
    let device = abi::Stat {
        mode: abi::FileMode::from_bits_retain(0o20666),
        rdev: abi::makedev(1, 3),
        ..Default::default()
    };
    let at = call("fstat", &[0, START], device.as_bytes());
    assert_eq!(at, "0, {st_mode=S_IFCHR|0666, st_rdev=makedev(0x1, 0x3), ...}");
    let time = abi::Timespec { sec: 1, nsec: 5 };
    assert_eq!(call("nanosleep", &[START, 0], time.as_bytes()), "{tv_sec=1, tv_nsec=5}, NULL");
    let limit = abi::Rlimit { cur: 8 << 20, max: abi::Rlimit::INFINITY };
    assert_eq!(
        call("prlimit64", &[0, 3, START, 0], limit.as_bytes()),
        "0, RLIMIT_STACK, {rlim_cur=8192*1024, rlim_max=RLIM64_INFINITY}, NULL"
    );
    let fds = [3i32, 4];
    assert_eq!(call("pipe2", &[START, 0o2000000], fds.as_bytes()), "[3, 4], O_CLOEXEC");
}

#[test]
fn signals_show_by_name() {
    let set = abi::SigSet(1 << 9 | 1 << 36);
    assert_eq!(call("rt_sigprocmask", &[0, START, 0, 8], set.as_bytes()), "SIG_BLOCK, [USR1 RT_5], NULL, 8");
    let action = abi::Sigaction {
        handler: 0x4000,
        flags: abi::SaFlags::RESTORER | abi::SaFlags::RESTART,
        restorer: 0x5000,
        ..Default::default()
    };
    assert_eq!(
        call("rt_sigaction", &[10, START, 0, 8], action.as_bytes()),
        "SIGUSR1, {sa_handler=0x4000, sa_mask=[], sa_flags=SA_RESTORER|SA_RESTART, sa_restorer=0x5000}, NULL, 8"
    );
    let child = abi::Siginfo::child(abi::ChldCode::KILLED, 7, 0, 9, 1, 2);
    assert_eq!(
        super::siginfo(&child),
        "{si_signo=SIGCHLD, si_code=CLD_KILLED, si_pid=7, si_uid=0, si_status=SIGKILL, si_utime=1, si_stime=2}"
    );
    let fault = abi::Siginfo::fault(abi::Signal::SEGV, abi::SegvCode::MAPERR.0, 0);
    assert_eq!(super::siginfo(&fault), "{si_signo=SIGSEGV, si_code=SEGV_MAPERR, si_addr=NULL}");
    let alarm = abi::Siginfo::kill(abi::Signal::ALRM, abi::SiCode::KERNEL, 0, 0);
    assert_eq!(super::siginfo(&alarm), "{si_signo=SIGALRM, si_code=SI_KERNEL}");
}

#[test]
fn polls_tell_what_is_ready_behind_the_result() {
    let fd = abi::Pollfd { fd: 5, events: abi::PollFlags::IN, revents: abi::PollFlags::IN };
    let poll = |result| shown("poll", [START, 1, 10, 0, 0, 0], fd.as_bytes(), result);
    assert_eq!(poll(Ok(1)), "[{fd=5, events=POLLIN}], 1, 10 ; [{fd=5, revents=POLLIN}]");
    assert_eq!(poll(Ok(0)), "[{fd=5, events=POLLIN}], 1, 10 ; 0 (Timeout)");
    let set = [1u8 << 5, 0, 0, 0, 0, 0, 0, 0];
    let select = shown("select", [6, START, 0, 0, 0, 0], &set, Ok(1));
    assert_eq!(select, "6, [5], NULL, NULL, NULL ; in [5]");
}

#[test]
fn second_level_arguments_follow_their_command() {
    assert_eq!(call("fcntl", &[3, 2, 1], b""), "3, F_SETFD, FD_CLOEXEC");
    assert_eq!(call("fcntl", &[3, 4, 0o4000], b""), "3, F_SETFL, O_RDONLY|O_NONBLOCK");
    assert_eq!(
        shown("fcntl", [3, 3, 0, 0, 0, 0], b"", Ok(0o100002)),
        "3, F_GETFL ; 0x8002 (flags O_RDWR|O_LARGEFILE)"
    );
    assert_eq!(
        call("ioctl", &[0, 0x5413, START], &[24, 0, 80, 0, 0, 0, 0, 0]),
        "0, TIOCGWINSZ, {ws_row=24, ws_col=80, ws_xpixel=0, ws_ypixel=0}"
    );
    assert_eq!(shown("ioctl", [0, 0x5401, START, 0, 0, 0], b"", Err(Errno::ENOTTY)), "0, TCGETS, 0x1000");
    assert_eq!(call("prctl", &[15, START, 0, 0, 0], b"name\0"), r#"PR_SET_NAME, "name""#);
    assert_eq!(call("prctl", &[38, 1, 0, 0, 0], b""), "PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0");
    assert_eq!(call("futex", &[0x4000, 129, 1], b""), "0x4000, FUTEX_WAKE_PRIVATE, 1");
    assert_eq!(
        call("futex", &[0x4000, 265, 7, 0, 0, 0xffff_ffff], b""),
        "0x4000, FUTEX_WAIT_BITSET|FUTEX_CLOCK_REALTIME, 7, NULL, FUTEX_BITSET_MATCH_ANY"
    );
    assert_eq!(
        call("clone", &[0x0120_0011, 0, 0, 0x7000, 0], b""),
        "child_stack=NULL, flags=CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID|SIGCHLD, child_tidptr=0x7000"
    );
}

#[test]
fn arguments_of_exec_show_and_the_environment_counts() {
    let mut memory = vec![0; 64];
    memory[..8].copy_from_slice(&(START + 32).to_le_bytes());
    memory[32..35].copy_from_slice(b"ls\0");
    assert_eq!(call("execve", &[START + 32, START, START], &memory), r#""ls", ["ls"], 0x1000 /* 1 vars */"#);
}

#[test]
fn sockets_addresses_show_by_family() {
    let unix = b"\x01\0/tmp/s\0";
    assert_eq!(
        call("bind", &[3, START, unix.len() as u64], unix),
        r#"3, {sa_family=AF_UNIX, sun_path="/tmp/s"}, 9"#
    );
    let hidden = b"\x01\0\0name";
    assert_eq!(
        call("bind", &[3, START, hidden.len() as u64], hidden),
        r#"3, {sa_family=AF_UNIX, sun_path=@"name"}, 7"#
    );
    let inet = [2, 0, 0x27, 0x0f, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(
        call("connect", &[3, START, 16], &inet),
        r#"3, {sa_family=AF_INET, sin_port=htons(9999), sin_addr=inet_addr("127.0.0.1")}, 16"#
    );
}

#[test]
fn what_a_call_changes_shows_both_ways() {
    // The offset of sendfile, the time left of a select, the status of a child.
    assert_eq!(call("sendfile", &[1, 2, START, 9], &7u64.to_le_bytes()), "1, 2, [7], 9");
    let left = abi::Timeval { sec: 0, usec: 5 };
    assert_eq!(
        shown("select", [0, 0, 0, 0, START, 0], left.as_bytes(), Ok(1)),
        "0, NULL, NULL, NULL, {tv_sec=0, tv_usec=5} ; left {tv_sec=0, tv_usec=5}"
    );
    assert_eq!(
        shown("wait4", [7, START, 0, 0, 0, 0], &0x300i32.to_le_bytes(), Ok(7)),
        "7, [{WIFEXITED(s) && WEXITSTATUS(s) == 3}], 0, NULL"
    );
}

#[test]
fn every_row_prints_whatever_is_in_its_registers() {
    let memory = Bytes((0..=255).cycle().take(8192).collect());
    for row in table::rows() {
        for word in [0, 1, START, START + 8190, u64::MAX, 1 << 63, 0x7fff_ffff_f000] {
            let words = [word; 6];
            for index in 0..row.arguments.len() {
                for phase in [
                    Phase::Before,
                    Phase::After(Ok(usize::MAX)),
                    Phase::After(Ok(7)),
                    Phase::After(Err(Errno::EIO)),
                ] {
                    let mut text = String::new();
                    let mut printer = Printer::new(&mut text, &memory, 32, words, phase);
                    (row.show)(index, &words, &mut printer, phase);
                    assert!(text.len() < 20_000, "{} {index}", row.name);
                }
            }
        }
    }
}
