//! Probing: how the planner learns what a source holds without opening it.
//!
//! Owns the question and the shape of its answer.
//! Does not read anything: whoever has the handlers answers.

use crate::words::{Format, Rate, Size};

use super::{Entry, Settings};

/// What a look at a source's header told. What it did not tell may come from settings, or be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Probed {
    /// How its frames are stored.
    pub format: Option<Format>,
    /// Size of its (first) frame.
    pub size: Option<Size>,
    /// How many frames a second.
    pub rate: Option<Rate>,
}

/// Why a source could not be looked at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}; {help}")]
pub struct ProbeError {
    /// What went wrong, with the file and the place in it.
    pub problem: String,
    /// What to do about it.
    pub help: String,
}

/// Answers what a source holds.
pub trait Probe {
    /// Looks at the header of what a source with these settings would read.
    fn probe(&self, entry: &Entry, settings: &Settings) -> Result<Probed, ProbeError>;
}

/// Answers nothing: for graphs whose sources say all in their settings.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoProbe;

impl Probe for NoProbe {
    fn probe(&self, _: &Entry, _: &Settings) -> Result<Probed, ProbeError> {
        Ok(Probed::default())
    }
}
