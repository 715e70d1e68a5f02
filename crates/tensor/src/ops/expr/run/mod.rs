//! Runs an expression stage by stage, on the device of its context, or on the host if the context has no device. `host`
//! and `device` compute one stage at a time.
//!
//! Invariants: intermediate tensors are released after their last use. A failed run leaves no tensor behind.

#[cfg(not(target_arch = "wasm32"))]
mod device;
mod host;
mod program;
#[cfg(not(target_arch = "wasm32"))]
mod tune;

#[cfg(not(target_arch = "wasm32"))]
pub use tune::{DeviceTuning, TuningTrial};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::node::{ExprNode, Matmul, OpKind, SharedNode};
use super::plan::{Cluster, PlanStage, plan};
use crate::ops::context::Context;
#[cfg(not(target_arch = "wasm32"))]
use crate::ops::context::DeviceSide;
use crate::ops::error::TensorError;
#[cfg(not(target_arch = "wasm32"))]
use crate::ops::profile::RanOn;
use crate::ops::shape::Shape;
use crate::ops::tensor::Tensor;

/// Computed tensors, by node.
#[derive(Default)]
pub(super) struct NodeTensors {
    tensors: BTreeMap<*const ExprNode, Tensor>,
}

impl NodeTensors {
    /// The tensor of a node, which is a leaf or already computed.
    pub(super) fn of<'a>(&'a self, node: &'a SharedNode) -> &'a Tensor {
        match &node.kind {
            OpKind::Leaf(tensor) => tensor,
            _ => &self.tensors[&Arc::as_ptr(node)],
        }
    }
}

pub(super) fn run(root: &SharedNode, fuse: bool) -> Result<Tensor, TensorError> {
    let running = Running::new(context_of(root, root.name())?);
    // A single op on tensors, the usual case, needs no plan. An `add` of four values takes 2.5 us with a plan, and 1.0
    // us without.
    if let Some(stage) = by_itself(root) {
        return running.make(&stage, &NodeTensors::default());
    }
    let stages = plan(root, fuse, running.most_buffers());
    let mut uses = count_uses(&stages);
    let mut made = NodeTensors::default();
    for stage in stages.iter().filter(|stage| !matches!(stage.node.kind, OpKind::Leaf(_))) {
        let tensor = running.make(stage, &made)?;
        made.tensors.insert(Arc::as_ptr(&stage.node), tensor);
        for read in read_by(stage) {
            if let Some(left) = uses.get_mut(&read) {
                *left -= 1;
                if *left == 0 && read != Arc::as_ptr(root) {
                    made.tensors.remove(&read);
                }
            }
        }
    }
    Ok(made.of(root).clone())
}

/// The stage of a node whose operands are all tensors, as a plan would make it.
fn by_itself(root: &SharedNode) -> Option<PlanStage> {
    if matches!(root.kind, OpKind::Leaf(_)) || root.operands().iter().any(|of| !matches!(of.kind, OpKind::Leaf(_))) {
        return None;
    }
    let alone = || Cluster { root: Arc::clone(root), nodes: vec![Arc::clone(root)], ends: None };
    Some(PlanStage { node: Arc::clone(root), cluster: root.is_elementwise().then(alone) })
}

/// The side where stages are computed.
struct Running {
    context: Context,
    #[cfg(not(target_arch = "wasm32"))]
    side: Option<Arc<DeviceSide>>,
}

impl Running {
    fn new(context: Context) -> Running {
        #[cfg(not(target_arch = "wasm32"))]
        let side = context.side();
        Running {
            context,
            #[cfg(not(target_arch = "wasm32"))]
            side,
        }
    }

    /// The maximum number of tensors that a kernel may bind, inputs and outputs together.
    fn most_buffers(&self) -> usize {
        const ON_HOST: usize = 64;
        #[cfg(not(target_arch = "wasm32"))]
        if let Some(side) = &self.side {
            return side.device().limits().storage_buffers_per_stage as usize;
        }
        ON_HOST
    }

    fn make(&self, stage: &PlanStage, made: &NodeTensors) -> Result<Tensor, TensorError> {
        let (context, node) = (&self.context, &stage.node);
        match &node.kind {
            OpKind::Reshape(of) if stage.cluster.is_none() => return made.of(of).reshape(node.shape.lengths()),
            _ if node.shape.count() == 0 => return context.zeros(node.shape.lengths(), node.dtype),
            _ => {}
        }
        context.say(|| {
            let bytes = context.memory().bytes();
            format!("{} -> {} of {}, {bytes} bytes in use", node.name(), node.shape, node.dtype)
        });
        #[cfg(target_arch = "wasm32")]
        return host::make(context, stage, made);
        #[cfg(not(target_arch = "wasm32"))]
        {
            let noted = context.profiler().note(|| noted(stage, made, self.side.is_some()));
            let tensor = match &self.side {
                Some(side) => device::make(context, side, stage, made)?,
                None => host::make(context, stage, made)?,
            };
            if let Some(noted) = noted {
                noted.done();
            }
            Ok(tensor)
        }
    }
}

