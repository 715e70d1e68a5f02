//! The command line of `bench`.
//!
//! Owns the names that can be given, and how long a measurement takes.
//! Does not measure.
//!
//! Always: a name that is no suite and no work is refused before anything runs.

use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser};
use vramp::bench::{Suite, TENSOR_WORKLOADS, WORKLOADS};
use vramp::plan::Size;

use super::{SharedFlags, seconds};

pub(crate) const BENCH_HELP: &str = "\
A work is one operation, or a few in a row, on a picture that is in host memory already;
nothing is read or written. Its time is the middle one of five runs; cpu ms counts all
threads, which is what to compare on a busy machine. The hash is of the last frame: what
was timed was computed. It is the same on every machine, but for pipe5_seed_rgba, whose
pictures move and show what was measured.

The suite `tensor` has sizes of its own. On a device its times include bringing the result
to the host. It runs on the device with --gpu, or where there is hardware; --cpu keeps it
on the host. Its hashes are those of one kind of machine: sums depend on their order.

`--json` prints one line of JSON a measurement, with the keys peer, work, size, threads,
backend, ms_median, ms_min, cpu_ms, fps, reps and hash.

Examples:
  vramp bench
  vramp bench filters --threads 1 --cpu
  vramp bench tensor --gpu
  vramp bench chain5 gauss9_s2 --size 640x480 --json";

#[derive(clap::Args)]
pub(crate) struct BenchArgs {
    /// Suites or single works; everything if not given
    #[arg(value_name = "SUITE|WORK", value_parser = PossibleValuesParser::new(names()), hide_possible_values = true)]
    pub(crate) what: Vec<String>,
    /// The size of what comes in
    #[arg(long, value_name = "WxH", default_value = "1920x1080", value_parser = size)]
    pub(crate) size: Size,
    /// How long each of the five runs of a work takes
    #[arg(long, value_name = "S", value_parser = seconds, default_value = "0.15")]
    pub(crate) seconds: Duration,
    /// Print one line of JSON a measurement instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) flags: SharedFlags,
}

fn names() -> Vec<PossibleValue> {
    let suites = Suite::ALL.iter().map(|suite| suite.name());
    let works = WORKLOADS.iter().map(|work| work.name).chain(TENSOR_WORKLOADS.iter().map(|work| work.name));
    suites.chain(works).map(PossibleValue::new).collect()
}

fn size(word: &str) -> Result<Size, String> {
    word.parse::<Size>().map_err(|problem| problem.to_string())
}
