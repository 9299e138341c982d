//! The user's terminal: raw outside, and inside a pty like any other, whose master is pumped here.

use std::io::IsTerminal;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;

use abi::Winsize;
use anyhow::Context;
use kernel::kernel::Kernel;
use kernel::tty::Terminal;
use rustix::termios::{OptionalActions, Termios};
use sync::{Interrupts, Parker, Waiter};

/// Bytes moved at a time.
const CHUNK: usize = 4096;

/// The host's terminal, and the guest's that stands for it.
pub(crate) struct Console {
    host: Arc<OwnedFd>,
    saved: Termios,
    terminal: Arc<Terminal>,
    output: Option<(JoinHandle<()>, Arc<Parker>)>,
    /// The standard streams that are the terminal.
    pub streams: Vec<i32>,
}

/// Which of the standard streams are a terminal, and which of them to use as the console.
fn terminal_streams() -> (Vec<i32>, Option<OwnedFd>) {
    let (stdin, stdout, stderr) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    let all: [(i32, BorrowedFd<'_>); 3] = [(0, stdin.as_fd()), (1, stdout.as_fd()), (2, stderr.as_fd())];
    let terminals: Vec<_> = all.iter().filter(|(_, fd)| fd.is_terminal()).collect();
    let first = terminals.first().and_then(|(_, fd)| fd.try_clone_to_owned().ok());
    (terminals.iter().map(|(number, _)| *number).collect(), first)
}

/// The settings of the terminal that umlaut was started on, for whoever has to bring them back.
pub(crate) fn saved_settings() -> Option<(OwnedFd, Termios)> {
    let host = terminal_streams().1?;
    let saved = rustix::termios::tcgetattr(&host).ok()?;
    Some((host, saved))
}

/// Brings settings back.
pub(crate) fn restore(host: &OwnedFd, saved: &Termios) {
    // The terminal may have gone.
    let _ = rustix::termios::tcsetattr(host, OptionalActions::Drain, saved);
}

impl Console {
    /// Takes the terminal over, if one of the standard streams is one; it belongs to `uid` inside.
    pub(crate) fn open(kernel: &Arc<Kernel>, uid: u32) -> anyhow::Result<Option<Console>> {
        let (streams, host) = terminal_streams();
        let Some(host) = host else { return Ok(None) };
        let saved = rustix::termios::tcgetattr(&host).context("reading the terminal's settings")?;
        let terminal = kernel
            .ptys
            .create(kernel, uid, kernel::tty::TTY_GROUP)
            .map_err(|error| anyhow::anyhow!("making the console: {error}"))?;
        terminal.unlock();
        let mut console = Console { host: Arc::new(host), saved, terminal, output: None, streams };
        console.resize();
        console.make_raw();
        console.pump()?;
        Ok(Some(console))
    }

    /// The size of the host's window.
    pub(crate) fn resize(&self) {
        resize(&self.host, &self.terminal);
    }

    /// What signals' forwarding needs to follow the window's size.
    pub(crate) fn resizer(&self) -> impl Fn() + Send + 'static {
        let (host, terminal) = (self.host.clone(), self.terminal.clone());
        move || resize(&host, &terminal)
    }

    fn make_raw(&self) {
        // In the background the terminal is somebody else's.
        let in_foreground = rustix::termios::tcgetpgrp(&self.host).ok() == Some(rustix::process::getpgrp());
        if in_foreground {
            let mut raw = self.saved.clone();
            raw.make_raw();
            let _ = rustix::termios::tcsetattr(&self.host, OptionalActions::Drain, &raw);
        }
    }

    fn pump(&mut self) -> anyhow::Result<()> {
        let (host, terminal) = (self.host.clone(), self.terminal.clone());
        let input = move || {
            let waiter = Waiter::new();
            let mut buffer = [0; CHUNK];
            loop {
                match rustix::io::read(&*host, &mut buffer) {
                    Ok(count) if count > 0 => {
                        if !terminal.type_in(&waiter, buffer.get(..count).unwrap_or(&[])) {
                            return;
                        }
                    }
                    Err(rustix::io::Errno::INTR) => {}
                    // Only a terminal that has gone takes ours with it; in an orphaned background group one cannot
                    // be read either.
                    _ if has_hung_up(&host) => return terminal.hang_up(),
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
                let bytes = terminal.take_output(&waiter, CHUNK);
                if bytes.is_empty() || write_all(&host, &bytes).is_err() {
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
        restore(&self.host, &self.saved);
        stop();
        self.make_raw();
        self.resize();
    }

    /// Shows what is left to show and gives the terminal back.
    pub(crate) fn close(self) {
        if let Some((thread, parker)) = self.output {
            parker.interrupt(Interrupts::KILL);
            // It ends by itself once all is written.
            let _ = thread.join();
        }
        restore(&self.host, &self.saved);
    }
}

fn has_hung_up(host: &OwnedFd) -> bool {
    let mut fds = [rustix::event::PollFd::new(host, rustix::event::PollFlags::empty())];
    let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    let polled = rustix::event::poll(&mut fds, Some(&now));
    polled.is_ok() && fds.iter().any(|fd| fd.revents().contains(rustix::event::PollFlags::HUP))
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
                let mut fds = [rustix::event::PollFd::new(host, rustix::event::PollFlags::OUT)];
                let _ = rustix::event::poll(&mut fds, None);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
