//! The spawner: one kernel thread that lives as long as the platform, and the parent of all guest processes (the host
//! sends PDEATHSIG when the parent *thread* ends). It makes the first guest process, the *zygote*, in which no guest code
//! ever runs; every fresh guest process is a fork of it.

use std::io;
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};

use platform::{Context, NewProcess, PlatformError};

/// A first guest process that only the thread that made it drives.
pub trait Zygote: Context + Sized {
    /// Whether its process is gone.
    fn is_dead(&self) -> bool;
}

type Request<T> = SyncSender<Result<T, PlatformError>>;

/// Asks the spawner for what only its thread makes. Its drop ends the thread, and with that the guest processes.
pub struct Spawner<T> {
    requests: Sender<Request<T>>,
}

impl<T: Send + 'static> Spawner<T> {
    /// Starts the thread, which makes things by what `begin` gives. Comes back when that stands; `meanwhile` is done before.
    ///
    /// # Errors
    /// What beginning gives.
    pub fn start<M: FnMut() -> Result<T, PlatformError>>(
        begin: impl FnOnce() -> Result<M, PlatformError> + Send + 'static,
        meanwhile: impl FnOnce(),
    ) -> Result<Spawner<T>, PlatformError> {
        let (requests, inbox) = channel::<Request<T>>();
        let (ready, stands) = sync_channel(1);
        let failed = |source| PlatformError { what: "starting the spawner thread", source };
        std::thread::Builder::new()
            .name("spawner".into())
            .spawn(move || match begin() {
                Ok(mut make) => {
                    let _ = ready.send(Ok(()));
                    for request in inbox {
                        // Whoever asked may be gone; what was made then ends with the message.
                        let _ = request.send(make());
                    }
                }
                Err(error) => {
                    let _ = ready.send(Err(error));
                }
            })
            .map_err(failed)?;
        meanwhile();
        match stands.recv() {
            Ok(result) => result.map(|()| Spawner { requests }),
            Err(_) => Err(failed(io::Error::other("it has ended"))),
        }
    }

    /// One more.
    ///
    /// # Errors
    /// What making it gives.
    pub fn ask(&self) -> Result<T, PlatformError> {
        let gone = |_| PlatformError {
            what: "making a guest process",
            source: io::Error::other("the spawner has ended"),
        };
        let (answer, reply) = sync_channel(1);
        self.requests.send(answer).map_err(|_| gone(()))?;
        reply.recv().map_err(|_| gone(()))?
    }
}

/// On the spawner's thread: fresh guest processes, forks of the zygote that `make` makes there.
///
/// # Errors
/// What making it gives.
pub fn forks_of<Z: Zygote>(
    make: impl Fn() -> Result<Z, PlatformError>,
) -> Result<impl FnMut() -> Result<NewProcess, PlatformError>, PlatformError> {
    let mut zygote = make()?;
    Ok(move || {
        let answer = zygote.fork();
        if answer.is_err() && zygote.is_dead() {
            // Somebody outside has killed it. Its descendants live on; take a new one.
            zygote = make()?;
            return zygote.fork();
        }
        answer
    })
}
