//! Links: a ring between two lanes, and the wake signals that wake them.
//!
//! Owns both ends of a ring and who is told when it changes.
//! Does not wait: a lane that can do nothing waits for its own signal, which any of its links may give.
//!
//! Always: the consumer's lane is woken when something came, the producer's when there is room again.

pub(crate) mod ring;
mod sync;
pub(crate) mod wake_signal;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use vramp_plan::Policy;

use crate::link::ring::{DropReason, RingCounts, SendResult, SlotRing, StreamSlot};
use crate::link::wake_signal::WakeSignal;

/// Makes a link of this policy and depth, with the wake signals of both lanes; hands out its two ends.
pub fn link<T>(
    policy: Policy,
    depth: usize,
    producer: &WakeSignal,
    consumer: &WakeSignal,
) -> (LinkSender<T>, LinkReceiver<T>) {
    // Within a lane nobody sleeps while the other end is at work.
    let apart = !producer.is_same(consumer);
    let shared = Arc::new(LinkShared {
        ring: Mutex::new(SlotRing::new(policy, depth)),
        producer: apart.then(|| producer.clone()),
        consumer: apart.then(|| consumer.clone()),
    });
    (LinkSender { shared: Arc::clone(&shared) }, LinkReceiver { shared })
}

#[derive(Debug)]
struct LinkShared<T> {
    ring: Mutex<SlotRing<T>>,
    /// The wake signals of both lanes, where they are two.
    producer: Option<WakeSignal>,
    consumer: Option<WakeSignal>,
}

impl<T> LinkShared<T> {
    fn ring(&self) -> MutexGuard<'_, SlotRing<T>> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake_consumer(&self) {
        if let Some(signal) = &self.consumer {
            signal.notify();
        }
    }

    fn wake_producer(&self) {
        if let Some(signal) = &self.producer {
            signal.notify();
        }
    }
}

/// The producer's end.
#[derive(Debug)]
pub struct LinkSender<T> {
    shared: Arc<LinkShared<T>>,
}

impl<T> LinkSender<T> {
    /// Whether something that is sent now would be taken.
    pub fn has_room(&self) -> bool {
        self.shared.ring().has_room()
    }

    /// Whether its consumer has ended, so that whatever is sent is lost.
    pub fn is_closed(&self) -> bool {
        self.shared.ring().is_closed()
    }

    /// How many frames it would take now without making anybody wait.
    pub fn room(&self) -> usize {
        self.shared.ring().room()
    }

    /// Sends a slot; a lossless link without room hands it back.
    pub fn send(&self, slot: StreamSlot<T>) -> SendResult<T> {
        let sent = self.shared.ring().send(slot);
        if let SendResult::Taken = sent {
            self.shared.wake_consumer();
        }
        sent
    }

    /// Says that nothing up to this time will come any more, and up to when the stream is known to last.
    pub fn watermark(&self, pts_ns: i64, lasts_ns: i64) {
        self.shared.ring().watermark(pts_ns, lasts_ns);
        self.shared.wake_consumer();
    }

    /// Says that nothing will come any more, and when the stream ended.
    pub fn end(&self, end_ns: i64) {
        self.shared.ring().end(end_ns);
        self.shared.wake_consumer();
    }

    /// What the link has counted.
    pub fn counts(&self) -> RingCounts {
        self.shared.ring().counts()
    }

    /// A view of the link's counts that outlives both ends.
    pub fn observe(&self) -> LinkObserver<T> {
        LinkObserver { shared: Arc::clone(&self.shared) }
    }
}

/// Somebody who only counts.
#[derive(Debug)]
pub struct LinkObserver<T> {
    shared: Arc<LinkShared<T>>,
}

impl<T> Clone for LinkObserver<T> {
    fn clone(&self) -> LinkObserver<T> {
        LinkObserver { shared: Arc::clone(&self.shared) }
    }
}

impl<T> LinkObserver<T> {
    /// Whether both look at one link.
    pub fn is_same(&self, other: &LinkObserver<T>) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// What the link has counted.
    pub fn counts(&self) -> RingCounts {
        self.shared.ring().counts()
    }
}

/// The consumer's end.
#[derive(Debug)]
pub struct LinkReceiver<T> {
    shared: Arc<LinkShared<T>>,
}

impl<T> LinkReceiver<T> {
    /// Looks at the ring, for rules that need more than one fact at once.
    pub fn look<R>(&self, with: impl FnOnce(&SlotRing<T>) -> R) -> R {
        with(&self.shared.ring())
    }

    /// Takes the oldest slot out, or says what is known instead.
    pub fn take_or<R>(&self, otherwise: impl FnOnce(&SlotRing<T>) -> R) -> Result<StreamSlot<T>, R> {
        let mut ring = self.shared.ring();
        let slot = ring.take().ok_or_else(|| otherwise(&ring));
        drop(ring);
        if let Ok(StreamSlot::Frame { .. }) = slot {
            self.shared.wake_producer();
        }
        slot
    }

    /// Takes the oldest slot out.
    pub fn take(&self) -> Option<StreamSlot<T>> {
        let slot = self.shared.ring().take();
        if let Some(StreamSlot::Frame { .. }) = slot {
            self.shared.wake_producer();
        }
        slot
    }

    /// Takes everything up to a time out and hands back the newest frame of it, and whether a newer one was lost.
    pub fn take_up_to(&self, pts_ns: i64) -> (Option<T>, bool) {
        let (newest, lost) = self.shared.ring().take_up_to(pts_ns);
        if newest.is_some() {
            self.shared.wake_producer();
        }
        (newest, lost)
    }

    /// Says that the consumer has ended.
    pub fn close(&self) {
        self.shared.ring().close();
        self.shared.wake_producer();
    }

    /// Makes the places of those frames empty that `is_lost` says are gone, and says how many there were.
    pub fn lose(&self, reason: DropReason, is_lost: impl Fn(&T) -> bool) -> u64 {
        let lost = self.shared.ring().lose(reason, is_lost);
        self.shared.wake_producer();
        lost
    }

    /// Drops everything that waits.
    pub fn drain(&self, reason: DropReason) {
        self.shared.ring().drain(reason);
        self.shared.wake_producer();
    }

    /// What the link has counted.
    pub fn counts(&self) -> RingCounts {
        self.shared.ring().counts()
    }
}

impl<T: Clone> LinkReceiver<T> {
    /// The newest frame, which stays where it is.
    pub fn latest(&self) -> Option<T> {
        self.shared.ring().latest().cloned()
    }
}
