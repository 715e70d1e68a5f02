//! The file of a timeline.
//!
//! Owns its path, and the file beside it that is written first.
//! Does not know what is drawn.
//!
//! Always: a path that cannot be written is refused before anything runs; the file has its name only once it is whole.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use vramp::runtime::Trace;

use crate::failure::CliError;

/// A file that a timeline will be written to. Nothing is left behind where that does not happen.
pub(crate) struct TraceFile {
    path: PathBuf,
    /// What is renamed in the end; none where the path is written as it is.
    part: Option<PathBuf>,
    file: Option<File>,
}

impl TraceFile {
    /// Opens the file beside the path that was asked for.
    pub(crate) fn create(path: &Path) -> Result<TraceFile, CliError> {
        let refused =
            |problem: String| CliError::Wrong(anyhow!("--trace {}: {problem}; choose another file", path.display()));
        if path.as_os_str() == "-" {
            return Err(refused("standard output is for results".to_owned()));
        }
        if path.is_dir() {
            return Err(refused("it is a directory".to_owned()));
        }
        // What is no file of its own is written as it is: a pipe or a device must not be replaced.
        if path.metadata().is_ok_and(|about| !about.is_file()) {
            let file = File::options().write(true).open(path).map_err(|error| refused(error.to_string()))?;
            return Ok(TraceFile { path: path.to_owned(), part: None, file: Some(file) });
        }
        // The file that a link leads to is meant, not the link.
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let path = real.as_path();
        let Some(name) = path.file_name() else { return Err(refused("it names no file".to_owned())) };
        let mut name = name.to_owned();
        name.push(format!(".{}.part", std::process::id()));
        let part = path.with_file_name(name);
        let file = File::create(&part).map_err(|error| refused(error.to_string()))?;
        Ok(TraceFile { path: path.to_owned(), part: Some(part), file: Some(file) })
    }

    /// Writes timelines, each under its name, and gives the file its own.
    pub(crate) fn write(mut self, traces: &[(&str, &Trace)]) -> Result<(), CliError> {
        let Some(file) = self.file.take() else { return Ok(()) };
        let written = self.fill(file, traces);
        written.map_err(|error| CliError::Failed(anyhow!("--trace {}: {error}", self.path.display())))
    }

    fn fill(&self, file: File, traces: &[(&str, &Trace)]) -> io::Result<()> {
        let mut buffered = BufWriter::new(file);
        Trace::write(traces, &mut buffered)?;
        let file = buffered.into_inner().map_err(io::IntoInnerError::into_error)?;
        match &self.part {
            None => Ok(()),
            Some(part) => file.sync_all().and_then(|()| fs::rename(part, &self.path)),
        }
    }
}

impl Drop for TraceFile {
    fn drop(&mut self) {
        // Once it has its name there is nothing left to remove.
        let _ = self.part.as_ref().map(fs::remove_file);
    }
}
