//! `umlaut run`: puts a kernel together, starts the program, and waits for its end.
//!
//! The order of set-up matters (INVARIANTS 10): all that is opened on the host is opened while there is one
//! thread; then the supervisor is split off; then come platform, threads and guest code.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use abi::Errno;
use anyhow::{Context, anyhow};
use kernel::fs::devices::Devices;
use kernel::fs::special::KernelFiles;
use kernel::kernel::{Kernel, KernelOptions, MainEvent};
use kernel::profile::Profile;
use kernel::syscall::trace::Trace;
use kernel::task::GroupExit;
use kernel::tty::{PTS_MAJOR, TerminalDevices};
use platform::Platform;
use sync::{SysError, Waiter};

use crate::cgroup::MemoryCgroup;
use crate::console::Console;
use crate::explain::{Attempt, explain};
use crate::options::{PlatformName, RunOptions};
use crate::outside::server::{Door, Server};
use crate::{confine, host_user, program, root, supervisor};

/// How long the kernel may take to end once it must.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);

/// A program that could not be started, with the exit status that shells use for it.
#[derive(Debug)]
struct StartFailure {
    errno: Errno,
    text: String,
}

impl std::fmt::Display for StartFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for StartFailure {}

/// 127: not found; 126: found, not executable; 125: umlaut itself failed.
pub(crate) fn exit_code_of(error: &anyhow::Error) -> i32 {
    match error.downcast_ref::<StartFailure>() {
        Some(StartFailure { errno: Errno::ENOENT, .. }) => 127,
        Some(_) => 126,
        None => 125,
    }
}

pub(crate) fn run(options: &RunOptions) -> anyhow::Result<i32> {
    // What the caller had open is not for guests (INVARIANTS 1.9).
    host::process::close_from(3).context("closing inherited descriptors")?;
    raise_limits()?;
    let guests = host_user::choose(options.host_user)?;
    let cgroup = memory_cgroup(options)?;
    let (signals, job) = supervisor::become_kernel(|| {
        if let Some(cgroup) = &cgroup {
            cgroup.remove();
        }
    })?;
    let supervisor = rustix::process::getppid();
    host::descriptors::make_room(&signals);
    if let Some(cgroup) = &cgroup {
        cgroup.enter().with_context(|| format!("entering the cgroup {}", cgroup.dir().display()))?;
    }
    // Behind the fork: hostfs keeps /proc/self/fd open, which is the supervisor's before it.
    let name_space = root::compose(options)?;
    let trace = open_trace(options)?;
    let profile_file = open_profile(options)?;
    let door = Door::open();
    rustix::thread::set_no_new_privs(true).context("giving up privileges")?;
    host_user::change(guests)?;
    confine::give_up_capabilities(&name_space.shown, name_space.shows_private)
        .context("giving up capabilities")?;
    if !options.no_confine
        && !confine::forbid_other_files(&name_space.shown).context("confining itself to its roots")?
    {
        tracing::info!("this host's Landlock cannot fence files: `umlaut check --security` says more");
    }
    let platform = choose_platform(options, options.memory.filter(|_| cgroup.is_none()))?;
    // Guests share our user: they must not read our memory.
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    let kernel_options = KernelOptions {
        hostname: options.hostname.clone(),
        memory: options.memory,
        max_tasks: max_tasks(),
        file_memory: Some(Box::new(name_space.file_memory())),
        counters: options.counters.mode(),
        placement: !options.no_placement,
        profile: start_profile(profile_file)?,
    };
    let kernel = Kernel::new(platform, kernel_options, name_space.mounts.clone(), special_files(), trace);
    name_space.proc.attach(&kernel);
    name_space.sysfs.attach(&kernel);
    kernel.set_memory_files(Box::new(name_space.memfds.clone()));
    name_space.devpts.attach(&kernel);
    kernel.set_continued_outside(|| !host::process::is_orphaned());
    let console = Console::open(&kernel, name_space.user.uid)?;
    let name = options.program.first().map(|name| name.as_encoded_bytes()).unwrap_or_default();
    let outside = door.map(|door| Server::start(door, &kernel, name));
    forward_signals(kernel.clone(), signals, console.as_ref().map(Console::follower), outside)?;
    let streams = console.as_ref().map(|console| console.streams.clone()).unwrap_or_default();
    let spec = program::spec(options, streams, &name_space)?;
    if !options.no_confine {
        confine::forbid_other_calls(kernel.platform.capabilities().name != "stub")
            .context("confining itself to its host calls")?;
    }
    // Most of what was needed until now is not needed again.
    host::residency::release_programs();
    let result = kernel.start(spec).map_err(|error| start_failure(options, &name_space, error));
    let status = result.map(|()| wait(&kernel, console.as_ref(), &job));
    kernel.shut_down();
    finish_profile(&kernel);
    if let Some(console) = console {
        console.close();
    }
    if options.stats {
        crate::complain_text(&kernel.stats_table());
    }
    if rustix::process::getppid() != supervisor {
        supervisor::end_children();
    }
    status
}

