//! Memory and load of adapters at this moment.
//!
//! The sources for each kind of adapter:
//!
//! - NVIDIA's driver: memory and load from NVIDIA's management library, which is loaded when a reading is taken
//!   (feature `nvml`, on by default).
//! - `amdgpu`: memory from `mem_info_vram_*`, and also from `mem_info_gtt_*` for chips that share the host's memory;
//!   load from `gpu_busy_percent`.
//! - `i915`, `xe` and other DRM drivers: memory from `lmem_total_bytes` or `tile*/physical_vram_size_bytes`, or the
//!   host's memory for chips that share the host's memory; load of the busiest engine from `drm-engine-*` or
//!   `drm-cycles-*` of all processes, read twice.
//! - Software: memory of the host from `/proc/meminfo`; load of the CPU from `/proc/stat`, read twice.
//!
//! Memory and load are read on Linux, and on Windows for NVIDIA's cards. Nothing is cached. For a value that cannot be
//! read, the result is a reason, never a guess and never zero.

mod amd;
mod card;
mod files;
mod host;
mod intel;
mod nvidia;
mod usage;

#[cfg(test)]
pub(super) mod tree;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use vramp_gpu::{Adapter, AdapterKind, AdapterReading, Readout};

use card::Card;
use usage::Usage;

/// Time between two readings of a counter. The CPU's times have a resolution of 10 ms.
const INTERVAL: Duration = Duration::from_millis(100);

pub(super) const NVIDIA: u32 = 0x10de;

/// Reads the memory and the load of adapters, on this machine or from a file tree.
#[derive(Clone)]
pub struct Readings {
    root: PathBuf,
    is_this_machine: bool,
    wait: Arc<dyn Fn() -> Duration + Send + Sync>,
}

impl fmt::Debug for Readings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readings").field("root", &self.root).finish_non_exhaustive()
    }
}

/// The host's memory; none on systems other than Linux.
pub(crate) fn host_memory_bytes() -> Option<u64> {
    host::memory(std::path::Path::new("/"), "this is the host").memory_bytes.value()
}

impl Readings {
    pub fn of_this_machine() -> Readings {
        Readings { is_this_machine: true, ..Readings::rooted_at("/") }
    }

    /// Reads files below a folder that has `sys` and `proc` as on Linux.
    pub fn rooted_at(root: impl Into<PathBuf>) -> Readings {
        let wait = || {
            let begun = Instant::now();
            std::thread::sleep(INTERVAL);
            begun.elapsed()
        };
        Readings { root: root.into(), is_this_machine: false, wait: Arc::new(wait) }
    }

    /// Replaces the wait of 100 ms between two readings of a counter. The function returns the elapsed time.
    #[must_use]
    pub fn waiting(mut self, wait: impl Fn() -> Duration + Send + Sync + 'static) -> Readings {
        self.wait = Arc::new(wait);
        self
    }

    /// Reads an adapter. May take 100 ms.
    pub fn read(&self, adapter: &Adapter) -> AdapterReading {
        self.read_all(std::slice::from_ref(adapter)).pop().expect("one answer for one adapter")
    }

    /// Reads several adapters. May take 100 ms in all.
    pub fn read_all(&self, adapters: &[Adapter]) -> Vec<AdapterReading> {
        let cards = card::cards(&self.root);
        let sources: Vec<ReadingSource> = adapters.iter().map(|adapter| self.source(adapter, &cards)).collect();
        let counts_host = sources.iter().any(|source| matches!(source, ReadingSource::Host));
        let counts_cards =
            sources.iter().any(|source| matches!(source, ReadingSource::Card(card) if card.driver != amd::DRIVER));
        let counted = || {
            let cpu = counts_host.then(|| host::cpu_times(&self.root));
            (cpu, counts_cards.then(|| Usage::now(&self.root)))
        };
        let before = counted();
        let took = if counts_host || counts_cards { (self.wait)() } else { Duration::ZERO };
        let after = counted();
        let read = |(adapter, source): (&Adapter, &ReadingSource)| match source {
            ReadingSource::Host => AdapterReading {
                load_percent: host::load(before.0.as_ref(), after.0.as_ref(), took),
                ..host::memory(&self.root, "this adapter computes on the CPU")
            },
            ReadingSource::Card(card) if card.driver == amd::DRIVER => amd::read(card, adapter.kind),
            ReadingSource::Card(card) => self.counting(card, adapter, before.1.as_ref(), after.1.as_ref(), took),
            ReadingSource::Nvidia => nvidia::read(adapter),
            ReadingSource::Unavailable(why) => AdapterReading::unavailable(why.as_str()),
        };
        adapters.iter().zip(&sources).map(read).collect()
    }

    /// The source of readings of an adapter.
    fn source<'c>(&self, adapter: &Adapter, cards: &'c Result<Vec<Card>, String>) -> ReadingSource<'c> {
        let has_files = cfg!(target_os = "linux") || !self.is_this_machine;
        if adapter.kind == AdapterKind::Software {
            let elsewhere = "this adapter computes on the CPU, whose memory and load vramp reads only on Linux";
            return if has_files { ReadingSource::Host } else { ReadingSource::Unavailable(elsewhere.into()) };
        }
        let card = match cards {
            Ok(cards) if has_files => card::of(adapter, cards, &self.root),
            Err(why) if has_files => Err(why.clone()),
            _ => Err("on systems other than Linux, vramp reads memory and load of NVIDIA's cards only".to_owned()),
        };
        match card {
            Ok(card) if card.driver != nvidia::DRIVER => ReadingSource::Card(card),
            _ if adapter.vendor == NVIDIA && self.is_this_machine => ReadingSource::Nvidia,
            Ok(_) => ReadingSource::Unavailable(
                "NVIDIA's driver reports memory and load through a library, not in files".into(),
            ),
            Err(why) => ReadingSource::Unavailable(why),
        }
    }

    /// Reads a card whose driver reports engine times and memory use per process.
    fn counting(
        &self,
        card: &Card,
        adapter: &Adapter,
        before: Option<&Usage>,
        after: Option<&Usage>,
        took: Duration,
    ) -> AdapterReading {
        let load_percent = match (before, after) {
            (Some(before), Some(after)) => after.load(before, card, took),
            _ => Readout::unavailable("the load was not measured"),
        };
        let own = intel::memory(card);
        if own.is_none() && adapter.kind == AdapterKind::Integrated {
            return AdapterReading {
                load_percent,
                ..host::memory(&self.root, "this adapter shares the host's memory")
            };
        }
        let seen =
            || after.map_or_else(|| Readout::unavailable("the use was not measured"), |usage| usage.own_memory(card));
        let unknown = || format!("{} does not report the size of the card's memory in any file", card.driver);
        let (memory_bytes, used_bytes) = own.unwrap_or_else(|| (Readout::unavailable(unknown()), None));
        AdapterReading { memory_bytes, used_bytes: used_bytes.unwrap_or_else(seen), load_percent }
    }
}

/// The source of readings of an adapter.
enum ReadingSource<'c> {
    /// `/proc`: the adapter computes on the host's CPU.
    Host,
    /// The files of a kernel driver.
    Card(&'c Card),
    /// NVIDIA's management library.
    Nvidia,
    /// No source, for this reason.
    Unavailable(String),
}

#[cfg(test)]
pub(super) use tests::an_adapter;

#[cfg(test)]
mod tests;
