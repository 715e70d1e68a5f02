//! Folding: neighbouring tables of a recipe become one table.
//!
//! Only tables fold: one table applied after another is again a table of 256 entries. Merging other functions would
//! omit the rounding between them, which would change pixels. A setting that changes between frames changes parameter
//! words only, never the folded recipe.

use crate::function::Function;
use crate::pixel::table::TABLE;

use super::{FrameParams, ParamPart, Recipe};

/// A recipe without neighbouring tables, and where each function of the original recipe went.
#[derive(Debug, Clone)]
pub struct Folded {
    pub recipe: Recipe,
    /// For each function before the head of the original recipe, its place in `recipe.before`.
    pub before: Vec<FunctionPlace>,
    /// For each function after the head of the original recipe, its place in `recipe.after`.
    pub after: Vec<FunctionPlace>,
}

/// The place of an original function in the folded recipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionPlace {
    /// Index of the function that does the work of the original function.
    pub function: usize,
    /// Whether the original function is the first at this place. Later functions at the same place are folded into the
    /// first.
    pub first: bool,
}

impl FunctionPlace {
    /// Writes the words and small data of an original function to its place. `parts` belong to the folded recipe. Call
    /// this in the order of the functions, because each table is composed with the tables before it.
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
    /// Returns this recipe with neighbouring tables folded into one.
    pub fn folded(&self) -> Folded {
        let (before_head, before) = folded(&self.before);
        let (after_head, after) = folded(&self.after);
        let recipe = Recipe { before: before_head, after: after_head, ..self.clone() };
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
