//! Runs a pipeline's text to its end, for several test files.

use vramp::Pipeline;
use vramp::plan::{Plan, RunOptions};
use vramp::runtime::Report;

/// Runs a pipeline of built-in handlers with these options; returns the plan and the report.
pub fn run(text: &str, with: impl FnOnce(RunOptions) -> RunOptions) -> (Plan, Report) {
    let built = Pipeline::parse(text).options(with(RunOptions::new())).build();
    let mut pipeline = built.unwrap_or_else(|error| panic!("{text}: {error}"));
    let report = pipeline.run().unwrap_or_else(|error| panic!("{text}: {error}"));
    (pipeline.plan().clone(), report)
}
