//! The CPU side of a kernel: one loop over rows, in which each row passes through every function while it is in the
//! cache.
//!
//! This module starts no threads. The caller distributes bands of rows to threads, with [`RowProgram::band`] and one
//! [`RowScratch`] per thread.
//!
//! Invariants: every row of a band is written completely. A function runs only on the spans that it can change. Nothing
//! is allocated once the scratch has the size that the frames need.

use std::ops::Range;

use vramp_plan::Size;

use crate::function::Function;
use crate::head::load_here::LOAD;
use crate::head::{BandState, ChangedRows, Head, HeadArgs, SourceRows, Survey};
use crate::picture::{Picture, Pixel};
use crate::simd::Level;
use crate::stored::pack::Packing;
use crate::stored::unpack::{Between, Unpacking};
use crate::stored::{PixelRows, PlaneRows, StoredFormat, Way};

use super::chain::{Chain, ChainStep, args};
use super::{ParamPart, Recipe};

/// A recipe, compiled for the loop over rows.
#[derive(Debug, Clone)]
pub struct RowProgram {
    head: &'static Head,
    place: ParamPart,
    before: Vec<ChainStep>,
    after: Vec<ChainStep>,
    from: Option<(&'static StoredFormat, ParamPart)>,
    into: Option<(&'static StoredFormat, ParamPart)>,
    /// Number of images that the head reads besides its source.
    pictures: usize,
    level: Level,
}

/// The inputs of one frame.
#[derive(Debug, Clone, Copy)]
pub struct KernelFrame<'a> {
    /// The size of the output.
    pub size: Size,
    /// The source, if the head reads one.
    pub source: Option<Picture<'a>>,
    /// First the images that the head reads besides its source, then the extra inputs of functions, in the order of the
    /// functions.
    pub extra_inputs: &'a [Picture<'a>],
    /// Small data of all parts. If a part has small data, one of its parameter words is the offset of this data.
    pub small: &'a [u32],
    /// The parameter words, in the order of [`ParamLayout`](super::ParamLayout).
    pub words: &'a [u32],
}

/// Memory that a band needs from row to row. One scratch serves any sequence of programs. Keep a scratch between
/// frames: its memory grows to the size that the largest frame needs, and is then never reallocated.
#[derive(Debug, Default)]
pub struct RowScratch {
    kept: BandState,
    changed: ChangedRows,
    /// Before [`RowProgram::conclude`], the sums over the rows that were surveyed with this scratch. Afterwards, the
    /// survey results of the whole source.
    found: Vec<u32>,
    between: Between,
}

impl RowProgram {
    pub(super) fn of(recipe: &Recipe) -> RowProgram {
        let layout = recipe.layout();
        let mut extra_inputs = recipe.pictures..;
        let mut steps = |functions: &[Function], parts: &[ParamPart]| {
            let both = functions.iter().zip(parts);
            let step = |(function, part): (&Function, &ParamPart)| ChainStep {
                function: function.on_host(),
                part: *part,
                extra_input: if function.extra_input() { extra_inputs.next() } else { None },
            };
            both.map(step).collect::<Vec<_>>()
        };
        let before = steps(&recipe.before, &layout.before);
        let after = steps(&recipe.after, &layout.after);
        let (from, into) = (recipe.from.zip(layout.from), recipe.into.zip(layout.into));
        let (head, pictures, level) = (recipe.head, recipe.pictures, Level::detected());
        RowProgram { head, place: layout.head, before, after, from, into, pictures, level }
    }

    /// Uses the instructions of another level. The result does not change.
    #[must_use]
    pub fn at(mut self, level: Level) -> RowProgram {
        self.level = level;
        self
    }

    /// Whether the whole source must be surveyed before the first row is computed. If so, call [`RowProgram::survey`]
    /// for all rows of the source, then [`RowProgram::conclude`].
    pub fn surveys(&self) -> bool {
        self.survey_of_head().is_some()
    }

