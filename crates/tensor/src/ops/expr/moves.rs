//! Building ops that only move values: permute, slice, broadcast, reshape, concat and gather.
//!
//! Invariant: a mistake is kept in the expression and returned when the expression runs.

use super::node::{OpKind, SharedNode};
use super::{Expr, Operand, OperandValue};
use crate::ops::dtype::DType;
use crate::ops::error::TensorError;
use crate::ops::shape::Shape;

impl Expr {
    /// Reorders the axes.
    #[must_use]
    pub fn permute(&self, axes: &[usize]) -> Expr {
        let op = "permute";
        self.then(|node| {
            let mut sorted = axes.to_vec();
            sorted.sort_unstable();
            if !sorted.iter().copied().eq(0..node.shape.rank()) {
                let problem = format!(
                    "axes are {axes:?}; expected each axis of {} (rank {}) once",
                    node.shape,
                    node.shape.rank()
                );
                return Err(TensorError::Mismatch { op, problem });
            }
            let own = node.shape.strides();
            let lengths: Vec<usize> = axes.iter().map(|axis| node.shape[*axis]).collect();
            let strides = axes.iter().map(|axis| own[*axis]).collect();
            Ok((OpKind::Strided { of: node.clone(), offset: 0, strides }, Shape::new(&lengths)?, node.dtype))
        })
    }

    /// Swaps the last two axes.
    #[must_use]
    pub fn transpose(&self) -> Expr {
        match &self.node {
            Ok(node) if node.shape.rank() >= 2 => {
                let mut axes: Vec<usize> = (0..node.shape.rank()).collect();
                let last = axes.len() - 1;
                axes.swap(last - 1, last);
                self.permute(&axes)
            }
            Ok(node) => {
                let problem = format!("{} has fewer than two axes", node.shape);
                Expr::failed(TensorError::Mismatch { op: "transpose", problem })
            }
            Err(_) => self.clone(),
        }
    }

    /// The range `start..end` along an axis.
    #[must_use]
    pub fn slice(&self, axis: isize, start: usize, end: usize) -> Expr {
        let op = "slice";
        self.then(|node| {
            let axis = node.shape.axis(op, axis)?;
            let has = node.shape[axis];
            if start > end || end > has {
                return Err(TensorError::OutOfRange { op, start, end, shape: node.shape.clone(), has });
            }
            let strides = node.shape.strides();
            let mut lengths = node.shape.lengths().to_vec();
            lengths[axis] = end - start;
            let kind = OpKind::Strided { of: node.clone(), offset: start * strides[axis], strides: strides.to_vec() };
            Ok((kind, Shape::new(&lengths)?, node.dtype))
        })
    }

    /// Repeats values to a larger shape.
    #[must_use]
    pub fn broadcast_to(&self, lengths: &[usize]) -> Expr {
        let op = "broadcast_to";
        self.then(|node| {
            let into = Shape::new(lengths)?;
            if node.shape.broadcast(&into, op)? != into {
                return Err(TensorError::NotAlike { op, one: node.shape.clone(), two: into });
            }
            let strides = node.shape.strides_as(&into).to_vec();
            Ok((OpKind::Strided { of: node.clone(), offset: 0, strides }, into, node.dtype))
        })
    }

    /// The same values in another shape.
    #[must_use]
    pub fn reshape(&self, lengths: &[usize]) -> Expr {
        let op = "reshape";
        self.then(|node| {
            let shape = Shape::new(lengths)?;
            if shape.count() != node.shape.count() {
                let (has, wants) = (node.shape.count(), shape.count());
                let problem = format!("{} has {has} values, {shape} has {wants}", node.shape);
                return Err(TensorError::Mismatch { op, problem });
            }
            Ok((OpKind::Reshape(node.clone()), shape, node.dtype))
        })
    }

    /// Concatenates along an axis; all other lengths must be equal.
    #[must_use]
    pub fn concat(parts: &[Expr], axis: isize) -> Expr {
        let op = "concat";
        let joined = || -> Result<Expr, TensorError> {
            let parts = parts.iter().map(|part| part.node.clone()).collect::<Result<Vec<SharedNode>, _>>()?;
            let Some(first) = parts.first() else {
                return Err(TensorError::Setting { op, problem: "no parts; give at least one".to_owned() });
            };
            let axis = first.shape.axis(op, axis)?;
            let mut lengths = first.shape.lengths().to_vec();
            lengths[axis] = 0;
            for part in &parts {
                let mut others = part.shape.lengths().to_vec();
                if others.len() == lengths.len() {
                    lengths[axis] += std::mem::replace(&mut others[axis], lengths[axis]);
                }
                let other_axes =
                    |lengths: &[usize]| (lengths[..axis].to_vec(), lengths.get(axis + 1..).map(<[usize]>::to_vec));
                if others.len() != lengths.len() || other_axes(&others) != other_axes(&lengths) {
                    let problem = format!("{} and {} differ along another axis than {axis}", first.shape, part.shape);
                    return Err(TensorError::Mismatch { op, problem });
                }
                if part.dtype != first.dtype {
                    return Err(TensorError::WrongType { op, has: part.dtype, wants: first.dtype.name() });
                }
            }
            let (shape, dtype) = (Shape::new(&lengths)?, first.dtype);
            Ok(Expr::made(OpKind::Concat { parts, axis }, shape, dtype))
        };
        joined().unwrap_or_else(Expr::failed)
    }

    /// Picks entries along an axis by index (i32 or u32); the shape of `indices` replaces the axis. An index out of
    /// range is an error if the host has the indices. Indices computed on the device are not checked: an index out of
    /// range gives NaN for floats, and 0 for integers.
    #[must_use]
    pub fn gather(&self, indices: impl Into<Operand>, axis: isize) -> Expr {
        let op = "gather";
        let indices = indices.into();
        self.then(|node| {
            let OperandValue::Expr(Expr { node: indices }) = indices.0 else {
                return Err(TensorError::Setting { op, problem: "indices must be a tensor".to_owned() });
            };
            let indices = indices?;
            if !matches!(indices.dtype, DType::I32 | DType::U32) {
                return Err(TensorError::WrongType { op, has: indices.dtype, wants: "i32 or u32" });
            }
            let axis = node.shape.axis(op, axis)?;
            let (before, rest) = node.shape.lengths().split_at(axis);
            let lengths: Vec<usize> = [before, indices.shape.lengths(), &rest[1..]].concat();
            let shape = Shape::new(&lengths)?;
            Ok((OpKind::Gather { of: node.clone(), indices, axis }, shape, node.dtype))
        })
    }
}
