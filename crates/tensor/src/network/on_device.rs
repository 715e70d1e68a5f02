//! Runs a network on a device: slots are buffers, and each step is dispatches whose kernels were compiled when the network
//! was built.
//!
//! Invariant: a run compiles nothing and lends no buffers but those of its results. A run over buffers of the caller lends
//! none and allocates nothing.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use smallvec::SmallVec;
use vramp_gpu::{Buffer, DeviceKernel, Recording};

use crate::ops::context::{Context, DeviceSide};
use crate::ops::device::Launch;
use crate::ops::error::{DeviceResult, TensorError};
use crate::ops::program::{ElementwiseProgram, ProgramInput, Walk};
use crate::ops::shape::Shape;
use crate::ops::storage::Storage;
use crate::ops::tensor::Tensor;

use super::layout::{Laid, LaidStep, Place};
use super::map;
use super::network::DeviceRun;
use super::step::{Bound, DeviceFacts, DeviceWork, Dispatch, WordKind};

const OP: &str = "network";

pub(super) struct OnDevice {
    side: Arc<DeviceSide>,
    dispatches: Vec<Prepared>,
    slots: Vec<Buffer>,
    constants: Vec<Buffer>,
    output_words: Vec<usize>,
}

/// A dispatch whose kernel is compiled.
struct Prepared {
    kernel: DeviceKernel,
    buffers: SmallVec<[Place; 6]>,
    launch: Launch,
}

/// What steps may know of a device.
pub(super) fn facts(side: &Arc<DeviceSide>) -> DeviceFacts {
    let limits = *side.device().limits();
    DeviceFacts { is_software: side.is_software(), most_groups: limits.workgroups_per_dimension, limits }
}

impl OnDevice {
    pub(super) fn prepare(
        context: &Context,
        side: &Arc<DeviceSide>,
        laid: Laid,
        works: Vec<DeviceWork>,
        constants: &[Tensor],
    ) -> Result<OnDevice, TensorError> {
        let mut dispatches = Vec::new();
        for (step, work) in laid.steps.iter().zip(works) {
            if step.outputs.iter().all(|(_, words)| *words == 0) {
                continue;
            }
            for dispatch in work.dispatches {
                let kernel = side.kernel(step.step.name(), &dispatch.key, || {
                    context.say(|| format!("compiling {} for {}", dispatch.shader.name, step.step.name()));
                    dispatch.shader
                })?;
                let buffers = dispatch.buffers.iter().map(|bound| place(step, *bound)).collect();
                dispatches.push(Prepared { kernel, buffers, launch: dispatch.launch });
            }
        }
        let slots = laid.slots.iter().map(|words| side.lend(OP, words * 4)).collect::<Result<_, _>>()?;
        let constants = constants.iter().map(|tensor| tensor.storage().device(tensor.asking(OP), side));
        let constants = constants.collect::<Result<_, _>>()?;
        Ok(OnDevice { side: Arc::clone(side), dispatches, slots, constants, output_words: laid.outputs })
    }
}

impl DeviceRun for OnDevice {
    fn is_on(&self, side: &Arc<DeviceSide>) -> bool {
        Arc::ptr_eq(&self.side, side)
    }

    fn dispatches(&self) -> usize {
        self.dispatches.len()
    }

    fn run(
        &mut self,
        context: &Context,
        inputs: &[Tensor],
        outputs: &[(WordKind, Shape)],
    ) -> Result<Vec<Tensor>, TensorError> {
        let mut read: SmallVec<[Buffer; 4]> = SmallVec::new();
        for tensor in inputs {
            read.push(self.buffer_at_start(tensor)?);
        }
        let mut written: SmallVec<[Buffer; 4]> = SmallVec::new();
        for words in &self.output_words {
            written.push(self.side.lend(OP, words * 4)?);
        }
        {
            let (inputs, outputs) = (refs(&read), refs(&written));
            for prepared in &self.dispatches {
                self.side.record(OP, |recording| self.dispatch(prepared, recording, &inputs, &outputs))?;
            }
        }
        let tensor = |(buffer, (kind, shape)): (Buffer, &(WordKind, Shape))| {
            let bytes = shape.count() * 4;
            Tensor::over(Storage::on_device(context, &self.side, buffer, bytes), shape.clone(), kind.dtype(), 0)
        };
        Ok(written.into_iter().zip(outputs).map(tensor).collect())
    }

    fn record_over(
        &mut self,
        recording: &mut Recording,
        inputs: &[&Buffer],
        outputs: &[&Buffer],
    ) -> Result<(), TensorError> {
        // Known values may not be uploaded yet.
        self.side.flush(OP)?;
        self.dispatches.iter().try_for_each(|prepared| self.dispatch(prepared, recording, inputs, outputs))
    }
}

fn refs(buffers: &SmallVec<[Buffer; 4]>) -> SmallVec<[&Buffer; 4]> {
    buffers.iter().collect()
}

impl OnDevice {
    fn dispatch(
        &self,
        prepared: &Prepared,
        recording: &mut Recording,
        inputs: &[&Buffer],
        outputs: &[&Buffer],
    ) -> Result<(), TensorError> {
        let Prepared { kernel, buffers, launch } = prepared;
        let bound: SmallVec<[&Buffer; 8]> = buffers
            .iter()
            .map(|place| match place {
                Place::Input(at) => inputs[*at],
                Place::Constant(at) => &self.constants[*at],
                Place::Slot(at) => &self.slots[*at],
                Place::Output(at) => outputs[*at],
            })
            .collect();
        recording.dispatch(kernel, &bound, launch.params(), launch.grid).of(OP)
    }

    /// A buffer with the tensor's values at its start. Kernels read memories from their first word on, so the values of a
    /// view are copied.
    fn buffer_at_start(&self, tensor: &Tensor) -> Result<Buffer, TensorError> {
        let buffer = tensor.storage().device(tensor.asking(OP), &self.side)?;
        if tensor.offset() == 0 {
            return Ok(buffer);
        }
        tensor.context().counts().copies.fetch_add(1, Ordering::Relaxed);
        let input = ProgramInput { dtype: tensor.dtype(), offset: tensor.offset(), walk: Walk::Run };
        let program = ElementwiseProgram::plain(input);
        let most_groups = self.side.device().limits().workgroups_per_dimension;
        let Dispatch { key, shader, launch, .. } = map::dispatch(&program, tensor.count(), most_groups);
        let kernel = self.side.kernel(OP, &key, || shader)?;
        let out = self.side.lend(OP, tensor.bytes())?;
        self.side.record(OP, |recording| {
            recording.dispatch(&kernel, &[&buffer, &out], launch.params(), launch.grid).of(OP)
        })?;
        Ok(out)
    }
}

fn place(step: &LaidStep, bound: Bound) -> Place {
    match bound {
        Bound::Input(at) => step.inputs[at].0,
        Bound::Output(at) => step.outputs[at].0,
        Bound::Temporary(at) => step.temporary[at].0,
    }
}
