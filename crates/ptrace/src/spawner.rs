//! Makes the first guest process ([`guest_process::Spawner`]): executes the stub, and has it set up, by host calls of its
//! own, what a fresh process needs.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use abi::PAGE_SIZE;
use guest_process::{
    Launch, Process, RawCall, Slots, Zygote, answer, control_socket, make_in_namespace, read_maps,
    set_limits, settle_vdso, try_copying,
};
use platform::{Context, PlatformError, Registers, Trap, Vdso};

use crate::context::Tracee;
use crate::filter;
use crate::host_call::{Cut, in_stub};
use crate::shared::Shared;
use crate::stub::{FIRST_PASSED_FD, SLOTS};

/// Room for the extended state of any processor (8 KiB of AMX tiles included).
const XSTATE_ROOM: usize = 64 * 1024;

impl Zygote for Tracee {
    fn is_dead(&self) -> bool {
        Tracee::is_dead(self)
    }
}

pub(crate) fn make_zygote(shared: &Arc<Shared>) -> Result<Tracee, PlatformError> {
    make_in_namespace(shared.options.namespace, |launch| make_zygote_by(shared, launch))
}

fn make_zygote_by(shared: &Arc<Shared>, launch: Launch) -> Result<Tracee, PlatformError> {
    let (ours, theirs) = control_socket().map_err(failed("making a control socket"))?;
    let (pid, namespace) = launch(&shared.layout.image(), &[theirs.as_fd()])?;
    drop(theirs);
    let slots = Arc::new(Slots::with(SLOTS as u32, 0));
    let process = Process::register(Arc::clone(&shared.guests), pid, ours, slots, namespace)
        .map_err(failed("watching the first guest process"))?;
    let mut zygote = Tracee::attach(Arc::clone(shared), Arc::new(process), pid, 0, Registers::default())?;
    let vdso = set_up(&mut zygote).map_err(failed("setting up the first guest process"))?;
    try_mode(&mut zygote).map_err(failed("trying to intercept a system call"))?;
    let mut fresh_fp = vec![0; XSTATE_ROOM];
    let size = crate::sys::xstate(pid, &mut fresh_fp).map_err(failed("reading the extended state"))?;
    fresh_fp.truncate(size);
    // Set by the first one; a later one is no different.
    let _ = shared.guests.vdso.set(vdso);
    let _ = shared.fresh_fp.set(fresh_fp);
    Ok(zygote)
}

fn failed(what: &'static str) -> impl Fn(io::Error) -> PlatformError {
    move |source| PlatformError { what, source }
}

/// All that a fresh guest process needs, the filter last.
fn set_up(zygote: &mut Tracee) -> io::Result<Option<Vdso>> {
    let shared = Arc::clone(&zygote.shared);
    let layout = shared.layout;
    let pid = zygote.tid;
    set_limits(pid, shared.options.data_limit)?;
    let pdeathsig = [libc::PR_SET_PDEATHSIG as u64, libc::SIGKILL as u64, 0, 0, 0, 0];
    call(zygote, libc::SYS_prctl, pdeathsig)?;
    if call(zygote, libc::SYS_getppid, [0; 6])? != u64::from(zygote.process.parent()) {
        return Err(io::Error::other("its parent is not the kernel"));
    }
    // What the stub closes descriptors by, since Linux 5.9.
    call(zygote, libc::SYS_close_range, [FIRST_PASSED_FD.into(), u32::MAX.into(), 0, 0, 0, 0])?;
    try_copying(pid, layout.text())?;
    let maps = read_maps(pid)?;
    let vdso = settle_vdso(&maps, |number, args| call(zygote, number, args));
    for map in maps.iter().filter(|map| !map.is_vdso() && map.start != layout.text()) {
        call(zygote, libc::SYS_munmap, [map.start, map.end - map.start, 0, 0, 0, 0])?;
    }
    let private = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE)
        .cast_unsigned();
    for ((start, len), prot) in
        [(layout.requests(), libc::PROT_READ), (layout.scratch_area(), libc::PROT_READ | libc::PROT_WRITE)]
    {
        let args = [start, len, u64::from(prot.cast_unsigned()), u64::from(private), u64::MAX, 0];
        call(zygote, libc::SYS_mmap, args)?;
        // One page touched must not become a huge one. EINVAL where the host has none.
        let _ = call(zygote, libc::SYS_madvise, [start, len, libc::MADV_NOHUGEPAGE as u64, 0, 0, 0]);
    }
    // Since Linux 6.10; without it the range checks still hold.
    let _ = call(zygote, libc::SYS_mseal, [layout.text(), PAGE_SIZE, 0, 0, 0, 0]);
    let page = layout.request(0);
    name(zygote, page)?;
    forbid_files(zygote, page);
    install_filter(zygote, page)?;
    zygote.write_ours(page, &[0; PAGE_SIZE as usize])?;
    Ok(vdso)
}

