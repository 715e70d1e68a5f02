//! Folding: neighbouring tables become one.
//!
//! Owns which functions of a recipe share a place, and how their words come together there.
//! Does not fold anything but tables: what else is rounded in between has to be computed in between.
//!
//! Always: folded or not, the result is the same; a setting that changes between frames changes words only.

use crate::function::Function;
use crate::pixel::table::TABLE;

use super::{FrameParams, ParamPart, Recipe};

/// A recipe without neighbouring tables, and where the functions of the longer one went.
#[derive(Debug, Clone)]
pub struct Folded {
    /// The shorter recipe.
    pub recipe: Recipe,
    /// Where each function in front of the longer one's head went.
    pub before: Vec<FunctionPlace>,
    /// Where each function behind it went.
    pub after: Vec<FunctionPlace>,
}

/// Where a function went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionPlace {
    /// The number of the function that does its work.
    pub function: usize,
    /// Whether nothing stands there before it.
    pub first: bool,
}

impl FunctionPlace {
    /// Gives a function's place its words and small data; `parts` are the shorter recipe's. In the order of the
    /// functions, since a table is folded behind what is there.
    pub fn set(self, parts: &[ParamPart], words: &[u32], small: &[u32], params: &mut FrameParams) {
        let part = parts[self.function];
        if self.first {
            params.set(part, words, small);
        } else {
            params.fold(part, words);
        }
    }
}

impl Recipe {
    /// The same with neighbouring tables folded into one.
    pub fn folded(&self) -> Folded {
        let (front, before) = folded(&self.before);
        let (behind, after) = folded(&self.after);
        let recipe = Recipe { before: front, after: behind, ..self.clone() };
        Folded { recipe, before, after }
    }
}

fn folded(functions: &[Function]) -> (Vec<Function>, Vec<FunctionPlace>) {
    let mut kept: Vec<Function> = Vec::new();
    let mut places = Vec::new();
    for function in functions {
        let is_table = |f: &Function| matches!(f, Function::Both(f) if std::ptr::eq(*f, &raw const TABLE));
        let first = !(is_table(function) && kept.last().is_some_and(is_table));
        if first {
            kept.push(function.clone());
        }
        places.push(FunctionPlace { function: kept.len() - 1, first });
    }
    (kept, places)
}
