//! Heads: where the pixels of a fused kernel come from.
//!
//! Owns the description of a head as data: its WGSL, its row loop, what it reads. A head makes pixels from nothing
//! (generator), or reads a source picture in place (load), elsewhere (gather) or around a place (stencil).
//! Does not apply pixel functions: those before a gather or stencil reach it through the rows it asks for, those
//! behind it are applied to what it wrote.
//!
//! Always: rows of one band are asked for from top to bottom, so that a stencil can keep what it has computed. A head
//! that needs the whole source first is shown it before any row is asked for.

pub mod ball;
pub mod bars;
pub mod bilinear;
pub mod blur;
pub mod boxblur;
pub mod checker;
pub mod compositor;
pub mod convolve;
pub mod crop;
pub mod disc;
pub mod edges;
pub mod flip;
pub mod gradient;
mod lines;
pub mod load_here;
pub mod luma;
pub mod median3;
pub mod median5;
pub mod nearest;
pub mod noise;
pub mod resample;
pub mod rotate;
pub mod solid;
pub mod warp;

use std::ops::Range;

use vramp_plan::Size;
use vramp_plan::catalog::IntermediateExtent;

use crate::compose::Chain;
use crate::function::FnArgs;
use crate::picture::{Picture, Pixel};
use crate::sample::{self, Chance, KernelSample, Samples};
use crate::stored::StoredFormat;
use crate::stored::unpack::{Between, Unpacking};

/// The beginning of a kernel, on both sides.
#[derive(Debug)]
pub struct Head {
    /// Its name: that of its WGSL function and of both files.
    pub name: &'static str,
    /// WGSL that defines `fn NAME(at: vec2<i32>, k: u32) -> vec4<i32>`, where `load(at)` is a source pixel,
    /// `source_size()` the source's size, and parameters are read as in a pixel function. A head of two passes also
    /// defines `fn NAME_first(at: vec2<i32>, k: u32) -> vec4<u32>`, whose 16-bit results it reads back with `kept(at)`.
    /// A head of several pictures reads them with `load_four(i, a, b, width)`, which gives the words of four pixels of
    /// picture i: at a, at b's column and a's row, at a's column and b's row, and at b. The source is number 0, and the
    /// others, which may be of any size, are as many as its recipe says.
    pub wgsl: &'static str,
    /// Parameter words it takes.
    pub words: usize,
    /// Whether it reads a source picture.
    pub source: bool,
    /// Whether it reads small data of its own.
    pub small: bool,
    /// The first of two passes, where there are two.
    pub first: Option<First>,
    /// How many rows it is given at once: one, or more where that is quicker.
    pub rows_at_once: usize,
    /// Writes one row, or as many as are given at once, of which the last may be fewer.
    pub row: fn(&HeadArgs<'_>, &mut SourceRows<'_>, &mut BandState, y: u32, &mut [Pixel]),
    /// What it is tested with; every head in [`ALL`] has samples.
    pub samples: Option<Samples>,
}

impl Head {
    /// The usual values of all fields but `name`, `wgsl` and `row`: one pass over a source, row by row, without
    /// parameters or small data.
    pub const PLAIN: Head = Head {
        name: "",
        wgsl: "",
        words: 0,
        source: true,
        small: false,
        first: None,
        rows_at_once: 1,
        row: |_, _, _, _, _| {},
        samples: None,
    };

    /// Its samples for a source of this size; a generator draws some of this size too. Panics with its name if it has
    /// none.
    #[doc(hidden)]
    pub fn drawn(&self, chance: &mut Chance, source: Size) -> Vec<KernelSample> {
        sample::drawn(self.name, self.samples, chance, source)
    }
}

/// The first of two passes on the device, which keeps elements of four times 16 bits for the second.
#[derive(Debug, Clone, Copy)]
pub struct First {
    /// What it goes over.
    pub over: IntermediateExtent,
    /// Whether the second pass reads the source as well as what was kept.
    pub source_again: bool,
    /// How the host finds out what whole columns have; where there is none, a row needs only rows around it.
    pub survey: Option<Survey>,
}

