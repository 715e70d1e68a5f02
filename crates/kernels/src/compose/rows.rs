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
use crate::stored::pack::Packing;
use crate::stored::unpack::{Between, Unpacking};
use crate::stored::{PlaneRows, Stored, Way};

use super::chain::{Chain, Step, args};
use super::{Part, Recipe};

/// A recipe, ready to run over rows.
#[derive(Debug, Clone)]
pub struct Program {
    head: &'static Head,
    place: Part,
    before: Vec<Step>,
    after: Vec<Step>,
    from: Option<(&'static Stored, Part)>,
    into: Option<(&'static Stored, Part)>,
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
    between: Between,
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
        let (from, into) = (recipe.from.zip(layout.from), recipe.into.zip(layout.into));
        Program { head: recipe.head, place: layout.head, before, after, from, into, level: Level::detected() }
    }

    /// The same with the instructions of another level: the result does not change.
    #[must_use]
    pub fn at(mut self, level: Level) -> Program {
        self.level = level;
        self
    }

    /// Computes rows `first_row..` of a frame into `pixels`, which holds whole rows of the output. Where that is stored
    /// otherwise, these are the pixels that [`Program::pack`] stores.
    pub fn band(&self, frame: &Frame<'_>, first_row: u32, pixels: &mut [Pixel], scratch: &mut Scratch) {
        let width = frame.size.width as usize;
        self.rows(frame, scratch, |_, make| {
            for (y, row) in (first_row..).zip(pixels.chunks_exact_mut(width)) {
                make(y, row);
            }
        });
    }

    /// Computes rows `first_row..` of a frame, an even number, and stores them as the output's format wants it.
    ///
    /// # Panics
    /// If the output is pixels.
    pub fn pack(&self, frame: &Frame<'_>, first_row: u32, rows: &mut PlaneRows<'_>, scratch: &mut Scratch) {
        let (stored, part) = self.into.expect("only what is not pixels is packed");
        let packing = Packing { way: Way::numbered(frame.words[part.start]), level: self.level };
        let (count, width) = (rows.rows(), frame.size.width as usize);
        let as_it_is = self.loads_only() && self.after.is_empty();
        if let Some(source) = frame.source.filter(|source| as_it_is && source.bytes().is_none()) {
            for y in (0..count).step_by(2) {
                let pair = [y, (y + 1).min(count - 1)].map(|y| source.row(first_row + y as u32));
                (stored.pack)(&packing, &mut scratch.between, pair, rows, y);
            }
            return;
        }
        self.rows(frame, scratch, |between, make| {
            let [mut upper, mut lower] = std::mem::take(&mut between.pixels);
            upper.resize(width, [0; 4]);
            lower.resize(width, [0; 4]);
            for y in (0..count).step_by(2) {
                make(first_row + y as u32, &mut upper);
                // The last row of an odd number of rows has itself for a neighbour.
                let below = if y + 1 < count {
                    make(first_row + y as u32 + 1, &mut lower);
                    &lower
                } else {
                    &upper
                };
                (stored.pack)(&packing, between, [&upper, below], rows, y);
            }
            between.pixels = [upper, lower];
        });
    }

    /// Hands out what makes rows, which are to be asked for from top to bottom.
    fn rows(
        &self,
        frame: &Frame<'_>,
        scratch: &mut Scratch,
        work: impl FnOnce(&mut Between, &mut dyn FnMut(u32, &mut [Pixel])),
    ) {
        let source = frame.source.map_or(frame.size, |p| p.size);
        let before = Chain { steps: &self.before, frame, size: source, level: self.level };
        let after = Chain { steps: &self.after, frame, size: frame.size, level: self.level };
        let head = HeadArgs { frame: args(frame, self.place, frame.size, self.level), source };
        let mut rows = SourceRows::begin(frame.source, before, &mut scratch.changed).stored(self.unpacking(frame));
        let kept = &mut scratch.kept;
        kept.begin();
        work(&mut scratch.between, &mut |y, row| {
            (self.head.row)(&head, &mut rows, kept, y, row);
            after.apply(y, row);
        });
    }

    /// How the source is read where it is not stored as pixels.
    fn unpacking<'a>(&self, frame: &Frame<'a>) -> Option<(&'static Stored, Unpacking<'a>)> {
        let (stored, part) = self.from?;
        let source = frame.source?;
        let (format, bytes) = source.bytes()?;
        debug_assert_eq!(format, stored.format, "a picture is stored as its program reads it");
        Some((stored, Unpacking::of(format, source.size, bytes, Way::numbered(frame.words[part.start]), self.level)))
    }

    /// Whether [`Program::edit`] can take the place of [`Program::band`]: every pixel depends on the source's at the
    /// same place alone.
    pub fn edits_in_place(&self) -> bool {
        self.loads_only() && self.into.is_none()
    }

    /// Whether every pixel behind the head is the source's at the same place, as it is.
    fn loads_only(&self) -> bool {
        std::ptr::eq(self.head, &raw const LOAD) && self.before.is_empty() && self.from.is_none()
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
