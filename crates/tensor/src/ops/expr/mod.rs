//! Expressions: ops that are written down first and computed together. `plan` decides which ops share a kernel; `run`
//! computes the ops on the device of the context, or on the host.
//!
//! Nothing is computed before [`Expr::run`], which computes only what the result needs. A method of a tensor such as
//! `add` runs an expression of one op.
//!
//! Invariants: fusing ops changes no bit, because each op rounds as if it were computed alone (if the driver does not
//! fuse multiply and add). A mistake that is made while an expression is built is kept in the expression and returned
//! by `run`.

mod build;
mod cut;
mod moves;
mod node;
mod plan;
mod run;

#[cfg(not(target_arch = "wasm32"))]
pub use run::{DeviceTuning, TuningTrial};

use std::sync::Arc;

use crate::ops::dtype::DType;
use crate::ops::error::TensorError;
use crate::ops::shape::Shape;
use crate::ops::tensor::Tensor;
use node::{ExprNode, OpKind, SharedNode};

/// Ops that are written down but not computed. Clones are the same expression.
#[derive(Clone)]
pub struct Expr {
    node: Result<SharedNode, TensorError>,
}

impl std::fmt::Debug for Expr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Prints only the last op, because operands may be shared many times.
        match &self.node {
            Ok(node) => write!(f, "Expr({} -> {} of {})", node.name(), node.shape, node.dtype),
            Err(error) => write!(f, "Expr({error})"),
        }
    }
}

impl Expr {
    /// The shape of the result.
    pub fn shape(&self) -> Result<&Shape, TensorError> {
        self.node.as_ref().map(|node| &node.shape).map_err(Clone::clone)
    }

    /// The type of the result.
    pub fn dtype(&self) -> Result<DType, TensorError> {
        self.node.as_ref().map(|node| node.dtype).map_err(Clone::clone)
    }

    /// Computes the expression in as few kernels as possible. An expression without ops returns its tensor; an
    /// expression that only reshapes a tensor returns a new tensor over the same memory.
    pub fn run(&self) -> Result<Tensor, TensorError> {
        let node = self.node.as_ref().map_err(Clone::clone)?;
        run::run(node, true)
    }

    /// Computes the expression op by op, as a reference for `run`.
    pub fn run_unfused(&self) -> Result<Tensor, TensorError> {
        let node = self.node.as_ref().map_err(Clone::clone)?;
        run::run(node, false)
    }

    fn made(kind: OpKind, shape: Shape, dtype: DType) -> Expr {
        Expr { node: Ok(Arc::new(ExprNode { kind, shape, dtype })) }
    }

    fn failed(error: TensorError) -> Expr {
        Expr { node: Err(error) }
    }
}

/// The second operand of an op: an expression, a tensor, or a number, which is converted to the type of the first
/// operand.
#[derive(Debug, Clone)]
pub struct Operand(OperandValue);

#[derive(Debug, Clone)]
enum OperandValue {
    Expr(Expr),
    Number(f64),
}

impl From<&Tensor> for Operand {
    fn from(tensor: &Tensor) -> Operand {
        Operand(OperandValue::Expr(tensor.lazy()))
    }
}

impl From<&Expr> for Operand {
    fn from(expr: &Expr) -> Operand {
        Operand(OperandValue::Expr(expr.clone()))
    }
}

impl From<Expr> for Operand {
    fn from(expr: Expr) -> Operand {
        Operand(OperandValue::Expr(expr))
    }
}

impl From<f32> for Operand {
    fn from(number: f32) -> Operand {
        Operand(OperandValue::Number(f64::from(number)))
    }
}

impl From<f64> for Operand {
    fn from(number: f64) -> Operand {
        Operand(OperandValue::Number(number))
    }
}

impl From<i32> for Operand {
    fn from(number: i32) -> Operand {
        Operand(OperandValue::Number(f64::from(number)))
    }
}

impl Tensor {
    /// An expression that starts with this tensor.
    pub fn lazy(&self) -> Expr {
        match self.check("lazy") {
            Ok(()) => Expr::made(OpKind::Leaf(self.clone()), self.shape().clone(), self.dtype()),
            Err(error) => Expr::failed(error),
        }
    }
}
