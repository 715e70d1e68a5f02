//! Sinks: take frames out, into files, windows or nowhere.
//!
//! Owns one declaration per sink.
//! Does not encode or show anything here.

pub mod jpeg;
pub mod null;
pub mod png;
pub mod raw;
pub mod terminal;
pub mod video;
pub mod window;
pub mod y4m;
