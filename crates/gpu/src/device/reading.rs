//! Readings of an adapter: total memory, memory in use, and load.
//!
//! This crate is portable and reads nothing itself. The caller of a [`Choice`](super::Choice) passes a function from
//! [`Adapter`] to [`AdapterReading`], because the files and libraries that have these numbers depend on the system.
//!
//! Invariants: a value that cannot be read is reported as a reason, never as zero. A number comes with its source and,
//! if the number may be wrong, with the reason for doubt. For example, a load summed over processes is a lower bound,
//! because the processes of other users cannot be inspected.

use std::fmt;
use std::sync::Arc;

use super::adapters::Adapter;

/// A number with its source, or the reason why the number is unavailable.
#[derive(Debug, Clone, PartialEq)]
pub enum Readout<T> {
    Is {
        value: T,
        /// The file or library that the number comes from.
        from: String,
        /// Why the number may be wrong.
        doubt: Option<String>,
    },
    /// The number could not be read, for this reason.
    Unavailable(String),
}

impl<T: Copy> Readout<T> {
    pub fn is(value: T, from: impl Into<String>) -> Self {
        Self::Is { value, from: from.into(), doubt: None }
    }

    pub fn unavailable(why: impl Into<String>) -> Self {
        Self::Unavailable(why.into())
    }

    pub fn value(&self) -> Option<T> {
        match self {
            Self::Is { value, .. } => Some(*value),
            Self::Unavailable(_) => None,
        }
    }

    /// The source of the number.
    pub fn from(&self) -> Option<&str> {
        match self {
            Self::Is { from, .. } => Some(from),
            Self::Unavailable(_) => None,
        }
    }

    /// Why the number is unavailable, or why the number may be wrong.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Is { doubt, .. } => doubt.as_deref(),
            Self::Unavailable(why) => Some(why),
        }
    }
}

/// Memory and load of an adapter at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct AdapterReading {
    pub memory_bytes: Readout<u64>,
    /// Bytes in use, by all programs.
    pub used_bytes: Readout<u64>,
    /// From 0 to 100.
    pub load_percent: Readout<f32>,
}

impl AdapterReading {
    /// A reading without any of the three values, for the same reason.
    pub fn unavailable(why: impl Into<String>) -> Self {
        let why = why.into();
        Self {
            memory_bytes: Readout::unavailable(why.clone()),
            used_bytes: Readout::unavailable(why.clone()),
            load_percent: Readout::unavailable(why),
        }
    }
}

/// The function that reads an adapter, called only if a requirement needs a reading.
#[derive(Clone)]
pub(super) struct ReadAdapter(pub(super) Arc<dyn Fn(&Adapter) -> AdapterReading + Send + Sync>);

impl fmt::Debug for ReadAdapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReadAdapter")
    }
}

/// Formats bytes for messages.
pub(super) fn bytes(bytes: u64) -> String {
    match bytes {
        0..=999_949_999 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_is_a_number_or_a_reason_and_never_both() {
        let known = Readout::is(7_u64, "a file");
        assert_eq!((known.value(), known.from(), known.why()), (Some(7), Some("a file"), None));
        let unknown: Readout<u64> = Readout::unavailable("no counter");
        assert_eq!((unknown.value(), unknown.from(), unknown.why()), (None, None, Some("no counter")));
        assert_eq!([bytes(0), bytes(2_000_000_000), bytes(999_950_000)], ["0.0 MB", "2.0 GB", "1.0 GB"]);
    }
}
