//! A network that is ready to run.

use std::sync::Arc;

use crate::ops::context::Context;
#[cfg(not(target_arch = "wasm32"))]
use crate::ops::context::DeviceSide;
use crate::ops::error::TensorError;
use crate::ops::shape::Shape;
use crate::ops::tensor::Tensor;

use super::builder::NetworkBuilder;
#[cfg(not(target_arch = "wasm32"))]
use super::layout::DeviceWorks;
use super::layout::{LaidNetwork, NetworkLayout};
#[cfg(not(target_arch = "wasm32"))]
use super::on_device::OnDevice;
use super::on_host::OnHost;
use super::step::WordKind;
use super::value::MemoryId;

/// Where a network gets the tensors of its known values, so that networks can share them.
pub trait ConstantShelf {
    /// The tensor with these words.
    fn constant(&self, context: &Context, kind: WordKind, words: &[u32]) -> Result<Tensor, TensorError>;
}

/// A compiled network. It runs for one size of inputs, on the side of its context at the time when it was built.
pub struct Network {
    context: Context,
    inputs: Vec<(WordKind, Shape)>,
    outputs: Vec<(WordKind, Shape)>,
    constants: Vec<Tensor>,
    layout: NetworkLayout,
    side: Side,
}

enum Side {
    Host(OnHost),
    #[cfg(not(target_arch = "wasm32"))]
    Device(Box<dyn DeviceRun>),
}

/// A network on a device. A trait object, because a proof that a network is `Send` would otherwise go through all of wgpu's
/// types, deeper than the compiler's default recursion limit.
#[cfg(not(target_arch = "wasm32"))]
pub(super) trait DeviceRun: Send + Sync {
    fn run(
        &mut self,
        context: &Context,
        inputs: &[Tensor],
        outputs: &[(WordKind, Shape)],
    ) -> Result<Vec<Tensor>, TensorError>;

    /// Records a run over buffers of the caller.
    fn record_over(
        &mut self,
        recording: &mut vramp_gpu::Recording,
        inputs: &[&vramp_gpu::Buffer],
        outputs: &[&vramp_gpu::Buffer],
    ) -> Result<(), TensorError>;

    /// Dispatches of a run.
    fn dispatches(&self) -> usize;

    /// True if the network was compiled for this device.
    fn is_on(&self, side: &Arc<DeviceSide>) -> bool;
}

impl Network {
    pub(super) fn of(
        builder: NetworkBuilder,
        outputs: &[MemoryId],
        shapes: Vec<Shape>,
        shelf: Option<&dyn ConstantShelf>,
    ) -> Result<Network, TensorError> {
        let context = builder.context.clone();
        let LaidNetwork { laid, layout, constants, inputs, outputs, device } = LaidNetwork::of(builder, outputs);
        let constants = constants.iter().map(|(kind, words)| constant(&context, *kind, words, shelf));
        let constants = constants.collect::<Result<Vec<_>, _>>()?;
        let inputs = inputs.into_iter().map(|(kind, words)| Ok((kind, Shape::new(&[words])?)));
        let inputs = inputs.collect::<Result<Vec<_>, TensorError>>()?;
        let side = match device {
            #[cfg(not(target_arch = "wasm32"))]
            Some(DeviceWorks { device, works }) => {
                Side::Device(Box::new(OnDevice::prepare(&context, &device, laid, works, &constants)?))
            }
            _ => Side::Host(OnHost::prepare(&context, laid, &constants)?),
        };
        let outputs = outputs.into_iter().zip(shapes).collect();
        Ok(Network { context, inputs, outputs, constants, layout, side })
    }

    /// Runs the network. An input is a tensor of f32 or i32, as declared, with as many values as declared. The results
    /// are new tensors; on a device they are computed when they are read, or when the context is flushed.
    pub fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, TensorError> {
        let op = "network";
        if inputs.len() != self.inputs.len() {
            let problem = format!("it has {} inputs, got {}", self.inputs.len(), inputs.len());
            return Err(TensorError::Setting { op, problem });
        }
        for (tensor, (kind, shape)) in inputs.iter().zip(&self.inputs) {
            tensor.check(op)?;
            if tensor.dtype() != kind.dtype() {
                let wants = kind.dtype().name();
                return Err(TensorError::WrongType { op, has: tensor.dtype(), wants });
            }
            if tensor.count() != shape.count() {
                let shape = shape.clone();
                return Err(TensorError::WrongCount { wants: shape.count(), shape, has: tensor.count() });
            }
            if !tensor.context().is(&self.context) {
                return Err(TensorError::Foreign { op });
            }
        }
        match &mut self.side {
            Side::Host(host) => host.run(&self.context, inputs, &self.outputs),
            #[cfg(not(target_arch = "wasm32"))]
            Side::Device(device) => device.run(&self.context, inputs, &self.outputs),
        }
    }

