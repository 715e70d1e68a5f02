//! The commands that install drivers and ffmpeg, by Linux distribution.

use vramp::machine::Drivers;

use crate::devices::what_to_install;

pub(super) struct Fixes {
    family: Distribution,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Distribution {
    Debian,
    Fedora,
    Arch,
    Suse,
    Alpine,
    Other,
}

impl Fixes {
    /// Reads the distribution from `/etc/os-release`.
    pub(super) fn of(drivers: &Drivers) -> Fixes {
        let about = std::fs::read_to_string(drivers.at("/etc/os-release")).unwrap_or_default();
        Fixes { family: family(&about) }
    }

    /// The command that installs the loader and Mesa's drivers, including the driver that computes on the CPU.
    pub(super) fn vulkan(&self) -> String {
        let command = match self.family {
            Distribution::Debian => "sudo apt install libvulkan1 mesa-vulkan-drivers",
            Distribution::Fedora => "sudo dnf install vulkan-loader mesa-vulkan-drivers",
            Distribution::Arch => "sudo pacman -S vulkan-icd-loader vulkan-radeon vulkan-intel vulkan-swrast",
            Distribution::Suse => "sudo zypper install libvulkan1 libvulkan_radeon libvulkan_intel libvulkan_lvp",
            Distribution::Alpine => "sudo apk add vulkan-loader mesa-vulkan-ati mesa-vulkan-intel mesa-vulkan-swrast",
            Distribution::Other => return what_to_install().to_owned(),
        };
        command.to_owned()
    }

    /// The command that reinstalls drivers of which some files are missing.
    pub(super) fn vulkan_again(&self) -> String {
        match self.family {
            Distribution::Debian => "sudo apt install --reinstall mesa-vulkan-drivers".to_owned(),
            Distribution::Fedora => "sudo dnf reinstall mesa-vulkan-drivers".to_owned(),
            _ => self.vulkan(),
        }
    }

    pub(super) fn ffmpeg(&self) -> &'static str {
        match self.family {
            Distribution::Debian => "sudo apt install ffmpeg",
            Distribution::Fedora => "sudo dnf install ffmpeg-free",
            Distribution::Arch => "sudo pacman -S ffmpeg",
            Distribution::Suse => "sudo zypper install ffmpeg",
            Distribution::Alpine => "sudo apk add ffmpeg",
            Distribution::Other if cfg!(target_os = "macos") => "brew install ffmpeg",
            Distribution::Other if cfg!(target_os = "windows") => "winget install ffmpeg",
            Distribution::Other => "install ffmpeg",
        }
    }
}

/// The distribution that `ID=` or `ID_LIKE=` of os-release names.
fn family(about: &str) -> Distribution {
    let value = |key: &str| about.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
    let names = format!("{} {}", value("ID="), value("ID_LIKE=")).replace(['"', '\''], "");
    let families = names.split_whitespace().filter_map(|name| match name {
        "debian" | "ubuntu" => Some(Distribution::Debian),
        "fedora" | "rhel" => Some(Distribution::Fedora),
        "arch" => Some(Distribution::Arch),
        "suse" | "opensuse" | "opensuse-tumbleweed" | "opensuse-leap" => Some(Distribution::Suse),
        "alpine" => Some(Distribution::Alpine),
        _ => None,
    });
    families.into_iter().next().unwrap_or(Distribution::Other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_is_known_by_its_name_or_by_what_it_is_like() {
        for (about, known) in [
            ("PRETTY_NAME=\"Debian\"\nID=debian\n", Distribution::Debian),
            ("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", Distribution::Debian),
            ("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", Distribution::Fedora),
            ("ID=manjaro\nID_LIKE=arch", Distribution::Arch),
            ("ID=\"opensuse-tumbleweed\"", Distribution::Suse),
            ("ID=alpine", Distribution::Alpine),
            ("ID=nixos", Distribution::Other),
            ("", Distribution::Other),
        ] {
            assert_eq!(family(about), known, "{about}");
        }
    }
}
