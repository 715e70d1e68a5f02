//! The `vramp` program as a library, so that the program can be built with additional handlers.
//!
//! This crate parses the command line, prints results and messages, and sets the exit code. The library `vramp` plans
//! and runs pipelines.
//!
//! ```no_run
//! # use vramp::prelude::*;
//! # static ENTRY: Entry = Entry { name: "mine", ..Entry::FILTER };
//! # struct Mine;
//! # impl FrameHandler for Mine {
//! #     fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> { Ok(Flow::Filtered) }
//! # }
//! fn main() -> std::process::ExitCode {
//!     let mut registry = vramp::registry();
//!     registry.add(&ENTRY, |_| Ok(Mine)).expect("the name is free");
//!     vramp_cli::main(&registry) // `run`, `plan`, `top`, `inspect` and all other commands know `mine`
//! }
//! ```
//!
//! Results go to standard output, messages to standard error. An error is printed once.

mod args;
mod bench;
mod calibrate;
mod control;
mod demo;
mod devices;
mod doctor;
mod failure;
mod fmt;
mod input;
mod inspect;
mod interrupt;
mod model;
mod page;
mod plan;
mod request;
mod result_file;
mod run;
mod screen;
mod top;
mod trace;
mod windows;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{Arg, CommandFactory, Parser};
use vramp::runtime::Registry;

use args::{Command, CommandLine, ModelCommand};
use failure::CliError;

/// Reads the command line and runs the command, with the handlers of this registry. This function also returns after
/// `--help` and after invalid arguments, instead of ending the program. It ends the program only if a device hangs.
///
/// Call this function first in `main`. On Linux, graphics drivers print warnings if the variable `XDG_RUNTIME_DIR` is
/// missing. In that case, a command that uses graphics drivers restarts the program once with the variable set. This
/// function also installs a panic hook that suppresses Rust's own message for panics in handlers, because vramp reports
/// these panics as errors.
///
/// Reports count allocations if the program sets [`CountingAllocator`](vramp::runtime::CountingAllocator) as its global
/// allocator.
pub fn main(registry: &Registry) -> ExitCode {
    ExitCode::from(run(registry, std::env::args_os()))
}

/// As [`main`], with these arguments instead of the process's own, of which the first is the program's name. Returns the
/// exit code. A restart for the graphics drivers restarts the process with its own arguments.
pub fn run(registry: &Registry, args: impl IntoIterator<Item = OsString>) -> u8 {
    vramp::runtime::share_heap_if_limited();
    quiet_panics_of_handlers();
    let command = match CommandLine::try_parse_from(args) {
        Ok(args) => args.command,
        Err(answer) => {
            // If standard error is closed, the exit code is all that can be reported.
            let _ = answer.print();
            return u8::try_from(answer.exit_code()).unwrap_or(1);
        }
    };
    #[cfg(target_os = "linux")]
    hush_drivers(&command);
    #[cfg(unix)]
    interrupt::keep_large_files_from_ending_it();
    let outcome = match command {
        Command::Demo(args) => args.flags.refuse_verify("demo").and_then(|()| demo::run(&args, registry)),
        Command::Run(args) => run::run(&args, &args.ffmpeg.set(registry)),
        Command::Bench(args) => bench::run(&args),
        Command::Model(command) => model::run(&command),
        Command::Top(args) => top::run(&args, &args.ffmpeg.set(registry)),
        Command::Devices { json, measure } if measure.calibrate => calibrate::run(&measure, json),
        Command::Devices { json, .. } => devices::run(json),
        Command::Doctor { json, ffmpeg } => doctor::run(json, &ffmpeg.tools()),
        Command::Plan(args) => {
            args.flags.refuse_verify("plan").and_then(|()| plan::run(&args, &args.ffmpeg.set(registry)))
        }
        Command::Inspect { handler, json, ffmpeg } => inspect::run(handler.as_deref(), json, &ffmpeg.tools(), registry),
        Command::Fmt { pipeline } => fmt::run(&pipeline, registry),
        Command::Completions { shell } => completions(shell, registry),
    };
    // A handler that did not return may have left the terminal changed.
    screen::restore();
    let code = match outcome {
        Ok(()) => 0,
        Err(failure) => failure.report(),
    };
    if vramp::gpu::has_abandoned_device() {
        vramp::runtime::leave_at_once(code);
    }
    code
}

/// Suppresses Rust's message for panics in handlers, because the runtime reports these panics as failures of a frame.
fn quiet_panics_of_handlers() {
    let others = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !std::thread::current().name().is_some_and(|name| name.starts_with("vramp ")) {
            screen::restore();
            others(panic);
        }
    }));
}

/// If `XDG_RUNTIME_DIR` is missing, as in containers and over ssh, and the command uses graphics drivers, restarts the
/// program with that variable set.
///
/// While Mesa lists adapters, it looks for a Wayland socket. Without that variable, Mesa prints warnings on standard
/// error. A process cannot safely change its own environment, but it can restart itself. A restart takes a millisecond.
/// If the restart fails, the warnings stay.
#[cfg(target_os = "linux")]
fn hush_drivers(command: &Command) {
    use std::os::unix::process::CommandExt as _;
    let uses_drivers = match command {
        Command::Demo(args) => !args.flags.cpu,
        Command::Bench(args) => !args.flags.cpu,
        Command::Model(ModelCommand::Run(args)) => !args.cpu,
        // Windows use graphics drivers also in a run on the CPU.
        Command::Run(_) | Command::Top(_) | Command::Devices { .. } | Command::Doctor { .. } => true,
        Command::Model(ModelCommand::Inspect(_))
        | Command::Plan(_)
        | Command::Inspect { .. }
        | Command::Fmt { .. }
        | Command::Completions { .. } => false,
    };
    if !uses_drivers || std::env::var_os("XDG_RUNTIME_DIR").is_some() {
        return;
    }
    let mut words = std::env::args_os();
    let mut again = std::process::Command::new("/proc/self/exe");
    again.arg0(words.next().unwrap_or_else(|| "vramp".into())).args(words);
    let _ = again.env("XDG_RUNTIME_DIR", std::env::temp_dir()).exec();
}

fn completions(shell: clap_complete::Shell, registry: &Registry) -> Result<(), CliError> {
    let mut script = Vec::new();
    // The list of names is set only for completions. If a command used it as a parser, the message about a misspelt
    // handler would contain all fifty names.
    let names: BTreeSet<&'static str> = registry.catalog().entries().map(|e| e.name).collect();
    let handler = |arg: Arg| arg.value_parser(PossibleValuesParser::new(names));
    let mut command = CommandLine::command().mut_subcommand("inspect", |inspect| inspect.mut_arg("handler", handler));
    clap_complete::generate(shell, &mut command, "vramp", &mut script);
    page::result(&script)
}
