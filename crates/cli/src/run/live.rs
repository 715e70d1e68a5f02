//! What a run says while it runs.
//!
//! Owns the live line of a terminal, the lines of a pipe, and the wording of events.
//! Does not say how it ended: failures that end a run are its result.
//!
//! Always: at most one line of progress a second; other words never break the live line; where a sink draws into the
//! terminal there is no progress, and other words wait for its end; quiet means nothing at all.

use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use vramp::plan::catalog::Family;
use vramp::plan::{Graph, OnError};
use vramp::runtime::observe::GoesOn;
use vramp::runtime::{Listener, RunEvent, RunProgress};

use super::held::Held;
use super::words::counted;
use crate::page;

/// How often the live line moves.
const TICK: Duration = Duration::from_millis(100);

/// How much there is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Total {
    /// This many frames, all sources together.
    Frames(u64),
    /// This long.
    Time(Duration),
    /// Nobody knows.
    Unknown,
}

impl Total {
    /// What a graph has to do under these limits.
    pub(crate) fn of(graph: &Graph, frames: Option<u64>, seconds: Option<Duration>) -> Total {
        let sources = graph.handlers().iter().filter(|handler| handler.entry.family == Family::Source);
        let frames = sources
            .map(|source| {
                let own = source.settings.int("frames").and_then(|frames| u64::try_from(frames).ok());
                own.into_iter().chain(frames).min()
            })
            .try_fold(0_u64, |sum, own| sum.checked_add(own?));
        match (seconds, frames) {
            (Some(time), _) => Total::Time(time),
            (None, Some(frames)) => Total::Frames(frames),
            (None, None) => Total::Unknown,
        }
    }
}

/// Tells people what happens.
#[derive(Clone)]
pub(crate) struct Live {
    quiet: bool,
    total: Total,
    bar: Option<ProgressBar>,
    /// Where a sink draws into the same terminal.
    held: Option<Held>,
}

impl Live {
    /// For one run, in which a sink may draw into the terminal.
    pub(crate) fn new(quiet: bool, total: Total, drawn: bool) -> Live {
        let watched = !quiet && page::is_watched();
        let held = (watched && drawn).then(Held::new);
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
        Live { quiet, total, bar, held }
    }

    /// Shows the live line, where there is one.
    pub(crate) fn begin(&self) {
        if let Some(bar) = &self.bar {
            bar.set_draw_target(ProgressDrawTarget::stderr());
            bar.enable_steady_tick(TICK);
            if let Total::Time(time) = self.total {
                follow(bar.clone(), time);
            }
        }
    }

    /// Takes the live line away.
    pub(crate) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        if let Some(held) = &self.held {
            held.print();
        }
    }

    /// What a session tells its events to.
    pub(crate) fn listener(&self) -> Listener {
        let live = self.clone();
        Arc::new(move |event: &RunEvent| live.hear(event))
    }

    fn hear(&self, event: &RunEvent) {
        if self.quiet {
            return;
        }
        if let RunEvent::Second(progress) = event {
            return self.progress(progress);
        }
        if let Some(words) = wording(event) {
            match (&self.bar, &self.held) {
                (Some(bar), _) => bar.suspend(|| page::warning(&words)),
                (None, Some(held)) => held.add(words),
                (None, None) => page::warning(&words),
            }
        }
    }

    fn progress(&self, progress: &RunProgress) {
        if self.held.is_some() {
            return;
        }
        let Some(bar) = &self.bar else { return page::words(&line(progress, self.total)) };
        match self.total {
            Total::Frames(frames) => bar.set_position(progress.frames_in.min(frames)),
            Total::Time(_) | Total::Unknown => {}
        }
        bar.set_message(facts(progress, self.total));
    }
}

