//! Heads: the part of a fused kernel that reads or computes pixels. Pixel functions may precede and follow the head.
//!
//! A head is described as data: its WGSL, its row loop and its inputs. A head computes pixels without a source
//! (generator), or reads a source at the same position (load), at another position (gather) or around a position
//! (stencil). It does not apply pixel functions: the functions before the head are applied to the rows that
//! [`SourceRows`] returns, and the functions after the head to the head's result.
//!
//! The rows of a band are computed from top to bottom, so that a stencil can reuse its intermediate results.
//!
//! **Two passes.** On the GPU a head may have a first pass ([`First`]) that writes an intermediate of four 16-bit
//! values per element for the second pass. The intermediate has one element per source pixel (separable stencils), per
//! pixel of the source's rows at their new width (`resample`), or per column (`luma`). Plans count the memory of the
//! intermediate. A sum that needs more than 16 bits takes two neighbouring elements (`boxblur` with more than 257
//! taps). On the CPU, rows that were summed horizontally are kept in a ring. A head that depends on whole columns
//! surveys the whole source before it computes the first row ([`Survey`]).
//!
//! **Several images.** A head may read images of any size besides its source (`compositor`). Each image is a binding.
//! The planner places a kernel on the CPU if the kernel has more bindings than the device allows.
//!
//! **Numbers.** Convolutions choose the number of fraction bits once, on the CPU: the smallest number with which all
//! weights are exact, or else the largest number with which all weights fit 16 bits. Weights are rounded so that their
//! sum is the rounded sum of the exact weights. Divisions for means are exact. Medians are computed by sorting
//! networks, and neighbouring pixels share steps of a network. Positions (`bilinear`, `warp`) are fixed-point numbers
//! from tables that the CPU computes. The WGSL and its CPU twin therefore agree to the bit.

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

/// A head for the GPU and for the CPU.
#[derive(Debug)]
pub struct Head {
    /// The name of the WGSL function, and of its `.rs` and `.wgsl` files.
    pub name: &'static str,
    /// WGSL that defines `fn NAME(at: vec2<i32>, k: u32) -> vec4<i32>`. The function may call `load(at)` for a source
    /// pixel, and `source_size()`. It reads parameters like a pixel function.
    ///
    /// A head of two passes also defines `fn NAME_first(at: vec2<i32>, k: u32) -> vec4<u32>`, whose 16-bit results the
    /// second pass reads with `kept(at)`.
    ///
    /// A head of several images reads them with `load_four(i, a, b, width)`, which returns the words of four pixels of
    /// image i: at a, at b's column and a's row, at a's column and b's row, and at b. Image 0 is the source. The recipe
    /// sets the number of the other images, which may have any size.
    pub wgsl: &'static str,
    /// Number of parameter words.
    pub words: usize,
    /// Whether the head reads a source image.
    pub source: bool,
    /// Whether the head reads small data, such as a table of weights.
    pub small: bool,
    /// The first pass on the GPU, if the head has two passes.
    pub first: Option<First>,
    /// Number of rows that one call of `row` computes: more than one if that is faster.
    pub rows_at_once: usize,
    /// Computes `rows_at_once` rows, starting at row `y`. The last call of a band may compute fewer rows.
    pub row: fn(&HeadArgs<'_>, &mut SourceRows<'_>, &mut BandState, y: u32, &mut [Pixel]),
    /// Test samples. Every head in [`ALL`] has samples.
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

    /// The head's samples for a source of this size. A generator, which has no source, also draws samples of this size.
    /// Panics with the head's name if the head has no samples.
    #[doc(hidden)]
    pub fn drawn(&self, chance: &mut Chance, source: Size) -> Vec<KernelSample> {
        sample::drawn(self.name, self.samples, chance, source)
    }
}

/// The first of two passes on the GPU. It writes an intermediate of four 16-bit values per element for the second pass.
#[derive(Debug, Clone, Copy)]
pub struct First {
    /// The extent of the intermediate.
    pub over: IntermediateExtent,
    /// Whether the second pass reads the source besides the intermediate.
    pub source_again: bool,
    /// How the CPU computes the values of whole columns. `None` if an output row depends only on the source rows around
    /// it.
    pub survey: Option<Survey>,
}

