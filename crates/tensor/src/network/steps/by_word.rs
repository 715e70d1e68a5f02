//! What the steps that move values share: how a value lies around one axis, and kernels that compute each word of an
//! output by its index.

use crate::ops::error::TensorError;
use crate::ops::shape::{Around, Shape};

use crate::network::NetworkBuilder;
#[cfg(not(target_arch = "wasm32"))]
use crate::network::step::{Bound, DeviceFacts, Dispatch};
use crate::network::value::{Lengths, MemoryId, ValueId, in_order};
#[cfg(not(target_arch = "wasm32"))]
use crate::ops::device::words::{self, OutputRuns};
#[cfg(not(target_arch = "wasm32"))]
use crate::ops::device::{KernelText, MATH};
#[cfg(not(target_arch = "wasm32"))]
use crate::ops::dtype::DType;

/// A value in the order of axes in which its words lie, seen from one of its axes. A step along the axis works in this
/// order, so that pictures whose channels lie last are not copied.
pub(super) struct AlongAxis {
    pub(super) memory: MemoryId,
    pub(super) order: Lengths,
    pub(super) around: Around,
}

impl NetworkBuilder {
    /// The value as it lies, seen from an axis.
    pub(super) fn along_axis(&mut self, value: ValueId, axis: usize) -> Result<AlongAxis, TensorError> {
        let order = self.views[value.0].order();
        let memory = self.dense(value, &order)?;
        let around = around_in(self.lengths(value), &order, axis);
        Ok(AlongAxis { memory, order, around })
    }

    /// Fails if the value does not have this axis.
    pub(super) fn has_axis(&self, op: &'static str, value: ValueId, axis: usize) -> Result<(), TensorError> {
        let lengths = self.lengths(value);
        if axis < lengths.len() {
            return Ok(());
        }
        Err(TensorError::NoSuchAxis { op, axis: axis.cast_signed(), shape: Shape::new(lengths)? })
    }
}

/// Lengths in memory order, seen from an axis.
pub(super) fn around_in(lengths: &[usize], order: &[usize], axis: usize) -> Around {
    let place = order.iter().position(|at| *at == axis).expect("an order has all axes");
    let lengths = in_order(lengths, order);
    Around {
        outer: lengths[..place].iter().product(),
        length: lengths[place],
        inner: lengths[place + 1..].iter().product(),
    }
}

/// Lengths with one axis changed.
pub(super) fn with_length(lengths: &[usize], axis: usize, length: usize) -> Lengths {
    let mut lengths = Lengths::from_slice(lengths);
    lengths[axis] = length;
    lengths
}

/// A kernel that computes each word of output 0 by its index.
#[cfg(not(target_arch = "wasm32"))]
pub(super) struct WordKernel<'a> {
    /// The name of the kernel, which also is its key.
    pub(super) name: &'a str,
    /// The names of the input buffers, which are the inputs of the step in order.
    pub(super) inputs: &'a [&'a str],
    /// The kernel's own parameters.
    pub(super) fields: &'a [(&'a str, usize)],
    /// Vectors of four words that follow the parameters, as `p.hook`. Their number is part of the text, and so of the
    /// name.
    pub(super) vectors: &'a [[u32; 4]],
    /// Defines `fn element(i: u32) -> u32`.
    pub(super) wgsl: &'a str,
    /// The number of words.
    pub(super) count: usize,
}

#[cfg(not(target_arch = "wasm32"))]
impl WordKernel<'_> {
    pub(super) fn dispatch(&self, facts: &DeviceFacts) -> Dispatch {
        let mut text = KernelText::new();
        for input in self.inputs {
            text.read(input, "u32");
        }
        text.write("out", "u32");
        let names: Vec<&str> = self.fields.iter().map(|field| field.0).chain(words::FIELDS).collect();
        text.params(&names, self.vectors.len());
        text.push(MATH);
        text.push(self.wgsl);
        words::push_main(&mut text, DType::U32);
        let own: Vec<u32> = self.fields.iter().map(|field| field.1 as u32).collect();
        let launch = OutputRuns::whole(0, self.count).launch(DType::U32, &own, facts.most_groups);
        Dispatch {
            key: self.name.to_owned(),
            shader: text.shader(self.name.to_owned(), 64),
            buffers: (0..self.inputs.len()).map(Bound::Input).chain([Bound::Output(0)]).collect(),
            launch: launch.with_hook(self.vectors.as_flattened()),
        }
    }
}
