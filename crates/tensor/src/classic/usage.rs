//! Memory use of a context, summed over both sides, and the reason why the figures may be wrong.
//!
//! Bytes of values, memory lent for values, and pooled memory are separate figures. No figure includes memory of the
//! driver or of staging.

use std::collections::BTreeSet;
use std::fmt;

use vramp_gpu::ResourceState;

use crate::ops::context::{Context, OWNER};

/// Memory use of a context on both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryUsage {
    /// The number of tensors that are not disposed of.
    pub num_tensors: u64,
    /// Bytes of the values of all tensors that are not disposed of. Values that views share count once; values that are
    /// on both sides count twice.
    pub num_bytes: u64,
    /// The number of memories that tensors are in.
    pub buffers: u64,
    /// Bytes lent for values, including rounding, and bytes that are returned but that the device still uses.
    pub in_use_bytes: u64,
    /// Bytes that are free for reuse.
    pub pooled_bytes: u64,
    /// The peak of `num_bytes`.
    pub peak_bytes: u64,
    /// Why these figures may be wrong; `None` if they are reliable.
    pub unreliable: Option<String>,
}

impl MemoryUsage {
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
            // Buffers that the device has finished with become free only when the pool reclaims them.
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
