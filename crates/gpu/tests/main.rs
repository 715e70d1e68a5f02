//! The integration tests of vramp-gpu as one binary, so that dependencies are linked once and not per file.
//!
//! `cargo test -p vramp-gpu --test integration pixels::` runs one file.

// Shared by several files.
mod room;

mod adopted;
mod loss;
mod one_place;
mod opening;
mod parts;
mod pixels;
mod pool_laws;
mod present;
mod recording_text;
mod refusals;
mod steady_state;
mod textures;
mod timing;
mod wiring;
