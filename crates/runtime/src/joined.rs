//! What the parts of several handlers become when they are joined into one kernel.
//!
//! Owns the order of the parts: functions in front of the head, the head, functions behind it; the formats of what is
//! read and written; and where each finds its parameters.
//! Does not hold handlers, and compiles nothing.
//!
//! Always: places are in the order in which handlers give their parameters.

use vramp_kernels::head::load_here::LOAD;
use vramp_kernels::{ParamLayout, Recipe, RowProgram};

use crate::handler::{GivenPlace, Part};

/// Parts that were joined.
pub(crate) struct Joined {
    pub(crate) recipe: Recipe,
    pub(crate) layout: ParamLayout,
    pub(crate) program: RowProgram,
    pub(crate) places: Vec<GivenPlace>,
}

impl Joined {
    /// Joins the parts of handlers, in order.
    pub(crate) fn of(parts: &[Vec<Part>]) -> Joined {
        let is_head = |part: &Part| matches!(part, Part::Head(_) | Part::HeadOf(..) | Part::Whole(_));
        let head_at = parts.iter().position(|parts| parts.iter().any(is_head));
        let is_before = |at: usize| head_at.is_some_and(|head| at < head);
        let mut recipe = Recipe::of(&LOAD);
        for (at, parts) in parts.iter().enumerate() {
            let functions = if is_before(at) { &mut recipe.before } else { &mut recipe.after };
            for part in parts {
                match part {
                    Part::Head(head) => recipe.head = head,
                    Part::HeadOf(head, pictures) => (recipe.head, recipe.pictures) = (head, *pictures),
                    Part::Whole(kernel) => recipe.whole = Some(kernel.clone()),
                    Part::Function(function) => functions.push((*function).into()),
                    Part::Own(function) => functions.push(function.into()),
                    Part::From(stored) => recipe.from = Some(stored),
                    Part::Into(stored) => recipe.into = Some(stored),
                }
            }
        }
        let folded = recipe.folded();
        let layout = folded.recipe.layout();
        let place = |parts: &[vramp_kernels::ParamPart], to: &vramp_kernels::FunctionPlace| GivenPlace {
            part: parts[to.function],
            folds: !to.first,
        };
        let mut before = folded.before.iter().map(|to| place(&layout.before, to));
        let mut after = folded.after.iter().map(|to| place(&layout.after, to));
        let mut places = Vec::new();
        for (at, parts) in parts.iter().enumerate() {
            for part in parts {
                places.extend(match part {
                    Part::From(_) => layout.from.map(|part| GivenPlace { part, folds: false }),
                    Part::Into(_) => layout.into.map(|part| GivenPlace { part, folds: false }),
                    part if is_head(part) => Some(GivenPlace { part: layout.head, folds: false }),
                    _ if is_before(at) => before.next(),
                    _ => after.next(),
                });
            }
        }
        drop((before, after));
        Joined { program: folded.recipe.program(), recipe: folded.recipe, layout, places }
    }
}
