//! What a headerless file tells: only whether it is there.
//!
//! Owns that one question.
//! Does not check that the file holds whole frames: a stream may end anywhere.

use std::fs;
use std::path::Path;

use vramp_plan::catalog::{ProbeError, Probed};

use super::{refuse, unreadable};

/// Looks whether there is something to read.
pub(super) fn probe(path: &str) -> Result<Probed, ProbeError> {
    if path != "-" {
        let path = Path::new(path);
        let found = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
        if found.is_dir() {
            let problem = format!("`{}` is a directory, expected a file of frames", path.display());
            return Err(refuse(problem, "name a file in it"));
        }
    }
    Ok(Probed::default())
}
