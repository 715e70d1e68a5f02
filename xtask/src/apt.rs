//! Installs the programs and drivers that tests need, from Debian packages.
//!
//! A machine that has all of them is not changed.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::bail;

use crate::shell;

/// A program or driver that tests need, its package, and why tests need it.
struct Needed {
    what: What,
    package: &'static str,
    why: &'static str,
}

/// How to detect a program or driver.
enum What {
    /// A program in PATH.
    Program(&'static str),
    /// A program in PATH, needed only on Linux on x86-64.
    LinuxProgram(&'static str),
    /// A file whose name starts with the string, in one of the folders or one level below. Needed only on Linux.
    File(&'static str, &'static [&'static str]),
}

const NEEDED: &[Needed] = &[
    Needed {
        what: What::Program("dot"),
        package: "graphviz",
        why: "Graphviz reads back a plan that was printed as DOT",
    },
    Needed {
        what: What::Program("ffmpeg"),
        package: "ffmpeg",
        why: "it decodes and encodes the videos of tests, and makes them",
    },
    Needed {
        what: What::Program("chromium"),
        package: "chromium",
        why: "it opens the pages of reports, on a screen as wide as a desk and as a phone",
    },
    Needed {
        what: What::LinuxProgram("valgrind"),
        package: "valgrind",
        why: "its tool callgrind counts the instructions of key paths",
    },
    Needed {
        what: What::File("libvulkan.so.1", &["/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib"]),
        package: "libvulkan1",
        why: "tests on the GPU use the Vulkan loader",
    },
    Needed {
        what: What::File("lvp_icd", &["/usr/share/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/etc/vulkan/icd.d"]),
        package: "mesa-vulkan-drivers",
        why: "tests on the GPU need a device, and this driver computes on the CPU",
    },
    Needed {
        what: What::LinuxProgram("Xvfb"),
        package: "xvfb",
        why: "tests of windows open them on this virtual screen",
    },
    Needed {
        what: What::LinuxProgram("openbox"),
        package: "openbox",
        why: "it focuses windows and covers the screen with them, as a user's window manager does",
    },
    Needed {
        what: What::LinuxProgram("xdotool"),
        package: "xdotool",
        why: "it presses keys in windows and resizes them",
    },
    Needed {
        what: What::LinuxProgram("wmctrl"),
        package: "wmctrl",
        why: "it closes windows as their close button does",
    },
    Needed { what: What::LinuxProgram("xwd"), package: "x11-apps", why: "it reads the pixels of windows" },
    Needed {
        what: What::LinuxProgram("xprop"),
        package: "x11-utils",
        why: "it tells when the window manager is ready",
    },
    Needed {
        what: What::File("libxkbcommon-x11.so.0", &["/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib"]),
        package: "libxkbcommon-x11-0",
        why: "windows read the keyboard with this library",
    },
];

impl What {
    fn is_there(&self) -> bool {
        match self {
            Self::Program(program) => shell::find(program).is_some(),
            Self::LinuxProgram(program) => {
                !cfg!(all(target_os = "linux", target_arch = "x86_64")) || shell::find(program).is_some()
            }
            Self::File(start, folders) => {
                !cfg!(target_os = "linux") || folders.iter().any(|folder| holds(folder, start))
            }
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Program(name) | Self::LinuxProgram(name) | Self::File(name, _) => name,
        }
    }
}

/// Whether a folder, or a folder in it, has a file whose name starts with `start`.
fn holds(folder: impl AsRef<Path>, start: &str) -> bool {
    let inside = |folder: &Path| -> Vec<PathBuf> {
        std::fs::read_dir(folder)
            .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
            .unwrap_or_default()
    };
    let fits = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(start));
    let outer = inside(folder.as_ref());
    outer.iter().any(fits) || outer.iter().filter(|path| path.is_dir()).any(|path| inside(path).iter().any(fits))
}

/// Installs the packages of missing programs and drivers.
pub(crate) fn provide() -> anyhow::Result<()> {
    let missing: Vec<_> = NEEDED.iter().filter(|needed| !needed.what.is_there()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    for Needed { what, package, why } in &missing {
        eprintln!("xtask: `{}` (package {package}) is missing: {why}", what.name());
    }
    let packages: Vec<&str> = missing.iter().map(|needed| needed.package).collect();
    install(&packages)
}

/// Installs packages with apt-get. If that is not possible, fails with their names.
pub(crate) fn install(packages: &[&str]) -> anyhow::Result<()> {
    let Some(prefix) = as_root() else {
        bail!("install {} and try again; installing them here needs apt-get, and root or sudo", packages.join(" "));
    };
    shell::run(apt_get(prefix, &["update", "-q"]))?;
    shell::run(apt_get(prefix, &[&["install", "-q", "-y", "--no-install-recommends"], packages].concat()))
}

/// Unpacks a second driver beside the build, for tests of users' shaders. This driver runs kernels inside the submit
/// call.
pub(crate) fn second_driver() {
    let folder = shell::root().join("target/mesa25");
    if !cfg!(target_os = "linux") || folder.join("env.sh").is_file() {
        return;
    }
    let mut script = shell::command(shell::root().join("scripts/lavapipe25.sh"));
    script.arg(&folder);
    // Outside Debian there may be no such package. Tests that need the driver report that it is missing.
    if let Err(problem) = shell::run(script) {
        eprintln!("xtask: no second driver for the tests of users' shaders: {problem:#}");
    }
}

/// The command prefix with which `apt-get` may install packages. `None` if there is no `apt-get`, or if the
/// user is not root and cannot use sudo without a password.
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
    fn a_file_is_found_in_a_folder_and_one_below_and_nowhere_else() {
        let here = shell::root().join("xtask");
        assert!(holds(&here, "Cargo.to") && holds(&here, "apt.rs"));
        assert!(!holds(&here, "no-file-starts-like-this") && !holds("no/such/folder", "Cargo.toml"));
        assert!(!holds(shell::root(), "apt.rs"), "two folders below");
    }

    #[test]
    fn apt_runs_without_questions_and_with_sudo_if_needed() {
        let shown = |command: &Command| format!("{command:?}").replace('"', "");
        let plain = apt_get(&[], &["update"]);
        assert!(shown(&plain).ends_with("env DEBIAN_FRONTEND=noninteractive apt-get update"), "{plain:?}");
        let sudo = apt_get(&["sudo", "-n"], &["update"]);
        assert!(shown(&sudo).ends_with("sudo -n env DEBIAN_FRONTEND=noninteractive apt-get update"), "{sudo:?}");
    }
}
