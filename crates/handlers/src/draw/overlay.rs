//! `overlay`: draws an image file over every frame.
//!
//! As in the source `image`, the image is rotated as its EXIF data says. The image is not scaled. Frames keep their
//! size; parts of the image outside of the frame are not drawn.

use std::path::Path;

use vramp_kernels::pixel::overlay::{self, OVERLAY};
use vramp_plan::Size;
use vramp_plan::catalog::{self, Class, Entry, Family, PathUse, Setting, Units, Work};
use vramp_runtime::{Flow, HandlerError, NoMemory, ParamWriter, Part, PixelHandler, PixelInfo, Setup, Worker};

use crate::picture_file::{self, PictureError};

use super::OFFSET;
use super::{boxed, whole};

pub static ENTRY: Entry = Entry {
    name: "overlay",
    family: Family::Draw,
    about: "draws an image file over every frame",
    example: "pattern ! overlay path=logo.png x=-20 y=20 alpha=0.8 ! null",
    settings: &[
        Setting::path("path", PathUse::Read, "image file, rotated as its EXIF data says").live(),
        Setting::int("x", OFFSET, "distance from the left in pixels; a negative value is the distance from the right")
            .default("0")
            .live(),
        Setting::int("y", OFFSET, "distance from the top in pixels; a negative value is the distance from the bottom")
            .default("0")
            .live(),
        Setting::number("alpha", 0.0..=1.0, "opacity from 0 to 1, multiplied by the image's alpha").default("1").live(),
    ],
    bare: Some("path"),
    work: Work { class: Class::Draw, units: Units::PerFrameBy(touched) },
    // The bytes of the largest image, assumed if the size of the image cannot be read from its file.
    small: Some(|_, _, _| 4 * MOST_PIXELS),
    ..Entry::FILTER
};

/// The image is not opened for this estimate; it is assumed to be a logo of 256x256 pixels.
fn touched(_: &catalog::SettingValues, _: Size, frame: Size) -> f64 {
    boxed(256.0, 256.0, frame)
}

/// Maximum number of pixels of the image: the image is in one binding of the device, and every device can bind 128 MiB.
pub(crate) const MOST_PIXELS: u64 = 32 << 20;

#[derive(Debug)]
struct Overlay {
    settings: Settings,
    state: State,
}

#[derive(Debug)]
struct Settings {
    x: i32,
    y: i32,
    alpha: f64,
}

impl Settings {
    fn of(setup: &Setup<'_>) -> Settings {
        let alpha = setup.settings.number("alpha").unwrap_or(1.0);
        Settings { x: whole(setup, "x", 0), y: whole(setup, "y", 0), alpha }
    }
}

/// The image, one word per pixel.
#[derive(Debug)]
struct State {
    size: Size,
    small: Vec<u32>,
}

impl PixelHandler for Overlay {
    fn parts(&self) -> Vec<Part> {
        vec![Part::Function(&OVERLAY)]
    }

    fn frame(&mut self, info: &PixelInfo<'_>, give: &mut ParamWriter<'_>) -> Result<Flow, HandlerError> {
        let Overlay { settings, state } = self;
        let left = overlay::resolve(settings.x, state.size.width, info.size.width);
        let top = overlay::resolve(settings.y, state.size.height, info.size.height);
        give.part(&overlay::pack(left, top, state.size, settings.alpha), &state.small);
        Ok(Flow::Produced)
    }
}

pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    let path = setup.settings.text("path").unwrap_or_default();
    let state = load(path).map_err(HandlerError::failed)?;
    Ok(Worker::pixels(Overlay { settings: Settings::of(setup), state }))
}

#[derive(Debug, thiserror::Error)]
enum OverlayError {
    #[error("`{path}` cannot be read: {error}; check the path")]
    Unreadable { path: String, error: std::io::Error },
    #[error("`{path}` is not a file; give an image file")]
    NoFile { path: String },
    #[error("`{path}` cannot be used as an overlay: {error}")]
    NoPicture { path: String, error: PictureError },
    #[error("`{path}`: {error}")]
    NoMemory { path: String, error: NoMemory },
}

/// Refuses images that are too large for an overlay or for the available memory.
fn fits(size: Size) -> Result<(), PictureError> {
    if size.pixels() > MOST_PIXELS {
        return Err(PictureError::TooLarge { size, most: MOST_PIXELS });
    }
    // At most 20 bytes per pixel: for the stored pixels, the rgba8 pixels and the words for kernels together.
    Ok(NoMemory::probe(20 * size.pixels())?)
}

/// Reads an image. Its header is read first: an image that is too large is not decoded.
fn load(path: &str) -> Result<State, OverlayError> {
    let unreadable = |error| OverlayError::Unreadable { path: path.to_owned(), error };
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(OverlayError::NoFile { path: path.to_owned() });
    }
    let no_memory = |error| OverlayError::NoMemory { path: path.to_owned(), error };
    let mut bytes = Vec::new();
    picture_file::read(Path::new(path), &mut bytes).map_err(unreadable)?;
    let (size, pixels) = picture_file::first(bytes, fits).map_err(|error| match error {
        PictureError::NoMemory(error) => no_memory(error),
        error => OverlayError::NoPicture { path: path.to_owned(), error },
    })?;
    let mut small = Vec::new();
    NoMemory::reserve(&mut small, size.pixels() as usize).map_err(no_memory)?;
    small.extend(overlay::small(pixels.as_chunks::<4>().0));
    Ok(State { size, small })
}
