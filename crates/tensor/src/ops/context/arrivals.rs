//! Downloads that have arrived and were not read yet. A thread that waits for the device may receive a download that
//! another thread has requested. The receiver leaves the download here for the requester. Nothing here waits for the
//! device.
//!
//! Invariant: a download is kept until its requester takes it, and dropped at once if the requester no longer wants it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use vramp_gpu::{Arrived, ReadbackError};

use crate::ops::error::{DeviceResult, TensorError};

/// How long to wait for a thread that has received a download and is about to deliver it.
const MOMENT: Duration = Duration::from_millis(1);

#[derive(Default)]
pub(super) struct Arrivals {
    state: Mutex<ArrivalState>,
    news: Condvar,
}

#[derive(Default)]
struct ArrivalState {
    there: BTreeMap<u64, ArrivedDownload>,
    wakers: BTreeMap<u64, Waker>,
    /// Tickets of downloads in flight that are no longer wanted.
    ignored: BTreeSet<u64>,
}

pub(super) enum ArrivedDownload {
    /// In the device's mapped memory. Each mapped download occupies one of few readback slots.
    Mapped(Arrived),
    /// Copied to the host to free the slot; one vector per part.
    Copied(Vec<Vec<u8>>),
    Failed(TensorError),
}

impl ArrivedDownload {
    /// The bytes of one part.
    pub(super) fn bytes(&self, part: usize) -> &[u8] {
        match self {
            ArrivedDownload::Failed(_) => &[],
            ArrivedDownload::Mapped(arrived) => arrived.bytes(part),
            ArrivedDownload::Copied(parts) => &parts[part],
        }
    }

    fn copied(arrived: &Arrived) -> ArrivedDownload {
        ArrivedDownload::Copied((0..arrived.len()).map(|part| arrived.bytes(part).to_vec()).collect())
    }
}

impl Arrivals {
    /// Keeps a received download, or its failure, for its requester. Returns false if nothing was received.
    pub(super) fn receive(
        &self,
        op: &'static str,
        received: Result<Option<Arrived>, ReadbackError>,
        copy: bool,
    ) -> Result<bool, TensorError> {
        match received {
            Ok(None) => Ok(false),
            Ok(Some(arrived)) => {
                self.deliver(arrived, copy);
                Ok(true)
            }
            Err(ReadbackError::NotMapped { ticket, .. }) => {
                self.keep(
                    ticket,
                    ArrivedDownload::Failed(received.of(op).err().unwrap_or(TensorError::Foreign { op })),
                );
                Ok(true)
            }
            Err(_) => received.of(op).map(|_| true),
        }
    }

    /// Keeps a download for its requester.
    pub(super) fn deliver(&self, arrived: Arrived, copy: bool) {
        let ticket = arrived.ticket();
        let arrival = if copy { ArrivedDownload::copied(&arrived) } else { ArrivedDownload::Mapped(arrived) };
        self.keep(ticket, arrival);
    }

    fn keep(&self, ticket: u64, arrival: ArrivedDownload) {
        let mut state = self.state();
        if state.ignored.remove(&ticket) {
            return;
        }
        state.there.insert(ticket, arrival);
        let waker = state.wakers.remove(&ticket);
        drop(state);
        self.news.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(super) fn is_there(&self, ticket: u64) -> bool {
        self.state().there.contains_key(&ticket)
    }

    pub(super) fn take(&self, ticket: u64) -> Option<ArrivedDownload> {
        self.state().there.remove(&ticket)
    }

    /// Takes the download, or registers the waker.
    pub(super) fn take_or_wake(&self, ticket: u64, waker: &Waker) -> Option<ArrivedDownload> {
        let mut state = self.state();
        let arrival = state.there.remove(&ticket);
        if arrival.is_none() {
            state.wakers.insert(ticket, waker.clone());
        }
        arrival
    }

    pub(super) fn wake(&self, ticket: u64) {
        let waker = self.state().wakers.remove(&ticket);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Marks a download as no longer wanted.
    pub(super) fn ignore(&self, ticket: u64, has_come: bool) {
        let mut state = self.state();
        state.wakers.remove(&ticket);
        let dropped = state.there.remove(&ticket);
        if dropped.is_none() && !has_come {
            state.ignored.insert(ticket);
        }
        drop(state);
        drop(dropped);
    }

    /// Copies mapped downloads to the host, which frees their slots for other downloads.
    pub(super) fn make_room(&self) {
        for arrival in self.state().there.values_mut() {
            if let ArrivedDownload::Mapped(arrived) = arrival {
                *arrival = ArrivedDownload::copied(arrived);
            }
        }
    }

    pub(super) fn wait_a_moment(&self) {
        let state = self.state();
        drop(self.news.wait_timeout(state, MOMENT));
    }

    fn state(&self) -> MutexGuard<'_, ArrivalState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
