//! `jpeg`: writes JPEG files, one per frame. Alpha is dropped, and the colours are not blended with a background.
//!
//! A file has its final name only once it is complete. Below quality 90, chroma has half the resolution of luma;
//! from quality 90 on, chroma has the full resolution.

use jpeg_encoder::{ChromaSubsamplingMethod, ColorType, Encoder};
use vramp_plan::catalog::{Class, Entry, Input, PathUse, PortMedia, Setting, Units, Work};
use vramp_plan::{Format, Size};
use vramp_runtime::{Call, Flow, FrameHandler, HandlerError, NoMemory, Setup, StartContext, Worker, foreign};

use super::pictures::{Encoded, Pictures};

pub static ENTRY: Entry = Entry {
    name: "jpeg",
    about: "writes JPEG files, one per frame",
    example: "pattern frames=3 ! jpeg path=out-%04d.jpg quality=85",
    inputs: &[Input { media: PortMedia::video(&[Format::Rgba8, Format::Rgb8]), ..Input::VIDEO }],
    settings: &[
        Setting::path("path", PathUse::WriteNumbered, "file name; %04d stands for the frame number"),
        Setting::int("quality", 1..=100, "quality from 1 (smallest file) to 100 (least loss)").default("90"),
    ],
    bare: Some("path"),
    check: |settings| Pictures::check("jpeg", settings.text("path").unwrap_or_default()),
    work: Work { class: Class::Codec, units: Units::PerPixel(1.0) },
    ..Entry::SINK
};

struct Jpeg {
    settings: Settings,
    state: State,
}

struct Settings {
    quality: u8,
}

struct State {
    pictures: Pictures,
    /// A frame without row padding.
    bare: Vec<u8>,
}

#[derive(Debug, thiserror::Error)]
enum JpegError {
    #[error(
        "a side of a JPEG can have at most {} pixels; put `resize` or `crop` before `jpeg`, or write png",
        u16::MAX
    )]
    TooLarge,
    #[error("a JPEG cannot hold {0}; put `convert format=rgb8` before `jpeg`")]
    Format(Format),
    #[error(transparent)]
    Encode(#[from] jpeg_encoder::EncodingError),
    #[error(transparent)]
    NoMemory(#[from] NoMemory),
}

impl FrameHandler for Jpeg {
    fn start(&mut self, _: &mut StartContext<'_>) -> Result<(), HandlerError> {
        self.state.pictures.start().map_err(HandlerError::failed)
    }

    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let Some(frame) = call.input(0) else { return Ok(Flow::Filtered) };
        let (format, size, pixels) = (frame.meta().picture().format, frame.meta().picture().size, frame.bytes());
        let State { pictures, bare } = &mut self.state;
        let quality = self.settings.quality;
        let encoded =
            |into: Encoded<'_>| encode(format, size, without_padding(format, size, &pixels, bare)?, quality, into);
        pictures.write(call.now().number, size, encoded).map_err(HandlerError::failed)?;
        Ok(Flow::Produced)
    }
}

/// Rows without padding: the frame itself if it has no padding, otherwise a copy in `bare`.
fn without_padding<'a>(
    format: Format,
    size: Size,
    pixels: &'a [u8],
    bare: &'a mut Vec<u8>,
) -> Result<&'a [u8], NoMemory> {
    let Some(plane) = format.planes(size).next().filter(|plane| plane.row_bytes != plane.stride) else {
        return Ok(pixels);
    };
    bare.clear();
    NoMemory::reserve(bare, (plane.row_bytes * plane.rows) as usize)?;
    for row in 0..plane.rows {
        let start = (plane.start + row * plane.stride) as usize;
        bare.extend_from_slice(&pixels[start..start + plane.row_bytes as usize]);
    }
    Ok(bare)
}

fn encode(format: Format, size: Size, pixels: &[u8], quality: u8, into: Encoded<'_>) -> Result<(), JpegError> {
    let colours = match format {
        Format::Rgba8 => ColorType::Rgba,
        Format::Rgb8 => ColorType::Rgb,
        other => return Err(JpegError::Format(other)),
    };
    let side = |pixels: u32| u16::try_from(pixels).map_err(|_| JpegError::TooLarge);
    let (width, height) = (side(size.width)?, side(size.height)?);
    foreign(|| {
        let mut encoder = Encoder::new(into, quality);
        // By default the encoder takes the chroma of one pixel out of four, not their mean, so that colour edges
        // flicker.
        encoder.set_chroma_subsampling_method(ChromaSubsamplingMethod::Average);
        encoder.encode(pixels, width, height, colours)
    })?;
    Ok(())
}

pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    let pictures = Pictures::at(setup.settings.text("path").unwrap_or_default()).map_err(HandlerError::failed)?;
    let quality = setup.settings.int("quality").and_then(|quality| u8::try_from(quality).ok()).unwrap_or(90);
    Ok(Worker::frames(Jpeg { settings: Settings { quality }, state: State { pictures, bare: Vec::new() } }))
}
