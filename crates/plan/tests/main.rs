//! The integration tests of vramp-plan as one binary, so that its dependencies are linked once and not per file.
//!
//! `cargo test -p vramp-plan --test integration text_reading::` runs one file.

// Modules that several files share.
mod support;
mod text_kinds;

mod algebra;
mod counts;
mod depth;
mod explain;
mod latency;
mod memory;
mod placement;
mod render;
mod text_hostile;
mod text_reading;
mod text_roundtrip;
mod wiring;
