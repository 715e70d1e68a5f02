//! Errors of the ledger, and the rules for names. A call that fails has changed nothing.

use std::time::Duration;

/// The maximum length of a tensor's or a model's name.
pub const MAX_NAME_BYTES: usize = 512;

/// The key that safetensors headers reserve. The key is refused as a tensor's name and not escaped in files, so that a
/// tensor has the same name everywhere.
const RESERVED_NAME: &str = "__metadata__";

/// An error of the ledger.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    #[error("`{name}` is already a tensor of {producer}; `replace` it, or choose another name")]
    Taken { name: String, producer: String },
    #[error("there is no tensor `{name}`; {} are registered", has)]
    Unknown { name: String, has: usize },
    #[error("the name of a {what} is empty; use at least 1 character")]
    Nameless { what: &'static str },
    #[error("the name of a {what} has {has} bytes, more than the limit of {most}: `{start}...`")]
    LongName { what: &'static str, start: String, has: usize, most: usize },
    #[error("a tensor cannot be called `{name}`, which is reserved in files of tensors; choose another name")]
    Reserved { name: String },
    #[error(
        "`{name}` is not shared with {model}: it belongs to {producer}, and {consumers} others may use it; `share` it \
         with {model} first"
    )]
    NotShared { name: String, model: String, producer: String, consumers: usize },
    #[error("`{name}` belongs to {producer}: {model} may not replace or remove it; register another tensor instead")]
    NotProducer { name: String, model: String, producer: String },
    #[error("`{name}`: {model} does not hold it any more, after {taken} acquires; release once per acquire")]
    NotHeld { name: String, model: String, taken: u64 },
    #[error("`{name}` is in use: {models} models hold it {holds} times; release it there first (`release_model`)")]
    InUse { name: String, models: usize, holds: u64 },
    #[error("`{name}` is pinned; `unpin` it first")]
    Pinned { name: String },
    #[error("`{name}`: memory {tag} is registered with {has} bytes, not {given}; use one tag per memory")]
    OtherSize { name: String, tag: u64, has: u64, given: u64 },
    /// The values do not fit the memory.
    #[error("`{name}` has {bytes} bytes, more than the {has} bytes of its memory")]
    Overhangs { name: String, bytes: u64, has: u64 },
    /// The grace period has not passed yet.
    #[error(
        "`{name}` was used {idle_ms} ms ago and is kept for {grace_ms} ms after its last use",
        idle_ms = idle.as_millis(),
        grace_ms = grace.as_millis()
    )]
    TooSoon { name: String, idle: Duration, grace: Duration },
}

/// Like [`check_name`]; also refuses the name that files reserve.
pub(super) fn check_tensor_name(name: &str) -> Result<(), LedgerError> {
    check_name("tensor", name)?;
    if name == RESERVED_NAME { Err(LedgerError::Reserved { name: name.to_owned() }) } else { Ok(()) }
}

/// Refuses names that are empty or too long.
pub(super) fn check_name(what: &'static str, name: &str) -> Result<(), LedgerError> {
    if name.is_empty() {
        return Err(LedgerError::Nameless { what });
    }
    if name.len() > MAX_NAME_BYTES {
        let start = name.chars().take(32).collect();
        return Err(LedgerError::LongName { what, start, has: name.len(), most: MAX_NAME_BYTES });
    }
    Ok(())
}
