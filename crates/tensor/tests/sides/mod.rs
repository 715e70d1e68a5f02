//! Contexts for tests: one on the host and one on the device, which must exist.

use vramp_gpu::Device;
use vramp_tensor::Context;

pub fn device() -> Device {
    Device::choose().open().expect("these tests need an adapter; install mesa-vulkan-drivers")
}

pub fn on_device() -> Context {
    Context::on(&device()).expect("a device that opens can be used")
}

/// A context on each side, for facts that hold on both.
pub fn both() -> [(&'static str, Context); 2] {
    [("host", Context::on_host()), ("device", on_device())]
}
