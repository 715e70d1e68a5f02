//! Checks of the host: vector instructions, threads, the terminal and the cache directory.

use std::fs;
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use vramp::kernels::Level;
use vramp::machine;

use super::HealthCheck;
use crate::page;

pub(super) fn cpu() -> HealthCheck {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") };
    let levels: Vec<String> = Level::available().iter().map(ToString::to_string).collect();
    HealthCheck::ok("cpu", format!("{threads}, vector instructions: {}", levels.join(", ")))
}

pub(super) fn terminal() -> HealthCheck {
    HealthCheck::ok(
        "terminal",
        match (page::is_watched(), io::stderr().is_terminal()) {
            (true, _) => "standard error is a terminal: a run shows a live line",
            (false, true) => "TERM=dumb: a run shows no live line",
            (false, false) => "standard error is not a terminal: a run shows no live line",
        },
    )
}

/// Checks whether results can be stored between runs.
/// Whether `window` can open windows. A machine without a display is not broken.
#[cfg(feature = "window")]
pub(super) fn display() -> HealthCheck {
    match vramp::window::check_display() {
        Ok(()) => HealthCheck::ok("display", "`window` can open windows"),
        Err(_) => HealthCheck::ok("display", "there is none: `terminal` shows frames, `window` cannot"),
    }
}

#[cfg(not(feature = "window"))]
pub(super) fn display() -> HealthCheck {
    HealthCheck::ok("display", "this program was built without windows; `terminal` shows frames")
}

pub(super) fn cache() -> HealthCheck {
    let Some(folder) = machine::cache_folder() else {
        let words = "the system has no cache directory, so every run queries the drivers again (25 to 250 ms)";
        return HealthCheck::warning("cache", words).fix("export XDG_CACHE_HOME=\"$PWD/cache\"");
    };
    let Err((at, error)) = try_to_write(&folder) else {
        return HealthCheck::ok("cache", format!("{} can be written", folder.display()));
    };
    let at = at.display();
    let fix = match error.kind() {
        ErrorKind::PermissionDenied => format!("sudo chown -R \"$USER\" {at}"),
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists => format!("rm {at}"),
        _ if std::env::var_os("XDG_CACHE_HOME").is_some() => "unset XDG_CACHE_HOME".to_owned(),
        _ => "export XDG_CACHE_HOME=\"$PWD/cache\"".to_owned(),
    };
    let words = format!("{}: {error}; every run queries the drivers again (25 to 250 ms)", folder.display());
    HealthCheck::warning("cache", words).fix(fix)
}

/// Creates and removes a file in the directory. The error names the path that could not be written.
fn try_to_write(folder: &Path) -> Result<(), (PathBuf, io::Error)> {
    let existing = || folder.ancestors().find(|path| path.exists()).unwrap_or(folder).to_owned();
    fs::create_dir_all(folder).map_err(|error| (existing(), error))?;
    let file = folder.join(format!("doctor.{}.part", std::process::id()));
    let written = fs::File::create(&file).and_then(|mut open| open.write_all(b"vramp"));
    let _ = fs::remove_file(&file);
    written.map_err(|error| (folder.to_owned(), error))
}
