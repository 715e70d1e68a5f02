//! How much memory a context takes, in the classic words.
//!
//! Owns the sums over both sides, and the reasons to doubt them.
//! Does not count: contexts and pools do.
//!
//! Always: values, what is lent for them and what lies free are three numbers; what the driver takes for itself, and what
//! values pass through on their way up and down, is in none.

use std::collections::BTreeSet;
use std::fmt;

use vramp_gpu::ResourceState;

use crate::ops::context::{Context, OWNER};

/// How much memory a context takes, on both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryUsage {
    /// Tensors that were made and not disposed of.
    pub num_tensors: u64,
    /// Bytes of their values; those that views share are counted once, copies on the other side are counted.
    pub num_bytes: u64,
    /// Memories behind the tensors.
    pub buffers: u64,
    /// Bytes that are lent for values, rounding included, or that the device still uses.
    pub in_use_bytes: u64,
    /// Bytes that lie free for the next tensor.
    pub pooled_bytes: u64,
    /// The most bytes of values that there were at once.
    pub peak_bytes: u64,
    /// Why these numbers may be wrong; none where they are right.
    pub unreliable: Option<String>,
}

impl MemoryUsage {
    /// What a context takes now.
    pub fn of(context: &Context) -> MemoryUsage {
        let (memory, host) = (context.memory(), context.host_pool());
        let mut usage = MemoryUsage {
            num_tensors: memory.tensors,
            num_bytes: memory.bytes(),
            buffers: memory.buffers,
            in_use_bytes: host.lent_bytes,
            pooled_bytes: host.pooled_bytes,
            peak_bytes: memory.peak_bytes,
            unreliable: memory.unreliable,
        };
        if let Some(device) = context.device() {
            // What the device was done with long ago is free, though nobody has asked since.
            device.pool().reclaim(u64::MAX);
            let pool = device.pool().statistics();
            usage.in_use_bytes += pool.lent_bytes + pool.waiting_bytes;
            usage.pooled_bytes += pool.pooled_bytes;
            let ledger = device.pool().ledger();
            let others: Vec<_> =
                ledger.iter().filter(|held| held.place != ResourceState::Pooled && &*held.owner != OWNER).collect();
            if !others.is_empty() && usage.unreliable.is_none() {
                let bytes: u64 = others.iter().map(|held| held.bytes).sum();
                let names: BTreeSet<&str> = others.iter().map(|held| &*held.owner).collect();
                let names = names.into_iter().collect::<Vec<_>>().join(", ");
                usage.unreliable = Some(format!("{bytes} of the bytes in use on the device are held by {names}"));
            }
        }
        usage
    }
}

impl fmt::Display for MemoryUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { num_tensors, num_bytes, buffers, in_use_bytes, pooled_bytes, peak_bytes, unreliable } = self;
        write!(
            f,
            "{num_tensors} tensors of {num_bytes} bytes in {buffers} buffers; {in_use_bytes} bytes in use, {pooled_bytes} \
             free, {peak_bytes} at most"
        )?;
        unreliable.as_ref().map_or(Ok(()), |why| write!(f, "; unreliable: {why}"))
    }
}
