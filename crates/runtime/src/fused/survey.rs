//! Surveys: a whole source gone over before any row is made.
//!
//! Owns how its rows are spread over threads, and that every band then knows what all of them have found.
//! Does not know what is looked for: the program does.
//!
//! Always: the result does not depend on how many threads there are; nothing is allocated once the scratch has grown.

use vramp_kernels::{KernelFrame, RowProgram, RowScratch};

use crate::fused::bands::band_count;
use crate::memory::heap::HeapTally;
#[cfg(not(target_arch = "wasm32"))]
use crate::memory::heap::counted;

/// Goes over a frame's source, where a program asks for it, and leaves in every scratch what was found.
#[cfg_attr(target_arch = "wasm32", expect(unused_variables, reason = "allocations are counted by threads"))]
pub(crate) fn survey(
    program: &RowProgram,
    frame: &KernelFrame<'_>,
    scratch: &mut Vec<RowScratch>,
    (threads, tally): (usize, &HeapTally),
) {
    let Some(source) = frame.source.filter(|_| program.surveys()) else { return };
    let height = source.size.height;
    let parts = band_count(source.size, threads, scratch);
    // What is made may be of another size, and have more bands.
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
