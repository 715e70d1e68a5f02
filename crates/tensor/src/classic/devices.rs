//! Choosing the device of a context by preference.
//!
//! `vramp_gpu` chooses among the adapters, with the readings that a [`Choice`] provides.
//!
//! Invariants: either the request is met, or a warning is reported and the CPU is used. Ops run on the active device.
//! Tensors keep their values when the device changes.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use vramp_gpu::{AdapterKind, Choice, Device};

use super::flags::{FeatureFlags, FlagError};
use super::sink::Sink;
use super::usage::MemoryUsage;
use crate::ops::context::{Context, Moved};
use crate::ops::error::TensorError;

/// Requirements for a device. Defaults to the CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct DeviceRequest {
    /// Requests a GPU. The other fields apply only if this is true.
    pub prefer_gpu: bool,
    /// The minimum memory of the GPU.
    pub min_memory_bytes: Option<u64>,
    /// The maximum load of the GPU, from 0 to 100.
    pub max_load_percent: Option<f32>,
}

/// The device on which ops run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActiveDevice {
    Cpu,
    Gpu(String),
    /// The device was lost; ops are refused until another device is selected.
    Lost {
        name: String,
        reason: String,
    },
}

impl fmt::Display for ActiveDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ActiveDevice::Cpu => f.write_str("cpu"),
            ActiveDevice::Gpu(name) => f.write_str(name),
            ActiveDevice::Lost { name, reason } => write!(f, "{name} (lost: {reason})"),
        }
    }
}

/// The result of [`DeviceSelector::select_device`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selected {
    /// Where ops run from now on.
    pub device: ActiveDevice,
    pub why: String,
    /// Requirements that are not met or cannot be verified, and values that were lost.
    pub warnings: Vec<String>,
}

/// Selects the device of one context.
#[derive(Debug)]
pub struct DeviceSelector {
    context: Context,
    choice: Choice,
    sink: Sink,
    /// Locked during a selection, so that flags and device change together.
    flags: Mutex<FeatureFlags>,
}

impl Default for DeviceSelector {
    fn default() -> Self {
        Self::new()
    }
}

impl DeviceSelector {
    /// A selector for a new context, which is on the CPU.
    pub fn new() -> DeviceSelector {
        DeviceSelector::of(&Context::on_host())
    }

    /// A selector for an existing context. The context stays on its device until another device is selected.
    pub fn of(context: &Context) -> DeviceSelector {
        let flags = if context.device().is_some() { FeatureFlags::GPU } else { FeatureFlags::CPU };
        let (choice, sink) = (Device::choose(), Sink::default());
        DeviceSelector { context: context.clone(), choice, sink, flags: Mutex::new(flags) }
    }

    /// The rules by which adapters are chosen. A [`Choice`] can exclude adapters, for example software adapters, set a
    /// budget, and provide readings of memory and load. Without readings, a request for memory or load cannot be met.
    #[must_use]
    pub fn with_choice(mut self, choice: Choice) -> Self {
        self.choice = choice;
        self
    }

    /// Where warnings are reported. Defaults to stderr.
    #[must_use]
    pub fn with_sink(mut self, sink: Sink) -> Self {
        self.sink = sink;
        self
    }

    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Selects a device and moves all tensors there. If no GPU meets the request, or if values cannot be moved to the
    /// GPU, warns and uses the CPU. If the request is invalid, or if values cannot be moved to the host, returns an
    /// error and changes nothing.
    pub fn select_device(&self, request: &DeviceRequest) -> Result<Selected, TensorError> {
        request.check()?;
        let mut flags = self.flags();
        let mut warnings = Vec::new();
        let mut why = "the CPU was requested".to_owned();
        if request.prefer_gpu {
            match self.take_gpu(request, &mut warnings) {
                Ok(why) => {
                    *flags = FeatureFlags::GPU;
                    return Ok(self.report(why, warnings));
                }
                Err(problem) => {
                    warnings.push(format!("no GPU is selected: {problem}"));
                    why = format!("no GPU meets the request: {problem}");
                }
            }
        }
        let moved = self.context.move_to(None)?;
        warnings.extend(lost(moved));
        *flags = FeatureFlags::CPU;
        Ok(self.report(why, warnings))
    }

