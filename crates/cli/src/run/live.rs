//! Prints progress and messages of a run on standard error: as a live line on a terminal, otherwise as plain lines. An
//! error that ends a run is the result of the run, and is not printed here.
//!
//! Invariants: at most one plain line of progress is printed per second. Messages never break the live line. If a sink
//! draws on the terminal, there is no progress, and messages are printed after the run. A quiet run prints nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use vramp::plan::catalog::Family;
use vramp::plan::{Graph, Space};
use vramp::runtime::{Listener, RunEvent, RunProgress};

use super::event_log::EventLog;
use crate::page;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Message {
    /// The run continues, but not as requested.
    Warning(String),
    /// Useful to know, but not a problem.
    Note(String),
}

impl Message {
    pub(super) fn text(&self) -> &str {
        match self {
            Message::Warning(text) | Message::Note(text) => text,
        }
    }

    pub(super) fn print(&self) {
        match self {
            Message::Warning(text) => page::warning(text),
            Message::Note(text) => page::note(text),
        }
    }
}

/// Interval between updates of the live line.
const TICK: Duration = Duration::from_millis(100);

/// The amount of work in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Total {
    /// Number of frames, summed over all sources.
    Frames(u64),
    Time(Duration),
    Unknown,
}

impl Total {
    pub(crate) fn of(graph: &Graph, frames: Option<u64>, seconds: Option<Duration>) -> Total {
        let sources = graph.handlers().iter().filter(|handler| handler.entry.family == Family::Source);
        let frames = sources
            .map(|source| {
                let own = source.settings.int("frames").and_then(|frames| u64::try_from(frames).ok());
                let probed = source.probed.length.and_then(|length| length.frames);
                own.or(probed).into_iter().chain(frames).min()
            })
            .try_fold(0_u64, |sum, own| sum.checked_add(own?));
        match (seconds, frames) {
            (Some(time), _) => Total::Time(time),
            (None, Some(frames)) => Total::Frames(frames),
            (None, None) => Total::Unknown,
        }
    }
}

/// Prints progress and messages.
#[derive(Clone)]
pub(crate) struct Live {
    quiet: bool,
    /// Whether changed settings and the frame pools are reported.
    verbose: bool,
    total: Total,
    bar: Option<ProgressBar>,
    /// Messages to print at the end: changes of the frame size, and all messages if a sink draws on the terminal.
    log: EventLog,
    /// Whether a sink draws on the terminal that would show the live line.
    drawn: bool,
}