impl First {
    /// The first pass of a separable stencil, which sums along rows. The second pass sums down columns.
    pub const STENCIL: First = First { over: IntermediateExtent::Source, source_again: false, survey: None };
    /// The first pass of a head that changes the size: it resamples rows to their new width.
    pub const RESAMPLING: First = First { over: IntermediateExtent::Across, source_again: false, survey: None };
}

/// The survey of a whole source on the CPU, before the first row is computed. It yields one number per column.
#[derive(Debug, Clone, Copy)]
pub struct Survey {
    /// Adds one row of the source to the sums. Sums are integers, so the rows may be added in any order.
    pub add: fn(&HeadArgs<'_>, &[Pixel], &mut [u32]),
    /// Turns the sums over all rows into [`HeadArgs::found`].
    pub finish: fn(&HeadArgs<'_>, &mut [u32]),
    /// Turns a source row into an output row. Every output pixel depends only on the source pixel at its position and
    /// on the survey's results.
    pub edit: fn(&HeadArgs<'_>, y: u32, &mut [Pixel]),
}

/// The arguments of a head for one frame.
#[derive(Debug, Clone, Copy)]
pub struct HeadArgs<'a> {
    /// Parameters, small data and the size of the output.
    pub frame: FnArgs<'a>,
    /// The size of the source. For generators, the size of the output.
    pub source: Size,
    /// The results of the survey, one number per column of the source; empty if the head has no survey.
    pub found: &'a [u32],
}

/// The rows of the source, after the pixel functions that precede the head.
#[derive(Debug)]
pub struct SourceRows<'a> {
    picture: Option<Picture<'a>>,
    /// The other images of a head that reads several images.
    others: &'a [Picture<'a>],
    before: Chain<'a>,
    /// How the image is read if its format is not rgba8.
    stored: Option<(&'static StoredFormat, Unpacking<'a>)>,
    changed: &'a mut ChangedRows,
}

/// A cache of rows that were unpacked or changed by functions, by row number. The oldest row is replaced first.
#[derive(Debug, Default)]
pub(crate) struct ChangedRows {
    numbers: [Option<u32>; ROWS_KEPT],
    next: usize,
    /// The cached rows, concatenated.
    pixels: Vec<Pixel>,
    pub(crate) between: Between,
    /// A whole image for heads with random access. `is_placed` tells which rows of this image are valid.
    placed: Vec<Pixel>,
    is_placed: Vec<bool>,
}

/// Capacity of the row cache: enough for the two rows of a bilinear interpolation and their neighbours.
const ROWS_KEPT: usize = 4;

