//! `vramp run`: plans a pipeline and runs it.
//!
//! Owns the command: what is refused before it starts, what is said when it has ended, and which of several reasons
//! decides the exit code. With `--verify` it compares instead of running.
//! Does not measure: the report comes from the library.
//!
//! Always: standard output gets the frames of a sink or one line of JSON, and nothing else; the report is printed
//! however the run ends.

mod budget;
mod live;
mod verify;
mod words;

pub(crate) use budget::check as check_budget;
pub(crate) use live::{Live, Total};
pub(crate) use words::counted;

use std::time::Duration;

use anyhow::anyhow;
use serde::Serialize;
use vramp::plan::Graph;
use vramp::plan::catalog::Family;
use vramp::runtime::{Outcome, RunError, Trace};

use crate::args::RunArgs;
use crate::failure::{Failure, chainless};
use crate::input::read_checked;
use crate::interrupt::Interrupts;
use crate::trace::TraceFile;
use crate::{page, plan, session};

use words::{leaks, memory_used, plan_line, summary};

pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    let interrupts = Interrupts::listen()?;
    let wishes = &args.wishes;
    let kinds = vramp::kinds();
    let (spec, graph) = read_checked(&args.pipeline, kinds.catalog())?;
    refuse_shared_streams(args, &graph)?;
    if wishes.verify {
        if args.trace.is_some() {
            return Err(Failure::Wrong(anyhow!("--trace: --verify compares instead of running; drop one of the two")));
        }
        return verify::run(args, &spec, &graph, &kinds);
    }
    let file = args.trace.as_deref().map(TraceFile::create).transpose()?;
    let trace = file.as_ref().map(|_| Trace::default());
    let mut session = session::on_this_machine(wishes, &graph, &kinds)?;
    if let Some(trace) = &trace {
        session = session.trace(trace);
    }
    if let Some(frames) = args.frames {
        session = session.frames(frames);
    }
    session = session.watch(args.watch);
    if let Some(limit_ms) = args.time_limit {
        session = session.time_limit(Duration::from_millis(limit_ms));
    }
    let live = Live::new(wishes.quiet, Total::of(&graph, args.frames, args.seconds));
    let prepared = session.listener(live.listener()).prepare()?;
    if !wishes.quiet {
        prepared.plan.warnings.iter().for_each(|warning| page::warning(warning));
        if wishes.verbose {
            page::words(&prepared.plan.to_text(page::colour_on_stderr()));
            plan::negotiated(&prepared.plan);
        }
        page::words(&plan_line(&prepared));
    }
    interrupts.stop_instead(prepared.pipeline.stopper());
    live.begin();
    let outcome = prepared.run(args.seconds);
    live.end();
    let outcome = outcome?;
    let drawn = match (file, &trace) {
        (Some(file), Some(trace)) => file.write(&[("vramp", trace)]),
        _ => Ok(()),
    };
    conclude(args, outcome, interrupts.were_there()).and(drawn)
}

/// Says how it ended, in the order of what matters most: a failure, an interruption, a budget.
fn conclude(args: &RunArgs, outcome: Outcome, interrupted: bool) -> Result<(), Failure> {
    let Outcome { report, error, .. } = outcome;
    if !args.wishes.quiet {
        for leak in leaks(&report.memory) {
            page::warning(&leak);
        }
        page::words(&memory_used(&report.memory));
        page::words(&summary(&report));
    }
    let ended = match error {
        // Whoever interrupts a handler that waits for something outside wants an end, and got one.
        Some(error @ RunError::Unresponsive { .. }) if interrupted => {
            page::warning(&error.to_string());
            Err(Failure::Interrupted)
        }
        Some(error) => Err(Failure::Failed(chainless(&error))),
        None if interrupted => Err(Failure::Interrupted),
        None => check_budget(&args.wishes, &report),
    };
    let printed = if args.json { print(&report) } else { Ok(()) };
    ended.and(printed)
}

fn print(report: &impl Serialize) -> Result<(), Failure> {
    let mut line = serde_json::to_string(report).map_err(|error| Failure::Failed(error.into()))?;
    line.push('\n');
    page::result(line.as_bytes())
}

/// Two may not write to standard output, nor read from standard input.
fn refuse_shared_streams(args: &RunArgs, graph: &Graph) -> Result<(), Failure> {
    let streams = |family: Family| -> Vec<&str> {
        let handlers = graph.handlers().iter().filter(|handler| handler.entry.family == family);
        handlers.filter(|h| h.settings.text("path") == Some("-")).map(|h| h.name.as_str()).collect()
    };
    let wrong = |words: String| Err(Failure::Wrong(anyhow!(words)));
    let (readers, writers) = (streams(Family::Source), streams(Family::Sink));
    let sinks: Vec<(&str, &str)> = graph
        .handlers()
        .iter()
        .filter(|handler| handler.entry.family == Family::Sink)
        .filter_map(|handler| Some((handler.name.as_str(), handler.settings.text("path").filter(|path| *path != "-")?)))
        .collect();
    for (at, (one, path)) in sinks.iter().enumerate() {
        if let Some((other, _)) = sinks[..at].iter().find(|(_, before)| before == path) {
            return wrong(format!("{other} and {one} both write to `{path}`; give one of them another file"));
        }
    }
    match (&writers[..], &readers[..]) {
        ([writer, ..], _) if args.json => wrong(format!(
            "{writer} writes frames to standard output (path=-), where --json would add a line; give {writer} a file, \
             or drop --json"
        )),
        ([one, other, ..], _) => {
            wrong(format!("{one} and {other} both write to standard output (path=-); give one of them a file"))
        }
        (_, [one, other, ..]) => {
            wrong(format!("{one} and {other} both read from standard input (path=-); give one of them a file"))
        }
        _ => Ok(()),
    }
}
