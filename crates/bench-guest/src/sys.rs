//! System calls, made as the C library makes them: `mov $nr, %eax` right before `syscall`.
//!
//! [`getpid_by_syscall`] is the other form, libc's `syscall()`, where the number comes in a register from far away: who
//! patches call sites serves the two differently.
//!
//! # Safety
//! Every wrapper passes pointers to memory that it borrows for the whole call, with its length. [`Mapping`] owns its
//! pages and unmaps them. A forked child only runs the function it was given and leaves by `exit_group`; the program
//! has one thread whenever it forks, or the child makes raw calls only.
#![allow(unsafe_code, reason = "raw system calls are what is measured")]

use std::arch::asm;
use std::ffi::CStr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// One call with a constant number; the answer as the kernel gives it.
macro_rules! call {
    ($nr:literal) => { call!($nr, 0, 0, 0, 0, 0, 0) };
    ($nr:literal, $a:expr) => { call!($nr, $a, 0, 0, 0, 0, 0) };
    ($nr:literal, $a:expr, $b:expr) => { call!($nr, $a, $b, 0, 0, 0, 0) };
    ($nr:literal, $a:expr, $b:expr, $c:expr) => { call!($nr, $a, $b, $c, 0, 0, 0) };
    ($nr:literal, $a:expr, $b:expr, $c:expr, $d:expr) => { call!($nr, $a, $b, $c, $d, 0, 0) };
    ($nr:literal, $a:expr, $b:expr, $c:expr, $d:expr, $e:expr, $f:expr) => {{
        let answer: isize;
        // SAFETY: see the module's head.
        unsafe {
            asm!(
                concat!("mov $", stringify!($nr), ", %eax"),
                "syscall",
                lateout("rax") answer,
                in("rdi") $a as usize,
                in("rsi") $b as usize,
                in("rdx") $c as usize,
                in("r10") $d as usize,
                in("r8") $e as usize,
                in("r9") $f as usize,
                lateout("rcx") _,
                lateout("r11") _,
                options(nostack, att_syntax),
            );
        }
        answer
    }};
}

#[allow(non_camel_case_types, reason = "C's name")]
type c_long = i64;

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
    fn signal(signal: i32, handler: extern "C" fn(i32)) -> usize;
}

/// Ends the program where a call that a workload rests on failed: a figure of failing calls would lie.
fn must(what: &str, answer: isize) -> usize {
    usize::try_from(answer).unwrap_or_else(|_| {
        eprintln!("bench-guest: {what}: errno {}", -answer);
        std::process::exit(3)
    })
}

pub(crate) fn getpid() {
    let _ = call!(39);
}
pub(crate) fn getpid_by_syscall() {
    // SAFETY: getpid takes no arguments.
    let _ = unsafe { syscall(39) };
}
/// The same number each time: nothing could be less work.
pub(crate) fn sched_get_priority_max() {
    let _ = call!(146, 0);
}
pub(crate) fn gettid() {
    let _ = call!(186);
}
pub(crate) fn sched_yield() {
    let _ = call!(24);
}

/// Processor time of this process, kernel's included, in nanoseconds.
pub(crate) fn process_cpu_ns() -> u64 {
    clock_ns(2)
}
/// The same of this thread.
pub(crate) fn thread_cpu_ns() -> u64 {
    clock_ns(3)
}
/// The same of another process.
pub(crate) fn cpu_ns_of(pid: usize) -> u64 {
    clock_ns(!pid << 3 | 2)
}
fn clock_ns(clock: usize) -> u64 {
    let mut time = [0u64; 2];
    let _ = must("clock_gettime", call!(228, clock, time.as_mut_ptr()));
    time[0].saturating_mul(1_000_000_000).saturating_add(time[1])
}
pub(crate) fn sleep(time: Duration) {
    let _ = call!(35, [time.as_secs(), u64::from(time.subsec_nanos())].as_ptr(), 0);
}
/// Keeps this process on one of the CPUs that it may use: the `index`th, round and round.
pub(crate) fn pin_to_one_of_its_cpus(index: usize) {
    let mut set = [0u64; 16];
    let _ = must("sched_getaffinity", call!(204, 0, size_of_val(&set), set.as_mut_ptr()));
    let is_in = |cpu: &usize| set.get(cpu / 64).is_some_and(|word| word >> (cpu % 64) & 1 == 1);
    let cpus: Vec<usize> = (0..set.len() * 64).filter(is_in).collect();
    let cpu = cpus.get(index % cpus.len().max(1)).copied().unwrap_or(0);
    let mut one = [0u64; 16];
    if let Some(word) = one.get_mut(cpu / 64) {
        *word = 1 << (cpu % 64);
    }
    let _ = must("sched_setaffinity", call!(203, 0, size_of_val(&one), one.as_ptr()));
}

/// A descriptor that is never closed: the program is short-lived.
#[derive(Clone, Copy)]
pub(crate) struct Fd(usize);

/// Names begin at the current directory.
const AT_FDCWD: usize = 100usize.wrapping_neg();
pub(crate) const RDONLY: usize = 0;
pub(crate) const RDWR: usize = 2;
pub(crate) const CREAT: usize = 0o100;
pub(crate) const DIRECTORY: usize = 0o200_000;

