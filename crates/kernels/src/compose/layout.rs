//! Layout: where each part of a kernel finds its parameter words.
//!
//! Owns the order: the frame's header, the head, the functions in front, the functions behind, formats.
//! Does not fill anything in.
//!
//! Always: every part starts at a multiple of four words; a part with small data has one more word, its place there.

use crate::stored::{LOAD_WORDS, STORE_WORDS};

use super::Recipe;

/// Words of the header: size of the output, size of the source, frame number (low, high), two unused.
pub(super) const HEADER_WORDS: usize = 8;

/// One part's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParamPart {
    /// The first of its words.
    pub start: usize,
    /// How many it has of its own.
    pub words: usize,
    /// Where the place of its small data is written, if it has any: right behind its own.
    pub small: Option<usize>,
}

/// Where everything is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamLayout {
    /// The head's place.
    pub head: ParamPart,
    /// Those of the functions in front.
    pub before: Vec<ParamPart>,
    /// Those of the functions behind.
    pub after: Vec<ParamPart>,
    /// That of the format which the source is stored in; none for rgba8.
    pub from: Option<ParamPart>,
    /// That of the format which the output is stored in; none for rgba8.
    pub into: Option<ParamPart>,
    /// Words in all; a multiple of four.
    pub words: usize,
    /// Words of the header in front; none where a user's kernel says itself what it wants to know.
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