impl Live {
    /// `drawn` is true if a sink draws on the terminal.
    pub(crate) fn new(quiet: bool, total: Total, drawn: bool) -> Live {
        let watched = !quiet && page::is_watched();
        let bar = (watched && !drawn).then(|| {
            let (length, style) = match total {
                Total::Frames(frames) => (Some(frames), "{bar:24} {percent:>3}%  {msg}"),
                Total::Time(time) => (Some(millis(time)), "{bar:24} {percent:>3}%  {msg}"),
                Total::Unknown => (None, "{spinner} {elapsed}  {msg}"),
            };
            let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::hidden());
            bar.set_style(ProgressStyle::with_template(style).expect("the templates above are well formed"));
            bar
        });
        Live { quiet, verbose: false, total, bar, log: EventLog::new(), drawn: watched && drawn }
    }

    /// Reports changed settings and the frame pools too.
    #[must_use]
    pub(crate) fn verbose(mut self, verbose: bool) -> Live {
        self.verbose = verbose;
        self
    }

    /// Shows the live line, if there is one.
    pub(crate) fn begin(&self) {
        if let Some(bar) = &self.bar {
            bar.set_draw_target(ProgressDrawTarget::stderr());
            bar.enable_steady_tick(TICK);
            if let Total::Time(time) = self.total {
                follow(bar.clone(), time);
            }
        }
    }

    /// Removes the live line and prints the messages that were kept.
    pub(crate) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        self.log.print();
    }

    /// Prints a line on standard error without breaking the live line, even if the run is quiet.
    pub(crate) fn print(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| page::words(line)),
            None => page::words(line),
        }
    }

    pub(crate) fn listener(&self) -> Listener {
        let live = self.clone();
        Arc::new(move |event: &RunEvent| live.hear(event))
    }

    /// Prints a message, or keeps it until the end if a sink draws on the terminal.
    pub(crate) fn tell(&self, message: Message) {
        match &self.bar {
            _ if self.quiet => {}
            Some(bar) => bar.suspend(|| message.print()),
            None if self.drawn => self.log.add(message),
            None => message.print(),
        }
    }

    fn hear(&self, event: &RunEvent) {
        if self.quiet || !self.verbose && matches!(event, RunEvent::Changed { .. }) {
            return;
        }
        if let RunEvent::Second(progress) = event {
            return self.progress(progress);
        }
        if self.log.count_resize(event) {
            return;
        }
        if let Some(message) = message(event) {
            self.tell(message);
        }
    }

    fn progress(&self, progress: &RunProgress) {
        if self.drawn {
            return;
        }
        let Some(bar) = &self.bar else { return page::words(&line(progress, self.total, self.verbose)) };
        match self.total {
            Total::Frames(frames) => bar.set_position(progress.frames_in.min(frames)),
            Total::Time(_) | Total::Unknown => {}
        }
        // A bar and the pools together are too long for most terminals, so each pool has a line below the bar.
        let pools = if self.verbose { pools(progress) } else { Vec::new() };
        let lines: Vec<String> = std::iter::once(facts(progress, self.total)).chain(pools).collect();
        bar.set_message(lines.join("\n"));
    }
}

