//! The program that fuzz targets run inside: an ELF file with code that makes the calls it is told, and data that has
//! what calls want to be pointed at: paths, structures, room.

use std::collections::BTreeMap;

use abi::PAGE_SIZE;
use kernel::syscall::table;
use platform::code::{Code, Reg};

/// Where code begins.
const CODE: u64 = 0x40_0000;
/// Where data begins: paths, structures, and behind them what the fuzzer fills.
pub const PATHS: u64 = 0x60_0000;
pub const STRUCTURES: u64 = PATHS + PATH_COUNT * STRIDE;
pub const FREE: u64 = PATHS + 0x3000;
/// Behind it nothing is mapped.
pub const DATA_END: u64 = PATHS + DATA_SIZE;
const DATA_SIZE: u64 = 0x8000;

/// Bytes from one path or structure to the next.
pub const STRIDE: u64 = 128;

const PATH_TEXTS: [&str; 32] = [
    "/tmp/file",
    "/tmp/dir",
    "/tmp/new",
    "/tmp/link",
    "/tmp/dir/../file",
    "/tmp/fifo",
    "/overlay",
    "/overlay/lower",
    "/overlay/dir/below",
    "/overlay/new",
    "relative",
    ".",
    "..",
    "",
    "/",
    "/proc/self",
    "/proc/self/fd/3",
    "/proc/self/mem",
    "/proc/self/maps",
    "/proc/self/stat",
    "/proc/self/cwd/tmp",
    "/proc/self/comm",
    "/proc/self/oom_score_adj",
    "/proc/1/root",
    "/proc/self/task/2/status",
    "/dev/ptmx",
    "/dev/tty",
    "/dev/pts/0",
    "/dev/zero",
    "/dev/full",
    "/tmp/program",
    "tmpfs",
];
pub const PATH_COUNT: u64 = PATH_TEXTS.len() as u64;

/// A structure, as 32-bit words. Pointers in them lead to [`FREE`].
const LOW: u32 = 0x60_3000;
const _: () = assert!(LOW as u64 == FREE);
const STRUCTURE_WORDS: [&[u32]; 18] = [
    &[0, 0, 1_000_000, 0],                                        // timespec, 1 ms
    &[0, 0, 1000, 0, 0, 0, 1000, 0],                              // itimerval, itimerspec
    &[u32::MAX, u32::MAX],                                        // sigset: all
    &[0x0000_0200, 0],                                            // sigset: SIGUSR1
    &[LOW, 0, 64, 0, LOW + 64, 0, 4096, 0, LOW, 0, 0, 0],         // iovec
    &[0x6d74_0001, 0x6f73_2f70, 0x0000_6b63],                     // sockaddr_un, a path
    &[0x6100_0001, 0x6362],                                       // sockaddr_un, abstract
    &[3, 1, 4, 1, 7, 4],                                          // pollfd
    &[0xffff_ffff, 5, 0],                                         // epoll_event
    &[0x0002_0000, 0, 0, 0, 0x24],                                // open_how
    &[LOW, 0, 16, 0, 0, 0, 0, 0],                                 // stack_t, clone_args
    &[64, 0, 128, 0],                                             // rlimit
    &[0, 0, 10, 0, 0, 0, 0, 0],                                   // sigevent
    &[LOW, 0, 0, 0, LOW + 0x100, 0, 1, 0, LOW + 0x200, 0, 64, 0], // msghdr
    &[20, 0, 1, 1, 3],                                            // cmsghdr: SCM_RIGHTS
    &[LOW, 0, LOW, 0, LOW, 0],                                    // argument list without an end, robust list
    &[0x2008_0522, 0, 0, 0, 0, 0],                                // capability header and sets
    &[1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0],                        // flock and others
];
pub const STRUCTURE_COUNT: u64 = STRUCTURE_WORDS.len() as u64 + 1;

/// A system call to make: number and arguments.
pub type Call = (u64, [u64; 6]);

/// The number of a system call.
pub fn number(name: &str) -> u64 {
    thread_local! {
        static NUMBERS: BTreeMap<&'static str, u64> =
            table::rows().map(|row| (row.name, u64::from(row.number))).collect();
    }
    NUMBERS.with(|numbers| numbers[name])
}