/// FIFOs and devices are the kernel's own.
fn special_files() -> Box<KernelFiles> {
    let mut devices = Devices::with_memory_devices();
    let terminals = Arc::new(TerminalDevices);
    devices.register(abi::FileType::CHR, 5, 0..=2, terminals.clone());
    devices.register(abi::FileType::CHR, PTS_MAJOR, 0..=(1 << 20) - 1, terminals);
    Box::new(KernelFiles::new(devices))
}

/// Descriptors without which not much runs.
const FEWEST_DESCRIPTORS: u64 = 48;
/// Bytes of addresses without which the kernel, or a guest process with room for its channels, does not come up.
const FEWEST_ADDRESSES: u64 = 192 << 20;
/// With fewer, a shell with a pipeline may find that there are no more.
const ENOUGH_DESCRIPTORS: u64 = 256;

/// Guests' open files are host descriptors of ours, and a copy to a guest's stack grows it by our limit (the guest's is
/// checked before). Files of the host grow by us too: what is too big for our own limit is an error for the guest, not
/// our end.
fn raise_limits() -> anyhow::Result<()> {
    use rustix::process::Resource;
    for resource in [Resource::Nofile, Resource::Stack, Resource::Fsize] {
        let mut limit = rustix::process::getrlimit(resource);
        limit.current = limit.maximum;
        // With the limit that there is, guests get less.
        let _ = rustix::process::setrlimit(resource, limit);
    }
    host::signal::ignore(abi::Signal::XFSZ.0).context("ignoring SIGXFSZ")?;
    match rustix::process::getrlimit(Resource::Nofile).current {
        Some(count) if count < FEWEST_DESCRIPTORS => Err(anyhow!(
            "the limit on open files is {count}, and {FEWEST_DESCRIPTORS} are the fewest to run with: raise `ulimit -n`"
        )),
        Some(count) if count < ENOUGH_DESCRIPTORS => {
            complain!(
                "umlaut: the limit on open files is {count}: programs may find none left; raise `ulimit -n` to \
                 {ENOUGH_DESCRIPTORS} or more"
            );
            Ok(())
        }
        _ => Ok(()),
    }?;
    match rustix::process::getrlimit(Resource::As).current {
        Some(bytes) if bytes < FEWEST_ADDRESSES => Err(anyhow!(
            "the limit on addresses is {} KiB, and {} are the fewest to run with: raise `ulimit -v`",
            bytes >> 10,
            FEWEST_ADDRESSES >> 10
        )),
        Some(_) => {
            host::process::share_heap();
            Ok(())
        }
        None => Ok(()),
    }
}

/// A guest process takes up to four host descriptors before it opens a file, and some are left for exec and kill.
fn max_tasks() -> usize {
    let most = KernelOptions::default().max_tasks;
    let descriptors = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let enough = descriptors.map_or(most, |count| usize::try_from(count / 5).unwrap_or(most));
    enough.clamp(64, most)
}

/// What a cgroup may hold beyond the limit on guests: the kernel itself.
const KERNEL_ROOM: u64 = 32 << 20;

/// A cgroup for `--memory`, if one may be made; one that was named must be.
fn memory_cgroup(options: &RunOptions) -> anyhow::Result<Option<MemoryCgroup>> {
    let Some(limit) = options.memory else { return Ok(None) };
    match MemoryCgroup::make(limit.saturating_add(KERNEL_ROOM), options.cgroup.as_deref()) {
        Ok(cgroup) => {
            tracing::info!(dir = %cgroup.dir().display(), "a cgroup bounds memory");
            Ok(Some(cgroup))
        }
        Err(why) if options.cgroup.is_some() => Err(anyhow!("no cgroup can be made: {why}")),
        Err(why) => {
            tracing::info!(why, "no cgroup: a thread and RLIMIT_DATA bound memory");
            Ok(None)
        }
    }
}

