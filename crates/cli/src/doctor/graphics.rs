//! Checks of graphics drivers, of the variables that control them, and of permissions on device nodes.
//!
//! The checks look at the driver directories and variables ([`Drivers`]) that also decide whether the stored list of
//! adapters is still valid. Tests replace the root directory and the environment. The checks load no
//! driver: the caller passes the adapters that were found.
//!
//! A variable that names a missing file is a problem, since nothing works until the variable is changed. A missing
//! graphics card is not a problem.

use std::io;
use std::path::{Path, PathBuf};

use vramp::gpu::{Adapter, AdapterKind, Backend};
use vramp::machine::{Driver, Drivers};

use super::HealthCheck;
use super::fix::Fixes;

/// Variables of wgpu that vramp does not read, and the options of vramp with the same effect.
const NOT_READ: [(&str, &str); 3] =
    [("WGPU_BACKEND", "--backend API"), ("WGPU_ADAPTER_NAME", "--device NAME"), ("WGPU_POWER_PREF", "--device N")];
/// Variables that make the Vulkan loader skip drivers.
const FILTERS: [&str; 2] = ["VK_LOADER_DRIVERS_SELECT", "VK_LOADER_DRIVERS_DISABLE"];

/// The files and variables that graphics depends on.
pub(super) struct Surroundings {
    pub(super) drivers: Drivers,
    /// Tries to open a device node. Tests replace this function.
    may_open: fn(&Path) -> io::Result<()>,
}

impl Surroundings {
    pub(super) fn of_this_machine() -> Surroundings {
        let may_open = |node: &Path| std::fs::File::options().read(true).write(true).open(node).map(drop);
        Surroundings { drivers: Drivers::of_this_machine(), may_open }
    }

    /// The device nodes of graphics hardware.
    fn nodes(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.drivers.at("/dev/dri")).into_iter().flatten().flatten();
        let is_node =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"renderD"));
        let mut nodes: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_node).collect();
        nodes.sort();
        nodes
    }
}

/// Reports three kinds of variables: those that name driver files (a problem if a file is missing), those that vramp
/// ignores, and those that make the loader skip drivers.
pub(super) fn variables(here: &Surroundings) -> Vec<HealthCheck> {
    let drivers = &here.drivers;
    let mut checks = Vec::new();
    for (name, files) in drivers.named() {
        let shown: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        let missing: Vec<&str> =
            files.iter().zip(&shown).filter(|(file, _)| !file.exists()).map(|(_, shown)| shown.as_str()).collect();
        let unset = format!("unset {name}");
        checks.push(match &missing[..] {
            [] => HealthCheck::ok(name, format!("names {}", shown.join(", "))),
            [one] => HealthCheck::problem(name, format!("names {one}, which does not exist"), unset),
            many => HealthCheck::problem(name, format!("names {}, which do not exist", many.join(", ")), unset),
        });
    }
    for (name, instead) in NOT_READ {
        if let Some(value) = drivers.var(name) {
            let words = format!("is set to `{}`, but vramp does not read it; use {instead}", value.display());
            checks.push(HealthCheck::warning(name, words).fix(format!("unset {name}")));
        }
    }
    for name in FILTERS {
        if let Some(value) = drivers.var(name) {
            let words = format!("is set to `{}`, so the Vulkan loader may skip drivers", value.display());
            checks.push(HealthCheck::warning(name, words).fix(format!("unset {name}")));
        }
    }
    checks
}

/// Checks the Vulkan loader, the drivers that the loader would find, and the device nodes.
pub(super) fn files(here: &Surroundings, adapters: &[Adapter], fixes: &Fixes) -> Vec<HealthCheck> {
    let answers = adapters.iter().any(|adapter| adapter.backend == Backend::Vulkan);
    let mut checks = vec![loader(here, answers, fixes)];
    checks.extend(described(here, answers, fixes));
    checks.extend(permission(here, adapters));
    checks
}

/// Checks which adapters were found.
pub(super) fn adapter(here: &Surroundings, adapters: &[Adapter], fixes: &Fixes) -> HealthCheck {
    let is_linux = cfg!(target_os = "linux");
    let install = || if is_linux { fixes.vulkan() } else { crate::devices::what_to_install().to_owned() };
    let sees_none = is_linux && here.nodes().is_empty();
    let Some(first) = adapters.first() else {
        return HealthCheck::warning("adapter", "none found: everything runs on the CPU").fix(install());
    };
    if first.kind != AdapterKind::Software {
        return HealthCheck::ok("adapter", first.to_string());
    }
    let words = format!("only software: {} ({}) computes on the CPU", first.name, first.backend);
    if sees_none {
        return HealthCheck::warning(
            "adapter",
            format!("{words}; this system has no graphics hardware (no /dev/dri/renderD*)"),
        );
    }
    HealthCheck::warning("adapter", words).fix(install())
}

