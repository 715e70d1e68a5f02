//! How much to do at once, by the memory there is.
//!
//! Owns the size of batches, and what happens when there was less memory than it looked.
//! Does not reserve memory: somebody else may take it in between, which is why work is tried again with less.
//!
//! Always: a batch has at least one item; each item's result is there once, in order; an error other than too little
//! memory is returned at once.

use vramp_gpu::{AdapterReading, Readout};

use super::compute::DEFAULT_CHUNK;
use crate::ops::context::Context;
use crate::ops::error::{ErrorKind, TensorError};

/// How the size of a batch is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchRules {
    /// How much of the memory there is may be taken by items; the rest is for what ops make of them.
    pub share_percent: u64,
    /// The most items of one batch.
    pub most: usize,
}

impl Default for BatchRules {
    fn default() -> Self {
        Self { share_percent: 50, most: 10_000 }
    }
}

impl BatchRules {
    /// Items of one batch: at least 1. Where nobody knows how much memory there is, 100.
    pub fn size(&self, item_bytes: u64, available: &Readout<u64>) -> usize {
        let fitting = match available.value() {
            Some(bytes) => u128::from(bytes) * u128::from(self.share_percent) / 100 / u128::from(item_bytes.max(1)),
            None => DEFAULT_CHUNK as u128,
        };
        usize::try_from(fitting).unwrap_or(usize::MAX).min(self.most).max(1)
    }
}

/// Items of one batch by the usual rules.
pub fn adaptive_batch(item_bytes: u64, available: &Readout<u64>) -> usize {
    BatchRules::default().size(item_bytes, available)
}

/// Bytes that tensors of a context could still take on its side: what is left of the budget, and where a reading of its
/// device is given, no more than is free there.
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
            // What the pool holds free counts as used there, and can be lent again.
            let free = has.saturating_sub(*used) + pool.pooled_bytes;
            if free >= left {
                return Readout::is(left, budget);
            }
            Readout::Is { value: free, from: from.clone(), doubt: doubt.clone().or_else(|| also.clone()) }
        }
        (Readout::Unavailable(why), _) | (_, Readout::Unavailable(why)) => {
            let doubt = Some(format!("what is free on the device is unknown: {why}"));
            Readout::Is { value: left, from: budget, doubt }
        }
    }
}

/// What work over chunks came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adapted<R> {
    /// One for each item, in order.
    pub results: Vec<R>,
    /// Items of a chunk at the end.
    pub chunk: usize,
    /// How often there was too little memory, and a chunk was halved.
    pub halved: usize,
}

/// Runs work over all items, at first `most` at once. Where that is too much for the memory, half as many are tried, down
/// to one; what was done is kept. The work has to give one result for each item of its chunk.
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
                    format!("the work gave {} results for {now} items; it has to give as many", results.len());
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
