//! The host's side: one loop over rows, each going through every function while it is in the cache.
//!
//! Owns the loop over a band of rows, and the memory that it needs from row to row.
//! Does not spread bands over threads: whoever has the threads does, with [`Program::band`] and a [`Scratch`] for each.
//!
//! Always: every row of the band is completely written; a function is visited only where it has an effect; nothing is
//! allocated once the scratch has grown to what the frames need.

use vramp_plan::Size;

use crate::function::Function;
use crate::head::load_here::LOAD;
use crate::head::{ChangedRows, Head, HeadArgs, Kept, SourceRows};
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

    /// Computes rows `first_row..` of a frame into `pixels`, which holds whole rows of the output.
    pub fn band(&self, frame: &Frame<'_>, first_row: u32, pixels: &mut [Pixel], scratch: &mut Scratch) {
        let source = frame.source.map_or(frame.size, |p| p.size);
        let before = Chain { steps: &self.before, frame, size: source, level: self.level };
        let after = Chain { steps: &self.after, frame, size: frame.size, level: self.level };
        let head = HeadArgs { frame: args(frame, self.place, frame.size, self.level), source };
        let mut rows = SourceRows::begin(frame.source, before, &mut scratch.changed);
        scratch.kept.begin();
        let (width, at_once) = (frame.size.width as usize, self.head.rows_at_once());
        for (first, made) in (first_row..).step_by(at_once).zip(pixels.chunks_mut(width * at_once)) {
            (self.head.row)(&head, &mut rows, &mut scratch.kept, first, made);
            for (y, row) in (first..).zip(made.chunks_exact_mut(width)) {
                after.apply(y, row);
            }
        }
    }

    /// Whether [`Program::edit`] can take the place of [`Program::band`]: every pixel depends on the source's at the
    /// same place alone.
    pub fn edits_in_place(&self) -> bool {
        std::ptr::eq(self.head, &raw const LOAD) && self.before.is_empty()
    }

    /// Changes rows `first_row..` of a frame, where `pixels` holds the source's: what [`Program::band`] would make
    /// from it, without another picture. The frame's source is not looked at.
    ///
    /// # Panics
    /// If the program does not edit in place.
    pub fn edit(&self, frame: &Frame<'_>, first_row: u32, pixels: &mut [Pixel]) {
        assert!(self.edits_in_place(), "{} reads its source elsewhere than in place", self.head.name);
        let after = Chain { steps: &self.after, frame, size: frame.size, level: self.level };
        for (y, row) in (first_row..).zip(pixels.chunks_exact_mut(frame.size.width as usize)) {
            after.apply(y, row);
        }
    }
}
