//! The thread that starts all child processes. It lives as long as vramp.

use std::io;
use std::process::{Child, Command};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

type Request = (Command, Sender<io::Result<Child>>);

/// Starts a process on the lasting thread.
pub(super) fn spawn(command: Command) -> io::Result<Child> {
    static SPAWNER: OnceLock<Mutex<Sender<Request>>> = OnceLock::new();
    let gone = || io::Error::other("the thread that starts processes has ended");
    let spawner = match SPAWNER.get() {
        Some(spawner) => spawner,
        None => {
            let made = Mutex::new(begin()?);
            // If two threads come here at once, the second spawner ends with its sender.
            SPAWNER.get_or_init(|| made)
        }
    };
    let (done, child) = channel();
    let request = spawner.lock().unwrap_or_else(PoisonError::into_inner).send((command, done));
    request.map_err(|_| gone())?;
    child.recv().map_err(|_| gone())?
}

fn begin() -> io::Result<Sender<Request>> {
    let (send, requests) = channel::<Request>();
    thread::Builder::new().name("vramp processes".to_owned()).spawn(move || {
        for (mut command, done) in requests {
            // Without a receiver the child is dropped; it then finds its pipes closed.
            let _ = done.send(command.spawn());
        }
    })?;
    Ok(send)
}
