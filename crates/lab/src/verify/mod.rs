//! Verification (`vramp run --verify`): checks that a graph gives the same frames, fused or not, on the CPU or on the
//! GPU.
//!
//! The frames of every source are captured once, through an `app` sink. Sources and sinks are then replaced by `app`
//! ends with the same entries, so that the plan is the same and no sink writes anything. The graph runs on nominal time,
//! and its links drop no frames, so results are repeatable. The reference is the unfused graph on the CPU. Three kinds of results
//! are compared with the reference:
//!
//! 1. the fused graph on the CPU, to the byte;
//! 2. each handler on the GPU on identical inputs, to the byte;
//! 3. the fused graph on the GPU.
//!
//! A user's shader and a neural network compute in floats, which a driver may round differently in another kernel. For
//! their results a difference of one level is allowed, and the results of later handlers that may amplify the difference
//! are reported as not compared. Handlers that do not fit the device are reported with the plan's reason. A reported
//! difference names the first kernel whose result differs.
//!
//! ```
//! use vramp::verify::{Options, verify};
//!
//! let registry = vramp::registry();
//! let spec = vramp::read("pattern size=64x48 ! blur ! invert ! null", registry.catalog())?;
//! let verified = verify(&spec, &registry, &Options { frames: 2, ..Options::default() })?;
//! assert!(verified.is_equal(), "{verified}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod compare;
mod stand_ins;
mod trial;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use vramp_gpu::Device;
use vramp_plan::catalog::{Entry, EntryError, KernelKind};
use vramp_plan::{CheckError, Graph, GraphSpec, Handler, NoPlan, Plan, Profile, RunOptions, Space};
use vramp_runtime::{PrepareError, Registry, RunError};

use crate::harness::Caught;
use trial::{On, Subject, TappedOutputs, TrialRun, Tried};
use vramp_pipeline::Error;

pub use compare::{Difference, Mismatch};

/// Why a graph could not be verified.
#[derive(thiserror::Error)]
pub enum VerifyError {
    /// The spec is not a valid graph.
    #[error(transparent)]
    Graph(#[from] CheckError),
    /// The graph cannot be planned or prepared.
    #[error(transparent)]
    Pipeline(#[from] Error),
    /// One of the compared runs failed.
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("{handler}: it ended before its first frame, so there is nothing to compare")]
    NoFrames { handler: String },
    #[error("{handler}: it has {outputs} outputs, and only sources with one output can be captured")]
    ManyOutputs { handler: String, outputs: usize },
    #[error("{handler}: its frames come from the program, so they cannot be captured; verify with `pattern` or a file")]
    OfProgram { handler: String },
    #[error("{handler}: it was placed on the gpu to be compared, but nothing was dispatched there")]
    NotOnDevice { handler: String },
    /// `app` or one of the stand-ins could not be added to the registry.
    #[error(transparent)]
    Kind(#[from] EntryError),
}

vramp_plan::debug_as_display!(VerifyError);

impl From<NoPlan> for VerifyError {
    fn from(why: NoPlan) -> VerifyError {
        VerifyError::Pipeline(Error::NoPlan(why))
    }
}

/// How much to compare, and on which device.
#[derive(Debug, Clone)]
pub struct Options {
    /// The number of frames of each source.
    pub frames: u64,
    /// The maximum number of bytes of frames to keep. If frames are large, fewer frames are compared, but at least one.
    pub most_bytes: u64,
    /// The device to compare with the CPU. Without a device, only fused and unfused runs on the CPU are compared.
    pub device: Option<Device>,
}

impl Default for Options {
    fn default() -> Options {
        Options { frames: 8, most_bytes: 512 << 20, device: None }
    }
}

/// The result of [`verify`].
#[derive(Debug, Clone, PartialEq)]
pub struct Verified {
    pub comparisons: Vec<Comparison>,
}

/// One comparison of the frames at a port.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    pub kind: ComparisonKind,
    /// `handler.port`, whose frames were compared.
    pub port: String,
    /// The handlers, fused or alone, that made the compared frames. If the result of a whole graph differs, the
    /// handlers whose result is the first to differ.
    pub made_by: Vec<String>,
    pub result: ComparisonResult,
}

/// Which runs a comparison compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComparisonKind {
    /// The fused graph on the CPU, compared with the unfused graph on the CPU.
    FusedOnCpu,
    /// One handler on the GPU, compared with the same handler on the CPU, on identical inputs.
    Twins,
    /// The fused graph on the GPU, compared with the unfused graph on the CPU.
    FusedOnDevice,
}

