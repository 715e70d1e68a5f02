//! `png`: lossless picture files.
//!
//! Owns where they go, which frame gets which name, and how hard to compress.
//! Does not change a pixel: quality is about time and bytes only.
//!
//! Always: a file has its final name only once it is complete. A path without a number is for one frame: a second one
//! is an error, since it would replace the first.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use png::{BitDepth, ColorType, Compression, Encoder, EncodingError};
use vramp_plan::Size;
use vramp_plan::catalog::{Class, Entry, Liveness, Status, Units, ValueType, Work};
use vramp_runtime::{Call, Flow, FrameHandler, HandlerError, Setup, Worker, foreign};

use super::outlet::{OutletError, Part, Target};
use crate::declare::{int, optional, required};

/// What `png` declares.
pub static ENTRY: Entry = Entry {
    name: "png",
    about: "writes PNG files, one per frame",
    example: "pattern frames=3 ! png path=out-%04d.png",
    settings: &[
        required("path", ValueType::Path, Liveness::Fixed, "the file; %04d in it stands for the frame number"),
        optional(
            "quality",
            int(0, 100),
            Liveness::Fixed,
            "from 0 (quick) to 100 (smallest file); the picture is the same",
        ),
    ],
    bare: Some("path"),
    check: |settings| {
        let path = settings.text("path").unwrap_or_default();
        if path == "-" {
            return Err("png makes a file for each frame; for standard output use y4m or raw".to_owned());
        }
        Names::read(path).map(drop)
    },
    work: Work { class: Class::Codec, units: Units::PerPixel(1.0) },
    status: Status::Runs,
    ..Entry::SINK
};

/// Writes pictures.
struct Png {
    settings: Settings,
    state: State,
}

/// What was set.
struct Settings {
    names: Names,
    compression: Compression,
}

/// What changes from frame to frame.
#[derive(Default)]
struct State {
    /// The name of the file, and the bytes in it.
    name: String,
    encoded: Vec<u8>,
    /// The one frame of a path without a number.
    only: Option<u64>,
    /// Memory of the paths of the picture before.
    target: PathBuf,
    place: PathBuf,
}

/// Why a picture was not written.
#[derive(Debug, thiserror::Error)]
enum PngError {
    #[error(
        "frame {frame} would replace frame {first} in `{path}`; write a number into the name, such as `{numbered}`, or \
         stop after one frame with `--frames 1`"
    )]
    Second { path: String, frame: u64, first: u64, numbered: String },
    #[error("`{path}`, frame {frame}, byte {at}: {error}; free some space, or name another place")]
    Write { path: String, frame: u64, at: usize, error: std::io::Error },
    #[error("`{path}`, frame {frame}: a picture of {size} cannot be encoded: {error}")]
    Encode { path: String, frame: u64, size: Size, error: EncodingError },
    #[error(transparent)]
    Outlet(#[from] OutletError),
}

/// A path with at most one number in it.
#[derive(Debug, PartialEq, Eq)]
struct Names {
    before: String,
    /// How many digits the number has at least; none where there is no number.
    digits: Option<usize>,
    after: String,
}

impl Names {
    /// Reads `%d` and `%04d` as the number, `%%` as a percent sign, and any other percent sign as itself.
    fn read(path: &str) -> Result<Names, String> {
        let mut names = Names { before: String::new(), digits: None, after: String::new() };
        let mut rest = path;
        while let Some((text, behind)) = rest.split_once('%') {
            names.tail().push_str(text);
            let digits = behind.len() - behind.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            if behind[digits..].starts_with('d') {
                if names.digits.is_some() {
                    return Err(format!("`{path}` has two places for the frame number; keep one"));
                }
                let width = behind[..digits].parse().unwrap_or(1usize);
                if width > 20 {
                    return Err(format!("`{path}`: no frame number has {width} digits; write %04d"));
                }
                names.digits = Some(width);
                rest = &behind[digits + 1..];
            } else {
                names.tail().push('%');
                rest = behind.strip_prefix('%').unwrap_or(behind);
            }
        }
        names.tail().push_str(rest);
        if names.digits.is_some() && names.after.contains('/') {
            return Err(format!("`{path}` has the frame number in a directory's name; put it into the file's"));
        }
        Ok(names)
    }

    fn tail(&mut self) -> &mut String {
        if self.digits.is_some() { &mut self.after } else { &mut self.before }
    }

    /// The name for a frame.
    fn name(&self, frame: u64, into: &mut String) {
        into.clear();
        into.push_str(&self.before);
        if let Some(digits) = self.digits {
            write!(into, "{frame:0digits$}").expect("text can be added to text");
        }
        into.push_str(&self.after);
    }
}