impl First {
    /// That of a stencil along rows, then down columns.
    pub const STENCIL: First = First { over: IntermediateExtent::Source, source_again: false, survey: None };
    /// That of a picture of another size: rows are brought to their new length first.
    pub const RESAMPLING: First = First { over: IntermediateExtent::Across, source_again: false, survey: None };
}

/// How the host goes over a whole source before any row is made: one number for each column.
#[derive(Debug, Clone, Copy)]
pub struct Survey {
    /// Adds one row of the source. In whole numbers, so that parts of a source may be added up in any order.
    pub add: fn(&HeadArgs<'_>, &[Pixel], &mut [u32]),
    /// Makes of the sums over all rows what [`HeadArgs::found`] is.
    pub finish: fn(&HeadArgs<'_>, &mut [u32]),
    /// Changes a row of the source into one of the output: every pixel depends on the one in its place, and else on
    /// what was found.
    pub edit: fn(&HeadArgs<'_>, y: u32, &mut [Pixel]),
}

/// What a head was given for this frame.
#[derive(Debug, Clone, Copy)]
pub struct HeadArgs<'a> {
    /// Parameters, small data and the size of what it makes.
    pub frame: FnArgs<'a>,
    /// The size of its source, or of what it makes where it has none.
    pub source: Size,
    /// What a survey found, one number for each column of the source; empty where there is none.
    pub found: &'a [u32],
}

/// The source's rows, with the pixel functions in front of the head applied.
#[derive(Debug)]
pub struct SourceRows<'a> {
    picture: Option<Picture<'a>>,
    /// The other pictures of a head that reads several.
    others: &'a [Picture<'a>],
    before: Chain<'a>,
    /// How the picture is read where it is not stored as pixels.
    stored: Option<(&'static StoredFormat, Unpacking<'a>)>,
    changed: &'a mut ChangedRows,
}

/// Rows that were unpacked or that functions were applied to, each with its number; the oldest is replaced first.
#[derive(Debug, Default)]
pub(crate) struct ChangedRows {
    numbers: [Option<u32>; ROWS_KEPT],
    next: usize,
    /// One after the other.
    pixels: Vec<Pixel>,
    pub(crate) between: Between,
    /// Rows at their places in a whole picture, for heads that jump about in it, and which of them are there.
    placed: Vec<Pixel>,
    is_placed: Vec<bool>,
}

/// Rows that are kept at once where functions stand in front: enough for a bilinear pair and its neighbours.
const ROWS_KEPT: usize = 4;

