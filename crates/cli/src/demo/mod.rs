//! `vramp demo`: runs five handlers on this machine, writes one frame, and prints the plan and the results. With `--model`,
//! [`model`] shows a neural network.
//!
//! Without a graphics adapter the demo runs on the CPU and prints a note. The output file gets its final name only when
//! it is complete.

mod model;
mod table;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::anyhow;
use serde::Serialize;
use vramp::handlers::files::FileUse;
use vramp::plan::{Graph, GraphSpec, HandlerSpec, OnLoss, Plan, RunOptions, Space};
use vramp::runtime::{Registry, Report, RunError, Trace};
use vramp::{Error, machine};

use crate::args::{DemoArgs, SharedFlags};
use crate::failure::{CliError, chainless};
use crate::interrupt::Interrupts;
use crate::run::{Live, Total, check_budget, whole_ms};
use crate::trace::TraceFile;
use crate::{devices, page, request};

const SIZES: [&str; 2] = ["640x480", LARGEST];
/// The size of the written frame and of the printed plan.
const LARGEST: &str = "1920x1080";
/// Number of the frame to write, which shows the ball one second after it started to move. By then, the frame rate
/// that `fps` draws has been measured. A machine that reaches fewer than 30 frames per second writes an earlier frame.
const PICTURED: u64 = 30;
/// The duration of a run without `--seconds`.
const SECONDS: Duration = Duration::from_millis(1500);

#[derive(Serialize)]
pub(crate) struct Ran {
    pub(crate) size: &'static str,
    #[serde(rename = "where")]
    pub(crate) place: Space,
    pub(crate) report: Report,
}

#[derive(Serialize)]
struct DemoJson<'a> {
    picture: String,
    runs: &'a [Ran],
}

pub(crate) fn run(args: &DemoArgs, registry: &Registry) -> Result<(), CliError> {
    args.flags.refuse_latency("`vramp demo` compares fixed runs")?;
    if args.model {
        return model::run(args, registry);
    }
    let interrupts = Interrupts::listen()?;
    let mut files = FileUse::default().writes("--output", &args.output);
    if let Some(trace) = &args.trace {
        files = files.writes("--trace", trace);
    }
    if args.json {
        files = files.writes_standard_output("--json");
    }
    files.check()?;
    let output = PictureFile::find(&args.output)?;
    let spaces = spaces(&args.flags);
    say(args, "Five handlers: a moving ball, markers in the corners, a waveform, the frame rate, a sink.");
    let file = args.trace.as_deref().map(TraceFile::create).transpose()?;
    let (mut runs, mut traces) = (Vec::new(), Vec::new());
    let measured: Result<(), CliError> =
        SIZES.iter().flat_map(|size| spaces.iter().map(move |space| (size, space))).try_for_each(|(size, space)| {
            let trace = file.as_ref().map(|_| Trace::default());
            traces.extend(trace.clone().map(|trace| (format!("{size} on the {space}"), trace)));
            runs.extend(measure(args, registry, size, *space, trace.as_ref(), &interrupts)?);
            Ok(())
        });
    // The timeline is written even if a run failed.
    let drawn = file.map_or(Ok(()), |file| {
        file.write(&traces.iter().map(|(name, trace)| (name.as_str(), trace)).collect::<Vec<_>>())
    });
    measured.and(drawn)?;
    if runs.is_empty() {
        return Err(CliError::NoPlan(anyhow!("no device could be opened; {}", devices::what_to_install())));
    }
    picture(args, registry, &output, &runs, &interrupts)?;
    let graph = graph(registry, LARGEST, HandlerSpec::new("null"), None)?;
    let plan = request::on_this_machine(&args.flags, &graph, registry)?.plan()?;
    page_of(args, &plan, &runs)?;
    // Runs on the CPU are intended here, unless there is no other run.
    let on_device = runs.iter().any(|ran| ran.place == Space::Gpu);
    let broken = runs.iter().map(|ran| {
        let intended = ran.place == Space::Cpu && on_device;
        check_budget(&SharedFlags { cpu: args.flags.cpu || intended, ..args.flags.clone() }, &ran.report)
    });
    broken.collect()
}

