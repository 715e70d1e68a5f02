//! `cargo xtask lint`: what can be said about the code without running it.
//!
//! Owns which tools are asked, and how strictly.
//! Does not own their rules: those stand in rustfmt.toml, clippy.toml, deny.toml and the root Cargo.toml.

use anyhow::Context;

use crate::shell;

/// Asks every tool; the first that objects ends it.
pub(crate) fn run() -> anyhow::Result<()> {
    shell::run(shell::cargo(["fmt", "--all", "--check"])).context("formatting; `cargo fmt --all` mends it")?;
    shell::run(shell::cargo(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])).context("clippy")?;
    if shell::works(shell::cargo(["deny", "--version"])) {
        shell::run(shell::cargo(["deny", "check", "bans", "licenses", "sources"])).context("dependencies")?;
    } else {
        eprintln!("xtask: cargo-deny is not installed, so licences and sources of dependencies were not checked");
    }
    Ok(())
}
