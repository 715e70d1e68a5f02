//! Memory spaces: where a frame can be stored. The costs of a space are in the profile.
//!
//! Invariant: the rank is explicit (gpu before cpu) and never depends on the iteration order of a set.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// A memory in which frames are stored and on which handlers work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Space {
    Gpu,
    Cpu,
}

impl Space {
    /// Best first: this order breaks ties.
    pub const RANKED: [Space; 2] = [Space::Gpu, Space::Cpu];

    /// The word used in text, TOML and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Space::Gpu => "gpu",
            Space::Cpu => "cpu",
        }
    }

    /// The other end of a transfer.
    #[must_use]
    pub const fn other(self) -> Space {
        match self {
            Space::Gpu => Space::Cpu,
            Space::Cpu => Space::Gpu,
        }
    }
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown memory space `{0}`; expected cpu or gpu")]
pub struct UnknownSpace(pub String);

impl FromStr for Space {
    type Err = UnknownSpace;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Space::RANKED.into_iter().find(|s| s.name() == word).ok_or_else(|| UnknownSpace(word.to_owned()))
    }
}

/// A set of memory spaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpaceSet(u8);

impl SpaceSet {
    pub const EMPTY: SpaceSet = SpaceSet(0);
    pub const ALL: SpaceSet = SpaceSet(0b11);
    pub const CPU: SpaceSet = SpaceSet(1 << Space::Cpu as u8);
    pub const GPU: SpaceSet = SpaceSet(1 << Space::Gpu as u8);

    pub const fn only(space: Space) -> SpaceSet {
        SpaceSet(1 << space as u8)
    }

    pub const fn contains(self, space: Space) -> bool {
        self.0 & (1 << space as u8) != 0
    }

    #[must_use]
    pub const fn intersect(self, other: SpaceSet) -> SpaceSet {
        SpaceSet(self.0 & other.0)
    }

    #[must_use]
    pub const fn union(self, other: SpaceSet) -> SpaceSet {
        SpaceSet(self.0 | other.0)
    }

    #[must_use]
    pub const fn without(self, space: Space) -> SpaceSet {
        SpaceSet(self.0 & !(1 << space as u8))
    }

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The members, best first.
    pub fn ranked(self) -> impl Iterator<Item = Space> {
        Space::RANKED.into_iter().filter(move |s| self.contains(*s))
    }
}

impl FromIterator<Space> for SpaceSet {
    fn from_iter<I: IntoIterator<Item = Space>>(spaces: I) -> Self {
        spaces.into_iter().fold(SpaceSet::EMPTY, |set, s| set.union(SpaceSet::only(s)))
    }
}

impl fmt::Display for SpaceSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("nothing");
        }
        let names: Vec<_> = self.ranked().map(Space::name).collect();
        f.write_str(&names.join("|"))
    }
}
