//! Memory of Intel's cards, from files of the `i915` and `xe` kernel drivers. Not every version of these drivers has
//! such files.
//!
//! The load is counted per process ([`Usage`](super::usage::Usage)).

use std::fs;
use std::path::PathBuf;

use vramp_gpu::Readout;

use super::card::Card;
use super::files;

/// The size of the card's own memory, and, if a file reports the use, how much of that memory is in use. None if no
/// file reports the size, as for chips that share the host's memory.
pub(super) fn memory(card: &Card) -> Option<(Readout<u64>, Option<Readout<u64>>)> {
    let (total, free) = (card.folder.join("lmem_total_bytes"), card.folder.join("lmem_avail_bytes"));
    if total.exists() {
        let used = files::number(&total).and_then(|all| Ok(all.saturating_sub(files::number(&free)?)));
        let used = known(used, format!("the total minus {}", free.display()));
        return Some((known(files::number(&total), total.display().to_string()), Some(used)));
    }
    let tiles = tiles(card);
    let from = tiles.first()?.display().to_string();
    let bytes = tiles.iter().map(|file| files::number(file)).sum();
    Some((known(bytes, from), None))
}

fn known(bytes: Result<u64, String>, from: String) -> Readout<u64> {
    bytes.map_or_else(Readout::Unavailable, |bytes| Readout::is(bytes, from))
}

/// The files with the memory sizes, one per tile of the card.
fn tiles(card: &Card) -> Vec<PathBuf> {
    let entries = fs::read_dir(card.file("")).into_iter().flatten().flatten();
    let is_tile = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.and_then(|name| name.strip_prefix("tile")).is_some_and(|rest| rest.parse::<u32>().is_ok())
    };
    let folders = entries.map(|entry| entry.path()).filter(is_tile);
    let mut files: Vec<PathBuf> =
        folders.map(|folder| folder.join("physical_vram_size_bytes")).filter(|file| file.exists()).collect();
    files.sort();
    files
}