/// The result of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub enum ComparisonResult {
    Equal {
        frames: usize,
        /// The allowed difference. 0 means equal to the byte.
        levels: u8,
    },
    Different(Difference),
    /// Not compared, for this reason.
    Left(String),
}

impl Verified {
    pub fn is_equal(&self) -> bool {
        self.differences().next().is_none()
    }

    /// Number of comparisons, without comparisons that were left out.
    pub fn compared(&self) -> usize {
        self.comparisons.iter().filter(|comparison| !matches!(comparison.result, ComparisonResult::Left(_))).count()
    }

    /// Every difference, with the comparison that found the difference.
    pub fn differences(&self) -> impl Iterator<Item = (&Comparison, &Difference)> {
        self.comparisons.iter().filter_map(|comparison| match &comparison.result {
            ComparisonResult::Different(difference) => Some((comparison, difference)),
            _ => None,
        })
    }
}

impl fmt::Display for ComparisonKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ComparisonKind::FusedOnCpu => "fused and unfused on the cpu",
            ComparisonKind::Twins => "gpu and cpu",
            ComparisonKind::FusedOnDevice => "fused on the gpu and unfused on the cpu",
        })
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let made_by = self.made_by.join("+");
        match self.kind {
            ComparisonKind::Twins => write!(f, "{made_by}, {}: ", self.kind)?,
            _ => write!(f, "{} (made by {made_by}), {}: ", self.port, self.kind)?,
        }
        match &self.result {
            ComparisonResult::Equal { frames, levels: 0 } => write!(f, "{frames} frames are equal"),
            ComparisonResult::Equal { frames, levels } => write!(f, "{frames} frames are equal within {levels} level"),
            ComparisonResult::Different(difference) => write!(f, "{difference}"),
            ComparisonResult::Left(why) => write!(f, "not compared: {why}"),
        }
    }
}

impl fmt::Display for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for comparison in &self.comparisons {
            writeln!(f, "{comparison}")?;
        }
        let (count, compared) = (self.differences().count(), self.compared());
        match count {
            0 => write!(f, "verified: {compared} comparisons, no difference"),
            1 => write!(f, "verified: {compared} comparisons, 1 difference"),
            _ => write!(f, "verified: {compared} comparisons, {count} differences"),
        }
    }
}

/// Compares the fused graph with the unfused graph, and the GPU with the CPU, handler by handler and as a whole.
pub fn verify(spec: &GraphSpec, registry: &Registry, options: &Options) -> Result<Verified, VerifyError> {
    let graph = registry.check(spec)?;
    check_all_run(&graph, registry)?;
    // Only the links and the inserted converters are taken from this plan. Both are the same on every machine with a
    // device.
    let profile = Profile::shipped("integrated").expect("every class ships, tests/shipped.rs");
    let plan = Plan::decide(&graph, &profile, &RunOptions::new())?;
    let subject = Subject::capture(spec, &graph, plan, registry, options)?;
    let device = options.device.as_ref();
    let alone = TrialRun {
        up_to: None,
        taps: TappedOutputs::All,
        fusion: false,
        device: device.filter(|_| subject.needs_device()),
        on: On::Host,
    };
    let truth = subject.run(alone)?;
    let mut comparisons = Vec::new();
    let fused = TrialRun { taps: TappedOutputs::None, fusion: true, ..alone };
    compare_sinks(&subject, &truth, fused, ComparisonKind::FusedOnCpu, &mut comparisons)?;
    if let Some(device) = device {
        for name in subject.twins() {
            let there = TrialRun { up_to: Some(name), device: Some(device), on: On::DeviceFor(name), ..alone };
            let tried = subject.run(there)?;
            // A converter that receives its target format has no kernel. A handler that filters all frames, or fails on
            // all of them, runs none.
            let computes = tried.plan.handlers.iter().any(|handler| handler.name == name && handler.group.is_some());
            let own = |port: &str| port.split('.').next() == Some(name);
            let sends = tried.frames.iter().any(|(port, frames)| own(port) && !frames.is_empty());
            if computes && sends && tried.report.counters.dispatches == 0 {
                return Err(VerifyError::NotOnDevice { handler: name.to_owned() });
            }
            let levels = subject.handler(name).map_or(0, |handler| levels(handler.entry));
            for (port, found) in tried.frames.iter().filter(|(port, _)| own(port)) {
                let result = compared(truth.at(port), found, levels);
                let made_by = vec![name.to_owned()];
                comparisons.push(Comparison { kind: ComparisonKind::Twins, port: port.clone(), made_by, result });
            }
        }
        let left = |handler: &Handler, why: String| {
            let port = format!("{}.{}", handler.name, handler.entry.outputs[0].name);
            Comparison {
                kind: ComparisonKind::Twins,
                port,
                made_by: vec![handler.name.clone()],
                result: ComparisonResult::Left(why),
            }
        };
        for handler in subject.device_only() {
            comparisons
                .push(left(handler, "it has no version for the cpu, so its gpu result is not checked".to_owned()));
        }
        for (name, why) in &subject.kept_off {
            let handler = subject.handler(name).filter(|handler| !handler.entry.outputs.is_empty());
            comparisons.extend(handler.map(|handler| left(handler, format!("it stays on the cpu: {why}"))));
        }
        let fused = TrialRun { device: Some(device), on: On::Device, ..fused };
        compare_sinks(&subject, &truth, fused, ComparisonKind::FusedOnDevice, &mut comparisons)?;
    }
    Ok(Verified { comparisons })
}

