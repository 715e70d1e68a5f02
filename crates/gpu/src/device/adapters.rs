//! The adapters of this machine as plain data, and how to list them.
//!
//! Listing opens no adapter, but takes 25 to 250 ms, so callers that list often should cache the result.

use std::fmt;
#[cfg(not(target_arch = "wasm32"))]
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::present::display;

/// The graphics API of an adapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    Vulkan,
    Metal,
    /// Direct3D 12.
    Dx12,
    /// OpenGL ES.
    #[serde(rename = "gl")]
    Gles,
    /// WebGPU in a browser.
    WebGpu,
    /// Keeps buffers and computes nothing, for tests. Chosen only if the caller names this backend.
    Noop,
}

impl Backend {
    /// The backends that compute.
    pub const REAL: [Self; 5] = [Self::Vulkan, Self::Metal, Self::Dx12, Self::Gles, Self::WebGpu];

    pub(super) fn flag(self) -> wgpu::Backends {
        match self {
            Self::Vulkan => wgpu::Backends::VULKAN,
            Self::Metal => wgpu::Backends::METAL,
            Self::Dx12 => wgpu::Backends::DX12,
            Self::Gles => wgpu::Backends::GL,
            Self::WebGpu => wgpu::Backends::BROWSER_WEBGPU,
            Self::Noop => wgpu::Backends::NOOP,
        }
    }

    fn of(backend: wgpu::Backend) -> Self {
        match backend {
            wgpu::Backend::Vulkan => Self::Vulkan,
            wgpu::Backend::Metal => Self::Metal,
            wgpu::Backend::Dx12 => Self::Dx12,
            wgpu::Backend::Gl => Self::Gles,
            wgpu::Backend::BrowserWebGpu => Self::WebGpu,
            wgpu::Backend::Noop => Self::Noop,
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Vulkan => "vulkan",
            Self::Metal => "metal",
            Self::Dx12 => "dx12",
            Self::Gles => "gl",
            Self::WebGpu => "webgpu",
            Self::Noop => "noop",
        })
    }
}

/// The kind of an adapter, in order of preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AdapterKind {
    /// A GPU with its own memory.
    Discrete,
    /// A GPU that shares the CPU's memory.
    Integrated,
    /// A GPU passed through to a virtual machine.
    Virtual,
    /// The driver does not report the kind.
    Other,
    /// A driver that computes on the CPU.
    Software,
}

impl fmt::Display for AdapterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Discrete => "discrete",
            Self::Integrated => "integrated",
            Self::Virtual => "virtual",
            Self::Other => "other",
            Self::Software => "software",
        })
    }
}

/// The limits that plans and recordings depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceLimits {
    /// Maximum number of storage buffers that a kernel may bind.
    pub storage_buffers_per_stage: u32,
    /// Maximum size of a storage buffer binding.
    pub binding_bytes: u64,
    pub buffer_bytes: u64,
    /// Maximum size of a parameter block.
    pub params_bytes: u64,
    /// Alignment of dynamic offsets of parameter blocks.
    pub params_alignment: u32,
    pub workgroups_per_dimension: u32,
    pub invocations_per_workgroup: u32,
    /// Maximum size of a workgroup's shared memory.
    pub workgroup_bytes: u32,
    /// Maximum workgroup size along x, y and z.
    pub workgroup_sides: [u32; 3],
    /// Alignment of the start of a storage buffer binding.
    pub storage_alignment: u32,
    /// Maximum width and height of a texture.
    pub texture_side: u32,
}

impl DeviceLimits {
    pub(super) fn of(limits: &wgpu::Limits) -> Self {
        Self {
            storage_buffers_per_stage: limits.max_storage_buffers_per_shader_stage,
            binding_bytes: limits.max_storage_buffer_binding_size,
            buffer_bytes: limits.max_buffer_size,
            params_bytes: limits.max_uniform_buffer_binding_size,
            params_alignment: limits.min_uniform_buffer_offset_alignment,
            workgroups_per_dimension: limits.max_compute_workgroups_per_dimension,
            invocations_per_workgroup: limits.max_compute_invocations_per_workgroup,
            workgroup_bytes: limits.max_compute_workgroup_storage_size,
            workgroup_sides: [
                limits.max_compute_workgroup_size_x,
                limits.max_compute_workgroup_size_y,
                limits.max_compute_workgroup_size_z,
            ],
            storage_alignment: limits.min_storage_buffer_offset_alignment,
            texture_side: limits.max_texture_dimension_2d,
        }
    }
}

