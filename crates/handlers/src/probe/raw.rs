//! Checks that a headerless file exists. Whether the file holds whole frames is not checked, since a stream may end
//! anywhere.

use std::fs;
use std::path::Path;

use vramp_plan::catalog::{ProbeError, Probed};

use super::{refuse, unreadable};

pub(super) fn probe(path: &str) -> Result<Probed, ProbeError> {
    if path != "-" {
        let path = Path::new(path);
        let found = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
        if found.is_dir() {
            let problem = format!("`{}` is a directory, expected a file of frames", path.display());
            return Err(refuse(problem, "give a file in that directory"));
        }
    }
    Ok(Probed::default())
}
