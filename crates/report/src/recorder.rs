//! Collects during a run what its report does not have: a timeline of frames, samples of memory, and events.
//!
//! Everything is bounded: the first and the last spans of each lane, at most 512 samples, and the first 200 events. The
//! times of events are those of the watching thread, to within a few milliseconds.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use vramp_runtime::observe::{RunDistributions, RunSample};
use vramp_runtime::{Listener, RunEvent, Trace, Watch};

use crate::timeline::Timeline;

/// Spans that are kept from each end of a track. A page shows at most as many.
const SPANS: usize = 2048;
const MOST_EVENTS: usize = 200;

/// Records a run for a [`Page`](crate::Page). Clones share what they record.
#[derive(Debug, Clone)]
pub struct Recorder {
    trace: Trace,
    events: Arc<Mutex<EventList>>,
}

#[derive(Debug, Default)]
struct EventList {
    all: Vec<RecordedEvent>,
    left_out: u64,
}

/// Something that happened during the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct RecordedEvent {
    pub(crate) at_ns: u64,
    #[serde(rename = "warning")]
    pub(crate) is_warning: bool,
    pub(crate) text: String,
    /// Whether the device was lost.
    #[serde(rename = "loss")]
    pub(crate) is_loss: bool,
}

/// What was recorded of a run.
#[derive(Debug, Clone)]
pub struct RunRecord {
    pub(crate) distributions: RunDistributions,
    pub(crate) samples: Vec<RunSample>,
    pub(crate) timeline: Timeline,
    pub(crate) events: Vec<RecordedEvent>,
    pub(crate) events_left_out: u64,
}

impl Default for Recorder {
    fn default() -> Recorder {
        Recorder::new()
    }
}

impl Recorder {
    pub fn new() -> Recorder {
        Recorder::on(&Trace::keeping_ends(SPANS, SPANS))
    }

    /// Records with a trace that the program needs for itself.
    pub fn on(trace: &Trace) -> Recorder {
        Recorder { trace: trace.clone(), events: Arc::default() }
    }

    /// The timeline to give to the builder of the pipeline.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// The listener to give to the builder of the pipeline.
    pub fn listener(&self) -> Listener {
        let own = self.clone();
        Arc::new(move |event: &RunEvent| own.hear(event))
    }

    /// A listener that also passes every event on to another listener.
    pub fn listener_before(&self, next: Listener) -> Listener {
        let own = self.clone();
        Arc::new(move |event: &RunEvent| {
            own.hear(event);
            next(event);
        })
    }

    /// What was recorded, after the run. The watch is that of the pipeline.
    pub fn record(&self, watch: &Watch) -> RunRecord {
        let events = self.lock();
        RunRecord {
            distributions: watch.distributions(),
            samples: self.trace.samples(),
            timeline: Timeline::of(&self.trace.tracks()),
            events: events.all.clone(),
            events_left_out: events.left_out,
        }
    }

    fn hear(&self, event: &RunEvent) {
        let text = match event {
            RunEvent::Replanned { handler, frame, size } => {
                Some(format!("frames of {handler} are {size} from frame {frame} on: planned again"))
            }
            _ => event.words(),
        };
        let Some(text) = text else { return };
        let mut events = self.lock();
        if events.all.len() == MOST_EVENTS {
            events.left_out += 1;
            return;
        }
        let (is_warning, is_loss) = (event.is_warning(), matches!(event, RunEvent::DeviceLost { .. }));
        events.all.push(RecordedEvent { at_ns: self.trace.now().as_nanos() as u64, is_warning, text, is_loss });
    }

    fn lock(&self) -> MutexGuard<'_, EventList> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bounded_number_of_events_is_kept_and_the_rest_is_counted() {
        let recorder = Recorder::new();
        let heard = Arc::new(Mutex::new(0));
        let count = Arc::clone(&heard);
        let listener = recorder.listener_before(Arc::new(move |_| *count.lock().unwrap() += 1));
        for _ in 0..MOST_EVENTS + 5 {
            listener(&RunEvent::Reloaded { handler: "glow".to_owned() });
        }
        let events = recorder.lock();
        assert_eq!((events.all.len(), events.left_out, *heard.lock().unwrap()), (MOST_EVENTS, 5, MOST_EVENTS + 5));
        assert_eq!(events.all[0].text, "glow: reloaded");
    }
}
