//! Requirements that each adapter must meet: kind, minimum memory, maximum load.
//!
//! The caller provides the readings. A reading is taken only if a requirement needs the reading. A value that cannot be
//! read does not meet a requirement. A doubtful value can meet a requirement, and then the doubt becomes a warning.

use std::fmt;

use super::adapters::{Adapter, AdapterKind};
use super::reading::{AdapterReading, ReadAdapter, Readout, bytes};

/// The kinds of adapter to choose from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Prefer {
    /// Hardware if there is any, otherwise software.
    #[default]
    Any,
    /// Hardware only: drivers that compute on the CPU do not qualify.
    Hardware,
    /// Software only: a driver that computes on the CPU, for tests that must give the same results everywhere.
    Software,
}

/// The requirement that an adapter does not meet.
#[derive(Debug, Clone, PartialEq)]
pub enum Unmet {
    Kind { is: AdapterKind, wanted: Prefer },
    Memory { has_bytes: u64, wanted_bytes: u64 },
    MemoryUnknown { why: String, wanted_bytes: u64 },
    Load { is_percent: f32, most_percent: f32 },
    LoadUnknown { why: String, most_percent: f32 },
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind { is, wanted } => {
                let is = if *is == AdapterKind::Software { "software" } else { "hardware" };
                write!(f, "is {is}, but {wanted} is required")
            }
            Self::Memory { has_bytes, wanted_bytes } => {
                write!(f, "has {} of memory, but {} are required", bytes(*has_bytes), bytes(*wanted_bytes))
            }
            Self::MemoryUnknown { why, wanted_bytes } => {
                write!(f, "must have {} of memory, but the size of its memory is unknown: {why}", bytes(*wanted_bytes))
            }
            Self::Load { is_percent, most_percent } => {
                write!(f, "is {is_percent:.0} % busy, but at most {most_percent} % is allowed")
            }
            Self::LoadUnknown { why, most_percent } => {
                write!(f, "must be at most {most_percent} % busy, but its load is unknown: {why}")
            }
        }
    }
}

impl fmt::Display for Prefer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Any => "any",
            Self::Hardware => "hardware",
            Self::Software => "software",
        })
    }
}

/// The requirements of one choice.
#[derive(Debug, Clone, Default)]
pub(super) struct Requirements {
    pub(super) prefer: Prefer,
    pub(super) least_memory_bytes: Option<u64>,
    pub(super) most_load_percent: Option<f32>,
    pub(super) reader: Option<ReadAdapter>,
}

impl Requirements {
    /// Returns the first requirement that the adapter does not meet. If the adapter meets all requirements, returns the
    /// doubts about the readings, if any.
    pub(super) fn check(&self, adapter: &Adapter) -> Result<Option<String>, Unmet> {
        let is_software = adapter.kind == AdapterKind::Software;
        if self.prefer == Prefer::Hardware && is_software || self.prefer == Prefer::Software && !is_software {
            return Err(Unmet::Kind { is: adapter.kind, wanted: self.prefer });
        }
        if self.least_memory_bytes.is_none() && self.most_load_percent.is_none() {
            return Ok(None);
        }
        let reading = match &self.reader {
            Some(ReadAdapter(read)) => read(adapter),
            None => AdapterReading::unavailable("no source of readings is set"),
        };
        let doubts = [self.memory(&reading)?, self.load(&reading)?];
        let doubts: Vec<String> = doubts.into_iter().flatten().collect();
        Ok((!doubts.is_empty()).then(|| doubts.join("; ")))
    }

    fn memory(&self, reading: &AdapterReading) -> Result<Option<String>, Unmet> {
        let Some(wanted_bytes) = self.least_memory_bytes else { return Ok(None) };
        match &reading.memory_bytes {
            Readout::Is { value, .. } if *value < wanted_bytes => {
                Err(Unmet::Memory { has_bytes: *value, wanted_bytes })
            }
            Readout::Is { doubt, .. } => Ok(doubt.as_ref().map(|doubt| format!("its memory is doubtful: {doubt}"))),
            Readout::Unavailable(why) => Err(Unmet::MemoryUnknown { why: why.clone(), wanted_bytes }),
        }
    }

    fn load(&self, reading: &AdapterReading) -> Result<Option<String>, Unmet> {
        let Some(most_percent) = self.most_load_percent else { return Ok(None) };
        match &reading.load_percent {
            Readout::Is { value, .. } if *value > most_percent => Err(Unmet::Load { is_percent: *value, most_percent }),
            Readout::Is { doubt, .. } => Ok(doubt.as_ref().map(|doubt| format!("its load is doubtful: {doubt}"))),
            Readout::Unavailable(why) => Err(Unmet::LoadUnknown { why: why.clone(), most_percent }),
        }
    }
}
