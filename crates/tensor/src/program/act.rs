//! The elementwise ops: their names, and which types they take.
//!
//! Owns the lists.
//! Does not compute.

use std::fmt;

use crate::dtype::DType;

/// An op on one value. NaN gives NaN, unless said otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unary {
    /// -x; of unsigned types not taken.
    Neg,
    /// |x|
    Abs,
    /// The larger of x and 0.
    Relu,
    /// 1 / (1 + e^-x)
    Sigmoid,
    /// Hyperbolic tangent.
    Tanh,
    /// x times the share of a normal distribution below x, by the error function.
    Gelu,
    /// x * sigmoid(x)
    Silu,
    /// e^x
    Exp,
    /// Natural logarithm; -Inf of 0, NaN of less.
    Log,
    /// Square root; NaN of less than 0.
    Sqrt,
    /// x * x
    Square,
    /// 1 / x
    Reciprocal,
    /// The next whole number downwards.
    Floor,
    /// The nearest whole number, halves to the even one.
    Round,
    /// |x| where it is a number, 0 where it is infinite or none: what a scale is chosen by.
    FiniteSize,
    /// A largest size to the scale that maps it to 127, never subnormal; 1 of 0.
    ScaleOf,
}

/// An op on two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Binary {
    /// a + b; whole numbers wrap.
    Add,
    /// a - b; whole numbers wrap.
    Sub,
    /// a * b; whole numbers wrap.
    Mul,
    /// a / b; of whole numbers towards 0, and a where b is 0.
    Div,
    /// The smaller; NaN if either is.
    Min,
    /// The larger; NaN if either is.
    Max,
    /// a to the power of b; NaN for a < 0 unless b is whole.
    Pow,
    /// 1 where a < b, otherwise 0.
    Less,
    /// 1 where a > b, otherwise 0.
    Greater,
    /// 1 where a = b, otherwise 0; NaN equals nothing.
    Equal,
    /// x / scale, rounded to the nearest (halves to even) within -127..127; 0 of NaN.
    Quantized,
}

impl Unary {
    /// Its name, as the method is called.
    pub const fn name(self) -> &'static str {
        match self {
            Unary::Neg => "neg",
            Unary::Abs => "abs",
            Unary::Relu => "relu",
            Unary::Sigmoid => "sigmoid",
            Unary::Tanh => "tanh",
            Unary::Gelu => "gelu",
            Unary::Silu => "silu",
            Unary::Exp => "exp",
            Unary::Log => "log",
            Unary::Sqrt => "sqrt",
            Unary::Square => "square",
            Unary::Reciprocal => "reciprocal",
            Unary::Floor => "floor",
            Unary::Round => "round",
            Unary::FiniteSize => "finite_size",
            Unary::ScaleOf => "scale_of",
        }
    }

    /// Those that people name in words, such as in a setting.
    pub const NAMED: [Unary; 14] = [
        Unary::Neg,
        Unary::Abs,
        Unary::Relu,
        Unary::Sigmoid,
        Unary::Tanh,
        Unary::Gelu,
        Unary::Silu,
        Unary::Exp,
        Unary::Log,
        Unary::Sqrt,
        Unary::Square,
        Unary::Reciprocal,
        Unary::Floor,
        Unary::Round,
    ];

    /// One of [`Unary::NAMED`] by its name.
    pub fn named(name: &str) -> Option<Unary> {
        Unary::NAMED.into_iter().find(|one| one.name() == name)
    }

    /// Which types it takes, in words; none where this one is among them.
    pub(crate) fn refuses(self, dtype: DType) -> Option<&'static str> {
        match (self, dtype) {
            (_, DType::F32 | DType::F16)
            | (Unary::Neg | Unary::Abs | Unary::Relu | Unary::Square, DType::I32)
            | (Unary::Abs | Unary::Relu | Unary::Square, DType::U32) => None,
            (Unary::Neg, _) => Some("f32, f16 or i32"),
            (Unary::Abs | Unary::Relu | Unary::Square, _) => Some("f32, f16, i32 or u32"),
            _ => Some("f32 or f16"),
        }
    }
}

impl Binary {
    /// Its name, as the method is called.
    pub const fn name(self) -> &'static str {
        match self {
            Binary::Add => "add",
            Binary::Sub => "sub",
            Binary::Mul => "mul",
            Binary::Div => "div",
            Binary::Min => "minimum",
            Binary::Max => "maximum",
            Binary::Pow => "pow",
            Binary::Less => "less",
            Binary::Greater => "greater",
            Binary::Equal => "equal",
            Binary::Quantized => "quantized",
        }
    }

    /// Which types it takes, in words; none where this one is among them.
    pub(crate) fn refuses(self, dtype: DType) -> Option<&'static str> {
        match (self, dtype) {
            (_, DType::F32 | DType::F16) => None,
            (Binary::Pow | Binary::Quantized, _) => Some("f32 or f16"),
            (_, DType::I32 | DType::U32) => None,
            _ => Some("f32, f16, i32 or u32"),
        }
    }
}

impl fmt::Display for Unary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Binary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
