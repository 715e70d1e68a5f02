//! Ops of tensors, one by one: each an expression that is run at once.
//!
//! Owns the short names.
//! Does not check or compute anything: expressions do.

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
        /// An op by its name's value.
        unary(op: Unary),
        /// a + b; shapes broadcast.
        add(other: impl Into<Operand>),
        /// a - b
        sub(other: impl Into<Operand>),
        /// a * b, value by value.
        mul(other: impl Into<Operand>),
        /// a / b; of whole numbers towards 0, and a where b is 0.
        div(other: impl Into<Operand>),
        /// The smaller; NaN if either is.
        minimum(other: impl Into<Operand>),
        /// The larger; NaN if either is.
        maximum(other: impl Into<Operand>),
        /// a to the power of b, within 1e-5 of it.
        pow(other: impl Into<Operand>),
        /// 1 where a < b, otherwise 0.
        less(other: impl Into<Operand>),
        /// 1 where a > b, otherwise 0.
        greater(other: impl Into<Operand>),
        /// 1 where a = b, otherwise 0.
        equal(other: impl Into<Operand>),
        /// An op on two by its name's value.
        binary(op: Binary, other: impl Into<Operand>),
        /// Values held between two numbers; NaN stays.
        clamp(low: f32, high: f32),
        /// Values of `yes` where this is not 0, of `no` elsewhere.
        select(yes: impl Into<Operand>, no: impl Into<Operand>),
        /// The same values in another type, as Rust's `as`.
        cast(dtype: DType),
        /// The sum along an axis, which is left out of the shape.
        sum(axis: isize),
        /// The mean along an axis.
        mean(axis: isize),
        /// The largest along an axis; NaN if any is.
        max(axis: isize),
        /// The smallest along an axis; NaN if any is.
        min(axis: isize),
        /// The mean of squares along an axis.
        mean_of_squares(axis: isize),
        /// Where the largest along an axis is, as u32: the first of equals.
        argmax(axis: isize),
        /// Where the smallest along an axis is.
        argmin(axis: isize),
        /// Values along an axis as one; the axis is left out, or kept with a length of 1.
        reduce(how: Reduction, axis: isize, keep: bool),
        /// All values as one.
        reduce_all(how: Reduction),
        /// Shares that add up to 1 along an axis.
        softmax(axis: isize),
        /// The logarithm of the shares.
        log_softmax(axis: isize),
        /// Values along the last axis with a mean of 0 and a variance of 1, times `gamma`, plus `beta`.
        layer_norm(gamma: Option<Operand>, beta: Option<Operand>, epsilon: f32),
        /// The product of matrices: [.., m, k] by [.., k, n].
        matmul(other: impl Into<Operand>),
        /// The product of matrices that may be transposed first.
        matmul_as(other: impl Into<Operand>, transpose_a: bool, transpose_b: bool),
        /// Axes in another order.
        permute(axes: &[usize]),
        /// The last two axes exchanged.
        transpose(),
        /// Values from `start` to before `end` along an axis.
        slice(axis: isize, start: usize, end: usize),
        /// Values repeated to a larger shape.
        broadcast_to(lengths: &[usize]),
        /// Values along an axis by their numbers (i32 or u32).
        gather(indices: impl Into<Operand>, axis: isize),
        /// A picture [height, width, 4] of u8 as a tensor of f32: resized, normalised and ordered in one kernel.
        image_to_tensor(picture: &ImageSpec),
        /// A tensor of f32 as a picture [height, width, 4] of u8.
        tensor_to_image(picture: &ImageSpec),
        /// Values of i8 times their scale, which broadcasts.
        dequantize(scale: impl Into<Operand>),
    }

    /// Values as i8 with a scale, over all values or for each place along an axis; the scheme stands at
    /// [`Expr::quantize`].
    pub fn quantize(&self, axis: Option<isize>) -> Result<(Tensor, Tensor), TensorError> {
        let (_, scale) = self.lazy().quantize(axis);
        let scale = scale.run()?;
        let values = self.lazy().binary(Binary::Quantized, &scale).cast(DType::I8).run()?;
        Ok((values, scale))
    }

    /// The product of quantised matrices of i8, times both scales; as [`Expr::matmul_scaled`].
    pub fn matmul_scaled(
        &self,
        scale: &Tensor,
        other: &Tensor,
        other_scale: &Tensor,
        transposes: (bool, bool),
    ) -> Result<Tensor, TensorError> {
        self.lazy().matmul_scaled(&scale.lazy(), &other.lazy(), &other_scale.lazy(), transposes).run()
    }

    /// Several behind one another along an axis; all other lengths are the same.
    pub fn concat(parts: &[&Tensor], axis: isize) -> Result<Tensor, TensorError> {
        let parts: Vec<Expr> = parts.iter().map(|part| part.lazy()).collect();
        Expr::concat(&parts, axis).run()
    }
}
