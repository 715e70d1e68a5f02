//! Expressions: ops that are written down first and computed together.
//!
//! Owns what is written down, and the way from there to kernels: `plan` decides which ops become one, `run` has them
//! computed on the context's side.
//! Does not compute before `run` is called, and then only what it needs.
//!
//! Always: joining ops changes no bit, since each rounds as it does alone (where a driver multiplies and adds one after
//! the other); a mistake made while writing is kept and told
//! by `run`; every op of a tensor is an expression of one.

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

/// Ops that are written down and not yet computed. Clones are the same expression.
#[derive(Clone)]
pub struct Expr {
    node: Result<SharedNode, TensorError>,
}

impl std::fmt::Debug for Expr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Its last op alone: what it is made of may be used many times over.
        match &self.node {
            Ok(node) => write!(f, "Expr({} -> {} of {})", node.name(), node.shape, node.dtype),
            Err(error) => write!(f, "Expr({error})"),
        }
    }
}

impl Expr {
    /// The shape of what it will make.
    pub fn shape(&self) -> Result<&Shape, TensorError> {
        self.node.as_ref().map(|node| &node.shape).map_err(Clone::clone)
    }

    /// The type of what it will make.
    pub fn dtype(&self) -> Result<DType, TensorError> {
        self.node.as_ref().map(|node| node.dtype).map_err(Clone::clone)
    }

    /// Computes it, in as few kernels as can be. An expression of a tensor alone is that tensor; one that only reshapes it
    /// shares its memory.
    pub fn run(&self) -> Result<Tensor, TensorError> {
        let node = self.node.as_ref().map_err(Clone::clone)?;
        run::run(node, true)
    }

    /// Computes it op by op, each by itself: what `run` is compared with.
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

/// What can stand beside an expression: another one, a tensor, or a number of its type.
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
    /// Begins an expression with this tensor.
    pub fn lazy(&self) -> Expr {
        match self.check("lazy") {
            Ok(()) => Expr::made(OpKind::Leaf(self.clone()), self.shape().clone(), self.dtype()),
            Err(error) => Expr::failed(error),
        }
    }
}
