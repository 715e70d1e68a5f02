//! The command line of `model`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Subcommand, ValueHint};
use vramp::gpu::Backend;

use super::flags::{APIS, backend, device};
use super::{DeviceWord, MemoryBudget};

pub(crate) const MODEL_HELP: &str = "\
Models are ONNX files with ops of opset 9 to 22. docs/models.md lists the ops and types.

Examples:
  vramp model inspect net.onnx
  vramp model run net.onnx --input picture.npy --output results
  vramp model run net.onnx --input ids=ids.npy --input mask=mask.npy --output results --gpu
  vramp model run net.onnx --input picture.npy --cpu --threads 1 --repeat 50 --json";

const RUN_HELP: &str = "\
Inputs:
  A file is given to the input NAME, or without a name to the next input that has none. Files
  are those of `numpy.save`. The type must be that of the input, and the shape must fit its
  axes; `vramp model inspect` shows both. Values of type int64 are computed in 32 bits, so a
  value beyond 32 bits is refused.

Outputs:
  Each output is written to DIR/NAME.npy; `/` in a name becomes `_`. DIR is created if it does
  not exist. Files get their names when all of them are complete. Without --output nothing is
  written.

Where it runs:
  The GPU is used if the machine has GPU hardware, or if --gpu, --backend or --device is given;
  otherwise, and always with --cpu, the model runs on the CPU.

Times:
  The first run is not measured: it compiles kernels and touches memory for the first time.
  With --repeat N or --json, the model runs N more times (once by default). The line of JSON
  has backend, device, threads, reps, ms_median, ms_min, cpu_ms (the CPU time of all threads in
  the best of these runs), dispatches of one run, first_ms and load_ms, compiles and gpu_allocs
  of all repetitions, memory, and outputs {name: shape}. Times on a GPU include the download of
  the results.

Exit codes:
    0  done
    1  the model failed while it ran, or a result could not be written
    2  the command line, the model, or the name, type or shape of an input is wrong
    3  the model has unsupported ops (all are listed), it does not fit into --memory, or there
       is no device for --gpu
  130  interrupted; no result is written in part

Examples:
  vramp model run net.onnx --input picture.npy --output results
  vramp model run net.onnx --input picture.npy --cpu --threads 1 --repeat 50 --json";

const INSPECT_HELP: &str = "\
Operations and memory depend on the sizes of the inputs. An axis without a fixed length counts
as 1, unless --size gives the shape.

Examples:
  vramp model inspect net.onnx
  vramp model inspect net.onnx --size picture=1x3x480x640 --json";

#[derive(Subcommand)]
pub(crate) enum ModelCommand {
    /// Show the inputs, outputs and ops of a model, and what it needs
    ///
    /// Lists inputs and outputs with types and shapes, ops with their counts, parameters, floating-point operations,
    /// memory, and all ops that are not supported. Exits with 0 also if there are such ops.
    #[command(after_long_help = INSPECT_HELP)]
    Inspect(ModelInspectArgs),
    /// Run a model on arrays from .npy files
    #[command(after_long_help = RUN_HELP, after_help = "`vramp help model run` explains inputs, times and exit codes.")]
    Run(ModelRunArgs),
}

#[derive(clap::Args)]
pub(crate) struct ModelInspectArgs {
    /// The model, an ONNX file
    #[arg(value_name = "NET.onnx", value_hint = ValueHint::FilePath)]
    pub(crate) model: PathBuf,
    /// The shape of an input whose axes have no fixed lengths; may be repeated. Without a name: the next input
    #[arg(long, value_name = "[NAME=]SHAPE")]
    pub(crate) size: Vec<String>,
    /// Print one line of JSON instead
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub(crate) struct ModelRunArgs {
    /// The model, an ONNX file
    #[arg(value_name = "NET.onnx", value_hint = ValueHint::FilePath)]
    pub(crate) model: PathBuf,
    /// File with the values of an input; may be repeated
    #[arg(long, value_name = "[NAME=]x.npy", value_hint = ValueHint::FilePath)]
    pub(crate) input: Vec<OsString>,
    /// Directory to write the outputs to
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) output: Option<PathBuf>,
    /// Run on the CPU; opens no device
    #[arg(long, conflicts_with_all = ["gpu", "backend", "device"])]
    pub(crate) cpu: bool,
    /// Run on the GPU; fails with exit code 3 if there is none
    #[arg(long)]
    pub(crate) gpu: bool,
    /// Use only this graphics API
    #[arg(long, value_name = "API", value_parser = PossibleValuesParser::new(APIS).map(|word| backend(&word)))]
    pub(crate) backend: Option<Backend>,
    /// Adapter to use: its number in `vramp devices` (with --backend, in the list of that API), or part of its name
    #[arg(long, value_name = "N|NAME", value_parser = device)]
    pub(crate) device: Option<DeviceWord>,
    /// Number of measured runs after the first one
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeat: Option<u32>,
    /// Number of CPU threads
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) threads: Option<u32>,
    /// Maximum memory for weights and values per memory space, such as 256M or cpu=1G,gpu=256M
    #[arg(long, value_name = "BYTES|cpu=BYTES,gpu=BYTES", value_parser = MemoryBudget::read)]
    pub(crate) memory: Option<MemoryBudget>,
    /// Print one line of JSON with times and shapes on standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// Print only errors on standard error
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Print the device, and progress also if standard error is not a terminal
    #[arg(short, long)]
    pub(crate) verbose: bool,
}