fn open_trace(options: &RunOptions) -> anyhow::Result<Option<Trace>> {
    let names = match (&options.trace, &options.trace_file) {
        (Some(names), _) => names.as_str(),
        (None, Some(_)) => "",
        (None, None) => return Ok(None),
    };
    let names: Vec<String> = names.split(',').filter(|name| !name.is_empty()).map(str::to_string).collect();
    let out: Box<dyn Write + Send> = match &options.trace_file {
        Some(path) => {
            let file = std::fs::File::create(path)
                .with_context(|| format!("cannot write the trace to {}", path.display()))?;
            Box::new(file)
        }
        None => Box::new(std::io::stderr()),
    };
    Ok(Some(Trace::new(out, &names)?))
}

/// Opened with the rest; its thread begins when threads may.
fn open_profile(options: &RunOptions) -> anyhow::Result<Option<std::fs::File>> {
    let create = |path: &PathBuf| {
        let file = std::fs::File::create(path);
        file.with_context(|| format!("cannot write the profile to {}", path.display()))
    };
    options.profile.as_ref().map(create).transpose()
}

fn start_profile(file: Option<std::fs::File>) -> anyhow::Result<Option<Arc<Profile>>> {
    let start = |file| Profile::new(Box::new(file)).map(Arc::new);
    file.map(start).transpose().context("starting the profile's thread")
}

fn finish_profile(kernel: &Kernel) {
    match kernel.options.profile.as_ref().map(|profile| profile.finish()) {
        None | Some(Ok(0)) => {}
        Some(Ok(lost)) => {
            complain!("umlaut: the profile lacks {lost} events: its file could not be written fast enough");
        }
        Some(Err(error)) => complain!("umlaut: writing the profile: {error}"),
    }
}

/// `memory`: the limit that each guest process's data is bounded after.
fn choose_platform(options: &RunOptions, memory: Option<u64>) -> anyhow::Result<Box<dyn Platform>> {
    let open = |mode: ptrace::Mode| {
        let mut wanted = ptrace::Options::new(mode);
        wanted.batch = !options.no_batch;
        wanted.eager_registers = options.eager_registers;
        wanted.placement = !options.no_placement;
        // Touched memory is what counts, and programs reserve more than they touch.
        wanted.data_limit = memory.map(|limit| limit.saturating_mul(4));
        ptrace::Ptrace::new(wanted).map(|platform| Box::new(platform) as Box<dyn Platform>)
    };
    let stub = || {
        let wanted = stubs::Options {
            shapes: kernel::syscall::shape,
            batch: !options.no_batch,
            patch: !options.no_patch,
            own_programs: options.root.is_none(),
            delegate: !options.no_delegate,
            namespace: true,
            placement: !options.no_placement,
            spin: !options.no_spin,
            data_limit: memory.map(|limit| limit.saturating_mul(4)),
            memory_limit: memory,
        };
        stubs::Stubs::new(wanted).map(|platform| Box::new(platform) as Box<dyn Platform>)
    };
    let platform = match options.platform {
        PlatformName::Ptrace => open(ptrace::Mode::Syscall),
        PlatformName::Sysemu => open(ptrace::Mode::Sysemu),
        PlatformName::Stub => stub(),
        PlatformName::Auto => stub()
            .or_else(|error| {
                complain!("umlaut: stub does not work here ({error}); using sysemu");
                open(ptrace::Mode::Sysemu)
            })
            .or_else(|error| {
                complain!("umlaut: sysemu does not work here ({error}); using ptrace");
                open(ptrace::Mode::Syscall)
            }),
    };
    platform.context(
        "this host does not let guests run: `umlaut check` says more (is ptrace forbidden, or `ulimit -u` reached?)",
    )
}

