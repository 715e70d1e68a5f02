//! What is wrong with a user's shader, or with what it is run with.
//!
//! Owns the words: where in the text, what is there, what was expected, and the way out.
//! Does not find anything wrong by itself.
//!
//! Always: every error about a shader names it.

use std::fmt;

use vramp_kernels::own::OwnError;

use crate::ops::dtype::DType;
use crate::ops::error::TensorError;

/// What is wrong with a user's shader, or with what it is run with.
#[derive(Clone, PartialEq, thiserror::Error)]
pub enum ShaderError {
    /// Its text.
    #[error("shader {name}{at}: {problem}{}", behind(.help.as_deref()))]
    Text {
        /// Which shader.
        name: String,
        /// Where in its text.
        at: ShaderPosition,
        /// What is wrong there.
        problem: String,
        /// The way out, where one is known.
        help: Option<String>,
    },
    /// What was said about it.
    #[error("shader {name}: {problem}")]
    Declared {
        /// Which shader.
        name: String,
        /// What is wrong, and the way out.
        problem: String,
    },
    /// A tensor that was declared and is not given.
    #[error("shader {name}: the {role} `{binding}` is not given; it is declared as {wants}")]
    Missing {
        /// Which shader.
        name: String,
        /// `input` or `output`.
        role: &'static str,
        /// Which of its tensors.
        binding: String,
        /// As declared.
        wants: DType,
    },
    /// A tensor that was not declared.
    #[error("shader {name}: there is no {role} `{binding}`; there is {known}")]
    Unknown {
        /// Which shader.
        name: String,
        /// `input` or `output`.
        role: &'static str,
        /// As it was given.
        binding: String,
        /// What was declared.
        known: String,
    },
    /// A tensor that is given twice.
    #[error("shader {name}: the {role} `{binding}` is given twice; give it once")]
    Twice {
        /// Which shader.
        name: String,
        /// `input` or `output`.
        role: &'static str,
        /// Which of its tensors.
        binding: String,
    },
    /// A tensor of another type than it was declared for.
    #[error("shader {name}: `{binding}` is declared as {wants} and is given {has}; `cast` it first")]
    WrongType {
        /// Which shader.
        name: String,
        /// Which of its tensors.
        binding: String,
        /// As declared.
        wants: DType,
        /// What it was given.
        has: DType,
    },
    /// As many values as its text cannot be given.
    #[error("shader {name}: `{binding}` is given {has} values; {wants}")]
    WrongCount {
        /// Which shader.
        name: String,
        /// Which of its tensors.
        binding: String,
        /// How many.
        has: usize,
        /// What its text asks for.
        wants: String,
    },
    /// A parameter that is missing, not there, or of another type.
    #[error("shader {name}: {problem}")]
    Param {
        /// Which shader.
        name: String,
        /// What is wrong, and the way out.
        problem: String,
    },
    /// A grid that no dispatch has.
    #[error(
        "shader {name}: {x} x {y} x {z} workgroups; a dispatch has 1 to {most} along each side; fold a long side into \
         the next one, or let the grid be derived"
    )]
    Grid {
        /// Which shader.
        name: String,
        /// Along x.
        x: u32,
        /// Along y.
        y: u32,
        /// Along z.
        z: u32,
        /// What is allowed.
        most: u32,
    },
    /// What tensors and devices say.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

vramp_plan::debug_as_display!(ShaderError);

/// A place in a text, counted from 1; 0 where it is about the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ShaderPosition {
    /// The line.
    pub line: u32,
    /// Where in that line.
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

fn behind(help: Option<&str>) -> String {
    help.map_or_else(String::new, |help| format!("; {help}"))
}
