//! What a pool says about itself: rows of its ledger and its statistics.
//!
//! Owns the plain values that reports are made of.
//! Does not keep them up to date: a pool answers with fresh ones.

use std::fmt;
use std::sync::Arc;

use super::lent::Tag;

/// Where a resource of a pool is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResourceState {
    /// Somebody holds it.
    Lent,
    /// Nobody holds it, and the device still uses it until this submission has finished.
    Waiting {
        /// The last submission that uses it.
        submission: u64,
    },
    /// It can be lent.
    Pooled,
}

/// One row of a pool's ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolEntry {
    /// Which resource, and which lending of it.
    pub tag: Tag,
    /// Who borrowed it last.
    pub owner: Arc<str>,
    /// Bytes it takes, which may be more than were asked for.
    pub bytes: u64,
    /// The frame in which it was lent.
    pub since_frame: u64,
    /// Handles that exist.
    pub holders: usize,
    /// What its holders noted about it last; 0 for nothing.
    pub note: u64,
    /// Where it is.
    pub place: ResourceState,
}

impl fmt::Display for PoolEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tag, owner, bytes, since_frame, holders, place, .. } = self;
        match place {
            ResourceState::Lent => {
                write!(f, "{tag} {bytes} bytes: held by {owner} since frame {since_frame}, {holders} handles")
            }
            ResourceState::Waiting { submission } => {
                write!(f, "{tag} {bytes} bytes: {owner} is done, the device is until submission {submission}")
            }
            ResourceState::Pooled => write!(f, "{tag} {bytes} bytes: free, last held by {owner}"),
        }
    }
}

/// What a pool has done and holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// The most it may hold.
    pub budget_bytes: u64,
    /// Resources that somebody holds.
    pub lent: usize,
    /// Their bytes.
    pub lent_bytes: u64,
    /// Resources that nobody but the device uses.
    pub waiting: usize,
    /// Their bytes.
    pub waiting_bytes: u64,
    /// Resources that can be lent.
    pub pooled: usize,
    /// Their bytes.
    pub pooled_bytes: u64,
    /// The most bytes it ever held at once, whoever held them.
    pub peak_bytes: u64,
    /// Times a pooled resource was lent.
    pub hits: u64,
    /// Times a resource had to be made.
    pub misses: u64,
    /// Pooled resources that were given up, and those of others that were let go.
    pub trimmed: u64,
}

impl Statistics {
    /// Bytes it holds, in whatever place.
    pub fn held_bytes(&self) -> u64 {
        self.lent_bytes + self.waiting_bytes + self.pooled_bytes
    }
}
