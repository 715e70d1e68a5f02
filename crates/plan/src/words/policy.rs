//! Policies: how a link delivers, how a handler reacts to an error, and when a join ends. Depths are decided by the
//! planner.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// What a link does if its consumer is slower than its producer. A greater policy loses fewer frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// Keeps the newest frame; older frames are counted as dropped.
    Latest,
    /// Bounded; drops the oldest frame and counts it as dropped.
    Queue,
    /// Bounded; the producer waits.
    Lossless,
}

impl Policy {
    pub const ALL: [Policy; 3] = [Policy::Latest, Policy::Queue, Policy::Lossless];

    /// The word used in text, TOML and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Policy::Latest => "latest",
            Policy::Queue => "queue",
            Policy::Lossless => "lossless",
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What to do when a handler fails on a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OnError {
    /// The run ends with the error.
    #[default]
    Stop,
    /// The frame is counted as failed and the run continues with the next frame.
    Skip,
    /// The handler processes the frame once more; after a second failure the frame is skipped.
    Retry,
}

impl OnError {
    pub const ALL: [OnError; 3] = [OnError::Stop, OnError::Skip, OnError::Retry];

    /// The word used in text and TOML.
    pub const fn name(self) -> &'static str {
        match self {
            OnError::Stop => "stop",
            OnError::Skip => "skip",
            OnError::Retry => "retry",
        }
    }
}

impl fmt::Display for OnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// When a handler with several inputs ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Until {
    /// When its lead input ends. Any other input that ends earlier holds its last frame.
    #[default]
    Lead,
    /// When the first of its inputs ends.
    Shortest,
}

impl Until {
    pub const ALL: [Until; 2] = [Until::Lead, Until::Shortest];

    /// The word used in text and TOML.
    pub const fn name(self) -> &'static str {
        match self {
            Until::Lead => "lead",
            Until::Shortest => "shortest",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown word `{word}`; expected {expected}")]
pub struct UnknownWord {
    pub word: String,
    pub expected: &'static str,
}

impl FromStr for Policy {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let expected = "latest, queue or lossless";
        Policy::ALL.into_iter().find(|p| p.name() == word).ok_or(UnknownWord { word: word.to_owned(), expected })
    }
}

impl FromStr for OnError {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let expected = "stop, skip or retry";
        OnError::ALL.into_iter().find(|p| p.name() == word).ok_or(UnknownWord { word: word.to_owned(), expected })
    }
}

impl FromStr for Until {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let expected = "lead or shortest";
        Until::ALL.into_iter().find(|p| p.name() == word).ok_or(UnknownWord { word: word.to_owned(), expected })
    }
}
