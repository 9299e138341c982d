//! Makes the first guest process ([`guest_process::Spawner`]): executes the stub, and sets up there what a fresh process
//! needs, by calls on its control socket (`stub/boot.s`), the filter last.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use guest_process::bpf::Instruction;
use guest_process::{
    CONTROL_FD, Launch, Process, RawCall, answer, control_socket, make_in_namespace, read_maps,
    receive_descriptor, set_limits, settle_vdso, try_copying,
};
use host::listener::Listener;
use platform::{AddressSpace, PlatformError, Vdso};
use rustix::net::{RecvFlags, SendFlags};
use rustix::process::{PidfdGetfdFlags, pidfd_getfd};

use crate::channel::{Channel, Channels};
use crate::clone::prepare;
use crate::filter::{self, Clones};
use crate::layout::*;
use crate::shared::Shared;
use crate::stub::{KICK, Label};
use crate::thread::Inside;
use crate::zygote::Zygote;

fn failed(what: &'static str) -> impl Fn(io::Error) -> PlatformError {
    move |source| PlatformError { what, source }
}

pub(crate) fn make_zygote(shared: &Arc<Shared>) -> Result<Zygote, PlatformError> {
    let make = || make_in_namespace(shared.namespace, |launch| make_zygote_by(shared, launch));
    match make() {
        // Where places are random (`settle_vdso`) the host's stack may lie where the channels come.
        Err(error) if error.source.kind() == io::ErrorKind::AlreadyExists => make(),
        made => made,
    }
}

fn make_zygote_by(shared: &Arc<Shared>, launch: Launch) -> Result<Zygote, PlatformError> {
    let channels = Arc::new(Channels::new(0).map_err(failed("making channels"))?);
    let channel = channels.map(0).map_err(failed("mapping a channel"))?;
    prepare(shared, &channel, 0);
    let (ours, theirs) = control_socket().map_err(failed("making a control socket"))?;
    shared.strays.are_children_here();
    let birth = shared.strays.birth();
    let (pid, namespace) = launch(&shared.layout.image(&shared.shapes), &[theirs.as_fd(), channels.file()])?;
    drop(theirs);
    let process =
        Process::register(Arc::clone(&shared.guests), pid, ours, Arc::clone(&channels.slots), namespace)
            .map_err(failed("watching the first guest process"))?;
    drop(birth);
    let process = Arc::new(process);
    let watch = shared.reaper.watch(&process).map_err(failed("watching the first guest process"))?;
    let watch = Arc::new(watch);
    let boot =
        Boot { shared, channel: &channel, control: process.control.lock(), filtered: Cell::new(false) };
    let (vdso, listener) = boot.set_up(&process).map_err(failed("setting up the first guest process"))?;
    let _ = shared.guests.vdso.set(vdso);
    drop(boot);
    let inside = Inside::new(process, channels, watch);
    let zygote = Zygote::new(shared, inside, channel);
    if let Some((listener, its)) = listener {
        if let Some(its) = its {
            zygote.close(its).map_err(failed("setting up the first guest process"))?;
        }
        listen(shared, listener)?;
    }
    Ok(zygote)
}

/// Starts the thread that is asked for consent.
fn listen(shared: &Arc<Shared>, listener: Listener) -> Result<(), PlatformError> {
    if let Err(error) = listener.share_cpu() {
        tracing::debug!(%error, "who asks for consent wakes another CPU");
    }
    crate::start(shared, "consent", move |shared| shared.consent.run(&listener))?;
    shared.consent.put_in_force();
    Ok(())
}

/// The listener of a filter that asks, and its number in the first guest process if it is open there.
type Asking = (Listener, Option<u32>);

/// Arguments of seccomp(2).
const SET_FILTER: u64 = libc::SECCOMP_SET_MODE_FILTER as u64;
const NEW_LISTENER: u64 = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;

/// The first guest process before its filter stands.
struct Boot<'a> {
    shared: &'a Shared,
    channel: &'a Channel,
    control: parking_lot::MutexGuard<'a, OwnedFd>,
    /// Its filter stands.
    filtered: Cell<bool>,
}

