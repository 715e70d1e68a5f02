//! AMD's cards: files of the `amdgpu` kernel driver.
//!
//! A chip that shares the host's memory has a reserved part (`vram`) and a part that the chip may borrow (`gtt`). Both
//! parts count.

use std::path::Path;

use vramp_gpu::{AdapterKind, AdapterReading, Readout};

use super::card::Card;
use super::files;

pub(super) const DRIVER: &str = "amdgpu";

pub(super) fn read(card: &Card, kind: AdapterKind) -> AdapterReading {
    let regions: &[&str] = if kind == AdapterKind::Integrated { &["vram", "gtt"] } else { &["vram"] };
    let sum = |what: &str| -> Readout<u64> {
        let files = regions.iter().map(|region| card.file(&format!("mem_info_{region}_{what}")));
        let sum = files.clone().map(|file| files::number(&file)).sum::<Result<u64, String>>();
        let from = files.map(|file| file.display().to_string()).collect::<Vec<_>>().join(" and ");
        sum.map_or_else(Readout::Unavailable, |bytes| Readout::is(bytes, from))
    };
    AdapterReading {
        memory_bytes: sum("total"),
        used_bytes: sum("used"),
        load_percent: busy(&card.file("gpu_busy_percent")),
    }
}

fn busy(file: &Path) -> Readout<f32> {
    match files::number(file) {
        Ok(percent @ 0..=100) => Readout::is(percent as f32, file.display().to_string()),
        Ok(more) => Readout::unavailable(format!("{}: {more} is not a percentage", file.display())),
        Err(why) => Readout::Unavailable(why),
    }
}
