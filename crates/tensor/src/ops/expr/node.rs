//! What an expression is made of.
//!
//! Owns the nodes: each an op with its operands, and the shape and type of what it makes.
//! Does not check anything: whoever makes a node has.
//!
//! Always: an expression may be as deep as memory allows: nothing here calls itself along its operands.

use std::sync::Arc;

use crate::ops::dtype::DType;
use crate::ops::image::ImageSpec;
use crate::ops::program::{Binary, Unary};
use crate::ops::reduction::Reduction;
use crate::ops::shape::Shape;
use crate::ops::tensor::Tensor;

/// One op with its operands.
pub(crate) struct ExprNode {
    pub(crate) kind: OpKind,
    pub(crate) shape: Shape,
    pub(crate) dtype: DType,
}

/// A node that several may use.
pub(crate) type SharedNode = Arc<ExprNode>;

/// Which op.
pub(crate) enum OpKind {
    /// A tensor that is there.
    Leaf(Tensor),
    /// One value, by its bits.
    Constant(u32),
    Unary(Unary, SharedNode),
    Binary(Binary, SharedNode, SharedNode),
    Select(SharedNode, SharedNode, SharedNode),
    Cast(SharedNode),
    /// The same values in another shape.
    Reshape(SharedNode),
    /// Values of the operand by strides and an offset, counted in its own values.
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

/// A product of matrices, or of a row of them. Of i8 it is the exact sums, as f32.
pub(crate) struct Matmul {
    pub(crate) a: SharedNode,
    pub(crate) b: SharedNode,
    pub(crate) transpose_a: bool,
    pub(crate) transpose_b: bool,
}

impl ExprNode {
    /// Whether each value it makes is made of one value of each operand.
    pub(crate) fn is_elementwise(&self) -> bool {
        matches!(self.kind, OpKind::Unary(..) | OpKind::Binary(..) | OpKind::Select(..) | OpKind::Cast(..))
    }

    /// Its operands that are no constants, in order.
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

    /// What the op is called.
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
    /// One after the other, since each would otherwise end the next inside of its own end: 100,000 ops in a row are more
    /// than a thread's stack has room for.
    fn drop(&mut self) {
        if self.operands().iter().all(|operand| matches!(operand.kind, OpKind::Leaf(_))) {
            return;
        }
        // Held here, an operand does not end with the kind that names it.
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