/// The memory spaces to run in: those that the options allow, and without an adapter only the CPU.
fn spaces(flags: &SharedFlags) -> Vec<Space> {
    if flags.cpu {
        return vec![Space::Cpu];
    }
    if flags.gpu || flags.require_gpu || flags.backend.is_some() || flags.device.is_some() {
        return vec![Space::Gpu];
    }
    let adapters = machine::known_adapters().unwrap_or_else(machine::list_adapters);
    if adapters.is_empty() {
        if !flags.quiet {
            page::words(&format!(
                "This machine has no graphics adapter, so everything runs on the CPU.\nFor a GPU, {}.\n",
                devices::what_to_install()
            ));
        }
        return vec![Space::Cpu];
    }
    vec![Space::Cpu, Space::Gpu]
}

/// Runs the demo once at one size in one space. `None` if the device cannot be opened and `--gpu` is not given.
fn measure(
    args: &DemoArgs,
    registry: &Registry,
    size: &'static str,
    space: Space,
    trace: Option<&Trace>,
    interrupts: &Interrupts,
) -> Result<Option<Ran>, CliError> {
    let flags = &args.flags;
    let graph = graph(registry, size, HandlerSpec::new("null"), None)?;
    let seconds = args.seconds.unwrap_or(SECONDS);
    let live = Live::new(flags.quiet, Total::Time(seconds), false);
    let options = RunOptions {
        only: Some(space),
        // A table row describes one space, so a run does not continue on the CPU after the device is lost.
        on_loss: flags.on_loss.unwrap_or(OnLoss::Stop),
        longest_ms: Some(whole_ms(seconds)),
        ..request::options(flags)?
    };
    let mut builder = request::on_this_machine(flags, &graph, registry)?.options(options).listener(live.listener());
    if let Some(trace) = trace {
        builder = builder.trace(trace);
    }
    let mut pipeline = match builder.build() {
        Err(Error::NoDevice(why)) if !flags.gpu && !flags.require_gpu => {
            if !flags.quiet {
                page::warning(&format!("{why}; the demo continues without a device"));
            }
            return Ok(None);
        }
        answer => answer?,
    };
    let on = match pipeline.device() {
        None => "the CPU".to_owned(),
        Some(device) => format!("{} ({})", device.adapter().name, device.adapter().backend),
    };
    say(args, &format!("  {size:>9} on {on} ..."));
    interrupts.stop_instead(pipeline.stopper());
    live.begin();
    let outcome = pipeline.outcome();
    live.end();
    let report = finished(outcome?, interrupts)?;
    say(args, &format!("            {} frames, {:.0} fps", report.frames, report.fps));
    Ok(Some(Ran { size, place: space, report }))
}

/// Writes the frame, computed in the space that was fastest at the largest size.
fn picture(
    args: &DemoArgs,
    registry: &Registry,
    output: &PictureFile,
    runs: &[Ran],
    interrupts: &Interrupts,
) -> Result<(), CliError> {
    let (space, fps) = fastest(runs);
    let frame = (fps as u64).clamp(1, PICTURED);
    let sink = HandlerSpec::new("png").set("path", output.pattern());
    let graph = graph(registry, LARGEST, sink, Some(frame))?;
    // This run is not a measurement, so it ignores `--fps`.
    let flags = SharedFlags { fps: None, ..args.flags.clone() };
    let options = request::options(&flags)?.only(space);
    let builder = request::on_this_machine(&flags, &graph, registry)?.options(options);
    let written = (|| {
        let mut pipeline = builder.build()?;
        interrupts.stop_instead(pipeline.stopper());
        finished(pipeline.outcome()?, interrupts)?;
        output.keep(frame)
    })();
    output.clean(frame);
    written
}

/// The space that was fastest at the largest size, and its frame rate.
fn fastest(runs: &[Ran]) -> (Space, f64) {
    let at_largest = runs.iter().filter(|ran| ran.size == LARGEST);
    let best = at_largest.max_by(|a, b| a.report.fps.total_cmp(&b.report.fps));
    best.map_or((Space::Cpu, 1.0), |ran| (ran.place, ran.report.fps))
}

