//! Reading and printing graphs: the pipeline grammar, TOML, and the mistakes found on the way.
//!
//! Owns both text forms in both directions.
//! Does not check what a graph means; it only asks the catalogue which kinds take a bare setting.

mod mistake;

pub use mistake::{Mistake, Mistakes, Source};
