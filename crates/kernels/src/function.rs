//! Pixel functions: one pixel in, one pixel out, at the same position, as WGSL and as a CPU loop.
//!
//! A function is described as data: its WGSL, its row loop, its parameter words, and the spans of a row that it can
//! change. The composer loops over the rows of a frame and calls a function only for these spans.
//!
//! Invariants: the WGSL and its CPU twin take integers in 0..=255 and return the same results. Parameters are 32-bit
//! words, computed once per frame on the CPU.

use std::sync::Arc;

use vramp_plan::Size;

use crate::own::OwnFunction;
use crate::picture::{Picture, Pixel};
use crate::sample::{self, Chance, KernelSample, Samples};
use crate::simd::Level;

/// A pixel function for the GPU and for the CPU.
#[derive(Debug)]
pub struct PixelFn {
    /// The name of the WGSL function, and of its `.rs` and `.wgsl` files.
    pub name: &'static str,
    /// WGSL that defines `fn NAME(c: vec4<i32>, at: vec2<i32>, k: u32) -> vec4<i32>`. The function may call `word(k +
    /// i)` and `int(k + i)` for its parameters, `frame_size()`, `side(at)` for the word of its extra input at the same position, and `small(i)`
    /// for word i of its small data.
    pub wgsl: &'static str,
    /// Number of parameter words.
    pub words: usize,
    /// Whether the function reads an extra input: the pixel of another image at the same position.
    pub extra_input: bool,
    /// Whether the function reads small data, such as a table, glyphs or a logo.
    pub small: bool,
    /// Changes part of a row in place.
    pub row: fn(&RowArgs<'_>, &mut [Pixel]),
    /// Computes pixels from source pixels if that is faster than copying the source and changing the copy. The result
    /// must not depend on the position. Returns whether the pixels were computed.
    pub made: Option<TryMapFn>,
    /// The spans of row `y` that the function can change.
    pub spans: fn(&FnArgs<'_>, y: u32) -> Spans,
    /// Test samples; `None` for a function outside of [`pixel::ALL`](crate::pixel::ALL).
    pub samples: Option<Samples>,
}

impl PixelFn {
    /// Defaults for all fields but `name`, `wgsl` and `row`: a function without parameters, extra input and small data,
    /// which can change every pixel.
    pub const PLAIN: PixelFn = PixelFn {
        name: "",
        wgsl: "",
        words: 0,
        extra_input: false,
        small: false,
        row: |_, _| {},
        made: None,
        spans: everywhere,
        samples: None,
    };

    /// The function's samples for a frame of this size. Panics with the function's name if the function has no samples.
    #[doc(hidden)]
    pub fn drawn(&self, chance: &mut Chance, size: Size) -> Vec<KernelSample> {
        sample::drawn(self.name, self.samples, chance, size)
    }
}

/// Computes the last argument's pixels from `from` and returns true, or returns false without computing anything.
pub type TryMapFn = fn(&FnArgs<'_>, from: &[Pixel], &mut [Pixel]) -> bool;

/// A function in a recipe.
#[derive(Debug, Clone)]
pub enum Function {
    /// A function with a CPU twin.
    Both(&'static PixelFn),
    /// A user's function, which has no CPU twin.
    Own(Arc<OwnFunction>),
}

/// Placeholder for a user's function on the CPU. It never runs, because handlers offer users' functions on the GPU
/// only.
static NO_TWIN: PixelFn = PixelFn { name: OwnFunction::NAME, spans: |_, _| Spans::NONE, ..PixelFn::PLAIN };

impl From<&'static PixelFn> for Function {
    fn from(function: &'static PixelFn) -> Function {
        Function::Both(function)
    }
}

impl From<&&'static PixelFn> for Function {
    fn from(function: &&'static PixelFn) -> Function {
        Function::Both(function)
    }
}

impl From<&Arc<OwnFunction>> for Function {
    fn from(function: &Arc<OwnFunction>) -> Function {
        Function::Own(Arc::clone(function))
    }
}

impl Function {
    /// The CPU twin. For a user's function, the twin changes nothing.
    pub(crate) fn on_host(&self) -> &'static PixelFn {
        match self {
            Function::Both(function) => function,
            Function::Own(_) => &NO_TWIN,
        }
    }

    /// The name of the WGSL function.
    pub fn name(&self) -> &'static str {
        self.on_host().name
    }

    /// Number of parameter words.
    pub fn words(&self) -> usize {
        match self {
            Function::Both(function) => function.words,
            Function::Own(function) => function.words(),
        }
    }

    /// Whether the function reads another image at the same position.
    pub fn extra_input(&self) -> bool {
        self.on_host().extra_input
    }

    pub fn small(&self) -> bool {
        self.on_host().small
    }
}

/// The arguments of a function for one frame.
#[derive(Debug, Clone, Copy)]
pub struct FnArgs<'a> {
    /// The parameter words.
    pub words: &'a [u32],
    pub small: &'a [u32],
    /// The frame's size.
    pub size: Size,
    /// The vector instructions to use.
    pub level: Level,
}

impl FnArgs<'_> {
    /// Parameter `i` as a signed number.
    pub fn int(&self, i: usize) -> i32 {
        self.words[i].cast_signed()
    }
}

/// The arguments of a function for one span of a row.
#[derive(Debug, Clone, Copy)]
pub struct RowArgs<'a> {
    pub frame: FnArgs<'a>,
    pub y: u32,
    /// The column of the first pixel.
    pub x: u32,
    /// The extra input, if the function has one.
    pub extra_input: Option<Picture<'a>>,
}

/// The parts of one row that a function can change, from left to right, without overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spans {
    parts: [(u32, u32); Spans::MOST],
    count: usize,
}

impl Spans {
    /// Maximum number of parts. Further parts extend the last part.
    pub const MOST: usize = 4;
    pub const NONE: Spans = Spans { parts: [(0, 0); Spans::MOST], count: 0 };

    pub fn all(size: Size) -> Spans {
        Spans::NONE.and(0, i64::from(size.width), size)
    }

    /// Adds the part from `start` up to `end`, clipped to the row. Parts must be added from left to right.
    #[must_use]
    pub fn and(mut self, start: i64, end: i64, size: Size) -> Spans {
        let width = i64::from(size.width);
        let (start, end) = (start.clamp(0, width) as u32, end.clamp(0, width) as u32);
        if start >= end {
            return self;
        }
        match self.count.checked_sub(1).map(|last| &mut self.parts[last]) {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            Some(last) if self.count == Spans::MOST => last.1 = end,
            _ => {
                self.parts[self.count] = (start, end);
                self.count += 1;
            }
        }
        self
    }

    pub fn iter(&self) -> impl Iterator<Item = std::ops::Range<usize>> {
        self.parts[..self.count].iter().map(|(start, end)| *start as usize..*end as usize)
    }
}

/// [`PixelFn::spans`] of functions that can change every pixel.
pub fn everywhere(args: &FnArgs<'_>, _: u32) -> Spans {
    Spans::all(args.size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_clipped_joined_and_never_too_many() {
        let size = Size { width: 100, height: 1 };
        let parts = |spans: Spans| spans.iter().collect::<Vec<_>>();
        assert_eq!(parts(Spans::NONE.and(-5, 3, size).and(2, 7, size).and(95, 200, size)), [0..7, 95..100]);
        assert_eq!(parts(Spans::NONE.and(5, 5, size).and(9, 3, size)), []);
        let many = (0..10).fold(Spans::NONE, |spans, i| spans.and(i * 10, i * 10 + 2, size));
        assert_eq!(parts(many), [0..2, 10..12, 20..22, 30..92]);
    }
}
