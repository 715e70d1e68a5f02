//! AMD's cards: the files of the `amdgpu` kernel driver.
//!
//! Owns their names and meaning.
//! Does not look for the card.
//!
//! Always: a chip that shares the host's memory has both what was set aside for it and what it may borrow.

use std::path::Path;

use vramp_gpu::{AdapterKind, Known, Reading};

use super::card::Card;
use super::files;

pub(super) const DRIVER: &str = "amdgpu";

/// What its files tell.
pub(super) fn read(card: &Card, kind: AdapterKind) -> Reading {
    let regions: &[&str] = if kind == AdapterKind::Integrated { &["vram", "gtt"] } else { &["vram"] };
    let sum = |what: &str| -> Known<u64> {
        let files = regions.iter().map(|region| card.file(&format!("mem_info_{region}_{what}")));
        let sum = files.clone().map(|file| files::number(&file)).sum::<Result<u64, String>>();
        let from = files.map(|file| file.display().to_string()).collect::<Vec<_>>().join(" and ");
        sum.map_or_else(Known::Unavailable, |bytes| Known::is(bytes, from))
    };
    Reading { memory_bytes: sum("total"), used_bytes: sum("used"), load_percent: busy(&card.file("gpu_busy_percent")) }
}

fn busy(file: &Path) -> Known<f32> {
    match files::number(file) {
        Ok(percent @ 0..=100) => Known::is(percent as f32, file.display().to_string()),
        Ok(more) => Known::unavailable(format!("{}: {more} is no percentage", file.display())),
        Err(why) => Known::Unavailable(why),
    }
}
