//! Sources: handlers that read frames from files or devices, or generate them.

pub mod app;
pub mod camera;
pub mod image;
pub mod pattern;
pub mod raw;
pub mod video;
pub mod y4m;

mod frame_reader;

use vramp_runtime::Kind;

use crate::probe;

/// Every handler of this family.
pub(crate) fn kinds() -> Vec<Kind> {
    vec![
        Kind::new(&pattern::ENTRY, pattern::make),
        Kind::new(&image::ENTRY, image::make).probed(probe::image),
        Kind::new(&y4m::ENTRY, y4m::make).probed(probe::y4m),
        Kind::new(&raw::ENTRY, raw::make).probed(probe::raw),
        Kind::new(&app::ENTRY, app::make),
        Kind::planned(&camera::ENTRY),
        Kind::planned(&video::ENTRY).probed(probe::video),
    ]
}
