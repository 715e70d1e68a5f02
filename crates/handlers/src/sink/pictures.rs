//! Pictures: one file for each frame, under a name with the frame's number.
//!
//! Owns which frame gets which name, and the writing of what was encoded.
//! Does not encode: whoever writes a picture says how.
//!
//! Always: a file has its final name only once it is complete. A path without a number is for one frame: a second one
//! is an error, since it would replace the first. Names and bytes of later pictures need no new memory.

use std::fmt::{Display, Write as _};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use vramp_plan::Size;
use vramp_runtime::NoMemory;

use super::outlet::{OutletError, Part, Target, remedy};

/// Why a picture was not written.
#[derive(Debug, thiserror::Error)]
pub(super) enum PictureError {
    #[error(
        "frame {frame} would replace frame {first} in `{path}`; write a number into the name, such as `{numbered}`, or \
         stop after one frame with `--frames 1`"
    )]
    Second { path: String, frame: u64, first: u64, numbered: String },
    #[error("`{path}`, frame {frame}, byte {at}: {error}; {}", remedy(error))]
    Write { path: String, frame: u64, at: usize, error: std::io::Error },
    #[error("`{path}`, frame {frame}: a picture of {size} cannot be encoded: {problem}")]
    Encode { path: String, frame: u64, size: Size, problem: String },
    #[error(transparent)]
    Outlet(#[from] OutletError),
}

/// Takes what an encoder makes. Where memory for it runs out, that is an error of the picture.
pub(super) struct Encoded<'a>(&'a mut Vec<u8>);

impl std::io::Write for Encoded<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0.try_reserve(bytes.len()).is_err() {
            let needed_bytes = (self.0.len() + bytes.len()) as u64;
            return Err(std::io::Error::new(std::io::ErrorKind::OutOfMemory, NoMemory { needed_bytes }));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Files for pictures.
pub(super) struct Pictures {
    names: Names,
    /// The name of the file, and the bytes in it.
    name: String,
    encoded: Vec<u8>,
    /// The one frame of a path without a number.
    only: Option<u64>,
    /// Memory of the paths of the picture before.
    target: PathBuf,
    place: PathBuf,
}

impl Pictures {
    /// What is wrong with a path for pictures of this kind, if anything is.
    pub(super) fn check(kind: &str, path: &str) -> Result<(), String> {
        if path == "-" {
            return Err(format!("{kind} makes a file for each frame; for standard output use y4m or raw"));
        }
        Names::read(path).map(drop)
    }

    /// Pictures at this path; nothing is written yet.
    pub(super) fn at(path: &str) -> Result<Pictures, String> {
        let (target, place) = (PathBuf::new(), PathBuf::new());
        Ok(Pictures { names: Names::read(path)?, name: String::new(), encoded: Vec::new(), only: None, target, place })
    }

    /// Begins anew, and looks whether files can be made there before anything is computed.
    pub(super) fn start(&mut self) -> Result<(), PictureError> {
        self.only = None;
        self.names.name(0, &mut self.name);
        if let Target::File(target) = Target::look(&self.name, PathBuf::new())? {
            // Made and dropped again.
            Part::begin(target, PathBuf::new())?;
        }
        Ok(())
    }

    /// Writes the picture of a frame, which `encode` makes.
    pub(super) fn write<E: Display>(
        &mut self,
        frame: u64,
        size: Size,
        encode: impl FnOnce(Encoded<'_>) -> Result<(), E>,
    ) -> Result<(), PictureError> {
        let Pictures { names, name, encoded, only, target, place } = self;
        names.name(frame, name);
        if let (None, Some(first)) = (names.digits, *only) {
            return Err(PictureError::Second { path: name.clone(), frame, first, numbered: numbered(name) });
        }
        encoded.clear();
        encode(Encoded(encoded)).map_err(|error| {
            let problem = error.to_string();
            PictureError::Encode { path: name.clone(), frame, size, problem }
        })?;
        let failed = |at, error| PictureError::Write { path: name.clone(), frame, at, error };
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

/// The same name with a place for the number.
fn numbered(name: &str) -> String {
    let path = Path::new(name);
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let end = path.extension().map_or(String::new(), |end| format!(".{}", end.to_string_lossy()));
    path.with_file_name(format!("{stem}-%04d{end}")).display().to_string()
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
}