    /// Runs a network on the host over words of the caller, which are f32 bits or i32: as many as each input and output
    /// has. Allocates nothing in the second run. Fails if the network is on a device.
    pub fn run_words(&mut self, inputs: &[&[u32]], outputs: &mut [&mut [u32]]) -> Result<(), TensorError> {
        let given = inputs.iter().map(|words| words.len()).chain(outputs.iter().map(|words| words.len()));
        self.check_words((inputs.len(), outputs.len()), given, |given, wanted| given == wanted)?;
        match &mut self.side {
            Side::Host(host) => host.run_words(&self.context, inputs, outputs),
            #[cfg(not(target_arch = "wasm32"))]
            Side::Device(_) => {
                let problem = "it was built for a device, and words are on the host".to_owned();
                Err(TensorError::Setting { op: "network", problem })
            }
        }
    }

    /// Records a run on the device over buffers of the caller, as part of the caller's submit. Each buffer has the words of
    /// an input or output, which are f32 bits or i32, rounded up to whole groups of four. Allocates nothing. Fails if the
    /// network is on the host.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn record(
        &mut self,
        recording: &mut vramp_gpu::Recording,
        inputs: &[&vramp_gpu::Buffer],
        outputs: &[&vramp_gpu::Buffer],
    ) -> Result<(), TensorError> {
        let given = inputs.iter().chain(outputs).map(|buffer| (buffer.bytes() / 4) as usize);
        self.check_words((inputs.len(), outputs.len()), given, |given, wanted| given >= wanted)?;
        match &mut self.side {
            Side::Host(_) => {
                let problem = "it was built for the host, and buffers are on a device".to_owned();
                Err(TensorError::Setting { op: "network", problem })
            }
            Side::Device(device) => device.record_over(recording, inputs, outputs),
        }
    }

    /// Fails unless there is memory for each input and output, and all of it fits.
    fn check_words(
        &self,
        counts: (usize, usize),
        given: impl Iterator<Item = usize> + Clone,
        fits: impl Fn(usize, usize) -> bool,
    ) -> Result<(), TensorError> {
        let wanted = self.inputs.iter().chain(&self.outputs).map(|(_, shape)| shape.count());
        let all_fit = given.clone().zip(wanted.clone()).all(|(given, wanted)| fits(given, wanted));
        if counts == (self.inputs.len(), self.outputs.len()) && all_fit {
            return Ok(());
        }
        let (given, wanted): (Vec<usize>, Vec<usize>) = (given.collect(), wanted.collect());
        let problem = format!("its inputs and outputs have {wanted:?} words, got {given:?}");
        Err(TensorError::Setting { op: "network", problem })
    }

    /// The type and shape of each output.
    pub fn outputs(&self) -> &[(WordKind, Shape)] {
        &self.outputs
    }

    /// True if the network runs on a device.
    pub fn is_on_device(&self) -> bool {
        match &self.side {
            Side::Host(_) => false,
            #[cfg(not(target_arch = "wasm32"))]
            Side::Device(_) => true,
        }
    }

    /// True if the network can run on tensors of this context as the context is now. A network stays on the side for which
    /// it was built; the context may have moved since.
    pub fn is_for(&self, context: &Context) -> bool {
        let is_side = match &self.side {
            #[cfg(not(target_arch = "wasm32"))]
            Side::Host(_) => context.side().is_none(),
            #[cfg(target_arch = "wasm32")]
            Side::Host(_) => true,
            #[cfg(not(target_arch = "wasm32"))]
            Side::Device(device) => context.side().is_some_and(|side| device.is_on(&side)),
        };
        is_side && self.context.is(context)
    }

    /// The ops of the steps, in order, after fusion.
    pub fn steps(&self) -> &[&'static str] {
        &self.layout.steps
    }

    /// Dispatches of a run; 0 on the host.
    pub fn dispatches(&self) -> usize {
        match &self.side {
            Side::Host(_) => 0,
            #[cfg(not(target_arch = "wasm32"))]
            Side::Device(device) => device.dispatches(),
        }
    }

    /// Bytes that a run needs for intermediate and final values.
    pub fn working_bytes(&self) -> usize {
        self.layout.working_bytes
    }

    /// Words that all steps of a run read and write together.
    pub fn moved_words(&self) -> usize {
        self.layout.moved_words
    }

    /// The tensors of the known values.
    pub fn constants(&self) -> &[Tensor] {
        &self.constants
    }
}

fn constant(
    context: &Context,
    kind: WordKind,
    words: &Arc<Vec<u32>>,
    shelf: Option<&dyn ConstantShelf>,
) -> Result<Tensor, TensorError> {
    match shelf {
        Some(shelf) => shelf.constant(context, kind, words),
        None => context.tensor_from_bytes(bytemuck::cast_slice(words), &[words.len()], kind.dtype()),
    }
}
