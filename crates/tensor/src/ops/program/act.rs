//! The elementwise ops: their names and the types they accept.

use std::fmt;

use crate::ops::dtype::DType;

/// Passes the doc comment, name and variant of each named unary op to a macro. The enum and the methods of tensors and
/// expressions come from this list; `wgsl::unary` and `host::rows::unary` compute the ops.
macro_rules! named_unary {
    ($to:ident) => {
        $to! {
            /// -x; unsigned types are refused.
            neg Neg,
            /// |x|
            abs Abs,
            /// The larger of x and 0.
            relu Relu,
            /// 1 / (1 + e^-x)
            sigmoid Sigmoid,
            /// Hyperbolic tangent.
            tanh Tanh,
            /// x times the normal cumulative distribution at x: the exact form, not the tanh approximation.
            gelu Gelu,
            /// x * sigmoid(x)
            silu Silu,
            /// The error function.
            erf Erf,
            /// e^x
            exp Exp,
            /// Natural logarithm; -Inf for 0, NaN for negative x.
            log Log,
            /// Square root; NaN for negative x.
            sqrt Sqrt,
            /// x * x
            square Square,
            /// 1 / x
            reciprocal Reciprocal,
            /// The largest integer that is not above x.
            floor Floor,
            /// The nearest integer; halves round to even.
            round Round,
        }
    };
}

pub(crate) use named_unary;

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident $op:ident),* $(,)?) => {
        /// An op on one value. NaN gives NaN unless documented otherwise.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Unary {
            $($(#[$doc])* $op,)*
            /// |x|, or 0 if x is infinite or NaN: the magnitude from which a quantisation scale is chosen.
            FiniteSize,
            /// The quantisation scale for values of magnitude up to x: x / 127, but never subnormal, and 1 if x is 0.
            ScaleOf,
        }

        impl Unary {
            /// The ops that can be given by name, such as in a setting.
            pub const NAMED: [Unary; [$(Unary::$op),*].len()] = [$(Unary::$op),*];

            /// The name of the method.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Unary::$op => stringify!($name),)*
                    Unary::FiniteSize => "finite_size",
                    Unary::ScaleOf => "scale_of",
                }
            }
        }
    };
}

named_unary!(unary);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Binary {
    /// a + b; integers wrap.
    Add,
    /// a - b; integers wrap.
    Sub,
    /// a * b; integers wrap.
    Mul,
    /// a / b. Integers round towards 0; an integer divided by 0 stays as it is.
    Div,
    /// The smaller of a and b; NaN if either is NaN.
    Min,
    /// The larger of a and b; NaN if either is NaN.
    Max,
    /// a to the power of b; NaN for a < 0 unless b is an integer.
    Pow,
    /// 1 if a < b, otherwise 0.
    Less,
    /// 1 if a > b, otherwise 0.
    Greater,
    /// 1 if a = b, otherwise 0; NaN equals nothing.
    Equal,
    /// x / scale, rounded to nearest (halves to even) and limited to -127..127; 0 for NaN.
    Quantized,
}

impl Unary {
    /// The op of [`Unary::NAMED`] with this name.
    pub fn named(name: &str) -> Option<Unary> {
        Unary::NAMED.into_iter().find(|one| one.name() == name)
    }

    /// `None` if the op accepts values of type `dtype`, otherwise the types that it accepts, for a message.
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
    /// The name of the method.
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

    /// `None` if the op accepts values of type `dtype`, otherwise the types that it accepts, for a message.
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
