//! Sinks: handlers that write frames to files, show them or drop them.

pub mod app;
pub mod jpeg;
pub mod null;
pub mod png;
pub mod raw;
pub mod terminal;
pub mod values;
pub mod video;
pub mod window;
pub mod y4m;

mod frame_writer;
mod outlet;
mod pictures;

use vramp_runtime::Kind;

use crate::videos::Videos;

/// Every handler of this family.
pub(crate) fn kinds(videos: &Videos) -> Vec<Kind> {
    vec![
        Kind::new(&null::ENTRY, null::make),
        Kind::new(&app::ENTRY, app::make),
        Kind::new(&png::ENTRY, png::make),
        Kind::new(&jpeg::ENTRY, jpeg::make),
        Kind::new(&y4m::ENTRY, y4m::make),
        Kind::new(&raw::ENTRY, raw::make),
        Kind::new(&values::ENTRY, values::make),
        Kind::new(&terminal::ENTRY, terminal::make),
        through_ffmpeg(videos),
        Kind::new(&window::ENTRY, window::make),
    ]
}

/// The handler that uses ffmpeg.
pub(crate) fn through_ffmpeg(videos: &Videos) -> Kind {
    let videos = videos.clone();
    Kind::new(&video::ENTRY, move |setup| video::make(&videos, setup))
}
