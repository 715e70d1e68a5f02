//! The options that `run`, `plan` and `demo` share: where and how.
//!
//! Owns their names, their help and the reading of their values.
//! Does not act on any of them.

use std::ffi::OsString;

use anyhow::anyhow;
use clap::ValueHint;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use vramp::gpu::{Backend, Prefer};
use vramp::plan::OnLoss;
use vramp::plan::{Rate, Space, is_name};

use super::{Budget, MemoryBudget, bytes};
use crate::failure::CliError;

/// The APIs that can be asked for.
pub(super) const APIS: [&str; 4] = ["vulkan", "metal", "dx12", "gl"];

/// What can be done when the device is lost.
const ON_LOSS: [&str; 3] = ["reopen", "cpu", "stop"];

/// What an adapter can be made of.
const KINDS: [&str; 3] = ["hardware", "software", "any"];

/// Where and how something is to run.
#[derive(Clone, clap::Args)]
#[command(next_help_heading = "Where and how")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own on the command line")]
pub(crate) struct SharedFlags {
    /// Everything on the cpu; no device is opened
    #[arg(long, conflicts_with_all = ["gpu", "backend", "device", "prefer", "min_memory", "max_load"])]
    pub(crate) cpu: bool,
    /// Everything on the gpu that can be there
    #[arg(long)]
    pub(crate) gpu: bool,
    /// Talk to the gpu through this API only
    #[arg(long, value_name = "API", value_parser = PossibleValuesParser::new(APIS).map(|word| backend(&word)))]
    pub(crate) backend: Option<Backend>,
    /// Which adapter: its number in `vramp devices` (among those of --backend), or a part of its name
    #[arg(long, value_name = "N|NAME", value_parser = device)]
    pub(crate) device: Option<DeviceWord>,
    /// Only an adapter that is hardware, or only one that is software; without it, hardware first
    #[arg(long, value_name = "KIND", value_parser = PossibleValuesParser::new(KINDS).map(|word| prefer(&word)))]
    pub(crate) prefer: Option<Prefer>,
    /// Only an adapter with this much memory, such as 8G or 512M; one whose memory cannot be read does not count. Where
    /// none has it, everything runs on the cpu with a warning, or not at all with --gpu
    #[arg(long, value_name = "BYTES", value_parser = bytes::read)]
    pub(crate) min_memory: Option<u64>,
    /// Only an adapter that is at most this busy when the run starts, likewise
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub(crate) max_load: Option<f32>,
    /// Put one handler, by its name, on the cpu or the gpu; can be given several times
    #[arg(long, value_name = "NAME=cpu|gpu", value_parser = placement)]
    pub(crate) place: Vec<(String, Space)>,
    /// No automatic transfers: where one would be needed, fail and say between what
    #[arg(long)]
    pub(crate) strict: bool,
    /// One kernel for each handler
    #[arg(long)]
    pub(crate) no_fusion: bool,
    /// Threads that share the work on the cpu
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) threads: Option<u32>,
    /// Frames that may be on the device at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) in_flight: Option<u32>,
    /// Frames that go to the device together
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) batch: Option<u32>,
    /// What happens when the device is lost: it is opened again (and the cpu goes on where that fails), the cpu goes on
    /// to the end, or the run stops
    #[arg(long, value_name = "reopen|cpu|stop", value_parser = PossibleValuesParser::new(ON_LOSS).map(|word| on_loss(&word)))]
    pub(crate) on_loss: Option<OnLoss>,
    /// Destroy the device when so many frames have come to it, to see what --on-loss does
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    pub(crate) lose_device_at: Vec<u64>,
    /// Frames a second to keep to, such as 30, 29.97 or 30000/1001; without it, files and patterns run as fast as
    /// they can
    #[arg(long, value_name = "F")]
    pub(crate) fps: Option<Rate>,
    /// End with exit code 4 if a frame needs more than this on average, such as submits=1,allocs=0; measured over the
    /// second half of a run, and without effect on a plan. `vramp help run` lists the keys
    #[arg(long, value_name = "KEY=N,...", value_parser = Budget::read)]
    pub(crate) budget: Vec<Budget>,
    /// Memory that frames may take on each side, such as 256M or cpu=1G,gpu=256M; where a plan needs more, frames wait
    #[arg(long, value_name = "BYTES|cpu=BYTES,gpu=BYTES", value_parser = MemoryBudget::read)]
    pub(crate) memory: Option<MemoryBudget>,
    /// Compare instead of running, with `vramp run` only: fused with unfused, and the cpu with the gpu, handler by
    /// handler; sinks write nothing, and a difference ends with exit code 5
    #[arg(long)]
    pub(crate) verify: bool,
    /// The machine to plan for: discrete, integrated, phone, software or cpu, which ship with vramp (also written
    /// shipped:NAME), or a TOML file of figures; a file with one of these names is given with its directory, as in
    /// ./discrete
    #[arg(long, value_name = "NAME|FILE", value_hint = ValueHint::FilePath)]
    pub(crate) profile: Option<OsString>,
    /// Nothing but errors on standard error
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// More on standard error: the whole plan, and what was negotiated for every link
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

impl SharedFlags {
    /// Says that a command compares nothing, rather than to end as if it had.
    pub(crate) fn refuse_verify(&self, command: &str) -> Result<(), CliError> {
        if self.verify {
            return Err(CliError::Wrong(anyhow!(
                "--verify: `vramp {command}` compares nothing; `vramp run PIPELINE --verify` does"
            )));
        }
        Ok(())
    }
}

/// An adapter as it is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DeviceWord {
    /// By its place in the list.
    At(usize),
    /// By a part of its name.
    Named(String),
}

pub(super) fn device(word: &str) -> Result<DeviceWord, String> {
    match word.trim() {
        "" => Err("expected a number or a part of a name".to_owned()),
        word => Ok(word.parse().map_or_else(|_| DeviceWord::Named(word.to_owned()), DeviceWord::At)),
    }
}

/// The word is one of [`APIS`].
pub(super) fn backend(word: &str) -> Backend {
    match word {
        "vulkan" => Backend::Vulkan,
        "metal" => Backend::Metal,
        "dx12" => Backend::Dx12,
        _ => Backend::Gles,
    }
}

/// The word is one of [`ON_LOSS`].
fn on_loss(word: &str) -> OnLoss {
    match word {
        "cpu" => OnLoss::Cpu,
        "stop" => OnLoss::Stop,
        _ => OnLoss::Reopen,
    }
}

/// The word is one of [`KINDS`].
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
        return Err(format!("`{name}` cannot be the name of a handler"));
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
