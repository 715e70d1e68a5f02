//! This machine: its adapters, the memory and load of each adapter, and the profile to plan with.
//!
//! The crate keeps the list of adapters between runs, finds the folders of drivers ([`Drivers`]), reads memory and load
//! of adapters ([`Readings`]), and keeps calibrations ([`calibrated`]). The crate neither chooses nor opens an adapter:
//! `vramp_gpu` does both, with the readings from this crate. Until a machine is calibrated, its profile has the figures
//! of the adapter's class and the adapter's own limits.
//!
//! Invariants: drivers are queried only if the kept list is not enough; a reading is taken only on request.

pub mod calibrated;
mod drivers;
mod kept;
mod readings;

pub use drivers::{Driver, Drivers};
pub use readings::Readings;

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use vramp_gpu::{Adapter, AdapterKind, AdapterReading, Choice, Chosen, Device, OpenError};
use vramp_plan::{Figure, FigureOrigin, Limits, Profile};

/// Queries every driver for its adapters, keeps the list for later runs, and returns the list, best first.
pub fn list_adapters() -> Vec<Adapter> {
    let found = Device::choose().list();
    kept::remember(&found);
    found
}

/// The kept list of adapters, best first; none if the drivers have to be queried. Opens and queries nothing.
pub fn known_adapters() -> Option<Vec<Adapter>> {
    kept::known()
}

/// The folder for data that is kept between runs; none if the system has no cache folder. The folder may not exist yet.
pub fn cache_folder() -> Option<PathBuf> {
    kept::folder()
}

/// A choice with this machine's readings. Each adapter is read at most once, so that planning and opening choose the
/// same adapter, even if loads change in between.
pub fn choose() -> Choice {
    let readings = Readings::of_this_machine();
    Device::choose().readings(once_each(move |adapter| readings.read(adapter)))
}

/// The adapter that a choice would open. Drivers are queried only if no adapter of the kept list meets the choice.
pub fn adapter(choice: &Choice) -> Result<Adapter, OpenError> {
    Ok(chosen(choice)?.adapter)
}

/// Like `adapter`, with the reason for the choice.
pub fn chosen(choice: &Choice) -> Result<Chosen, OpenError> {
    let remembered = known_adapters().and_then(|known| choice.chosen_of(&known).ok());
    remembered.map_or_else(|| choice.chosen_of(&list_adapters()), Ok)
}

/// The profile of an adapter: the figures of the adapter's class, with the adapter's own limits. Without an adapter,
/// the profile of a machine without a device.
pub fn figures_of(adapter: Option<&Adapter>) -> Profile {
    let class = match adapter.map(|adapter| adapter.kind) {
        None => "cpu",
        Some(AdapterKind::Discrete | AdapterKind::Virtual) => "discrete",
        Some(AdapterKind::Integrated | AdapterKind::Other) => "integrated",
        Some(AdapterKind::Software) => "software",
    };
    let mut profile = Profile::shipped(class).expect("every class ships, tests/shipped.rs");
    if let Some(bytes) = readings::host_memory_bytes() {
        profile.cpu.memory_bytes = Figure { value: bytes as f64, origin: FigureOrigin::From("the machine".to_owned()) };
    }
    // The memory size of a class is only an estimate. With the real size, no pipeline is refused that would fit the
    // adapter's memory. For NVIDIA's adapters the estimate stays, because NVIDIA's library is too slow to be asked
    // here.
    let readable = adapter.filter(|adapter| adapter.vendor != readings::NVIDIA);
    if let (Some(bytes), Some(gpu)) = (readable.and_then(memory_bytes), &mut profile.gpu) {
        gpu.memory_bytes = Figure { value: bytes as f64, origin: FigureOrigin::From("the adapter".to_owned()) };
    }
    if let (Some(adapter), Some(gpu)) = (adapter, &mut profile.gpu) {
        let own = |value: u64| Figure { value: value as f64, origin: FigureOrigin::From("the adapter".to_owned()) };
        let limits = &adapter.limits;
        gpu.limits = Limits {
            storage_buffers_per_stage: own(limits.storage_buffers_per_stage.into()),
            binding_bytes: own(limits.binding_bytes),
            buffer_bytes: own(limits.buffer_bytes),
            workgroups_per_dimension: own(limits.workgroups_per_dimension.into()),
        };
    }
    profile
}

/// The size of an adapter's memory, if the size can be read. Does not wait for a second reading, which only the load
/// needs.
fn memory_bytes(adapter: &Adapter) -> Option<u64> {
    Readings::of_this_machine().waiting(|| Duration::ZERO).read(adapter).memory_bytes.value()
}

/// The profile with the real size of the adapter's memory; none if that size is unknown or not larger than the size in
/// the profile.
pub fn with_real_memory(mut profile: Profile, adapter: &Adapter) -> Option<Profile> {
    let gpu = profile.gpu.as_mut()?;
    let bytes = memory_bytes(adapter).filter(|bytes| *bytes > gpu.memory_bytes.whole())?;
    gpu.memory_bytes = Figure { value: bytes as f64, origin: FigureOrigin::From("the adapter".to_owned()) };
    Some(profile)
}

/// Wraps `read` so that each adapter is read once; later calls return the first result.
fn once_each(
    read: impl Fn(&Adapter) -> AdapterReading + Send + Sync,
) -> impl Fn(&Adapter) -> AdapterReading + Send + Sync {
    let taken = Mutex::new(Vec::<(Adapter, AdapterReading)>::new());
    move |adapter| {
        // The index is not compared, because the index depends on the other adapters of the list.
        let adapter = Adapter { index: 0, ..adapter.clone() };
        let mut taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, reading)) = taken.iter().find(|(known, _)| *known == adapter) {
            return reading.clone();
        }
        let reading = read(&adapter);
        taken.push((adapter, reading.clone()));
        reading
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use vramp_gpu::Readout;

    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_class_has_the_memory_of_the_machine() {
        let text = std::fs::read_to_string("/proc/meminfo").expect("Linux has it");
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:")).expect("it has the total");
        let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
        assert_eq!(figures_of(None).cpu.memory_bytes.whole(), kib << 10);
    }

    #[test]
    fn an_adapter_is_read_once_wherever_it_stands_in_a_list() {
        let count = AtomicU64::new(0);
        let read = once_each(|_| AdapterReading {
            memory_bytes: Readout::is(count.fetch_add(1, Ordering::Relaxed), "a count"),
            ..AdapterReading::unavailable("not read")
        });
        let one = readings::an_adapter(AdapterKind::Discrete);
        let elsewhere = Adapter { index: 7, ..one.clone() };
        let other = Adapter { name: "Another".to_owned(), ..one.clone() };
        let values: Vec<_> = [&one, &elsewhere, &other, &one].map(|adapter| read(adapter).memory_bytes.value()).into();
        assert_eq!(values, [Some(0), Some(0), Some(1), Some(0)]);
    }
}