/// An adapter that can be opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adapter {
    /// Position in the list, best first; the argument of [`Choice::index`](super::Choice::index).
    pub index: usize,
    pub name: String,
    pub backend: Backend,
    pub kind: AdapterKind,
    pub driver: String,
    pub driver_version: String,
    /// PCI vendor number, or the backend's equivalent.
    pub vendor: u32,
    /// PCI device number, or the backend's equivalent.
    pub model: u32,
    /// PCI address, such as `0000:03:00.0`, if the driver reports an address.
    pub pci: Option<String>,
    /// Whether the adapter supports timestamp queries.
    pub has_timestamps: bool,
    /// Whether storage buffers can be mapped.
    pub has_mappable_buffers: bool,
    /// Limits of the adapter; a device may be opened with lower limits.
    pub limits: DeviceLimits,
}

impl fmt::Display for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { index, name, backend, kind, driver_version, .. } = self;
        write!(f, "{index}: {name} ({backend}, {kind}, {driver_version})")
    }
}

/// The adapters of some backends, best first, with wgpu's handles.
pub(super) struct FoundAdapters {
    pub(super) instance: wgpu::Instance,
    pub(super) adapters: Vec<(Adapter, wgpu::Adapter)>,
}

/// OpenGL adapters of one instance share one context, which wgpu makes current when it lists or drops an adapter. A
/// context that is current in another thread makes wgpu panic, so adapters are listed and dropped under this lock.
#[cfg(not(target_arch = "wasm32"))]
static LISTING: Mutex<()> = Mutex::new(());

#[cfg(not(target_arch = "wasm32"))]
impl Drop for FoundAdapters {
    fn drop(&mut self) {
        let _one = LISTING.lock().unwrap_or_else(PoisonError::into_inner);
        self.adapters.clear();
    }
}

/// Lists the adapters of these backends; `None` if no backend is enabled.
pub(super) async fn list(backends: &[Backend]) -> Option<FoundAdapters> {
    let wanted = descriptor(backends)?;
    let enabled = wanted.backends;
    Some(adapters_of(shared_instance(wanted), enabled, backends).await)
}

/// An adapter to open. An OpenGL device shares its context with no other device, so its adapter comes from an instance
/// of its own; other adapters are returned as they were found.
pub(super) async fn to_open(found: &FoundAdapters, index: usize) -> Option<(wgpu::Instance, wgpu::Adapter)> {
    let (facts, adapter) = &found.adapters[index];
    if facts.backend != Backend::Gles {
        return Some((found.instance.clone(), adapter.clone()));
    }
    let wanted = descriptor(&[Backend::Gles])?;
    let enabled = wanted.backends;
    let own = adapters_of(wgpu::Instance::new(wanted), enabled, &[Backend::Gles]).await;
    let same = own.adapters.iter().find(|(again, _)| again.name == facts.name)?;
    Some((own.instance.clone(), same.1.clone()))
}

fn descriptor(backends: &[Backend]) -> Option<wgpu::InstanceDescriptor> {
    let flags = backends.iter().fold(wgpu::Backends::empty(), |flags, backend| flags | backend.flag());
    let enabled = wgpu::Instance::enabled_backend_features() & flags;
    if enabled.is_empty() {
        return None;
    }
    let mut wanted = wgpu::InstanceDescriptor::new_without_display_handle();
    wanted.display = display();
    wanted.backends = enabled;
    // Without flags, validation layers that a developer may have installed stay off: these layers would slow everything
    // down. wgpu's own checks stay on.
    wanted.flags = wgpu::InstanceFlags::empty();
    wanted.backend_options.noop.enable = backends.contains(&Backend::Noop);
    Some(wanted)
}

