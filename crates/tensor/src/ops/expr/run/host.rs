//! Computes a stage on the host: maps nodes to the loops of `crate::ops::host` and to programs.

#![expect(clippy::inline_always, reason = "rows are read inside loops that are compiled for each vector level")]

use std::sync::Arc;

use bytemuck::{cast_slice, cast_slice_mut};
use half::f16;

use super::super::node::{ExprNode, Matmul, OpKind, SharedNode};
use super::super::plan::{Cluster, PlanStage};
use super::program::{BoundProgram, of_cluster, of_tensor};
use super::{NodeTensors, factors};
use crate::ops::context::Context;
use crate::ops::dtype::DType;
use crate::ops::error::TensorError;
use crate::ops::host::image::{self, Normal};
use crate::ops::host::matmul::{self, MatmulSize};
use crate::ops::host::matmul8;
use crate::ops::host::rows::RowValues;
use crate::ops::host::spread::spread;
use crate::ops::host::strided::{Strided, copy_strided};
use crate::ops::host::whole;
use crate::ops::host::{arg, convert, gather, norm, reduce, softmax};
use crate::ops::image::{ChannelLayout, ImageSpec};
use crate::ops::memory::Block;
use crate::ops::program::{ElementwiseProgram, Running, Walk};
use crate::ops::reduction::Reduction;
use crate::ops::shape::{Around, Shape};
use crate::ops::storage::Storage;
use crate::ops::tensor::Tensor;

pub(super) fn make(context: &Context, stage: &PlanStage, made: &NodeTensors) -> Result<Tensor, TensorError> {
    let PlanStage { node, cluster } = stage;
    let op = node.name();
    let out = context.pool().lend(op, node.shape.count() * node.dtype.bytes())?;
    let mut making = HostStage { context, op, node, out, threads: context.threads() };
    match &node.kind {
        OpKind::Reduce { how, of, axis } => making.reduce(*how, of, *axis, cluster.as_ref(), made)?,
        OpKind::Softmax { of, axis, log } => {
            let around = of.shape.around(*axis);
            making.rows(of, cluster.as_ref(), made, |rows, out, threads| match log {
                true => softmax::log_softmax(rows, around, out, threads),
                false => softmax::softmax(rows, around, out, threads),
            })?;
        }
        OpKind::LayerNorm { of, gamma, beta, epsilon } => {
            let row = |node: &Option<SharedNode>| node.as_ref().map(|node| floats(op, made.of(node))).transpose();
            let (gamma, beta) = (row(gamma)?, row(beta)?);
            let length = of.shape[of.shape.rank() - 1];
            making.rows(of, cluster.as_ref(), made, |rows, out, threads| {
                norm::layer_norm(rows, length, *epsilon, gamma.as_deref(), beta.as_deref(), out, threads);
            })?;
        }
        OpKind::Matmul(product) => making.product(product, &node.shape, made)?,
        OpKind::Strided { of, offset, strides } => making.strided(made.of(of), *offset, strides)?,
        OpKind::Concat { parts, axis } => making.concat(parts, *axis, made)?,
        OpKind::Gather { of, indices, axis } => making.gather(made.of(of), made.of(indices), of.shape.around(*axis))?,
        OpKind::FromImage { of, picture } => {
            let (numbers, bytes) = (picture.numbers(op)?, values(op, made.of(of))?);
            let normal = normal(picture, &numbers);
            let to = size_of_tensor(picture.layout, &node.shape);
            let out = cast_slice_mut(making.out.bytes_mut());
            image::from_image(&bytes, size_of_picture(&of.shape), to, picture.resize, &normal, out, making.threads);
        }
        OpKind::ToImage { of, picture } => {
            let (numbers, floats) = (picture.numbers(op)?, floats(op, made.of(of))?);
            let (size, normal) = (size_of_picture(&node.shape), normal(picture, &numbers));
            image::to_image(&floats, size, &normal, making.out.bytes_mut(), making.threads);
        }
        _ => {
            let cluster = cluster.as_ref().expect("any other op is elementwise");
            match &cluster.ends {
                Some(product) => {
                    let OpKind::Matmul(factors) = &product.kind else {
                        unreachable!("only products have a finishing program")
                    };
                    making.product(factors, &product.shape, made)?;
                    making.end(&of_cluster(cluster, made))?;
                }
                None => making.map(&of_cluster(cluster, made))?,
            }
        }
    }
    let HostStage { out, .. } = making;
    Ok(Tensor::over(Storage::on_host(context, out), node.shape.clone(), node.dtype, 0))
}

