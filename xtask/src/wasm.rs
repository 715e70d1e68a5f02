//! Builds the libraries for the web, where there are no threads, files or clocks.
//!
//! Finds a compiler that supports the target, or installs one. Nothing is run in a browser.
//!
//! Invariant: this build has its own target folder, because it may use a different compiler.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use crate::shell;

/// The crates that must build for the web. The program `vramp` is not among them, because it reads files and arguments.
const LIBRARIES: &[&str] = &[
    "vramp-files",
    "vramp-plan",
    "vramp-kernels",
    "vramp-gpu",
    "vramp-tensor",
    "vramp-model",
    "vramp-runtime",
    "vramp-report",
    "vramp-handlers",
    "vramp-pipeline",
    "vramp",
];

const TARGET: &str = "wasm32-unknown-unknown";

/// Builds every library. Installs the target first if it is missing.
pub(crate) fn build() -> anyhow::Result<()> {
    let mut command = shell::cargo(["build", "--lib", "--target", TARGET, "--target-dir", "target-wasm"]);
    command.args(LIBRARIES.iter().flat_map(|name| ["--package", name]));
    // The libraries are only built, not run, so optimising them would waste time.
    for optimised in ["", ".package.vramp-plan", ".package.vramp-kernels"] {
        command.args(["--config", &format!("profile.dev{optimised}.opt-level=0")]);
    }
    provide(&mut command)?;
    shell::run(command)
}

/// Provides the target's standard library: the installed library, or else a library from rustup or from Debian's
/// packages.
fn provide(build: &mut Command) -> anyhow::Result<()> {
    if is_installed() {
        return Ok(());
    }
    let toolchain = shell::root().join("target/wasm-toolchain");
    // The script removes `half-made` last. If that file exists, the toolchain is incomplete and the script starts over.
    if !toolchain.join("env.sh").is_file() || toolchain.join("half-made").exists() {
        if shell::find("rustup").is_some() {
            let mut add = shell::command("rustup");
            add.args(["target", "add", TARGET]);
            match shell::run(add) {
                Ok(()) if is_installed() => return Ok(()),
                Ok(()) => eprintln!("xtask: rustup added {TARGET} to another toolchain than the one in use"),
                Err(error) => eprintln!("xtask: {error}; making a toolchain out of Debian's packages instead"),
            }
        }
        let mut script = shell::command(shell::root().join("scripts/wasm-toolchain.sh"));
        script.arg(&toolchain);
        shell::run(script).with_context(|| format!("no compiler for {TARGET}: install one with rustup"))?;
    }
    if !toolchain.join("bin/rustc").is_file() {
        bail!("{} is incomplete; remove it and try again", toolchain.display());
    }
    build.env("RUSTC", toolchain.join("bin/rustc"));
    build.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", toolchain.join("bin/wasm-ld"));
    Ok(())
}

/// Whether the compiler in use has the target's standard library.
fn is_installed() -> bool {
    let asked = shell::command("rustc").args(["--print", "target-libdir", "--target", TARGET]).output();
    asked.is_ok_and(|answer| {
        answer.status.success() && has_libraries(Path::new(String::from_utf8_lossy(&answer.stdout).trim()))
    })
}

fn has_libraries(folder: &Path) -> bool {
    let Ok(files) = folder.read_dir() else { return false };
    files.flatten().any(|file| file.file_name().to_string_lossy().starts_with("libcore-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_a_standard_library_is_not_a_target() {
        assert!(!has_libraries(Path::new("no/such/folder")));
        assert!(!has_libraries(shell::root()));
    }

    #[test]
    fn the_host_has_its_own_standard_library() {
        let host = shell::command("rustc").args(["--print", "target-libdir"]).output().unwrap();
        assert!(has_libraries(Path::new(String::from_utf8(host.stdout).unwrap().trim())));
    }
}
