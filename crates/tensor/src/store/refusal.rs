//! Why the books refuse an entry.
//!
//! Owns one case per cause, with the numbers and the way out, and what a name may be.
//! Does not log.
//!
//! Always: what was refused has changed nothing.

use std::time::Duration;

/// The longest name of a tensor or a model.
pub const MAX_NAME_BYTES: usize = 512;

/// The one name that no tensor in a file can have, whatever file it is. Refused here, and not spelt differently in files: a
/// name is the same wherever it stands.
const RESERVED_NAME: &str = "__metadata__";

/// Why the books refuse an entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    /// A second tensor of one name.
    #[error(
        "`{name}` is a tensor of {producer} already, and a name is one tensor; `replace` it, or choose another name"
    )]
    Taken {
        /// The name.
        name: String,
        /// Whose it is.
        producer: String,
    },
    /// A name that nothing has.
    #[error("there is no tensor `{name}`; {} are registered", has)]
    Unknown {
        /// The name.
        name: String,
        /// How many tensors there are.
        has: usize,
    },
    /// Something without a name.
    #[error("a {what} needs a name, and this one is empty")]
    Nameless {
        /// `tensor` or `model`.
        what: &'static str,
    },
    /// A name that is too long.
    #[error("a {what} has a name of {has} bytes, {most} is the most: `{start}...`")]
    LongName {
        /// `tensor` or `model`.
        what: &'static str,
        /// How it starts.
        start: String,
        /// How long it is.
        has: usize,
        /// What is allowed.
        most: usize,
    },
    /// A name that could not be written to a file.
    #[error("a tensor cannot be called `{name}`, which files of tensors keep for themselves; choose another name")]
    Reserved {
        /// The name.
        name: String,
    },
    /// A model that the tensor is not shared with.
    #[error(
        "`{name}` is not shared with {model}: it belongs to {producer}, and {consumers} others may use it; `share` it \
         with {model} first"
    )]
    NotShared {
        /// The tensor.
        name: String,
        /// Who asked.
        model: String,
        /// Whose it is.
        producer: String,
        /// How many others may use it.
        consumers: usize,
    },
    /// A change by somebody else than who made it.
    #[error("`{name}` belongs to {producer}: {model} may not replace or remove it, and can register its own")]
    NotProducer {
        /// The tensor.
        name: String,
        /// Who asked.
        model: String,
        /// Whose it is.
        producer: String,
    },
    /// Given back more often than taken.
    #[error(
        "`{name}` is given back by {model}, which took it {taken} times and gave it back as often; release once per \
         acquire"
    )]
    NotHeld {
        /// The tensor.
        name: String,
        /// Who gives it back.
        model: String,
        /// How often it had taken it.
        taken: u64,
    },
    /// Still in use.
    #[error("`{name}` is in use: {models} models hold it {holds} times; release it there first (`release_model`)")]
    InUse {
        /// The tensor.
        name: String,
        /// By how many.
        models: usize,
        /// How often altogether.
        holds: u64,
    },
    /// Held by a pin.
    #[error("`{name}` is pinned; `unpin` it first")]
    Pinned {
        /// The tensor.
        name: String,
    },
    /// One memory of two sizes.
    #[error("`{name}`: memory {tag} has {has} bytes in the books and {given} are given; a tag is one memory")]
    OtherSize {
        /// The tensor.
        name: String,
        /// Which memory.
        tag: u64,
        /// What the books say.
        has: u64,
        /// What is said now.
        given: u64,
    },
    /// More values than the memory has room for.
    #[error("`{name}` has {bytes} bytes, which are more than the {has} of its memory")]
    Overhangs {
        /// The tensor.
        name: String,
        /// Its own.
        bytes: u64,
        /// Those of its memory.
        has: u64,
    },
    /// Used a moment ago.
    #[error("`{name}` was used {idle_ms} ms ago and is kept for {grace_ms} ms after that", idle_ms = idle.as_millis(), grace_ms = grace.as_millis())]
    TooSoon {
        /// The tensor.
        name: String,
        /// Since when nobody has used it.
        idle: Duration,
        /// How long it is kept.
        grace: Duration,
    },
}

/// A name for a tensor, which can be printed, found again and written to a file.
pub(super) fn check_tensor_name(name: &str) -> Result<(), LedgerError> {
    check_name("tensor", name)?;
    if name == RESERVED_NAME { Err(LedgerError::Reserved { name: name.to_owned() }) } else { Ok(()) }
}

/// A name that can be printed and found again.
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
