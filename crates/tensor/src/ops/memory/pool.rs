//! The pool of host memory lends blocks of bytes, and takes them back for the next tensor of the same size.
//!
//! Invariants: a block returns to the pool when its last holder drops it. Free and lent bytes stay within the
//! [`HostPoolRules`]; the block that has been free longest is released first. Only [`BlockPool::lend_zeroed`] clears a
//! block; a block from [`BlockPool::lend`] has the bytes of its last holder.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytemuck::{Pod, Zeroable};

use crate::ops::error::TensorError;

/// Limits of the host memory of tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostPoolRules {
    /// Maximum of lent and free bytes together.
    pub budget_bytes: u64,
    /// Maximum of free bytes kept for the next tensor.
    pub keep_bytes: u64,
    /// Maximum of free blocks of one size.
    pub keep_each: usize,
}

impl Default for HostPoolRules {
    fn default() -> Self {
        Self { budget_bytes: u64::MAX, keep_bytes: 256 << 20, keep_each: 10 }
    }
}

/// Counters of a host pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HostPoolStatistics {
    pub lent_bytes: u64,
    /// Free bytes.
    pub pooled_bytes: u64,
    /// Free blocks.
    pub pooled_blocks: usize,
    /// Requests served from a free block.
    pub hits: u64,
    /// Requests that allocated a new block.
    pub misses: u64,
    /// Free blocks that were released.
    pub given_up: u64,
}

/// The unit of blocks, which aligns them to cache lines.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct CacheLine([u8; LINE_BYTES]);

const LINE_BYTES: usize = 64;

/// Bytes on the host, aligned to a cache line and rounded up to whole cache lines.
pub(crate) struct Block {
    lines: Vec<CacheLine>,
    bytes: usize,
    home: Weak<PoolInner>,
}

impl std::fmt::Debug for Block {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Block({} bytes)", self.bytes)
    }
}

impl Block {
    /// The bytes that were requested.
    pub(crate) fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.lines)[..self.bytes]
    }

    /// The bytes, padded with zeros to a whole word, because devices copy words.
    pub(crate) fn words(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.lines)[..self.bytes.next_multiple_of(4)]
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.lines)[..self.bytes]
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if let Some(home) = self.home.upgrade() {
            home.take_back(std::mem::take(&mut self.lines));
        }
    }
}

/// A pool of blocks. Clones are the same pool.
#[derive(Clone)]
pub(crate) struct BlockPool(Arc<PoolInner>);

struct PoolInner {
    rules: HostPoolRules,
    state: Mutex<HostPoolState>,
}

#[derive(Default)]
struct HostPoolState {
    /// In the order in which the blocks returned.
    free: Vec<Vec<CacheLine>>,
    statistics: HostPoolStatistics,
}

impl BlockPool {
    pub(crate) fn new(rules: HostPoolRules) -> BlockPool {
        BlockPool(Arc::new(PoolInner { rules, state: Mutex::default() }))
    }

    /// A block with the bytes of its last holder.
    pub(crate) fn lend(&self, op: &'static str, bytes: usize) -> Result<Block, TensorError> {
        let lines = bytes.div_ceil(LINE_BYTES);
        let size = (lines * LINE_BYTES) as u64;
        let home = Arc::downgrade(&self.0);
        let given_up = {
            let mut state = self.0.lock();
            if let Some(at) = state.free.iter().rposition(|free| free.len() == lines) {
                let mut lines = state.free.remove(at);
                if let Some(last) = lines.last_mut() {
                    last.0[bytes - (bytes - 1) / LINE_BYTES * LINE_BYTES..].fill(0);
                }
                state.statistics.hits += 1;
                state.statistics.pooled_bytes -= size;
                state.statistics.lent_bytes += size;
                return Ok(Block { lines, bytes, home });
            }
            let lent_bytes = state.statistics.lent_bytes;
            let available_bytes = self.0.rules.budget_bytes.saturating_sub(lent_bytes);
            if size > available_bytes {
                return Err(TensorError::OutOfMemory { op, required_bytes: size, available_bytes, place: "host" });
            }
            state.statistics.misses += 1;
            state.statistics.lent_bytes += size;
            state.keep_at_most(self.0.rules.budget_bytes - lent_bytes - size)
        };
        drop(given_up);
        // Allocated without holding the lock, because the allocation may be slow or fail.
        let mut made = Vec::new();
        if made.try_reserve_exact(lines).is_err() {
            self.0.lock().statistics.lent_bytes -= size;
            return Err(TensorError::OutOfMemory { op, required_bytes: size, available_bytes: 0, place: "host" });
        }
        made.resize(lines, CacheLine::zeroed());
        Ok(Block { lines: made, bytes, home })
    }

    pub(crate) fn lend_zeroed(&self, op: &'static str, bytes: usize) -> Result<Block, TensorError> {
        let mut block = self.lend(op, bytes)?;
        block.bytes_mut().fill(0);
        Ok(block)
    }

