//! A prepared shader, as others name it.
//!
//! Owns what a recording must know to use a kernel: its name, its bindings and its reach.
//! Does not hold the compiled pipeline: the player finds that by the kernel's number.

use std::sync::Arc;

use vramp_plan::{Binding, Shader};

use crate::device::DeviceLimits;

/// A shader that a device has compiled, or, for recordings without a device, one that was only described.
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
    /// A kernel of no device: it can be recorded, and no player will play it.
    pub fn described(shader: &Shader) -> Self {
        Self::numbered(shader, 0, 0)
    }

    pub(crate) fn numbered(shader: &Shader, device: u64, id: u64) -> Self {
        let shape = KernelInterface { bindings: shader.bindings.clone(), per_workgroup: shader.per_workgroup };
        Self { device, id, name: shader.name.as_str().into(), shape: Arc::new(shape) }
    }

    /// The same kernel under the name of whoever asks now.
    pub(crate) fn named(&self, name: &str) -> Self {
        let name = if &*self.name == name { Arc::clone(&self.name) } else { name.into() };
        Self { name, ..self.clone() }
    }

    /// What it is called in messages.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// What it binds, in order.
    pub fn bindings(&self) -> &[Binding] {
        &self.shape.bindings
    }

    /// Bytes of its parameters, 0 where it has none.
    pub fn params_bytes(&self) -> u32 {
        let params = self.bindings().iter().map(|binding| match binding {
            Binding::Params { bytes } => *bytes,
            Binding::Read | Binding::Write => 0,
        });
        params.sum()
    }

    /// Workgroups that cover this many pixels or elements on a device with these limits.
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

    /// Handles of this kernel, the cache's own included.
    pub(crate) fn handles(&self) -> usize {
        Arc::strong_count(&self.shape)
    }
}