impl<'a> SourceRows<'a> {
    /// The rows of a picture, with functions in front, and of others, which have none.
    pub(crate) fn begin(
        picture: Option<Picture<'a>>,
        others: &'a [Picture<'a>],
        before: Chain<'a>,
        changed: &'a mut ChangedRows,
    ) -> SourceRows<'a> {
        changed.numbers = [None; ROWS_KEPT];
        changed.next = 0;
        changed.is_placed.clear();
        SourceRows { picture, others, before, stored: None, changed }
    }

    /// The same, read from how the picture is stored.
    #[must_use]
    pub(crate) fn stored(self, stored: Option<(&'static StoredFormat, Unpacking<'a>)>) -> SourceRows<'a> {
        SourceRows { stored, ..self }
    }

    /// One row; the number is clamped to the picture, which repeats the border.
    pub fn row(&mut self, y: i64) -> &[Pixel] {
        let Some(picture) = self.picture else { return &[] };
        let y = y.clamp(0, i64::from(picture.size.height) - 1) as u32;
        if self.unchanged().is_some() {
            return picture.row(y);
        }
        let (at, width) = (self.change(picture, y), picture.size.width as usize);
        &self.changed.pixels[at * width..][..width]
    }

    /// One row of the picture of this number, clamped as well; number 0 is the source.
    pub fn row_of(&mut self, number: usize, y: i64) -> &[Pixel] {
        let Some(other) = number.checked_sub(1) else { return self.row(y) };
        let Some(picture) = self.others.get(other) else { return &[] };
        picture.row(y.clamp(0, i64::from(picture.size.height) - 1) as u32)
    }

    /// Two rows next to each other of the picture of this number, which has both.
    pub(crate) fn pair_of(&mut self, number: usize, y: u32) -> [&[Pixel]; 2] {
        let picture = if number == 0 { self.picture } else { self.others.get(number - 1).copied() };
        let Some(picture) = picture else { return [&[]; 2] };
        if number > 0 || self.unchanged().is_some() {
            return [picture.row(y), picture.row(y + 1)];
        }
        let (mut first, second) = (self.change(picture, y), self.change(picture, y + 1));
        if self.changed.numbers[first] != Some(y) {
            // The second took its place, and will not be the next to give way.
            first = self.change(picture, y);
        }
        let width = picture.size.width as usize;
        [first, second].map(|at| &self.changed.pixels[at * width..][..width])
    }

    /// The place of a row that was unpacked or that functions were applied to, now or before.
    fn change(&mut self, picture: Picture<'_>, y: u32) -> usize {
        let width = picture.size.width as usize;
        let ChangedRows { numbers, next, pixels, between, .. } = &mut *self.changed;
        if let Some(at) = numbers.iter().position(|number| *number == Some(y)) {
            return at;
        }
        let at = *next;
        *next = (at + 1) % ROWS_KEPT;
        numbers[at] = Some(y);
        if pixels.len() < (at + 1) * width {
            pixels.resize((at + 1) * width, [0; 4]);
        }
        let made = RowMaker { picture, stored: self.stored.as_ref(), before: &self.before };
        made.row(y, between, &mut pixels[at * width..][..width]);
        at
    }

    /// This row and those below it, at most as many as are kept at once; below the picture the last one repeats.
    pub fn rows<const N: usize>(&mut self, y: u32) -> [&[Pixel]; N] {
        const { assert!(N <= ROWS_KEPT, "more rows than are kept at once") };
        let Some(picture) = self.picture else { return [&[]; N] };
        let number = |i: usize| (y + i as u32).min(picture.size.height - 1);
        if self.unchanged().is_some() {
            return std::array::from_fn(|i| picture.row(number(i)));
        }
        let width = picture.size.width as usize;
        let ChangedRows { numbers, next, pixels, between, .. } = &mut *self.changed;
        let made = RowMaker { picture, stored: self.stored.as_ref(), before: &self.before };
        pixels.resize(pixels.len().max(N * width), [0; 4]);
        for (i, row) in pixels.chunks_exact_mut(width).take(N).enumerate() {
            if numbers[i] != Some(number(i)) {
                numbers[i] = Some(number(i));
                made.row(number(i), between, row);
            }
        }
        *next = N % ROWS_KEPT;
        std::array::from_fn(|i| &pixels[i * width..][..width])
    }

    /// Makes one row where nobody else needs it: without a copy where functions stand in front.
    pub fn copy(&mut self, y: u32, to: &mut [Pixel]) {
        if let Some(picture) = self.picture {
            let made = RowMaker { picture, stored: self.stored.as_ref(), before: &self.before };
            made.row(y, &mut self.changed.between, to);
        }
    }

    /// Makes a part of one row, from column `x` on; functions in front are applied there and nowhere else.
    pub fn copy_part(&mut self, y: u32, x: u32, to: &mut [Pixel]) {
        let part = x as usize..x as usize + to.len();
        if self.stored.is_some() {
            to.copy_from_slice(&self.row(i64::from(y))[part]);
        } else if let Some(picture) = self.picture {
            to.copy_from_slice(&picture.row(y)[part]);
            if !self.before.is_empty() {
                self.before.apply_from(y, x, to);
            }
        }
    }

    /// As `copy_part`, for whoever comes back to a row: what is stored otherwise is unpacked once in a band.
    pub fn copy_part_again(&mut self, y: u32, x: u32, to: &mut [Pixel]) {
        if self.stored.is_none() {
            return self.copy_part(y, x, to);
        }
        if let Some(picture) = self.placed(y..y + 1) {
            to.copy_from_slice(&picture.row(y)[x as usize..][..to.len()]);
        }
    }

    /// The source itself, any number of whose rows can be looked at at once; none where it is not stored as pixels, or
    /// functions stand in front.
    pub fn unchanged(&self) -> Option<Picture<'a>> {
        self.picture.filter(|_| self.before.is_empty() && self.stored.is_none())
    }

    /// The source for whoever jumps about in it: these rows of it can be read. Where functions stand in front, or
    /// it is stored otherwise, each row is made once in a band, at its place in a picture of its own; the others hold anything.
    pub fn placed(&mut self, rows: Range<u32>) -> Option<Picture<'_>> {
        let picture = self.picture?;
        if self.unchanged().is_some() {
            return Some(picture);
        }
        let ChangedRows { placed, is_placed, between, .. } = &mut *self.changed;
        let made = RowMaker { picture, stored: self.stored.as_ref(), before: &self.before };
        placed.resize(picture.size.pixels() as usize, [0; 4]);
        is_placed.resize(picture.size.height as usize, false);
        for y in rows.start..rows.end.min(picture.size.height) {
            if !std::mem::replace(&mut is_placed[y as usize], true) {
                let to = &mut placed[y as usize * picture.size.width as usize..][..picture.size.width as usize];
                made.row(y, between, to);
            }
        }
        Picture::new(picture.size, placed)
    }
}

