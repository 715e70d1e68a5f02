//! Chains: pixel functions applied to a row, one after another.
//!
//! Arguments are looked up in the frame for each row instead of being collected in a list, so that computing a frame
//! allocates nothing. A function runs only on the spans that it can change.

use vramp_plan::Size;

use crate::function::{FnArgs, PixelFn, RowArgs};
use crate::picture::Pixel;
use crate::simd::Level;

use super::{KernelFrame, ParamPart};

/// A function with the location of its parameters and of its extra input.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChainStep {
    pub(super) function: &'static PixelFn,
    pub(super) part: ParamPart,
    /// Index of the function's extra input in [`KernelFrame::extra_inputs`]. `None` if the function has no extra input.
    pub(super) extra_input: Option<usize>,
}

/// A sequence of functions, with the frame that supplies their arguments.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chain<'a> {
    pub(super) steps: &'a [ChainStep],
    pub(super) frame: &'a KernelFrame<'a>,
    /// The size of the image to which the functions are applied.
    pub(super) size: Size,
    pub(super) level: Level,
}

impl Chain<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Applies all functions to a whole row.
    pub(crate) fn apply(&self, y: u32, row: &mut [Pixel]) {
        self.apply_from(y, 0, row);
    }

    /// Applies all functions to a part of a row, from column `x` on.
    pub(crate) fn apply_from(&self, y: u32, x: u32, row: &mut [Pixel]) {
        self.apply_steps(self.steps, y, x, row);
    }

    /// Computes a whole row from a source row.
    pub(crate) fn make(&self, y: u32, from: &[Pixel], row: &mut [Pixel]) {
        match self.steps.split_first() {
            Some((first, others)) if self.made(first, from, row) => self.apply_steps(others, y, 0, row),
            _ => {
                row.copy_from_slice(from);
                self.apply(y, row);
            }
        }
    }

    /// Computes many rows at once if the chain is a single function that can do so. Returns whether the rows were
    /// computed.
    pub(crate) fn make_all(&self, from: &[Pixel], rows: &mut [Pixel]) -> bool {
        matches!(self.steps, [only] if self.made(only, from, rows))
    }

    fn made(&self, step: &ChainStep, from: &[Pixel], to: &mut [Pixel]) -> bool {
        step.function.made.is_some_and(|made| made(&args(self.frame, step.part, self.size, self.level), from, to))
    }

    fn apply_steps(&self, steps: &[ChainStep], y: u32, x: u32, row: &mut [Pixel]) {
        let (first, end) = (x as usize, x as usize + row.len());
        for step in steps {
            let frame = args(self.frame, step.part, self.size, self.level);
            let extra_input = step.extra_input.and_then(|at| self.frame.extra_inputs.get(at).copied());
            for part in (step.function.spans)(&frame, y).iter() {
                let (start, stop) = (part.start.max(first), part.end.min(end));
                if start < stop {
                    let pixels = &mut row[start - first..stop - first];
                    (step.function.row)(&RowArgs { frame, y, x: start as u32, extra_input }, pixels);
                }
            }
        }
    }
}

/// The arguments of one part for a frame.
pub(super) fn args<'a>(frame: &KernelFrame<'a>, part: ParamPart, size: Size, level: Level) -> FnArgs<'a> {
    let small = part.small.map_or(&[][..], |at| frame.small.get(frame.words[at] as usize..).unwrap_or(&[]));
    FnArgs { words: &frame.words[part.start..part.start + part.words], small, size, level }
}
