//! How a link delivers and what a failing handler does to its frame.
//!
//! Owns the two small vocabularies and their words.
//! Does not decide depths: the planner does.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// What a link does when its consumer is slower than its producer; a greater one loses less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// The newest frame wins; older ones are counted as dropped.
    Latest,
    /// Bounded; the oldest frame is dropped and counted.
    Queue,
    /// Bounded; the producer waits.
    Lossless,
}

impl Policy {
    /// Every policy.
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

/// What happens to the pipeline when a handler fails on a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OnError {
    /// The run ends with the error.
    #[default]
    Stop,
    /// The frame is counted as failed and the next one is tried.
    Skip,
    /// The frame is tried once more, then skipped.
    Retry,
}

impl OnError {
    /// Every reaction.
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
    /// With its lead input; an input that ends before holds its last frame.
    #[default]
    Lead,
    /// With the first of its inputs to end.
    Shortest,
}

impl Until {
    /// Both rules.
    pub const ALL: [Until; 2] = [Until::Lead, Until::Shortest];

    /// The word used in text and TOML.
    pub const fn name(self) -> &'static str {
        match self {
            Until::Lead => "lead",
            Until::Shortest => "shortest",
        }
    }
}

/// A word that is none of the expected ones.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown word `{word}`; expected {expected}")]
pub struct UnknownWord {
    /// What was written.
    pub word: String,
    /// What could have been.
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
