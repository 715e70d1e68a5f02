//! The host's side: one loop over rows, each going through every function while it is in the cache.
//!
//! Owns the loop over a band of rows, the one over a source that has to be surveyed first, and the memory that they
//! need from row to row.
//! Does not spread bands over threads: whoever has the threads does, with [`Program::band`] and a [`Scratch`] for each.
//!
//! Always: every row of the band is completely written; a function is visited only where it has an effect; nothing is
//! allocated once the scratch has grown to what the frames need.

use std::ops::Range;

use vramp_plan::Size;

use crate::function::Function;
use crate::head::load_here::LOAD;
use crate::head::{ChangedRows, Head, HeadArgs, Kept, SourceRows, Survey};
use crate::picture::{Picture, Pixel};
use crate::simd::Level;

use super::chain::{Chain, Step, args};
use super::{Part, Recipe};

/// A recipe, ready to run over rows.
#[derive(Debug, Clone)]
pub struct Program {
    head: &'static Head,
    place: Part,
    before: Vec<Step>,
    after: Vec<Step>,
    level: Level,
}

/// What one frame is made from.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// The size of the output.
    pub size: Size,
    /// The source, where the head reads one.
    pub source: Option<Picture<'a>>,
    /// The side pictures, in the order of the functions that read one.
    pub sides: &'a [Picture<'a>],
    /// Small data of all parts; each part's place in it stands among its parameters.
    pub small: &'a [u32],
    /// The parameter words, as the layout says.
    pub words: &'a [u32],
}

/// Memory that a band needs from row to row. It may be used for any program after any other, and is worth keeping: it
/// grows to what the greatest frame needs, and then no more.
#[derive(Debug, Default)]
pub struct Scratch {
    kept: Kept,
    changed: ChangedRows,
    /// What a survey found in a part of a source; of the whole one, once it is concluded.
    found: Vec<u32>,
}

impl Program {
    pub(super) fn of(recipe: &Recipe) -> Program {
        let layout = recipe.layout();
        let mut sides = 0..;
        let mut steps = |functions: &[Function], parts: &[Part]| {
            let both = functions.iter().zip(parts);
            let step = |(function, part): (&Function, &Part)| Step {
                function: function.on_host(),
                part: *part,
                side: if function.side() { sides.next() } else { None },
            };
            both.map(step).collect::<Vec<_>>()
        };
        let before = steps(&recipe.before, &layout.before);
        let after = steps(&recipe.after, &layout.after);
        Program { head: recipe.head, place: layout.head, before, after, level: Level::detected() }
    }

    /// The same with the instructions of another level: the result does not change.
    #[must_use]
    pub fn at(mut self, level: Level) -> Program {
        self.level = level;
        self
    }

    /// Whether the whole source is to be gone over before any row is made: with [`Program::survey`] over all of its
    /// rows, then [`Program::conclude`].
    pub fn surveys(&self) -> bool {
        self.survey_of_head().is_some()
    }

    /// Goes over these rows of a frame's source. What it finds stays in the scratch.
    pub fn survey(&self, frame: &Frame<'_>, rows: Range<u32>, scratch: &mut Scratch) {
        let Some(survey) = self.survey_of_head() else { return };
        let Scratch { changed, found, .. } = scratch;
        let mut source = SourceRows::begin(frame.source, self.before(frame), changed);
        let head = self.head_args(frame, &[]);
        found.clear();
        found.resize(head.source.width as usize, 0);
        for y in rows {
            (survey.add)(&head, source.row(i64::from(y)), found);
        }
    }

    /// Adds up what the first `parts` of these have found, and leaves it in each of them.
    pub fn conclude(&self, frame: &Frame<'_>, scratch: &mut [Scratch], parts: usize) {
        let (Some(survey), Some((whole, others))) = (self.survey_of_head(), scratch.split_first_mut()) else { return };
        for part in others.iter().take(parts.saturating_sub(1)) {
            whole.found.iter_mut().zip(&part.found).for_each(|(sum, part)| *sum += part);
        }
        (survey.finish)(&self.head_args(frame, &[]), &mut whole.found);
        for part in others {
            part.found.clone_from(&whole.found);
        }
    }

    /// Computes rows `first_row..` of a frame into `pixels`, which holds whole rows of the output.
    pub fn band(&self, frame: &Frame<'_>, first_row: u32, pixels: &mut [Pixel], scratch: &mut Scratch) {
        let Scratch { kept, changed, found } = scratch;
        let (head, after) = (self.head_args(frame, found), self.after(frame));
        let mut rows = SourceRows::begin(frame.source, self.before(frame), changed);
        kept.begin();
        for (y, row) in (first_row..).zip(pixels.chunks_exact_mut(frame.size.width as usize)) {
            (self.head.row)(&head, &mut rows, kept, y, row);
            after.apply(y, row);
        }
    }

    /// Whether [`Program::edit`] can take the place of [`Program::band`]: every pixel depends on the source's at the
    /// same place alone, or else on what a survey found.
    pub fn edits_in_place(&self) -> bool {
        (std::ptr::eq(self.head, &raw const LOAD) || self.surveys()) && self.before.is_empty()
    }

    /// Changes rows `first_row..` of a frame, where `pixels` holds the source's: what [`Program::band`] would make
    /// from it, without another picture. The frame's source is not looked at, and of the scratch only what a survey
    /// found.
    ///
    /// # Panics
    /// If the program does not edit in place.
    pub fn edit(&self, frame: &Frame<'_>, first_row: u32, pixels: &mut [Pixel], scratch: &Scratch) {
        assert!(self.edits_in_place(), "{} reads its source elsewhere than in place", self.head.name);
        let (head, after) = (self.head_args(frame, &scratch.found), self.after(frame));
        let survey = self.survey_of_head();
        for (y, row) in (first_row..).zip(pixels.chunks_exact_mut(frame.size.width as usize)) {
            if let Some(survey) = survey {
                (survey.edit)(&head, y, row);
            }
            after.apply(y, row);
        }
    }

    fn survey_of_head(&self) -> Option<Survey> {
        self.head.first?.survey
    }

    fn head_args<'a>(&self, frame: &Frame<'a>, found: &'a [u32]) -> HeadArgs<'a> {
        let source = frame.source.map_or(frame.size, |p| p.size);
        HeadArgs { frame: args(frame, self.place, frame.size, self.level), source, found }
    }

    fn before<'a>(&'a self, frame: &'a Frame<'a>) -> Chain<'a> {
        let size = frame.source.map_or(frame.size, |p| p.size);
        Chain { steps: &self.before, frame, size, level: self.level }
    }

    fn after<'a>(&'a self, frame: &'a Frame<'a>) -> Chain<'a> {
        Chain { steps: &self.after, frame, size: frame.size, level: self.level }
    }
}
