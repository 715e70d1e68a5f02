//! A pool's ledger rows and statistics: snapshots for reports.

use std::fmt;
use std::sync::Arc;

use super::lent::Tag;

/// The state of a resource of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResourceState {
    Lent,
    /// Returned, but in use by the device until this submission has finished.
    Waiting {
        /// The last submission that uses the resource.
        submission: u64,
    },
    /// Free to be lent.
    Pooled,
}

/// One row of a pool's ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolEntry {
    pub tag: Tag,
    /// The last borrower.
    pub owner: Arc<str>,
    /// Size of the resource, which may exceed the requested size.
    pub bytes: u64,
    /// The frame in which the resource was lent.
    pub since_frame: u64,
    /// Number of handles.
    pub holders: usize,
    /// The last number that a holder noted ([`Pooled::note`](super::Pooled::note)); 0 without a note.
    pub note: u64,
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
                write!(f, "{tag} {bytes} bytes: returned by {owner}, in use until submission {submission}")
            }
            ResourceState::Pooled => write!(f, "{tag} {bytes} bytes: free, last held by {owner}"),
        }
    }
}

/// Totals of a pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    pub budget_bytes: u64,
    /// Resources with at least one handle.
    pub lent: usize,
    pub lent_bytes: u64,
    /// Resources without handles that the device still uses.
    pub waiting: usize,
    pub waiting_bytes: u64,
    /// Free resources.
    pub pooled: usize,
    pub pooled_bytes: u64,
    /// Maximum of the bytes held since the peak was restarted. Free bytes count only at the moments when a resource was
    /// created.
    pub peak_bytes: u64,
    /// Requests served by a free resource.
    pub hits: u64,
    /// Requests for which a resource was created.
    pub misses: u64,
    /// Free resources that were dropped, and adopted resources whose last handle was dropped.
    pub trimmed: u64,
}

impl Statistics {
    /// Bytes in all three states.
    pub fn held_bytes(&self) -> u64 {
        self.lent_bytes + self.waiting_bytes + self.pooled_bytes
    }
}
