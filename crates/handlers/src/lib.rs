//! The built-in handlers: sources, filters, drawing, conversions, controls and sinks.
//!
//! Owns one declaration per handler, by family and one file each, the look into a source's header that planning needs,
//! and the check that a run does not write over its own files ([`files`]).
//! Does not plan, and does not open a device.
//!
//! Always: [`catalog`] holds every handler there is here; a probe reads headers, never pixels.

pub mod control;
pub mod convert;
pub mod draw;
pub mod files;
pub mod filter;
pub mod probe;
pub mod sink;
pub mod source;

mod declare;
mod letters;
mod orientation;
mod patient;
mod regular;
mod unhurried;

use vramp_plan::catalog::{Catalog, Entry};
use vramp_runtime::Kinds;

pub use probe::FileProbe;
pub use regular::{open_regular, read_regular_text};
pub use unhurried::Unhurried;

/// Every built-in handler, by family.
pub static ENTRIES: [&Entry; 51] = [
    &source::pattern::ENTRY,
    &source::image::ENTRY,
    &source::y4m::ENTRY,
    &source::video::ENTRY,
    &source::camera::ENTRY,
    &source::raw::ENTRY,
    &filter::brightness::ENTRY,
    &filter::contrast::ENTRY,
    &filter::gamma::ENTRY,
    &filter::saturation::ENTRY,
    &filter::hue::ENTRY,
    &filter::invert::ENTRY,
    &filter::grayscale::ENTRY,
    &filter::threshold::ENTRY,
    &filter::colormatrix::ENTRY,
    &filter::lut::ENTRY,
    &filter::chromakey::ENTRY,
    &filter::blur::ENTRY,
    &filter::boxblur::ENTRY,
    &filter::sharpen::ENTRY,
    &filter::convolve::ENTRY,
    &filter::edges::ENTRY,
    &filter::median::ENTRY,
    &filter::resize::ENTRY,
    &filter::crop::ENTRY,
    &filter::flip::ENTRY,
    &filter::rotate::ENTRY,
    &filter::warp::ENTRY,
    &filter::wgsl::ENTRY,
    &draw::overlay::ENTRY,
    &draw::markers::ENTRY,
    &draw::waveform::ENTRY,
    &draw::text::ENTRY,
    &draw::fps::ENTRY,
    &draw::compositor::ENTRY,
    &draw::mix::ENTRY,
    &convert::convert::ENTRY,
    &convert::upload::ENTRY,
    &convert::download::ENTRY,
    &control::identity::ENTRY,
    &control::delay::ENTRY,
    &control::every::ENTRY,
    &control::probe::ENTRY,
    &sink::null::ENTRY,
    &sink::png::ENTRY,
    &sink::jpeg::ENTRY,
    &sink::y4m::ENTRY,
    &sink::raw::ENTRY,
    &sink::video::ENTRY,
    &sink::window::ENTRY,
    &sink::terminal::ENTRY,
];

/// The catalogue of every built-in handler, with `convert` as the planner's converter.
pub fn catalog() -> Catalog {
    let mut catalog = Catalog::of(ENTRIES).expect("tests/catalog.rs registers every entry");
    catalog.set_converter(convert::convert::ENTRY.name).expect("tests/catalog.rs sets the converter");
    catalog
}

/// Every built-in handler, with how those that run are made.
pub fn kinds() -> Kinds {
    let mut kinds = Kinds::of(catalog());
    source::register(&mut kinds);
    filter::register(&mut kinds);
    draw::register(&mut kinds);
    convert::register(&mut kinds);
    control::register(&mut kinds);
    sink::register(&mut kinds);
    kinds
}