/// Fails before any source is read if a handler cannot run, with the error that a run would report.
fn check_all_run(graph: &Graph, registry: &Registry) -> Result<(), VerifyError> {
    let missing = graph.handlers().iter().find(|h| !registry.runs(h.entry));
    missing.map_or(Ok(()), |handler| {
        let (handler, kind) = (handler.name.clone(), handler.entry.name.to_owned());
        Err(VerifyError::Pipeline(Error::Prepare(PrepareError::NotBuilt {
            handler,
            what: kind,
            instead: "`vramp inspect` lists what runs".to_owned(),
        })))
    })
}

impl Tried {
    fn at(&self, port: &str) -> &[Caught] {
        self.frames.get(port).map_or(&[], Vec::as_slice)
    }
}

/// Compares the frames that reach the sinks in a run of the whole graph.
fn compare_sinks(
    subject: &Subject<'_>,
    truth: &Tried,
    trial: TrialRun<'_>,
    kind: ComparisonKind,
    comparisons: &mut Vec<Comparison>,
) -> Result<(), VerifyError> {
    let tried = subject.run(trial)?;
    let tolerances = tolerances(subject, &tried);
    for sink in subject.sinks() {
        for (port, found) in tried.frames.iter().filter(|(port, _)| port.split('.').next() == Some(&sink.name)) {
            let result = match tolerances.get(&sink.name) {
                Some(Tolerance::Unknown(by)) => ComparisonResult::Left(format!(
                    "{by} may be a level off on the gpu, and later handlers may amplify the difference"
                )),
                Some(Tolerance::Levels(levels)) => compared(truth.at(port), found, *levels),
                None => compared(truth.at(port), found, 0),
            };
            let made_by = match &result {
                ComparisonResult::Different(_) => {
                    first_different(subject, truth, &tried, trial, &tolerances, &sink.name)?
                }
                _ => None,
            };
            let made_by = made_by.unwrap_or_else(|| makers(&tried, port));
            comparisons.push(Comparison { kind, port: port.clone(), made_by, result });
        }
    }
    Ok(())
}

/// Of the kernels before a sink, the first kernel whose result differs. Runs the trial again with a tap after each
/// kernel.
fn first_different(
    subject: &Subject<'_>,
    truth: &Tried,
    tried: &Tried,
    trial: TrialRun<'_>,
    tolerances: &BTreeMap<String, Tolerance>,
    sink: &str,
) -> Result<Option<Vec<String>>, VerifyError> {
    let before: BTreeSet<&str> = subject.names_up_to(sink).collect();
    let ends = tried.plan.handlers.iter().enumerate().filter(|(at, handler)| {
        let last = handler.group.and_then(|group| tried.plan.groups[group].handlers.last());
        before.contains(handler.name.as_str()) && last.is_none_or(|last| last == at)
    });
    let ends: BTreeSet<String> = ends.map(|(_, handler)| handler.name.clone()).collect();
    let looked = subject.run(TrialRun { taps: TappedOutputs::Of(&ends), ..trial })?;
    for handler in looked.plan.handlers.iter().filter(|handler| ends.contains(&handler.name)) {
        let Some(Tolerance::Levels(levels)) = tolerances.get(&handler.name) else { continue };
        let own = |port: &&String| port.split('.').next() == Some(&handler.name);
        let differs = |port: &String| compare::compare(truth.at(port), looked.at(port), *levels).is_some();
        if looked.frames.keys().filter(own).any(differs) {
            let group = handler.group.map(|group| looked.plan.groups[group].handlers.as_slice());
            let names = |all: &[usize]| all.iter().map(|at| looked.plan.handlers[*at].name.clone()).collect();
            return Ok(Some(group.map_or_else(|| vec![handler.name.clone()], names)));
        }
    }
    Ok(None)
}

