//! Joins the parts of several handlers into one kernel recipe: the head, which produces pixels, the functions before
//! and after the head, which change pixels, and the stored formats of input and output.
//!
//! Nothing is compiled here. `places` are in the order in which handlers write their parameters.

use vramp_kernels::head::load_here::LOAD;
use vramp_kernels::{ParamLayout, Recipe, RowProgram};

use crate::handler::{ParamPlace, Part};

#[derive(Clone)]
pub(crate) struct FusedRecipe {
    pub(crate) recipe: Recipe,
    pub(crate) layout: ParamLayout,
    pub(crate) program: RowProgram,
    pub(crate) places: Vec<ParamPlace>,
}

impl FusedRecipe {
    /// Joins the parts of handlers, in order.
    pub(crate) fn of(parts: &[Vec<Part>]) -> FusedRecipe {
        let is_head = |part: &Part| matches!(part, Part::Head(_) | Part::HeadOf(..) | Part::Whole(_));
        let head_at = parts.iter().position(|parts| parts.iter().any(is_head));
        let is_before_head = |at: usize| head_at.is_some_and(|head| at < head);
        let mut recipe = Recipe::of(&LOAD);
        for (at, parts) in parts.iter().enumerate() {
            let functions = if is_before_head(at) { &mut recipe.before } else { &mut recipe.after };
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
        let place = |parts: &[vramp_kernels::ParamPart], to: &vramp_kernels::FunctionPlace| ParamPlace {
            part: parts[to.function],
            folds: !to.first,
        };
        let mut before = folded.before.iter().map(|to| place(&layout.before, to));
        let mut after = folded.after.iter().map(|to| place(&layout.after, to));
        let mut places = Vec::new();
        for (at, parts) in parts.iter().enumerate() {
            for part in parts {
                places.extend(match part {
                    Part::From(_) => layout.from.map(|part| ParamPlace { part, folds: false }),
                    Part::Into(_) => layout.into.map(|part| ParamPlace { part, folds: false }),
                    part if is_head(part) => Some(ParamPlace { part: layout.head, folds: false }),
                    _ if is_before_head(at) => before.next(),
                    _ => after.next(),
                });
            }
        }
        drop((before, after));
        FusedRecipe { program: folded.recipe.program(), recipe: folded.recipe, layout, places }
    }
}
