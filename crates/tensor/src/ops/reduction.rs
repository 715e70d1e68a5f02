//! The reductions of tensors. Host loops, device kernels and expressions all use this enum.

/// How the values along an axis are reduced to one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// The sum; 0 for an empty axis.
    Sum,
    /// The mean; NaN for an empty axis.
    Mean,
    /// The largest value; NaN if any value is NaN.
    Max,
    /// The smallest value; NaN if any value is NaN.
    Min,
    /// The mean of the squares; NaN for an empty axis.
    MeanOfSquares,
    /// The index of the largest value, or of the first NaN if there is one. If several values are the largest, the
    /// index of the first of them.
    ArgMax,
    /// The index of the smallest value, with the same rules as for [`Reduction::ArgMax`].
    ArgMin,
}

impl Reduction {
    /// The name of the method.
    pub const fn name(self) -> &'static str {
        match self {
            Reduction::Sum => "sum",
            Reduction::Mean => "mean",
            Reduction::Max => "max",
            Reduction::Min => "min",
            Reduction::MeanOfSquares => "mean_of_squares",
            Reduction::ArgMax => "argmax",
            Reduction::ArgMin => "argmin",
        }
    }

    /// True if the result is an index, not a value.
    pub(crate) const fn is_position(self) -> bool {
        matches!(self, Reduction::ArgMax | Reduction::ArgMin)
    }

    /// True if values are added up.
    pub(crate) const fn is_sum(self) -> bool {
        matches!(self, Reduction::Sum | Reduction::Mean | Reduction::MeanOfSquares)
    }
}
