//! Why an ONNX file cannot be read: one variant per cause, with the place in the file and the numbers.

use std::fmt;
use std::path::PathBuf;

/// Why an ONNX file cannot be read. Unsupported ops are not in this list: a file with unsupported ops can be read.
#[derive(Debug, thiserror::Error)]
pub enum OnnxError {
    #[error("{} cannot be read: {error}", path.display())]
    Read { path: PathBuf, error: std::io::Error },
    #[error(
        "{} has {has} bytes, but an ONNX file has at most {most}; save the model again with its weights as external \
         data",
        path.display()
    )]
    FileTooLarge { path: PathBuf, has: u64, most: u64 },
    /// The bytes or the graph contradict the format.
    #[error("not a valid ONNX file: {at}: {problem}")]
    Malformed { at: String, problem: String },
    #[error(
        "{at}: decoding needs more than {most} bytes, the size of the file and 64 MB: it has too many small parts, as \
         no real model has; save the model again with `raw_data`"
    )]
    TooManyParts { at: String, most: u64 },
    #[error("{at}: {what} is not supported; {remedy}")]
    Unsupported { at: String, what: String, remedy: &'static str },
    #[error(
        "the model was written for opset {has}; {oldest} to {newest} can be read; convert it, for example with \
         `onnx.version_converter`"
    )]
    Opset { has: i64, oldest: i64, newest: i64 },
    #[error("{at} is {has}, expected {wants}")]
    WrongType { at: String, has: String, wants: &'static str },
    /// Data outside the model's file.
    #[error("the external data of {at} cannot be used: {problem}")]
    External { at: String, problem: String },
    #[error("{at}: {needs} bytes of memory are not available")]
    OutOfMemory { at: String, needs: u64 },
}

impl OnnxError {
    pub(super) fn malformed(at: impl fmt::Display, problem: impl fmt::Display) -> OnnxError {
        OnnxError::Malformed { at: at.to_string(), problem: problem.to_string() }
    }

    pub(super) fn external(at: impl fmt::Display, problem: impl fmt::Display) -> OnnxError {
        OnnxError::External { at: at.to_string(), problem: problem.to_string() }
    }
}

/// How much of a name an error quotes, in bytes.
pub(super) const LONGEST_NAME: usize = 200;

/// A name from a file as errors show it: bounded, and without control characters.
pub(super) fn shown(name: &str) -> String {
    let end = (0..=LONGEST_NAME.min(name.len())).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
    let dots = if end < name.len() { "..." } else { "" };
    let shown: String = name[..end].chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    shown + dots
}

pub(super) fn quoted(name: &str) -> String {
    format!("`{}`", shown(name))
}

/// How errors name a node: by its name and op, or else by its op and its position in the file.
pub(super) fn node_place(name: &str, op: &str, position: usize) -> String {
    let op = shown(op);
    if name.is_empty() { format!("node `{op} #{position}`") } else { format!("node {} ({op})", quoted(name)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_errors_are_bounded_and_without_control_characters() {
        assert_eq!(quoted("conv/1"), "`conv/1`");
        assert_eq!(quoted("a\x1b[2J\n"), "`a\u{fffd}[2J\u{fffd}`");
        assert_eq!(shown(&"\u{e4}".repeat(1000)), "\u{e4}".repeat(LONGEST_NAME / 2) + "...");
        assert_eq!(node_place("", "Conv", 12), "node `Conv #12`");
        assert_eq!(node_place("first", "Conv", 12), "node `first` (Conv)");
    }
}
