//! A file that an option names, such as `--trace` or `--report`, and that is written after the run.
//!
//! A path that cannot be written is refused before the run. The file gets its final name only when it is complete.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use vramp::files::TemporaryFile;

use crate::failure::CliError;

/// An open file. If nothing is written, no file remains.
pub(crate) struct ResultFile {
    option: &'static str,
    path: PathBuf,
    output: Output,
}

enum Output {
    File(TemporaryFile),
    /// A pipe or a device.
    Special(File),
}

impl ResultFile {
    /// Opens a temporary file beside the path, or the path itself if it is a pipe or a device.
    pub(crate) fn create(option: &'static str, path: &Path) -> Result<ResultFile, CliError> {
        let refused =
            |problem: String| CliError::Wrong(anyhow!("{option} {}: {problem}; choose another file", path.display()));
        if path.as_os_str() == "-" {
            return Err(refused("standard output is reserved for results".to_owned()));
        }
        if path.is_dir() {
            return Err(refused("it is a directory".to_owned()));
        }
        // A pipe or a device is opened directly, because a regular file must not replace it.
        if path.metadata().is_ok_and(|about| !about.is_file()) {
            let file = File::options().write(true).open(path).map_err(|error| refused(error.to_string()))?;
            return Ok(ResultFile { option, path: path.to_owned(), output: Output::Special(file) });
        }
        // If the path is a link, the file that the link leads to is replaced, not the link.
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let path = real.as_path();
        if path.file_name().is_none() {
            return Err(refused("it does not name a file".to_owned()));
        }
        let file = TemporaryFile::beside(path).map_err(|error| refused(error.to_string()))?;
        Ok(ResultFile { option, path: path.to_owned(), output: Output::File(file) })
    }

    /// Writes the content and renames the file to its final name.
    pub(crate) fn write(self, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), CliError> {
        let ResultFile { option, path, output } = self;
        let written = match output {
            Output::Special(file) => fill(&file, content),
            Output::File(file) => fill(file.file(), content)
                .and_then(|()| file.file().sync_all())
                .and_then(|()| Ok(file.persist(&path).map(drop)?)),
        };
        written.map_err(|error| CliError::Failed(anyhow!("{option} {}: {error}", path.display())))
    }
}

fn fill(to: impl Write, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut buffered = BufWriter::new(to);
    content(&mut buffered)?;
    buffered.flush()
}
