//! Graphics cards in Linux's `/sys/class/drm`, and the card of an adapter.
//!
//! If the adapter's driver reports a PCI address, the card is found by this address, and otherwise by vendor and device
//! number. If several cards have these numbers, no card is taken.

use std::fs;
use std::path::{Path, PathBuf};

use vramp_gpu::Adapter;

use super::files;

/// A card with a kernel driver.
pub(super) struct Card {
    /// For example `/sys/class/drm/card0`.
    pub(super) folder: PathBuf,
    pub(super) driver: String,
    /// PCI address; none if the card is not on a PCI bus.
    pub(super) pci: Option<String>,
    vendor: Option<u64>,
    model: Option<u64>,
}

impl Card {
    #[cfg(test)]
    pub(super) fn of_driver(driver: &str, pci: &str) -> Card {
        let (driver, pci) = (driver.to_owned(), Some(pci.to_owned()));
        Card { folder: PathBuf::new(), driver, pci, vendor: None, model: None }
    }

    /// A file of the card's device.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.join("device").join(name)
    }
}

pub(super) fn cards(root: &Path) -> Result<Vec<Card>, String> {
    let folder = root.join("sys/class/drm");
    let entries =
        fs::read_dir(&folder).map_err(|_| format!("{}: it does not exist, or cannot be read", folder.display()))?;
    // `card0` is a card, and `card0-HDMI-A-1` is a connector of that card.
    let is_card = |name: &str| {
        name.strip_prefix("card").is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let mut folders: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(is_card))
        .collect();
    folders.sort();
    Ok(folders.into_iter().map(card).collect())
}

/// The card of an adapter.
pub(super) fn of<'c>(adapter: &Adapter, cards: &'c [Card], root: &Path) -> Result<&'c Card, String> {
    let place = root.join("sys/class/drm").display().to_string();
    if let Some(pci) = &adapter.pci {
        let found = cards.iter().find(|card| card.pci.as_ref() == Some(pci));
        return found.ok_or_else(|| format!("no card in {place} is at the PCI address {pci}"));
    }
    let (vendor, model) = (u64::from(adapter.vendor), u64::from(adapter.model));
    // OpenGL reports the vendor, but no device number.
    let is_it = |card: &&Card| card.vendor == Some(vendor) && (model == 0 || card.model == Some(model));
    let mut found = cards.iter().filter(is_it);
    let ids = if model == 0 { format!("{vendor:04x}") } else { format!("{vendor:04x}:{model:04x}") };
    match (found.next(), found.next()) {
        (Some(card), None) => Ok(card),
        (Some(_), Some(_)) => {
            Err(format!("several cards in {place} are {ids}, and the adapter's driver reports no PCI address"))
        }
        (None, _) => Err(format!("no card in {place} is {ids}, and the adapter's driver reports no PCI address")),
    }
}

fn card(folder: PathBuf) -> Card {
    let device = folder.join("device");
    let about = files::text(&device.join("uevent")).unwrap_or_default();
    let value = |key: &str| about.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('=')).map(str::trim);
    let number = |name: &str| files::number(&device.join(name)).ok();
    Card {
        driver: value("DRIVER").unwrap_or("a driver without a name").to_owned(),
        pci: value("PCI_SLOT_NAME").map(str::to_lowercase),
        vendor: number("vendor"),
        model: number("device"),
        folder,
    }
}