async fn adapters_of(instance: wgpu::Instance, enabled: wgpu::Backends, backends: &[Backend]) -> FoundAdapters {
    let adapters = listed(&instance, enabled).await;
    let mut adapters: Vec<_> = adapters.into_iter().map(|adapter| (facts(&adapter), adapter)).collect();
    // Several backends may list the same hardware, so adapters of one kind are in the caller's order of backends.
    let rank = |backend| backends.iter().position(|named| *named == backend);
    adapters.sort_by_key(|(facts, _)| (facts.kind, rank(facts.backend)));
    for (index, (facts, _)) in adapters.iter_mut().enumerate() {
        facts.index = index;
    }
    FoundAdapters { instance, adapters }
}

/// The adapters that an instance lists. One thread lists at a time, see [`LISTING`].
#[cfg(not(target_arch = "wasm32"))]
fn listed(instance: &wgpu::Instance, enabled: wgpu::Backends) -> std::future::Ready<Vec<wgpu::Adapter>> {
    let _one = LISTING.lock().unwrap_or_else(PoisonError::into_inner);
    std::future::ready(crate::calls::now(instance.enumerate_adapters(enabled)))
}

#[cfg(target_arch = "wasm32")]
fn listed(instance: &wgpu::Instance, enabled: wgpu::Backends) -> impl Future<Output = Vec<wgpu::Adapter>> {
    instance.enumerate_adapters(enabled)
}

/// The instance for these backends, which lives as long as the program.
///
/// Dropping the last instance unloads the drivers. Two of several hundred test programs crashed after their last test,
/// when the main thread called a function at an address that was no longer mapped; the drivers of Vulkan were unloaded by
/// then. That these belong together is inferred, not proven.
#[cfg(not(target_arch = "wasm32"))]
fn shared_instance(wanted: wgpu::InstanceDescriptor) -> wgpu::Instance {
    static KEPT: Mutex<Vec<((wgpu::Backends, bool), wgpu::Instance)>> = Mutex::new(Vec::new());
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    // Only the backends and the display differ from descriptor to descriptor: the noop backend is enabled if it is among
    // them, and a program has one display.
    let key = (wanted.backends, wanted.display.is_some());
    if let Some((_, instance)) = kept.iter().find(|(known, _)| *known == key) {
        return instance.clone();
    }
    let instance = wgpu::Instance::new(wanted);
    kept.push((key, instance.clone()));
    instance
}

#[cfg(target_arch = "wasm32")]
fn shared_instance(wanted: wgpu::InstanceDescriptor) -> wgpu::Instance {
    wgpu::Instance::new(wanted)
}

fn facts(adapter: &wgpu::Adapter) -> Adapter {
    let (about, features) = (adapter.get_info(), adapter.features());
    Adapter {
        index: 0,
        name: about.name,
        backend: Backend::of(about.backend),
        kind: match about.device_type {
            // wgpu calls it a CPU, but it computes nothing there: kernels are those that GPUs get.
            _ if about.backend == wgpu::Backend::Noop => AdapterKind::Other,
            wgpu::DeviceType::DiscreteGpu => AdapterKind::Discrete,
            wgpu::DeviceType::IntegratedGpu => AdapterKind::Integrated,
            wgpu::DeviceType::VirtualGpu => AdapterKind::Virtual,
            wgpu::DeviceType::Other => AdapterKind::Other,
            wgpu::DeviceType::Cpu => AdapterKind::Software,
        },
        driver: about.driver,
        driver_version: about.driver_info,
        vendor: about.vendor,
        model: about.device,
        pci: Some(about.device_pci_bus_id.to_lowercase()).filter(|address| !address.is_empty()),
        has_timestamps: features.contains(wgpu::Features::TIMESTAMP_QUERY),
        has_mappable_buffers: features.contains(wgpu::Features::MAPPABLE_PRIMARY_BUFFERS),
        limits: DeviceLimits::of(&adapter.limits()),
    }
}