    /// Bytes that can still be lent; `None` without a budget.
    pub(crate) fn available_bytes(&self) -> Option<u64> {
        let budget_bytes = self.0.rules.budget_bytes;
        (budget_bytes < u64::MAX).then(|| budget_bytes - self.0.lock().statistics.lent_bytes.min(budget_bytes))
    }

    /// Releases all free blocks.
    pub(crate) fn trim(&self) {
        let given_up = self.0.lock().keep_at_most(0);
        drop(given_up);
    }

    pub(crate) fn statistics(&self) -> HostPoolStatistics {
        let state = self.0.lock();
        HostPoolStatistics { pooled_blocks: state.free.len(), ..state.statistics }
    }
}

impl PoolInner {
    fn lock(&self) -> MutexGuard<'_, HostPoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_back(&self, lines: Vec<CacheLine>) {
        let size = (lines.len() * LINE_BYTES) as u64;
        let HostPoolRules { keep_bytes, keep_each, budget_bytes } = self.rules;
        let mut state = self.lock();
        state.statistics.lent_bytes -= size;
        let alike = state.free.iter().filter(|free| free.len() == lines.len()).count();
        if size == 0 || size > keep_bytes || alike >= keep_each {
            state.statistics.given_up += 1;
            drop(state);
            return;
        }
        state.free.push(lines);
        state.statistics.pooled_bytes += size;
        let room = budget_bytes - state.statistics.lent_bytes.min(budget_bytes);
        let given_up = state.keep_at_most(keep_bytes.min(room));
        drop(state);
        // Dropped without holding the lock, because releasing memory to the system is slow.
        drop(given_up);
    }
}

impl HostPoolState {
    /// Removes the blocks that have been free longest, until at most `bytes` bytes are free.
    fn keep_at_most(&mut self, bytes: u64) -> Vec<Vec<CacheLine>> {
        let mut count = 0;
        let mut pooled = self.statistics.pooled_bytes;
        while pooled > bytes {
            pooled -= (self.free[count].len() * LINE_BYTES) as u64;
            count += 1;
        }
        self.statistics.pooled_bytes = pooled;
        self.statistics.given_up += count as u64;
        self.free.drain(..count).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(budget_bytes: u64, keep_bytes: u64, keep_each: usize) -> BlockPool {
        BlockPool::new(HostPoolRules { budget_bytes, keep_bytes, keep_each })
    }

    #[test]
    fn a_block_of_the_same_size_is_lent_again_and_zeros_are_zeros() {
        let pool = pool(u64::MAX, 1 << 20, 10);
        let mut block = pool.lend("test", 100).unwrap();
        block.bytes_mut().fill(7);
        let at = block.bytes().as_ptr();
        assert_eq!(at.align_offset(64), 0);
        drop(block);
        assert_eq!(pool.statistics().pooled_bytes, 128);
        let again = pool.lend_zeroed("test", 128).unwrap();
        assert_eq!(again.bytes().as_ptr(), at, "sizes are whole lines");
        assert!(again.bytes().iter().all(|byte| *byte == 0));
        drop(again);
        let mut short = pool.lend("test", 126).unwrap();
        short.bytes_mut().fill(9);
        assert_eq!(short.words()[124..], [9, 9, 0, 0], "the last word is filled up");
        drop(short);
        assert_eq!((pool.statistics().hits, pool.statistics().misses), (2, 1));
        assert!(pool.lend("test", 4096).is_ok(), "another size is another block");
    }

    #[test]
    fn what_lies_free_is_bounded_by_size_and_in_all() {
        let pool = pool(u64::MAX, 64 * 10, 3);
        let blocks: Vec<_> = (0..5).map(|_| pool.lend("test", 64).unwrap()).collect();
        drop(blocks);
        assert_eq!(pool.statistics().pooled_blocks, 3, "of one size");
        let blocks: Vec<_> = (1..5).map(|lines| pool.lend("test", 128 * lines).unwrap()).collect();
        drop(blocks);
        let statistics = pool.statistics();
        assert!(statistics.pooled_bytes <= 64 * 10, "{statistics:?}");
        assert_eq!(statistics.lent_bytes, 0);
        pool.trim();
        assert_eq!(pool.statistics().pooled_bytes, 0);
    }

    #[test]
    fn beyond_the_budget_there_is_an_error_with_the_numbers_and_later_there_is_room_again() {
        let pool = pool(1024, 1024, 10);
        let held = pool.lend("sum", 700).unwrap();
        let error = pool.lend("sum", 512).unwrap_err();
        let (required_bytes, available_bytes) = (512, 1024 - 704);
        assert_eq!(error, TensorError::OutOfMemory { op: "sum", required_bytes, available_bytes, place: "host" });
        drop(held);
        let most = pool.lend("sum", 1024).unwrap();
        assert_eq!(pool.statistics().pooled_bytes, 0, "free blocks made room");
        drop(most);
        assert!(pool.lend("sum", usize::MAX / 2).is_err());
    }

    #[test]
    fn a_block_that_outlives_its_pool_is_simply_freed() {
        let pool = pool(u64::MAX, 1 << 20, 10);
        let block = pool.lend("test", 64).unwrap();
        drop(pool);
        assert_eq!(block.bytes().len(), 64);
    }
}
