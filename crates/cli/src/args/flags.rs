//! The options that `run`, `top`, `plan`, `demo` and `bench` share: which device to use, and how to run.

use std::ffi::OsString;

use anyhow::anyhow;
use clap::ValueHint;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use vramp::gpu::{Backend, Prefer};
use vramp::plan::OnLoss;
use vramp::plan::{Rate, Space, is_name};

use super::{Budget, MemoryBudget, bytes, latency};
use crate::failure::CliError;

pub(super) const APIS: [&str; 4] = ["vulkan", "metal", "dx12", "gl"];

const ON_LOSS: [&str; 3] = ["reopen", "cpu", "stop"];

const KINDS: [&str; 3] = ["hardware", "software", "any"];

#[derive(Clone, clap::Args)]
#[command(next_help_heading = "Device and execution")]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate switch on the command line")]
pub(crate) struct SharedFlags {
    /// Run everything on the CPU; opens no device
    #[arg(long, conflicts_with_all = ["gpu", "require_gpu", "backend", "device", "prefer", "min_memory", "max_load"])]
    pub(crate) cpu: bool,
    /// Run every handler that has a GPU implementation on the GPU
    #[arg(long)]
    pub(crate) gpu: bool,
    /// Require that every handler between sources and sinks is on the GPU for every frame. Exits with code 3 if no plan
    /// can do that, and with code 4 if a run did otherwise, as after the device was lost. Sources and sinks may be on the
    /// CPU
    #[arg(long)]
    pub(crate) require_gpu: bool,
    /// Use only this graphics API
    #[arg(long, value_name = "API", value_parser = PossibleValuesParser::new(APIS).map(|word| backend(&word)))]
    pub(crate) backend: Option<Backend>,
    /// Adapter to use: its number in `vramp devices` (with --backend, in the list of that API), or part of its name
    #[arg(long, value_name = "N|NAME", value_parser = device)]
    pub(crate) device: Option<DeviceWord>,
    /// Kind of adapter to use; defaults to hardware if there is any, otherwise software
    #[arg(long, value_name = "KIND", value_parser = PossibleValuesParser::new(KINDS).map(|word| prefer(&word)))]
    pub(crate) prefer: Option<Prefer>,
    /// Skip adapters with less memory than this, such as 8G or 512M, and adapters whose memory cannot be read. If no
    /// adapter is left, everything runs on the CPU with a warning; with --gpu, --backend or --device the command fails
    /// instead
    #[arg(long, value_name = "BYTES", value_parser = bytes::read)]
    pub(crate) min_memory: Option<u64>,
    /// Skip adapters whose load is higher than this when the run starts. If no adapter is left, the same happens as
    /// with --min-memory
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub(crate) max_load: Option<f32>,
    /// Place one handler, by its name, on the CPU or the GPU; may be repeated
    #[arg(long, value_name = "NAME=cpu|gpu", value_parser = placement)]
    pub(crate) place: Vec<(String, Space)>,
    /// Insert no transfers. If a transfer is needed, fail and name the two handlers that it would connect
    #[arg(long)]
    pub(crate) strict: bool,
    /// Run each handler as its own kernel
    #[arg(long)]
    pub(crate) no_fusion: bool,
    /// Number of CPU threads
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) threads: Option<u32>,
    /// Maximum number of submissions in flight on the device
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) in_flight: Option<u32>,
    /// Number of frames per submission
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) batch: Option<u32>,
    /// What to do when the device is lost: open it again (or continue on the CPU if that fails), continue on the CPU,
    /// or stop the run
    #[arg(long, value_name = "reopen|cpu|stop", value_parser = PossibleValuesParser::new(ON_LOSS).map(|word| on_loss(&word)))]
    pub(crate) on_loss: Option<OnLoss>,
    /// Destroy the device after this many frames, to test --on-loss
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    pub(crate) lose_device_at: Vec<u64>,
    /// Frame rate to keep, such as 30, 29.97 or 30000/1001; by default, files and patterns run as fast as possible
    #[arg(long, value_name = "F")]
    pub(crate) fps: Option<Rate>,
    /// Prefer plans in which a frame takes at most this long from source to sink, such as 20, 20ms or 1s; a number alone
    /// is in milliseconds. If no plan is fast enough, a warning says so
    #[arg(long, value_name = "MS", value_parser = latency::read)]
    pub(crate) latency: Option<f64>,
    /// Exit with code 4 if a frame needs more than this on average, such as submits=1,allocs=0. The average is measured
    /// over the second half of a run. A plan checks the keys that are known without running. `vramp help run` lists the
    /// keys
    #[arg(long, value_name = "KEY=N,...", value_parser = Budget::read)]
    pub(crate) budget: Vec<Budget>,
    /// Maximum memory for frames per memory space, such as 256M or cpu=1G,gpu=256M; if no plan fits, frames wait
    #[arg(long, value_name = "BYTES|cpu=BYTES,gpu=BYTES", value_parser = MemoryBudget::read)]
    pub(crate) memory: Option<MemoryBudget>,
    /// Compare results instead of running: fused with unfused handlers, and the GPU with the CPU. Sinks write nothing.
    /// If results differ, the exit code is 5. Only `vramp run` accepts this option
    #[arg(long)]
    pub(crate) verify: bool,
    /// Machine to plan for: a profile that ships with vramp (discrete, integrated, phone, software or cpu; also written
    /// shipped:NAME), or a TOML file. If a file has the name of a shipped profile, add the directory of the file, as in
    /// ./discrete
    #[arg(long, value_name = "NAME|FILE", value_hint = ValueHint::FilePath)]
    pub(crate) profile: Option<OsString>,
    /// Print only errors on standard error
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Print the whole plan, the negotiated memory space of every link, during a run the frame pools, and after a run
    /// the time of every handler on standard error
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

