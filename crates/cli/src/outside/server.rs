//! The kernel's side: who may look, and what he is sent.

use std::fmt::Write as _;
use std::io::Write as _;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use kernel::kernel::Kernel;
use rustix::process::Uid;

use super::{END, GREETING, printable, socket_name};

/// Looked at by so many at once, at most.
const MOST: usize = 4;
/// Whoever does not take the text within this time gets no more of it.
const PATIENCE: Duration = Duration::from_secs(2);
/// Stack of a thread that sends a text, in bytes.
const STACK: usize = 256 << 10;

/// Where those come who want to look. The host tells them who opened it.
pub(crate) struct Door {
    listener: UnixListener,
    /// Whose kernel it is.
    user: Uid,
}

/// Listens for those who want to look.
pub(crate) struct Server {
    door: Door,
    kernel: Arc<Kernel>,
    program: String,
    started: Instant,
    busy: Arc<AtomicUsize>,
}

impl Door {
    /// Opened by the kernel's process while it is still the user who started it; `None` where the host does not let it, which costs
    /// nothing but this view.
    pub(crate) fn open() -> Option<Door> {
        let user = rustix::process::geteuid();
        let name = socket_name(user.as_raw(), std::process::id());
        let listener = SocketAddr::from_abstract_name(name).and_then(|name| UnixListener::bind_addr(&name));
        let listener = listener.and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
        match listener {
            Ok(listener) => Some(Door { listener, user }),
            Err(error) => {
                tracing::debug!(%error, "`umlaut stat` will not find this kernel");
                None
            }
        }
    }

    /// Whether it is the user who runs us, or root.
    fn is_for(&self, stream: &UnixStream) -> bool {
        rustix::net::sockopt::socket_peercred(stream)
            .is_ok_and(|peer| peer.uid == self.user || peer.uid == Uid::ROOT)
    }
}

impl Server {
    /// Begins to serve.
    pub(crate) fn start(door: Door, kernel: &Arc<Kernel>, program: &[u8]) -> Server {
        Server {
            door,
            kernel: kernel.clone(),
            program: printable(program.rsplit(|byte| *byte == b'/').next().unwrap_or(program)),
            started: Instant::now(),
            busy: Arc::default(),
        }
    }

    /// Becomes readable when somebody has come.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.door.listener.as_fd()
    }

    /// Serves who has come, on a thread that ends with it. Never blocks.
    pub(crate) fn serve(&self) {
        let Ok((stream, _)) = self.door.listener.accept() else { return };
        if !self.door.is_for(&stream) || self.busy.load(Ordering::Relaxed) >= MOST {
            return;
        }
        self.busy.fetch_add(1, Ordering::Relaxed);
        let (kernel, busy) = (self.kernel.clone(), self.busy.clone());
        let head = self.head();
        let send = move || {
            // Whoever goes away, or does not read, is no concern of ours.
            let _ = stream.set_write_timeout(Some(PATIENCE));
            let _ = (&stream).write_all(text(&kernel, head).as_bytes());
            busy.fetch_sub(1, Ordering::Relaxed);
        };
        let thread = std::thread::Builder::new().name("outside".into()).stack_size(STACK);
        if thread.spawn(send).is_err() {
            self.busy.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// What does not come from the kernel.
    fn head(&self) -> String {
        let supervisor = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
        let (pid, program) = (std::process::id(), &self.program);
        let up = self.started.elapsed().as_micros();
        format!(
            "{GREETING}\nkernel_pid {pid}\nsupervisor_pid {supervisor}\nprogram {program}\nuptime_us {up}\n"
        )
    }
}

fn text(kernel: &Kernel, mut text: String) -> String {
    text.push_str(&kernel.platform_text());
    text.push_str(&kernel.stat_text());
    for line in kernel.calls_text().lines() {
        // A string takes all that is written to it.
        let _ = writeln!(text, "call.{line}");
    }
    for process in kernel.process_list() {
        let kernel::stats::ProcessLine { pid, parent, threads, state, name } = process;
        let _ = writeln!(text, "process {pid} {parent} {threads} {state} {}", printable(&name));
    }
    let _ = writeln!(text, "{END}");
    text
}
