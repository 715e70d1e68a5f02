//! The parameter layout of a kernel: the offset of every part's words.
//!
//! The order is: the frame's header, the head, the functions before the head, the functions after the head, the
//! formats. Every part starts at a multiple of four words. A part with small data has one word more: the offset of its
//! small data.

use crate::stored::{LOAD_WORDS, STORE_WORDS};

use super::Recipe;

/// Words of the header: width and height of the output, width and height of the source, low and high word of the frame
/// number, two unused words.
pub(super) const HEADER_WORDS: usize = 8;

/// The parameter words of one part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParamPart {
    /// Index of the part's first word.
    pub start: usize,
    /// Number of words, without the word for small data.
    pub words: usize,
    /// Index of the word that holds the offset of the part's small data. This word follows the part's own words. `None`
    /// if the part has no small data.
    pub small: Option<usize>,
}

/// The parameter words of all parts of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamLayout {
    pub head: ParamPart,
    /// One part per function before the head.
    pub before: Vec<ParamPart>,
    /// One part per function after the head.
    pub after: Vec<ParamPart>,
    /// The source's format; `None` for rgba8.
    pub from: Option<ParamPart>,
    /// The output's format; `None` for rgba8.
    pub into: Option<ParamPart>,
    /// Total number of words; a multiple of four.
    pub words: usize,
    /// Words of the header at the start. Zero for a user's kernel, whose uniform declares the values that the kernel
    /// needs.
    pub(super) header: usize,
}

impl ParamLayout {
    pub(super) fn of(recipe: &Recipe) -> ParamLayout {
        if let Some(kernel) = &recipe.whole {
            let head = ParamPart { start: 0, words: kernel.words(), small: None };
            let (before, after) = (Vec::new(), Vec::new());
            return ParamLayout { head, before, after, from: None, into: None, words: kernel.words(), header: 0 };
        }
        let mut next = HEADER_WORDS;
        let mut part = |words: usize, small: bool| {
            let part = ParamPart { start: next, words, small: small.then_some(next + words) };
            next = (next + words + usize::from(small)).next_multiple_of(4);
            part
        };
        ParamLayout {
            head: part(recipe.head.words, recipe.head.small),
            before: recipe.before.iter().map(|f| part(f.words(), f.small())).collect(),
            after: recipe.after.iter().map(|f| part(f.words(), f.small())).collect(),
            from: recipe.from.map(|_| part(LOAD_WORDS, false)),
            into: recipe.into.map(|_| part(STORE_WORDS, false)),
            words: next,
            header: HEADER_WORDS,
        }
    }
}
