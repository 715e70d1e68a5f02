//! `vramp top`: runs a pipeline like `vramp run`, with a live view.
//!
//! The pipeline runs in its own threads. The view reads snapshots, and changes settings by keys. The final lines are the
//! same as those of `vramp run`, and are printed after the terminal is restored.

mod figures;
mod input;
mod keyboard;
mod keys;
mod view;

use std::io::{self, IsTerminal};
use std::panic::resume_unwind;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use ratatui::crossterm::event::Event;
use vramp::Error;
use vramp::panel::{SettingsPanel, SettingsText};
use vramp::runtime::{Registry, RunOutcome, Stopper, Watch};

use crate::args::RunArgs;
use crate::control::{Reserved, refuse_reader};
use crate::failure::CliError;
use crate::input::CheckedPipeline;
use crate::interrupt::Interrupts;
use crate::page;
use crate::run::{EventLog, Ready, Streams, conclude, read_to_run};
use crate::screen::TerminalScreen;
use crate::windows::{Windows, beside_windows};

use figures::{PlanFacts, RunHistory};
use keyboard::Keyboard;
use keys::{KeyAction, Keys};

/// Interval of updates: short enough to show movement, long enough to read the figures.
const LOOK: Duration = Duration::from_millis(250);

/// Maximum delay until the end of the run is noticed.
const NOTICE: Duration = Duration::from_millis(50);

pub(crate) fn run(args: &RunArgs, registry: &Registry) -> Result<(), CliError> {
    args.flags.refuse_verify("top")?;
    let written = read_to_run(args, registry)?;
    let ran = beside_windows(&written.graph, registry, |registry, windows| play(args, &written, registry, windows));
    ran.map_err(|why| written.place(why))
}

fn play(args: &RunArgs, written: &CheckedPipeline, registry: &Registry, windows: &Windows) -> Result<(), CliError> {
    let graph = &written.graph;
    let streams = Streams::of(graph);
    streams.refuse_shared(args.json)?;
    if !io::stdout().is_terminal() || std::env::var_os("TERM").is_some_and(|term| term == "dumb") {
        return Err(CliError::Wrong(anyhow!(
            "`vramp top` draws on standard output, which is not a terminal or cannot show the view; use `vramp run \
             PIPELINE --json` for figures in a file or a pipe"
        )));
    }
    streams.refuse_under("top")?;
    let interrupts = Interrupts::listen()?;
    let log = EventLog::new();
    refuse_reader(args, Some("the view"))?;
    let control = Reserved::make(args)?;
    let Ready { mut pipeline, timeline } = Ready::make(args, graph, registry, log.listener())?;
    let _serving = control.map(|control| control.serve(&pipeline, |_| ())).transpose()?;
    let (watch, stopper) = (pipeline.watch(), pipeline.stopper());
    interrupts.stop_instead(stopper.clone());
    windows.attach(&pipeline);
    let setting = PlanFacts::of(pipeline.plan());
    let settings = SettingsPanel::of(pipeline.controls());
    let mut settings = settings.context("cannot start a thread for changes").map_err(CliError::Failed)?;
    let screen = TerminalScreen::take()?;
    let running = thread::Builder::new().name("run".to_owned()).spawn(move || pipeline.outcome());
    let running = running.context("cannot start a thread for the run").map_err(CliError::Failed)?;
    let shown = show(
        screen,
        &WatchedRun { running: &running, watch, stopper: &stopper, interrupts: &interrupts },
        &setting,
        &mut settings,
        &log,
    );
    if shown.is_err() {
        stopper.stop();
    }
    let outcome = running.join().unwrap_or_else(|panic| resume_unwind(panic));
    drop(settings);
    if !args.flags.quiet {
        log.print();
    }
    conclude(args, outcome?, (timeline, written.text()), interrupts.requested()).and(shown)
}

/// The run that the view reads and that keys end.
struct WatchedRun<'a> {
    running: &'a JoinHandle<Result<RunOutcome, Error>>,
    watch: Watch,
    stopper: &'a Stopper,
    interrupts: &'a Interrupts,
}

/// Shows a run until it has ended, then restores the terminal.
fn show(
    mut screen: TerminalScreen,
    run: &WatchedRun<'_>,
    setting: &PlanFacts,
    settings: &mut SettingsPanel,
    log: &EventLog,
) -> Result<(), CliError> {
    let broken = |error: io::Error| CliError::Failed(anyhow::Error::new(error).context("the terminal"));
    let (begun, mut keyboard) = (Instant::now(), Keyboard::find().map_err(broken)?);
    let (mut figures, mut keys) = (RunHistory::default(), Keys::default());
    let mut looked: Option<Instant> = None;
    let mut is_stale = true;
    let colour = page::colour_on_stdout();
    while !run.running.is_finished() {
        if looked.is_none_or(|at| at.elapsed() >= LOOK) {
            looked = Some(Instant::now());
            figures.look(run.watch.snapshot(begun.elapsed()), !keys.is_paused());
            is_stale = true;
        }
        if std::mem::take(&mut is_stale) || keys.wants_settings() && settings.has_news() {
            let sheet = figures.sheet(setting, log.all(), run.stopper.is_stopped());
            let text = if keys.wants_settings() { settings.text() } else { SettingsText::default() };
            screen.terminal.draw(|frame| view::draw(frame, &sheet, &text, &mut keys, colour)).map_err(broken)?;
        }
        let wait = LOOK.saturating_sub(looked.map_or(LOOK, |at| at.elapsed())).min(NOTICE);
        if let Some(event) = keyboard.wait(wait).map_err(broken)? {
            is_stale = true;
            // Events other than keys, such as a resized window, only redraw the view.
            let Event::Key(key) = event else { continue };
            match keys.press(key) {
                KeyAction::Look => {}
                // Clearing asks the terminal for the cursor position. If there is no answer, nothing is cleared.
                KeyAction::Redraw => drop(screen.terminal.clear()),
                KeyAction::Quit => run.stopper.end(),
                // In raw mode the terminal sends no signal for Ctrl-C, so the key does what the signal would do.
                KeyAction::Interrupt => run.interrupts.request(),
                KeyAction::Step { row, direction } => settings.step(row, direction),
                KeyAction::Edit { row } => {
                    if let Some((name, value)) = settings.edit(row) {
                        keys.edit(name, &value);
                    }
                }
                KeyAction::Set { name, text } => settings.set(name, text),
            }
        }
    }
    Ok(())
}
