//! Errors of users' shaders and their runs. An error carries the position in the text, the actual and the expected
//! state, and the remedy.
//!
//! Invariant: every error names the shader.

use std::fmt;

use vramp_kernels::own::OwnError;

use crate::ops::dtype::DType;
use crate::ops::error::TensorError;

/// Why a user's shader cannot be read or run.
#[derive(Clone, PartialEq, thiserror::Error)]
pub enum ShaderError {
    /// A mistake in the shader's text.
    #[error("shader {name}{at}: {problem}{}", suffix(.help.as_deref()))]
    Text {
        name: String,
        at: ShaderPosition,
        problem: String,
        /// The remedy, if one is known.
        help: Option<String>,
    },
    /// A mistake in the declaration of the shader's tensors.
    #[error("shader {name}: {problem}")]
    Declared { name: String, problem: String },
    #[error("shader {name}: the {role} `{binding}` is missing; it is declared as {wants}")]
    Missing {
        name: String,
        /// `input` or `output`.
        role: &'static str,
        binding: String,
        wants: DType,
    },
    #[error("shader {name}: unknown {role} `{binding}`; declared: {known}")]
    Unknown {
        name: String,
        /// `input` or `output`.
        role: &'static str,
        binding: String,
        known: String,
    },
    #[error("shader {name}: the {role} `{binding}` is given twice; give it once")]
    Twice {
        name: String,
        /// `input` or `output`.
        role: &'static str,
        binding: String,
    },
    #[error("shader {name}: `{binding}` is declared as {wants}, got {has}; `cast` the tensor first")]
    WrongType { name: String, binding: String, wants: DType, has: DType },
    #[error("shader {name}: `{binding}` got {has} values; {wants}")]
    WrongCount { name: String, binding: String, has: usize, wants: String },
    /// A parameter that is missing, unknown, or of the wrong type.
    #[error("shader {name}: {problem}")]
    Param { name: String, problem: String },
    #[error(
        "shader {name}: {x} x {y} x {z} workgroups; a dispatch takes 1 to {most} along each side; fold a long side into \
         the next side, or pass no grid"
    )]
    Grid { name: String, x: u32, y: u32, z: u32, most: u32 },
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

vramp_plan::debug_as_display!(ShaderError);

/// A position in a text, counted from 1; 0 means the whole text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ShaderPosition {
    pub line: u32,
    pub column: u32,
}

impl fmt::Display for ShaderPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => Ok(()),
            line => write!(f, ", line {line}, column {}", self.column),
        }
    }
}

impl ShaderError {
    pub(super) fn text(name: &str, error: OwnError) -> ShaderError {
        let OwnError { line, column, problem, help, .. } = error;
        ShaderError::Text { name: name.to_owned(), at: ShaderPosition { line, column }, problem, help }
    }
}

impl From<ShaderError> for TensorError {
    fn from(error: ShaderError) -> TensorError {
        match error {
            ShaderError::Tensor(error) => error,
            other => TensorError::Setting { op: "shader", problem: other.to_string() },
        }
    }
}

fn suffix(help: Option<&str>) -> String {
    help.map_or_else(String::new, |help| format!("; {help}"))
}
