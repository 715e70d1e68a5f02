//! Why a graph cannot be lowered.

use vramp_tensor::TensorError;

use crate::error::UnsupportedOp;
use crate::onnx::OnnxError;

/// Why a graph cannot be lowered.
#[derive(Debug, thiserror::Error)]
pub enum LowerError {
    /// All nodes with unsupported ops or settings, in the order of the graph.
    #[error("{} nodes have unsupported ops", ops.len())]
    Unsupported { ops: Vec<UnsupportedOp> },
    /// Shapes depend on the values of these inputs: lower again with their values known.
    #[error("the shapes depend on the values of inputs {inputs:?}")]
    NeedsValue { inputs: Vec<usize> },
    /// A node that contradicts the definition of its op.
    #[error("{node}: {problem}")]
    Node { node: String, problem: String },
    /// A node whose step cannot be added.
    #[error("{node}: {error}")]
    Tensor { node: String, error: Box<TensorError> },
    #[error(transparent)]
    Onnx(#[from] OnnxError),
}

/// Why a node cannot be lowered. The caller adds the node.
#[derive(Debug)]
pub(super) enum Fault {
    Unsupported(String),
    /// An input has as many rows as a step computes, and the op needs their number.
    ComputedRows,
    NeedsValue(Vec<usize>),
    Problem(String),
    Tensor(TensorError),
    Onnx(OnnxError),
}

impl From<TensorError> for Fault {
    fn from(error: TensorError) -> Fault {
        Fault::Tensor(error)
    }
}

impl From<OnnxError> for Fault {
    fn from(error: OnnxError) -> Fault {
        Fault::Onnx(error)
    }
}

/// A contradiction to the definition of an op.
pub(super) fn problem<T>(text: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Problem(text.into()))
}