    /// Surveys these rows of a frame's source. The sums over these rows stay in the scratch.
    pub fn survey(&self, frame: &KernelFrame<'_>, rows: Range<u32>, scratch: &mut RowScratch) {
        let Some(survey) = self.survey_of_head() else { return };
        let RowScratch { changed, found, .. } = scratch;
        let mut source = self.source_rows(frame, changed);
        let head = self.head_args(frame, &[]);
        found.clear();
        found.resize(head.source.width as usize, 0);
        for y in rows {
            (survey.add)(&head, source.row(i64::from(y)), found);
        }
    }

    /// Adds up the sums in the first `parts` scratches, computes the survey results of the whole source from the total,
    /// and stores these results in all scratches.
    pub fn conclude(&self, frame: &KernelFrame<'_>, scratch: &mut [RowScratch], parts: usize) {
        let (Some(survey), Some((whole, others))) = (self.survey_of_head(), scratch.split_first_mut()) else { return };
        for part in others.iter().take(parts.saturating_sub(1)) {
            whole.found.iter_mut().zip(&part.found).for_each(|(sum, part)| *sum += part);
        }
        (survey.finish)(&self.head_args(frame, &[]), &mut whole.found);
        for part in others {
            part.found.clone_from(&whole.found);
        }
    }

    /// Computes rows `first_row..` of a frame into `pixels`, which holds whole rows of the output. If the output's
    /// format is not rgba8, `pixels` receives the pixels that [`RowProgram::pack`] would store.
    pub fn band(&self, frame: &KernelFrame<'_>, first_row: u32, pixels: &mut [Pixel], scratch: &mut RowScratch) {
        let width = frame.size.width as usize;
        if let Some(source) = frame.source.filter(|source| self.loads_only() && source.bytes().is_none()) {
            let after = self.after(frame);
            let from = &source.pixels[first_row as usize * width..][..pixels.len()];
            if after.make_all(from, pixels) {
                return;
            }
            for (y, row) in (first_row..).zip(pixels.chunks_exact_mut(width)) {
                after.make(y, source.row(y), row);
            }
            return;
        }
        let at_once = self.head.rows_at_once;
        self.rows(frame, scratch, |_, make| {
            for (y, rows) in (first_row..).step_by(at_once).zip(pixels.chunks_mut(at_once * width)) {
                make(y, rows);
            }
        });
    }

    /// Computes rows `first_row..` of a frame and stores them in the output's format. `first_row` must be even.
    ///
    /// # Panics
    /// If the output's format is rgba8.
    pub fn pack(&self, frame: &KernelFrame<'_>, first_row: u32, rows: &mut PlaneRows<'_>, scratch: &mut RowScratch) {
        let (stored, part) = self.into.expect("the output has a storage format");
        let packing = Packing { way: Way::numbered(frame.words[part.start]), level: self.level };
        let (count, width) = (rows.rows(), frame.size.width as usize);
        // Only 4:2:0 with chroma sited on lines reads rows beyond the pair that is stored.
        let looks_around = stored.block[1] == 2 && packing.looks_around();
        let last = frame.size.height - 1;
        let as_it_is = self.loads_only() && self.after.is_empty();
        if let Some(source) = frame.source.filter(|source| as_it_is && source.bytes().is_none()) {
            for y in (0..count).step_by(2) {
                let at = first_row + y as u32;
                let row = |at: u32| source.row(at.min(last));
                let pair = PixelRows { own: [row(at), row(at + 1)], around: [row(at.saturating_sub(1)), row(at + 2)] };
                (stored.pack)(&packing, &mut scratch.between, pair, rows, y);
            }
            return;
        }
        self.rows(frame, scratch, |between, make| {
            let mut pixels = std::mem::take(&mut between.pixels);
            for row in &mut pixels {
                row.resize(width, [0; 4]);
            }
            let [above, upper, lower, below] = &mut pixels;
            if looks_around && first_row > 0 {
                make(first_row - 1, above);
            }
            for y in (0..count).step_by(2) {
                let at = first_row + y as u32;
                if y == 0 || !looks_around {
                    make(at, upper);
                }
                if at < last {
                    make(at + 1, lower);
                }
                if looks_around && at + 1 < last {
                    make(at + 2, below);
                }
                // Rows beyond the border repeat the border.
                let own = [&upper[..], if at < last { &lower[..] } else { &upper[..] }];
                let around = [
                    if looks_around && at > 0 { &above[..] } else { own[0] },
                    if looks_around && at + 1 < last { &below[..] } else { own[1] },
                ];
                (stored.pack)(&packing, between, PixelRows { own, around }, rows, y);
                std::mem::swap(above, lower);
                std::mem::swap(upper, below);
            }
            between.pixels = pixels;
        });
    }