/// Calls after which there is something of everything: descriptors 3 to 17, handlers.
fn preparation() -> Vec<Call> {
    let path = |index: u64| PATHS + index * STRIDE;
    let at_cwd = u64::MAX - 99;
    let action = STRUCTURES + (STRUCTURE_COUNT - 1) * STRIDE;
    let mut calls: Vec<Call> = vec![
        (number("mkdir"), [path(1), 0o755, 0, 0, 0, 0]),
        (number("mknod"), [path(5), 0o10_644, 0, 0, 0, 0]),
        (number("symlink"), [path(1), path(3), 0, 0, 0, 0]),
        (number("openat"), [at_cwd, path(0), 0o102, 0o644, 0, 0]),
        (number("pipe2"), [FREE, 0o4000, 0, 0, 0, 0]),
        (number("socketpair"), [1, 1, 0, FREE, 0, 0]),
        (number("epoll_create1"), [0; 6]),
        (number("eventfd2"), [3, 0, 0, 0, 0, 0]),
        (number("timerfd_create"), [1, 0, 0, 0, 0, 0]),
        (number("signalfd4"), [u64::MAX, STRUCTURES + 2 * STRIDE, 8, 0, 0, 0]),
        (number("memfd_create"), [path(0), 2, 0, 0, 0, 0]),
        (number("openat"), [at_cwd, path(15), 0o200_000, 0, 0, 0]),
        (number("openat"), [at_cwd, path(25), 2, 0, 0, 0]),
        (number("socket"), [1, 2, 0, 0, 0, 0]),
        (number("pidfd_open"), [2, 0, 0, 0, 0, 0]),
        (number("openat"), [at_cwd, path(6), 0o200_000, 0, 0, 0]),
    ];
    for signal in [10, 12, 14, 17, 11] {
        calls.push((number("rt_sigaction"), [signal, action, 0, 8, 0, 0]));
    }
    calls
}

/// What code begins with, at known places: a handler, and the way back from it.
struct Entry {
    code: Code,
    handler: u64,
    restorer: u64,
    start: u64,
}

impl Entry {
    fn new() -> Entry {
        let at = |code: &Code| CODE + HEADERS + code.here() as u64;
        let code = Code::new();
        let handler = at(&code);
        let code = code.ret();
        let restorer = at(&code);
        let code = code.set(Reg::Rax, number("rt_sigreturn")).syscall();
        let start = at(&code);
        Entry { code, handler, restorer, start }
    }

    /// `struct sigaction` of that handler: SA_SIGINFO | SA_RESTORER.
    fn action(&self) -> Vec<u8> {
        [self.handler, 0x0400_0004, self.restorer, 0].iter().flat_map(|word| word.to_le_bytes()).collect()
    }
}

/// Bytes of the ELF header and two program headers.
const HEADERS: u64 = 64 + 2 * 56;

/// A program that prepares itself, makes these calls, and exits; `free` is what lies at [`FREE`].
pub fn program(calls: &[Call], free: &[u8]) -> Vec<u8> {
    let entry = Entry::new();
    let mut data = data(&entry);
    let room = usize::try_from(FREE - PATHS).unwrap_or(0);
    data.resize(room, 0);
    data.extend(free.iter().take(usize::try_from(DATA_END - FREE).unwrap_or(0)));
    let mut code = entry.code;
    let end = (number("exit_group"), [0; 6]);
    for (number, arguments) in preparation().iter().chain(calls).chain([&end]) {
        code = code.call(*number, arguments);
    }
    file(code.bytes(), entry.start, &data)
}

/// A program that returns from a signal whose frame would be at [`FREE`].
pub fn signal_return(frame: &[u8]) -> Vec<u8> {
    let entry = Entry::new();
    let start = entry.start;
    let code = entry.code.set(Reg::Rsp, FREE + 8).set(Reg::Rax, number("rt_sigreturn")).syscall();
    let code = code.call(number("exit_group"), &[0]);
    let mut data = vec![0; usize::try_from(FREE - PATHS).unwrap_or(0)];
    data.extend(frame);
    file(code.bytes(), start, &data)
}

fn data(entry: &Entry) -> Vec<u8> {
    let stride = usize::try_from(STRIDE).unwrap_or(0);
    let mut data = Vec::new();
    let mut put = |bytes: Vec<u8>| {
        let end = data.len() + stride;
        data.extend(bytes);
        data.resize(end, 0);
    };
    PATH_TEXTS.iter().for_each(|path| put(path.as_bytes().to_vec()));
    STRUCTURE_WORDS.iter().for_each(|words| put(words.iter().flat_map(|word| word.to_le_bytes()).collect()));
    put(entry.action());
    data
}

/// An ELF file with a segment of code, headers included, and one of data.
fn file(code: &[u8], start: u64, data: &[u8]) -> Vec<u8> {
    let code_end = HEADERS + code.len() as u64;
    let data_at = code_end.next_multiple_of(PAGE_SIZE);
    let mut file = Vec::new();
    let mut put = |bytes: &[u8]| file.extend_from_slice(bytes);
    put(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    put(&[2, 0, 62, 0, 1, 0, 0, 0]); // ET_EXEC, x86-64
    [start, 64, 0].iter().for_each(|word| put(&word.to_le_bytes()));
    put(&[0, 0, 0, 0, 64, 0, 56, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
    for (flags, at, addr, file_size, size) in
        [(5u32, 0, CODE, code_end, code_end), (6, data_at, PATHS, data.len() as u64, DATA_SIZE)]
    {
        put(&1u32.to_le_bytes());
        put(&flags.to_le_bytes());
        [at, addr, addr, file_size, size, PAGE_SIZE].iter().for_each(|word| put(&word.to_le_bytes()));
    }
    put(code);
    file.resize(usize::try_from(data_at).unwrap_or(0), 0);
    file.extend(data);
    file
}