    /// Moves all tensors to a device, or to the host. Later ops run there. May be called at any time.
    pub fn switch(&self, device: Option<&Device>) -> Result<Moved, TensorError> {
        let mut flags = self.flags();
        let moved = self.context.move_to(device)?;
        *flags = if device.is_some() { FeatureFlags::GPU } else { FeatureFlags::CPU };
        if let Some(warning) = lost(moved) {
            self.sink.tell(&format!("switch: {warning}"));
        }
        Ok(moved)
    }

    /// The device on which ops run, as the context reports it.
    pub fn active_device(&self) -> ActiveDevice {
        match self.context.device() {
            None => ActiveDevice::Cpu,
            Some(device) => {
                let name = device.adapter().name.clone();
                match device.check() {
                    Ok(()) => ActiveDevice::Gpu(name),
                    Err(lost) => ActiveDevice::Lost { name, reason: lost.reason },
                }
            }
        }
    }

    /// The flags. Selecting a GPU turns `cpu_forward` off and `pack` on; selecting the CPU does the opposite.
    pub fn current_flags(&self) -> FeatureFlags {
        *self.flags()
    }

    pub fn flag(&self, name: &str) -> Result<bool, FlagError> {
        self.flags().get(name)
    }

    /// Sets flags by name to `true` or `false`. If a name or a value is invalid, no flag changes.
    pub fn set_flags(&self, settings: &[(&str, &str)]) -> Result<(), FlagError> {
        let mut flags = self.flags();
        *flags = flags.with(settings)?;
        Ok(())
    }

    pub fn memory_usage(&self) -> MemoryUsage {
        MemoryUsage::of(&self.context)
    }

    /// Leaves the device: tensors keep their values on the host, and pooled memory is freed.
    pub fn release(&self) {
        // If moving fails, the values stay on the device, which is dropped with the context.
        if let Err(error) = self.switch(None) {
            self.sink.tell(&format!("cannot leave the device: {error}"));
        }
        self.context.trim();
    }

    /// Moves to the best GPU that meets the request. Returns why that GPU was chosen, or why no GPU was chosen.
    fn take_gpu(&self, request: &DeviceRequest, warnings: &mut Vec<String>) -> Result<String, String> {
        let mut choice = self.choice.clone();
        if let Some(bytes) = request.min_memory_bytes {
            choice = choice.least_memory_bytes(bytes);
        }
        if let Some(percent) = request.max_load_percent {
            choice = choice.most_load_percent(percent);
        }
        let chosen = choice.chosen_of(&choice.list()).map_err(|error| error.to_string())?;
        let is_there = |device: &Device| device.check().is_ok() && device.adapter() == &chosen.adapter;
        if !self.context.device().as_ref().is_some_and(is_there) {
            // The device is opened by index and not by the request: the adapter was checked above, and a second reading
            // could differ.
            let device = self.choice.clone().index(chosen.adapter.index).open().map_err(|error| error.to_string())?;
            let moved = self.context.move_to(Some(&device)).map_err(|error| error.to_string())?;
            warnings.extend(lost(moved));
        }
        if chosen.adapter.kind == AdapterKind::Software {
            warnings.push(format!("{} is software: its work runs on the CPU", chosen.adapter.name));
        }
        warnings.extend(chosen.doubt);
        Ok(chosen.why)
    }

    fn report(&self, why: String, warnings: Vec<String>) -> Selected {
        for warning in &warnings {
            self.sink.tell(&format!("select_device: {warning}"));
        }
        Selected { device: self.active_device(), why, warnings }
    }

    fn flags(&self) -> MutexGuard<'_, FeatureFlags> {
        self.flags.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DeviceRequest {
    fn check(&self) -> Result<(), TensorError> {
        match self.max_load_percent {
            Some(percent) if !(0.0..=100.0).contains(&percent) => {
                let problem = format!("a maximum load of {percent} % is out of range; use 0 to 100");
                Err(TensorError::Setting { op: "select_device", problem })
            }
            _ => Ok(()),
        }
    }
}

/// The warning about values that were lost because only the lost device had them.
fn lost(moved: Moved) -> Option<String> {
    (moved.gone > 0).then(|| format!("the values of {} memories were only on the lost device and are lost", moved.gone))
}
