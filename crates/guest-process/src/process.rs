//! One guest host process: its memory and its life, shared by all who use it.
//!
//! [`Process`] implements [`AddressSpace`]. It is known by its tgid and held by its pidfd; it is reaped when
//! the last reference goes, so the tgid cannot come to mean another process before.

use std::any::Any;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, OnceLock};

use abi::{GUEST_TOP, UserAddr};
use host::wait::WaitInfo;
use parking_lot::Mutex;
use platform::{AddressSpace, ExitStatus, GuestRange, HostUsage, Reach, Vdso};
use rustix::process::{Pid, PidfdFlags, Signal};

use crate::guests::Guests;
use crate::namespace::{self, Namespace};
use crate::slots::Slots;

/// A guest host process.
pub struct Process {
    pub guests: Arc<Guests>,
    pub tgid: i32,
    /// `None`: it is being dropped.
    pidfd: Option<OwnedFd>,
    /// The kernel's end of its control socket. Locked from sending descriptors until the guest has used
    /// and closed them, or another thread's host call would receive them.
    pub control: Mutex<OwnedFd>,
    pub slots: Arc<Slots>,
    /// The pid namespace that it lives in, if that is not the kernel's.
    pub namespace: Option<Arc<Namespace>>,
    /// `/proc/PID/mem`, opened when first needed.
    memory: OnceLock<Option<File>>,
    /// What it had used when last looked at.
    usage: Mutex<HostUsage>,
    last_usage: Arc<OnceLock<HostUsage>>,
    /// Dropped when it is reaped.
    lease: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl Process {
    /// Takes over `tgid`, an unreaped child of ours that nobody else has registered.
    ///
    /// # Errors
    /// `EEXIST` if it is registered, or what `pidfd_open` says.
    pub fn register(
        guests: Arc<Guests>,
        tgid: i32,
        control: OwnedFd,
        slots: Arc<Slots>,
        namespace: Option<Arc<Namespace>>,
    ) -> std::io::Result<Process> {
        let pid = Pid::from_raw(tgid).ok_or(rustix::io::Errno::SRCH)?;
        if !guests.processes.lock().insert(tgid) {
            return Err(rustix::io::Errno::EXIST.into());
        }
        if let Some(namespace) = &namespace {
            guests.inits.lock().insert(namespace.init());
        }
        match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => Ok(Process {
                guests,
                tgid,
                pidfd: Some(pidfd),
                control: Mutex::new(control),
                slots,
                namespace,
                memory: OnceLock::new(),
                usage: Mutex::default(),
                last_usage: Arc::default(),
                lease: OnceLock::new(),
            }),
            Err(error) => {
                guests.processes.lock().remove(&tgid);
                Err(error.into())
            }
        }
    }

    /// Keeps something of its platform's until nothing of the process runs any more: once.
    pub fn keep(&self, lease: impl Any + Send + Sync) {
        let _ = self.lease.set(Box::new(lease));
    }

    /// How it ended, without reaping it, once it has. One that does not tell yet was killed, since nothing else ends
    /// guest processes.
    pub fn exit_status(&self) -> ExitStatus {
        match host::wait::wait(self.tgid, libc::WEXITED | libc::WNOWAIT | libc::WNOHANG) {
            Ok(Some(WaitInfo { code: libc::CLD_EXITED, status })) => ExitStatus::Exited(status),
            Ok(Some(WaitInfo { status, .. })) => ExitStatus::Killed(status & 0x7f),
            Ok(None) | Err(_) => ExitStatus::Killed(libc::SIGKILL),
        }
    }

    /// What `getppid` gives in it while the kernel lives: a parent outside its pid namespace is 0.
    pub fn parent(&self) -> u32 {
        if self.namespace.is_some() { 0 } else { self.guests.kernel }
    }

    /// The kernel's name for the thread that is `tid` to the process itself.
    ///
    /// # Errors
    /// `ESRCH` if it has none.
    pub fn thread(&self, tid: i32) -> std::io::Result<i32> {
        if self.namespace.is_some() {
            return namespace::thread(self.tgid, tid);
        }
        // A thread of this very process, or an error.
        host::signal::send_to_thread(self.tgid, tid, 0)?;
        Ok(tid)
    }

    /// The kernel's name for its child that is `pid` to the process itself.
    pub fn sibling(&self, pid: i32) -> Option<i32> {
        if self.namespace.is_some() { namespace::child(pid) } else { Some(pid) }
    }