/// Moves a bar with the time; the run itself is heard of once a second only.
fn follow(bar: ProgressBar, time: Duration) {
    let begun = Instant::now();
    // Without a thread for it, the bar moves once a second.
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

/// One second of a run as a line.
fn line(progress: &RunProgress, total: Total) -> String {
    format!("{:>4} s  {}", progress.elapsed.as_secs(), facts(progress, total))
}

fn facts(progress: &RunProgress, total: Total) -> String {
    let RunProgress { frames_in, frames_out, dropped, fps, .. } = progress;
    let frames = match total {
        Total::Frames(all) => format!("{frames_in} of {all} frames"),
        Total::Time(_) | Total::Unknown => format!("{frames_out} frames"),
    };
    let dropped = if *dropped == 0 { String::new() } else { format!("  {dropped} dropped") };
    format!("{frames}  {fps:.1} fps{dropped}")
}

/// What is worth saying at once; none for what ends the run, which is said at its end.
pub(super) fn wording(event: &RunEvent) -> Option<String> {
    let ms = |time: &Duration| time.as_secs_f64() * 1e3;
    match event {
        RunEvent::Failed { policy: OnError::Stop, .. } | RunEvent::Unresponsive { .. } | RunEvent::Second(_) => None,
        RunEvent::Failed { handler, frame, error, policy } => {
            let then = match policy {
                OnError::Retry => "it is tried once more",
                _ => "the frame is left out",
            };
            Some(format!("{handler} failed on frame {frame}: {error}; {then}, and so are later ones, without a word"))
        }
        RunEvent::Reloaded { handler } => Some(format!("{handler}: reloaded")),
        RunEvent::NotReloaded { handler, problem } => {
            Some(format!("{handler}: what was saved cannot be used, it stays as it was: {problem}"))
        }
        RunEvent::Slow { handler, own, frame, took, budget, count } => {
            let more =
                if *count > 1 { format!(", {count} such frames since this was last said") } else { String::new() };
            let late = format!("frame {frame} came after {:.1} ms{more}", ms(took));
            let (own, budget) = (ms(own), ms(budget));
            Some(if own > budget {
                format!("{handler} takes {own:.1} ms of a {budget:.1} ms frame; {late}")
            } else {
                format!(
                    "{late}, not {budget:.1} ms; no handler takes that long, the slowest is {handler} with {own:.1} ms"
                )
            })
        }
        RunEvent::Replanned { handler, frame, size } => {
            Some(format!("frames of {handler} are {size} from frame {frame} on: planned again"))
        }
        RunEvent::DeviceLost { reason, on, lost } => {
            let frames = counted(*lost as usize, "frame");
            let then = match on {
                GoesOn::Device => "it was opened again",
                GoesOn::Cpu => "the cpu goes on",
            };
            Some(format!("{reason}, with {frames} on it; {then}"))
        }
        RunEvent::DeviceBack { device } => Some(format!("{device} is there again, and goes on from here")),
    }
}

#[cfg(test)]
mod tests {
    use vramp::plan::Size;

    use super::*;

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
        let progress =
            RunProgress { elapsed: Duration::from_secs(3), frames_in: 90, frames_out: 88, dropped: 0, fps: 29.97 };
        assert_eq!(line(&progress, Total::Unknown), "   3 s  88 frames  30.0 fps");
        let progress = RunProgress { dropped: 2, ..progress };
        assert_eq!(line(&progress, Total::Frames(100)), "   3 s  90 of 100 frames  30.0 fps  2 dropped");
    }

    #[test]
    fn what_ends_a_run_is_not_said_while_it_runs() {
        let failed = |policy| RunEvent::Failed { handler: "a0".into(), frame: 7, error: "no".into(), policy };
        assert_eq!(wording(&failed(OnError::Stop)), None);
        assert!(
            wording(&failed(OnError::Skip)).unwrap().starts_with("a0 failed on frame 7: no; the frame is left out")
        );
        let size = Size { width: 4, height: 2 };
        let event = RunEvent::Replanned { handler: "image0".into(), frame: 3, size };
        assert_eq!(wording(&event).unwrap(), "frames of image0 are 4x2 from frame 3 on: planned again");
    }
}
