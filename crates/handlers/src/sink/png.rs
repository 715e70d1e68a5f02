//! `png`: writes PNG files, one per frame, without loss. A file has its final name only once it is complete.

use std::io::Write as _;

use png::{BitDepth, ColorType, Compression, Encoder, EncodingError};
use vramp_plan::Size;
use vramp_plan::catalog::{Class, Entry, PathUse, Setting, Units, Work};
use vramp_runtime::{Call, Flow, FrameHandler, HandlerError, NoMemory, Setup, StartContext, Worker, foreign};

use super::pictures::{Encoded, Pictures};

pub static ENTRY: Entry = Entry {
    name: "png",
    about: "writes PNG files, one per frame",
    example: "pattern frames=3 ! png path=out-%04d.png",
    settings: &[
        Setting::path("path", PathUse::WriteNumbered, "file name; %04d stands for the frame number"),
        Setting::int("quality", 0..=100, "compression from 0 (fastest) to 100 (smallest file); always lossless")
            .optional(),
    ],
    bare: Some("path"),
    check: |settings| Pictures::check("png", settings.text("path").unwrap_or_default()),
    work: Work { class: Class::Codec, units: Units::PerPixel(1.0) },
    ..Entry::SINK
};

/// Chunk size for encoding when memory is short.
const PIECE_BYTES: usize = 32 << 10;

struct Png {
    settings: Settings,
    state: State,
}

struct Settings {
    compression: Compression,
}

struct State {
    pictures: Pictures,
}

impl FrameHandler for Png {
    fn start(&mut self, _: &mut StartContext<'_>) -> Result<(), HandlerError> {
        self.state.pictures.start().map_err(HandlerError::failed)
    }

    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let Some(frame) = call.input(0) else { return Ok(Flow::Filtered) };
        let (size, pixels, compression) = (frame.meta().picture().size, frame.bytes(), self.settings.compression);
        let encoded = |into: Encoded<'_>| foreign(|| encode(size, &pixels, compression, into));
        self.state.pictures.write(call.now().number, size, encoded).map_err(HandlerError::failed)?;
        Ok(Flow::Produced)
    }
}

fn encode(size: Size, pixels: &[u8], compression: Compression, into: Encoded<'_>) -> Result<(), EncodingError> {
    let mut encoder = Encoder::new(into, size.width, size.height);
    encoder.set_color(ColorType::Rgba);
    encoder.set_depth(BitDepth::Eight);
    encoder.set_compression(compression);
    let mut writer = encoder.write_header()?;
    // Encoding the whole frame at once is faster, but may take twice the memory of the frame.
    if NoMemory::probe(2 * pixels.len() as u64).is_ok() {
        writer.write_image_data(pixels)?;
    } else {
        let mut rows = writer.stream_writer_with_size(PIECE_BYTES)?;
        rows.write_all(pixels)?;
        rows.finish()?;
    }
    writer.finish()
}

pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    let pictures = Pictures::at(setup.settings.text("path").unwrap_or_default()).map_err(HandlerError::failed)?;
    let settings = Settings { compression: compression(setup.settings.int("quality")) };
    Ok(Worker::frames(Png { settings, state: State { pictures } }))
}

fn compression(quality: Option<i64>) -> Compression {
    match quality.unwrap_or(25) {
        ..=9 => Compression::Fastest,
        10..=49 => Compression::Fast,
        50..=89 => Compression::Balanced,
        _ => Compression::High,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_quality_is_never_less_effort() {
        let efforts: Vec<u8> = (0..=100).map(|quality| compression(Some(quality)) as u8).collect();
        assert!(efforts.is_sorted());
        assert!(matches!(compression(Some(0)), Compression::Fastest));
        assert!(matches!(compression(Some(100)), Compression::High));
    }
}