    /// Its `/proc/PID/mem`, where the host opens that.
    pub fn memory(&self) -> Option<&File> {
        let open = || {
            let path = format!("/proc/{}/mem", self.tgid);
            host::user::as_guests(|| File::options().read(true).write(true).open(path)).ok()
        };
        self.memory.get_or_init(open).as_ref()
    }

    /// Copies piece by piece with `copy(address, offset in the buffer, bytes)`, which returns the bytes
    /// copied, until one falls short or lies outside the guest's range.
    fn each_range(
        ranges: &[GuestRange],
        room: usize,
        mut copy: impl FnMut(u64, usize, usize) -> usize,
    ) -> usize {
        let mut done = 0usize;
        for range in ranges {
            let len = range.len.min(room - done);
            if !range.start.in_guest_range(len as u64) {
                break;
            }
            let copied = copy(range.start.0, done, len).min(len);
            done += copied;
            if copied < len {
                break;
            }
        }
        done
    }

    /// The ranges as the host wants them, up to the first outside the guest's range.
    fn host_ranges<T>(&self, ranges: &[GuestRange], use_them: impl FnOnce(&[host::vm::Range]) -> T) -> T {
        const FEW: usize = 8;
        let good = |range: &&GuestRange| range.start.in_guest_range(range.len as u64);
        let pair = |range: &GuestRange| (range.start.0, range.len);
        if ranges.len() <= FEW {
            let mut few = [(0u64, 0usize); FEW];
            let mut count = 0;
            for (slot, range) in few.iter_mut().zip(ranges.iter().take_while(good)) {
                *slot = pair(range);
                count += 1;
            }
            return use_them(few.get(..count).unwrap_or(&[]));
        }
        use_them(&ranges.iter().take_while(good).map(pair).collect::<Vec<_>>())
    }

    /// The switch `--no-batch`: one word for each host call, to measure what batching brings.
    fn word_by_word(
        ranges: &[GuestRange],
        room: usize,
        mut copy: impl FnMut(u64, usize, usize) -> usize,
    ) -> usize {
        Process::each_range(ranges, room, |start, offset, len| {
            let mut done = 0usize;
            while done < len {
                let word = (len - done).min(8);
                let copied = copy(start + done as u64, offset + done, word);
                done += copied;
                if copied < word {
                    break;
                }
            }
            done
        })
    }
}

impl AddressSpace for Process {
    fn read(&self, from: &[GuestRange], into: &mut [u8], reach: Reach) -> usize {
        let room = into.len();
        if self.guests.passage.as_ref().is_some_and(|passage| passage.read(self.tgid, from, into)) {
            return room;
        }
        if reach == Reach::Growing {
            let Some(memory) = self.memory() else { return 0 };
            return Process::each_range(from, room, |start, offset, len| {
                full_read(memory, start, into.get_mut(offset..offset + len).unwrap_or(&mut []))
            });
        }
        if !self.guests.batch {
            return Process::word_by_word(from, room, |start, offset, len| {
                let into = into.get_mut(offset..offset + len).unwrap_or(&mut []);
                host::vm::read_process(self.tgid, &[(start, len)], into).unwrap_or(0)
            });
        }
        self.host_ranges(from, |ranges| host::vm::read_process(self.tgid, ranges, into).unwrap_or(0))
    }

    fn read_string(&self, from: UserAddr, into: &mut Vec<u8>) -> bool {
        let passage = self.guests.passage.as_ref();
        passage.is_some_and(|passage| passage.read_string(self.tgid, from.0, into))
    }

    fn write(&self, from: &[u8], to: &[GuestRange], reach: Reach) -> usize {
        let room = from.len();
        if let Some(passage) = &self.guests.passage {
            passage.before_write(self.tgid, to);
        }
        if reach == Reach::Growing {
            let Some(memory) = self.memory() else { return 0 };
            return Process::each_range(to, room, |start, offset, len| {
                full_write(memory, start, from.get(offset..offset + len).unwrap_or(&[]))
            });
        }
        if !self.guests.batch {
            return Process::word_by_word(to, room, |start, offset, len| {
                let from = from.get(offset..offset + len).unwrap_or(&[]);
                host::vm::write_process(self.tgid, from, &[(start, len)]).unwrap_or(0)
            });
        }
        self.host_ranges(to, |ranges| host::vm::write_process(self.tgid, from, ranges).unwrap_or(0))
    }

