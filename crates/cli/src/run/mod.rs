//! `vramp run`: plans a pipeline and runs it, or with `--verify` compares results instead.
//!
//! This module refuses invalid requests before the run starts, prints the result, and returns the most important error
//! if there are several. Standard output gets the frames of a sink or one line of JSON, and nothing else. The report is
//! printed however the run ends.

mod budget;
mod event_log;
mod follow;
mod live;
mod report_file;
mod streams;
mod verify;
mod words;

pub(crate) use budget::{check as check_budget, check_plan as check_plan_budget, refuse_unplanned};
pub(crate) use event_log::EventLog;
pub(crate) use live::{Live, Total};
pub(crate) use report_file::RunFiles;
pub(crate) use streams::Streams;
pub(crate) use words::{counted, reasons, size_of_plan};

use std::time::Duration;

use anyhow::anyhow;
use serde::Serialize;
use vramp::Pipeline;
use vramp::handlers::files::FileUse;
use vramp::plan::{Graph, Plan, RunOptions};
use vramp::runtime::observe::KeptPartial;
use vramp::runtime::{Listener, Registry, RunError, RunOutcome};

use crate::args::RunArgs;
use crate::control::{self, Reserved};
use crate::failure::{CliError, chainless};
use crate::input::CheckedPipeline;
use crate::interrupt::Interrupts;
use crate::windows::{Windows, add_preview, beside_windows};
use crate::{page, plan, request};

use follow::FollowedPipeline;
use live::Message;
use words::{latency_met, leaks, memory_used, plan_line, slowest, summary, time_table};

pub(crate) fn run(args: &RunArgs, registry: &Registry) -> Result<(), CliError> {
    let interrupts = Interrupts::listen()?;
    let written =
        if args.flags.verify { CheckedPipeline::read(&args.pipeline, registry)? } else { read_to_run(args, registry)? };
    let ran = if args.flags.verify {
        // Sinks show nothing.
        play(args, &written, registry, &Windows::none(), &interrupts)
    } else {
        beside_windows(&written.graph, registry, |registry, windows| {
            play(args, &written, registry, windows, &interrupts)
        })
    };
    ran.map_err(|why| written.place(why))
}

/// Reads the pipeline, adds what the options ask for, and checks both.
pub(crate) fn read_to_run(args: &RunArgs, registry: &Registry) -> Result<CheckedPipeline, CliError> {
    CheckedPipeline::read_to_run(
        &args.pipeline,
        registry,
        |spec| add_preview(args, spec, registry.catalog()),
        |graph, files| own_files(args, graph, files),
    )
}

fn play(
    args: &RunArgs,
    written: &CheckedPipeline,
    registry: &Registry,
    windows: &Windows,
    interrupts: &Interrupts,
) -> Result<(), CliError> {
    let CheckedPipeline { spec, graph, .. } = written;
    let flags = &args.flags;
    let streams = Streams::of(graph);
    Streams::refuse_app(graph)?;
    streams.refuse_shared(args.json)?;
    if flags.verify {
        if args.trace.is_some() {
            return Err(CliError::Wrong(anyhow!(
                "--trace: --verify compares instead of running; remove one of the two"
            )));
        }
        if args.preview {
            return Err(CliError::Wrong(anyhow!(
                "--preview: --verify compares instead of running; remove one of the two"
            )));
        }
        report_file::refuse_compared(args)?;
        if flags.require_gpu {
            return Err(CliError::Wrong(anyhow!(
                "--require-gpu: --verify also runs every handler on the CPU, to compare; remove one of the two"
            )));
        }
        if args.control.is_some() {
            return Err(CliError::Wrong(anyhow!(
                "--control: --verify compares instead of running; remove one of the two"
            )));
        }
        flags.refuse_latency("--verify compares instead of running")?;
        return verify::run(args, spec, graph, registry);
    }
    streams.refuse_drawing_elsewhere()?;
    let live = Live::new(flags.quiet, Total::of(graph, args.frames, args.seconds), streams.draws());
    let live = live.verbose(flags.verbose);
    let control = Reserved::make(args)?;
    let Ready { mut pipeline, timeline } = Ready::make(args, graph, registry, live.listener())?;
    interrupts.stop_instead(pipeline.stopper());
    windows.attach(&pipeline);
    live.begin();
    let printer = live.clone();
    let _serving = control.map(|control| control.serve(&pipeline, move |line| printer.print(line))).transpose()?;
    let _followed = match streams.reader() {
        _ if !args.watch => None,
        None => FollowedPipeline::begin(args, written.text(), registry, pipeline.controls(), &live),
        Some(reader) => {
            // Checking an edited file would probe standard input once more.
            live.tell(Message::Note(format!(
                "{reader} reads standard input, so the pipeline's own file is not followed"
            )));
            None
        }
    };
    let outcome = pipeline.outcome();
    live.end();
    conclude(args, outcome?, (timeline, written.text()), interrupts.requested())
}

