//! Chains: functions in a row, with where each finds what it was given.
//!
//! Owns how functions are applied to a row, one after the other.
//! Does not keep what they are given: it is looked up in the frame for each row, so that no list is made for a frame.
//!
//! Always: a function is visited only where it has an effect.

use vramp_plan::Size;

use crate::function::{FnArgs, PixelFn, RowArgs};
use crate::picture::Pixel;
use crate::simd::Level;

use super::{KernelFrame, ParamPart};

/// A function and the places of its parameters and of its other picture.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChainStep {
    pub(super) function: &'static PixelFn,
    pub(super) part: ParamPart,
    /// The number of its other picture among the frame's, where it reads one.
    pub(super) side: Option<usize>,
}

/// Functions in a row, and the frame that they are applied in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chain<'a> {
    pub(super) steps: &'a [ChainStep],
    pub(super) frame: &'a KernelFrame<'a>,
    /// The size of what they are applied to.
    pub(super) size: Size,
    pub(super) level: Level,
}

impl Chain<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Applies all of them to a whole row.
    pub(crate) fn apply(&self, y: u32, row: &mut [Pixel]) {
        self.apply_from(y, 0, row);
    }

    /// Applies all of them to a part of a row, from column `x` on.
    pub(crate) fn apply_from(&self, y: u32, x: u32, row: &mut [Pixel]) {
        self.apply_steps(self.steps, y, x, row);
    }

    /// Makes a whole row from another one.
    pub(crate) fn make(&self, y: u32, from: &[Pixel], row: &mut [Pixel]) {
        match self.steps.split_first() {
            Some((first, others)) if self.made(first, from, row) => self.apply_steps(others, y, 0, row),
            _ => {
                row.copy_from_slice(from);
                self.apply(y, row);
            }
        }
    }

    /// Makes many rows from others at once, where there is one function and it can; says whether it has.
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
            let side = step.side.and_then(|at| self.frame.sides.get(at).copied());
            for part in (step.function.spans)(&frame, y).iter() {
                let (start, stop) = (part.start.max(first), part.end.min(end));
                if start < stop {
                    let pixels = &mut row[start - first..stop - first];
                    (step.function.row)(&RowArgs { frame, y, x: start as u32, side }, pixels);
                }
            }
        }
    }
}

/// What a part was given for a frame.
pub(super) fn args<'a>(frame: &KernelFrame<'a>, part: ParamPart, size: Size, level: Level) -> FnArgs<'a> {
    let small = part.small.map_or(&[][..], |at| frame.small.get(frame.words[at] as usize..).unwrap_or(&[]));
    FnArgs { words: &frame.words[part.start..part.start + part.words], small, size, level }
}
