//! Looks into the headers of sources and the texts of shaders, so that sizes, rates, formats and kernels are known before
//! anything runs.
//!
//! Owns the reading of headers, one file per kind of source.
//! Does not decode, and does not open cameras: what a camera delivers is what was set, or unknown.
//!
//! Always: a bounded number of bytes is read, and other programs are waited for a bounded time; standard input has as long
//! as whoever writes to it takes to begin. Whatever the bytes are, the answer is a value or an error that names the file,
//! the place, what was expected and the remedy.

mod image;
mod raw;
mod small;
mod video;
mod y4m;

#[cfg(test)]
pub(crate) use y4m::read as read_header;
pub(crate) use y4m::{INTERLACING, LONGEST, chroma_word, first_line, standard_input_header, yuv_of};

use std::fs::{self, File};
use std::io;
use std::path::Path;

use vramp_files::open_regular;
use vramp_plan::catalog::{ProbeError, Probed, SettingValues};

pub(crate) use small::{lut_bytes, overlay_bytes};

/// What the first picture of a source of pictures tells.
pub(crate) fn image(settings: &SettingValues) -> Result<Probed, ProbeError> {
    image::probe(path(settings))
}

/// What the header of a y4m stream tells.
pub(crate) fn y4m(settings: &SettingValues) -> Result<Probed, ProbeError> {
    y4m::probe(path(settings))
}

/// Whether there is something to read.
pub(crate) fn raw(settings: &SettingValues) -> Result<Probed, ProbeError> {
    raw::probe(path(settings))
}

/// What ffprobe tells of a video.
pub(crate) fn video(settings: &SettingValues) -> Result<Probed, ProbeError> {
    video::probe(path(settings))
}

fn path(settings: &SettingValues) -> &str {
    settings.text("path").unwrap_or("-")
}

/// An error with its remedy.
fn refuse(problem: impl Into<String>, help: impl Into<String>) -> ProbeError {
    ProbeError { problem: problem.into(), help: help.into() }
}

/// Opens a file whose header may be read and read again. A pipe would lose what is read here.
fn open(path: &Path) -> Result<File, ProbeError> {
    let found = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
    if found.is_dir() {
        return Err(refuse(format!("`{}` is a directory, expected a file", path.display()), "name a file in it"));
    }
    if !found.is_file() {
        return Err(refuse(
            format!("`{}` is a pipe or a device, expected a file: looking at its header would eat it", path.display()),
            "write it to a file first, or feed it through standard input where the source takes `-`",
        ));
    }
    open_regular(path).map_err(|error| unreadable(path, &error))
}

fn unreadable(path: &Path, error: &io::Error) -> ProbeError {
    let help = match error.kind() {
        io::ErrorKind::NotFound if path.is_relative() => "check the path; it counts from the directory you are in",
        io::ErrorKind::NotFound => "check the path",
        io::ErrorKind::PermissionDenied => "check who may read it",
        _ => "check that the file is whole and its disk is there",
    };
    refuse(format!("`{}` cannot be read: {error}", path.display()), help)
}

/// Bytes from a file as they can be shown in a message: escaped and not too many.
fn shown(bytes: &[u8]) -> String {
    const MOST: usize = 32;
    let cut = if bytes.len() > MOST { "..." } else { "" };
    format!("`{}{cut}`", bytes[..bytes.len().min(MOST)].escape_ascii())
}