fn finished(outcome: vramp::runtime::RunOutcome, interrupts: &Interrupts) -> Result<Report, CliError> {
    let vramp::runtime::RunOutcome { report, error, .. } = outcome;
    match error {
        Some(error @ RunError::Failed(_)) => Err(CliError::Failed(chainless(&error))),
        _ if interrupts.requested() => Err(CliError::Interrupted),
        Some(error) => Err(CliError::Failed(chainless(&error))),
        None => Ok(report),
    }
}

/// The demo's graph with this sink. With `last_frame`, the source ends after that frame.
fn graph(registry: &Registry, size: &str, sink: HandlerSpec, last_frame: Option<u64>) -> Result<Graph, CliError> {
    let mut spec = GraphSpec::new();
    let mut source = HandlerSpec::new("pattern").set("kind", "ball").set("size", size);
    if let Some(frame) = last_frame {
        source = source.set("frames", frame + 1);
    }
    let mut last = spec.add(source);
    let drawn = ["markers", "waveform", "fps"].map(HandlerSpec::new);
    for handler in drawn.into_iter().chain([sink]) {
        let next = spec.add(handler);
        spec.connect(last, next);
        last = next;
    }
    registry.check(&spec).map_err(|error| CliError::Failed(error.into()))
}

/// Prints the plan, the table and the file name.
fn page_of(args: &DemoArgs, plan: &Plan, runs: &[Ran]) -> Result<(), CliError> {
    let picture = args.output.display().to_string();
    if args.json {
        let mut line =
            serde_json::to_string(&DemoJson { picture, runs }).map_err(|error| CliError::Failed(error.into()))?;
        line.push('\n');
        return page::result(line.as_bytes());
    }
    let colour = page::colour_on_stdout();
    let plan_text = Plan { warnings: Vec::new(), ..plan.clone() }.to_text(colour);
    let page = format!(
        "\nPlan for {LARGEST} on this machine:\n\n{}\n\nMeasurements:\n\n{}\n{}\nThe frame is in \
         {picture}. `vramp inspect` lists the handlers; `vramp help run` shows how to join them.\n",
        plan_text.trim_end(),
        table::of(runs, colour),
        verdict(plan, runs)
    );
    page::result(page.as_bytes())
}

/// The measured frame rates at the largest size, and the space that vramp uses by default, as text.
fn verdict(plan: &Plan, runs: &[Ran]) -> String {
    let at_largest = runs.iter().filter(|ran| ran.size == LARGEST);
    let sides: Vec<String> =
        at_largest.map(|ran| format!("the {} reaches {:.0} fps", ran.place, ran.report.fps)).collect();
    let chosen = if plan.lanes.iter().any(|lane| lane.device) { Space::Gpu } else { Space::Cpu };
    format!("At {LARGEST}, {}. By default, vramp uses the {chosen}.", sides.join(" and "))
}

fn say(args: &DemoArgs, words: &str) {
    if !args.flags.quiet {
        page::words(words);
    }
}

/// The output file. The sink writes every frame to a temporary file; the file of the last frame gets the final name.
struct PictureFile {
    path: PathBuf,
}

impl PictureFile {
    fn find(path: &Path) -> Result<PictureFile, CliError> {
        if path.is_dir() {
            return Err(CliError::Wrong(anyhow!("--output {} is a directory; help: add a file name", path.display())));
        }
        if path.to_str().is_none() {
            return Err(CliError::Wrong(anyhow!(
                "--output {} is not UTF-8 text; help: choose another name",
                path.display()
            )));
        }
        Ok(PictureFile { path: path.to_owned() })
    }

    fn part(&self, frame: u64) -> String {
        format!("{}.{}-{frame}.part", self.path.display(), std::process::id())
    }

    /// The `path` setting of the sink for the temporary files. A percent sign in the name is doubled.
    fn pattern(&self) -> String {
        let shown = self.path.display().to_string().replace('%', "%%");
        format!("{shown}.{}-%d.part", std::process::id())
    }

    fn keep(&self, frame: u64) -> Result<(), CliError> {
        std::fs::rename(self.part(frame), &self.path)
            .map_err(|error| CliError::Failed(anyhow::Error::new(error).context(self.path.display().to_string())))
    }

    fn clean(&self, frame: u64) {
        for frame in 0..=frame {
            // A file that does not exist needs no removal.
            let _ = std::fs::remove_file(self.part(frame));
        }
    }
}
