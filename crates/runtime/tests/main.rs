//! The integration tests of vramp-runtime, as one binary: its dependencies are linked once and not per file.
//!
//! `cargo test -p vramp-runtime --test integration rings::` runs one file.

mod bell;
mod bell_model;
mod groups;
mod rings;
