//! Pixel functions: one pixel in, one out, at the same place, on both sides.
//!
//! Owns the description of a function as data: its WGSL, its row loop, how many parameter words it takes, which part of
//! a row it can change.
//! Does not loop over frames: the composer does, and visits a function only where it has an effect.
//!
//! Always: both sides see whole numbers 0..=255 and give the same ones; parameters are 32-bit words that were computed
//! once per frame on the host.

use std::sync::Arc;

use vramp_plan::Size;

use crate::own::OwnFunction;
use crate::picture::{Picture, Pixel};
use crate::sample::{self, Chance, KernelSample, Samples};
use crate::simd::Level;

/// A pixel function on both sides.
#[derive(Debug)]
pub struct PixelFn {
    /// Its name: that of its WGSL function and of both files.
    pub name: &'static str,
    /// WGSL that defines `fn NAME(c: vec4<i32>, at: vec2<i32>, k: u32) -> vec4<i32>`, where `word(k + i)` and
    /// `int(k + i)` are its parameters, `frame_size()` is the frame's, `side(i)` word i of its other picture and
    /// `small(i)` word i of its small data.
    pub wgsl: &'static str,
    /// Parameter words it takes.
    pub words: usize,
    /// Whether it reads another picture at the same place.
    pub side: bool,
    /// Whether it reads small data of its own: a table, glyphs, a logo.
    pub small: bool,
    /// Changes part of a row.
    pub row: fn(&RowArgs<'_>, &mut [Pixel]),
    /// Makes pixels from others, wherever they are, where that is quicker than changing a copy; says whether it has.
    pub made: Option<TryMapFn>,
    /// Which parts of a row it can change.
    pub spans: fn(&FnArgs<'_>, y: u32) -> Spans,
    /// What the built-in functions are tested with; `None` for a function outside of [`pixel::ALL`](crate::pixel::ALL).
    pub samples: Option<Samples>,
}

impl PixelFn {
    /// The usual values of all fields but `name`, `wgsl` and `row`: no parameters, no other picture, no small data, and
    /// it can change every pixel.
    pub const PLAIN: PixelFn = PixelFn {
        name: "",
        wgsl: "",
        words: 0,
        side: false,
        small: false,
        row: |_, _| {},
        made: None,
        spans: everywhere,
        samples: None,
    };

    /// Its samples for a frame of this size. Panics with its name if it has none.
    #[doc(hidden)]
    pub fn drawn(&self, chance: &mut Chance, size: Size) -> Vec<KernelSample> {
        sample::drawn(self.name, self.samples, chance, size)
    }
}

/// Makes pixels from others, or says that it has not.
pub type TryMapFn = fn(&FnArgs<'_>, from: &[Pixel], &mut [Pixel]) -> bool;

/// A function in a recipe: one with both sides, or a user's own, which has the device's only.
#[derive(Debug, Clone)]
pub enum Function {
    /// On both sides.
    Both(&'static PixelFn),
    /// On the device only.
    Own(Arc<OwnFunction>),
}

/// Stands for a user's function on the host, where nobody runs it: its entry offers the device only.
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
    /// Its side on the host; for a user's own, one that changes nothing.
    pub(crate) fn on_host(&self) -> &'static PixelFn {
        match self {
            Function::Both(function) => function,
            Function::Own(_) => &NO_TWIN,
        }
    }

    /// The name of its WGSL function.
    pub fn name(&self) -> &'static str {
        self.on_host().name
    }

    /// Parameter words it takes.
    pub fn words(&self) -> usize {
        match self {
            Function::Both(function) => function.words,
            Function::Own(function) => function.words(),
        }
    }

    /// Whether it reads another picture at the same place.
    pub fn side(&self) -> bool {
        self.on_host().side
    }

    /// Whether it reads small data of its own.
    pub fn small(&self) -> bool {
        self.on_host().small
    }
}

/// What a function was given for this frame.
#[derive(Debug, Clone, Copy)]
pub struct FnArgs<'a> {
    /// Its parameters.
    pub words: &'a [u32],
    /// Its small data.
    pub small: &'a [u32],
    /// The frame's size.
    pub size: Size,
    /// The instructions to use.
    pub level: Level,
}

impl FnArgs<'_> {
    /// Parameter `i` as a signed number.
    pub fn int(&self, i: usize) -> i32 {
        self.words[i].cast_signed()
    }
}

/// What a function was given for this part of a row.
#[derive(Debug, Clone, Copy)]
pub struct RowArgs<'a> {
    /// What holds for the whole frame.
    pub frame: FnArgs<'a>,
    /// The row.
    pub y: u32,
    /// The column of the first pixel.
    pub x: u32,
    /// The other picture, where the function reads one.
    pub side: Option<Picture<'a>>,
}

/// The parts of one row that a function can change, left to right, without overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spans {
    parts: [(u32, u32); Spans::MOST],
    count: usize,
}

impl Spans {
    /// More parts than this are joined with the last.
    pub const MOST: usize = 4;
    /// Nothing in this row.
    pub const NONE: Spans = Spans { parts: [(0, 0); Spans::MOST], count: 0 };

    /// The whole row.
    pub fn all(size: Size) -> Spans {
        Spans::NONE.and(0, i64::from(size.width), size)
    }

    /// Also this part, from `start` up to `end`, clipped to the row. Parts are given from left to right.
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

    /// The parts.
    pub fn iter(&self) -> impl Iterator<Item = std::ops::Range<usize>> {
        self.parts[..self.count].iter().map(|(start, end)| *start as usize..*end as usize)
    }
}

/// The whole row, for functions that change every pixel.
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
