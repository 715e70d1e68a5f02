//! Computes a stage on the host.
//!
//! Owns the way from nodes to loops over slices.
//! Does not loop: `crate::host` and programs do.

use std::sync::Arc;

use bytemuck::{cast_slice, cast_slice_mut};
use half::f16;
use half::slice::HalfFloatSliceExt;

use super::super::node::{Kind, Node, Reduction, Shared};
use super::super::plan::{Cluster, Stage};
use super::program::{Written, of_cluster, of_strides, of_tensor};
use super::{Made, factors};
use crate::context::Context;
use crate::dtype::DType;
use crate::error::TensorError;
use crate::host::image::Normal;
use crate::host::matmul::MatmulSize;
use crate::host::matmul8::Scales;
use crate::host::rows::Rows;
use crate::host::spread::spread;
use crate::host::strided::Strided;
use crate::host::whole::WholeReduction;
use crate::host::{self, arg, gather, image, matmul, matmul8, norm, reduce, softmax, strided, whole};
use crate::memory::Block;
use crate::program::{Program, Running, Walk};
use crate::shape::Around;
use crate::storage::Storage;
use crate::tensor::Tensor;

pub(super) fn make(context: &Context, stage: &Stage, made: &Made) -> Result<Tensor, TensorError> {
    let Stage { node, cluster } = stage;
    let op = node.name();
    let out = context.pool().lend(op, node.shape.count() * node.dtype.bytes())?;
    let mut making = Making { context, op, node, out, threads: context.threads() };
    match &node.kind {
        Kind::Reduce { how, of, axis } => making.reduce(*how, of, *axis, cluster.as_ref(), made)?,
        Kind::Softmax { of, axis, log } => {
            let around = of.shape.around(*axis);
            let run = if *log { log_softmax_of } else { softmax_of };
            making.rows(of, cluster.as_ref(), made, |rows, out, threads| run(rows, around, out, threads))?;
        }
        Kind::LayerNorm { of, gamma, beta, epsilon } => {
            let row = |node: &Option<Shared>| node.as_ref().map(|node| making.floats(made.of(node))).transpose();
            let (gamma, beta) = (row(gamma)?, row(beta)?);
            let length = of.shape[of.shape.rank() - 1];
            making.rows(of, cluster.as_ref(), made, |rows, out, threads| {
                norm::layer_norm(&rows, length, *epsilon, gamma.as_deref(), beta.as_deref(), out, threads);
            })?;
        }
        Kind::Matmul(product) => making.product(product, &node.shape, made)?,
        Kind::Strided { of, offset, strides } => making.strided(made.of(of), *offset, strides)?,
        Kind::Concat { parts, axis } => making.concat(parts, *axis, made)?,
        Kind::Gather { of, indices, axis } => making.gather(made.of(of), made.of(indices), of.shape.around(*axis))?,
        Kind::FromImage { of, picture } => {
            let numbers = picture.numbers(op)?;
            let bytes = making.bytes(made.of(of))?;
            let (from, to) = (size_of_picture(of), (node.shape.lengths(), picture.layout));
            let normal = normal(picture, &numbers);
            image::from_image(&bytes, from, size_of_tensor(to), picture.resize, &normal, cast_slice_mut(making.out.bytes_mut()), making.threads);
        }
        Kind::ToImage { of, picture } => {
            let numbers = picture.numbers(op)?;
            let values = making.floats(made.of(of))?;
            let size = (node.shape[0], node.shape[1]);
            image::to_image(&values, size, &normal(picture, &numbers), making.out.bytes_mut(), making.threads);
        }
        _ => {
            let cluster = cluster.as_ref().expect("any other op is elementwise");
            match &cluster.ends {
                Some(product) => {
                    let Kind::Matmul(factors) = &product.kind else { unreachable!("only products are ended") };
                    making.product(factors, &product.shape, made)?;
                    making.end(&of_cluster(cluster, made))?;
                }
                None => making.map(&of_cluster(cluster, made))?,
            }
        }
    }
    let Making { out, .. } = making;
    Ok(Tensor::over(Storage::on_host(context, out), node.shape.clone(), node.dtype, 0))
}

/// A stage that is being computed.
struct Making<'a> {
    context: &'a Context,
    op: &'static str,
    node: &'a Node,
    out: Block,
    threads: usize,
}

/// Values of a tensor on the host.
struct Values {
    block: Arc<Block>,
    range: (usize, usize),
}

impl std::ops::Deref for Values {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.block.bytes()[self.range.0..self.range.1]
    }
}
