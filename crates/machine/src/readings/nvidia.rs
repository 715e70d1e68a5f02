//! NVIDIA's cards: the management library (NVML) that comes with NVIDIA's driver.
//!
//! The library is loaded when a reading is taken, and is not needed to build vramp. Without the library, or without the
//! feature `nvml`, the reading is unavailable.

use vramp_gpu::{Adapter, AdapterReading};

/// NVIDIA's own kernel driver, which reports nothing in files.
pub(super) const DRIVER: &str = "nvidia";

#[cfg(all(feature = "nvml", any(target_os = "linux", target_os = "windows")))]
pub(super) fn read(adapter: &Adapter) -> AdapterReading {
    use nvml_wrapper::error::NvmlError;
    use nvml_wrapper::{Device, Nvml};
    use vramp_gpu::Readout;

    fn find<'n>(nvml: &'n Nvml, adapter: &Adapter) -> Result<Device<'n>, String> {
        if let Some(pci) = &adapter.pci {
            return nvml.device_by_pci_bus_id(pci.as_str()).map_err(|error| words(&error));
        }
        let ids = adapter.model << 16 | adapter.vendor;
        let count = nvml.device_count().map_err(|error| words(&error))?;
        let mut found = Vec::new();
        for index in 0..count {
            let device = nvml.device_by_index(index).map_err(|error| words(&error))?;
            // OpenGL reports the vendor, but no device number.
            if adapter.model == 0 || device.pci_info().is_ok_and(|info| info.pci_device_id == ids) {
                found.push(device);
            }
        }
        let one = if found.len() == 1 { found.pop() } else { None };
        one.ok_or_else(|| {
            format!(
                "{} of {count} cards in NVIDIA's library match, so it is unknown which card this adapter is",
                found.len()
            )
        })
    }

    fn words(error: &NvmlError) -> String {
        format!("NVIDIA's library reports: {error}")
    }

    let nvml = match Nvml::init() {
        Ok(nvml) => nvml,
        Err(error) => {
            return AdapterReading::unavailable(format!(
                "NVIDIA's management library, which comes with NVIDIA's driver, does not answer: {error}"
            ));
        }
    };
    let device = match find(&nvml, adapter) {
        Ok(device) => device,
        Err(why) => return AdapterReading::unavailable(why),
    };
    let memory = device.memory_info().map_err(|error| words(&error));
    let load = device.utilization_rates().map_err(|error| words(&error));
    let from = "NVIDIA's management library";
    let bytes = |bytes: Result<u64, String>| bytes.map_or_else(Readout::Unavailable, |bytes| Readout::is(bytes, from));
    AdapterReading {
        memory_bytes: bytes(memory.as_ref().map(|memory| memory.total).map_err(Clone::clone)),
        used_bytes: bytes(memory.map(|memory| memory.used)),
        load_percent: load.map_or_else(Readout::Unavailable, |load| Readout::is(load.gpu as f32, from)),
    }
}

#[cfg(not(all(feature = "nvml", any(target_os = "linux", target_os = "windows"))))]
pub(super) fn read(_: &Adapter) -> AdapterReading {
    AdapterReading::unavailable(
        "only NVIDIA's library reports memory and load, and this vramp was built without the feature `nvml`",
    )
}
