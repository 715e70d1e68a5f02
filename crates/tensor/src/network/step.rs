//! What a step of a network is: work on whole values, with a twin on the host and on the device.
//!
//! All values are dense and consist of 32-bit words: f32, or i32 for every integer and boolean type. Narrower types exist
//! only outside a network. So every step has one form per side, and steps never convert.

use std::fmt;

#[cfg(not(target_arch = "wasm32"))]
use smallvec::SmallVec;
#[cfg(not(target_arch = "wasm32"))]
use vramp_gpu::DeviceLimits;
#[cfg(not(target_arch = "wasm32"))]
use vramp_plan::Shader;

#[cfg(not(target_arch = "wasm32"))]
use crate::ops::device::Launch;
use crate::ops::program::ElementwiseProgram;

/// The type of the words of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WordKind {
    F32,
    /// Integers and booleans.
    I32,
}

/// One step of a network. A step knows the lengths of its inputs and outputs; it is made for one set of sizes.
pub(crate) trait Step: fmt::Debug + Send + Sync {
    /// The op, for messages and profiles.
    fn name(&self) -> &'static str;

    /// Computes all outputs on the host. Every word of every output is written, because the memory has old values.
    fn host(&self, call: HostCall<'_, '_>);

    /// The work on a device. Every word of every output is written.
    #[cfg(not(target_arch = "wasm32"))]
    fn device(&self, facts: &DeviceFacts) -> DeviceWork;

    /// Applies an elementwise program to the results before they are stored, if the step can do that. The program's
    /// [`Given`](crate::ops::program::Instruction::Given) is the result; its inputs follow the step's own inputs. Returns
    /// whether the step has taken the program.
    fn finish_with(&mut self, program: &ElementwiseProgram) -> bool {
        let _ = program;
        false
    }

    /// Operations of a run, roughly; 0 if they are about as many as the words that are read and written.
    fn work(&self) -> u64 {
        0
    }

    /// Words of temporary memory on the host.
    fn scratch(&self, threads: usize) -> usize {
        let _ = threads;
        0
    }
}

/// The memory of one call on the host.
pub(crate) struct HostCall<'a, 'b> {
    pub(crate) inputs: &'a [&'a [u32]],
    pub(crate) outputs: &'a mut [&'b mut [u32]],
    /// As many words as [`Step::scratch`] asked for, with old values.
    pub(crate) scratch: &'a mut [u32],
    pub(crate) threads: usize,
}

impl<'a> HostCall<'a, '_> {
    /// Input `at` as floats.
    pub(crate) fn floats(&self, at: usize) -> &'a [f32] {
        bytemuck::cast_slice(self.inputs[at])
    }

    /// Input `at` as integers.
    pub(crate) fn integers(&self, at: usize) -> &'a [i32] {
        bytemuck::cast_slice(self.inputs[at])
    }

    /// Output `at` as floats.
    pub(crate) fn floats_out(&mut self, at: usize) -> &mut [f32] {
        bytemuck::cast_slice_mut(self.outputs[at])
    }

    /// Output `at` as integers.
    pub(crate) fn integers_out(&mut self, at: usize) -> &mut [i32] {
        bytemuck::cast_slice_mut(self.outputs[at])
    }
}

/// What a step may know of the device that it is compiled for.
#[cfg(not(target_arch = "wasm32"))]
#[derive(Debug, Clone)]
pub(crate) struct DeviceFacts {
    /// A software driver, which ranks kernels differently than a GPU.
    pub(crate) is_software: bool,
    pub(crate) limits: DeviceLimits,
    /// Maximum of workgroups along one dimension.
    pub(crate) most_groups: u32,
}

/// The dispatches of a step, in order, and the sizes in words of the temporary buffers that they use.
#[cfg(not(target_arch = "wasm32"))]
#[derive(Debug, Default)]
pub(crate) struct DeviceWork {
    pub(crate) temporary: Vec<usize>,
    pub(crate) dispatches: Vec<Dispatch>,
}

/// One dispatch. A buffer is bound once; a dispatch never reads and writes the same buffer.
#[cfg(not(target_arch = "wasm32"))]
#[derive(Debug)]
pub(crate) struct Dispatch {
    /// Names everything that the text of the shader depends on.
    pub(crate) key: String,
    pub(crate) shader: Shader,
    /// In the order of the shader's bindings: inputs, then outputs.
    pub(crate) buffers: SmallVec<[Bound; 6]>,
    pub(crate) launch: Launch,
}

/// A buffer of a dispatch.
#[cfg(not(target_arch = "wasm32"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    Input(usize),
    Output(usize),
    Temporary(usize),
}

#[cfg(not(target_arch = "wasm32"))]
impl DeviceWork {
    /// The work of a single dispatch.
    pub(crate) fn one(dispatch: Dispatch) -> DeviceWork {
        DeviceWork { temporary: Vec::new(), dispatches: vec![dispatch] }
    }
}
