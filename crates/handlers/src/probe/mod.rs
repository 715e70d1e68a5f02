//! Probing: reads the headers of sources and the texts of shaders, so that sizes, rates, formats and kernels are known
//! before anything runs. Each kind of source has its own file.
//!
//! A probe decodes nothing and opens no cameras: the size and rate of a camera come from its settings, or are unknown.
//! A probe reads a bounded number of bytes and waits a bounded time for other programs; only standard input has no time
//! limit. Whatever the bytes are, the result is a value or an error. An error names the file, the position, what was
//! expected and a remedy.

mod image;
mod raw;
mod small;
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

pub(crate) fn image(settings: &SettingValues) -> Result<Probed, ProbeError> {
    image::probe(path(settings))
}

pub(crate) fn y4m(settings: &SettingValues) -> Result<Probed, ProbeError> {
    y4m::probe(path(settings))
}

pub(crate) fn raw(settings: &SettingValues) -> Result<Probed, ProbeError> {
    raw::probe(path(settings))
}

fn path(settings: &SettingValues) -> &str {
    settings.text("path").unwrap_or("-")
}

fn refuse(problem: impl Into<String>, help: impl Into<String>) -> ProbeError {
    ProbeError { problem: problem.into(), help: help.into() }
}

/// Opens a regular file. A pipe is refused, because bytes that a probe reads from a pipe would be lost.
fn open(path: &Path) -> Result<File, ProbeError> {
    let found = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
    if found.is_dir() {
        return Err(refuse(
            format!("`{}` is a directory, expected a file", path.display()),
            "give a file in that directory",
        ));
    }
    if !found.is_file() {
        return Err(refuse(
            format!(
                "`{}` is a pipe or a device, expected a file: a header can be read from a pipe only once",
                path.display()
            ),
            "write the data to a file first, or pipe the data into standard input if the source accepts `-`",
        ));
    }
    open_regular(path).map_err(|error| unreadable(path, &error))
}

fn unreadable(path: &Path, error: &io::Error) -> ProbeError {
    let help = match error.kind() {
        io::ErrorKind::NotFound if path.is_relative() => "check the path; it is relative to the current directory",
        io::ErrorKind::NotFound => "check the path",
        io::ErrorKind::PermissionDenied => "check the permissions of the file",
        _ => "check that the file is complete and that the disk is available",
    };
    refuse(format!("`{}` cannot be read: {error}", path.display()), help)
}

/// Bytes of a file for a message: escaped and shortened.
fn shown(bytes: &[u8]) -> String {
    const MOST: usize = 32;
    let cut = if bytes.len() > MOST { "..." } else { "" };
    format!("`{}{cut}`", bytes[..bytes.len().min(MOST)].escape_ascii())
}