/// Adds the files that the program itself reads and writes. Refuses a standard stream that is used twice.
pub(crate) fn own_files(args: &RunArgs, graph: &Graph, mut files: FileUse) -> Result<FileUse, CliError> {
    let streams = Streams::of(graph);
    Streams::refuse_app(graph)?;
    control::refuse_reader(args, streams.reader())?;
    streams.refuse_shared(args.json)?;
    for drawer in streams.drawers() {
        files = files.writes_standard_output(drawer);
    }
    if let Some(profile) = args.flags.profile.as_deref().and_then(request::profile_file) {
        files = files.reads("the profile", profile);
    }
    if let Some(trace) = &args.trace {
        files = files.writes("--trace", trace);
    }
    if let Some(report) = &args.report {
        files = files.writes("--report", report);
    }
    Ok(if args.json { files.writes_standard_output("--json") } else { files })
}

/// A prepared run, and the files that it writes about itself.
pub(crate) struct Ready {
    pub(crate) pipeline: Pipeline,
    pub(crate) timeline: RunFiles,
}

impl Ready {
    /// Plans a graph, prepares everything, and prints the plan.
    pub(crate) fn make(
        args: &RunArgs,
        graph: &Graph,
        registry: &Registry,
        listener: Listener,
    ) -> Result<Ready, CliError> {
        let flags = &args.flags;
        let timeline = RunFiles::create(args)?;
        let options = RunOptions {
            frames: args.frames,
            longest_ms: args.seconds.map(whole_ms),
            watch: args.watch,
            time_limit_ms: args.time_limit,
            ..request::options(flags)?
        };
        let builder = request::on_this_machine(flags, graph, registry)?.options(options);
        let pipeline = timeline.record(builder, listener).build()?;
        let timeline = timeline.about(&pipeline);
        if !flags.quiet {
            let plan = pipeline.plan();
            plan.warnings.iter().for_each(|warning| page::warning(warning));
            plan.notes.iter().for_each(|note| page::note(note));
            if flags.verbose {
                // The warnings and notes are printed above.
                let plan_only = Plan { warnings: Vec::new(), notes: Vec::new(), ..plan.clone() };
                page::words(&plan_only.to_text(page::colour_on_stderr()));
                plan::negotiated(plan);
            }
            page::words(&plan_line(&pipeline));
        }
        Ok(Ready { pipeline, timeline })
    }
}

/// Whole milliseconds, at least one.
pub(crate) fn whole_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1)
}

/// Prints the report, writes the files about the run and returns its result. `text` is the pipeline as written. If there
/// are several errors, returns a failure rather than an interruption, and an interruption rather than an exceeded
/// budget.
pub(crate) fn conclude(
    args: &RunArgs,
    outcome: RunOutcome,
    (timeline, text): (RunFiles, &str),
    interrupted: bool,
) -> Result<(), CliError> {
    let RunOutcome { report, error, .. } = outcome;
    if !args.flags.quiet {
        for leak in leaks(&report.memory) {
            page::warning(&leak);
        }
        page::words(&memory_used(&report.memory));
        let times = if args.flags.verbose { time_table(&report.units) } else { slowest(&report.units) };
        for line in times {
            page::words(&line);
        }
        if let Some(line) = latency_met(&report) {
            page::words(&line);
        }
        page::words(&summary(&report));
    }
    // Printed even if quiet, because no other message says where the frames are.
    for KeptPartial { handler, path, instead_of } in &report.partial_files {
        page::warning(&format!(
            "{handler}: the run failed or was interrupted; `{instead_of}` was not replaced, and the frames so far are in `{path}`"
        ));
    }
    let ended = match error {
        // The handler does not respond because it waits for input or output. The user has ended the run, so this is not
        // a failure.
        Some(error @ RunError::Unresponsive { .. }) if interrupted => {
            page::warning(&error.to_string());
            Err(CliError::Interrupted)
        }
        Some(error) => Err(CliError::Failed(chainless(&error)).of(error.handler())),
        None if interrupted => Err(CliError::Interrupted),
        None => check_budget(&args.flags, &report),
    };
    let problems = ended.as_ref().err().map(CliError::lines).unwrap_or_default();
    let drawn = timeline.write(text, &report, problems);
    let printed = if args.json { print(&report) } else { Ok(()) };
    ended.and(printed).and(drawn)
}

fn print(report: &impl Serialize) -> Result<(), CliError> {
    let mut line = serde_json::to_string(report).map_err(|error| CliError::Failed(error.into()))?;
    line.push('\n');
    page::result(line.as_bytes())
}
