//! Keeps the events of a run while the terminal shows something else, and prints them after the run.
//!
//! Keeps a bounded number of messages and counts the others. Changes of the frame size are always kept, in one line per
//! source. Otherwise a folder of images of different sizes would print one line per image.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use vramp::plan::Size;
use vramp::runtime::{Listener, RunEvent};

use super::live::{Message, message};

/// Maximum number of messages kept. The log keeps the first messages, since they explain the later ones.
const MAX_MESSAGES: usize = 200;

/// Stored messages. Clones share the same messages.
#[derive(Clone)]
pub(crate) struct EventLog {
    begun: Instant,
    entries: Arc<Mutex<LogEntries>>,
}

#[derive(Default)]
struct LogEntries {
    messages: Vec<(Duration, Message)>,
    /// Number of messages beyond the limit.
    more: usize,
    /// Size changes by source, with the time of the last change.
    resized: BTreeMap<String, (Duration, SizeChanges)>,
}

/// Counts the size changes of one source.
#[derive(Clone, Copy)]
struct SizeChanges {
    count: u64,
    first_frame: u64,
    size: Size,
}

impl EventLog {
    pub(crate) fn new() -> EventLog {
        EventLog { begun: Instant::now(), entries: Arc::default() }
    }

    pub(crate) fn listener(&self) -> Listener {
        let log = self.clone();
        Arc::new(move |event: &RunEvent| {
            if !log.count_resize(event)
                && let Some(message) = message(event)
            {
                log.add(message);
            }
        })
    }

    pub(crate) fn add(&self, message: Message) {
        let mut entries = self.lock();
        if entries.messages.len() < MAX_MESSAGES {
            entries.messages.push((self.begun.elapsed(), message));
        } else {
            entries.more += 1;
        }
    }

    pub(crate) fn count_resize(&self, event: &RunEvent) -> bool {
        let RunEvent::Replanned { handler, frame, size } = event else { return false };
        let (now, mut entries) = (self.begun.elapsed(), self.lock());
        let first = (now, SizeChanges { count: 0, first_frame: *frame, size: *size });
        let (at, changes) = entries.resized.entry(handler.clone()).or_insert(first);
        *at = now;
        changes.count += 1;
        changes.size = *size;
        true
    }

    /// The messages so far, each with the time since the log was created.
    pub(crate) fn all(&self) -> Vec<(Duration, String)> {
        let entries = self.lock();
        let messages = entries.messages.iter().map(|(at, message)| (*at, message.text().to_owned()));
        let resized = entries.resized.iter().map(|(source, (at, changes))| (*at, changes.text(source)));
        let mut all: Vec<_> = messages.chain(resized).collect();
        all.sort_by_key(|(at, _)| *at);
        all
    }

    /// Prints and removes all messages.
    pub(crate) fn print(&self) {
        let LogEntries { messages, more, resized } = std::mem::take(&mut *self.lock());
        for (_, message) in &messages {
            message.print();
        }
        if more > 0 {
            Message::Warning(format!("and {more} more")).print();
        }
        for (source, (_, changes)) in &resized {
            Message::Note(changes.text(source)).print();
        }
    }

    fn lock(&self) -> MutexGuard<'_, LogEntries> {
        // No method panics halfway through a change of the entries.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SizeChanges {
    fn text(&self, source: &str) -> String {
        let SizeChanges { count, first_frame, size } = self;
        match count {
            1 => format!("frames of {source} are {size} from frame {first_frame} on: planned again"),
            _ => format!("frames of {source} changed size {count} times, last to {size}: planned again each time"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bounded_number_is_kept_in_order_and_the_rest_is_counted() {
        let log = EventLog::new();
        (0..MAX_MESSAGES + 7).for_each(|number| log.add(Message::Warning(number.to_string())));
        let all = log.all();
        assert_eq!((all.len(), all[0].1.as_str(), all[MAX_MESSAGES - 1].1.as_str()), (MAX_MESSAGES, "0", "199"));
        assert_eq!(log.lock().more, 7);
        log.print();
        assert!(log.all().is_empty());
    }

    #[test]
    fn events_become_words_and_progress_does_not() {
        let log = EventLog::new();
        let listener = log.listener();
        listener(&RunEvent::Second(vramp::runtime::RunProgress::default()));
        listener(&RunEvent::Reloaded { handler: "glow".to_owned() });
        let words: Vec<String> = log.all().into_iter().map(|(_, words)| words).collect();
        assert_eq!(words, ["glow: reloaded"]);
    }

    #[test]
    fn many_sizes_of_one_source_are_one_line_with_their_number() {
        let log = EventLog::new();
        let listener = log.listener();
        let resize = |frame: u64| {
            let size = Size { width: 4, height: 2 + frame as u32 };
            listener(&RunEvent::Replanned { handler: "image0".into(), frame, size });
        };
        let words = || log.all().into_iter().map(|(_, words)| words).collect::<Vec<_>>();
        resize(3);
        assert_eq!(words(), ["frames of image0 are 4x5 from frame 3 on: planned again"]);
        (4..22).for_each(resize);
        assert_eq!(words(), ["frames of image0 changed size 19 times, last to 4x23: planned again each time"]);
    }
}
