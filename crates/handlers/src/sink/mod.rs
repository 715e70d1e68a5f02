//! Sinks: handlers that write frames to files, show them or drop them.

pub mod app;
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

use vramp_runtime::Kind;

/// Every handler of this family.
pub(crate) fn kinds() -> Vec<Kind> {
    vec![
        Kind::new(&null::ENTRY, null::make),
        Kind::new(&app::ENTRY, app::make),
        Kind::new(&png::ENTRY, png::make),
        Kind::new(&jpeg::ENTRY, jpeg::make),
        Kind::new(&y4m::ENTRY, y4m::make),
        Kind::new(&raw::ENTRY, raw::make),
        Kind::new(&terminal::ENTRY, terminal::make),
        Kind::planned(&video::ENTRY),
        Kind::planned(&window::ENTRY),
    ]
}
