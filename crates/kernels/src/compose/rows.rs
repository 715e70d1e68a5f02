//! The host's side: one loop over rows, each going through every function while it is in the cache.
//!
//! Owns the loop over a band of rows.
//! Does not spread bands over threads: whoever has the threads does, with [`Program::band`].
//!
//! Always: every row of the band is completely written; a function is visited only where it has an effect.

use vramp_plan::Size;

use crate::function::FnArgs;
use crate::head::{Applied, HeadArgs, Kept, SourceRows};
use crate::picture::{Picture, Pixel};

use super::{Layout, Part, Recipe};

/// A recipe, ready to run over rows.
#[derive(Debug, Clone)]
pub struct Program {
    recipe: Recipe,
    layout: Layout,
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

impl Program {
    pub(super) fn of(recipe: &Recipe) -> Program {
        Program { recipe: recipe.clone(), layout: recipe.layout() }
    }

    /// Computes rows `first..` of a frame into `pixels`, which holds whole rows of the output.
    pub fn band(&self, frame: &Frame<'_>, first: u32, pixels: &mut [Pixel]) {
        let source = frame.source.map_or(frame.size, |p| p.size);
        let mut sides = frame.sides.iter().copied();
        let applied = |function: &&'static crate::function::PixelFn,
                       place: &Part,
                       size: Size,
                       sides: &mut dyn Iterator<Item = _>| {
            let side = if function.side { sides.next() } else { None };
            Applied { function, args: args(frame, *place, size), side }
        };
        let before = self.recipe.before.iter().zip(&self.layout.before);
        let before: Vec<_> = before.map(|(f, at)| applied(f, at, source, &mut sides)).collect();
        let after = self.recipe.after.iter().zip(&self.layout.after);
        let after: Vec<_> = after.map(|(f, at)| applied(f, at, frame.size, &mut sides)).collect();
        let head = HeadArgs { frame: args(frame, self.layout.head, frame.size), source };
        let mut rows = SourceRows::new(frame.source, before);
        let mut kept = Kept::default();
        for (y, row) in (first..).zip(pixels.chunks_exact_mut(frame.size.width as usize)) {
            (self.recipe.head.row)(&head, &mut rows, &mut kept, y, row);
            for function in &after {
                function.apply(y, row);
            }
        }
    }
}

fn args<'a>(frame: &Frame<'a>, place: Part, size: Size) -> FnArgs<'a> {
    let small = place.small.map_or(&[][..], |at| frame.small.get(frame.words[at] as usize..).unwrap_or(&[]));
    FnArgs { words: &frame.words[place.start..place.start + place.words], small, size }
}
