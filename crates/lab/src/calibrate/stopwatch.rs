//! A sink that records when frames arrive, and the time per frame that follows from these arrivals.
//!
//! Time that other programs take must not count. The result is therefore the smaller of two times per frame. The first
//! of the two is the time in the quicker windows of a run, where a window is a few frames: other programs can only make
//! a window slower. The second of the two is the time of the whole run without the share for which busy threads waited
//! for a processor ([`Accounts`], Linux's `schedstat`). Neither time includes the start of the run.
//!
//! Like `null`, the sink accepts frames in either space and does not read the frames. A run with too few frames has no
//! result.
//!
//! The sink is not an `app` sink, because calibration needs the time at which a frame reaches the lane. With a thread
//! that pulls from an `app` sink, the hand-over counts as well: for `pattern kind=solid` at 64x48 the same estimate is
//! 2.93 us per frame (1.09 to 2.98 in 9 runs), while the stopwatch finds 1.01 us (0.99 to 1.02).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use vramp_plan::Space;
use vramp_plan::catalog::{Entry, EntryError, Input, Work};
use vramp_runtime::{Call, Flow, FrameHandler, HandlerError, Registry, Setup, Worker};

use super::taken::Accounts;
use vramp_machine::calibrated::threads;

static ENTRY: Entry = Entry {
    name: "stopwatch",
    about: "records when frames arrive, in either space, and drops them",
    example: "pattern frames=100 ! stopwatch",
    inputs: &[Input::ANY],
    spaces: &[Space::Gpu, Space::Cpu],
    work: Work::NONE,
    blocking: false,
    ..Entry::SINK
};

/// Maximum number of recorded arrivals; later frames do not change the result.
const MOST: usize = 1 << 16;
/// The intended length of a window: shorter than the time slice that a scheduler gives other programs.
const WINDOW_NS: f64 = 1.5e6;
/// Minimum number of frames in a window, because several frames are in flight on a device and may arrive together.
const LEAST_WINDOW: usize = 6;

/// The recorded times of the latest run.
#[derive(Debug, Clone, Default)]
pub struct Stopwatch {
    notes: Arc<Mutex<FrameTimes>>,
}

#[derive(Debug, Default)]
struct FrameTimes {
    at: Vec<Instant>,
    /// The threads' accounts at the first frame.
    before: Accounts,
    /// The latest accounts, and the number of frames that had arrived by then, without the first frame.
    lately: (usize, Accounts),
}

/// How often the accounts are read; one reading takes about 50 us.
const READ_EVERY: Duration = Duration::from_millis(8);

impl Stopwatch {
    /// Adds the kind `stopwatch`, which records into this value.
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

    /// The time per frame of the latest run, in nanoseconds. `None` if the run had too few frames.
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
    // The first frames find cold caches and an empty device queue.
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
        // A frame arrives every 10 us, but after every 500 frames another program has the processor for 4 ms.
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