/// Passes signals from outside on to the main program, and lets those look at the kernel who want to; a second SIGTERM or SIGHUP ends everything, and so does the
/// supervisor's end.
fn forward_signals(
    kernel: Arc<Kernel>,
    signals: std::os::fd::OwnedFd,
    console: Option<impl Fn(abi::Signal) + Send + 'static>,
    outside: Option<Server>,
) -> anyhow::Result<()> {
    let ignored = abi::SigSet(host::signal::ignored_at_start());
    let forward = move || {
        let mut ending = false;
        loop {
            if !wait_for_signal(&signals, outside.as_ref()) {
                continue;
            }
            let mut byte = [0];
            match rustix::io::read(&signals, &mut byte) {
                Ok(1) => {}
                Err(rustix::io::Errno::INTR) => continue,
                _ => break,
            }
            let signal = abi::Signal(i32::from(byte[0] & !supervisor::BY_HOST));
            if matches!(signal, abi::Signal::WINCH | abi::Signal::CONT) {
                if let Some(console) = &console {
                    console(signal);
                }
                continue;
            }
            let by_host = byte[0] & supervisor::BY_HOST != 0;
            if by_host && matches!(signal, abi::Signal::INT | abi::Signal::QUIT) {
                // Typed at a terminal that no program inside uses: it is for the whole job.
                kernel.signal_job(signal);
                continue;
            }
            // What was ignored before the program began is its own business (nohup).
            let ends = matches!(signal, abi::Signal::TERM | abi::Signal::HUP) && !ignored.contains(signal);
            if ends && ending {
                break;
            }
            ending |= ends;
            kernel.signal_main(signal);
        }
        kernel.end_main();
        // Guests die with this process. Only what hangs in the kernel itself is still here by then.
        std::thread::sleep(PATIENCE);
        std::process::exit(125);
    };
    std::thread::Builder::new().name("signals".into()).stack_size(64 << 10).spawn(forward)?;
    Ok(())
}

/// Waits until `signals` has something; says no if it was somebody outside who wants to look at the kernel.
fn wait_for_signal(signals: &std::os::fd::OwnedFd, outside: Option<&Server>) -> bool {
    use rustix::event::{PollFd, PollFlags, poll};
    // Without anybody outside the read itself waits.
    let Some(outside) = outside else { return true };
    let listener = outside.descriptor();
    let mut events = [PollFd::new(signals, PollFlags::IN), PollFd::new(&listener, PollFlags::IN)];
    match poll(&mut events, None) {
        Ok(_) => {}
        Err(error) => return error != rustix::io::Errno::INTR,
    }
    let [signal, visitor] = events.map(|event| !event.revents().is_empty());
    if visitor {
        outside.serve();
    }
    signal
}

/// Waits for the main program's end; gives umlaut's exit status.
fn wait(kernel: &Arc<Kernel>, console: Option<&Console>, job: &supervisor::Job) -> i32 {
    let waiter = Waiter::new();
    loop {
        match kernel.wait_for_main(&waiter) {
            Some(MainEvent::Ended(GroupExit::Code(code))) => return code,
            Some(MainEvent::Ended(GroupExit::Signal { signal, .. })) => return 128 + signal.0,
            Some(MainEvent::Stopped(signal)) => {
                // As the program itself would: the user's shell gets the terminal back. An orphaned group is not
                // stopped by the host; the guest then goes on at once.
                let stop = || {
                    job.stop(match signal {
                        abi::Signal::TTIN => rustix::process::Signal::TTIN,
                        abi::Signal::TTOU => rustix::process::Signal::TTOU,
                        _ => rustix::process::Signal::TSTP,
                    });
                };
                match console {
                    Some(console) => console.stopped(stop),
                    None => stop(),
                }
                kernel.signal_job(abi::Signal::CONT);
            }
            None => return 125,
        }
    }
}

fn start_failure(options: &RunOptions, names: &root::NameSpace, error: SysError) -> anyhow::Error {
    let name = options.program.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let errno = match error.errno().unwrap_or(Errno::EINTR) {
        // As execve("") would.
        _ if name.is_empty() => Errno::ENOENT,
        errno => errno,
    };
    let workdir = options.workdir.as_ref().map_or(&names.workdir[..], |workdir| workdir.as_bytes());
    let text = explain(&Attempt { name: &name, workdir, names }, errno);
    anyhow!(StartFailure { errno, text })
}
