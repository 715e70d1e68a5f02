//! The integration tests of vramp-tensor as one binary, so that dependencies are linked once and not once per file.
//!
//! `cargo test -p vramp-tensor --test integration twins::` runs one file.

// Shared by several files.
mod classic_parts;
mod fixtures;
mod guide;
mod sides;

mod classic;
mod classic_devices;
mod classic_monitor;
mod deep;
mod elementwise;
mod files;
mod folder;
mod hand_out;
mod ledger_laws;
mod own_shaders;
mod profile;
mod references;
mod shaders;
mod store;
mod store_loom;
mod store_loss;
mod store_memory;
mod store_names;
mod store_threads;
mod tensors;
mod twins;
