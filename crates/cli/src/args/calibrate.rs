//! The options of `vramp devices --calibrate`.

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use vramp::gpu::Backend;

use super::DeviceWord;
use super::flags::{APIS, backend, device};

#[derive(clap::Args)]
pub(crate) struct CalibrateArgs {
    /// Measure this machine and store the results for later plans and runs. Takes about 20 seconds; close busy programs
    /// first
    #[arg(long)]
    pub(crate) calibrate: bool,
    /// Measure an adapter of this API
    #[arg(long, value_name = "API", requires = "calibrate")]
    #[arg(value_parser = PossibleValuesParser::new(APIS).map(|word| backend(&word)))]
    pub(crate) backend: Option<Backend>,
    /// Measure this adapter: its number in the list (with --backend, in the list of that API), or part of its name
    #[arg(long, value_name = "N|NAME", value_parser = device, requires = "calibrate")]
    pub(crate) device: Option<DeviceWord>,
    /// Measure only the CPU
    #[arg(long, requires = "calibrate", conflicts_with_all = ["backend", "device"])]
    pub(crate) cpu: bool,
    /// Print every step of the calibration on standard error
    #[arg(short, long, requires = "calibrate")]
    pub(crate) verbose: bool,
}