impl FrameHandler for Png {
    fn start(&mut self) -> Result<(), HandlerError> {
        self.state = State::default();
        self.settings.names.name(0, &mut self.state.name);
        // Made and dropped again: that shows whether files can be made there, before anything is computed.
        if let Target::File(target) = Target::look(&self.state.name, PathBuf::new()).map_err(HandlerError::failed)? {
            Part::begin(target, PathBuf::new()).map_err(HandlerError::failed)?;
        }
        Ok(())
    }

    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let Some(frame) = call.input(0) else { return Ok(Flow::Filtered) };
        let number = call.now().number;
        self.write(number, frame.meta().size, &frame.bytes()).map_err(HandlerError::failed)?;
        Ok(Flow::Produced)
    }
}

impl Png {
    fn write(&mut self, frame: u64, size: Size, pixels: &[u8]) -> Result<(), PngError> {
        let Settings { names, compression } = &self.settings;
        let State { name, encoded, only, target, place } = &mut self.state;
        names.name(frame, name);
        if let (None, Some(first)) = (names.digits, *only) {
            return Err(PngError::Second { path: name.clone(), frame, first, numbered: numbered(name) });
        }
        encoded.clear();
        let encode = foreign(|| encode(size, pixels, *compression, encoded));
        encode.map_err(|error| PngError::Encode { path: name.clone(), frame, size, error })?;
        let failed = |at, error| PngError::Write { path: name.clone(), frame, at, error };
        match Target::look(name, std::mem::take(target))? {
            Target::Special(path) => std::fs::write(path, &*encoded).map_err(|error| failed(0, error))?,
            Target::File(file) => {
                let mut part = Part::begin(file, std::mem::take(place))?;
                let mut at = 0;
                while at < encoded.len() {
                    match part.write(&encoded[at..]) {
                        Ok(taken) if taken > 0 => at += taken,
                        Ok(_) => return Err(failed(at, std::io::ErrorKind::WriteZero.into())),
                        Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                        Err(error) => return Err(failed(at, error)),
                    }
                }
                (*target, *place) = part.keep()?;
            }
        }
        *only = Some(frame);
        Ok(())
    }
}

fn encode(size: Size, pixels: &[u8], compression: Compression, into: &mut Vec<u8>) -> Result<(), EncodingError> {
    let mut encoder = Encoder::new(into, size.width, size.height);
    encoder.set_color(ColorType::Rgba);
    encoder.set_depth(BitDepth::Eight);
    encoder.set_compression(compression);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    writer.finish()
}

/// The same name with a place for the number.
fn numbered(name: &str) -> String {
    let path = Path::new(name);
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let end = path.extension().map_or(String::new(), |end| format!(".{}", end.to_string_lossy()));
    path.with_file_name(format!("{stem}-%04d{end}")).display().to_string()
}

/// Makes the sink `png`.
pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    let names = Names::read(setup.settings.text("path").unwrap_or_default()).map_err(HandlerError::failed)?;
    let compression = compression(setup.settings.int("quality"));
    Ok(Worker::frames(Png { settings: Settings { names, compression }, state: State::default() }))
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

    fn name(path: &str, frame: u64) -> String {
        let mut name = String::new();
        Names::read(path).unwrap().name(frame, &mut name);
        name
    }

    #[test]
    fn the_number_stands_where_the_pattern_says() {
        assert_eq!(name("out-%04d.png", 7), "out-0007.png");
        assert_eq!(name("a/%d", 12345), "a/12345");
        assert_eq!(name("%02dx.png", 123), "123x.png");
        assert_eq!(name("100%.png", 3), "100%.png");
        assert_eq!(name("100%%d.png", 3), "100%d.png");
        assert_eq!(name("5%x-%3d.png", 3), "5%x-003.png");
    }

    #[test]
    fn two_numbers_or_one_in_a_directory_are_refused() {
        assert!(Names::read("%d-%d.png").unwrap_err().contains("two places"));
        assert!(Names::read("%04d/a.png").unwrap_err().contains("directory"));
        assert!(Names::read("%999999999999999999999d.png").is_ok_and(|names| names.digits == Some(1)));
        assert!(Names::read("%21d.png").unwrap_err().contains("21 digits"));
    }

    #[test]
    fn the_way_out_is_the_same_name_with_a_number() {
        assert_eq!(numbered("a/out.png"), "a/out-%04d.png");
        assert_eq!(numbered("out"), "out-%04d");
    }

    #[test]
    fn more_quality_is_never_less_effort() {
        let efforts: Vec<u8> = (0..=100).map(|quality| compression(Some(quality)) as u8).collect();
        assert!(efforts.is_sorted());
        assert!(matches!(compression(Some(0)), Compression::Fastest));
        assert!(matches!(compression(Some(100)), Compression::High));
    }
}
