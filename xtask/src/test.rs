//! `cargo xtask test`: the steps, their order, and the line of counts at the end.
//!
//! Invariant: the counts are printed on their own line, even if a step failed.

use anyhow::{Context, bail};

use crate::count::{Count, Runner};
use crate::{apt, instructions, isa, models, python, shell, wasm};

/// A part of the tests that can run alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Unit, integration and process tests of every crate.
    Unit,
    /// The instruction counts of key paths, compared with the recorded counts.
    Instructions,
    /// What GPUs' compilers make of the kernels, compared with the recorded table.
    Isa,
    /// The examples in the documentation.
    Doc,
    /// The documentation itself, with warnings denied.
    Docs,
    /// A build of the libraries for the web.
    Wasm,
    /// The Python package: its wheel, pytest, strict mypy and stubtest.
    Python,
}

impl Step {
    /// Every step in order. Steps that fail most often come first.
    pub(crate) const ALL: [Step; 7] =
        [Step::Unit, Step::Instructions, Step::Isa, Step::Doc, Step::Docs, Step::Wasm, Step::Python];

    fn name(self) -> &'static str {
        match self {
            Step::Unit => "unit",
            Step::Instructions => "instructions",
            Step::Isa => "isa",
            Step::Doc => "doc",
            Step::Docs => "docs",
            Step::Wasm => "wasm",
            Step::Python => "python",
        }
    }

    fn run(self, count: &mut Count) -> anyhow::Result<()> {
        match self {
            Step::Unit => {
                apt::provide()?;
                apt::second_driver();
                models::fetch()?;
                let has_nextest = shell::works(shell::cargo(["nextest", "--version"]));
                let (runner, words): (_, &[&str]) =
                    if has_nextest { (Runner::Nextest, &["nextest", "run"]) } else { (Runner::Cargo, &["test"]) };
                // Tests start the lessons as programs, so the lessons are built here. With `--examples` among the
                // targets below, cargo would build the lessons as test harnesses.
                shell::run(shell::cargo(["build", "--workspace", "--examples"]))?;
                // Not `--all-targets`: benchmarks have their own main, which would measure instead of listing tests.
                // Clippy checks that benchmarks compile.
                let targets = ["--workspace", "--lib", "--bins", "--tests", "--no-fail-fast"];
                let words = [words, &targets].concat();
                shell::overhear(shell::cargo(words), &mut |line| count.hear(runner, line))
            }
            Step::Instructions => instructions::check(count),
            Step::Isa => isa::check(count),
            Step::Doc => {
                let command = shell::cargo(["test", "--workspace", "--doc", "--no-fail-fast"]);
                shell::overhear(command, &mut |line| count.hear(Runner::Cargo, line))
            }
            Step::Docs => {
                let mut command = shell::cargo(["doc", "--workspace", "--no-deps"]);
                command.env("RUSTDOCFLAGS", "-D warnings");
                shell::run(command)
            }
            Step::Wasm => wasm::build(),
            Step::Python => python::test(count),
        }
    }
}

/// The steps that `--only` names, in the order of [`Step::ALL`]; all steps without `--only`.
pub(crate) fn chosen(options: &[&str]) -> anyhow::Result<Vec<Step>> {
    let mut named = Vec::new();
    for pair in options.chunks(2) {
        let ["--only", name] = pair else {
            bail!("`{}` is not an option of test; expected `--only STEP`", pair.join(" "));
        };
        let step = Step::ALL.into_iter().find(|step| step.name() == *name);
        named.push(step.with_context(|| {
            format!("`{name}` is not a step; expected unit, instructions, isa, doc, docs, wasm or python")
        })?);
    }
    Ok(Step::ALL.into_iter().filter(|step| named.is_empty() || named.contains(step)).collect())
}

/// Runs these steps until one fails.
pub(crate) fn run(steps: &[Step]) -> anyhow::Result<()> {
    let mut count = Count::default();
    let outcome = steps.iter().try_for_each(|step| {
        let name = step.name();
        eprintln!("xtask: step {name}");
        step.run(&mut count)
            .with_context(|| format!("step {name} failed; repeat it with `cargo xtask test --only {name}`"))
    });
    println!("{count}");
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_only_every_step_is_chosen() {
        assert_eq!(chosen(&[]).unwrap(), Step::ALL);
    }

    #[test]
    fn chosen_steps_keep_the_usual_order() {
        assert_eq!(chosen(&["--only", "wasm", "--only", "unit"]).unwrap(), [Step::Unit, Step::Wasm]);
    }

    #[test]
    fn unknown_options_and_steps_are_refused_with_what_is_known() {
        for (options, expected) in [
            (
                &["--only", "all"][..],
                "`all` is not a step; expected unit, instructions, isa, doc, docs, wasm or python",
            ),
            (&["--only"], "`--only` is not an option of test; expected `--only STEP`"),
            (&["unit"], "`unit` is not an option of test; expected `--only STEP`"),
        ] {
            assert_eq!(chosen(options).unwrap_err().to_string(), expected);
        }
    }
}
