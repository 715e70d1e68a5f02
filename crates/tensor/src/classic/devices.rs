//! Which device tensors are on, by preference.
//!
//! Owns one context, the wishes for its device, and the flags that go with it.
//! Does not pick among adapters: the device's room does, with the readings that its choice was given.
//!
//! Always: what is asked for is taken or there is a warning and the CPU; what is said to be active is where ops run; tensors
//! keep their values from one device to the next.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use vramp_gpu::{AdapterKind, Choice, Device};

use super::flags::{FeatureFlags, FlagError};
use super::sink::Sink;
use super::usage::MemoryUsage;
use crate::ops::context::{Context, Moved};
use crate::ops::error::TensorError;

/// What a device should be like. The CPU unless told.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct DeviceRequest {
    /// Whether a GPU is wanted. Without, the other wishes mean nothing.
    pub prefer_gpu: bool,
    /// Bytes of memory that the GPU has at least.
    pub min_memory_bytes: Option<u64>,
    /// How busy the GPU is at most, from 0 to 100.
    pub max_load_percent: Option<f32>,
}

/// Where ops run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActiveDevice {
    /// On the host.
    Cpu,
    /// On the device of this name.
    Gpu(String),
    /// Nowhere: they are refused until another device is selected.
    Lost {
        /// Which device it was.
        name: String,
        /// What became of it.
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

/// What a selection came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selected {
    /// Where ops run from now on.
    pub device: ActiveDevice,
    /// Why.
    pub why: String,
    /// What is not as asked for, or doubtful.
    pub warnings: Vec<String>,
}

/// The device of one context.
#[derive(Debug)]
pub struct DeviceSelector {
    context: Context,
    choice: Choice,
    sink: Sink,
    /// Held through a selection, so that flags and device are of the same one.
    flags: Mutex<FeatureFlags>,
}

impl Default for DeviceSelector {
    fn default() -> Self {
        Self::new()
    }
}

impl DeviceSelector {
    /// Of a new context, which is on the CPU.
    pub fn new() -> DeviceSelector {
        DeviceSelector::of(&Context::on_host())
    }

    /// Of this context, which stays where it is until something is selected.
    pub fn of(context: &Context) -> DeviceSelector {
        let flags = if context.device().is_some() { FeatureFlags::GPU } else { FeatureFlags::CPU };
        let (choice, sink) = (Device::choose(), Sink::default());
        DeviceSelector { context: context.clone(), choice, sink, flags: Mutex::new(flags) }
    }

    /// Chooses among these: only hardware, a budget, and who is asked for memory and load of adapters. Without somebody
    /// to ask, a wish for memory or load cannot be met.
    #[must_use]
    pub fn with_choice(mut self, choice: Choice) -> Self {
        self.choice = choice;
        self
    }

    /// Who is told of warnings; the standard error output unless told.
    #[must_use]
    pub fn with_sink(mut self, sink: Sink) -> Self {
        self.sink = sink;
        self
    }

    /// Where tensors are to be made.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Selects a device and moves all tensors there. Where no GPU is as wished, that is a warning, and it is the CPU. An
    /// error, and nothing changed, where a wish means nothing or values cannot be brought away.
    pub fn select_device(&self, wish: &DeviceRequest) -> Result<Selected, TensorError> {
        wish.check()?;
        let mut flags = self.flags();
        let mut warnings = Vec::new();
        let mut why = "it was asked for".to_owned();
        if wish.prefer_gpu {
            match self.take_gpu(wish, &mut warnings) {
                Ok(why) => {
                    *flags = FeatureFlags::GPU;
                    return Ok(self.told(why, warnings));
                }
                Err(problem) => {
                    warnings.push(format!("no GPU is selected: {problem}"));
                    why = format!("there is no GPU as asked for: {problem}");
                }
            }
        }
        let moved = self.context.move_to(None)?;
        warnings.extend(lost(moved));
        *flags = FeatureFlags::CPU;
        Ok(self.told(why, warnings))
    }

    /// Moves all tensors to a device, or to the host, in the middle of everything; work goes on there.
    pub fn switch(&self, device: Option<&Device>) -> Result<Moved, TensorError> {
        let mut flags = self.flags();
        let moved = self.context.move_to(device)?;
        *flags = if device.is_some() { FeatureFlags::GPU } else { FeatureFlags::CPU };
        if let Some(warning) = lost(moved) {
            self.sink.tell(&format!("switch: {warning}"));
        }
        Ok(moved)
    }

    /// Where ops run, as the context says.
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

    /// The flags. A selection sets them: a GPU to `cpu_forward` off and `pack` on, the CPU to the contrary.
    pub fn current_flags(&self) -> FeatureFlags {
        *self.flags()
    }

    /// A flag by its name.
    pub fn flag(&self, name: &str) -> Result<bool, FlagError> {
        self.flags().get(name)
    }

    /// Sets flags by name, to `true` or `false`: all of them, or none where one is wrong.
    pub fn set_flags(&self, settings: &[(&str, &str)]) -> Result<(), FlagError> {
        let mut flags = self.flags();
        *flags = flags.with(settings)?;
        Ok(())
    }

    /// How much memory the context takes.
    pub fn memory_usage(&self) -> MemoryUsage {
        MemoryUsage::of(&self.context)
    }

    /// Lets the device go: tensors keep their values on the host, and memory that lies free is given up.
    pub fn release(&self) {
        // A device that cannot be left keeps what it has, and goes with the context.
        if let Err(error) = self.switch(None) {
            self.sink.tell(&format!("the device cannot be left: {error}"));
        }
        self.context.trim();
    }

    /// Moves to the best GPU that is as wished; says why that one, or why none.
    fn take_gpu(&self, wish: &DeviceRequest, warnings: &mut Vec<String>) -> Result<String, String> {
        let mut choice = self.choice.clone();
        if let Some(bytes) = wish.min_memory_bytes {
            choice = choice.least_memory_bytes(bytes);
        }
        if let Some(percent) = wish.max_load_percent {
            choice = choice.most_load_percent(percent);
        }
        let chosen = choice.chosen_of(&choice.list()).map_err(|error| error.to_string())?;
        let is_there = |device: &Device| device.check().is_ok() && device.adapter() == &chosen.adapter;
        if !self.context.device().as_ref().is_some_and(is_there) {
            // By its place: the wishes were judged, and a second reading could say something else.
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

    fn told(&self, why: String, warnings: Vec<String>) -> Selected {
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
                let problem = format!("a load of at most {percent} %; it is from 0 to 100");
                Err(TensorError::Setting { op: "select_device", problem })
            }
            _ => Ok(()),
        }
    }
}

/// What is to be said about values that did not come along.
fn lost(moved: Moved) -> Option<String> {
    (moved.gone > 0)
        .then(|| format!("the values of {} memories were on the lost device alone, and are gone", moved.gone))
}