/// Advances a bar with time, because the run itself reports progress only once per second.
fn follow(bar: ProgressBar, time: Duration) {
    let begun = Instant::now();
    // If the thread cannot be started, the bar stays empty.
    let _ = std::thread::Builder::new().name("progress".to_owned()).spawn(move || {
        while !bar.is_finished() {
            bar.set_position(millis(begun.elapsed().min(time)));
            std::thread::sleep(TICK);
        }
    });
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The progress of one second as a line.
fn line(progress: &RunProgress, total: Total, verbose: bool) -> String {
    let mut line = format!("{:>4} s  {}", progress.elapsed.as_secs(), facts(progress, total));
    for pool in pools(progress).iter().filter(|_| verbose) {
        line.push_str("  ");
        line.push_str(pool);
    }
    line
}

/// The frame pools that the run uses, one text for each.
fn pools(progress: &RunProgress) -> Vec<String> {
    let sides = [(Space::Gpu, &progress.gpu_pool), (Space::Cpu, &progress.cpu_pool)];
    let used = sides.into_iter().filter(|(_, pool)| !pool.is_unused());
    used.map(|(space, pool)| format!("{space} pool: {pool}")).collect()
}

fn facts(progress: &RunProgress, total: Total) -> String {
    let RunProgress { frames_in, frames_out, dropped, fps, .. } = progress;
    let frames = match total {
        Total::Frames(all) => format!("{frames_in} of {all} frames{}", left(progress, all)),
        Total::Time(_) | Total::Unknown => format!("{frames_out} frames"),
    };
    let dropped = if *dropped == 0 { String::new() } else { format!("  {dropped} dropped") };
    format!("{frames}  {fps:.1} fps{dropped}")
}

/// How long the rest of the frames will take at the rate so far.
fn left(progress: &RunProgress, all: u64) -> String {
    let done = progress.frames_in;
    if done == 0 || done >= all {
        return String::new();
    }
    let seconds = progress.elapsed.as_secs_f64() * (all - done) as f64 / done as f64;
    match seconds.round() as u64 {
        seconds @ 0..60 => format!(", {seconds} s left"),
        seconds @ 60..3600 => format!(", {}:{:02} left", seconds / 60, seconds % 60),
        seconds => format!(", {}:{:02}:{:02} left", seconds / 3600, seconds / 60 % 60, seconds % 60),
    }
}

/// The message of an event. An error that ends the run has no message, because the error is the result of the run. A
/// change of the frame size has no message, because the [`EventLog`] counts such changes.
pub(super) fn message(event: &RunEvent) -> Option<Message> {
    let words = event.words()?;
    Some(if event.is_warning() { Message::Warning(words) } else { Message::Note(words) })
}

#[cfg(test)]
mod tests {
    use vramp::plan::OnError;
    use vramp::runtime::observe::PoolProgress;

    use super::*;

    fn progress() -> RunProgress {
        let elapsed = Duration::from_secs(3);
        RunProgress { elapsed, frames_in: 90, frames_out: 88, fps: 29.97, ..RunProgress::default() }
    }

    fn total(text: &str, frames: Option<u64>) -> Total {
        Total::of(&vramp::Pipeline::parse(text).check().unwrap(), frames, None)
    }

    #[test]
    fn the_end_is_known_where_every_source_has_one() {
        assert_eq!(total("pattern frames=9 ! null", None), Total::Frames(9));
        assert_eq!(total("pattern frames=9 ! null", Some(3)), Total::Frames(3));
        assert_eq!(total("pattern ! null", Some(3)), Total::Frames(3));
        assert_eq!(total("pattern ! null; pattern frames=9 ! null", None), Total::Unknown);
        assert_eq!(total("pattern ! null; pattern frames=9 ! null", Some(20)), Total::Frames(29));
        assert_eq!(total("pattern ! null; pattern ! null", Some(u64::MAX)), Total::Unknown);
    }

    #[test]
    fn progress_is_one_line_with_what_is_known() {
        let progress = progress();
        assert_eq!(line(&progress, Total::Unknown, false), "   3 s  88 frames  30.0 fps");
        let progress = RunProgress { dropped: 2, ..progress };
        assert_eq!(
            line(&progress, Total::Frames(100), false),
            "   3 s  90 of 100 frames, 0 s left  30.0 fps  2 dropped"
        );
    }

    #[test]
    fn a_verbose_line_has_the_pools_that_are_used() {
        let progress = progress();
        assert_eq!(line(&progress, Total::Unknown, true), "   3 s  88 frames  30.0 fps");
        let cpu_pool = PoolProgress {
            pooled: 2,
            pooled_bytes: 1_843_200,
            lent: 3,
            lent_bytes: 2_764_800,
            hits: 83,
            misses: 5,
            hits_per_second: 29.97,
            ..PoolProgress::default()
        };
        let progress = RunProgress { cpu_pool, ..progress };
        assert_eq!(
            line(&progress, Total::Unknown, true),
            "   3 s  88 frames  30.0 fps  cpu pool: 3 in use (2.8 MB), 2 free (1.8 MB), 30 hits/s, 0 misses/s"
        );
        let gpu_pool = PoolProgress { waiting: 1, waiting_bytes: 921_600, misses_per_second: 0.98, ..cpu_pool };
        let progress = RunProgress { gpu_pool, ..progress };
        assert_eq!(
            pools(&progress),
            [
                "gpu pool: 4 in use (3.7 MB), 2 free (1.8 MB), 30 hits/s, 1.0 misses/s",
                "cpu pool: 3 in use (2.8 MB), 2 free (1.8 MB), 30 hits/s, 0 misses/s",
            ]
        );
        assert!(pools(&progress).iter().all(|pool| pool.chars().count() < 80), "each fits a line of a terminal");
    }

    #[test]
    fn errors_that_end_a_run_are_not_messages() {
        let failed = |policy| RunEvent::Failed { handler: "a0".into(), frame: 7, error: "no".into(), policy };
        assert_eq!(message(&failed(OnError::Stop)), None);
        let skipped = message(&failed(OnError::Skip)).unwrap();
        assert!(skipped.text().starts_with("a0 failed on frame 7: no; the frame is skipped"), "{skipped:?}");
    }
}
