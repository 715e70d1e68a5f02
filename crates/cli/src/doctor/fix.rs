//! What to type to install something, by the system's own name.
//!
//! Owns the packages of each family of Linux systems.
//! Does not install anything.

use vramp::machine::Drivers;

use crate::devices::what_to_install;

/// The words for this system.
pub(super) struct Fixes {
    family: Family,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    Debian,
    Fedora,
    Arch,
    Suse,
    Alpine,
    Other,
}

impl Fixes {
    /// By what the system says of itself.
    pub(super) fn of(drivers: &Drivers) -> Fixes {
        let about = std::fs::read_to_string(drivers.at("/etc/os-release")).unwrap_or_default();
        Fixes { family: family(&about) }
    }

    /// The loader and Mesa's drivers, those that compute on the cpu among them.
    pub(super) fn vulkan(&self) -> String {
        let command = match self.family {
            Family::Debian => "sudo apt install libvulkan1 mesa-vulkan-drivers",
            Family::Fedora => "sudo dnf install vulkan-loader mesa-vulkan-drivers",
            Family::Arch => "sudo pacman -S vulkan-icd-loader vulkan-radeon vulkan-intel vulkan-swrast",
            Family::Suse => "sudo zypper install libvulkan1 libvulkan_radeon libvulkan_intel libvulkan_lvp",
            Family::Alpine => "sudo apk add vulkan-loader mesa-vulkan-ati mesa-vulkan-intel mesa-vulkan-swrast",
            Family::Other => return what_to_install().to_owned(),
        };
        command.to_owned()
    }

    /// The same again, where files of it are missing.
    pub(super) fn vulkan_again(&self) -> String {
        match self.family {
            Family::Debian => "sudo apt install --reinstall mesa-vulkan-drivers".to_owned(),
            Family::Fedora => "sudo dnf reinstall mesa-vulkan-drivers".to_owned(),
            _ => self.vulkan(),
        }
    }

    pub(super) fn ffmpeg(&self) -> &'static str {
        match self.family {
            Family::Debian => "sudo apt install ffmpeg",
            Family::Fedora => "sudo dnf install ffmpeg-free",
            Family::Arch => "sudo pacman -S ffmpeg",
            Family::Suse => "sudo zypper install ffmpeg",
            Family::Alpine => "sudo apk add ffmpeg",
            Family::Other if cfg!(target_os = "macos") => "brew install ffmpeg",
            Family::Other if cfg!(target_os = "windows") => "winget install ffmpeg",
            Family::Other => "install ffmpeg",
        }
    }
}

/// `ID=` and `ID_LIKE=` of os-release.
fn family(about: &str) -> Family {
    let value = |key: &str| about.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
    let names = format!("{} {}", value("ID="), value("ID_LIKE=")).replace(['"', '\''], "");
    let families = names.split_whitespace().filter_map(|name| match name {
        "debian" | "ubuntu" => Some(Family::Debian),
        "fedora" | "rhel" => Some(Family::Fedora),
        "arch" => Some(Family::Arch),
        "suse" | "opensuse" | "opensuse-tumbleweed" | "opensuse-leap" => Some(Family::Suse),
        "alpine" => Some(Family::Alpine),
        _ => None,
    });
    families.into_iter().next().unwrap_or(Family::Other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_is_known_by_its_name_or_by_what_it_is_like() {
        for (about, known) in [
            ("PRETTY_NAME=\"Debian\"\nID=debian\n", Family::Debian),
            ("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", Family::Debian),
            ("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", Family::Fedora),
            ("ID=manjaro\nID_LIKE=arch", Family::Arch),
            ("ID=\"opensuse-tumbleweed\"", Family::Suse),
            ("ID=alpine", Family::Alpine),
            ("ID=nixos", Family::Other),
            ("", Family::Other),
        ] {
            assert_eq!(family(about), known, "{about}");
        }
    }
}
