//! Probing: how the planner learns what a source holds, and what a user's shader is, without opening a device.
//!
//! Owns the question and the shape of its answer.
//! Does not read anything: whoever has the handlers answers.

use std::sync::Arc;

use crate::words::{Format, Rate, Size, StreamTags};

use super::{Entry, KernelDesc, SettingValues, Value, ValueType};

/// What a look at a source's header told. What it did not tell may come from settings, or be missing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Probed {
    /// How its frames are stored.
    pub format: Option<Format>,
    /// Size of its (first) frame.
    pub size: Option<Size>,
    /// How many frames a second.
    pub rate: Option<Rate>,
    /// What else its header says of the stream.
    pub tags: Option<Arc<StreamTags>>,
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

/// What a text of the user's turned out to be: a shader that a handler is made from.
#[derive(Debug, Clone, PartialEq)]
pub struct DeclaredShader {
    /// What it computes on each frame.
    pub kernel: KernelDesc,
    /// The settings it declares.
    pub settings: Vec<DeclaredSetting>,
    /// The text as it was read: what is planned is what runs, whatever becomes of the file.
    pub text: Arc<str>,
}

/// A setting that a text declares.
#[derive(Debug, Clone, PartialEq)]
pub struct DeclaredSetting {
    /// The key.
    pub name: String,
    /// What values it takes.
    pub value: ValueType,
    /// What holds when it is not given.
    pub default: Value,
}

impl DeclaredSetting {
    /// Reads a value; a whole number that counts from 0 also takes `true` and `false`, since shaders have no other way
    /// to be given them.
    pub fn read(&self, text: &str) -> Option<Value> {
        self.value.read(text).or(match (self.value, text) {
            (ValueType::Int { min: 0, .. }, "true") => Some(Value::Int(1)),
            (ValueType::Int { min: 0, .. }, "false") => Some(Value::Int(0)),
            _ => None,
        })
    }
}

/// Why there is no answer to what a text declares.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeclareError {
    /// It could not be read.
    #[error(transparent)]
    Unreadable(#[from] ProbeError),
    /// It is wrong.
    #[error("{problem}")]
    Wrong {
        /// What is wrong, with the file, the line and the column.
        problem: String,
        /// The line and the remedy, as far as they are known.
        help: String,
    },
}

/// Answers what a source holds, and what a user's text is.
pub trait SourceProbe {
    /// Looks at the header of what a source with these settings would read.
    fn probe(&self, entry: &Entry, settings: &SettingValues) -> Result<Probed, ProbeError>;

    /// How large the small data are that a handler makes from a file, such as a logo; none if no file tells.
    fn small_bytes(&self, _entry: &Entry, _settings: &SettingValues) -> Option<u64> {
        None
    }

    /// Looks at the text that a handler with open settings is made from; none where nobody can.
    fn declared(&self, _entry: &Entry, _settings: &SettingValues) -> Result<Option<DeclaredShader>, DeclareError> {
        Ok(None)
    }
}

/// Answers nothing: for graphs whose sources say all in their settings.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoProbe;

impl SourceProbe for NoProbe {
    fn probe(&self, _: &Entry, _: &SettingValues) -> Result<Probed, ProbeError> {
        Ok(Probed::default())
    }
}