impl<'a> SourceRows<'a> {
    /// The rows of an image after the functions `before`, and the rows of other images, to which no functions are
    /// applied.
    pub(crate) fn begin(
        picture: Option<Picture<'a>>,
        others: &'a [Picture<'a>],
        before: Chain<'a>,
        changed: &'a mut ChangedRows,
    ) -> SourceRows<'a> {
        changed.numbers = [None; ROWS_KEPT];
        changed.next = 0;
        changed.is_placed.clear();
        changed.between.begin();
        SourceRows { picture, others, before, stored: None, changed }
    }

    /// Reads the image from this storage format.
    #[must_use]
    pub(crate) fn stored(self, stored: Option<(&'static StoredFormat, Unpacking<'a>)>) -> SourceRows<'a> {
        SourceRows { stored, ..self }
    }

    /// One row. `y` is clamped to the image, so that rows beyond the border repeat the border.
    pub fn row(&mut self, y: i64) -> &[Pixel] {
        let Some(picture) = self.picture else { return &[] };
        let y = y.clamp(0, i64::from(picture.size.height) - 1) as u32;
        if self.unchanged().is_some() {
            return picture.row(y);
        }
        let (at, width) = (self.change(picture, y), picture.size.width as usize);
        &self.changed.pixels[at * width..][..width]
    }

    /// One row of image `number`. `y` is clamped as in [`SourceRows::row`]. Image 0 is the source.
    pub fn row_of(&mut self, number: usize, y: i64) -> &[Pixel] {
        let Some(other) = number.checked_sub(1) else { return self.row(y) };
        let Some(picture) = self.others.get(other) else { return &[] };
        picture.row(y.clamp(0, i64::from(picture.size.height) - 1) as u32)
    }

    /// Rows `y` and `y + 1` of image `number`. The image must have both rows.
    pub(crate) fn pair_of(&mut self, number: usize, y: u32) -> [&[Pixel]; 2] {
        let picture = if number == 0 { self.picture } else { self.others.get(number - 1).copied() };
        let Some(picture) = picture else { return [&[]; 2] };
        if number > 0 || self.unchanged().is_some() {
            return [picture.row(y), picture.row(y + 1)];
        }
        let (mut first, second) = (self.change(picture, y), self.change(picture, y + 1));
        if self.changed.numbers[first] != Some(y) {
            // The second row replaced the first row in the cache. Computing the first row again does not replace the
            // second row.
            first = self.change(picture, y);
        }
        let width = picture.size.width as usize;
        [first, second].map(|at| &self.changed.pixels[at * width..][..width])
    }

    /// Returns the cache slot of row `y`, and computes the row if it is not cached.
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

    /// `N` rows from row `y` down, where `N` is at most `ROWS_KEPT`. Below the image, the last row repeats.
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

    /// Computes one row into `to`, bypassing the cache. This saves a copy if functions precede the head.
    pub fn copy(&mut self, y: u32, to: &mut [Pixel]) {
        if let Some(picture) = self.picture {
            let made = RowMaker { picture, stored: self.stored.as_ref(), before: &self.before };
            made.row(y, &mut self.changed.between, to);
        }
    }

    /// Computes part of one row, from column `x` on. If the format is rgba8, functions are applied to that part only.
    /// Otherwise the whole row is computed.
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

    /// Like `copy_part`, for heads that read the same row several times: if the format is not rgba8, the row is
    /// unpacked once per band.
    pub fn copy_part_again(&mut self, y: u32, x: u32, to: &mut [Pixel]) {
        if self.stored.is_none() {
            return self.copy_part(y, x, to);
        }
        if let Some(picture) = self.placed(y..y + 1) {
            to.copy_from_slice(&picture.row(y)[x as usize..][..to.len()]);
        }
    }

    /// The source itself, for access to any number of its rows. `None` if its format is not rgba8 or functions precede
    /// the head.
    pub fn unchanged(&self) -> Option<Picture<'a>> {
        self.picture.filter(|_| self.before.is_empty() && self.stored.is_none())
    }

    /// The source for random access, in which only the given rows are valid. If functions precede the head or the
    /// format is not rgba8, this is a separate image, in which each row is computed once per band.
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

/// Computes a row: unpacks or copies it, then applies the functions before the head.
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

/// State that a head keeps from row to row within a band. Each head documents its use.
#[derive(Debug, Default)]
pub struct BandState {
    /// The range of rows that are kept: the number of its first row, and the number after its last row.
    pub rows: (i64, i64),
    /// The range of rows that are kept of each image, for a head that reads several images.
    pub rows_of: [(i64, i64); compositor::MOST_PICTURES],
    /// A row of the output that is already computed.
    pub ahead: Option<u32>,
    /// Sums, as a ring of rows.
    pub sums: Vec<u16>,
    /// Sums that need more than 16 bits.
    pub wide: Vec<u32>,
    /// Rows of 8-bit values.
    pub bytes: Vec<u8>,
}

impl BandState {
    /// Starts a band without kept rows. The memory is not cleared: it may hold values of an earlier band.
    pub(crate) fn begin(&mut self) {
        (self.rows, self.ahead) = ((0, 0), None);
        self.rows_of = Default::default();
    }
}

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
