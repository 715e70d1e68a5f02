//! The classic API: one compute, one device manager and one monitor per process.
//!
//! The classic API is a layer over contexts, tensors and devices. It offers transfers and batches, device selection by
//! preference, and timing of operations by name.
//!
//! Invariants: a process has at most one compute, one device manager and one monitor at a time; after the `cleanup` of
//! an instance, a new instance can be created. Each of the three wraps a plain type ([`Compute`], [`DeviceSelector`],
//! [`Monitor`]), of which a process can have any number. An unknown figure is reported with the reason, never as 0.
//!
//! ```no_run
//! use vramp_tensor::classic::{Compute, DeviceManager, DeviceSelector, GpuCompute, DeviceRequest};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let devices = DeviceManager::initialize(DeviceSelector::new())?;
//! let selected = devices.select_device(&DeviceRequest { prefer_gpu: true, ..DeviceRequest::default() })?;
//! println!("{}: {}", selected.device, selected.why);
//!
//! let compute = GpuCompute::initialize(Compute::on(devices.context()))?;
//! let tensor = compute.transfer_to_gpu(&[1.0, 2.0, 3.0])?;
//! assert_eq!(compute.compute_batch(&[tensor])?, [14.0 / 3.0]);
//! compute.cleanup();
//! # Ok(())
//! # }
//! ```

mod adaptive;
mod compute;
mod devices;
mod flags;
mod metrics;
mod monitor;
mod one;
mod sink;
mod timings;
mod usage;

pub use adaptive::{Adapted, BatchRules, adaptive_batch, available_bytes, run_adaptive};
pub use compute::{Compute, DEFAULT_CHUNK};
pub use devices::{ActiveDevice, DeviceRequest, DeviceSelector, Selected};
pub use flags::{FeatureFlags, FlagError};
pub use metrics::Metric;
pub use monitor::Monitor;
pub use one::{ClassicError, DeviceManager, GpuCompute, PerformanceMonitor};
pub use sink::Sink;
pub use timings::{Measured, OperationStatistics};
pub use usage::MemoryUsage;