pub(crate) fn open(path: &CStr, flags: usize) -> Fd {
    let answer = call!(257, AT_FDCWD, path.as_ptr(), flags, 0o644);
    Fd(must(&format!("open {}", path.to_string_lossy()), answer))
}
pub(crate) fn close(fd: Fd) {
    let _ = call!(3, fd.0);
}
pub(crate) fn read(fd: Fd, buffer: &mut [u8]) -> usize {
    must("read", call!(0, fd.0, buffer.as_mut_ptr(), buffer.len()))
}
pub(crate) fn write(fd: Fd, buffer: &[u8]) -> usize {
    must("write", call!(1, fd.0, buffer.as_ptr(), buffer.len()))
}
pub(crate) fn pread(fd: Fd, buffer: &mut [u8], offset: usize) -> usize {
    must("pread", call!(17, fd.0, buffer.as_mut_ptr(), buffer.len(), offset))
}
pub(crate) fn pwrite(fd: Fd, buffer: &[u8], offset: usize) -> usize {
    must("pwrite", call!(18, fd.0, buffer.as_ptr(), buffer.len(), offset))
}
/// To the start.
pub(crate) fn rewind(fd: Fd) {
    let _ = must("lseek", call!(8, fd.0, 0, 0));
}
pub(crate) fn fstat(fd: Fd, into: &mut [u8; 256]) {
    let _ = must("fstat", call!(5, fd.0, into.as_mut_ptr()));
}
/// Whether there is such a file.
pub(crate) fn stat(path: &CStr, into: &mut [u8; 256]) -> bool {
    call!(262, AT_FDCWD, path.as_ptr(), into.as_mut_ptr(), 0) == 0
}
pub(crate) fn getdents(fd: Fd, into: &mut [u8]) -> usize {
    must("getdents64", call!(217, fd.0, into.as_mut_ptr(), into.len()))
}
pub(crate) fn unlink(path: &CStr) {
    let _ = must("unlink", call!(87, path.as_ptr()));
}
pub(crate) fn rename(from: &CStr, to: &CStr) {
    let _ = must("rename", call!(82, from.as_ptr(), to.as_ptr()));
}

/// Reading end, writing end.
pub(crate) fn pipe() -> (Fd, Fd) {
    let mut pair = [0i32; 2];
    let _ = must("pipe2", call!(293, pair.as_mut_ptr(), 0));
    (fd_of(pair[0]), fd_of(pair[1]))
}
/// A connected pair of AF_UNIX stream sockets.
pub(crate) fn socket_pair() -> (Fd, Fd) {
    let mut pair = [0i32; 2];
    let _ = must("socketpair", call!(53, 1, 1, 0, pair.as_mut_ptr()));
    (fd_of(pair[0]), fd_of(pair[1]))
}
fn fd_of(number: i32) -> Fd {
    Fd(usize::try_from(number).unwrap_or(usize::MAX))
}
pub(crate) fn eventfd() -> Fd {
    Fd(must("eventfd2", call!(290, 0, 0)))
}
pub(crate) fn epoll_create() -> Fd {
    Fd(must("epoll_create1", call!(291, 0)))
}
/// `EPOLLIN`, level-triggered.
pub(crate) fn epoll_add(epoll: Fd, fd: Fd) {
    let mut event = [0u8; 12];
    event[0] = 1;
    let _ = must("epoll_ctl", call!(233, epoll.0, 1, fd.0, event.as_mut_ptr()));
}
/// Up to 16 events, without waiting.
pub(crate) fn epoll_wait(epoll: Fd) -> usize {
    let mut events = [0u8; 12 * 16];
    must("epoll_wait", call!(232, epoll.0, events.as_mut_ptr(), 16, 0))
}
/// Polls these for input, without waiting.
pub(crate) fn poll(fds: &[Fd]) -> usize {
    let mut entries: [(i32, i16, i16); 16] = [(-1, 1, 0); 16];
    for (entry, fd) in entries.iter_mut().zip(fds) {
        entry.0 = i32::try_from(fd.0).unwrap_or(-1);
    }
    must("poll", call!(7, entries.as_mut_ptr(), entries.len(), 0))
}

/// Wakes up to one waiter.
pub(crate) fn futex_wake(word: &AtomicU32) {
    let _ = must("futex", call!(202, word.as_ptr(), 129, 1, 0));
}
/// Sleeps while the word is `value`, or until some wake.
pub(crate) fn futex_wait(word: &AtomicU32, value: u32) {
    let _ = call!(202, word.as_ptr(), 128, value as usize, 0);
}

static COUNTED: AtomicU32 = AtomicU32::new(0);

extern "C" fn count(_signal: i32) {
    COUNTED.fetch_add(1, Ordering::Release);
}

const USR1: i32 = 10;
const BLOCK: usize = 0;
const UNBLOCK: usize = 1;

