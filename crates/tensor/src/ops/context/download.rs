//! One download, from the request to the arrival of its bytes, blocking or awaited. The requester reads the bytes in
//! the device's mapped memory, without a copy.
//!
//! Invariant: a download ends with its bytes or with an error, within the device's time limit.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use vramp_gpu::Readbacks;

use super::arrivals::{Arrivals, ArrivedDownload};
use crate::ops::error::TensorError;

/// A download that was requested.
pub(crate) struct PendingDownload {
    op: &'static str,
    ticket: u64,
    limit: Duration,
    since: Instant,
    readbacks: Readbacks,
    arrivals: Arc<Arrivals>,
    /// True once the download was taken or is no longer wanted. The thread that waits for the download checks this
    /// flag.
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

    /// Waits for the download and passes its bytes to `show`.
    pub(crate) fn wait<T>(self, show: impl FnOnce(&[u8]) -> T) -> Result<T, TensorError> {
        self.wait_for_parts(|parts| show(parts.bytes(0)))
    }

    /// Waits for the download and passes its parts to `show`.
    pub(crate) fn wait_for_parts<T>(self, show: impl FnOnce(&DownloadedParts<'_>) -> T) -> Result<T, TensorError> {
        loop {
            if let Some(arrival) = self.arrivals.take(self.ticket) {
                return self.came(&arrival).map(|()| show(&DownloadedParts(&arrival)));
            }
            let left = self.left()?;
            if !self.arrivals.receive(self.op, self.readbacks.wait(left), false)? {
                // Another thread has received the download and is about to deliver it.
                self.arrivals.wait_a_moment();
            }
        }
    }

    /// Passes the bytes to `show` if they have arrived; otherwise registers the waker.
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

    /// Marks the download as taken. Fails if the download failed.
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

    /// The download as a future. From the first poll on, a separate thread waits for the device on behalf of the
    /// future.
    pub(crate) fn later<T>(
        self,
        show: impl FnOnce(&[u8]) -> T + Unpin,
    ) -> impl Future<Output = Result<T, TensorError>> {
        DownloadFuture { pending: self, show: Some(show), helped: false }
    }
}

/// The bytes of a download, by part.
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
    pending: PendingDownload,
    show: Option<F>,
    helped: bool,
}

impl<T, F: FnOnce(&[u8]) -> T + Unpin> Future for DownloadFuture<F> {
    type Output = Result<T, TensorError>;

    fn poll(mut self: Pin<&mut Self>, task: &mut std::task::Context<'_>) -> Poll<Self::Output> {
        let DownloadFuture { pending, show, helped } = &mut *self;
        let Some(made) = show.take() else {
            let problem = "the future was polled after it ended".to_owned();
            return Poll::Ready(Err(TensorError::Setting { op: pending.op, problem }));
        };
        let mut kept = Some(made);
        let answer = pending.poll(task.waker(), |bytes| kept.take().map(|show| show(bytes)));
        *show = kept;
        match answer {
            Ok(Some(Some(value))) => Poll::Ready(Ok(value)),
            Ok(_) => {
                if !*helped {
                    *helped = true;
                    wait_elsewhere(pending);
                }
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

/// Starts a thread that waits until the download arrives or fails, and then wakes the task.
fn wait_elsewhere(pending: &PendingDownload) {
    let (readbacks, arrivals, is_over) =
        (pending.readbacks.clone(), Arc::clone(&pending.arrivals), Arc::clone(&pending.is_over));
    let (op, ticket, limit) = (pending.op, pending.ticket, pending.limit);
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
        // If no thread could be started, the task polls repeatedly, which is slower but correct.
        pending.arrivals.wake(pending.ticket);
    }
}
