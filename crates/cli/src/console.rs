//! The user's terminal: raw outside, and inside a pty like any other, whose master is pumped here.
//!
//! Umlaut is a job of the user's shell. The terminal is made raw and read while umlaut is in the foreground and a program
//! inside uses it (at once if it shows umlaut's output: what is typed is for programs then); otherwise it is left
//! alone, and the host's own job control works: ^C and ^Z signal umlaut's group.

use std::io::IsTerminal;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use abi::{Errno, Signal, Winsize};
use anyhow::Context;
use host::process::Standing;
use kernel::kernel::Kernel;
use kernel::tty::{HostTerminal, Terminal};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::termios::{InputModes, LocalModes, OptionalActions, OutputModes, Termios};
use sync::{Interrupts, Mutex, Parker, Waiter, order};

/// Bytes moved at a time.
const CHUNK: usize = 4096;

/// How often a job in the background looks whether it has the terminal. There is no event for it: `tcsetpgrp` tells
/// nobody, a shell's `fg` sends SIGCONT only to a job that was stopped, and `poll` on a terminal does not look at who
/// is in the foreground. In the foreground, and without a terminal, nothing looks.
const LOOK: Duration = Duration::from_millis(500);

/// The host's terminal, and the guest's that stands for it.
pub(crate) struct Console {
    host: Arc<Host>,
    terminal: Arc<Terminal>,
    output: Option<(JoinHandle<()>, Arc<Parker>)>,
    /// The standard streams that are the terminal.
    pub streams: Vec<i32>,
}

/// The host's terminal.
struct Host {
    fd: OwnedFd,
    /// Its settings while it is raw by us: those to bring back.
    saved: Mutex<order::Leaf, Option<Termios>>,
    /// A program uses it.
    claimed: AtomicBool,
    /// Tells the input's thread that something changed.
    change: OwnedFd,
}

