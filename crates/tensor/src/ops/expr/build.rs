//! Building expressions: the checks of every op, and the shape and type of the op's result.
//!
//! Invariant: the host can compute every expression that is accepted here. A device may refuse sizes beyond its limits,
//! with an error that gives the numbers.

use half::f16;

use super::node::{ExprNode, Matmul, OpKind, SharedNode};
use super::{Expr, Operand, OperandValue};
use crate::ops::dtype::DType;
use crate::ops::error::TensorError;
use crate::ops::image::{ChannelLayout, ImageSpec};
use crate::ops::program::{Binary, Unary, named_unary};
use crate::ops::reduction::Reduction;
use crate::ops::shape::Shape;

/// Maximum number of i8 products whose sum always fits in 32 bits.
const MOST_I8_SUMS: usize = (i32::MAX / (128 * 128)) as usize;

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident $op:ident),* $(,)?) => {
        $($(#[$doc])* #[must_use] pub fn $name(&self) -> Expr { self.unary(Unary::$op) })*
    };
}

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident $op:ident),*) => {
        $($(#[$doc])* #[must_use] pub fn $name(&self, other: impl Into<Operand>) -> Expr {
            self.binary(Binary::$op, other)
        })*
    };
}

macro_rules! reduction {
    ($($(#[$doc:meta])* $name:ident $op:ident),*) => {
        $($(#[$doc])* #[must_use] pub fn $name(&self, axis: isize) -> Expr { self.reduce(Reduction::$op, axis, false) })*
    };
}

impl Expr {
    named_unary!(unary);

    binary! {
        /// a + b
        add Add,
        /// a - b
        sub Sub,
        /// a * b, value by value.
        mul Mul,
        /// a / b. Integers round towards 0; an integer divided by 0 stays as it is.
        div Div,
        /// The smaller of a and b; NaN if either is NaN.
        minimum Min,
        /// The larger of a and b; NaN if either is NaN.
        maximum Max,
        /// a to the power of b, within 1e-5.
        pow Pow,
        /// 1 if a < b, otherwise 0.
        less Less,
        /// 1 if a > b, otherwise 0.
        greater Greater,
        /// 1 if a = b, otherwise 0.
        equal Equal
    }

    reduction! {
        /// The sum along an axis, which is removed from the shape.
        sum Sum,
        /// The mean along an axis.
        mean Mean,
        /// The largest value along an axis; NaN if any is NaN.
        max Max,
        /// The smallest value along an axis; NaN if any is NaN.
        min Min,
        /// The mean of squares along an axis.
        mean_of_squares MeanOfSquares,
        /// The index of the largest value along an axis, as u32; the first index if several values are the largest.
        argmax ArgMax,
        /// The index of the smallest value along an axis, as u32; the first index if several values are the smallest.
        argmin ArgMin
    }

    /// Applies a [`Unary`] op.
    #[must_use]
    pub fn unary(&self, op: Unary) -> Expr {
        self.then(|node| {
            if let Some(wants) = op.refuses(node.dtype) {
                return Err(TensorError::WrongType { op: op.name(), has: node.dtype, wants });
            }
            Ok((OpKind::Unary(op, node.clone()), node.shape.clone(), node.dtype))
        })
    }

    /// Applies a [`Binary`] op; shapes broadcast.
    #[must_use]
    pub fn binary(&self, op: Binary, other: impl Into<Operand>) -> Expr {
        self.with(op.name(), other, |a, b| {
            if let Some(wants) = op.refuses(a.dtype) {
                return Err(TensorError::WrongType { op: op.name(), has: a.dtype, wants });
            }
            let shape = a.shape.broadcast(&b.shape, op.name())?;
            Ok((OpKind::Binary(op, a.clone(), b.clone()), shape, a.dtype))
        })
    }

    /// Limits values to `low..=high`; NaN stays NaN.
    #[must_use]
    pub fn clamp(&self, low: f32, high: f32) -> Expr {
        if low.is_nan() || high.is_nan() || low > high {
            let problem = format!("low is {low}, high is {high}; low must not exceed high");
            return Expr::failed(TensorError::Setting { op: "clamp", problem });
        }
        self.maximum(low).minimum(high)
    }

    /// The value of `yes` where the value of this expression is not 0, and the value of `no` elsewhere; shapes
    /// broadcast.
    #[must_use]
    pub fn select(&self, yes: impl Into<Operand>, no: impl Into<Operand>) -> Expr {
        let op = "select";
        let (yes, no) = (yes.into(), no.into());
        let like = match (&yes.0, &no.0) {
            (OperandValue::Expr(expr), _) | (_, OperandValue::Expr(expr)) => expr.clone(),
            _ => self.clone(),
        };
        let picked = || -> Result<Expr, TensorError> {
            let (mask, like) = (self.node.clone()?, like.node.clone()?);
            let (yes, no) = (operand(op, &like, yes)?, operand(op, &like, no)?);
            let shape = mask.shape.broadcast(&yes.shape, op)?.broadcast(&no.shape, op)?;
            Ok(Expr::made(OpKind::Select(mask, yes, no), shape, like.dtype))
        };
        picked().unwrap_or_else(Expr::failed)
    }

    /// The same values in another type, converted like Rust's `as`: floats truncate and saturate, NaN becomes 0,
    /// integers wrap.
    #[must_use]
    pub fn cast(&self, dtype: DType) -> Expr {
        self.then(|node| Ok((OpKind::Cast(node.clone()), node.shape.clone(), dtype)))
    }

    /// Reduces an axis, which is removed from the shape, or kept with a length of 1.
    #[must_use]
    pub fn reduce(&self, how: Reduction, axis: isize, keep: bool) -> Expr {
        match self.shape().and_then(|shape| shape.axis(how.name(), axis)) {
            Ok(axis) => self.reduce_at(how, axis, keep),
            Err(error) => Expr::failed(error),
        }
    }

    fn reduce_at(&self, how: Reduction, axis: usize, keep: bool) -> Expr {
        let op = how.name();
        self.then(|node| {
            let places = matches!(how, Reduction::ArgMax | Reduction::ArgMin);
            let whole = matches!(how, Reduction::Sum | Reduction::Max | Reduction::Min);
            let taken = node.dtype.is_float() || whole && matches!(node.dtype, DType::I32 | DType::U32);
            if !taken {
                let wants = if whole { "f32, f16, i32 or u32" } else { "f32 or f16" };
                return Err(TensorError::WrongType { op, has: node.dtype, wants });
            }
            if node.shape[axis] == 0 && !matches!(how, Reduction::Sum | Reduction::Mean | Reduction::MeanOfSquares) {
                let problem = format!("axis {axis} of {} is empty", node.shape);
                return Err(TensorError::Mismatch { op, problem });
            }
            let dtype = if places { DType::U32 } else { node.dtype };
            Ok((OpKind::Reduce { how, of: node.clone(), axis }, node.shape.reduced(axis, keep), dtype))
        })
    }

    /// Reduces all values to one value.
    #[must_use]
    pub fn reduce_all(&self, how: Reduction) -> Expr {
        self.then(|node| {
            let row = Shape::new(&[node.shape.count()])?;
            Ok((OpKind::Reshape(node.clone()), row, node.dtype))
        })
        .reduce(how, 0, false)
    }

    /// Exponentials along an axis, scaled to a sum of 1.
    #[must_use]
    pub fn softmax(&self, axis: isize) -> Expr {
        self.shares("softmax", axis, false)
    }

    /// The logarithm of [`Expr::softmax`].
    #[must_use]
    pub fn log_softmax(&self, axis: isize) -> Expr {
        self.shares("log_softmax", axis, true)
    }

    /// Normalises the last axis to mean 0 and variance 1, then multiplies by `gamma` and adds `beta`, which have one
    /// value for each index along that axis.
    #[must_use]
    pub fn layer_norm(&self, gamma: Option<Operand>, beta: Option<Operand>, epsilon: f32) -> Expr {
        let op = "layer_norm";
        self.then(|node| {
            float(op, node)?;
            let axis = node.shape.axis(op, -1)?;
            let length = node.shape[axis];
            let row = |given: Option<Operand>| -> Result<Option<SharedNode>, TensorError> {
                let Some(given) = given else { return Ok(None) };
                let given = operand(op, node, given)?;
                if given.shape.lengths() != [length] {
                    let problem = format!("{} has rows of {length}, gamma or beta has {}", node.shape, given.shape);
                    return Err(TensorError::Mismatch { op, problem });
                }
                Ok(Some(given))
            };
            let (gamma, beta) = (row(gamma)?, row(beta)?);
            Ok((OpKind::LayerNorm { of: node.clone(), gamma, beta, epsilon }, node.shape.clone(), node.dtype))
        })
    }

    /// The matrix product of [.., m, k] and [.., k, n]; leading axes broadcast. f16 is summed as f32 and gives f32.
    #[must_use]
    pub fn matmul(&self, other: impl Into<Operand>) -> Expr {
        self.matmul_as(other, false, false)
    }

    /// The matrix product, with either operand transposed first.
    #[must_use]
    pub fn matmul_as(&self, other: impl Into<Operand>, transpose_a: bool, transpose_b: bool) -> Expr {
        self.with("matmul", other, |a, b| {
            float("matmul", a)?;
            let shape = product_shape(a, b, transpose_a, transpose_b)?;
            let product = Matmul { a: a.clone(), b: b.clone(), transpose_a, transpose_b };
            Ok((OpKind::Matmul(product), shape, DType::F32))
        })
    }

    /// The product of quantised matrices of i8, times both scales. Sums are exact on the host. On a device, sums of up
    /// to 32,764 products are exact; the device splits longer sums, and adds the partial sums as f32. `scale` has one
    /// value; `other_scale` has one value, or one value for each column of the product.
    #[must_use]
    pub fn matmul_scaled(
        &self,
        scale: &Expr,
        other: &Expr,
        other_scale: &Expr,
        (transpose_a, transpose_b): (bool, bool),
    ) -> Expr {
        let op = "matmul_scaled";
        let sums = self.then(|a| {
            let b = other.node.clone()?;
            for node in [a, &b] {
                if node.dtype != DType::I8 {
                    return Err(TensorError::WrongType { op, has: node.dtype, wants: "i8" });
                }
            }
            let shape = product_shape(a, &b, transpose_a, transpose_b)?;
            let k = a.shape[a.shape.rank() - if transpose_a { 2 } else { 1 }];
            if k > MOST_I8_SUMS {
                let problem = format!("sums of {k} products of i8 may exceed 32 bits; the limit is {MOST_I8_SUMS}");
                return Err(TensorError::Mismatch { op, problem });
            }
            let columns = shape[shape.rank() - 1];
            let (one, per_column) = (scale.shape()?.count(), other_scale.shape()?.count());
            if one != 1 || (per_column != 1 && per_column != columns) {
                let problem = format!(
                    "the scales have {one} and {per_column} values; expected 1, and 1 or {columns} (one per column)"
                );
                return Err(TensorError::Mismatch { op, problem });
            }
            let product = Matmul { a: a.clone(), b, transpose_a, transpose_b };
            Ok((OpKind::Matmul(product), shape, DType::F32))
        });
        let row = |scale: &Expr| scale.reshape(&[scale.shape().map_or(0, Shape::count)]);
        sums.mul(row(scale)).mul(row(other_scale))
    }

    /// Converts an image [height, width, 4] of u8 to a tensor of f32: resizes, normalises and reorders in one kernel.
    #[must_use]
    pub fn image_to_tensor(&self, picture: &ImageSpec) -> Expr {
        let op = "image_to_tensor";
        self.then(|node| {
            if node.dtype != DType::U8 {
                return Err(TensorError::WrongType { op, has: node.dtype, wants: "u8" });
            }
            let channels = picture.numbers(op)?.len();
            let (height, width) = match node.shape.lengths() {
                [height, width, 4] | [1, height, width, 4] if height * width > 0 => (*height, *width),
                _ => {
                    let problem = format!("shape is {}, expected an image [height, width, 4]", node.shape);
                    return Err(TensorError::Mismatch { op, problem });
                }
            };
            let (height, width) = picture.size.unwrap_or((height, width));
            let shape = Shape::new(&picture.lengths(channels, height, width))?;
            Ok((OpKind::FromImage { of: node.clone(), picture: picture.clone() }, shape, DType::F32))
        })
    }

    /// Converts a tensor of f32 to an image [height, width, 4] of u8: the inverse of `image_to_tensor`, without
    /// resizing.
    #[must_use]
    pub fn tensor_to_image(&self, picture: &ImageSpec) -> Expr {
        let op = "tensor_to_image";
        self.then(|node| {
            if node.dtype != DType::F32 {
                return Err(TensorError::WrongType { op, has: node.dtype, wants: "f32" });
            }
            picture.numbers(op)?;
            let lengths = node.shape.lengths();
            let (channels, height, width) = match (picture.layout, lengths) {
                (ChannelLayout::Nchw, [1, c, h, w] | [c, h, w]) | (ChannelLayout::Nhwc, [1, h, w, c] | [h, w, c]) => {
                    (*c, *h, *w)
                }
                _ => (0, 0, 0),
            };
            if channels == 0
                || channels != picture.channels.len()
                || channels == 2
                || picture.size.is_some_and(|size| size != (height, width))
            {
                let problem = format!(
                    "shape is {}, expected {:?} with 1, 3 or 4 channels `{}`",
                    node.shape, picture.layout, picture.channels
                );
                return Err(TensorError::Mismatch { op, problem });
            }
            let shape = Shape::new(&[height, width, 4])?;
            Ok((OpKind::ToImage { of: node.clone(), picture: picture.clone() }, shape, DType::U8))
        })
    }

    /// Quantises to i8 symmetrically: `scale = max |x| / 127`, with one maximum and one scale for all values, or with a
    /// maximum and a scale for each index along an axis. Halves round to even; -128 is unused. If all values are 0, the
    /// scale is 1. NaN becomes 0. Infinite values become +-127 and do not affect the scale. Returns the values and the
    /// scale. The shape of the scale is `[1]`, or the shape of the tensor with a length of 1 along every axis except
    /// the given axis.
    pub fn quantize(&self, axis: Option<isize>) -> (Expr, Expr) {
        let op = "quantize";
        let sizes = self.then(|node| {
            if node.dtype != DType::F32 {
                return Err(TensorError::WrongType { op, has: node.dtype, wants: "f32" });
            }
            Ok((OpKind::Unary(Unary::FiniteSize, node.clone()), node.shape.clone(), node.dtype))
        });
        let largest = match (axis, self.shape()) {
            (_, Err(error)) => Expr::failed(error),
            (None, Ok(shape)) if shape.count() == 0 => {
                Expr::failed(TensorError::Mismatch { op, problem: format!("{shape} has no values") })
            }
            (None, Ok(_)) => sizes.reduce_all(Reduction::Max).reshape(&[1]),
            (Some(axis), Ok(shape)) => match shape.axis(op, axis) {
                Ok(axis) => (0..shape.rank())
                    .filter(|other| *other != axis)
                    .fold(sizes, |sizes, other| sizes.reduce_at(Reduction::Max, other, true)),
                Err(error) => Expr::failed(error),
            },
        };
        let scale = largest.unary(Unary::ScaleOf);
        (self.binary(Binary::Quantized, &scale).cast(DType::I8), scale)
    }

    /// Multiplies values of i8 by their scale, which broadcasts.
    #[must_use]
    pub fn dequantize(&self, scale: impl Into<Operand>) -> Expr {
        self.cast(DType::F32).mul(scale)
    }

    fn shares(&self, op: &'static str, axis: isize, log: bool) -> Expr {
        self.then(|node| {
            float(op, node)?;
            let axis = node.shape.axis(op, axis)?;
            Ok((OpKind::Softmax { of: node.clone(), axis, log }, node.shape.clone(), node.dtype))
        })
    }

    pub(super) fn then(&self, next: impl FnOnce(&SharedNode) -> Result<(OpKind, Shape, DType), TensorError>) -> Expr {
        let made = self.node.clone().and_then(|node| next(&node));
        match made {
            Ok((kind, shape, dtype)) => Expr::made(kind, shape, dtype),
            Err(error) => Expr::failed(error),
        }
    }

    fn with(
        &self,
        op: &'static str,
        other: impl Into<Operand>,
        next: impl FnOnce(&SharedNode, &SharedNode) -> Result<(OpKind, Shape, DType), TensorError>,
    ) -> Expr {
        let other = other.into();
        self.then(|node| next(node, &operand(op, node, other)?))
    }
}

/// The node of an operand, converted to the type of `beside`.
fn operand(op: &'static str, beside: &SharedNode, operand: Operand) -> Result<SharedNode, TensorError> {
    let dtype = beside.dtype;
    match operand.0 {
        OperandValue::Expr(expr) => {
            let node = expr.node?;
            if node.dtype != dtype {
                return Err(TensorError::WrongType { op, has: node.dtype, wants: dtype.name() });
            }
            Ok(node)
        }
        OperandValue::Number(number) => {
            if !fits(number, dtype) {
                let problem =
                    format!("{number} is not a value of {dtype}; `cast` the tensor first, or use another number");
                return Err(TensorError::Setting { op, problem });
            }
            let bits = match dtype {
                DType::F32 => (number as f32).to_bits(),
                DType::F16 => f16::from_f64(number).to_f32().to_bits(),
                DType::I32 => (number as i32).cast_unsigned(),
                DType::U32 => number as u32,
                DType::U8 => u32::from(number as u8),
                DType::I8 => i32::from(number as i8).cast_unsigned(),
            };
            Ok(SharedNode::new(ExprNode { kind: OpKind::Constant(bits), shape: Shape::scalar(), dtype }))
        }
    }
}

/// True if the type can hold this number. Float types accept any number.
fn fits(number: f64, dtype: DType) -> bool {
    let (least, greatest) = match dtype {
        DType::F32 | DType::F16 => return true,
        DType::I32 => (f64::from(i32::MIN), f64::from(i32::MAX)),
        DType::U32 => (0.0, f64::from(u32::MAX)),
        DType::U8 => (0.0, 255.0),
        DType::I8 => (-128.0, 127.0),
    };
    number.fract() == 0.0 && (least..=greatest).contains(&number)
}

fn float(op: &'static str, node: &ExprNode) -> Result<(), TensorError> {
    if node.dtype.is_float() {
        return Ok(());
    }
    Err(TensorError::WrongType { op, has: node.dtype, wants: "f32 or f16" })
}

/// The shape of a product. Fails if the operands do not match.
fn product_shape(a: &ExprNode, b: &ExprNode, transpose_a: bool, transpose_b: bool) -> Result<Shape, TensorError> {
    let op = "matmul";
    let (left, right) = (&a.shape, &b.shape);
    let turned = |shape: &Shape, turn: bool| match *shape.lengths() {
        [.., rows, columns] => Some(if turn { (columns, rows) } else { (rows, columns) }),
        _ => None,
    };
    let (Some((rows, k)), Some((inner, columns))) = (turned(left, transpose_a), turned(right, transpose_b)) else {
        let problem = format!("{left} by {right}: both need at least two axes");
        return Err(TensorError::Mismatch { op, problem });
    };
    if k != inner {
        let as_is = |turn: bool| if turn { " transposed" } else { "" };
        let problem = format!(
            "{left}{} by {right}{}: the first has {k} columns, the second {inner} rows",
            as_is(transpose_a),
            as_is(transpose_b)
        );
        return Err(TensorError::Mismatch { op, problem });
    }
    let before = |shape: &Shape| Shape::new(&shape.lengths()[..shape.rank() - 2]);
    let batch = before(left)?.broadcast(&before(right)?, op)?;
    Shape::new(&[batch.lengths(), &[rows, columns]].concat())
}