/// Blocks SIGUSR1 and unblocks it again.
pub(crate) fn block_usr1_and_back() {
    let set = 1u64 << (USR1 - 1);
    let _ = must("rt_sigprocmask", call!(14, BLOCK, &raw const set, 0, 8));
    let _ = must("rt_sigprocmask", call!(14, UNBLOCK, &raw const set, 0, 8));
}

/// How often it has run.
pub(crate) fn counted() -> u32 {
    COUNTED.load(Ordering::Acquire)
}
/// This thread's id.
pub(crate) fn own_tid() -> usize {
    must("gettid", call!(186))
}
/// Sends SIGUSR1 to a thread of this process.
pub(crate) fn send_usr1_to(tid: usize) {
    let pid = must("getpid", call!(39));
    let _ = must("tgkill", call!(234, pid, tid, USR1));
}

/// From now on SIGUSR1 runs a handler that only counts.
pub(crate) fn handle_usr1() {
    // SAFETY: the handler adds to an atomic.
    let _ = unsafe { signal(USR1, count) };
}
pub(crate) fn raise_usr1() {
    let pid = must("getpid", call!(39));
    let _ = must("kill", call!(62, pid, USR1));
}

/// Private anonymous pages.
pub(crate) struct Mapping {
    address: usize,
    length: usize,
}

pub(crate) const PAGE: usize = 4096;

impl Mapping {
    pub(crate) fn new(length: usize) -> Mapping {
        let address = must("mmap", call!(9, 0, length, 3, 0x22, usize::MAX, 0));
        Mapping { address, length }
    }

    /// One with small pages only, whatever the host's policy on huge ones.
    pub(crate) fn small_pages(length: usize) -> Mapping {
        let mapping = Mapping::new(length);
        // A kernel without huge pages refuses the advice and needs it not.
        let _ = call!(28, mapping.address, length, 15);
        mapping
    }

    /// Writes one byte to each page.
    pub(crate) fn write_each_page(&self) {
        for page in (0..self.length).step_by(PAGE) {
            // SAFETY: inside our own writable mapping.
            unsafe { ((self.address + page) as *mut u8).write_volatile(1) };
        }
    }

    /// Reads one byte of each page.
    pub(crate) fn read_each_page(&self) {
        for page in (0..self.length).step_by(PAGE) {
            // SAFETY: inside our own readable mapping.
            let _ = unsafe { ((self.address + page) as *const u8).read_volatile() };
        }
    }

    /// Read-only, then writable again: two calls.
    pub(crate) fn protect_and_back(&self) {
        let _ = must("mprotect", call!(10, self.address, self.length, 1));
        let _ = must("mprotect", call!(10, self.address, self.length, 3));
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let _ = call!(11, self.address, self.length);
    }
}

/// Grows the heap by `length` bytes behind the C library's back, touches them, and shrinks it again. Nothing may
/// allocate meanwhile.
pub(crate) fn grow_heap_and_back(length: usize) {
    let end = must("brk", call!(12, 0));
    let _ = call!(12, end + length);
    for page in (0..length).step_by(PAGE) {
        // SAFETY: the heap has just grown over it; nobody else knows.
        unsafe { ((end + page) as *mut u8).write_volatile(1) };
    }
    let _ = call!(12, end);
}

/// Forks; the child runs `child` and ends. Gives its pid.
pub(crate) fn fork(child: impl FnOnce()) -> usize {
    let pid = must("fork", call!(57));
    if pid == 0 {
        child();
        exit();
    }
    pid
}
fn exit() -> ! {
    loop {
        let _ = call!(231, 0);
    }
}
pub(crate) fn wait_for(pid: usize) {
    let _ = must("wait4", call!(61, pid, 0, 0, 0));
}
/// Becomes `/bin/true`; returns only if that failed.
pub(crate) fn exec_true() {
    let arguments = [c"true".as_ptr(), std::ptr::null()];
    let environment = [std::ptr::null::<u8>()];
    let _ = call!(59, c"/bin/true".as_ptr(), arguments.as_ptr(), environment.as_ptr());
}
pub(crate) fn kill(pid: usize) {
    let _ = call!(62, pid, 9);
}

/// Lets the parent trace this process, and waits for it to begin.
pub(crate) fn be_traced() {
    let _ = must("ptrace", call!(101, 0, 0, 0, 0));
    let pid = must("getpid", call!(39));
    let _ = must("kill", call!(62, pid, 19));
}
/// Waits until a traced process has stopped or ended.
pub(crate) fn wait_for_stop(pid: usize) {
    const ALL: usize = 0x4000_0000;
    let _ = must("wait4", call!(61, pid, 0, ALL, 0));
}
/// Lets a traced process run until its next call, which the host does not make: `PTRACE_SYSEMU`.
pub(crate) fn run_to_next_call(pid: usize) {
    let _ = must("ptrace", call!(101, 31, pid, 0, 0));
    wait_for_stop(pid);
}

/// `reboot(LINUX_REBOOT_CMD_POWER_OFF)`.
pub(crate) fn power_off() {
    let _ = call!(162);
    let _ = call!(169, 0xfee1_deadusize, 672_274_793, 0x4321_fedcusize, 0);
}