/// Which of the standard streams are a terminal, and which of them to use as the console.
fn terminal_streams() -> (Vec<i32>, Option<OwnedFd>) {
    let (stdin, stdout, stderr) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    let all: [(i32, BorrowedFd<'_>); 3] = [(0, stdin.as_fd()), (1, stdout.as_fd()), (2, stderr.as_fd())];
    let terminals: Vec<_> = all.iter().filter(|(_, fd)| fd.is_terminal()).collect();
    let first = terminals.first().and_then(|(_, fd)| fd.try_clone_to_owned().ok());
    (terminals.iter().map(|(number, _)| *number).collect(), first)
}

/// The terminal that umlaut was started on and its settings, for whoever has to bring them back. In the background they
/// are another job's, and not known.
pub(crate) fn saved_settings() -> Option<(OwnedFd, Option<Termios>)> {
    let host = terminal_streams().1?;
    let known = host::process::standing(host.as_fd()) != Standing::Background;
    let saved = rustix::termios::tcgetattr(&host).ok().filter(|_| known);
    Some((host, saved))
}

/// Brings settings back, if the terminal is still as [`Host::make_raw`] left it; if they are not known, usual ones.
pub(crate) fn restore_raw(host: &OwnedFd, saved: Option<&Termios>) {
    let Ok(current) = rustix::termios::tcgetattr(host) else { return };
    if host::process::standing(host.as_fd()) == Standing::Background || !is_raw(&current) {
        return;
    }
    let mut usual = current;
    usual.input_modes |= InputModes::ICRNL | InputModes::IXON;
    usual.output_modes |= OutputModes::OPOST;
    usual.local_modes |= LocalModes::ISIG | LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN;
    // The terminal may have gone.
    let _ = rustix::termios::tcsetattr(host, OptionalActions::Drain, saved.unwrap_or(&usual));
}

fn is_raw(settings: &Termios) -> bool {
    let cooked = LocalModes::ISIG | LocalModes::ICANON | LocalModes::ECHO;
    !settings.local_modes.intersects(cooked) && !settings.output_modes.contains(OutputModes::OPOST)
}

impl Host {
    fn standing(&self) -> Standing {
        host::process::standing(self.fd.as_fd())
    }

    fn is_raw_by_us(&self) -> bool {
        self.saved.lock().is_some()
    }

    /// What is typed is the console's.
    fn is_ours(&self) -> bool {
        self.claimed.load(Ordering::SeqCst) && self.standing() != Standing::Background
    }

    /// Makes it raw, unless it is, or is somebody else's.
    fn make_raw(&self) {
        if !self.is_ours() || self.is_raw_by_us() {
            return;
        }
        let Ok(current) = rustix::termios::tcgetattr(&self.fd) else { return };
        let mut raw = current.clone();
        raw.make_raw();
        *self.saved.lock() = Some(current);
        let _ = rustix::termios::tcsetattr(&self.fd, OptionalActions::Drain, &raw);
    }

    /// Brings the settings back.
    fn restore(&self) {
        let saved = self.saved.lock().take();
        if let Some(saved) = saved.filter(|_| self.standing() != Standing::Background) {
            // The terminal may have gone.
            let _ = rustix::termios::tcsetattr(&self.fd, OptionalActions::Drain, &saved);
        }
    }

    /// Umlaut was stopped from outside: a shell has set the terminal as it likes it.
    fn continued(&self) {
        let current = rustix::termios::tcgetattr(&self.fd);
        if current.is_ok_and(|current| !is_raw(&current)) || self.standing() == Standing::Background {
            *self.saved.lock() = None;
        }
        self.make_raw();
        self.wake();
    }

    fn wake(&self) {
        let _ = rustix::io::write(&self.change, &1_u64.to_ne_bytes());
    }

    /// Waits until there is something to read that is the console's.
    fn wait_for_input(&self) {
        loop {
            self.make_raw();
            let ours = self.is_ours();
            // Otherwise only its end is looked at.
            let wanted = if ours { PollFlags::IN } else { PollFlags::empty() };
            let mut fds = [PollFd::new(&self.change, PollFlags::IN), PollFd::new(&self.fd, wanted)];
            let look = Timespec { tv_sec: 0, tv_nsec: i64::from(LOOK.subsec_nanos()) };
            let in_background = self.standing() == Standing::Background;
            if poll(&mut fds, in_background.then_some(&look)).is_err() {
                continue;
            }
            let [changed, typed] = fds.map(|fd| !fd.revents().is_empty());
            if changed {
                let _ = rustix::io::read(&self.change, &mut [0; 8]);
            }
            if typed && (self.is_ours() || has_hung_up(&self.fd)) {
                return;
            }
        }
    }
}

/// What programs inside ask of it.
struct Outside(Arc<Host>);

impl HostTerminal for Outside {
    fn is_in_background(&self) -> bool {
        self.0.standing() == Standing::Background
    }

    fn claim(&self) {
        if !self.0.claimed.swap(true, Ordering::SeqCst) {
            self.0.wake();
        }
    }

    fn stop(&self, signal: Signal) -> Result<(), Errno> {
        // The host looks at both before it finds that there is nothing to do.
        let result = match signal {
            Signal::TTIN => rustix::io::read(&self.0.fd, &mut [0_u8; 0]).map(drop),
            _ => rustix::termios::tcdrain(&self.0.fd),
        };
        match result {
            Ok(()) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(_) => Err(Errno::EIO),
        }
    }
}

impl Console {
    /// Takes the terminal over, if one of the standard streams is one; it belongs to `uid` inside.
    pub(crate) fn open(kernel: &Arc<Kernel>, uid: u32) -> anyhow::Result<Option<Console>> {
        let (streams, fd) = terminal_streams();
        let Some(fd) = fd else { return Ok(None) };
        let terminal = kernel
            .ptys
            .create(kernel, uid, kernel::tty::TTY_GROUP)
            .map_err(|error| anyhow::anyhow!("making the console: {error}"))?;
        terminal.unlock();
        let change =
            eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).context("making an eventfd")?;
        let shows = streams.contains(&1) && host::process::standing(fd.as_fd()) == Standing::Foreground;
        let host = Host { fd, saved: Mutex::default(), claimed: AtomicBool::new(shows), change };
        let mut console = Console { host: Arc::new(host), terminal, output: None, streams };
        console.terminal.stand_for(Box::new(Outside(console.host.clone())));
        resize(&console.host.fd, &console.terminal);
        console.host.make_raw();
        console.pump()?;
        Ok(Some(console))
    }

    /// What the signals' thread needs: to follow the window's size, and to hear that umlaut goes on.
    pub(crate) fn follower(&self) -> impl Fn(Signal) + Send + 'static {
        let (host, terminal) = (self.host.clone(), self.terminal.clone());
        move |signal| {
            if signal == Signal::CONT {
                host.continued();
            }
            resize(&host.fd, &terminal);
        }
    }

    fn pump(&mut self) -> anyhow::Result<()> {
        let (host, terminal) = (self.host.clone(), self.terminal.clone());
        let input = move || {
            let waiter = Waiter::new();
            let mut buffer = [0; CHUNK];
            loop {
                host.wait_for_input();
                match rustix::io::read(&host.fd, &mut buffer) {
                    Ok(count) if count > 0 => {
                        if !terminal.type_in(&waiter, buffer.get(..count).unwrap_or(&[])) {
                            return;
                        }
                    }
                    Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                    // Only a terminal that has gone takes ours with it.
                    _ if has_hung_up(&host.fd) => return terminal.hang_up(),
                    _ => return,
                }
            }
        };
        std::thread::Builder::new().name("console in".into()).stack_size(64 << 10).spawn(input)?;
        let (host, terminal) = (self.host.clone(), self.terminal.clone());
        let (tell, told) = std::sync::mpsc::sync_channel(1);
        let output = move || {
            let waiter = Waiter::new();
            // The console waits for it before it goes on.
            let _ = tell.send(waiter.parker().clone());
            loop {
                let mut bytes = terminal.take_output(&waiter, CHUNK);
                if !host.is_raw_by_us() {
                    // The host's terminal adds its own.
                    drop_returns(&mut bytes);
                }
                if bytes.is_empty() || write_all(&host.fd, &bytes).is_err() {
                    return;
                }
            }
        };
        let thread =
            std::thread::Builder::new().name("console out".into()).stack_size(64 << 10).spawn(output)?;
        self.output = told.recv().ok().map(|parker| (thread, parker));
        Ok(())
    }

    /// Gives the terminal back for as long as umlaut is stopped, as job control wants it.
    pub(crate) fn stopped(&self, stop: impl FnOnce()) {
        self.host.restore();
        stop();
        self.host.continued();
        resize(&self.host.fd, &self.terminal);
    }

    /// Shows what is left to show and gives the terminal back.
    pub(crate) fn close(self) {
        if let Some((thread, parker)) = self.output {
            parker.interrupt(Interrupts::KILL);
            // It ends by itself once all is written.
            let _ = thread.join();
        }
        // The input's thread must not take it again.
        self.host.claimed.store(false, Ordering::SeqCst);
        self.host.restore();
    }
}