/// Whether the host intercepts as the mode says: the call that a parked thread makes is one to try it on.
fn try_mode(zygote: &mut Tracee) -> io::Result<()> {
    let text = zygote.shared.layout.text();
    *zygote.registers_mut() = in_stub(*zygote.registers(), text);
    match zygote.run() {
        Trap::Syscall(entry) if entry.number == libc::SYS_pause.cast_unsigned() && entry.native => Ok(()),
        other => Err(io::Error::other(format!("the host did otherwise: {other:?}"))),
    }
}

fn call(zygote: &mut Tracee, number: libc::c_long, args: [u64; 6]) -> io::Result<u64> {
    match zygote.raw_call(RawCall::new(number, args), false) {
        Ok(result) => answer(result).map_err(|errno| io::Error::from_raw_os_error(errno.raw())),
        Err(Cut::Died(status)) => Err(io::Error::other(format!("it has died: {status:?}"))),
        Err(Cut::Kicked | Cut::Fault | Cut::Failed(_)) => Err(io::Error::other("its stub does not work")),
    }
}

fn name(zygote: &mut Tracee, page: u64) -> io::Result<()> {
    zygote.write_ours(page, b"umlaut-guest\0\0\0\0")?;
    call(zygote, libc::SYS_prctl, [libc::PR_SET_NAME as u64, page, 0, 0, 0, 0]).map(drop)
}

/// An empty Landlock ruleset, as one more fence; hosts without Landlock do without.
fn forbid_files(zygote: &mut Tracee, page: u64) {
    const CREATE_RULESET: libc::c_long = 444;
    const RESTRICT_SELF: libc::c_long = 446;
    /// All file rights of the first version of Landlock's ABI.
    const ALL_RIGHTS: u64 = (1 << 13) - 1;
    let restrict = |zygote: &mut Tracee| -> io::Result<()> {
        zygote.write_ours(page, &ALL_RIGHTS.to_ne_bytes())?;
        let ruleset = call(zygote, CREATE_RULESET, [page, 8, 0, 0, 0, 0])?;
        let restricted = call(zygote, RESTRICT_SELF, [ruleset, 0, 0, 0, 0, 0]);
        call(zygote, libc::SYS_close, [ruleset, 0, 0, 0, 0, 0])?;
        restricted.map(drop)
    };
    if let Err(error) = restrict(zygote) {
        tracing::debug!(%error, "no Landlock for guest processes");
    }
}

fn install_filter(zygote: &mut Tracee, page: u64) -> io::Result<()> {
    let program = filter::filter(zygote.shared.layout.text());
    let mut bytes = Vec::with_capacity(program.len() * 8 + 16);
    // struct sock_fprog: the length, then where the instructions are.
    bytes.extend_from_slice(&(program.len() as u64).to_ne_bytes());
    bytes.extend_from_slice(&(page + 16).to_ne_bytes());
    for (code, jt, jf, k) in program {
        bytes.extend_from_slice(&code.to_ne_bytes());
        bytes.extend_from_slice(&[jt, jf]);
        bytes.extend_from_slice(&k.to_ne_bytes());
    }
    if bytes.len() as u64 > SLOTS * PAGE_SIZE {
        return Err(io::Error::other("the filter is too long"));
    }
    zygote.write_ours(page, &bytes)?;
    let args = [libc::PR_SET_SECCOMP as u64, u64::from(libc::SECCOMP_MODE_FILTER), page, 0, 0, 0];
    call(zygote, libc::SYS_prctl, args).map(drop)
}

#[cfg(test)]
mod tests {
    use platform::{AddressSpace, ExitStatus};

    use guest_process::launch_in_namespace;

    use super::*;
    use crate::shared::{Mode, Options};

    fn zygote() -> Tracee {
        let shared = Shared::new(Options::new(Mode::Sysemu)).unwrap();
        make_zygote(&Arc::new(shared)).unwrap()
    }

    /// Makes a call from the stub's text, natively, as nothing but a broken stub would.
    fn native(call: RawCall) -> Result<u64, ExitStatus> {
        match zygote().raw_call(call, false) {
            Ok(result) => Ok(result),
            Err(Cut::Died(status)) => Err(status),
            Err(_) => panic!("neither done nor dead"),
        }
    }

    #[test]
    fn the_filter_is_in_force() {
        let killed = Err(ExitStatus::Killed(libc::SIGSYS));
        let parent = u64::from(zygote().process.parent());
        assert_eq!(native(RawCall::new(libc::SYS_getppid, [0; 6])), Ok(parent));
        assert_eq!(native(RawCall::new(libc::SYS_getuid, [0; 6])), killed);
        assert_eq!(native(RawCall::new(libc::SYS_mkdir, [0; 6])), killed);
        // The stub's own range cannot be given up.
        assert_eq!(native(RawCall::new(libc::SYS_munmap, [abi::GUEST_TOP, PAGE_SIZE, 0, 0, 0, 0])), killed);
        let exit_signal = u64::from(filter::CLONE_FORK) | libc::SIGCHLD as u64;
        assert_eq!(native(RawCall::new(libc::SYS_clone, [exit_signal, 0, 0, 0, 0, 0])), killed);
        assert_eq!(native(RawCall::new(libc::SYS_prctl, [1, 0, 0, 0, 0, 0])), killed);
    }