fn loader(here: &Surroundings, answers: bool, fixes: &Fixes) -> HealthCheck {
    match here.drivers.library("libvulkan.so.1") {
        Some(file) => HealthCheck::ok("loader", file.display().to_string()),
        None if answers => HealthCheck::ok("loader", "Vulkan works"),
        None => {
            let folders: Vec<String> =
                here.drivers.library_folders().iter().map(|folder| folder.display().to_string()).collect();
            let words = format!("no libvulkan.so.1 in {}: no Vulkan driver can be loaded", folders.join(", "));
            HealthCheck::warning("loader", words).fix(fixes.vulkan())
        }
    }
}

fn described(here: &Surroundings, answers: bool, fixes: &Fixes) -> Vec<HealthCheck> {
    let drivers = here.drivers.vulkan();
    let whole = drivers.iter().filter(|driver| driver.library.is_some()).count();
    let mut checks = Vec::new();
    if drivers.is_empty() && !answers {
        // If a variable names the drivers, `variables` has already reported that variable.
        let named = here.drivers.named().iter().any(|(name, _)| *name != "VK_ADD_DRIVER_FILES");
        let words = if named { "the variables above leave no driver" } else { "vulkan/icd.d describes no driver" };
        let check = HealthCheck::warning("drivers", words);
        checks.push(if named { check } else { check.fix(fixes.vulkan()) });
    } else if whole > 0 {
        let name = |driver: &Driver| Some(driver.library.as_ref()?.file_name()?.to_string_lossy().into_owned());
        let names: Vec<String> = drivers.iter().filter_map(name).collect();
        checks.push(HealthCheck::ok("drivers", names.join(", ")));
    }
    for driver in drivers.iter().filter(|driver| driver.library.is_none()) {
        let words = format!("{} names {}, which does not exist", driver.description.display(), driver.names);
        let again = fixes.vulkan_again();
        let check = if answers {
            HealthCheck::warning("drivers", words).fix(again)
        } else {
            HealthCheck::problem("drivers", words, again)
        };
        checks.push(check);
    }
    checks
}

/// Checks whether the process may open the graphics hardware.
fn permission(here: &Surroundings, adapters: &[Adapter]) -> Option<HealthCheck> {
    let nodes = here.nodes();
    let refused: Vec<(&PathBuf, io::Error)> =
        nodes.iter().filter_map(|node| Some((node, (here.may_open)(node).err()?))).collect();
    let Some((node, error)) = refused.first() else {
        let shown: Vec<String> = nodes.iter().map(|node| node.display().to_string()).collect();
        return (!nodes.is_empty())
            .then(|| HealthCheck::ok("permission", format!("{} can be opened", shown.join(", "))));
    };
    let group = group_of(&here.drivers, node);
    let (whose, fix) = match &group {
        Some(group) if group != "root" => (
            format!("; it is open to the group `{group}`"),
            format!("sudo usermod -aG {group} $USER, and log in again"),
        ),
        _ => (String::new(), format!("sudo chmod a+rw {}", node.display())),
    };
    let words = format!("{}: {error}{whose}", node.display());
    let answers = adapters.iter().any(|adapter| adapter.kind != AdapterKind::Software);
    Some(match (error.kind(), answers) {
        (io::ErrorKind::PermissionDenied, false) => HealthCheck::problem("permission", words, fix),
        (io::ErrorKind::PermissionDenied, true) => HealthCheck::warning("permission", words).fix(fix),
        _ => HealthCheck::warning("permission", words),
    })
}

/// The name of the group that owns a file.
#[cfg(unix)]
fn group_of(drivers: &Drivers, file: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;
    let id = std::fs::metadata(file).ok()?.gid().to_string();
    let groups = std::fs::read_to_string(drivers.at("/etc/group")).ok()?;
    let mut groups = groups.lines().map(|line| line.split(':').collect::<Vec<_>>());
    groups.find_map(|group| (group.get(2) == Some(&id.as_str())).then(|| group[0].to_owned()))
}

#[cfg(not(unix))]
fn group_of(_: &Drivers, _: &Path) -> Option<String> {
    None
}

#[cfg(test)]
mod tests;
