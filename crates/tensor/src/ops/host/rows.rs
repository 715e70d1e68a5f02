//! Where an op's values come from.
//!
//! Owns the way of asking: so many values from here on.
//! Does not keep them: they are those of a slice, or they are computed into room that the asking one lends.
//!
//! Always: the same question gets the same values, however often and from whichever thread.

/// The most values that are asked for at once: 8 KiB, so that values, room and results stay in the first cache (32 KiB).
pub(crate) const PART: usize = 2048;

/// Room for as many. It begins at a line of the cache: where it lies across two, sums of rows of halves take half as long again.
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
    /// `len` values (at most [`PART`]) from `start` on. `scratch` has room for as many, and need not be used.
    ///
    /// Implementations are `#[inline(always)]` or large enough not to mind: they are called from vectorised loops.
    fn part<'a>(&'a self, start: usize, len: usize, scratch: &'a mut [f32]) -> &'a [f32];
}

impl RowValues for &[f32] {
    #[inline(always)]
    fn part<'a>(&'a self, start: usize, len: usize, _scratch: &'a mut [f32]) -> &'a [f32] {
        &self[start..start + len]
    }
}

/// Values that are computed as they are asked for, as fused programs do it.
#[cfg(test)]
pub(crate) struct Computed<'v, F: Fn(f32) -> f32 + Sync>(pub &'v [f32], pub F);

#[cfg(test)]
impl<F: Fn(f32) -> f32 + Sync> RowValues for Computed<'_, F> {
    fn part<'a>(&'a self, start: usize, len: usize, scratch: &'a mut [f32]) -> &'a [f32] {
        assert!(len <= PART && len <= scratch.len(), "no more than a part is asked for");
        for (to, from) in scratch.iter_mut().zip(&self.0[start..start + len]) {
            *to = (self.1)(*from);
        }
        &scratch[..len]
    }
}
