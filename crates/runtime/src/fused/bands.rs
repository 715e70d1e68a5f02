//! Bands: groups of neighbouring rows of a frame, which are spread over threads. Each band has its own scratch memory.
//!
//! If a frame has several bands, each band has at least about 32,768 pixels, because waking a thread for fewer pixels
//! takes longer than computing those pixels. Bands are whole rows and cover the frame. Nothing is allocated once every
//! band has its scratch memory.

use vramp_kernels::stored::PlaneRows;
use vramp_kernels::{Pixel, RowScratch};
use vramp_plan::{LEAST_BAND_PIXELS, Size};

use crate::memory::heap::{HeapTally, counted};

/// Calls `work` for each band, on the threads of the current pool; if there is only one band, on this thread.
pub(crate) fn bands(
    size: Size,
    pixels: &mut [Pixel],
    scratch: &mut Vec<RowScratch>,
    (threads, tally): (usize, &HeapTally),
    work: impl Fn(u32, &mut [Pixel], &mut RowScratch) + Sync,
) {
    let count = band_count(size, threads, scratch);
    if count == 1 {
        work(0, pixels, &mut scratch[0]);
        return;
    }
    #[cfg(not(target_arch = "wasm32"))]
    {
        use rayon::prelude::*;
        let rows = (size.height as usize).div_ceil(count);
        let bands = pixels.par_chunks_mut(rows * size.width as usize).zip(scratch).enumerate();
        bands.for_each(|(at, (band, scratch))| counted(tally, || work((at * rows) as u32, band, scratch)));
    }
}

/// The number of bands for a frame. Ensures that each band has scratch memory.
pub(crate) fn band_count(size: Size, threads: usize, scratch: &mut Vec<RowScratch>) -> usize {
    let most = (size.pixels() / LEAST_BAND_PIXELS) as usize;
    let count = if can_spread() { threads.min(most).clamp(1, size.height as usize) } else { 1 };
    if scratch.len() < count {
        scratch.resize_with(count, RowScratch::default);
    }
    count
}

/// [`bands`] for planar formats: bands have an even number of rows, because two rows may share chroma.
pub(crate) fn plane_bands(
    size: Size,
    rows: PlaneRows<'_>,
    scratch: &mut Vec<RowScratch>,
    (threads, tally): (usize, &HeapTally),
    work: impl Fn(u32, &mut PlaneRows<'_>, &mut RowScratch) + Sync,
) {
    let pairs = Size { height: size.height.div_ceil(2), width: 2 * size.width };
    let count = band_count(pairs, threads, scratch);
    divide(0, rows, &mut scratch[..count], tally, &work);
}

/// Halves the rows repeatedly until each element of `scratch` has one share of the rows. In this way three planes can
/// be split at once without allocating a list.
fn divide(
    first: usize,
    mut rows: PlaneRows<'_>,
    scratch: &mut [RowScratch],
    tally: &HeapTally,
    work: &(impl Fn(u32, &mut PlaneRows<'_>, &mut RowScratch) + Sync),
) {
    if let [scratch] = scratch {
        return counted(tally, || work(first as u32, &mut rows, scratch));
    }
    #[cfg(not(target_arch = "wasm32"))]
    {
        let (one, other) = scratch.split_at_mut(scratch.len() / 2);
        let share = rows.rows() * one.len() / (one.len() + other.len());
        let share = share.next_multiple_of(2).min(rows.rows());
        let (upper, lower) = rows.split(share);
        rayon::join(|| divide(first, upper, one, tally, work), || divide(first + share, lower, other, tally, work));
    }
}

/// Whether the current thread belongs to a thread pool. From any other thread, spreading work would allocate.
fn can_spread() -> bool {
    #[cfg(target_arch = "wasm32")]
    return false;
    #[cfg(not(target_arch = "wasm32"))]
    rayon::current_thread_index().is_some()
}