/// Makes newlines of "\r\n".
fn drop_returns(bytes: &mut Vec<u8>) {
    let mut at = 0;
    let all = bytes.clone();
    bytes.retain(|byte| {
        at += 1;
        *byte != b'\r' || all.get(at) != Some(&b'\n')
    });
}

fn has_hung_up(host: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(host, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let polled = poll(&mut fds, Some(&now));
    polled.is_ok() && fds.iter().any(|fd| fd.revents().contains(PollFlags::HUP))
}

fn resize(host: &OwnedFd, terminal: &Terminal) {
    if let Ok(size) = rustix::termios::tcgetwinsize(host) {
        terminal.set_size(Winsize {
            row: size.ws_row,
            col: size.ws_col,
            xpixel: size.ws_xpixel,
            ypixel: size.ws_ypixel,
        });
    }
}

fn write_all(host: &OwnedFd, mut bytes: &[u8]) -> rustix::io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(host, bytes) {
            Ok(count) => bytes = bytes.get(count..).unwrap_or(&[]),
            Err(rustix::io::Errno::INTR) => {}
            // Somebody else made it non-blocking: it is shared.
            Err(rustix::io::Errno::AGAIN) => {
                let mut fds = [PollFd::new(host, PollFlags::OUT)];
                let _ = poll(&mut fds, None);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
