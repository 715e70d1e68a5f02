//! Runs a random graph in several ways and says what is wrong with it.
//!
//! `verify` compares the frames of fused and unfused runs on both sides, with their notes. A normal run is checked for
//! conservation, leaks and the notes that must have arrived. On a device, the handlers of that run are in both spaces,
//! and its frames are compared with those of the CPU. If a failure stops the run, the number of frames that
//! arrive depends on threads, so only the failure and conservation are checked.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use vramp::gpu::{Adapter, Device};
use vramp::plan::{Graph, Plan, Profile, RunOptions, Space};
use vramp::prelude::{AppOutput, PullError};
use vramp::runtime::{Registry, Report, RunError};
use vramp::verify::{Options, VerifyError, verify};
use vramp::{Error, Pipeline, machine};

use super::sketch::{Sink, Sketch, Stopping};
use super::trouble::{Arrived, Kept, does_stumble, lock, note_of};

/// The maximum number of frames of each source.
pub const FRAMES: u64 = 4;
/// No run takes this long unless it hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// What became of a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Right,
    /// The planner refuses the graph.
    Refused(String),
    Wrong(String),
}

impl Verdict {
    pub fn wrong(self) -> Option<String> {
        match self {
            Verdict::Wrong(why) => Some(why),
            Verdict::Right | Verdict::Refused(_) => None,
        }
    }
}

/// How graphs are run: the kinds, where `collects` keeps its frames, and the device.
#[derive(Clone)]
pub struct Judge {
    pub registry: Registry,
    pub kept: Arc<Mutex<Kept>>,
    pub device: Option<Device>,
    pub tally: Arc<Tally>,
}

/// What happened in all normal runs, so that a test can tell that its graphs did something.
#[derive(Debug, Default)]
pub struct Tally {
    pub arrived: AtomicU64,
    pub dispatched: AtomicU64,
}

impl Judge {
    /// Judges a graph. A run that hangs is wrong.
    pub fn verdict(&self, sketch: &Sketch) -> Verdict {
        let (send, answer) = channel();
        let (own, sketch) = (self.clone(), sketch.clone());
        // If the thread hangs, it is left running, because the test has failed by then.
        std::thread::spawn(move || send.send(own.verdict_here(&sketch)));
        let late = || Verdict::Wrong(format!("it has not come to its end within {PATIENCE:?}"));
        answer.recv_timeout(PATIENCE).unwrap_or_else(|_| late())
    }

