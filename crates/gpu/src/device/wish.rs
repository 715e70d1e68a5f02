//! Wishes that are judged adapter by adapter: what it is made of, how much memory it has, how busy it is.
//!
//! Owns what each wish means, and the words for an adapter that does not meet it.
//! Does not look for adapters and reads nothing: readings are handed in, and asked for only where a wish needs them.
//!
//! Always: a wish is met by a number or not at all. What cannot be read does not meet it.

use std::fmt;

use super::adapters::{Adapter, AdapterKind};
use super::reading::{AdapterReading, ReadAdapter, Readout, bytes};

/// What an adapter may be made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Prefer {
    /// Hardware, and where there is none, software.
    #[default]
    Any,
    /// Hardware only: a driver that computes on the CPU will not do.
    Hardware,
    /// Software only: the CPU behind a graphics driver, such as for tests that must be the same everywhere.
    Software,
}

/// Why an adapter will not do, although nothing says that it is another one than was named.
#[derive(Debug, Clone, PartialEq)]
pub enum Unmet {
    /// It is made of something else.
    Kind {
        /// What it is.
        is: AdapterKind,
        /// What was asked for.
        wanted: Prefer,
    },
    /// It has too little memory.
    Memory {
        /// Bytes that it has.
        has_bytes: u64,
        /// Bytes that were asked for.
        wanted_bytes: u64,
    },
    /// Nobody knows how much memory it has.
    MemoryUnknown {
        /// Why not.
        why: String,
        /// Bytes that were asked for.
        wanted_bytes: u64,
    },
    /// It is too busy.
    Load {
        /// How busy it is, in percent.
        is_percent: f32,
        /// How busy it may be.
        most_percent: f32,
    },
    /// Nobody knows how busy it is.
    LoadUnknown {
        /// Why not.
        why: String,
        /// How busy it may be.
        most_percent: f32,
    },
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind { is, wanted } => {
                let is = if *is == AdapterKind::Software { "software" } else { "hardware" };
                write!(f, "is {is}, {wanted} was asked for")
            }
            Self::Memory { has_bytes, wanted_bytes } => {
                write!(f, "has {}, {} were asked for", bytes(*has_bytes), bytes(*wanted_bytes))
            }
            Self::MemoryUnknown { why, wanted_bytes } => {
                write!(f, "should have {}, and its memory is unknown: {why}", bytes(*wanted_bytes))
            }
            Self::Load { is_percent, most_percent } => {
                write!(f, "is {is_percent:.0} % busy, {most_percent} % at most were asked for")
            }
            Self::LoadUnknown { why, most_percent } => {
                write!(f, "should be at most {most_percent} % busy, and its load is unknown: {why}")
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

/// The wishes of one choice.
#[derive(Debug, Clone, Default)]
pub(super) struct Wishes {
    pub(super) prefer: Prefer,
    pub(super) least_memory_bytes: Option<u64>,
    pub(super) most_load_percent: Option<f32>,
    pub(super) reader: Option<ReadAdapter>,
}

impl Wishes {
    /// What stands against an adapter; where nothing does, what is doubtful in the numbers by which it will do.
    pub(super) fn judge(&self, adapter: &Adapter) -> Result<Option<String>, Unmet> {
        let is_software = adapter.kind == AdapterKind::Software;
        if self.prefer == Prefer::Hardware && is_software || self.prefer == Prefer::Software && !is_software {
            return Err(Unmet::Kind { is: adapter.kind, wanted: self.prefer });
        }
        if self.least_memory_bytes.is_none() && self.most_load_percent.is_none() {
            return Ok(None);
        }
        let reading = match &self.reader {
            Some(ReadAdapter(read)) => read(adapter),
            None => AdapterReading::unavailable("nobody was given who could read it"),
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
