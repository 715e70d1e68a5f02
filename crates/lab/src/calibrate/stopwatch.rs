//! A sink that notes when frames come, and what that says about their time.
//!
//! Owns the notes of one run, and how a busy machine is seen through: the time is that of the quicker windows of a run,
//! a few frames each, since whatever else runs only ever adds to it, and starting is not a part of it; or that of the
//! whole, without the time for which busy threads were kept waiting, whichever is less.
//! Does not look at a frame; like `null`, it takes them on either side.
//!
//! Always: a run with too few frames says nothing.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use vramp_plan::Space;
use vramp_plan::catalog::{Entry, EntryError, Input, Work};
use vramp_runtime::{Call, Flow, FrameHandler, HandlerError, Registry, Setup, Worker};

use super::taken::Accounts;
use vramp_machine::calibrated::threads;

static ENTRY: Entry = Entry {
    name: "stopwatch",
    about: "notes when frames come, wherever they are, and drops them",
    example: "pattern frames=100 ! stopwatch",
    inputs: &[Input::ANY],
    spaces: &[Space::Gpu, Space::Cpu],
    work: Work::NONE,
    blocking: false,
    ..Entry::SINK
};

/// Frames whose times are noted; what comes behind is as the rest.
const MOST: usize = 1 << 16;
/// How long a window should be: shorter than what a scheduler gives others at a time.
const WINDOW_NS: f64 = 1.5e6;
/// And how many frames at least: several are under way on a device, and may come at once.
const LEAST_WINDOW: usize = 6;

/// The notes of the run that goes on.
#[derive(Debug, Clone, Default)]
pub struct Stopwatch {
    notes: Arc<Mutex<FrameTimes>>,
}

#[derive(Debug, Default)]
struct FrameTimes {
    /// When each frame came.
    at: Vec<Instant>,
    /// The accounts of threads when the first one came, and lately, with how many had come.
    before: Accounts,
    lately: (usize, Accounts),
}

/// How often the accounts are read: it takes some 50 us.
const READ_EVERY: Duration = Duration::from_millis(8);

impl Stopwatch {
    /// Adds the kind `stopwatch`, whose notes these are.
    pub fn add_to(&self, registry: &mut Registry) -> Result<(), EntryError> {
        let notes = Arc::clone(&self.notes);
        registry.add(&ENTRY, move |_: &Setup<'_>| {
            let notes = Arc::clone(&notes);
            let mut all = notes.lock().unwrap_or_else(PoisonError::into_inner);
            all.at.clear();
            all.at.reserve(MOST);
            drop(all);
            Ok(Worker::frames(Notes { notes }))
        })
    }

    /// The time per frame of the run that was last, in nanoseconds; none where it had too few.
    pub fn frame_ns(&self) -> Option<f64> {
        let notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        let first = *notes.at.first()?;
        let at_ns: Vec<f64> = notes.at.iter().map(|note| note.duration_since(first).as_nanos() as f64).collect();
        let quick_ns = quick_ns(&at_ns)?;
        let (frames, accounts) = &notes.lately;
        let Some(elapsed_ns) = at_ns.get(*frames).filter(|_| *frames > LEAST_WINDOW) else { return Some(quick_ns) };
        let share = accounts.share_since(&notes.before, *elapsed_ns, threads());
        Some(quick_ns.min(elapsed_ns * share / *frames as f64))
    }
}

/// The time per frame in the quicker windows of these arrivals.
fn quick_ns(at_ns: &[f64]) -> Option<f64> {
    // The first ones find everything cold, and the device's queue empty.
    let skipped = (at_ns.len() / 8).clamp(2, 64);
    let steady = at_ns.get(skipped..).filter(|steady| steady.len() > 2)?;
    let intervals = steady.len() - 1;
    let mean_ns = (steady[intervals] - steady[0]) / intervals as f64;
    let length = ((WINDOW_NS / mean_ns.max(1.0)) as usize).max(LEAST_WINDOW).min(intervals);
    let starts = (0..=intervals - length).step_by((length / 2).max(1));
    let mut windows: Vec<f64> = starts.map(|at| (steady[at + length] - steady[at]) / length as f64).collect();
    windows.sort_by(f64::total_cmp);
    windows.get(windows.len() / 8).copied()
}

struct Notes {
    notes: Arc<Mutex<FrameTimes>>,
}

impl FrameHandler for Notes {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        drop(call.take(0));
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if notes.at.is_empty() {
            notes.before = Accounts::read();
            notes.lately = (0, Accounts::default());
        }
        if notes.at.len() < MOST {
            let now = Instant::now();
            notes.at.push(now);
            let (frames, _) = notes.lately;
            if now.duration_since(notes.at[frames]) >= READ_EVERY {
                notes.lately = (notes.at.len() - 1, Accounts::read());
            }
        }
        Ok(Flow::Produced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_of_a_busy_machine_do_not_count() {
        // A frame every 10 us; somebody else has the processor for 4 ms after every 500 frames.
        let at_ns: Vec<f64> = (0..10_000).map(|n| f64::from(n) * 1e4 + f64::from(n / 500) * 4e6).collect();
        let ns = quick_ns(&at_ns).unwrap();
        assert!((ns - 1e4).abs() < 1.0, "{ns}");
    }

    #[test]
    fn too_few_frames_say_nothing() {
        assert_eq!(quick_ns(&[]), None);
        assert_eq!(quick_ns(&[0.0, 1.0, 2.0]), None);
    }
}