    /// A guest process that wants to outlive the kernel: disarmed, without a tracer, in the kernel's hands no more.
    fn hidden_guest() -> ! {
        let shared = Arc::new(Shared::new(Options::new(Mode::Sysemu)).unwrap());
        let (ours, theirs) = control_socket().unwrap();
        let (pid, namespace) = launch_in_namespace(&shared.layout.image(), &[theirs.as_fd()]).unwrap();
        let (slots, namespace) = (Arc::new(Slots::with(SLOTS as u32, 0)), Some(Arc::new(namespace)));
        let process = Process::register(Arc::clone(&shared.guests), pid, ours, slots, namespace).unwrap();
        let regs = Registers::default();
        let mut guest = Tracee::attach(Arc::clone(&shared), Arc::new(process), pid, 0, regs).unwrap();
        call(&mut guest, libc::SYS_prctl, [libc::PR_SET_PDEATHSIG as u64, 0, 0, 0, 0, 0]).unwrap();
        let parked = in_stub(*guest.registers(), shared.layout.text());
        crate::sys::set_registers(pid, &parked).unwrap();
        crate::sys::detach(pid).unwrap();
        println!("pid {pid}");
        loop {
            std::thread::park();
        }
    }

    #[test]
    fn a_guest_that_disarms_its_parents_death_ends_with_the_namespace() {
        use std::io::BufRead;
        const ROLE: &str = "UMLAUT_TEST_HIDES";
        if std::env::var_os(ROLE).is_some() {
            hidden_guest();
        }
        let ability = "pid namespace around guests";
        if !crate::probe::probe()
            .iter()
            .any(|found| found.name == ability && found.state == crate::probe::State::Ok)
        {
            println!("skipped: this host allows no pid namespaces");
            return;
        }
        let test = "spawner::tests::a_guest_that_disarms_its_parents_death_ends_with_the_namespace";
        let mut kernel = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(ROLE, "1")
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = io::BufReader::new(kernel.stdout.take().unwrap()).lines().map(Result::unwrap);
        let line = lines.find(|line| line.contains("pid ")).expect("the guest's pid");
        let pid: i32 = line.split_once("pid ").unwrap().1.parse().unwrap();
        assert!(!guest_process::is_zombie(pid, pid), "it lives");
        kernel.kill().unwrap();
        kernel.wait().unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while !guest_process::is_zombie(pid, pid) {
            assert!(std::time::Instant::now() < deadline, "it outlives the kernel");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    /// `pause` never comes back by itself: what is to come back soon is killed, what may wait is not.
    #[test]
    fn a_thread_that_does_not_come_back_is_killed() {
        let mut shared = Shared::new(Options::new(Mode::Sysemu)).unwrap();
        let patience = std::time::Duration::from_millis(100);
        let guests = Arc::get_mut(&mut shared.guests).unwrap();
        guests.deadlines = guest_process::Deadlines::new(patience);
        let shared = Arc::new(shared);
        let watched = Arc::clone(&shared);
        let watcher = std::thread::spawn(move || watched.guests.deadlines.watch());
        let mut zygote = make_zygote(&shared).unwrap();
        let kick = Arc::clone(&zygote.kick);
        let kicker = std::thread::spawn(move || {
            std::thread::sleep(patience * 5);
            platform::Interrupter::interrupt(&*kick);
        });
        let pause = RawCall::new(libc::SYS_pause, [0; 6]);
        assert!(matches!(zygote.raw_call(pause, true), Err(Cut::Kicked)));
        kicker.join().unwrap();
        let dead = zygote.raw_call(pause, false);
        assert!(matches!(dead, Err(Cut::Died(ExitStatus::Killed(libc::SIGKILL)))));
        shared.guests.deadlines.end();
        watcher.join().unwrap();
    }

    /// A vDSO is found where the host puts it.
    #[test]
    fn the_vdso_is_found() {
        let zygote = zygote();
        let vdso = AddressSpace::vdso(&*zygote.process).expect("a vdso");
        assert!(vdso.vvar < vdso.image && vdso.image < vdso.end && vdso.vvar.0 > abi::GUEST_TOP);
        let mut magic = [0; 4];
        host::vm::read_process(zygote.tid, &[(vdso.image.0, 4)], &mut magic).unwrap();
        assert_eq!(&magic, b"\x7fELF");
    }
}
