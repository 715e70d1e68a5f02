//! The profile of a device that is already open.
//!
//! The profile has the figures of the adapter's class and the device's own limits. Drivers are not queried, because
//! listing adapters again would take longer than most tests.
//!
//! Invariant: plans with this profile fit the limits that the device was opened with, which may be lower than the
//! adapter's limits.

use vramp_gpu::{Adapter, Device};
use vramp_plan::Profile;

use vramp_machine::figures_of;

pub(crate) fn figures(device: &Device) -> Profile {
    figures_of(Some(&Adapter { limits: *device.limits(), ..device.adapter().clone() }))
}

#[cfg(test)]
mod tests {
    use vramp_gpu::LimitSet;

    use super::*;

    #[test]
    fn a_device_that_was_opened_with_less_is_planned_with_less() {
        let device = Device::choose().limits(LimitSet::Downlevel).open().expect("an adapter");
        let limits = figures(&device).gpu.expect("it has a device").limits;
        let own = device.limits();
        let most = device.adapter().limits.storage_buffers_per_stage;
        assert!(own.storage_buffers_per_stage < most, "its adapter has more: {most}");
        let planned = (limits.binding_bytes.value, limits.storage_buffers_per_stage.value);
        assert_eq!(planned, (own.binding_bytes as f64, f64::from(own.storage_buffers_per_stage)));
    }
}