/// The context that all tensors of an expression share. Fails if they have different contexts.
fn context_of(root: &SharedNode, op: &'static str) -> Result<Context, TensorError> {
    let mut found: Option<&Context> = None;
    let mut seen = BTreeSet::new();
    let mut next = vec![root];
    while let Some(node) = next.pop() {
        if let OpKind::Leaf(tensor) = &node.kind {
            tensor.check(op)?;
            match found {
                Some(context) if !context.is(tensor.context()) => return Err(TensorError::Foreign { op }),
                _ => found = Some(tensor.context()),
            }
        } else if seen.insert(Arc::as_ptr(node)) {
            next.extend(node.operands());
        }
    }
    Ok(found.expect("an expression begins with a tensor").clone())
}

/// The description of a stage for a profile.
#[cfg(not(target_arch = "wasm32"))]
fn noted(stage: &PlanStage, made: &NodeTensors, on_device: bool) -> crate::ops::profile::OpDescription {
    let PlanStage { node, cluster } = stage;
    let mut inside: Vec<&SharedNode> =
        cluster.iter().flat_map(|cluster| cluster.ends.iter().chain(&cluster.nodes)).collect();
    if !inside.iter().any(|one| Arc::ptr_eq(one, node)) {
        inside.push(node);
    }
    let mut reads: Vec<&SharedNode> = Vec::new();
    for operand in inside.iter().flat_map(|one| one.operands()) {
        if !inside.iter().chain(&reads).any(|known| Arc::ptr_eq(known, operand)) {
            reads.push(operand);
        }
    }
    let names: Vec<&str> = inside.iter().map(|one| one.name()).collect();
    let read = |node: &&SharedNode| (made.of(node).shape().clone(), made.of(node).dtype());
    crate::ops::profile::OpDescription {
        op: names.join("+"),
        inputs: reads.iter().map(read).collect(),
        output: node.shape.clone(),
        dtype: node.dtype,
        side: if on_device { RanOn::Device } else { RanOn::Host },
    }
}

/// The tensors that a stage reads.
fn read_by(stage: &PlanStage) -> Vec<*const ExprNode> {
    let mut inside: Vec<*const ExprNode> = vec![Arc::as_ptr(&stage.node)];
    if let Some(cluster) = &stage.cluster {
        inside.extend(cluster.nodes.iter().chain(&cluster.ends).map(Arc::as_ptr));
    }
    let nodes = stage.cluster.iter().flat_map(|cluster| cluster.nodes.iter().chain(&cluster.ends)).chain([&stage.node]);
    let mut reads: Vec<*const ExprNode> = nodes.flat_map(|node| node.operands()).map(Arc::as_ptr).collect();
    reads.sort_unstable();
    reads.dedup();
    reads.retain(|read| !inside.contains(read));
    reads
}

fn count_uses(stages: &[PlanStage]) -> BTreeMap<*const ExprNode, usize> {
    let mut uses = BTreeMap::new();
    for read in stages.iter().flat_map(read_by) {
        *uses.entry(read).or_insert(0) += 1;
    }
    uses
}

/// How the factors of a product are stored.
#[derive(Debug, Clone, Copy)]
pub(super) struct Factors {
    pub(super) products: usize,
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
    pub(super) a: FactorStrides,
    pub(super) b: FactorStrides,
}

/// The strides of one factor in values: between rows, columns and matrices.
#[derive(Debug, Clone, Copy)]
pub(super) struct FactorStrides {
    pub(super) row: usize,
    pub(super) column: usize,
    pub(super) matrix: usize,
}

/// Both factors of a product. If a single stride from matrix to matrix cannot express the broadcast of a factor, the
/// factor is copied to its broadcast shape.
pub(super) fn factors(
    product: &Matmul,
    shape: &Shape,
    made: &NodeTensors,
) -> Result<(Tensor, Tensor, Factors), TensorError> {
    let rank = shape.rank();
    let batch = &shape.lengths()[..rank - 2];
    let (height, width) = (shape[rank - 2], shape[rank - 1]);
    let products: usize = batch.iter().product();
    let laid = |node: &SharedNode, turn: bool| -> Result<(Tensor, FactorStrides, usize), TensorError> {
        let tensor = made.of(node).clone();
        let lengths = node.shape.lengths().to_vec();
        let (rows, columns) = (lengths[lengths.len() - 2], lengths[lengths.len() - 1]);
        let own: usize = lengths[..lengths.len() - 2].iter().product();
        let tensor = if own == 1 || own == products {
            tensor
        } else {
            tensor.lazy().broadcast_to(&[batch, &[rows, columns]].concat()).run()?
        };
        let matrix = if own == 1 { 0 } else { rows * columns };
        let (row, column) = if turn { (1, columns) } else { (columns, 1) };
        let k = if turn { rows } else { columns };
        Ok((tensor, FactorStrides { row, column, matrix }, k))
    };
    let (a, a_lies, k) = laid(&product.a, product.transpose_a)?;
    let (b, b_lies, _) = laid(&product.b, product.transpose_b)?;
    Ok((a, b, Factors { products, m: height, n: width, k, a: a_lies, b: b_lies }))
}