/// A stage that is being computed.
struct HostStage<'a> {
    context: &'a Context,
    op: &'static str,
    node: &'a ExprNode,
    out: Block,
    threads: usize,
}

impl HostStage<'_> {
    /// Computes a program as a tensor, from first value to last.
    fn map(&mut self, written: &BoundProgram) -> Result<(), TensorError> {
        let blocks = written.blocks(self.op)?;
        let ElementwiseProgram { out, .. } = &written.program;
        let (bytes, count) = (out.bytes(), self.node.shape.count());
        // Pieces are cut at the starts of cache lines.
        let (program, inputs) = (&written.program, slices(&blocks));
        spread(self.out.bytes_mut(), 64, count, self.threads, |line, out| {
            Running::new(program, inputs.iter().copied()).fill(line * 64 / bytes, out);
        });
        Ok(())
    }

    /// Applies a finishing program to the product, which is already in the output.
    fn end(&mut self, written: &BoundProgram) -> Result<(), TensorError> {
        let blocks = written.blocks(self.op)?;
        let (program, inputs) = (&written.program, slices(&blocks));
        let out: &mut [f32] = cast_slice_mut(self.out.bytes_mut());
        let count = out.len();
        spread(out, 1, count, self.threads, |first, out| {
            Running::new(program, inputs.iter().copied()).end(first, out);
        });
        Ok(())
    }

    /// Runs an op over rows of floats. A program may compute the rows on the fly.
    fn rows(
        &mut self,
        of: &SharedNode,
        cluster: Option<&Cluster>,
        made: &NodeTensors,
        go: impl FnOnce(&RowInput<'_>, &mut [f32], usize),
    ) -> Result<(), TensorError> {
        let written = cluster.map_or_else(|| of_tensor(made.of(of)), |cluster| of_cluster(cluster, made));
        let blocks = written.blocks(self.op)?;
        let source = RowInput::of(&written, &blocks, of.shape.count());
        match self.node.dtype {
            DType::F16 => {
                let mut floats = self.context.pool().lend(self.op, self.node.shape.count() * 4)?;
                go(&source, cast_slice_mut(floats.bytes_mut()), self.threads);
                let out: &mut [f16] = cast_slice_mut(self.out.bytes_mut());
                convert::halves_of_floats(cast_slice(floats.bytes()), out);
            }
            _ => go(&source, cast_slice_mut(self.out.bytes_mut()), self.threads),
        }
        Ok(())
    }

    fn reduce(
        &mut self,
        how: Reduction,
        of: &SharedNode,
        axis: usize,
        cluster: Option<&Cluster>,
        made: &NodeTensors,
    ) -> Result<(), TensorError> {
        let around = of.shape.around(axis);
        if how.is_position() {
            return self.places(how, of, around, cluster, made);
        }
        if of.dtype.is_float() {
            return self.rows(of, cluster, made, |rows, out, threads| reduce::reduce(rows, around, how, out, threads));
        }
        let (input, threads) = (values(self.op, made.of(of))?, self.threads);
        match of.dtype {
            DType::I32 => {
                let out: &mut [i32] = cast_slice_mut(self.out.bytes_mut());
                whole::reduce_whole(cast_slice(&input), around, how, out, threads);
            }
            _ => {
                let out: &mut [u32] = cast_slice_mut(self.out.bytes_mut());
                whole::reduce_whole(cast_slice(&input), around, how, out, threads);
            }
        }
        Ok(())
    }

    fn places(
        &mut self,
        how: Reduction,
        of: &SharedNode,
        around: Around,
        cluster: Option<&Cluster>,
        made: &NodeTensors,
    ) -> Result<(), TensorError> {
        let written = cluster.map_or_else(|| of_tensor(made.of(of)), |cluster| of_cluster(cluster, made));
        let blocks = written.blocks(self.op)?;
        let source = RowInput::of(&written, &blocks, of.shape.count());
        let out = cast_slice_mut(self.out.bytes_mut());
        match how {
            Reduction::ArgMin => arg::argmin(&source, around, out, self.threads),
            _ => arg::argmax(&source, around, out, self.threads),
        }
        Ok(())
    }

    fn product(&mut self, product: &Matmul, shape: &Shape, made: &NodeTensors) -> Result<(), TensorError> {
        let (a, b, laid) = factors(product, shape, made)?;
        let size = MatmulSize {
            batch: laid.products,
            m: laid.m,
            n: laid.n,
            k: laid.k,
            a_batch_stride: laid.a.matrix,
            b_batch_stride: laid.b.matrix,
            a: (laid.a.row, laid.a.column),
            b: (laid.b.row, laid.b.column),
        };
        let dtype = a.dtype();
        let (a, b, threads) = (values(self.op, &a)?, values(self.op, &b)?, self.threads);
        let out = cast_slice_mut(self.out.bytes_mut());
        match dtype {
            DType::F16 => matmul::matmul_f16(size, cast_slice(&a), cast_slice(&b), out, threads),
            DType::I8 => matmul8::matmul_i8(size, cast_slice(&a), cast_slice(&b), out, threads),
            _ => matmul::matmul_f32(size, cast_slice(&a), cast_slice(&b), out, threads),
        }
        Ok(())
    }

    fn strided(&mut self, of: &Tensor, offset: usize, strides: &[usize]) -> Result<(), TensorError> {
        let input = values(self.op, of)?;
        let from = Strided { shape: self.node.shape.lengths(), strides, offset };
        copy_strided(&input, of.dtype().bytes(), from, self.out.bytes_mut());
        Ok(())
    }

    fn concat(&mut self, parts: &[SharedNode], axis: usize, made: &NodeTensors) -> Result<(), TensorError> {
        let bytes = self.node.dtype.bytes();
        let row = self.node.shape.lengths()[axis..].iter().product::<usize>() * bytes;
        let mut at = 0;
        for part in parts {
            let input = values(self.op, made.of(part))?;
            let own = part.shape.lengths()[axis..].iter().product::<usize>() * bytes;
            if own == 0 {
                continue;
            }
            for (out, input) in self.out.bytes_mut().chunks_exact_mut(row).zip(input.chunks_exact(own)) {
                out[at..at + own].copy_from_slice(input);
            }
            at += own;
        }
        Ok(())
    }

    fn gather(&mut self, of: &Tensor, indices: &Tensor, around: Around) -> Result<(), TensorError> {
        let (input, numbers) = (values(self.op, of)?, values(self.op, indices)?);
        let (bytes, out) = (of.dtype().bytes(), self.out.bytes_mut());
        let gathered = match indices.dtype() {
            DType::I32 => gather::gather::<i32>(&input, bytes, around, cast_slice(&numbers), out),
            _ => gather::gather::<u32>(&input, bytes, around, cast_slice(&numbers), out),
        };
        gathered.map_err(|wrong| no_such_row(self.op, wrong.position, wrong.index, around.length))
    }
}

