//! The `vramp` program.
//!
//! Owns the command line: what people type, what is printed where, and the exit code.
//! Does not decide or know anything about pipelines: the library does.
//!
//! Always: results go to standard output, words for people to standard error; an error is printed once.

mod args;
mod failure;
mod fmt;
mod input;
mod inspect;
mod page;
mod plan;

use std::collections::BTreeSet;
use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{Arg, CommandFactory, Parser};

use args::{Args, Command};
use failure::Failure;

fn main() -> ExitCode {
    let outcome = match Args::parse().command {
        Command::Plan(args) => plan::run(&args),
        Command::Inspect { handler, json } => inspect::run(handler.as_deref(), json),
        Command::Fmt { pipeline } => fmt::run(&pipeline),
        Command::Completions { shell } => completions(shell),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn completions(shell: clap_complete::Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    // Only here: as a parser the list would answer a misspelt handler with all fifty names.
    let names: BTreeSet<&'static str> = vramp::catalog().entries().map(|e| e.name).collect();
    let handler = |arg: Arg| arg.value_parser(PossibleValuesParser::new(names));
    let mut command = Args::command().mut_subcommand("inspect", |inspect| inspect.mut_arg("handler", handler));
    clap_complete::generate(shell, &mut command, "vramp", &mut script);
    page::result(&script)
}
