//! The built-in handlers: sources, filters, drawing, conversions, controls and sinks. Each family is a module with one
//! file per handler.
//!
//! [`registry`] returns all handlers. The crate also probes the headers of sources for the planner, without decoding
//! pixels ([`probe`]), and checks that a run does not overwrite its own files ([`files`]). A handler that computes with
//! tensors implements [`TensorHandler`].

pub mod app;
pub mod control;
pub mod convert;
pub mod draw;
pub mod files;
pub mod filter;
pub mod probe;
pub mod sink;
pub mod source;

mod letters;
mod orientation;
mod patient;
mod picture_file;
mod tensor_handler;
mod unhurried;
mod visible;

use vramp_runtime::{Kind, Registry};

pub use tensor_handler::{TensorFrames, TensorHandler, tensors};
pub use unhurried::Unhurried;

/// All built-in handlers. The planner inserts `convert` where formats differ.
pub fn registry() -> Registry {
    let families: [fn() -> Vec<Kind>; 6] =
        [source::kinds, filter::kinds, draw::kinds, convert::kinds, control::kinds, sink::kinds];
    let mut registry =
        Registry::of(families.iter().flat_map(|kinds| kinds())).expect("tests/catalog.rs registers every kind");
    registry.set_converter(convert::convert::ENTRY.name).expect("tests/catalog.rs sets the converter");
    registry
}