    fn verdict_here(&self, sketch: &Sketch) -> Verdict {
        let tried = catch_unwind(AssertUnwindSafe(|| match sketch.stopping() {
            Some(stopping) => self.stops(sketch, &stopping),
            None => self.verifies(sketch).and_then(|()| self.delivers(sketch)),
        }));
        match tried {
            Ok(Ok(())) => Verdict::Right,
            Ok(Err(verdict)) => verdict,
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                Verdict::Wrong(format!("it panicked: {}", text.unwrap_or_default()))
            }
        }
    }

    fn verifies(&self, sketch: &Sketch) -> Result<(), Verdict> {
        let options = Options { frames: FRAMES, device: self.device.clone(), ..Options::default() };
        match verify(&sketch.spec(), &self.registry, &options) {
            Ok(found) if !found.is_equal() => Err(Verdict::Wrong(found.to_string())),
            Ok(found) if found.compared() == 0 => Err(Verdict::Wrong(format!("nothing was compared\n{found}"))),
            Ok(_) => Ok(()),
            Err(VerifyError::Graph(error)) => Err(Verdict::Refused(error.to_string())),
            Err(VerifyError::Pipeline(error @ Error::NoPlan(_))) => Err(self.refused(sketch, &error)),
            Err(error) => Err(Verdict::Wrong(error.to_string())),
        }
    }

    /// Whether the planner refuses the graph itself, or only one of the graphs that `verify` made from it.
    fn refused(&self, sketch: &Sketch, error: &Error) -> Verdict {
        let profile = Profile::shipped("integrated").expect("it ships");
        match self.registry.check(&sketch.spec()).map(|graph| Plan::decide(&graph, &profile, &RunOptions::new())) {
            Ok(Ok(_)) => Verdict::Wrong(format!("only verify has no plan: {error}")),
            _ => Verdict::Refused(error.to_string()),
        }
    }

    /// A normal run loses no frame, and each frame has its notes.
    fn delivers(&self, sketch: &Sketch) -> Result<(), Verdict> {
        let run = self.run(sketch, true)?;
        if let Some(failure) = run.failure {
            return Err(Verdict::Wrong(format!("{} stopped the run at frame {}", failure.0, failure.1)));
        }
        let report = &run.report;
        // Frames are dropped if they are sent to a handler that has ended, or come from a source that cannot wait.
        let dropped = if sketch.ends_early() || sketch.is_live() { 0 } else { report.dropped.sum() };
        let failed = if sketch.fails() { 0 } else { report.failed };
        let left = (report.in_flight, failed, dropped);
        if left != (0, 0, 0) {
            return Err(Verdict::Wrong(format!("in flight, failed and dropped are {left:?}")));
        }
        let on_cpu = Judge { device: None, ..self.clone() };
        let differs = match self.device.as_ref().filter(|_| !sketch.is_live()).map(|_| on_cpu.run(sketch, true)) {
            Some(Ok(host)) => different(sketch, &host.kept, &run.kept),
            Some(Err(Verdict::Wrong(why))) => Some(format!("on the cpu: {why}")),
            // A graph with a handler that runs only on the device is refused on the CPU.
            Some(Err(_)) | None => None,
        };
        lacks_notes(sketch, &run.kept).or(differs).map_or(Ok(()), |why| Err(Verdict::Wrong(why)))
    }

    /// A handler stops the run, fused and unfused, and on both sides.
    fn stops(&self, sketch: &Sketch, stopping: &Stopping) -> Result<(), Verdict> {
        let mut failures = Vec::new();
        for fusion in [true, false] {
            failures.push(self.run(sketch, fusion)?.failure);
        }
        if self.device.is_some() {
            failures.push(Judge { device: None, ..self.clone() }.run(sketch, true)?.failure);
        }
        let is_possible = |failure: &Option<(String, u64)>| match failure {
            Some((handler, frame)) => *handler == stopping.name && does_stumble(stopping.each, stopping.from, *frame),
            None => true,
        };
        // If a join ends early, its producers may end before the frame that would have failed. A source that cannot wait
        // may drop that frame.
        let agree = sketch.ends_early() || sketch.is_live() || failures.iter().all(|failure| *failure == failures[0]);
        if agree && failures.iter().all(is_possible) {
            return Ok(());
        }
        Err(Verdict::Wrong(format!("the runs ended with different failures: {failures:?}")))
    }

    fn run(&self, sketch: &Sketch, fusion: bool) -> Result<Run, Verdict> {
        let refused = |error: &dyn std::fmt::Display| Verdict::Refused(error.to_string());
        let wrong = |error: &dyn std::fmt::Display| Verdict::Wrong(error.to_string());
        lock(&self.kept).clear();
        let graph = self.registry.check(&sketch.spec()).map_err(|error| refused(&error))?;
        let options = RunOptions::new().frames(FRAMES).nominal_time().threads(2).fusion(fusion);
        let builder = Pipeline::from_graph(graph.clone()).registry(&self.registry);
        let pipeline = match &self.device {
            None => builder.options(options.only(Space::Cpu)).build(),
            Some(device) => builder.options(mingled(options, &graph)).profile(figures(device)).device(device).build(),
        };
        let mut pipeline = match pipeline {
            Err(error @ Error::NoPlan(_)) => return Err(refused(&error)),
            Err(error) => return Err(wrong(&error)),
            Ok(pipeline) => pipeline,
        };
        let names = sketch.sinks(Sink::App).into_iter().map(|(name, _)| name);
        let outputs: Vec<AppOutput> =
            names.map(|name| pipeline.output(&name).map_err(|error| wrong(&error))).collect::<Result<_, _>>()?;
        let over = AtomicBool::new(false);
        let outcome = std::thread::scope(|scope| {
            for output in &outputs {
                let (kept, over) = (&self.kept, &over);
                scope.spawn(move || pull_all(output, kept, over));
            }
            let outcome = pipeline.outcome();
            over.store(true, Ordering::Release);
            outcome
        });
        let outcome = outcome.map_err(|error| wrong(&error))?;
        let failure = match outcome.error {
            None => None,
            Some(RunError::Failed(failure)) => Some((failure.handler, failure.frame)),
            Some(error @ RunError::Unresponsive { .. }) => return Err(wrong(&error)),
        };
        if let Some(why) = unaccounted(&outcome.report) {
            return Err(Verdict::Wrong(why));
        }
        let kept = std::mem::take(&mut *lock(&self.kept));
        self.tally.arrived.fetch_add(kept.values().map(|frames| frames.len() as u64).sum(), Ordering::Relaxed);
        self.tally.dispatched.fetch_add(outcome.report.counters.dispatches, Ordering::Relaxed);
        Ok(Run { report: outcome.report, failure, kept })
    }
}

