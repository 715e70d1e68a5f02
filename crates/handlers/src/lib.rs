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
pub mod model;
pub mod probe;
pub mod sink;
pub mod source;

mod letters;
mod orientation;
mod patient;
mod picture_file;
mod tensor_handler;
mod unhurried;
mod videos;
mod visible;

use vramp_media::Tools;
use vramp_runtime::{Kind, Registry};

pub use letters::{PaintedLine, PaintedText, TextPainter};
pub use tensor_handler::{TensorFrames, TensorHandler, tensors};
pub use unhurried::Unhurried;
pub use videos::Videos;

/// All built-in handlers. The planner inserts `convert` where formats differ.
pub fn registry() -> Registry {
    let videos = Videos::default();
    let families: [Vec<Kind>; 7] = [
        source::kinds(&videos),
        filter::kinds(),
        draw::kinds(),
        convert::kinds(),
        model::kinds(),
        control::kinds(),
        sink::kinds(&videos),
    ];
    let mut registry = Registry::of(families.into_iter().flatten()).expect("tests/catalog.rs registers every kind");
    registry.set_converter(convert::convert::ENTRY.name).expect("tests/catalog.rs sets the converter");
    registry
}

/// The registry with `video` and `camera` through this ffmpeg.
#[must_use]
pub fn with_ffmpeg(registry: &Registry, ffmpeg: Tools) -> Registry {
    let videos = Videos::new(ffmpeg);
    let kinds = source::through_ffmpeg(&videos).into_iter().chain([sink::through_ffmpeg(&videos)]);
    kinds.fold(registry.clone(), |registry, kind| registry.replaced(&kind))
}
