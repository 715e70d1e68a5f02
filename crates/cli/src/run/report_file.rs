//! The files that a run writes about itself: the timeline of `--trace` and the page of `--report`.
//!
//! Both are opened before the run, so that a path that cannot be written is refused early, and both are written however
//! the run ends.

use anyhow::anyhow;
use vramp::plan::Plan;
use vramp::report::{Page, Recorder};
use vramp::runtime::{Listener, Report, Trace, Watch};
use vramp::{Controls, Pipeline, PipelineBuilder};

use crate::args::RunArgs;
use crate::failure::CliError;
use crate::result_file::ResultFile;
use crate::trace::TraceFile;

/// The files of `--trace` and `--report`, if given.
pub(crate) struct RunFiles {
    trace: Option<(TraceFile, Trace)>,
    report: Option<ReportFile>,
}

/// The file of `--report`, and what its page is about.
struct ReportFile {
    file: ResultFile,
    recorder: Recorder,
    run: Option<ReportedRun>,
}

/// The parts of a pipeline that a page needs after the run.
struct ReportedRun {
    plan: Plan,
    controls: Controls,
    watch: Watch,
    facts: Vec<(&'static str, String)>,
}

/// Refuses `--report` if a run is only compared.
pub(super) fn refuse_compared(args: &RunArgs) -> Result<(), CliError> {
    match args.report {
        Some(_) => {
            Err(CliError::Wrong(anyhow!("--report: --verify compares instead of running; remove one of the two")))
        }
        None => Ok(()),
    }
}

impl RunFiles {
    pub(super) fn create(args: &RunArgs) -> Result<RunFiles, CliError> {
        let trace = args.trace.as_deref().map(TraceFile::create).transpose()?;
        let trace = trace.map(|file| (file, Trace::default()));
        let file = args.report.as_deref().map(|path| ResultFile::create("--report", path)).transpose()?;
        // A run has one timeline. If both files are asked for, the page shows a part of the other file's timeline.
        let recorder = || trace.as_ref().map_or_else(Recorder::new, |(_, trace)| Recorder::on(trace));
        let report = file.map(|file| ReportFile { file, recorder: recorder(), run: None });
        Ok(RunFiles { trace, report })
    }

    /// Makes the pipeline record what the files need.
    pub(super) fn record(&self, builder: PipelineBuilder, listener: Listener) -> PipelineBuilder {
        match (&self.report, &self.trace) {
            (Some(report), _) => {
                builder.trace(report.recorder.trace()).listener(report.recorder.listener_before(listener))
            }
            (None, Some((_, trace))) => builder.trace(trace).listener(listener),
            (None, None) => builder.listener(listener),
        }
    }

    /// The same for a pipeline that is built.
    pub(super) fn about(mut self, pipeline: &Pipeline) -> RunFiles {
        if let Some(report) = &mut self.report {
            report.run = Some(ReportedRun {
                plan: pipeline.plan().clone(),
                controls: pipeline.controls(),
                watch: pipeline.watch(),
                facts: facts(pipeline),
            });
        }
        self
    }

    /// Writes both files. The problem is why the run did not end as requested.
    pub(super) fn write(self, text: &str, report: &Report, problems: Vec<String>) -> Result<(), CliError> {
        let drawn = self.trace.map_or(Ok(()), |(file, trace)| file.write(&[("vramp", &trace)]));
        let Some(ReportFile { file, recorder, run: Some(run) }) = self.report else { return drawn };
        // Another graph may have continued the run. Its plan lacks the warnings that were found after planning.
        let last = run.controls.plan();
        let is_replaced = last.handlers != run.plan.handlers;
        let plan = if is_replaced { last } else { run.plan };
        let mut page = Page::of_run(&plan, report, recorder.record(&run.watch)).pipeline(text);
        if is_replaced {
            page = page.note(
                "another graph continued the run: the pipeline above is the first one, the graph below the last one",
            );
        }
        for (name, value) in run.facts {
            page = page.fact(name, value);
        }
        for problem in problems {
            page = page.problem(problem);
        }
        drawn.and(file.write(|to| to.write_all(page.to_html().as_bytes())))
    }
}

/// Facts about the device and the machine.
fn facts(pipeline: &Pipeline) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if let Some(device) = pipeline.device() {
        let adapter = device.adapter();
        facts.push(("kind of device", adapter.kind.to_string()));
        facts.push(("driver", format!("{} {}", adapter.driver, adapter.driver_version).trim().to_owned()));
        facts.push(("chosen because", device.why().to_owned()));
    }
    facts.push(("threads for rows on the cpu", pipeline.threads().to_string()));
    facts.push(("system", format!("{} {}", std::env::consts::OS, std::env::consts::ARCH)));
    facts
}
