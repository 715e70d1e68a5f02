//! Image files: one per frame, named after the frame number. The sinks encode the images.
//!
//! A file has its final name only once it is complete. A path without a number is for one frame: a second frame is an
//! error, since its file would replace the file of the first frame. Later images reuse the memory of earlier
//! names and encoded bytes.

use std::fmt::Display;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use vramp_plan::Size;
use vramp_runtime::NoMemory;

use super::outlet::{OutletError, OutletTarget, OutputFile, remedy};
use crate::files::NumberedPath;

#[derive(Debug, thiserror::Error)]
pub(super) enum PictureWriteError {
    #[error(
        "frame {frame} would replace frame {first} in `{path}`; put a number into the name, such as `{numbered}`, or \
         stop after one frame with `--frames 1`"
    )]
    Second { path: String, frame: u64, first: u64, numbered: String },
    #[error("`{path}`, frame {frame}, byte {at}: {error}; {}", remedy(error))]
    Write { path: String, frame: u64, at: usize, error: std::io::Error },
    #[error("`{path}`, frame {frame}: an image of {size} cannot be encoded: {problem}")]
    Encode { path: String, frame: u64, size: Size, problem: String },
    #[error(transparent)]
    Outlet(#[from] OutletError),
}

/// Collects the output of an encoder. A lack of memory is reported as an error of the image.
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

pub(super) struct Pictures {
    names: NumberedPath,
    /// The file name and the encoded bytes of the last image, kept so that the next image reuses their memory.
    name: String,
    encoded: Vec<u8>,
    /// The last frame that was written. If the path has no number, this is the only frame.
    only: Option<u64>,
    /// The paths of the last image, kept so that the next image reuses their memory.
    target: PathBuf,
    place: PathBuf,
}

impl Pictures {
    /// Checks a path for images of this kind.
    pub(super) fn check(kind: &str, path: &str) -> Result<(), String> {
        if path == "-" {
            return Err(format!("{kind} writes one file per frame; for standard output use y4m or raw"));
        }
        NumberedPath::read(path).map(drop)
    }

    /// Parses the path; writes nothing.
    pub(super) fn at(path: &str) -> Result<Pictures, String> {
        let (target, place) = (PathBuf::new(), PathBuf::new());
        Ok(Pictures {
            names: NumberedPath::read(path)?,
            name: String::new(),
            encoded: Vec::new(),
            only: None,
            target,
            place,
        })
    }

    /// Resets the state, and checks, before anything is computed, that files can be created.
    pub(super) fn start(&mut self) -> Result<(), PictureWriteError> {
        self.only = None;
        self.names.name(0, &mut self.name);
        if let OutletTarget::File(target) = OutletTarget::look(&self.name, PathBuf::new())? {
            // Creates a temporary file, which is removed when it is dropped.
            OutputFile::begin(target, PathBuf::new())?;
        }
        Ok(())
    }

    /// Writes a frame to its file; `encode` produces the bytes of the file.
    pub(super) fn write<E: Display>(
        &mut self,
        frame: u64,
        size: Size,
        encode: impl FnOnce(Encoded<'_>) -> Result<(), E>,
    ) -> Result<(), PictureWriteError> {
        let Pictures { names, name, encoded, only, target, place } = self;
        names.name(frame, name);
        if let (false, Some(first)) = (names.is_numbered(), *only) {
            return Err(PictureWriteError::Second { path: name.clone(), frame, first, numbered: numbered(name) });
        }
        encoded.clear();
        encode(Encoded(encoded)).map_err(|error| {
            let problem = error.to_string();
            PictureWriteError::Encode { path: name.clone(), frame, size, problem }
        })?;
        let failed = |at, error| PictureWriteError::Write { path: name.clone(), frame, at, error };
        match OutletTarget::look(name, std::mem::take(target))? {
            OutletTarget::Special(path) => std::fs::write(path, &*encoded).map_err(|error| failed(0, error))?,
            OutletTarget::File(file) => {
                let mut part = OutputFile::begin(file, std::mem::take(place))?;
                let mut at = 0;
                while at < encoded.len() {
                    match part.write(&encoded[at..]) {
                        Ok(taken) if taken > 0 => at += taken,
                        Ok(_) => return Err(failed(at, std::io::ErrorKind::WriteZero.into())),
                        Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                        Err(error) => return Err(failed(at, error)),
                    }
                }
                (*target, *place) = part.persist()?;
            }
        }
        *only = Some(frame);
        Ok(())
    }
}

/// The same name with a placeholder for the number.
fn numbered(name: &str) -> String {
    let path = Path::new(name);
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let end = path.extension().map_or(String::new(), |end| format!(".{}", end.to_string_lossy()));
    path.with_file_name(format!("{stem}-%04d{end}")).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_out_is_the_same_name_with_a_number() {
        assert_eq!(numbered("a/out.png"), "a/out-%04d.png");
        assert_eq!(numbered("out"), "out-%04d");
    }
}
