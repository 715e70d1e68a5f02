//! Makes sure that the programs which tests start are there.
//!
//! Owns the list of those programs and their Debian packages.
//! Does not touch a machine that has them all.

use std::ffi::OsStr;
use std::process::Command;

use anyhow::bail;

use crate::shell;

/// What tests start, the package it comes in, and why.
const NEEDED: &[(&str, &str, &str)] = &[("dot", "graphviz", "a plan printed as DOT is read back by Graphviz itself")];

/// Installs by apt what is missing, or says what to install.
pub(crate) fn provide() -> anyhow::Result<()> {
    let missing: Vec<_> = NEEDED.iter().filter(|(program, ..)| shell::find(program).is_none()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    for (program, package, why) in &missing {
        eprintln!("xtask: `{program}` (package {package}) is missing: {why}");
    }
    let packages: Vec<&str> = missing.iter().map(|(_, package, _)| *package).collect();
    let Some(prefix) = as_root() else {
        bail!("install {} and try again: that takes apt-get, and root or sudo, which are not here", packages.join(" "));
    };
    shell::run(apt_get(prefix, &["update", "-q"]))?;
    shell::run(apt_get(prefix, &[&["install", "-q", "-y", "--no-install-recommends"], &packages[..]].concat()))
}

/// The words before `apt-get` that let it install, or none where it cannot.
fn as_root() -> Option<&'static [&'static str]> {
    shell::find("apt-get")?;
    let user = shell::command("id").arg("-u").output().ok()?;
    if user.stdout.trim_ascii() == b"0" {
        return Some(&[]);
    }
    let mut sudo = shell::command("sudo");
    sudo.args(["-n", "true"]);
    shell::works(sudo).then_some(&["sudo", "-n"])
}

fn apt_get(prefix: &[&str], words: &[&str]) -> Command {
    let all: Vec<&str> = [prefix, &["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"], words].concat();
    let mut command = shell::command(OsStr::new(all[0]));
    command.args(&all[1..]);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apt_is_asked_without_questions_and_behind_sudo_where_needed() {
        let shown = |command: &Command| format!("{command:?}").replace('"', "");
        let plain = apt_get(&[], &["update"]);
        assert!(shown(&plain).ends_with("env DEBIAN_FRONTEND=noninteractive apt-get update"), "{plain:?}");
        let sudo = apt_get(&["sudo", "-n"], &["update"]);
        assert!(shown(&sudo).ends_with("sudo -n env DEBIAN_FRONTEND=noninteractive apt-get update"), "{sudo:?}");
    }
}
