//! What is known of a device at this moment, as numbers or as the reason why there is none.
//!
//! Owns the words for readings: how much memory, how much of it in use, how busy.
//! Does not read anything: which files and libraries tell depends on the system, and whoever chooses hands readings in.
//!
//! Always: what could not be read is a reason, never a zero; a number says where it is from, and what is doubtful in it.

use std::fmt;
use std::sync::Arc;

use super::adapters::Adapter;

/// A number, or the reason why there is none.
#[derive(Debug, Clone, PartialEq)]
pub enum Readout<T> {
    /// It was read.
    Is {
        /// The number.
        value: T,
        /// Where it is from.
        from: String,
        /// Why it may be wrong, where it may.
        doubt: Option<String>,
    },
    /// It could not be read, for this reason.
    Unavailable(String),
}

impl<T: Copy> Readout<T> {
    /// A number with where it is from.
    pub fn is(value: T, from: impl Into<String>) -> Self {
        Self::Is { value, from: from.into(), doubt: None }
    }

    /// None, with the reason.
    pub fn unavailable(why: impl Into<String>) -> Self {
        Self::Unavailable(why.into())
    }

    /// The number, where it was read.
    pub fn value(&self) -> Option<T> {
        match self {
            Self::Is { value, .. } => Some(*value),
            Self::Unavailable(_) => None,
        }
    }

    /// Where the number is from, where it was read.
    pub fn from(&self) -> Option<&str> {
        match self {
            Self::Is { from, .. } => Some(from),
            Self::Unavailable(_) => None,
        }
    }

    /// Why there is no number, or why it may be wrong.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Is { doubt, .. } => doubt.as_deref(),
            Self::Unavailable(why) => Some(why),
        }
    }
}

/// What is known of an adapter at this moment.
#[derive(Debug, Clone, PartialEq)]
pub struct AdapterReading {
    /// Bytes of memory that it has.
    pub memory_bytes: Readout<u64>,
    /// Bytes of it that somebody uses.
    pub used_bytes: Readout<u64>,
    /// How busy it is, from 0 to 100.
    pub load_percent: Readout<f32>,
}

impl AdapterReading {
    /// Nothing, for one reason.
    pub fn unavailable(why: impl Into<String>) -> Self {
        let why = why.into();
        Self {
            memory_bytes: Readout::unavailable(why.clone()),
            used_bytes: Readout::unavailable(why.clone()),
            load_percent: Readout::unavailable(why),
        }
    }
}

/// Who is asked for readings, when a wish needs them.
#[derive(Clone)]
pub(super) struct ReadAdapter(pub(super) Arc<dyn Fn(&Adapter) -> AdapterReading + Send + Sync>);

impl fmt::Debug for ReadAdapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reader")
    }
}

/// Bytes for people.
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
        let unknown: Readout<u64> = Readout::unavailable("nobody tells");
        assert_eq!((unknown.value(), unknown.from(), unknown.why()), (None, None, Some("nobody tells")));
        assert_eq!([bytes(0), bytes(2_000_000_000), bytes(999_950_000)], ["0.0 MB", "2.0 GB", "1.0 GB"]);
    }
}
