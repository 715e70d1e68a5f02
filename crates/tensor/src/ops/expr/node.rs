//! The nodes of an expression. A node is an op with its operands, and the shape and type of its result. The code that
//! builds a node checks the op and the operands.
//!
//! Invariant: an expression may be as deep as memory allows, because nothing recurses along operands.

use std::sync::Arc;

use crate::ops::dtype::DType;
use crate::ops::image::ImageSpec;
use crate::ops::program::{Binary, Unary};
use crate::ops::reduction::Reduction;
use crate::ops::shape::Shape;
use crate::ops::tensor::Tensor;

pub(crate) struct ExprNode {
    pub(crate) kind: OpKind,
    pub(crate) shape: Shape,
    pub(crate) dtype: DType,
}

pub(crate) type SharedNode = Arc<ExprNode>;

pub(crate) enum OpKind {
    /// An existing tensor.
    Leaf(Tensor),
    /// One value, by its bits.
    Constant(u32),
    Unary(Unary, SharedNode),
    Binary(Binary, SharedNode, SharedNode),
    Select(SharedNode, SharedNode, SharedNode),
    Cast(SharedNode),
    /// The same values in another shape.
    Reshape(SharedNode),
    /// Values of the operand, read by strides and an offset, all counted in values.
    Strided {
        of: SharedNode,
        offset: usize,
        strides: Vec<usize>,
    },
    Matmul(Matmul),
    Reduce {
        how: Reduction,
        of: SharedNode,
        axis: usize,
    },
    Softmax {
        of: SharedNode,
        axis: usize,
        log: bool,
    },
    LayerNorm {
        of: SharedNode,
        gamma: Option<SharedNode>,
        beta: Option<SharedNode>,
        epsilon: f32,
    },
    Concat {
        parts: Vec<SharedNode>,
        axis: usize,
    },
    Gather {
        of: SharedNode,
        indices: SharedNode,
        axis: usize,
    },
    FromImage {
        of: SharedNode,
        picture: ImageSpec,
    },
    ToImage {
        of: SharedNode,
        picture: ImageSpec,
    },
}

/// A matrix product, or a batch of products. For i8, the result is the exact sum, rounded to f32.
pub(crate) struct Matmul {
    pub(crate) a: SharedNode,
    pub(crate) b: SharedNode,
    pub(crate) transpose_a: bool,
    pub(crate) transpose_b: bool,
}

impl ExprNode {
    /// True if each value of the result depends on one value of each operand.
    pub(crate) fn is_elementwise(&self) -> bool {
        matches!(self.kind, OpKind::Unary(..) | OpKind::Binary(..) | OpKind::Select(..) | OpKind::Cast(..))
    }

    /// The operands that are not constants, in order.
    pub(crate) fn operands(&self) -> Vec<&SharedNode> {
        let mut operands = self.all_operands();
        operands.retain(|operand| !matches!(operand.kind, OpKind::Constant(_)));
        operands
    }

    fn all_operands(&self) -> Vec<&SharedNode> {
        match &self.kind {
            OpKind::Leaf(_) | OpKind::Constant(_) => Vec::new(),
            OpKind::Unary(_, of)
            | OpKind::Cast(of)
            | OpKind::Reshape(of)
            | OpKind::Strided { of, .. }
            | OpKind::Reduce { of, .. }
            | OpKind::Softmax { of, .. }
            | OpKind::FromImage { of, .. }
            | OpKind::ToImage { of, .. } => vec![of],
            OpKind::Binary(_, a, b) | OpKind::Matmul(Matmul { a, b, .. }) => vec![a, b],
            OpKind::Select(c, a, b) => vec![c, a, b],
            OpKind::LayerNorm { of, gamma, beta, .. } => {
                [Some(of), gamma.as_ref(), beta.as_ref()].into_iter().flatten().collect()
            }
            OpKind::Concat { parts, .. } => parts.iter().collect(),
            OpKind::Gather { of, indices, .. } => vec![of, indices],
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        match &self.kind {
            OpKind::Leaf(_) => "tensor",
            OpKind::Constant(_) => "constant",
            OpKind::Unary(op, _) => op.name(),
            OpKind::Binary(op, ..) => op.name(),
            OpKind::Select(..) => "select",
            OpKind::Cast(_) => "cast",
            OpKind::Reshape(_) => "reshape",
            OpKind::Strided { .. } => "strided",
            OpKind::Matmul(_) => "matmul",
            OpKind::Reduce { how, .. } => how.name(),
            OpKind::Softmax { log: false, .. } => "softmax",
            OpKind::Softmax { log: true, .. } => "log_softmax",
            OpKind::LayerNorm { .. } => "layer_norm",
            OpKind::Concat { .. } => "concat",
            OpKind::Gather { .. } => "gather",
            OpKind::FromImage { .. } => "image_to_tensor",
            OpKind::ToImage { .. } => "tensor_to_image",
        }
    }
}

impl Drop for ExprNode {
    /// Drops operands in a loop, because recursive drops would overflow a thread's stack at about 100,000 chained ops.
    fn drop(&mut self) {
        if self.operands().iter().all(|operand| matches!(operand.kind, OpKind::Leaf(_))) {
            return;
        }
        // Holding the operands here keeps them alive when `kind` is dropped.
        let mut ending: Vec<SharedNode> = self.all_operands().into_iter().cloned().collect();
        self.kind = OpKind::Constant(0);
        while let Some(next) = ending.pop() {
            if let Some(mut last) = Arc::into_inner(next) {
                ending.extend(last.all_operands().into_iter().cloned());
                last.kind = OpKind::Constant(0);
            }
        }
    }
}
