//! Sources: handlers that read frames from files or devices, or generate them.

pub mod app;
pub mod camera;
pub mod image;
pub mod pattern;
pub mod raw;
pub mod video;
pub mod y4m;

mod frame_reader;
mod playback;

use vramp_runtime::Kind;

use crate::probe;
use crate::videos::Videos;

/// Every handler of this family.
pub(crate) fn kinds(videos: &Videos) -> Vec<Kind> {
    let mut kinds = vec![
        Kind::new(&pattern::ENTRY, pattern::make),
        Kind::new(&image::ENTRY, image::make).probed(probe::image),
        Kind::new(&y4m::ENTRY, y4m::make).probed(probe::y4m),
        Kind::new(&raw::ENTRY, raw::make).probed(probe::raw),
        Kind::new(&app::ENTRY, app::make),
    ];
    kinds.extend(through_ffmpeg(videos));
    kinds
}

/// The handlers that use ffmpeg.
pub(crate) fn through_ffmpeg(videos: &Videos) -> [Kind; 2] {
    let [camera, look_at_camera, video, look_at_video] = std::array::from_fn(|_| videos.clone());
    [
        Kind::new(&camera::ENTRY, move |setup| Ok(camera::make(&camera, setup)))
            .probed(move |settings| camera::probe(&look_at_camera, settings)),
        Kind::new(&video::ENTRY, move |setup| Ok(video::make(&video, setup)))
            .probed(move |settings| video::probe(&look_at_video, settings)),
    ]
}
