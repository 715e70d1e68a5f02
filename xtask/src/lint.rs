//! `cargo xtask lint`: checks the code without running it.
//!
//! The rules are in rustfmt.toml, clippy.toml, deny.toml and the root Cargo.toml.

use anyhow::Context;

use crate::shell;

/// Runs every tool and stops at the first that fails.
pub(crate) fn run() -> anyhow::Result<()> {
    shell::run(shell::cargo(["fmt", "--all", "--check"])).context("formatting; `cargo fmt --all` mends it")?;
    shell::run(shell::cargo(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])).context("clippy")?;
    // Without this feature the crate is empty.
    let python = ["clippy", "-p", "vramp-python", "--features", "extension", "--", "-D", "warnings"];
    shell::run(shell::cargo(python)).context("clippy of the Python package")?;
    if shell::works(shell::cargo(["deny", "--version"])) {
        shell::run(shell::cargo(["deny", "check", "bans", "licenses", "sources"])).context("dependencies")?;
    } else {
        eprintln!("xtask: cargo-deny is not installed, so licences and sources of dependencies were not checked");
    }
    Ok(())
}
