//! The integration tests of vramp-handlers, as one binary: its dependencies are linked once and not per file.
//!
//! `cargo test -p vramp-handlers --test integration catalog::` runs one file.

// Shared by several files.
mod easel;
mod files_rig;
mod setup;

mod catalog;
mod controls;
mod convert;
mod drawing;
mod examples;
mod files_sinks;
mod files_sources;
mod files_steady;
mod files_streams;
mod filters;
mod hand_over_model;
mod jpeg;
mod letters;
mod passes;
mod probe_files;
mod probe_process;

/// Counts allocations per frame.
#[global_allocator]
static HEAP: vramp_runtime::CountingAllocator = vramp_runtime::CountingAllocator;
