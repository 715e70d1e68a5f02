//! Every kernel of vramp by name, with what a frame of 1920x1080 asks of it.
//!
//! Kernels of pixels are composed as the runtime composes them. Kernels of tensors and networks are taken from a device:
//! the ops run on wgpu's no-op device, which remembers the shaders that it compiled. A new kernel of pixels or a new op
//! of a listed network is therefore found without a change here.

mod composed;
mod rounds;
mod tensors;

pub(crate) use composed::{FRAME, SMALLER};

use std::collections::BTreeSet;

use anyhow::Context as _;
use vramp::plan::Shader;

use crate::spirv;

/// A kernel as a device compiles it.
#[derive(Debug, Clone)]
pub(crate) struct Kernel {
    /// A word, such as `blur/1` for the first pass of `blur`.
    pub(crate) name: String,
    pub(crate) shader: Shader,
    /// Invocations of a workgroup.
    pub(crate) workgroup: u32,
    /// The work of one frame; `None` for a kernel that is only compiled.
    pub(crate) work: Option<Work>,
}

/// What a kernel does in one frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) workgroups: u64,
    /// Bytes that have to be read and written if each is moved once.
    pub(crate) bytes: u64,
}

/// Every kernel, in a fixed order. Kernels without work whose text is already listed are left out.
pub(crate) fn all() -> anyhow::Result<Vec<Kernel>> {
    let mut kernels = composed::composed();
    kernels.extend(tensors::tensors()?);
    let mut seen = BTreeSet::new();
    kernels.retain(|kernel| seen.insert(kernel.shader.wgsl.clone()) || kernel.work.is_some());
    for kernel in &mut kernels {
        kernel.workgroup = spirv::workgroup(&kernel.shader.wgsl).with_context(|| kernel.name.clone())?;
    }
    Ok(kernels)
}

impl Kernel {
    pub(crate) fn new(name: String, shader: Shader, work: Option<Work>) -> Kernel {
        Kernel { name, shader, workgroup: 0, work }
    }

    /// Rounds of the loops in the machine code, in the order of the code; empty if they are not known.
    pub(crate) fn rounds(&self) -> &'static [u32] {
        rounds::of(&self.name)
    }
}
