//! Batch sizes that fit the available memory. A batch consists of items, such as tensors, which the caller's work
//! processes together.
//!
//! The memory of a batch is not reserved, so other code may take it before the batch runs. Work that runs out of memory
//! is therefore retried with half as many items.
//!
//! Invariants: a batch has at least one item. Each item has one result, and results are in the order of the items. Any
//! error other than out of memory is returned at once.

use vramp_gpu::{AdapterReading, Readout};

use super::compute::DEFAULT_CHUNK;
use crate::ops::context::Context;
use crate::ops::error::{ErrorKind, TensorError};

/// Rules for the size of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchRules {
    /// The percentage of the available memory that is used for items. The rest is for the results of ops.
    pub share_percent: u64,
    /// The maximum number of items in a batch.
    pub most: usize,
}

impl Default for BatchRules {
    fn default() -> Self {
        Self { share_percent: 50, most: 10_000 }
    }
}

impl BatchRules {
    /// The number of items in a batch, at least 1. If the available memory is unknown, this assumes that 100 items fit.
    pub fn size(&self, item_bytes: u64, available: &Readout<u64>) -> usize {
        let fitting = match available.value() {
            Some(bytes) => u128::from(bytes) * u128::from(self.share_percent) / 100 / u128::from(item_bytes.max(1)),
            None => DEFAULT_CHUNK as u128,
        };
        usize::try_from(fitting).unwrap_or(usize::MAX).min(self.most).max(1)
    }
}

/// The number of items in a batch by the default rules.
pub fn adaptive_batch(item_bytes: u64, available: &Readout<u64>) -> usize {
    BatchRules::default().size(item_bytes, available)
}

/// The number of bytes that tensors of a context can still use on its device, or on the host if the context has no
/// device. This number is the unused rest of the pool's budget. If a reading of the device is given, the result is at
/// most the memory that is free according to that reading.
pub fn available_bytes(context: &Context, reading: Option<&AdapterReading>) -> Readout<u64> {
    let Some(device) = context.device() else {
        return match context.pool().available_bytes() {
            Some(bytes) => Readout::is(bytes, "the budget of the host's pool"),
            None => Readout::unavailable("the host's pool has no budget; give it one with `HostPoolRules`"),
        };
    };
    device.pool().reclaim(u64::MAX);
    let pool = device.pool().statistics();
    let left = pool.budget_bytes.saturating_sub(pool.lent_bytes + pool.waiting_bytes);
    let budget = format!("the budget of the pool of {}", device.adapter().name);
    let Some(AdapterReading { memory_bytes, used_bytes, .. }) = reading else { return Readout::is(left, budget) };
    match (memory_bytes, used_bytes) {
        (Readout::Is { value: has, from, doubt }, Readout::Is { value: used, doubt: also, .. }) => {
            // The reading counts pooled memory as used, but pooled memory can be lent again.
            let free = has.saturating_sub(*used) + pool.pooled_bytes;
            if free >= left {
                return Readout::is(left, budget);
            }
            Readout::Is { value: free, from: from.clone(), doubt: doubt.clone().or_else(|| also.clone()) }
        }
        (Readout::Unavailable(why), _) | (_, Readout::Unavailable(why)) => {
            let doubt = Some(format!("the free memory of the device is unknown: {why}"));
            Readout::Is { value: left, from: budget, doubt }
        }
    }
}

/// The result of [`run_adaptive`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adapted<R> {
    /// One result per item, in order.
    pub results: Vec<R>,
    /// The maximum number of items per chunk at the end.
    pub chunk: usize,
    /// How many times that number was halved for lack of memory.
    pub halved: usize,
}

/// Runs work over all items, in chunks of at first `most` items. When memory runs out, retries with half as many items
/// per chunk, down to one item. Completed results are kept. The work must return one result per item of its chunk.
pub fn run_adaptive<T, R>(
    items: &[T],
    most: usize,
    mut work: impl FnMut(&[T]) -> Result<Vec<R>, TensorError>,
) -> Result<Adapted<R>, TensorError> {
    let mut adapted = Adapted { results: Vec::with_capacity(items.len()), chunk: most.max(1), halved: 0 };
    let mut left = items;
    while !left.is_empty() {
        let now = adapted.chunk.min(left.len());
        match work(&left[..now]) {
            Ok(results) if results.len() == now => {
                adapted.results.extend(results);
                left = &left[now..];
            }
            Ok(results) => {
                let problem =
                    format!("the work returned {} results for {now} items; return one per item", results.len());
                return Err(TensorError::Setting { op: "run_adaptive", problem });
            }
            Err(error) if now > 1 && error.kind() == ErrorKind::OutOfMemory => {
                adapted.chunk = now / 2;
                adapted.halved += 1;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(adapted)
}
