//! The options of `vramp devices --calibrate`.
//!
//! Owns their names and help.
//! Does not act on any of them.

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use vramp::gpu::Backend;

use super::DeviceWord;
use super::flags::{APIS, backend, device};

/// Whether to measure, and what.
#[derive(clap::Args)]
pub(crate) struct CalibrateArgs {
    /// Measure this machine and keep the figures: later plans and runs begin with them. Takes some 20 seconds, in which
    /// other programs should rest
    #[arg(long)]
    pub(crate) calibrate: bool,
    /// Measure an adapter of this API
    #[arg(long, value_name = "API", requires = "calibrate")]
    #[arg(value_parser = PossibleValuesParser::new(APIS).map(|word| backend(&word)))]
    pub(crate) backend: Option<Backend>,
    /// Measure this adapter: its number in the list (among those of --backend), or a part of its name
    #[arg(long, value_name = "N|NAME", value_parser = device, requires = "calibrate")]
    pub(crate) device: Option<DeviceWord>,
    /// Measure the cpu alone
    #[arg(long, requires = "calibrate", conflicts_with_all = ["backend", "device"])]
    pub(crate) cpu: bool,
    /// More on standard error: every step of the calibration
    #[arg(short, long, requires = "calibrate")]
    pub(crate) verbose: bool,
}
