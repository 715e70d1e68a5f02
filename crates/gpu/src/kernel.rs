//! A handle of a compiled shader, with everything that a recording must know to dispatch the shader.
//!
//! The handle has the kernel's name, bindings and pixels per workgroup. The compiled pipeline stays in
//! [`Pipelines`](crate::pipelines::Pipelines); the player finds the pipeline by the kernel's number.

use std::sync::Arc;

use vramp_plan::{Binding, Shader};

use crate::device::DeviceLimits;

/// A shader that a device has compiled, or only the description of a shader, for recordings without a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceKernel {
    pub(crate) device: u64,
    pub(crate) id: u64,
    name: Arc<str>,
    shape: Arc<KernelInterface>,
}

#[derive(Debug, PartialEq, Eq)]
struct KernelInterface {
    bindings: Vec<Binding>,
    per_workgroup: u32,
}

impl DeviceKernel {
    /// A kernel that belongs to no device. Recordings accept such a kernel, but players refuse to run it.
    pub fn described(shader: &Shader) -> Self {
        Self::numbered(shader, 0, 0)
    }

    pub(crate) fn numbered(shader: &Shader, device: u64, id: u64) -> Self {
        let shape = KernelInterface { bindings: shader.bindings.clone(), per_workgroup: shader.per_workgroup };
        Self { device, id, name: shader.name.as_str().into(), shape: Arc::new(shape) }
    }

    /// The same kernel under another name: equal shaders share one pipeline, but each caller keeps its own name.
    pub(crate) fn named(&self, name: &str) -> Self {
        let name = if &*self.name == name { Arc::clone(&self.name) } else { name.into() };
        Self { name, ..self.clone() }
    }

    /// The name for messages.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Bindings in order.
    pub fn bindings(&self) -> &[Binding] {
        &self.shape.bindings
    }

    /// Size of the parameter block; 0 if the kernel has none.
    pub fn params_bytes(&self) -> u32 {
        let params = self.bindings().iter().map(|binding| match binding {
            Binding::Params { bytes } => *bytes,
            Binding::Read | Binding::Write => 0,
        });
        params.sum()
    }

    /// Workgroups that cover this many pixels or elements within the device's limits.
    pub fn cover(&self, pixels: u64, limits: &DeviceLimits) -> [u32; 3] {
        let shader = Shader {
            name: String::new(),
            wgsl: String::new(),
            bindings: Vec::new(),
            per_workgroup: self.shape.per_workgroup,
        };
        let [x, y] = shader.grid(pixels, limits.workgroups_per_dimension);
        [x, y, 1]
    }

    /// Number of handles of this kernel, including the handle in the cache.
    pub(crate) fn handles(&self) -> usize {
        Arc::strong_count(&self.shape)
    }
}