    fn write_later(&self, from: &[u8], to: GuestRange, may: &dyn Fn() -> bool) -> bool {
        let passage = self.guests.passage.as_ref();
        passage.is_some_and(|passage| passage.write_later(self.tgid, from, to, may))
    }

    fn kill(&self) {
        // An error means that it is dead already.
        let _ = self.pidfd.as_ref().map(|pidfd| rustix::process::pidfd_send_signal(pidfd, Signal::KILL));
    }

    fn death(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().map(AsFd::as_fd)
    }

    fn vdso(&self) -> Option<Vdso> {
        self.guests.vdso.get().copied().flatten()
    }

    fn resident_pages(&self) -> (u64, u64) {
        let read = || std::fs::read_to_string(format!("/proc/{}/statm", self.tgid));
        let text = host::user::perhaps_as_guests(read).unwrap_or_default();
        let mut fields = text.split_ascii_whitespace().skip(1).map(|field| field.parse().unwrap_or(0));
        (fields.next().unwrap_or(0), fields.next().unwrap_or(0))
    }

    fn mapping_start(&self, addr: UserAddr) -> Option<UserAddr> {
        let read = || std::fs::read_to_string(format!("/proc/{}/maps", self.tgid));
        let maps = host::user::as_guests(read).ok()?;
        let range = |line: &str| {
            let (start, end) = line.split_once(' ')?.0.split_once('-')?;
            Some((u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?))
        };
        maps.lines()
            .filter_map(range)
            .find(|(start, end)| (*start..*end).contains(&addr.0))
            .map(|(start, _)| UserAddr(start))
    }

    fn usage(&self) -> HostUsage {
        let mut last = self.usage.lock();
        if let Some(usage) = crate::meter::process_usage(self.tgid, &last) {
            *last = usage;
            return usage;
        }
        HostUsage::default()
    }

    fn last_usage(&self) -> Arc<OnceLock<HostUsage>> {
        Arc::clone(&self.last_usage)
    }

    fn set_stack_limit(&self, bytes: u64) {
        use rustix::process::{Resource, Rlimit, prlimit};
        let Some(pid) = Pid::from_raw(self.tgid) else { return };
        // All have the kernel's own hard limit, which a guest may believe to be higher.
        let hard = rustix::process::getrlimit(Resource::Stack).maximum;
        let wanted = (bytes != u64::MAX).then_some(bytes);
        let current = match (wanted, hard) {
            (Some(wanted), Some(hard)) => Some(wanted.min(hard)),
            (wanted, hard) => wanted.or(hard),
        };
        // A process that has died needs no limit.
        let _ = prlimit(Some(pid), Resource::Stack, Rlimit { current, maximum: hard });
    }

    fn host_pid(&self) -> i32 {
        self.tgid
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Whoever watches for its death would be woken now, for nothing: nobody has it any more. Not reaped yet, the pid
        // is still its own.
        self.pidfd = None;
        if let Some(pid) = Pid::from_raw(self.tgid) {
            // An error means that it is dead already.
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
        // Still a zombie of ours now, so no other child can have this pid yet.
        self.guests.processes.lock().remove(&self.tgid);
        // An error is ECHILD: nothing left to reap.
        if let Ok(usage) = host::wait::reap_with_usage(self.tgid) {
            let _ = self.last_usage.set(crate::meter::reaped_usage(&usage));
        }
    }
}

/// Reads until `into` is full or the next byte faults; returns the bytes read.
fn full_read(memory: &File, start: u64, into: &mut [u8]) -> usize {
    let mut done = 0usize;
    while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match memory.read_at(rest, start + done as u64) {
            Ok(copied) if copied > 0 => done += copied,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            _ => break,
        }
    }
    done
}

fn full_write(memory: &File, start: u64, from: &[u8]) -> usize {
    let mut done = 0usize;
    while let Some(rest) = from.get(done..).filter(|rest| !rest.is_empty()) {
        match memory.write_at(rest, start + done as u64) {
            Ok(copied) if copied > 0 => done += copied,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            _ => break,
        }
    }
    done
}

/// Whether `[start, start + len)` is a range that a host call may change.
pub fn guest_range(start: UserAddr, len: u64) -> bool {
    len <= GUEST_TOP && start.in_guest_range(len)
}
