//! The chores of this repository: testing, linting, long runs and benchmarks.
//!
//! Invariant: the first failing step ends the command. The error names the step and the command that repeats only this
//! step.

mod apt;
mod count;
mod instructions;
mod isa;
mod lint;
mod long;
mod models;
mod python;
mod shell;
mod test;
mod wasm;

use std::process::ExitCode;

use anyhow::bail;

const HELP: &str = "\
cargo xtask COMMAND

  test                runs every test, counts the instructions of key paths, checks what GPUs' compilers make of the
                      kernels, runs the doc tests, builds the docs, builds the libraries for wasm32, and tests the Python
                      package; ends with `N passed, N failed`
  test --only STEP    one step of `test`: unit, instructions, isa, doc, docs, wasm or python (may be given several times)
  lint                formatting, clippy, and cargo-deny if it is installed
  ci                  lint, then test
  long                brute force over many more graphs, a million frames, then a bounded fuzz run if cargo-fuzz is
                      installed
  instructions --record
                      writes the counts that the step `instructions` compares with
  isa [--only WORD] [--json | --frames | --against REV] [FILE.wgsl...]
                      what GPUs' compilers make of the kernels, or of the files; with --frames a model of a frame on real
                      cards, with --against what differs from the table of a revision
  isa --code KERNEL   the machine code of a kernel
  isa --rates         the rates of the shipped profiles, from that model
  isa --record        writes the table that the step `isa` compares with
  python              builds the Python package into target/wheels
  models              fetches the models of tests and benches into target/models
  bench               the benchmarks
  help                this text
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match obey(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn obey(words: &[&str]) -> anyhow::Result<()> {
    match words {
        [] | ["help" | "--help" | "-h"] => print!("{HELP}"),
        ["test", options @ ..] => test::run(&test::chosen(options)?)?,
        ["lint"] => lint::run()?,
        ["ci"] => {
            lint::run()?;
            test::run(&test::Step::ALL)?;
        }
        ["instructions", "--record"] => instructions::record()?,
        ["isa", options @ ..] => isa::run(options)?,
        ["long"] => long::run()?,
        ["python"] => python::wheel()?,
        ["models"] => models::fetch()?,
        ["bench"] => shell::run(shell::cargo(["bench", "--workspace", "--benches"]))?,
        _ => bail!("`{}` is not a command\n\n{HELP}", words.join(" ")),
    }
    Ok(())
}
