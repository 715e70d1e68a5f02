//! Device loss, and errors that a device reports outside of any call.
//!
//! This module only keeps the events. The runtime reads the events and reacts.
//!
//! Invariants: a lost device stays lost. At most [`MAX_EVENTS`] unread events are kept, plus the loss itself; further
//! events are only counted.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Maximum number of unread events, because a broken driver can report an error on every call.
const MAX_EVENTS: usize = 64;

/// Set when a device that hangs is leaked.
static ABANDONED: AtomicBool = AtomicBool::new(false);

/// True if a device of this program was leaked because it hangs. It may still compute, also while the program ends.
pub fn has_abandoned_device() -> bool {
    ABANDONED.load(Ordering::Acquire)
}

/// Notes that a device is leaked.
pub(crate) fn note_abandoned() {
    ABANDONED.store(true, Ordering::Release);
}

/// The device and everything that was on the device are lost. The device accepts no more work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the device was lost ({reason}); open it again, or continue on the CPU")]
pub struct Lost {
    /// The driver's message, or vramp's own message if vramp declared the loss.
    pub reason: String,
}

/// An event that a device reported outside of any call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceEvent {
    Lost(Lost),
    OutOfMemory,
    /// An operation was refused, and no error scope was open to return the refusal to its caller.
    Refused {
        problem: String,
    },
}

#[derive(Debug, Default)]
pub(crate) struct Health {
    lost: AtomicBool,
    reason: Mutex<Option<Lost>>,
    events: Mutex<(Vec<DeviceEvent>, u64)>,
}

impl Health {
    /// Records the loss. Only the first reason is kept.
    pub(crate) fn lose(&self, reason: String) {
        let mut known = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_none() {
            let lost = Lost { reason };
            *known = Some(lost.clone());
            self.lost.store(true, Ordering::Release);
            drop(known);
            self.note(DeviceEvent::Lost(lost));
        }
    }

    pub(crate) fn note(&self, event: DeviceEvent) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        // The loss is kept even if the list is full.
        if events.0.len() < MAX_EVENTS || matches!(event, DeviceEvent::Lost(_)) {
            events.0.push(event);
        } else {
            events.1 += 1;
        }
    }

    /// Fails if the device is lost.
    pub(crate) fn check(&self) -> Result<(), Lost> {
        if !self.lost.load(Ordering::Acquire) {
            return Ok(());
        }
        let known = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        Err(known.clone().unwrap_or_else(|| Lost { reason: "no reason given".into() }))
    }

    /// The events since the last call, and how many further events were only counted.
    pub(crate) fn take(&self) -> (Vec<DeviceEvent>, u64) {
        std::mem::take(&mut *self.events.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_of_a_loss_stands_and_is_reported_once() {
        let health = Health::default();
        assert_eq!(health.check(), Ok(()));
        health.lose("unplugged".into());
        health.lose("destroyed".into());
        assert_eq!(health.check().unwrap_err().reason, "unplugged");
        assert_eq!(health.take(), (vec![DeviceEvent::Lost(Lost { reason: "unplugged".into() })], 0));
        assert_eq!(health.take(), (vec![], 0));
        assert!(health.check().is_err(), "reading events does not bring a device back");
    }

    #[test]
    fn events_are_bounded_and_the_rest_is_counted() {
        let health = Health::default();
        (0..MAX_EVENTS + 5).for_each(|_| health.note(DeviceEvent::OutOfMemory));
        health.lose("too much".into());
        let (events, more) = health.take();
        assert_eq!((events.len(), more), (MAX_EVENTS + 1, 5));
        assert!(matches!(events.last(), Some(DeviceEvent::Lost(_))));
    }
}
