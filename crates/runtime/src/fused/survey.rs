//! Surveys: a pass over the whole source before any row is made, spread over threads.
//!
//! The program decides what a survey collects; afterwards the scratch memory of every band holds the combined result.
//! The result does not depend on the number of threads, and nothing is allocated once the scratch memory has grown.

use vramp_kernels::{KernelFrame, RowProgram, RowScratch};

use crate::fused::bands::band_count;
use crate::memory::heap::HeapTally;
#[cfg(not(target_arch = "wasm32"))]
use crate::memory::heap::counted;

/// Surveys a frame's source, if the program needs a survey, and leaves the result in the scratch memory of every band.
#[cfg_attr(target_arch = "wasm32", expect(unused_variables, reason = "the tally is only used with threads"))]
pub(crate) fn survey(
    program: &RowProgram,
    frame: &KernelFrame<'_>,
    scratch: &mut Vec<RowScratch>,
    (threads, tally): (usize, &HeapTally),
) {
    let Some(source) = frame.source.filter(|_| program.surveys()) else { return };
    let height = source.size.height;
    let parts = band_count(source.size, threads, scratch);
    // The output may have another size, and therefore more bands.
    band_count(frame.size, threads, scratch);
    if parts == 1 {
        program.survey(frame, 0..height, &mut scratch[0]);
    } else {
        #[cfg(not(target_arch = "wasm32"))]
        {
            use rayon::prelude::*;
            let rows = height.div_ceil(parts as u32);
            scratch[..parts].par_iter_mut().enumerate().for_each(|(at, scratch)| {
                let first = (at as u32 * rows).min(height);
                counted(tally, || program.survey(frame, first..(first + rows).min(height), scratch));
            });
        }
    }
    program.conclude(frame, scratch, parts);
}
