//! The integration tests of vramp-cli, as one binary: its dependencies are linked once and not per file.
//!
//! `cargo test -p vramp-cli --test integration run::` runs one file.

// Shared by several files.
mod desktop;
#[expect(dead_code, reason = "the tests of the facade use the rest")]
mod onnx_file;
mod program;
#[cfg(unix)]
mod terminal;

mod bench;
mod calibrate;
#[cfg(unix)]
mod control;
#[cfg(unix)]
mod cookbook;
mod demo;
mod devices;
mod doctor;
mod examples;
mod files;
mod fmt;
#[cfg(unix)]
mod follow;
mod input;
mod inspect;
mod latency;
mod memory;
mod messages;
mod model;
mod networks;
mod plan;
mod recovery;
mod report;
mod residency;
mod run;
mod run_verify;
mod streams;
mod top;
mod trace;
mod video;
mod wgsl;
#[cfg(target_os = "linux")]
mod window;