impl Boot<'_> {
    /// All that a fresh guest process needs, the filter last. Also the filter's listener, with its number there.
    fn set_up(&self, process: &Process) -> io::Result<(Option<Vdso>, Option<Asking>)> {
        let pid = process.tgid;
        let layout = self.shared.layout;
        let window = layout.channel(0) + WINDOW;
        set_limits(pid, self.shared.data_limit)?;
        self.call(libc::SYS_prctl, [libc::PR_SET_PDEATHSIG as u64, libc::SIGKILL as u64, 0, 0, 0, 0])?;
        if self.call(libc::SYS_getppid, [0; 6])? != u64::from(process.parent()) {
            return Err(io::Error::other("its parent is not the kernel"));
        }
        try_copying(pid, layout.text())?;
        // Nothing of it may lie where ours comes.
        let maps = read_maps(pid)?;
        let vdso = settle_vdso(&maps, |number, args| self.call(number, args));
        let read_write = (libc::PROT_READ | libc::PROT_WRITE) as u64;
        let fixed = (libc::MAP_SHARED | libc::MAP_FIXED_NOREPLACE) as u64;
        self.call(libc::SYS_mmap, [layout.channels(), CHANNELS_SIZE, read_write, fixed, 1, 0])?;
        self.call(libc::SYS_close, [1, 0, 0, 0, 0, 0])?;
        self.move_record(layout.channel(0) + WINDOW - 64)?;
        let ours = layout.text()..layout.channels() + CHANNELS_SIZE;
        for map in maps.iter().filter(|map| !map.is_vdso() && !ours.contains(&map.start)) {
            self.call(libc::SYS_munmap, [map.start, map.end - map.start, 0, 0, 0, 0])?;
        }
        self.set_handlers(window)?;
        // Since Linux 6.10; without it the range checks still hold.
        let _ = self.call(libc::SYS_mseal, [layout.text(), layout.text_pages(), 0, 0, 0, 0]);
        self.channel.write(WINDOW, b"umlaut-guest\0\0\0\0");
        self.call(libc::SYS_prctl, [libc::PR_SET_NAME as u64, window, 0, 0, 0, 0])?;
        self.forbid_files(window);
        let listener = self.install_filter(process, window)?;
        Ok((vdso, listener))
    }

    /// Makes a call there.
    fn call(&self, number: libc::c_long, args: [u64; 6]) -> io::Result<u64> {
        self.send(RawCall::new(number, args), 0)?;
        match self.receive()? {
            Some(result) => from_answer(result),
            None => Err(io::Error::other("it answers what it was not asked")),
        }
    }

    /// What it answers; `None`: its filter stands.
    fn receive(&self) -> io::Result<Option<u64>> {
        let mut bytes = [0u8; 8];
        match rustix::net::recv(&*self.control, &mut bytes, RecvFlags::empty()) {
            Ok((8, _)) => Ok(Some(u64::from_ne_bytes(bytes))),
            Ok((1, _)) => Ok(None),
            Ok(_) => Err(io::Error::other("it has died")),
            Err(error) => Err(error.into()),
        }
    }

    fn send(&self, call: RawCall, channel: u64) -> io::Result<()> {
        let mut record = [0u8; 64];
        let words = std::iter::once(call.number).chain(call.args).chain([channel]);
        for (place, word) in record.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        rustix::net::send(&*self.control, &record, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    fn move_record(&self, to: u64) -> io::Result<()> {
        self.send(RawCall { number: u64::MAX, args: [to, 0, 0, 0, 0, 0] }, 0)
    }

    /// The stub's handler for everything that the guest's code or a kick raises; the alternate stack.
    fn set_handlers(&self, window: u64) -> io::Result<()> {
        const SA_RESTORER: u64 = 0x0400_0000;
        let layout = self.shared.layout;
        let flags = (libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER) as u64 | SA_RESTORER;
        // struct kernel_sigaction: handler, flags, restorer, mask.
        let action = [layout.at(Label::umlaut_signal), flags, layout.at(Label::umlaut_sigreturn_call), 0];
        for (place, word) in (WINDOW..).step_by(8).zip(action) {
            self.channel.set(place, word);
        }
        for signal in
            [libc::SIGSYS, libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, KICK]
        {
            self.call(libc::SYS_rt_sigaction, [signal as u64, window, 0, 8, 0, 0])?;
        }
        // stack_t: start, flags, size.
        for (place, word) in (WINDOW..).step_by(8).zip([layout.channel(0) + STACK, 0, SIZE - STACK]) {
            self.channel.set(place, word);
        }
        self.call(libc::SYS_sigaltstack, [window, 0, 0, 0, 0, 0]).map(drop)
    }

    /// An empty Landlock ruleset, as one more fence; hosts without Landlock do without.
    fn forbid_files(&self, window: u64) {
        const CREATE_RULESET: libc::c_long = 444;
        const RESTRICT_SELF: libc::c_long = 446;
        /// All file rights of the first version of Landlock's ABI.
        const ALL_RIGHTS: u64 = (1 << 13) - 1;
        let restrict = || -> io::Result<()> {
            self.channel.set(WINDOW, ALL_RIGHTS);
            let ruleset = self.call(CREATE_RULESET, [window, 8, 0, 0, 0, 0])?;
            let restricted = self.call(RESTRICT_SELF, [ruleset, 0, 0, 0, 0, 0]);
            self.call(libc::SYS_close, [ruleset, 0, 0, 0, 0, 0])?;
            restricted.map(drop)
        };
        if let Err(error) = restrict() {
            tracing::debug!(%error, "no Landlock for guest processes");
        }
    }

    /// The filter: one that asks for consent, where the host has such; else one that does not.
    fn install_filter(&self, process: &Process, window: u64) -> io::Result<Option<Asking>> {
        match self.install_asking(process, window) {
            Ok(asking) => return Ok(Some(asking)),
            Err(error) if self.filtered.get() => return Err(error),
            Err(error) => tracing::debug!(%error, "no listener can be taken from guest processes' filter"),
        }
        let listener = self.install_beside(window)?;
        if listener.is_none() {
            tracing::debug!("guest processes clone without the kernel's consent");
        }
        self.put_program(filter::filter(self.shared.layout, Clones::Made))?;
        let [set, mode] = [libc::PR_SET_SECCOMP as u64, u64::from(libc::SECCOMP_MODE_FILTER)];
        self.last_call(libc::SYS_prctl, [set, mode, window, 0, 0, 0])?;
        Ok(listener.map(|listener| (listener, None)))
    }

    /// The listener is the one descriptor that the kernel ever takes from a guest process: there has been no guest in it.
    fn install_asking(&self, process: &Process, window: u64) -> io::Result<Asking> {
        let take = |number: u32| {
            let pidfd = process.death().ok_or(rustix::io::Errno::SRCH)?;
            pidfd_getfd(pidfd, number.cast_signed(), PidfdGetfdFlags::empty())
        };
        // Tried with its control socket: behind the filter it would be too late.
        drop(take(CONTROL_FD)?);
        self.put_program(filter::filter(self.shared.layout, Clones::Asked))?;
        let number = self.last_call(libc::SYS_seccomp, [SET_FILTER, NEW_LISTENER, window, 0, 0, 0])?;
        let number = u32::try_from(number).map_err(io::Error::other)?;
        Ok((Listener::from(take(number)?), Some(number)))
    }

    /// Where nothing can be taken: a filter that only asks, whose listener the process itself can send, as the other does
    /// not stand yet.
    fn install_beside(&self, window: u64) -> io::Result<Option<Listener>> {
        self.put_program(filter::asking_filter(self.shared.layout))?;
        let installed = self.call(libc::SYS_seccomp, [SET_FILTER, NEW_LISTENER, window, 0, 0, 0]);
        let number = match installed {
            Ok(number) => number,
            Err(error) => {
                tracing::debug!(%error, "no listener");
                return Ok(None);
            }
        };
        // struct msghdr: no name, one buffer of one byte, the control data, no flags. Then the buffer, and the control
        // data: length, SOL_SOCKET and SCM_RIGHTS, the descriptor.
        let (buffer, data) = (window + 56, window + 72);
        let rights = u64::from(libc::SOL_SOCKET.cast_unsigned()) | (libc::SCM_RIGHTS as u64) << 32;
        let message = [0, 0, buffer, 1, data, 24, 0, window, 1, 20, rights, number];
        for (place, word) in (WINDOW..).step_by(8).zip(message) {
            self.channel.set(place, word);
        }
        self.send(RawCall::new(libc::SYS_sendmsg, [0, window, 0, 0, 0, 0]), 0)?;
        let listener = receive_descriptor(&self.control)?;
        self.receive()?;
        self.call(libc::SYS_close, [number, 0, 0, 0, 0, 0])?;
        Ok(Some(Listener::from(listener)))
    }

    /// Puts a filter's program into the window, a `struct sock_fprog`.
    fn put_program(&self, program: Vec<Instruction>) -> io::Result<()> {
        let instructions = self.shared.layout.channel(0) + WINDOW + 16;
        let mut bytes = Vec::with_capacity(program.len() * 8 + 16);
        // The length, then where the instructions are.
        bytes.extend_from_slice(&(program.len() as u64).to_ne_bytes());
        bytes.extend_from_slice(&instructions.to_ne_bytes());
        for (code, jt, jf, k) in program {
            bytes.extend_from_slice(&code.to_ne_bytes());
            bytes.extend_from_slice(&[jt, jf]);
            bytes.extend_from_slice(&k.to_ne_bytes());
        }
        if bytes.len() as u64 > HANDED - WINDOW {
            return Err(io::Error::other("the filter is too long"));
        }
        self.channel.write(WINDOW, &bytes);
        Ok(())
    }

    /// Installs the filter. Unless that fails it is the last call of this kind: the thread waits for orders from now on.
    fn last_call(&self, number: libc::c_long, args: [u64; 6]) -> io::Result<u64> {
        self.send(RawCall::new(number, args), self.shared.layout.channel(0))?;
        match self.receive()? {
            Some(result) => from_answer(result),
            None => {
                self.filtered.set(true);
                Ok(self.channel.get(RESULT))
            }
        }
    }
}

fn from_answer(result: u64) -> io::Result<u64> {
    answer(result).map_err(|errno| io::Error::from_raw_os_error(errno.raw()))
}