/// Fails if an index is out of range. Called only if the host has the values of `indices`.
pub(super) fn check_rows(op: &'static str, indices: &Tensor, length: usize) -> Result<(), TensorError> {
    let numbers = values(op, indices)?;
    let words: &[u32] = cast_slice(&numbers);
    let number =
        |word: u32| if indices.dtype() == DType::I32 { i64::from(word.cast_signed()) } else { i64::from(word) };
    let wrong = words.iter().position(|word| !usize::try_from(number(*word)).is_ok_and(|at| at < length));
    wrong.map_or(Ok(()), |position| Err(no_such_row(op, position, number(words[position]), length)))
}

fn no_such_row(op: &'static str, position: usize, index: i64, length: usize) -> TensorError {
    let problem = format!("index number {position} is {index}; the axis has {length} entries, counted from 0");
    TensorError::Setting { op, problem }
}

/// The source of rows.
enum RowInput<'a> {
    Slice(&'a [f32]),
    Program(Box<Running<'a>>),
}

impl<'a> RowInput<'a> {
    fn of(written: &'a BoundProgram, blocks: &'a [Arc<Block>], count: usize) -> RowInput<'a> {
        let ElementwiseProgram { inputs, steps, .. } = &written.program;
        match (inputs.as_slice(), steps.len()) {
            ([input], 1) if input.dtype == DType::F32 && input.walk == Walk::Run => {
                RowInput::Slice(&cast_slice(blocks[0].bytes())[input.offset..input.offset + count])
            }
            _ => RowInput::Program(Box::new(Running::new(&written.program, slices(blocks)))),
        }
    }
}

