//! The integration tests of vramp-runtime, as one binary, so that its dependencies are linked once.
//!
//! `cargo test -p vramp-runtime --test integration rings::` runs one file.

mod groups;
mod rings;
mod wake_signal;
mod wake_signal_model;
