//! The integration tests of the crate `vramp`, as one binary, so that dependencies are linked once.
//!
//! `cargo test --test integration engine::` runs one file.

// Modules that several test files share.
mod ran;
mod shared;
mod source;

mod app;
mod budgets;
mod calibrate;
mod choosing;
mod compositor;
mod endings;
mod engine;
mod faults;
mod formats;
mod handler_faults;
mod harness;
mod lessons;
mod live;
mod models;
mod notes_in_text;
mod payloads;
mod pipeline;
mod pixel_data;
mod random;
mod readme;
mod recovery;
mod replace_graph;
mod report;
mod running;
mod services;
mod shipped;
mod snapshot;
mod soak;
mod tensor_frames;
mod tidy;
mod times;
mod trace;
mod twins;
mod variants;
mod verify;
mod walls;
mod way_in;
mod wgsl;
mod y4m;

/// Counts the allocations of frames.
#[global_allocator]
static HEAP: vramp::runtime::CountingAllocator = vramp::runtime::CountingAllocator;
