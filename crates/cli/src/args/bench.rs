//! The command line of `bench`. A name that is neither a suite nor a workload is refused before anything runs.

use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser};
use vramp::bench::{MODEL_WORKLOADS, Suite, TENSOR_WORKLOADS, WORKLOADS};
use vramp::plan::Size;

use super::{SharedFlags, seconds};

pub(crate) const BENCH_HELP: &str = "\
A workload is one operation, or a few in a row, on a frame that is already in host memory.
No file is read or written. The time of a workload is the median of five runs. `cpu ms` is
the CPU time of all threads; on a busy machine, compare `cpu ms`. The hash of the last frame
shows that the timed work was computed. The hash is the same on every machine, except for
pipe5_seed_rgba, whose frames move and show measured figures.

The suite `tensor` has its own sizes. It runs on the GPU if the machine has GPU hardware, or
if --gpu, --backend or --device is given; otherwise, and always with --cpu, it runs on the
CPU. GPU times include the download of the result. Hashes of this suite differ between kinds
of machines, because a sum of floats depends on the order of its terms.

The suite `model` runs neural networks from ONNX files, on the same side as the suite
`tensor`. Two models are in vramp's repository, and `cargo xtask models` fetches the others;
the suite measures those that it finds in the repository around the working directory. It is
measured only if it, or a model, is named.

`--json` prints one line of JSON per measurement, with the keys peer, work, size, threads,
backend, ms_median, ms_min, cpu_ms, fps, reps and hash.

Examples:
  vramp bench
  vramp bench filters --threads 1 --cpu
  vramp bench tensor --gpu
  vramp bench model --cpu --threads 1
  vramp bench chain5 gauss9_s2 --size 640x480 --json";

#[derive(clap::Args)]
pub(crate) struct BenchArgs {
    /// Suites or single workloads; defaults to all of them but the models
    #[arg(value_name = "SUITE|WORKLOAD", value_parser = PossibleValuesParser::new(names()), hide_possible_values = true)]
    pub(crate) what: Vec<String>,
    /// Size of the input frames
    #[arg(long, value_name = "WxH", default_value = "1920x1080", value_parser = size)]
    pub(crate) size: Size,
    /// Duration of each of the five runs of a workload, in seconds
    #[arg(long, value_name = "S", value_parser = seconds, default_value = "0.15")]
    pub(crate) seconds: Duration,
    /// Print one line of JSON per measurement instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) flags: SharedFlags,
}

fn names() -> Vec<PossibleValue> {
    let suites = Suite::ALL.iter().map(|suite| suite.name());
    let works = WORKLOADS.iter().map(|work| work.name).chain(TENSOR_WORKLOADS.iter().map(|work| work.name));
    let works = works.chain(MODEL_WORKLOADS.iter().map(|work| work.name));
    suites.chain(works).map(PossibleValue::new).collect()
}

fn size(word: &str) -> Result<Size, String> {
    word.parse::<Size>().map_err(|problem| problem.to_string())
}
