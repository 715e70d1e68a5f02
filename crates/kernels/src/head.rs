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
pub mod boxblur;
pub mod checker;
pub mod disc;
pub mod flip;
pub mod gradient;
mod lines;
pub mod load_here;
pub mod median3;
pub mod median5;
pub mod nearest;
pub mod noise;
pub mod solid;

use vramp_plan::Size;

use crate::compose::Chain;
use crate::function::FnArgs;
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
    before: Chain<'a>,
    changed: &'a mut ChangedRows,
}

/// Rows that functions were applied to, each with its number; the oldest is replaced first.
#[derive(Debug, Default)]
pub(crate) struct ChangedRows {
    numbers: [Option<u32>; ROWS_KEPT],
    next: usize,
    /// One after the other.
    pixels: Vec<Pixel>,
}

/// Rows that are kept at once where functions stand in front: enough for a bilinear pair and its neighbours.
const ROWS_KEPT: usize = 4;

impl<'a> SourceRows<'a> {
    /// The rows of a picture, with functions in front.
    pub(crate) fn begin(
        picture: Option<Picture<'a>>,
        before: Chain<'a>,
        changed: &'a mut ChangedRows,
    ) -> SourceRows<'a> {
        changed.numbers = [None; ROWS_KEPT];
        changed.next = 0;
        SourceRows { picture, before, changed }
    }

    /// One row; the number is clamped to the picture, which repeats the border.
    pub fn row(&mut self, y: i64) -> &[Pixel] {
        let Some(picture) = self.picture else { return &[] };
        let y = y.clamp(0, i64::from(picture.size.height) - 1) as u32;
        if self.before.is_empty() {
            return picture.row(y);
        }
        let (width, ChangedRows { numbers, next, pixels }) = (picture.size.width as usize, &mut *self.changed);
        if let Some(at) = numbers.iter().position(|number| *number == Some(y)) {
            return &pixels[at * width..][..width];
        }
        let at = *next;
        *next = (at + 1) % ROWS_KEPT;
        numbers[at] = Some(y);
        if pixels.len() < (at + 1) * width {
            pixels.resize((at + 1) * width, [0; 4]);
        }
        let row = &mut pixels[at * width..][..width];
        row.copy_from_slice(picture.row(y));
        self.before.apply(y, row);
        row
    }

    /// The source itself, any number of whose rows can be looked at at once; none where functions stand in front.
    pub fn plain(&self) -> Option<Picture<'a>> {
        self.picture.filter(|_| self.before.is_empty())
    }

    /// Makes one row where nobody else needs it: without a copy where functions stand in front.
    pub fn copy(&mut self, y: u32, to: &mut [Pixel]) {
        if let Some(picture) = self.picture {
            to.copy_from_slice(picture.row(y));
            self.before.apply(y, to);
        }
    }
}

/// What a head keeps from row to row within a band; each head says how it uses it.
#[derive(Debug, Default)]
pub struct Kept {
    /// The first row that is kept, and the first that is not.
    pub rows: (i64, i64),
    /// A row of the output that is done already.
    pub ahead: Option<u32>,
    /// The sums, a ring of rows.
    pub sums: Vec<u16>,
    /// Sums that need more than 16 bits.
    pub wide: Vec<u32>,
    /// Rows of levels.
    pub bytes: Vec<u8>,
}

impl Kept {
    /// Begins a band: nothing is kept. Only that is reset, the memory may be that of another band.
    pub(crate) fn begin(&mut self) {
        (self.rows, self.ahead) = ((0, 0), None);
    }
}

/// Every head.
pub static ALL: &[&Head] = &[
    &ball::BALL,
    &bars::BARS,
    &bilinear::BILINEAR,
    &blur::BLUR,
    &boxblur::BOXBLUR,
    &checker::CHECKER,
    &disc::DISC,
    &flip::FLIP,
    &gradient::GRADIENT,
    &load_here::LOAD,
    &median3::MEDIAN3,
    &median5::MEDIAN5,
    &nearest::NEAREST,
    &noise::NOISE,
    &solid::SOLID,
];
