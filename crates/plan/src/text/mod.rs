//! Reading and printing graphs: the pipeline grammar, TOML, and the mistakes found on the way.
//!
//! Owns both text forms in both directions.
//! Does not check what a graph means; it only asks the catalogue which kinds take a bare setting.
//!
//! Always: a reading ends, whatever the text, with all that was wrong (up to a cap) and all that could be read;
//! what is printed reads back as the same graph.

mod draft;
pub(crate) mod foreign;
mod lexer;
mod mistake;
mod parse;
mod print;
mod toml_read;
mod toml_write;

pub(crate) use draft::clip;
pub use mistake::{Mistake, Mistakes, SourceText};
pub use parse::read_text;
pub use print::write_text;
pub use toml_read::read_toml;
pub use toml_write::write_toml;

use crate::graph::GraphSpec;

/// What a text said: the graph as far as it could be read, and everything that was wrong.
///
/// The graph is what the text says only when there are no mistakes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedGraph {
    /// What could be read.
    pub spec: GraphSpec,
    /// What was wrong, in the order of the text.
    pub mistakes: Vec<Mistake>,
}

/// Longer texts are refused unread.
const MAX_TEXT_BYTES: usize = 8 << 20;
/// A text may have this many links: enough to feed eight inputs of every handler twice over.
const MAX_LINKS: usize = 16 * GraphSpec::MAX_HANDLERS;
/// The deepest link that can be written.
const MAX_DEPTH: u32 = crate::graph::LinkSpec::MAX_DEPTH;
/// After this many mistakes a reading ends.
const MAX_MISTAKES: usize = 200;
