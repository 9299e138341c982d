//! The table of system calls: every number of x86-64 Linux 6.18.

use abi::*;

use super::row::syscalls;
use super::{Fd, In, InBuf, Out, OutBuf, Pid, Row, UserCStr};
use crate::{exec, fs, futex, mm, signal, task, time};

/// The row of a number: Linux looks at its lower 32 bits. `None`: no such call.
pub fn row(number: u64) -> Option<&'static Row> {
    let index = INDEX.get(usize::try_from(number & 0xffff_ffff).ok()?)?;
    ROWS.get(usize::from(*index))
}

/// Where each number's row is.
static INDEX: [u16; 512] = index(ROWS);

/// A duplicate or unsorted number, or one beyond the index, does not compile.
const fn index(rows: &[Row]) -> [u16; 512] {
    let mut index = [u16::MAX; 512];
    let mut at = 0;
    while at < rows.len() {
        let number = rows[at].number;
        assert!(at == 0 || rows[at - 1].number < number, "rows are in order, each number once");
        index[number as usize] = at as u16;
        at += 1;
    }
    index
}

syscalls! {
    0 read (fd: Fd, buf: OutBuf) = fs::rw::sys_read;
    1 write (fd: Fd, buf: InBuf) = fs::rw::sys_write;
    3 close (fd: Fd) = fs::open::sys_close;
    9 mmap (addr: UserAddr, len: u64, prot: Prot, flags: MapFlags, fd: Fd, offset: u64) = mm::syscalls::sys_mmap, partial "no MAP_HUGETLB";
    10 mprotect (addr: UserAddr, len: u64, prot: Prot) = mm::syscalls::sys_mprotect;
    11 munmap (addr: UserAddr, len: u64) = mm::syscalls::sys_munmap;
    12 brk (addr: UserAddr) = mm::syscalls::sys_brk;
    13 rt_sigaction (signal: Signal, new: In<Sigaction>, old: Out<Sigaction>, set_size: usize) = signal::syscalls::sys_rt_sigaction;
    14 rt_sigprocmask (how: SigmaskHow, new: In<SigSet>, old: Out<SigSet>, set_size: usize) = signal::syscalls::sys_rt_sigprocmask;
    15 rt_sigreturn () = signal::syscalls::sys_rt_sigreturn;
    28 madvise (addr: UserAddr, len: u64, advice: Madvise) = mm::syscalls::sys_madvise;
    34 pause () = signal::syscalls::sys_pause;
    35 nanosleep (time: In<Timespec>, left: Out<Timespec>) = time::sys_nanosleep;
    39 getpid () = task::ids::sys_getpid;
    56 clone (flags: CloneFlags, stack: UserAddr, parent_tid: UserAddr, child_tid: UserAddr, tls: UserAddr) = task::fork::sys_clone;
    57 fork () = task::fork::sys_fork;
    58 vfork () = task::fork::sys_vfork;
    59 execve (path: UserCStr, arguments: UserAddr, environment: UserAddr) = exec::syscalls::sys_execve;
    60 exit (code: i32) = task::exit::sys_exit;
    61 wait4 (pid: Pid, status: Out<i32>, options: WaitOptions, usage: Out<Rusage>) = task::wait::sys_wait4;
    62 kill (pid: Pid, signal: Signal) = signal::syscalls::sys_kill;
    110 getppid () = task::ids::sys_getppid;
    127 rt_sigpending (set: Out<SigSet>, set_size: usize) = signal::syscalls::sys_rt_sigpending;
    128 rt_sigtimedwait (set: In<SigSet>, info: Out<Siginfo>, timeout: In<Timespec>, set_size: usize) = signal::syscalls::sys_rt_sigtimedwait;
    129 rt_sigqueueinfo (pid: Pid, signal: Signal, info: In<Siginfo>) = signal::syscalls::sys_rt_sigqueueinfo;
    130 rt_sigsuspend (set: In<SigSet>, set_size: usize) = signal::syscalls::sys_rt_sigsuspend;
    131 sigaltstack (new: In<Sigaltstack>, old: Out<Sigaltstack>) = signal::syscalls::sys_sigaltstack;
    158 arch_prctl (code: ArchPrctlOp, value: u64) = task::ids::sys_arch_prctl;
    186 gettid () = task::ids::sys_gettid;
    200 tkill (tid: Pid, signal: Signal) = signal::syscalls::sys_tkill;
    202 futex (uaddr: UserAddr, op: FutexOp, val: u32, timeout: UserAddr, uaddr2: UserAddr, val3: u32) = futex::sys_futex, partial "no priority inheritance";
    218 set_tid_address (at: UserAddr) = task::ids::sys_set_tid_address;
    230 clock_nanosleep (clock: Clock, flags: u32, time: In<Timespec>, left: Out<Timespec>) = time::sys_clock_nanosleep;
    231 exit_group (code: i32) = task::exit::sys_exit_group;
    234 tgkill (pid: Pid, tid: Pid, signal: Signal) = signal::syscalls::sys_tgkill;
    247 waitid (kind: WaitIdType, id: Pid, info: Out<Siginfo>, options: WaitOptions, usage: Out<Rusage>) = task::wait::sys_waitid;
    273 set_robust_list (head: UserAddr, len: usize) = futex::sys_set_robust_list;
    297 rt_tgsigqueueinfo (pid: Pid, tid: Pid, signal: Signal, info: In<Siginfo>) = signal::syscalls::sys_rt_tgsigqueueinfo;
    318 getrandom (buf: OutBuf, flags: u32) = task::ids::sys_getrandom;
    322 execveat (dirfd: Fd, path: UserCStr, arguments: UserAddr, environment: UserAddr, flags: AtFlags) = exec::syscalls::sys_execveat;
    334 rseq (area: UserAddr, len: u32, flags: u32, signature: u32) missing "refused: exec in place would leave the host a registration";
    424 pidfd_send_signal (pidfd: Fd, signal: Signal, info: In<Siginfo>, flags: u32) = task::pidfd::sys_pidfd_send_signal;
    434 pidfd_open (pid: Pid, flags: PidfdFlags) = task::pidfd::sys_pidfd_open;
    435 clone3 (args: UserAddr, size: usize) = task::fork::sys_clone3;
    438 pidfd_getfd (pidfd: Fd, number: i32, flags: u32) = task::pidfd::sys_pidfd_getfd;
}
