//! Heads: where the pixels of a fused kernel come from.
//!
//! Owns the description of a head as data: its WGSL, its row loop, what it reads. A head makes pixels from nothing
//! (generator), or reads a source picture in place (load), elsewhere (gather) or around a place (stencil).
//! Does not apply pixel functions: those before a gather or stencil reach it through the rows it asks for, those
//! behind it are applied to what it wrote.
//!
//! Always: rows of one band are asked for from top to bottom, so that a stencil can keep what it has computed.

pub mod ball;
pub mod bars;
pub mod bilinear;
pub mod blur;
pub mod checker;
pub mod disc;
pub mod flip;
pub mod gradient;
pub mod load_here;
pub mod nearest;
pub mod noise;
pub mod solid;

use vramp_plan::Size;

use crate::function::{FnArgs, PixelFn, RowArgs};
use crate::picture::{Picture, Pixel};

/// The beginning of a kernel, on both sides.
#[derive(Debug)]
pub struct Head {
    /// Its name: that of its WGSL function and of both files.
    pub name: &'static str,
    /// WGSL that defines `fn NAME(at: vec2<i32>, k: u32) -> vec4<i32>`, where `load(at)` is a source pixel,
    /// `source_size()` the source's size, and parameters are read as in a pixel function. A head of two passes also
    /// defines `fn NAME_first(at: vec2<i32>, k: u32) -> vec4<u32>` over the source, whose 16-bit results it reads back
    /// with `kept(at)`.
    pub wgsl: &'static str,
    /// Parameter words it takes.
    pub words: usize,
    /// Whether it reads a source picture.
    pub source: bool,
    /// Whether it reads small data of its own.
    pub small: bool,
    /// Passes: 2 for separable stencils, which keep 16-bit sums in between.
    pub passes: u32,
    /// Writes one row.
    pub row: fn(&HeadArgs<'_>, &mut SourceRows<'_>, &mut Kept, y: u32, &mut [Pixel]),
}

/// What a head was given for this frame.
#[derive(Debug, Clone, Copy)]
pub struct HeadArgs<'a> {
    /// Parameters, small data and the size of what it makes.
    pub frame: FnArgs<'a>,
    /// The size of its source, or of what it makes where it has none.
    pub source: Size,
}

/// The source's rows, with the pixel functions in front of the head applied.
#[derive(Debug)]
pub struct SourceRows<'a> {
    picture: Option<Picture<'a>>,
    before: Vec<Applied<'a>>,
    /// Rows that functions were applied to, each with its number; the oldest is replaced first.
    done: Vec<(u32, Vec<Pixel>)>,
    next: usize,
}

/// A pixel function with what it was given for this frame.
#[derive(Debug, Clone, Copy)]
pub struct Applied<'a> {
    /// The function.
    pub function: &'static PixelFn,
    /// Its parameters, small data and the size of the frame.
    pub args: FnArgs<'a>,
    /// Its other picture.
    pub side: Option<Picture<'a>>,
}

impl Applied<'_> {
    /// Applies it to a whole row, where it has an effect.
    pub fn apply(&self, y: u32, row: &mut [Pixel]) {
        for part in (self.function.spans)(&self.args, y).iter() {
            let args = RowArgs { frame: self.args, y, x: part.start as u32, side: self.side };
            (self.function.row)(&args, &mut row[part]);
        }
    }
}

/// Rows that are kept at once where functions stand in front: enough for a bilinear pair and its neighbours.
const ROWS_KEPT: usize = 4;

impl<'a> SourceRows<'a> {
    /// The rows of a picture, with functions in front.
    pub fn new(picture: Option<Picture<'a>>, before: Vec<Applied<'a>>) -> SourceRows<'a> {
        SourceRows { picture, before, done: Vec::new(), next: 0 }
    }

    /// One row; the number is clamped to the picture, which repeats the border.
    pub fn row(&mut self, y: i64) -> &[Pixel] {
        let Some(picture) = self.picture else { return &[] };
        let y = y.clamp(0, i64::from(picture.size.height) - 1) as u32;
        if self.before.is_empty() {
            return picture.row(y);
        }
        if let Some(at) = self.done.iter().position(|(row, _)| *row == y) {
            return &self.done[at].1;
        }
        if self.done.len() < ROWS_KEPT {
            self.done.push((y, vec![[0; 4]; picture.size.width as usize]));
            self.next = self.done.len() - 1;
        } else {
            self.next = (self.next + 1) % ROWS_KEPT;
        }
        let (number, pixels) = &mut self.done[self.next];
        *number = y;
        pixels.copy_from_slice(picture.row(y));
        for applied in &self.before {
            applied.apply(y, pixels);
        }
        pixels
    }
}

/// What a head keeps from row to row within a band; each head says how it uses it.
#[derive(Debug, Default)]
pub struct Kept {
    /// The first row that is kept, and the first that is not. A band begins with 0 and 0, which is all it resets: the
    /// memory below may be that of a band before.
    pub rows: (i64, i64),
    /// The sums, a ring of rows.
    pub sums: Vec<u16>,
    /// Sums that need more than 16 bits.
    pub wide: Vec<u32>,
}

/// Every head.
pub static ALL: &[&Head] = &[
    &ball::BALL,
    &bars::BARS,
    &bilinear::BILINEAR,
    &blur::BLUR,
    &checker::CHECKER,
    &disc::DISC,
    &flip::FLIP,
    &gradient::GRADIENT,
    &load_here::LOAD,
    &nearest::NEAREST,
    &noise::NOISE,
    &solid::SOLID,
];
