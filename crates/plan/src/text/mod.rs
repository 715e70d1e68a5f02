//! Reading and printing graphs in both text forms: the pipeline grammar and TOML.
//!
//! The meaning of the graph is checked elsewhere. The reader of the pipeline grammar needs the catalogue to tell kinds
//! from bare values.
//!
//! Invariants: reading ends for any text, and returns all mistakes (up to a limit) and the part of the graph that could
//! be read. Printed text reads back as the same graph.

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

/// The graph as far as it could be read, and all mistakes.
///
/// The spec is complete only if there are no mistakes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedGraph {
    pub spec: GraphSpec,
    /// In the order of the text.
    pub mistakes: Vec<Mistake>,
}

/// A longer text is refused and not read.
const MAX_TEXT_BYTES: usize = 8 << 20;
/// The maximum number of links in a text: enough for two links into each of eight inputs of every handler.
const MAX_LINKS: usize = 16 * GraphSpec::MAX_HANDLERS;
/// The maximum depth of a link.
const MAX_DEPTH: u32 = crate::graph::LinkSpec::MAX_DEPTH;
/// Reading stops after this many mistakes.
const MAX_MISTAKES: usize = 200;
