//! The file of `--trace`.

use std::path::Path;

use vramp::runtime::Trace;

use crate::failure::CliError;
use crate::result_file::ResultFile;

/// An open file for a timeline. If no timeline is written, no file remains.
pub(crate) struct TraceFile(ResultFile);

impl TraceFile {
    pub(crate) fn create(path: &Path) -> Result<TraceFile, CliError> {
        ResultFile::create("--trace", path).map(TraceFile)
    }

    /// Writes the timelines, each under its name, and renames the file to its final name.
    pub(crate) fn write(self, traces: &[(&str, &Trace)]) -> Result<(), CliError> {
        self.0.write(|to| Trace::write(traces, to))
    }
}
