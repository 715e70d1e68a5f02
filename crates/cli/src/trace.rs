//! The file of `--trace`.
//!
//! A path that cannot be written is refused before the run. The file gets its final name only when it is complete.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use vramp::files::TemporaryFile;
use vramp::runtime::Trace;

use crate::failure::CliError;

/// An open file for a timeline. If no timeline is written, no file remains.
pub(crate) struct TraceFile {
    path: PathBuf,
    output: TraceOutput,
}

enum TraceOutput {
    File(TemporaryFile),
    /// A pipe or a device.
    Special(File),
}

impl TraceFile {
    /// Opens a temporary file beside the path, or the path itself if it is a pipe or a device.
    pub(crate) fn create(path: &Path) -> Result<TraceFile, CliError> {
        let refused =
            |problem: String| CliError::Wrong(anyhow!("--trace {}: {problem}; choose another file", path.display()));
        if path.as_os_str() == "-" {
            return Err(refused("standard output is reserved for results".to_owned()));
        }
        if path.is_dir() {
            return Err(refused("it is a directory".to_owned()));
        }
        // A pipe or a device is opened directly, because a regular file must not replace it.
        if path.metadata().is_ok_and(|about| !about.is_file()) {
            let file = File::options().write(true).open(path).map_err(|error| refused(error.to_string()))?;
            return Ok(TraceFile { path: path.to_owned(), output: TraceOutput::Special(file) });
        }
        // If the path is a link, the file that the link leads to is replaced, not the link.
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let path = real.as_path();
        if path.file_name().is_none() {
            return Err(refused("it does not name a file".to_owned()));
        }
        let file = TemporaryFile::beside(path).map_err(|error| refused(error.to_string()))?;
        Ok(TraceFile { path: path.to_owned(), output: TraceOutput::File(file) })
    }

    /// Writes the timelines, each under its name, and renames the file to its final name.
    pub(crate) fn write(self, traces: &[(&str, &Trace)]) -> Result<(), CliError> {
        let TraceFile { path, output } = self;
        let written = match output {
            TraceOutput::Special(file) => fill(&file, traces),
            TraceOutput::File(file) => fill(file.file(), traces)
                .and_then(|()| file.file().sync_all())
                .and_then(|()| Ok(file.persist(&path).map(drop)?)),
        };
        written.map_err(|error| CliError::Failed(anyhow!("--trace {}: {error}", path.display())))
    }
}

fn fill(to: impl Write, traces: &[(&str, &Trace)]) -> io::Result<()> {
    let mut buffered = BufWriter::new(to);
    Trace::write(traces, &mut buffered)?;
    buffered.flush()
}