impl RowValues for RowInput<'_> {
    #[inline(always)]
    fn part<'a>(&'a self, start: usize, len: usize, scratch: &'a mut [f32]) -> &'a [f32] {
        match self {
            RowInput::Slice(values) => &values[start..start + len],
            RowInput::Program(running) => running.part(start, len, scratch),
        }
    }
}

impl BoundProgram {
    /// The memory of the inputs on the host, downloaded if necessary.
    fn blocks(&self, op: &'static str) -> Result<Vec<Arc<Block>>, TensorError> {
        self.tensors.iter().map(|tensor| tensor.storage().host(tensor.asking(op))).collect()
    }
}

fn slices(blocks: &[Arc<Block>]) -> Vec<&[u8]> {
    blocks.iter().map(|block| block.bytes()).collect()
}

/// Values of a tensor on the host.
struct HostValues {
    block: Arc<Block>,
    range: (usize, usize),
}

impl std::ops::Deref for HostValues {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.block.bytes()[self.range.0..self.range.1]
    }
}

fn values(op: &'static str, tensor: &Tensor) -> Result<HostValues, TensorError> {
    Ok(HostValues { block: tensor.storage().host(tensor.asking(op))?, range: tensor.byte_range() })
}

/// Values of a float tensor, as f32.
fn floats(op: &'static str, tensor: &Tensor) -> Result<Vec<f32>, TensorError> {
    let values = values(op, tensor)?;
    if tensor.dtype() == DType::F16 {
        let halves: &[f16] = cast_slice(&values);
        let mut floats = vec![0.0; halves.len()];
        convert::floats_of_halves(halves, &mut floats);
        return Ok(floats);
    }
    Ok(cast_slice(&values).to_vec())
}

fn normal<'a>(picture: &'a ImageSpec, numbers: &'a [usize]) -> Normal<'a> {
    let count = numbers.len();
    Normal { channels: numbers, mean: &picture.mean[..count], std: &picture.std[..count], layout: picture.layout }
}

/// Height and width of an image tensor.
pub(super) fn size_of_tensor(layout: ChannelLayout, shape: &Shape) -> (usize, usize) {
    match (layout, shape.lengths()) {
        (ChannelLayout::Nchw, [.., height, width]) | (ChannelLayout::Nhwc, [.., height, width, _]) => (*height, *width),
        _ => unreachable!("an image tensor has four axes"),
    }
}

/// Height and width of an image.
pub(super) fn size_of_picture(shape: &Shape) -> (usize, usize) {
    let lengths = shape.lengths();
    (lengths[lengths.len() - 3], lengths[lengths.len() - 2])
}
