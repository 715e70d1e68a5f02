//! Whether the device is still there, and what it complained about.
//!
//! Owns the events that a device reports by itself: its loss, and errors that nobody waited for.
//! Does not react to them: the runtime reads the events and decides.
//!
//! Always: a device that was lost stays lost; at most [`MOST_EVENTS`] events wait, later ones are counted only.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Events that wait to be read; a broken driver can complain once per call.
const MOST_EVENTS: usize = 64;

/// The device is gone: what was on it is lost, and it takes no more work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the device was lost ({reason}); open it again, or go on with the CPU")]
pub struct Lost {
    /// Why, as far as the driver says.
    pub reason: String,
}

/// Something that a device reported by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceEvent {
    /// It is gone.
    Lost(Lost),
    /// It had no memory left for something.
    OutOfMemory,
    /// It refused something, outside of any call that could have said so.
    Refused {
        /// What it says.
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
    /// Notes the loss; the first reason stands.
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
        // The loss is never crowded out.
        if events.0.len() < MOST_EVENTS || matches!(event, DeviceEvent::Lost(_)) {
            events.0.push(event);
        } else {
            events.1 += 1;
        }
    }

    /// An error unless the device is there.
    pub(crate) fn check(&self) -> Result<(), Lost> {
        if !self.lost.load(Ordering::Acquire) {
            return Ok(());
        }
        let known = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        Err(known.clone().unwrap_or_else(|| Lost { reason: "no reason given".into() }))
    }

    /// The events since the last call, and how many more there were.
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
        (0..MOST_EVENTS + 5).for_each(|_| health.note(DeviceEvent::OutOfMemory));
        health.lose("too much".into());
        let (events, more) = health.take();
        assert_eq!((events.len(), more), (MOST_EVENTS + 1, 5));
        assert!(matches!(events.last(), Some(DeviceEvent::Lost(_))));
    }
}
