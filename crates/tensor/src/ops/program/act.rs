//! The elementwise ops: their names, and which types they take.
//!
//! Owns the lists.
//! Does not compute.

use std::fmt;

use crate::ops::dtype::DType;

/// Hands the named ops on one value to a macro: what each does, its name and its variant. The enum and the methods of
/// tensors and expressions come from this list; `wgsl::unary` and `host::rows::unary` compute them.
macro_rules! named_unary {
    ($to:ident) => {
        $to! {
            /// -x; of unsigned types not taken.
            neg Neg,
            /// |x|
            abs Abs,
            /// The larger of x and 0.
            relu Relu,
            /// 1 / (1 + e^-x)
            sigmoid Sigmoid,
            /// Hyperbolic tangent.
            tanh Tanh,
            /// x times the share of a normal distribution below x, by the error function.
            gelu Gelu,
            /// x * sigmoid(x)
            silu Silu,
            /// e^x
            exp Exp,
            /// Natural logarithm; -Inf of 0, NaN of less.
            log Log,
            /// Square root; NaN of less than 0.
            sqrt Sqrt,
            /// x * x
            square Square,
            /// 1 / x
            reciprocal Reciprocal,
            /// The next whole number downwards.
            floor Floor,
            /// The nearest whole number, halves to the even one.
            round Round,
        }
    };
}

pub(crate) use named_unary;

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident $op:ident),* $(,)?) => {
        /// An op on one value. NaN gives NaN, unless said otherwise.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Unary {
            $($(#[$doc])* $op,)*
            /// |x| where it is a number, 0 where it is infinite or none: what a scale is chosen by.
            FiniteSize,
            /// A largest size to the scale that maps it to 127, never subnormal; 1 of 0.
            ScaleOf,
        }

        impl Unary {
            /// Those that people name in words, such as in a setting.
            pub const NAMED: [Unary; [$(Unary::$op),*].len()] = [$(Unary::$op),*];

            /// Its name, as the method is called.
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
