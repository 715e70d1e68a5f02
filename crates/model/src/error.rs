//! Why a model cannot be loaded or run.

use std::fmt;

use vramp_tensor::{ErrorKind, TensorError};

use crate::lower::LowerError;
use crate::onnx::OnnxError;

/// Why a model cannot be loaded or run.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The file cannot be read.
    #[error(transparent)]
    Onnx(#[from] OnnxError),
    /// All nodes with unsupported ops, in the order of the graph.
    #[error("{}", listed(ops))]
    UnsupportedOps { ops: Vec<UnsupportedOp> },
    /// A tensor that does not match an input of the model, or an input without a tensor.
    #[error("input `{name}`: expected {expected}, got {got}")]
    WrongInput { name: String, expected: String, got: String },
    /// A node that contradicts the definition of its op, possibly only for the shapes of these inputs.
    #[error("{node}: {problem}")]
    InvalidNode { node: String, problem: String },
    /// A node that this machine cannot run.
    #[error("{node}: {error}")]
    Node { node: String, error: Box<TensorError> },
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

impl ModelError {
    /// True if there is too little memory: within a budget, or at all.
    pub fn is_out_of_memory(&self) -> bool {
        let error = match self {
            ModelError::Node { error, .. } => error.as_ref(),
            ModelError::Tensor(error) => error,
            _ => return false,
        };
        error.kind() == ErrorKind::OutOfMemory
    }

    /// True if the device was lost on which the model ran.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn is_lost_device(&self) -> bool {
        let error = match self {
            ModelError::Node { error, .. } => error.as_ref(),
            ModelError::Tensor(error) => error,
            _ => return false,
        };
        matches!(error, TensorError::Lost { .. })
    }
}

impl From<LowerError> for ModelError {
    fn from(error: LowerError) -> ModelError {
        match error {
            LowerError::Unsupported { ops } => ModelError::UnsupportedOps { ops },
            LowerError::Node { node, problem } => ModelError::InvalidNode { node, problem },
            LowerError::Tensor { node, error } => ModelError::Node { node, error },
            LowerError::Onnx(error) => ModelError::Onnx(error),
            LowerError::NeedsValue { inputs } => {
                let problem = format!("shapes depend on the values of inputs {inputs:?}, which are not known");
                ModelError::InvalidNode { node: "graph".to_owned(), problem }
            }
        }
    }
}

/// A node with an op that cannot be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsupportedOp {
    /// With its domain, if it is not one of ONNX itself.
    pub op: String,
    pub node: String,
}

impl fmt::Display for UnsupportedOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (node `{}`)", self.op, self.node)
    }
}

fn listed(ops: &[UnsupportedOp]) -> String {
    /// Enough for every model that could be mended by hand.
    const MOST: usize = 50;
    let shown: Vec<String> = ops.iter().take(MOST).map(UnsupportedOp::to_string).collect();
    let more = ops.len().saturating_sub(MOST);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    format!("{} nodes have unsupported ops: {}{more}; `vramp model inspect` lists them", ops.len(), shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsupported_ops_are_listed_together_with_their_nodes() {
        let op = |op: &str, node: &str| UnsupportedOp { op: op.into(), node: node.into() };
        let text = ModelError::UnsupportedOps { ops: vec![op("If", "a"), op("Loop", "Loop #3")] }.to_string();
        assert!(text.starts_with("2 nodes have unsupported ops: If (node `a`), Loop (node `Loop #3`); "), "{text}");
        let many = ModelError::UnsupportedOps { ops: vec![op("If", "a"); 60] }.to_string();
        assert!(many.contains("(node `a`), and 10 more; "), "{many}");
    }
}
