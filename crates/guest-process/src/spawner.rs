//! The spawner: one kernel thread that lives as long as the platform, and the parent of all guest processes (the host
//! sends PDEATHSIG when the parent *thread* ends). It drives the first guest process, the *zygote*, in which no guest code
//! ever runs; every fresh guest process is a fork of it.

use std::io;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use platform::{Context, NewProcess, PlatformError};

/// A first guest process. Only the thread that made it drives it.
pub trait Zygote: Context + Sized {
    /// Whether its process is gone.
    fn is_dead(&self) -> bool;
}

type Request = SyncSender<Result<NewProcess, PlatformError>>;

/// Asks the spawner. Its drop ends the thread, and with that the guest processes.
pub struct Spawner {
    requests: Sender<Request>,
}

impl Spawner {
    /// Starts the thread. Comes back when the zygote that `make` makes there stands.
    ///
    /// # Errors
    /// What making it gives.
    pub fn start<Z: Zygote>(
        make: impl Fn() -> Result<Z, PlatformError> + Send + 'static,
    ) -> Result<Spawner, PlatformError> {
        let (requests, inbox) = channel::<Request>();
        let (ready, stands) = sync_channel(1);
        let failed = |source| PlatformError { what: "starting the spawner thread", source };
        std::thread::Builder::new()
            .name("spawner".into())
            .spawn(move || match make() {
                Ok(zygote) => {
                    let _ = ready.send(Ok(()));
                    serve(&make, zygote, &inbox);
                }
                Err(error) => {
                    let _ = ready.send(Err(error));
                }
            })
            .map_err(failed)?;
        match stands.recv() {
            Ok(result) => result.map(|()| Spawner { requests }),
            Err(_) => Err(failed(io::Error::other("it has ended"))),
        }
    }

    /// A fresh guest process.
    ///
    /// # Errors
    /// What the fork gives.
    pub fn spawn(&self) -> Result<NewProcess, PlatformError> {
        let gone = |_| PlatformError {
            what: "making a guest process",
            source: io::Error::other("the spawner has ended"),
        };
        let (answer, reply) = sync_channel(1);
        self.requests.send(answer).map_err(|_| gone(()))?;
        reply.recv().map_err(|_| gone(()))?
    }
}

fn serve<Z: Zygote>(make: &impl Fn() -> Result<Z, PlatformError>, mut zygote: Z, inbox: &Receiver<Request>) {
    for request in inbox {
        let mut answer = zygote.fork();
        if answer.is_err() && zygote.is_dead() {
            // Somebody outside has killed it. Its descendants live on; take a new one.
            answer = make().and_then(|new| {
                zygote = new;
                zygote.fork()
            });
        }
        // Whoever asked may be gone; the process then ends with the message.
        let _ = request.send(answer);
    }
}
