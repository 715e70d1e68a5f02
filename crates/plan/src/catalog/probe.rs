//! Probing: how the planner learns what a source contains and what a user's shader declares, without opening a device.
//!
//! The crate that has the handlers implements [`SourceProbe`]; this crate reads no files.

use std::sync::Arc;

use crate::words::{Format, Rate, Size, StreamTags};

use super::{Entry, KernelDesc, SettingValues, Value, ValueType};

/// The properties found in a source's header. Settings may give the properties that the header does not have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Probed {
    pub format: Option<Format>,
    /// Size of the first frame.
    pub size: Option<Size>,
    pub rate: Option<Rate>,
    /// Other properties of the stream.
    pub tags: Option<Arc<StreamTags>>,
    /// How long the stream is; `None` if it has no end or its end is not known.
    pub length: Option<StreamLength>,
    /// What the user should know about the stream, such as a conversion. The plan lists these notes.
    pub notes: Vec<String>,
}

/// The length of a stream. At least one of the two is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamLength {
    pub frames: Option<u64>,
    pub ns: Option<u64>,
}

/// A source could not be probed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}; {help}")]
pub struct ProbeError {
    /// Names the file and the position of the problem in the file.
    pub problem: String,
    pub help: String,
}

/// A user's shader: its kernel and the settings that it declares.
#[derive(Debug, Clone, PartialEq)]
pub struct DeclaredShader {
    pub kernel: KernelDesc,
    pub settings: Vec<DeclaredSetting>,
    /// The text that was read. A run starts with this text, even if the file has changed since.
    pub text: Arc<str>,
}

/// A setting that a shader declares.
#[derive(Debug, Clone, PartialEq)]
pub struct DeclaredSetting {
    pub name: String,
    pub value: ValueType,
    pub default: Value,
}

impl DeclaredSetting {
    /// Reads a value. An integer setting that starts at 0 also accepts `true` and `false`, because shaders cannot
    /// declare a boolean setting.
    pub fn read(&self, text: &str) -> Option<Value> {
        self.value.read(text).or(match (self.value, text) {
            (ValueType::Int { min: 0, .. }, "true") => Some(Value::Int(1)),
            (ValueType::Int { min: 0, .. }, "false") => Some(Value::Int(0)),
            _ => None,
        })
    }
}

/// A shader could not be read or is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeclareError {
    /// The file could not be read.
    #[error(transparent)]
    Unreadable(#[from] ProbeError),
    /// The shader does not compile.
    #[error("{problem}")]
    Wrong {
        /// Includes the file, line and column.
        problem: String,
        /// The faulty line of the shader and the remedy, if they are known.
        help: String,
    },
}

/// Finds out what a source contains and what a user's shader declares.
pub trait SourceProbe {
    /// Reads the header of the source that these settings name.
    fn probe(&self, entry: &Entry, settings: &SettingValues) -> Result<Probed, ProbeError>;

    /// Bytes of the small data that a handler makes from a file, such as a logo; `None` if the bytes do not depend on a
    /// file.
    fn small_bytes(&self, _entry: &Entry, _settings: &SettingValues) -> Option<u64> {
        None
    }

    /// Reads the shader of a handler with open settings; `None` if this probe cannot read shaders.
    fn declared(&self, _entry: &Entry, _settings: &SettingValues) -> Result<Option<DeclaredShader>, DeclareError> {
        Ok(None)
    }
}

/// Finds nothing: for graphs whose sources declare everything in their settings.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoProbe;

impl SourceProbe for NoProbe {
    fn probe(&self, _: &Entry, _: &SettingValues) -> Result<Probed, ProbeError> {
        Ok(Probed::default())
    }
}
