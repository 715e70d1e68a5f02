//! Which adapters there are, as plain facts.
//!
//! Owns the names of backends and kinds, and the listing.
//! Does not open anything. Listing takes 25 to 250 ms: whoever lists often keeps the answer.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A way to talk to a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// Vulkan.
    Vulkan,
    /// Metal.
    Metal,
    /// Direct3D 12.
    Dx12,
    /// OpenGL ES.
    #[serde(rename = "gl")]
    Gles,
    /// WebGPU in a browser.
    WebGpu,
    /// A device that keeps buffers and computes nothing: for tests of wiring. Never chosen unless asked for.
    Noop,
}

impl Backend {
    /// Those that compute.
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

/// What an adapter is made of, in the order of preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AdapterKind {
    /// A card with its own memory.
    Discrete,
    /// Shares its memory with the CPU.
    Integrated,
    /// Passed through from a host.
    Virtual,
    /// The driver does not say.
    Other,
    /// The CPU, pretending.
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
    /// Storage buffers that a kernel may bind.
    pub storage_buffers_per_stage: u32,
    /// Bytes of a buffer that a kernel may see.
    pub binding_bytes: u64,
    /// Bytes of a buffer.
    pub buffer_bytes: u64,
    /// Bytes of parameters that a kernel may see.
    pub params_bytes: u64,
    /// Where parameters may start: at multiples of this.
    pub params_alignment: u32,
    /// Workgroups along one dimension of a dispatch.
    pub workgroups_per_dimension: u32,
    /// Invocations in one workgroup.
    pub invocations_per_workgroup: u32,
    /// Bytes that a workgroup may share.
    pub workgroup_bytes: u32,
    /// Invocations of one workgroup along x, y and z.
    pub workgroup_sides: [u32; 3],
    /// Where a part of a buffer that a kernel sees may start: at multiples of this.
    pub storage_alignment: u32,
    /// Texels along one side of a texture.
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

/// An adapter that could be opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adapter {
    /// Its place in the list, best first; what [`Choice::index`](super::Choice::index) takes.
    pub index: usize,
    /// Its name, as its driver gives it.
    pub name: String,
    /// How it is talked to.
    pub backend: Backend,
    /// What it is made of.
    pub kind: AdapterKind,
    /// Its driver.
    pub driver: String,
    /// Its driver's version.
    pub driver_version: String,
    /// Who made it, as a PCI number or what the backend has instead.
    pub vendor: u32,
    /// Which model it is, likewise.
    pub model: u32,
    /// Where it sits on the PCI bus, as in `0000:03:00.0`, where its driver tells.
    pub pci: Option<String>,
    /// Whether it can measure its own time.
    pub has_timestamps: bool,
    /// Whether buffers that kernels use can be mapped.
    pub has_mappable_buffers: bool,
    /// What it could be opened with at most.
    pub limits: DeviceLimits,
}

impl fmt::Display for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { index, name, backend, kind, driver_version, .. } = self;
        write!(f, "{index}: {name} ({backend}, {kind}, {driver_version})")
    }
}

/// Everything behind these backends, best first, with wgpu's handle.
pub(super) async fn list(backends: &[Backend]) -> Vec<(Adapter, wgpu::Adapter)> {
    let flags = backends.iter().fold(wgpu::Backends::empty(), |flags, backend| flags | backend.flag());
    let enabled = wgpu::Instance::enabled_backend_features() & flags;
    if enabled.is_empty() {
        return Vec::new();
    }
    let mut wanted = wgpu::InstanceDescriptor::new_without_display_handle();
    wanted.backends = enabled;
    // The layers that a developer may have installed would slow everything down; wgpu's own checks stay.
    wanted.flags = wgpu::InstanceFlags::empty();
    wanted.backend_options.noop.enable = backends.contains(&Backend::Noop);
    let found = wgpu::Instance::new(wanted).enumerate_adapters(enabled).await;
    let mut found: Vec<_> = found.into_iter().map(|adapter| (facts(&adapter), adapter)).collect();
    // The same hardware may be behind several backends: these come in the order in which they were named.
    let rank = |backend| backends.iter().position(|named| *named == backend);
    found.sort_by_key(|(facts, _)| (facts.kind, rank(facts.backend)));
    for (index, (facts, _)) in found.iter_mut().enumerate() {
        facts.index = index;
    }
    found
}

fn facts(adapter: &wgpu::Adapter) -> Adapter {
    let (about, features) = (adapter.get_info(), adapter.features());
    Adapter {
        index: 0,
        name: about.name,
        backend: Backend::of(about.backend),
        kind: match about.device_type {
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