impl SharedFlags {
    /// Refuses `--latency` for a command that chooses its own plans, instead of ignoring the option.
    pub(crate) fn refuse_latency(&self, why: &str) -> Result<(), CliError> {
        if self.latency.is_some() {
            return Err(CliError::Wrong(anyhow!(
                "--latency: {why}; use it with `vramp run`, `vramp top` or `vramp plan`"
            )));
        }
        Ok(())
    }

    /// Refuses `--verify` for a command that cannot compare, instead of ignoring the option.
    pub(crate) fn refuse_verify(&self, command: &str) -> Result<(), CliError> {
        if self.verify {
            return Err(CliError::Wrong(anyhow!(
                "--verify: `vramp {command}` cannot compare; use `vramp run PIPELINE --verify`"
            )));
        }
        Ok(())
    }
}

/// The value of `--device`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DeviceWord {
    /// Index in the list of adapters.
    At(usize),
    /// Part of the adapter's name.
    Named(String),
}

pub(super) fn device(word: &str) -> Result<DeviceWord, String> {
    match word.trim() {
        "" => Err("expected a number or part of a name".to_owned()),
        word => Ok(word.parse().map_or_else(|_| DeviceWord::Named(word.to_owned()), DeviceWord::At)),
    }
}

/// `word` is one of [`APIS`].
pub(super) fn backend(word: &str) -> Backend {
    match word {
        "vulkan" => Backend::Vulkan,
        "metal" => Backend::Metal,
        "dx12" => Backend::Dx12,
        _ => Backend::Gles,
    }
}

/// `word` is one of [`ON_LOSS`].
fn on_loss(word: &str) -> OnLoss {
    match word {
        "cpu" => OnLoss::Cpu,
        "stop" => OnLoss::Stop,
        _ => OnLoss::Reopen,
    }
}

/// `word` is one of [`KINDS`].
fn prefer(word: &str) -> Prefer {
    match word {
        "hardware" => Prefer::Hardware,
        "software" => Prefer::Software,
        _ => Prefer::Any,
    }
}

fn percent(word: &str) -> Result<f32, String> {
    let number = word.strip_suffix('%').unwrap_or(word).trim();
    let percent = number.parse::<f32>().ok().filter(|percent| (0.0..=100.0).contains(percent));
    percent.ok_or_else(|| "expected a percentage from 0 to 100".to_owned())
}

fn placement(word: &str) -> Result<(String, Space), String> {
    let (name, space) = word.split_once('=').ok_or("expected NAME=cpu or NAME=gpu")?;
    if !is_name(name) {
        return Err(format!("`{name}` is not a valid handler name"));
    }
    Ok((name.to_owned(), space.parse::<Space>().map_err(|e| e.to_string())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placement_names_a_handler_and_a_space() {
        assert_eq!(placement("blur0=gpu"), Ok(("blur0".to_owned(), Space::Gpu)));
        for word in ["", "blur0", "=cpu", "blur0=", "blur0=disk", "a b=cpu", "x=cpu=gpu"] {
            assert!(placement(word).is_err(), "{word}");
        }
    }

    #[test]
    fn a_load_is_a_percentage() {
        assert_eq!([percent("0"), percent("50%"), percent("99.5")], [Ok(0.0), Ok(50.0), Ok(99.5)]);
        for word in ["", "-1", "101", "nan", "much"] {
            assert!(percent(word).is_err(), "{word}");
        }
        assert_eq!(KINDS.map(prefer), [Prefer::Hardware, Prefer::Software, Prefer::Any]);
    }

    #[test]
    fn a_device_is_a_number_or_a_name() {
        assert_eq!(device("1"), Ok(DeviceWord::At(1)));
        assert_eq!(device("llvm pipe"), Ok(DeviceWord::Named("llvm pipe".to_owned())));
        assert!(device(" ").is_err());
        assert_eq!(APIS.map(backend), [Backend::Vulkan, Backend::Metal, Backend::Dx12, Backend::Gles]);
    }
}
