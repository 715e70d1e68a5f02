//! Words that wait while something else has the terminal.
//!
//! Owns what happened meanwhile, in order, with its time.
//! Does not show it: a view may, and the end of a run prints it.
//!
//! Always: it holds a bounded number of them, and says how many more there were.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use vramp::runtime::{Listener, RunEvent};

use super::live::wording;
use crate::page;

/// How many are kept: the first ones, which explain the others.
const MOST: usize = 200;

/// What was said, for later. Clones share it.
#[derive(Clone)]
pub(crate) struct Held {
    begun: Instant,
    said: Arc<Mutex<Said>>,
}

#[derive(Default)]
struct Said {
    words: Vec<(Duration, String)>,
    more: usize,
}

impl Held {
    /// Nothing yet.
    pub(crate) fn new() -> Held {
        Held { begun: Instant::now(), said: Arc::default() }
    }

    /// What a session tells its events to.
    pub(crate) fn listener(&self) -> Listener {
        let held = self.clone();
        Arc::new(move |event: &RunEvent| {
            if let Some(words) = wording(event) {
                held.add(words);
            }
        })
    }

    /// Keeps words.
    pub(crate) fn add(&self, words: String) {
        let mut said = self.lock();
        if said.words.len() < MOST {
            said.words.push((self.begun.elapsed(), words));
        } else {
            said.more += 1;
        }
    }

    /// What was said so far, with the time since this was made.
    pub(crate) fn all(&self) -> Vec<(Duration, String)> {
        self.lock().words.clone()
    }

    /// Prints all of it as warnings, and forgets it.
    pub(crate) fn print(&self) {
        let Said { words, more } = std::mem::take(&mut *self.lock());
        for (_, words) in &words {
            page::warning(words);
        }
        if more > 0 {
            page::warning(&format!("and {more} more"));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Said> {
        // Nothing is half-said while it is held.
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bounded_number_is_kept_in_order_and_the_rest_is_counted() {
        let held = Held::new();
        (0..MOST + 7).for_each(|number| held.add(number.to_string()));
        let all = held.all();
        assert_eq!((all.len(), all[0].1.as_str(), all[MOST - 1].1.as_str()), (MOST, "0", "199"));
        assert_eq!(held.lock().more, 7);
        held.print();
        assert!(held.all().is_empty());
    }

    #[test]
    fn events_become_words_and_progress_does_not() {
        let held = Held::new();
        let listener = held.listener();
        listener(&RunEvent::Second(vramp::runtime::RunProgress::default()));
        listener(&RunEvent::Reloaded { handler: "glow".to_owned() });
        let words: Vec<String> = held.all().into_iter().map(|(_, words)| words).collect();
        assert_eq!(words, ["glow: reloaded"]);
    }
}
