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

mod frame_writer;
mod outlet;
mod pictures;

use vramp_runtime::Kinds;

/// Says how the handlers of this family are made.
pub(crate) fn register(kinds: &mut Kinds) {
    kinds.makes(&null::ENTRY, null::make);
    kinds.makes(&png::ENTRY, png::make);
    kinds.makes(&jpeg::ENTRY, jpeg::make);
    kinds.makes(&y4m::ENTRY, y4m::make);
    kinds.makes(&raw::ENTRY, raw::make);
    kinds.makes(&terminal::ENTRY, terminal::make);
}
