//! Progress of repeated runs on standard error.
//!
//! A terminal gets a live line if the runs take longer than a moment. A pipe gets lines only with `-v`.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::args::ModelRunArgs;
use crate::page;

/// Shorter runs show no progress.
const MOMENT: Duration = Duration::from_millis(500);
/// The interval of lines in a pipe.
const INTERVAL: Duration = Duration::from_secs(2);

pub(super) struct Progress {
    bar: Option<ProgressBar>,
    lines: bool,
    of: usize,
    shown: Instant,
}

impl Progress {
    pub(super) fn of(repetitions: usize, args: &ModelRunArgs) -> Progress {
        let bar = (page::is_watched() && !args.quiet).then(|| {
            let bar = ProgressBar::with_draw_target(Some(repetitions as u64), ProgressDrawTarget::hidden());
            let style = ProgressStyle::with_template("{bar:24} {pos:>3} of {len}  {msg}");
            bar.set_style(style.expect("the template above is well formed"));
            bar
        });
        Progress { lines: bar.is_none() && args.verbose, bar, of: repetitions, shown: Instant::now() }
    }

    /// Shows that this many runs are done.
    pub(super) fn done(&mut self, runs: usize, newest_ms: f64) {
        let words = format!("{newest_ms:.2} ms");
        match &self.bar {
            Some(bar) => {
                if bar.is_hidden() && self.shown.elapsed() > MOMENT {
                    bar.set_draw_target(ProgressDrawTarget::stderr());
                }
                bar.set_message(words);
                bar.set_position(runs as u64);
            }
            None if self.lines && self.shown.elapsed() > INTERVAL => {
                page::words(&format!("{runs:>3} of {}  {words}", self.of));
                self.shown = Instant::now();
            }
            None => {}
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