fn compared(expected: &[Caught], found: &[Caught], levels: u8) -> ComparisonResult {
    match compare::compare(expected, found, levels) {
        Some(difference) => ComparisonResult::Different(difference),
        None => ComparisonResult::Equal { frames: found.len(), levels },
    }
}

/// The handlers that make the frames at a port: one handler, or a fusion group.
fn makers(tried: &Tried, port: &str) -> Vec<String> {
    let plan = &tried.plan;
    let Some(link) = plan.links.iter().find(|link| plan.port_name(link.to) == port) else { return Vec::new() };
    let producer = link.from.handler;
    let group = plan.handlers[producer].group.map(|group| plan.groups[group].handlers.clone());
    group.unwrap_or_else(|| vec![producer]).into_iter().map(|at| plan.handlers[at].name.clone()).collect()
}

/// How much a handler's result on the GPU may differ from the CPU when the whole graph runs.
#[derive(Debug, Clone, PartialEq)]
enum Tolerance {
    Levels(u8),
    /// Not known: the named handler may differ by one level, and later handlers may have amplified the difference.
    Unknown(String),
}

/// The tolerance of each handler. A difference of one level stays one level in handlers that only move pixels; handlers
/// that compute may amplify the difference.
fn tolerances(subject: &Subject<'_>, tried: &Tried) -> BTreeMap<String, Tolerance> {
    let plan = &tried.plan;
    let mut found: BTreeMap<String, (Tolerance, Option<String>)> = BTreeMap::new();
    for (at, planned) in plan.handlers.iter().enumerate() {
        let feeds = plan.links.iter().filter(|link| link.to.handler == at).map(|l| &plan.handlers[l.from.handler].name);
        let before: Vec<_> = feeds.filter_map(|name| found.get(name).cloned()).collect();
        let worst = before.into_iter().max_by_key(|(tolerance, _)| match tolerance {
            Tolerance::Levels(levels) => u16::from(*levels),
            Tolerance::Unknown(_) => u16::MAX,
        });
        let (coming, by) = worst.unwrap_or((Tolerance::Levels(0), None));
        let handler = subject.handler(&planned.name);
        let there = planned.space == Space::Gpu;
        let own = handler.filter(|_| there).map_or(0, |handler| levels(handler.entry));
        // A converter between formats computes, even if its kernel is a gather.
        let computes = handler.is_none_or(|handler| {
            let kernel = handler.kernel();
            kernel.is_some_and(|kernel| kernel.kind != KernelKind::Gather)
                || handler.entry.family == vramp_plan::catalog::Family::Convert && handler.entry.transfer.is_none()
        });
        let by = if own > 0 { Some(planned.name.clone()) } else { by };
        let now = match coming {
            Tolerance::Levels(0) => Tolerance::Levels(own),
            Tolerance::Levels(levels) if own == 0 && !computes => Tolerance::Levels(levels),
            Tolerance::Unknown(by) => Tolerance::Unknown(by),
            Tolerance::Levels(_) => Tolerance::Unknown(by.clone().unwrap_or_default()),
        };
        found.insert(planned.name.clone(), (now, by));
    }
    found.into_iter().map(|(name, (tolerance, _))| (name, tolerance)).collect()
}

/// The allowed difference between a handler's two implementations on the same input. vramp's own kernels compute in
/// whole numbers in both implementations. A user's shader and a network compute in floats, and the driver decides how
/// floats are rounded.
fn levels(entry: &Entry) -> u8 {
    u8::from(entry.name == "wgsl" || entry.network.is_some())
}
