//! Computes a stage on the device: records what makes its values.
//!
//! Owns the way from nodes to kernels, their buffers and their parameters.
//! Does not play, and does not wait.

use std::sync::Arc;

use super::super::node::Kind;
use super::super::plan::Stage;
use super::Made;
use super::program::{Written, of_cluster, of_strides};
use crate::context::{Context, Side};
use crate::error::{Of, TensorError};
use crate::program::AT_ONCE;
use crate::storage::Storage;
use crate::tensor::Tensor;

/// Invocations of a workgroup of elementwise kernels.
const WORKGROUP: u32 = 64;

pub(super) fn make(context: &Context, side: &Arc<Side>, stage: &Stage, made: &Made) -> Result<Tensor, TensorError> {
    let Stage { node, cluster } = stage;
    let op = node.name();
    let making = Making { side, op };
    let bytes = node.shape.count() * node.dtype.bytes();
    let out = side.lend(op, bytes)?;
    match &node.kind {
        Kind::Strided { of, offset, strides } => {
            making.map(&of_strides(made.of(of), &node.shape, *offset, strides), node.shape.count(), &out)?;
        }
        _ => {
            let cluster = cluster.as_ref().expect("any other op is elementwise");
            making.map(&of_cluster(cluster, made), node.shape.count(), &out)?;
        }
    }
    Ok(Tensor::over(Storage::on_device(context, side, out, bytes), node.shape.clone(), node.dtype, 0))
}

struct Making<'a> {
    side: &'a Arc<Side>,
    op: &'static str,
}

impl Making<'_> {
    /// What a program makes, from the first value to the last.
    fn map(&self, written: &Written, count: usize, out: &vramp_gpu::Buffer) -> Result<(), TensorError> {
        let Self { side, op } = self;
        let program = &written.program;
        let key = format!("map {}", program.signature());
        let kernel = side.kernel(op, &key, || program.shader(WORKGROUP))?;
        let mut words = vec![count as u32];
        words.extend(program.words());
        words.resize(words.len().next_multiple_of(4), 0);
        let inputs = self.buffers(written)?;
        let grid = kernel.cover(count.next_multiple_of(AT_ONCE as usize) as u64, side.device().limits());
        let buffers: Vec<_> = inputs.iter().chain([out]).collect();
        side.record(op, |recording| recording.dispatch(&kernel, &buffers, bytemuck::cast_slice(&words), grid).of(op))
    }

    fn buffers(&self, written: &Written) -> Result<Vec<vramp_gpu::Buffer>, TensorError> {
        written.tensors.iter().map(|tensor| tensor.storage().device(tensor.asking(self.op), self.side)).collect()
    }
}