/// How a row comes to be: unpacked or copied, then through the functions in front.
struct RowMaker<'s, 'a> {
    picture: Picture<'a>,
    stored: Option<&'s (&'static StoredFormat, Unpacking<'a>)>,
    before: &'s Chain<'a>,
}

impl RowMaker<'_, '_> {
    fn row(&self, y: u32, between: &mut Between, to: &mut [Pixel]) {
        match self.stored {
            None => self.before.make(y, self.picture.row(y), to),
            Some((stored, args)) => {
                (stored.unpack)(args, between, y as usize, to);
                self.before.apply(y, to);
            }
        }
    }
}

/// What a head keeps from row to row within a band; each head says how it uses it.
#[derive(Debug, Default)]
pub struct BandState {
    /// The first row that is kept, and the first that is not.
    pub rows: (i64, i64),
    /// The same for each picture of a head that reads several.
    pub rows_of: [(i64, i64); compositor::MOST_PICTURES],
    /// A row of the output that is done already.
    pub ahead: Option<u32>,
    /// The sums, a ring of rows.
    pub sums: Vec<u16>,
    /// Sums that need more than 16 bits.
    pub wide: Vec<u32>,
    /// Rows of levels.
    pub bytes: Vec<u8>,
}

impl BandState {
    /// Begins a band: nothing is kept. Only that is reset, the memory may be that of another band.
    pub(crate) fn begin(&mut self) {
        (self.rows, self.ahead) = ((0, 0), None);
        self.rows_of = Default::default();
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
    &compositor::COMPOSITOR,
    &convolve::CONVOLVE,
    &crop::CROP,
    &disc::DISC,
    &edges::EDGES,
    &flip::FLIP,
    &gradient::GRADIENT,
    &load_here::LOAD,
    &luma::LUMA,
    &median3::MEDIAN3,
    &median5::MEDIAN5,
    &nearest::NEAREST,
    &noise::NOISE,
    &resample::RESAMPLE,
    &rotate::ROTATE,
    &solid::SOLID,
    &warp::WARP,
];