struct Run {
    report: Report,
    /// The handler and the frame that stopped the run.
    failure: Option<(String, u64)>,
    kept: Kept,
}

/// Takes the frames of an `app` sink, as a program does, until the stream or the run ends.
fn pull_all(output: &AppOutput, kept: &Mutex<Kept>, over: &AtomicBool) {
    loop {
        match output.pull_timeout(Duration::from_millis(20)) {
            Ok(Some(frame)) => lock(kept).entry(output.name().to_owned()).or_default().push(Arrived::of(&frame)),
            Err(PullError::Timeout { .. } | PullError::NotStarted { .. }) if !over.load(Ordering::Acquire) => {}
            Ok(None) | Err(_) => return,
        }
    }
}

/// Of the handlers that offer both spaces, pins every third to the CPU, so that frames are transferred both ways.
fn mingled(options: RunOptions, graph: &Graph) -> RunOptions {
    let both = graph.handlers().iter().filter(|handler| {
        let spaces = handler.entry.spaces_under(&handler.settings);
        spaces.contains(Space::Cpu) && spaces.contains(Space::Gpu)
    });
    both.enumerate().fold(options.only(Space::Gpu), |options, (at, handler)| match at % 3 {
        1 => options.place(&handler.name, Space::Cpu),
        _ => options,
    })
}

/// The profile of a device with the limits that it was opened with.
fn figures(device: &Device) -> Profile {
    machine::figures_of(Some(&Adapter { limits: *device.limits(), ..device.adapter().clone() }))
}

/// Describes a frame that is not accounted for, or memory that is still in use. Holds however a run ends.
fn unaccounted(report: &Report) -> Option<String> {
    for link in &report.links {
        if link.sent != link.taken + link.dropped + link.queued {
            return Some(format!("a link does not account for its frames: {link:?}"));
        }
    }
    for handler in &report.handlers {
        if handler.calls != handler.emitted + handler.filtered + handler.errors + handler.lost + handler.held {
            return Some(format!("a handler does not account for its frames: {handler:?}"));
        }
    }
    let memory = &report.memory;
    (memory.leaked > 0).then(|| format!("{} frames leaked: {:?}", memory.leaked, memory.leaks))
}

/// Describes a frame that is different if handlers in both spaces make it, with transfers between them.
fn different(sketch: &Sketch, expected: &Kept, found: &Kept) -> Option<String> {
    // A user's shader computes in floats, which a driver may round differently.
    let has_shader = sketch.kinds().any(|kind| kind == "wgsl");
    let differ = |(one, two): &(&Arrived, &Arrived)| {
        let place = |frame: &Arrived| (frame.number, frame.pts_ns);
        let bytes = one.bytes.as_ref().zip(two.bytes.as_ref()).filter(|_| !has_shader);
        place(one) != place(two) || one.notes != two.notes || bytes.is_some_and(|(one, two)| one != two)
    };
    let sinks = [Sink::Collects, Sink::App].into_iter().flat_map(|kind| sketch.sinks(kind));
    for (name, _) in sinks {
        let frames = |kept: &'_ Kept| kept.get(&name).cloned().unwrap_or_default();
        let (expected, found) = (frames(expected), frames(found));
        if expected.len() != found.len() {
            return Some(format!("{name}: {} frames instead of {}", found.len(), expected.len()));
        }
        if let Some((expected, found)) = expected.iter().zip(&found).find(differ) {
            return Some(format!("{name}: {found:?} instead of {expected:?}"));
        }
    }
    None
}

/// Describes a frame at a sink that does not have the notes which were attached on its way.
fn lacks_notes(sketch: &Sketch, kept: &Kept) -> Option<String> {
    let sinks = [Sink::Collects, Sink::App].into_iter().flat_map(|kind| sketch.sinks(kind));
    for (name, tap) in sinks {
        let expected = sketch.notes_at(tap);
        for frame in kept.get(&name).into_iter().flatten() {
            let own = frame.notes.iter().filter(|(key, _)| ["a", "b", "c"].contains(&key.as_str()));
            if own.clone().count() != expected.len() {
                return Some(format!("{name}: frame {} has {:?} instead of {expected:?}", frame.number, frame.notes));
            }
            for (key, value) in own {
                let is_right = expected
                    .get(key)
                    .is_some_and(|note| !note.is_of_this_number || *value == note_of(&note.what, frame.number));
                if !is_right {
                    let wanted = expected.get(key);
                    return Some(format!("{name}: frame {} has {key}={value:?}, {wanted:?}", frame.number));
                }
            }
        }
    }
    None
}
