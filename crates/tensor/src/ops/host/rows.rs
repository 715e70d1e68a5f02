//! Sources of the values that an op reads: a slice, or values computed into scratch memory of the caller.
//!
//! Invariant: the same request returns the same values, on every call and every thread.

/// Maximum number of values per request: 8 KiB, so that values, scratch and results stay in the L1 cache (32 KiB).
pub(crate) const PART: usize = 2048;

/// Scratch memory for one part, aligned to a cache line. Without the alignment, sums of rows of f16 take 1.5 times as
/// long.
#[repr(align(64))]
pub(crate) struct ReadScratch([f32; PART]);

impl ReadScratch {
    #[inline(always)]
    pub(crate) fn new() -> ReadScratch {
        ReadScratch([0.0; PART])
    }
}

impl std::ops::Deref for ReadScratch {
    type Target = [f32];

    #[inline(always)]
    fn deref(&self) -> &[f32] {
        &self.0
    }
}

impl std::ops::DerefMut for ReadScratch {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.0
    }
}

/// Values in memory order.
pub(crate) trait RowValues: Sync {
    /// `len` values (at most [`PART`]) from `start` on. `scratch` has room for `len` values, and need not be used.
    ///
    /// Vectorised loops call this method, so implementations are `#[inline(always)]`, or take so long that a call does
    /// not matter.
    fn part<'a>(&'a self, start: usize, len: usize, scratch: &'a mut [f32]) -> &'a [f32];
}

impl RowValues for &[f32] {
    #[inline(always)]
    fn part<'a>(&'a self, start: usize, len: usize, _scratch: &'a mut [f32]) -> &'a [f32] {
        &self[start..start + len]
    }
}

/// Values that are computed on request, like the values of fused programs.
#[cfg(test)]
pub(crate) struct Computed<'v, F: Fn(f32) -> f32 + Sync>(pub &'v [f32], pub F);

#[cfg(test)]
impl<F: Fn(f32) -> f32 + Sync> RowValues for Computed<'_, F> {
    fn part<'a>(&'a self, start: usize, len: usize, scratch: &'a mut [f32]) -> &'a [f32] {
        assert!(len <= PART && len <= scratch.len(), "at most one part is requested");
        for (to, from) in scratch.iter_mut().zip(&self.0[start..start + len]) {
            *to = (self.1)(*from);
        }
        &scratch[..len]
    }
}
