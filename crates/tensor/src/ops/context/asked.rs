//! One download, from its asking to its bytes.
//!
//! Owns the waiting for it, blocking or awaited.
//! Does not copy: whoever asked is shown the bytes where the device has put them.
//!
//! Always: it ends, with the bytes or with an error, within the time that the device may take.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use vramp_gpu::Readbacks;

use super::arrivals::{Arrivals, ArrivedDownload};
use crate::ops::error::TensorError;

/// A download that was asked for.
pub(crate) struct PendingDownload {
    op: &'static str,
    ticket: u64,
    limit: Duration,
    since: Instant,
    readbacks: Readbacks,
    arrivals: Arc<Arrivals>,
    /// Whether it was taken, or nobody wants it any more; a thread that waits for it looks here.
    is_over: Arc<AtomicBool>,
}

impl PendingDownload {
    pub(super) fn now(
        op: &'static str,
        ticket: u64,
        limit: Duration,
        readbacks: Readbacks,
        arrivals: Arc<Arrivals>,
    ) -> PendingDownload {
        PendingDownload { op, ticket, limit, since: Instant::now(), readbacks, arrivals, is_over: Arc::default() }
    }

    /// Waits for it and shows its bytes.
    pub(crate) fn wait<T>(self, show: impl FnOnce(&[u8]) -> T) -> Result<T, TensorError> {
        self.wait_for_parts(|parts| show(parts.bytes(0)))
    }

    /// Waits for it and shows the bytes of its parts, by their number.
    pub(crate) fn wait_for_parts<T>(self, show: impl FnOnce(&DownloadedParts<'_>) -> T) -> Result<T, TensorError> {
        loop {
            if let Some(arrival) = self.arrivals.take(self.ticket) {
                return self.came(&arrival).map(|()| show(&DownloadedParts(&arrival)));
            }
            let left = self.left()?;
            if !self.arrivals.receive(self.op, self.readbacks.wait(left), false)? {
                // Somebody else has taken it, and is about to deliver it.
                self.arrivals.wait_a_moment();
            }
        }
    }

    /// Shows its bytes if they are there; otherwise whoever is woken may ask again.
    fn poll<T>(&self, waker: &Waker, show: impl FnOnce(&[u8]) -> T) -> Result<Option<T>, TensorError> {
        while !self.arrivals.is_there(self.ticket) {
            if !self.arrivals.receive(self.op, self.readbacks.take(), false)? {
                break;
            }
        }
        if let Some(arrival) = self.arrivals.take_or_wake(self.ticket, waker) {
            return self.came(&arrival).map(|()| Some(show(arrival.bytes(0))));
        }
        self.left().map(|_| None)
    }

    /// It was taken; an error where it is one.
    fn came(&self, arrival: &ArrivedDownload) -> Result<(), TensorError> {
        self.is_over.store(true, Ordering::Release);
        match arrival {
            ArrivedDownload::Failed(error) => Err(error.clone()),
            ArrivedDownload::Mapped(_) | ArrivedDownload::Copied(_) => Ok(()),
        }
    }

    fn left(&self) -> Result<Duration, TensorError> {
        let left = self.limit.saturating_sub(self.since.elapsed());
        if left.is_zero() {
            let reason = format!("a download did not arrive within {} ms", self.limit.as_millis());
            return Err(TensorError::Lost { op: self.op, reason });
        }
        Ok(left)
    }

    /// The same, to be awaited. A thread waits for the device on its behalf, from the first time that it is polled.
    pub(crate) fn later<T>(
        self,
        show: impl FnOnce(&[u8]) -> T + Unpin,
    ) -> impl Future<Output = Result<T, TensorError>> {
        DownloadFuture { asked: self, show: Some(show), helped: false }
    }
}

/// What has come down, by parts.
pub(crate) struct DownloadedParts<'a>(&'a ArrivedDownload);

impl DownloadedParts<'_> {
    pub(crate) fn bytes(&self, part: usize) -> &[u8] {
        self.0.bytes(part)
    }
}

impl Drop for PendingDownload {
    fn drop(&mut self) {
        let has_come = self.is_over.swap(true, Ordering::AcqRel);
        self.arrivals.ignore(self.ticket, has_come);
    }
}

struct DownloadFuture<F> {
    asked: PendingDownload,
    show: Option<F>,
    helped: bool,
}

impl<T, F: FnOnce(&[u8]) -> T + Unpin> Future for DownloadFuture<F> {
    type Output = Result<T, TensorError>;

    fn poll(mut self: Pin<&mut Self>, task: &mut std::task::Context<'_>) -> Poll<Self::Output> {
        let DownloadFuture { asked, show, helped } = &mut *self;
        let Some(made) = show.take() else {
            let problem = "it was awaited twice".to_owned();
            return Poll::Ready(Err(TensorError::Setting { op: asked.op, problem }));
        };
        let mut kept = Some(made);
        let answer = asked.poll(task.waker(), |bytes| kept.take().map(|show| show(bytes)));
        *show = kept;
        match answer {
            Ok(Some(Some(value))) => Poll::Ready(Ok(value)),
            Ok(_) => {
                if !*helped {
                    *helped = true;
                    wait_elsewhere(asked);
                }
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

/// Waits on a thread until this download has arrived or cannot any more; whoever awaits it is woken either way.
fn wait_elsewhere(asked: &PendingDownload) {
    let (readbacks, arrivals, is_over) =
        (asked.readbacks.clone(), Arc::clone(&asked.arrivals), Arc::clone(&asked.is_over));
    let (op, ticket, limit) = (asked.op, asked.ticket, asked.limit);
    let wait = move || {
        let started = Instant::now();
        let goes_on = || !is_over.load(Ordering::Acquire) && !arrivals.is_there(ticket) && started.elapsed() < limit;
        while goes_on() {
            match arrivals.receive(op, readbacks.wait(limit), false) {
                Ok(true) => {}
                Ok(false) => arrivals.wait_a_moment(),
                Err(_) => break,
            }
        }
        arrivals.wake(ticket);
    };
    let waiting = std::thread::Builder::new().name("vramp tensor read".to_owned());
    if waiting.spawn(wait).is_err() {
        // Without a thread it is polled again and again, which is slower and not wrong.
        asked.arrivals.wake(asked.ticket);
    }
}