    /// Calls `work` with a function that computes one or a few rows. `work` must request rows from top to bottom.
    fn rows(
        &self,
        frame: &KernelFrame<'_>,
        scratch: &mut RowScratch,
        work: impl FnOnce(&mut Between, &mut dyn FnMut(u32, &mut [Pixel])),
    ) {
        let RowScratch { kept, changed, between, found } = scratch;
        let (head, after) = (self.head_args(frame, found), self.after(frame));
        let mut rows = self.source_rows(frame, changed);
        kept.begin();
        work(between, &mut |first, made| {
            (self.head.row)(&head, &mut rows, kept, first, made);
            if after.is_empty() {
                return;
            }
            for (y, row) in (first..).zip(made.chunks_exact_mut(frame.size.width as usize)) {
                after.apply(y, row);
            }
        });
    }

    /// How the source is read if its format is not rgba8.
    fn unpacking<'a>(&self, frame: &KernelFrame<'a>) -> Option<(&'static StoredFormat, Unpacking<'a>)> {
        let (stored, part) = self.from?;
        let source = frame.source?;
        let (format, bytes) = source.bytes()?;
        debug_assert_eq!(format, stored.format, "the source has the format that the program reads");
        Some((stored, Unpacking::of(format, source.size, bytes, Way::numbered(frame.words[part.start]), self.level)))
    }

    /// Whether [`RowProgram::edit`] can replace [`RowProgram::band`]: every output pixel depends only on the source
    /// pixel at the same position and on survey results.
    pub fn edits_in_place(&self) -> bool {
        (self.loads_only() || (self.surveys() && self.before.is_empty() && self.from.is_none())) && self.into.is_none()
    }

    /// Whether the head returns every source pixel unchanged, at the same position.
    fn loads_only(&self) -> bool {
        std::ptr::eq(self.head, &raw const LOAD) && self.before.is_empty() && self.from.is_none()
    }

    /// Changes rows `first_row..` of a frame in place. `pixels` holds the source's rows and receives what
    /// [`RowProgram::band`] would compute. The frame's source is not read. Only the survey results of the scratch are
    /// read.
    ///
    /// # Panics
    /// If the program cannot edit in place.
    pub fn edit(&self, frame: &KernelFrame<'_>, first_row: u32, pixels: &mut [Pixel], scratch: &RowScratch) {
        assert!(self.edits_in_place(), "{} cannot edit in place", self.head.name);
        let (head, after) = (self.head_args(frame, &scratch.found), self.after(frame));
        let survey = self.survey_of_head();
        for (y, row) in (first_row..).zip(pixels.chunks_exact_mut(frame.size.width as usize)) {
            if let Some(survey) = survey {
                (survey.edit)(&head, y, row);
            }
            after.apply(y, row);
        }
    }

    fn source_rows<'a>(&'a self, frame: &'a KernelFrame<'a>, changed: &'a mut ChangedRows) -> SourceRows<'a> {
        let pictures = frame.extra_inputs.get(..self.pictures).unwrap_or(&[]);
        SourceRows::begin(frame.source, pictures, self.before(frame), changed).stored(self.unpacking(frame))
    }

    fn survey_of_head(&self) -> Option<Survey> {
        self.head.first?.survey
    }

    fn head_args<'a>(&self, frame: &KernelFrame<'a>, found: &'a [u32]) -> HeadArgs<'a> {
        let source = frame.source.map_or(frame.size, |p| p.size);
        HeadArgs { frame: args(frame, self.place, frame.size, self.level), source, found }
    }

    fn before<'a>(&'a self, frame: &'a KernelFrame<'a>) -> Chain<'a> {
        let size = frame.source.map_or(frame.size, |p| p.size);
        Chain { steps: &self.before, frame, size, level: self.level }
    }

    fn after<'a>(&'a self, frame: &'a KernelFrame<'a>) -> Chain<'a> {
        Chain { steps: &self.after, frame, size: frame.size, level: self.level }
    }
}
