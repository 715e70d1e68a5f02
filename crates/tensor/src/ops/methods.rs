//! Ops as methods of [`Tensor`]. Each method builds an expression of a single op and runs the expression at once;
//! checks and computation are in [`Expr`].

use crate::ops::dtype::DType;
use crate::ops::error::TensorError;
use crate::ops::expr::{Expr, Operand};
use crate::ops::image::ImageSpec;
use crate::ops::program::{Binary, Unary, named_unary};
use crate::ops::reduction::Reduction;
use crate::ops::tensor::Tensor;

macro_rules! ops {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $type:ty),*)),* $(,)?) => {
        $($(#[$doc])* pub fn $name(&self, $($arg: $type),*) -> Result<Tensor, TensorError> {
            self.lazy().$name($($arg),*).run()
        })*
    };
}

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident $op:ident),* $(,)?) => { ops! { $($(#[$doc])* $name()),* } };
}

impl Tensor {
    named_unary!(unary);

    ops! {
        /// Applies a [`Unary`] op.
        unary(op: Unary),
        /// a + b; shapes broadcast.
        add(other: impl Into<Operand>),
        /// a - b
        sub(other: impl Into<Operand>),
        /// a * b, value by value.
        mul(other: impl Into<Operand>),
        /// a / b. Integers round towards 0; an integer divided by 0 stays as it is.
        div(other: impl Into<Operand>),
        /// The smaller of a and b; NaN if either is NaN.
        minimum(other: impl Into<Operand>),
        /// The larger of a and b; NaN if either is NaN.
        maximum(other: impl Into<Operand>),
        /// a to the power of b, within 1e-5.
        pow(other: impl Into<Operand>),
        /// 1 if a < b, otherwise 0.
        less(other: impl Into<Operand>),
        /// 1 if a > b, otherwise 0.
        greater(other: impl Into<Operand>),
        /// 1 if a = b, otherwise 0.
        equal(other: impl Into<Operand>),
        /// Applies a [`Binary`] op; shapes broadcast.
        binary(op: Binary, other: impl Into<Operand>),
        /// Limits values to `low..=high`; NaN stays NaN.
        clamp(low: f32, high: f32),
        /// The value of `yes` where the value of this tensor is not 0, and the value of `no` elsewhere.
        select(yes: impl Into<Operand>, no: impl Into<Operand>),
        /// The same values in another type, converted like Rust's `as`.
        cast(dtype: DType),
        /// The sum along an axis, which is removed from the shape.
        sum(axis: isize),
        /// The mean along an axis.
        mean(axis: isize),
        /// The largest value along an axis; NaN if any is NaN.
        max(axis: isize),
        /// The smallest value along an axis; NaN if any is NaN.
        min(axis: isize),
        /// The mean of squares along an axis.
        mean_of_squares(axis: isize),
        /// The index of the largest value along an axis, as u32; the first index if several values are the largest.
        argmax(axis: isize),
        /// The index of the smallest value along an axis, as u32; the first index if several values are the smallest.
        argmin(axis: isize),
        /// Reduces an axis, which is removed from the shape, or kept with a length of 1.
        reduce(how: Reduction, axis: isize, keep: bool),
        /// Reduces all values to one value.
        reduce_all(how: Reduction),
        /// Exponentials along an axis, scaled to a sum of 1.
        softmax(axis: isize),
        /// The logarithm of [`Tensor::softmax`].
        log_softmax(axis: isize),
        /// Normalises the last axis to mean 0 and variance 1, then multiplies by `gamma` and adds `beta`.
        layer_norm(gamma: Option<Operand>, beta: Option<Operand>, epsilon: f32),
        /// The matrix product of [.., m, k] and [.., k, n].
        matmul(other: impl Into<Operand>),
        /// The matrix product, with either operand transposed first.
        matmul_as(other: impl Into<Operand>, transpose_a: bool, transpose_b: bool),
        /// Reorders the axes.
        permute(axes: &[usize]),
        /// Swaps the last two axes.
        transpose(),
        /// The range `start..end` along an axis.
        slice(axis: isize, start: usize, end: usize),
        /// Repeats values to a larger shape.
        broadcast_to(lengths: &[usize]),
        /// Picks entries along an axis by index (i32 or u32).
        gather(indices: impl Into<Operand>, axis: isize),
        /// Converts an image [height, width, 4] of u8 to a tensor of f32: resizes, normalises and reorders in one
        /// kernel.
        image_to_tensor(picture: &ImageSpec),
        /// Converts a tensor of f32 to an image [height, width, 4] of u8.
        tensor_to_image(picture: &ImageSpec),
        /// Multiplies values of i8 by their scale, which broadcasts.
        dequantize(scale: impl Into<Operand>),
    }

    /// Quantises to i8 with one scale for all values, or with one scale for each index along an axis.
    /// [`Expr::quantize`] documents the scheme.
    pub fn quantize(&self, axis: Option<isize>) -> Result<(Tensor, Tensor), TensorError> {
        let (_, scale) = self.lazy().quantize(axis);
        let scale = scale.run()?;
        let values = self.lazy().binary(Binary::Quantized, &scale).cast(DType::I8).run()?;
        Ok((values, scale))
    }

    /// The product of quantised matrices of i8, times both scales. See [`Expr::matmul_scaled`].
    pub fn matmul_scaled(
        &self,
        scale: &Tensor,
        other: &Tensor,
        other_scale: &Tensor,
        transposes: (bool, bool),
    ) -> Result<Tensor, TensorError> {
        self.lazy().matmul_scaled(&scale.lazy(), &other.lazy(), &other_scale.lazy(), transposes).run()
    }

    /// Concatenates along an axis; all other lengths must be equal.
    pub fn concat(parts: &[&Tensor], axis: isize) -> Result<Tensor, TensorError> {
        let parts: Vec<Expr> = parts.iter().map(|part| part.lazy()).collect();
        Expr::concat(&parts, axis).run()
    }
}
