//! A Unix socket for control lines: only its owner may connect, and several clients may be connected at once.
//!
//! A socket that no program listens at is replaced; a socket that another run listens at, or a file that is not a
//! socket, is refused. The socket is removed after the run.

use std::io::{self, BufReader, Write as _};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, anyhow, bail};
use rustix::fs::Mode;

use super::Desk;
use super::lines::Lines;

/// The first line that a client reads.
const GREETING: &str = "vramp control 1";

/// Clients that may be connected at once.
const MOST_CLIENTS: usize = 16;

pub(super) struct Socket {
    path: PathBuf,
    listener: UnixListener,
}

impl Socket {
    pub(super) fn bind(path: &Path) -> anyhow::Result<Socket> {
        let shown = path.display();
        match path.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(|| format!("--control {shown}")),
            Ok(found) if !found.file_type().is_socket() => {
                bail!("--control {shown}: there is a file that is not a socket; choose another path")
            }
            Ok(_) => match UnixStream::connect(path) {
                Ok(_) => bail!("--control {shown}: another program listens there; choose another path"),
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    std::fs::remove_file(path).with_context(|| format!("--control {shown}"))?;
                }
                Err(error) => return Err(error).with_context(|| format!("--control {shown}")),
            },
        }
        // The mode of a socket is what the process's mask leaves. No other thread creates files before the run.
        let mask = rustix::process::umask(Mode::from_raw_mode(0o177));
        let bound = UnixListener::bind(path);
        rustix::process::umask(mask);
        let listener = bound.map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput => {
                anyhow!("--control {shown}: a socket's path has at most about 100 bytes; choose a shorter path")
            }
            _ => anyhow::Error::new(error).context(format!("--control {shown}")),
        })?;
        Ok(Socket { path: path.to_owned(), listener })
    }

    /// Accepts clients on a thread of its own.
    pub(super) fn serve(&self, desk: &Arc<Desk>) -> io::Result<()> {
        let (listener, desk) = (self.listener.try_clone()?, Arc::clone(desk));
        let clients = Arc::new(AtomicUsize::new(0));
        let accept = move || {
            for client in listener.incoming() {
                let Ok(client) = client else {
                    // For example because the process has no file descriptor left. Clients may leave meanwhile.
                    std::thread::sleep(std::time::Duration::from_millis(100));
                    continue;
                };
                let place = Place::take(&clients);
                let desk = Arc::clone(&desk);
                // A client that no thread can be started for is disconnected.
                let _ = std::thread::Builder::new().name("control client".to_owned()).spawn(move || {
                    // A client that has gone ends its thread.
                    let _ = attend(client, &desk, place.as_ref());
                });
            }
        };
        std::thread::Builder::new().name("control".to_owned()).spawn(accept).map(drop)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // If the path is gone already, there is nothing to remove.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn attend(mut client: UnixStream, desk: &Desk, place: Option<&Place>) -> io::Result<()> {
    if place.is_none() {
        return writeln!(client, "error: {MOST_CLIENTS} clients are connected already");
    }
    writeln!(client, "{GREETING}")?;
    let input = BufReader::new(client.try_clone()?);
    for line in Lines::new(input) {
        writeln!(client, "{}", desk.answer(line))?;
    }
    Ok(())
}

/// One of the places for clients; returned when dropped.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(clients: &Arc<AtomicUsize>) -> Option<Place> {
        let taken = clients.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| (n < MOST_CLIENTS).then_some(n + 1));
        taken.ok().map(|_| Place(Arc::clone(clients)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
