//! A link: a [`SlotRing`] between two nodes, and the [`WakeSignal`]s of the lanes of these nodes.
//!
//! A link wakes the consumer's lane when a slot arrives, and the producer's lane when room appears. A link never
//! blocks: an idle lane waits for its own signal, which any link of that lane may notify. If both ends are in one lane,
//! nothing is signalled.

pub(crate) mod patience;
pub(crate) mod ring;
mod sync;
pub(crate) mod wake_signal;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use vramp_plan::Policy;

use crate::link::ring::{DropReason, RingCounts, SendResult, SlotRing, StreamSlot};
use crate::link::wake_signal::WakeSignal;

/// Creates a link with the wake signals of both lanes.
pub fn link<T>(
    policy: Policy,
    depth: usize,
    producer: &WakeSignal,
    consumer: &WakeSignal,
) -> (LinkSender<T>, LinkReceiver<T>) {
    // Within one lane, neither end sleeps while the other works.
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
    /// Both signals are `None` if the ends share a lane.
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

#[derive(Debug)]
pub struct LinkSender<T> {
    shared: Arc<LinkShared<T>>,
}

impl<T> LinkSender<T> {
    /// Whether a frame sent now would be accepted.
    pub fn has_room(&self) -> bool {
        self.shared.ring().has_room()
    }

    /// Whether the consumer has ended, so that every frame sent is dropped.
    pub fn is_closed(&self) -> bool {
        self.shared.ring().is_closed()
    }

    /// How many frames can be sent now without blocking the producer.
    pub fn room(&self) -> usize {
        self.shared.ring().room()
    }

    /// Sends a slot. A full lossless link returns the slot.
    pub fn send(&self, slot: StreamSlot<T>) -> SendResult<T> {
        let sent = self.shared.ring().send(slot);
        if let SendResult::Taken = sent {
            self.shared.wake_consumer();
        }
        sent
    }

    /// Announces that nothing up to `pts_ns` will come any more, and that the stream lasts at least until `lasts_ns`.
    pub fn watermark(&self, pts_ns: i64, lasts_ns: i64) {
        self.shared.ring().watermark(pts_ns, lasts_ns);
        self.shared.wake_consumer();
    }

    /// Announces the end of the stream, at this time.
    pub fn end(&self, end_ns: i64) {
        self.shared.ring().end(end_ns);
        self.shared.wake_consumer();
    }

    pub fn counts(&self) -> RingCounts {
        self.shared.ring().counts()
    }

    /// A view of the link's counts that outlives both ends.
    pub fn observe(&self) -> LinkObserver<T> {
        LinkObserver { shared: Arc::clone(&self.shared) }
    }
}

/// A read-only view of a link's counts.
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
    /// Whether both observers view the same link.
    pub fn is_same(&self, other: &LinkObserver<T>) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    pub fn counts(&self) -> RingCounts {
        self.shared.ring().counts()
    }
}

#[derive(Debug)]
pub struct LinkReceiver<T> {
    shared: Arc<LinkShared<T>>,
}

impl<T> LinkReceiver<T> {
    /// Reads several facts of the ring under one lock.
    pub fn look<R>(&self, with: impl FnOnce(&SlotRing<T>) -> R) -> R {
        with(&self.shared.ring())
    }

    /// Takes the oldest slot, or evaluates `otherwise` on the ring under the same lock.
    pub fn take_or<R>(&self, otherwise: impl FnOnce(&SlotRing<T>) -> R) -> Result<StreamSlot<T>, R> {
        let mut ring = self.shared.ring();
        let slot = ring.take().ok_or_else(|| otherwise(&ring));
        drop(ring);
        if let Ok(StreamSlot::Frame { .. }) = slot {
            self.shared.wake_producer();
        }
        slot
    }

    pub fn take(&self) -> Option<StreamSlot<T>> {
        let slot = self.shared.ring().take();
        if let Some(StreamSlot::Frame { .. }) = slot {
            self.shared.wake_producer();
        }
        slot
    }

    /// Takes all slots up to a time. Returns the newest frame among them, and whether a device loss took a frame that
    /// was newer than the returned frame.
    pub fn take_up_to(&self, pts_ns: i64) -> (Option<T>, bool) {
        let (newest, lost) = self.shared.ring().take_up_to(pts_ns);
        if newest.is_some() {
            self.shared.wake_producer();
        }
        (newest, lost)
    }

    /// Puts a slot into the ring before its producer sends anything. Returns the slot if the ring is full.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn put_first(&self, slot: StreamSlot<T>) -> Option<StreamSlot<T>> {
        match self.shared.ring().send(slot) {
            SendResult::Full(slot) => Some(slot),
            SendResult::Taken => None,
        }
    }

    /// Marks the consumer as ended.
    pub fn close(&self) {
        self.shared.ring().close();
        self.shared.wake_producer();
    }

    /// Empties the slots of the frames that `is_lost` selects and returns their number.
    pub fn lose(&self, reason: DropReason, is_lost: impl Fn(&T) -> bool) -> u64 {
        let lost = self.shared.ring().lose(reason, is_lost);
        self.shared.wake_producer();
        lost
    }

    /// Drops all queued frames.
    pub fn drain(&self, reason: DropReason) {
        self.shared.ring().drain(reason);
        self.shared.wake_producer();
    }

    pub fn counts(&self) -> RingCounts {
        self.shared.ring().counts()
    }
}

impl<T: Clone> LinkReceiver<T> {
    /// The newest frame; it stays in the ring.
    pub fn latest(&self) -> Option<T> {
        self.shared.ring().latest().cloned()
    }
}
