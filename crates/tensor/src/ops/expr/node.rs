//! What an expression is made of.
//!
//! Owns the nodes: each an op with its operands, and the shape and type of what it makes.
//! Does not check anything: whoever makes a node has.
//!
//! Always: an expression may be as deep as memory allows: nothing here calls itself along its operands.

use std::sync::Arc;

use crate::ops::dtype::DType;
use crate::ops::image::Picture;
use crate::ops::program::{Binary, Unary};
use crate::ops::reduction::Reduction;
use crate::ops::shape::Shape;
use crate::ops::tensor::Tensor;

/// One op with its operands.
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) shape: Shape,
    pub(crate) dtype: DType,
}

/// A node that several may use.
pub(crate) type Shared = Arc<Node>;

/// Which op.
pub(crate) enum Kind {
    /// A tensor that is there.
    Leaf(Tensor),
    /// One value, by its bits.
    Constant(u32),
    Unary(Unary, Shared),
    Binary(Binary, Shared, Shared),
    Select(Shared, Shared, Shared),
    Cast(Shared),
    /// The same values in another shape.
    Reshape(Shared),
    /// Values of the operand by strides and an offset, counted in its own values.
    Strided {
        of: Shared,
        offset: usize,
        strides: Vec<usize>,
    },
    Matmul(Matmul),
    Reduce {
        how: Reduction,
        of: Shared,
        axis: usize,
    },
    Softmax {
        of: Shared,
        axis: usize,
        log: bool,
    },
    LayerNorm {
        of: Shared,
        gamma: Option<Shared>,
        beta: Option<Shared>,
        epsilon: f32,
    },
    Concat {
        parts: Vec<Shared>,
        axis: usize,
    },
    Gather {
        of: Shared,
        indices: Shared,
        axis: usize,
    },
    FromImage {
        of: Shared,
        picture: Picture,
    },
    ToImage {
        of: Shared,
        picture: Picture,
    },
}

/// A product of matrices, or of a row of them. Of i8 it is the exact sums, as f32.
pub(crate) struct Matmul {
    pub(crate) a: Shared,
    pub(crate) b: Shared,
    pub(crate) transpose_a: bool,
    pub(crate) transpose_b: bool,
}

impl Node {
    /// Whether each value it makes is made of one value of each operand.
    pub(crate) fn is_elementwise(&self) -> bool {
        matches!(self.kind, Kind::Unary(..) | Kind::Binary(..) | Kind::Select(..) | Kind::Cast(..))
    }

    /// Its operands that are no constants, in order.
    pub(crate) fn operands(&self) -> Vec<&Shared> {
        let mut operands = self.all_operands();
        operands.retain(|operand| !matches!(operand.kind, Kind::Constant(_)));
        operands
    }

    fn all_operands(&self) -> Vec<&Shared> {
        match &self.kind {
            Kind::Leaf(_) | Kind::Constant(_) => Vec::new(),
            Kind::Unary(_, of)
            | Kind::Cast(of)
            | Kind::Reshape(of)
            | Kind::Strided { of, .. }
            | Kind::Reduce { of, .. }
            | Kind::Softmax { of, .. }
            | Kind::FromImage { of, .. }
            | Kind::ToImage { of, .. } => vec![of],
            Kind::Binary(_, a, b) | Kind::Matmul(Matmul { a, b, .. }) => vec![a, b],
            Kind::Select(c, a, b) => vec![c, a, b],
            Kind::LayerNorm { of, gamma, beta, .. } => {
                [Some(of), gamma.as_ref(), beta.as_ref()].into_iter().flatten().collect()
            }
            Kind::Concat { parts, .. } => parts.iter().collect(),
            Kind::Gather { of, indices, .. } => vec![of, indices],
        }
    }

    /// What the op is called.
    pub(crate) fn name(&self) -> &'static str {
        match &self.kind {
            Kind::Leaf(_) => "tensor",
            Kind::Constant(_) => "constant",
            Kind::Unary(op, _) => op.name(),
            Kind::Binary(op, ..) => op.name(),
            Kind::Select(..) => "select",
            Kind::Cast(_) => "cast",
            Kind::Reshape(_) => "reshape",
            Kind::Strided { .. } => "strided",
            Kind::Matmul(_) => "matmul",
            Kind::Reduce { how, .. } => how.name(),
            Kind::Softmax { log: false, .. } => "softmax",
            Kind::Softmax { log: true, .. } => "log_softmax",
            Kind::LayerNorm { .. } => "layer_norm",
            Kind::Concat { .. } => "concat",
            Kind::Gather { .. } => "gather",
            Kind::FromImage { .. } => "image_to_tensor",
            Kind::ToImage { .. } => "tensor_to_image",
        }
    }
}

impl Drop for Node {
    /// One after the other, since each would otherwise end the next inside of its own end: 100,000 ops in a row are more
    /// than a thread's stack has room for.
    fn drop(&mut self) {
        if self.operands().iter().all(|operand| matches!(operand.kind, Kind::Leaf(_))) {
            return;
        }
        // Held here, an operand does not end with the kind that names it.
        let mut ending: Vec<Shared> = self.all_operands().into_iter().cloned().collect();
        self.kind = Kind::Constant(0);
        while let Some(next) = ending.pop() {
            if let Some(mut last) = Arc::into_inner(next) {
                ending.extend(last.all_operands().into_iter().cloned());
                last.kind = Kind::Constant(0);
            }
        }
    }
}
